"""Index records into a collection, and rebuild one from our own copy.

Source: docs/design.md#chroma. In this order, so that an interruption at any point leaves the old
collection, or one that says that it is incomplete and that the next run repairs without the model:

1. if clearances change: put them into the copy, and withhold the collection until the end, so
   that nothing is returned under the old ones, whatever happens from here on
2. embed what is new or changed (kept part by part, so that the next run continues from there)
3. replace the copy
4. mark the collection incomplete, write, mark it complete with the fingerprint of the copy

In PostgreSQL, clearances change at once, and what is embedded is written in one transaction at the
end: until then, questions are answered from the collection as it was.

Indexing adds and replaces; only `reset` removes chunks that the source no longer has. The copy
holds what the sources said. Edits of rules live in the journal: give them as `rules` (chunk id to
rule text, None if the rule was removed) and they are laid over what is written to the store.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ragfilter.errors import CollectionMissing, InputError, StoreError, WorkspaceLocked
from ragfilter.ingest.records import Record
from ragfilter.model import Chunk
from ragfilter.protocols import Embedder, Progress, Vectors
from ragfilter.stores import copies
from ragfilter.stores.base import IndexReport, check_embedder, check_name, pages
from ragfilter.stores.copies import StoredRow, with_rule
from ragfilter.stores.workspace import Workspace, lock_file, taken

if TYPE_CHECKING:
    from ragfilter.stores.base import VersionedStore
    from ragfilter.stores.postgres.store import PgStore

Rules = Mapping[str, str | None]
Step = Callable[[int], None]
EMBED_PART = 64
"""Texts embedded before they are saved, which a kill can lose; one batch of the models."""
WRITE_PART = 2_000


def index(
    records: Iterable[Record],
    *,
    name: str,
    workspace: Workspace,
    embedder: Embedder,
    reset: bool = False,
    rules: Callable[[], Rules] = dict,
    progress: Progress | None = None,
) -> IndexReport:
    """Index `records` into the collection `name`. Unchanged chunks are not touched. `rules` says
    which rules were edited.

    `progress` counts embedded texts and written chunks together. If the embedder says how many
    characters of a chunk it `reads`, the report warns of longer ones. Raises InputError (name,
    records; nothing is changed then), StoreError, ModelError, and WorkspaceLocked if the same
    collection is being indexed.
    """
    started = perf_counter()
    check_name(name)
    given = _unique(records)
    database = workspace.pg()
    with locked(workspace, name):
        if database is None:
            report = _index_in_store(workspace, name, given, embedder, reset, rules, progress)
        else:
            report = _index_in_database(database, name, given, embedder, reset, rules, progress)
    return replace(report, seconds=perf_counter() - started)


def _index_in_store(
    workspace: Workspace,
    name: str,
    given: Mapping[str, Record],
    embedder: Embedder,
    reset: bool,
    rules: Callable[[], Rules],
    progress: Progress | None,
) -> IndexReport:
    path, store = workspace.copy_path(name), workspace.versioned_store()
    store.check_ours(name)
    old = None if reset else copies.read_summary(path)
    if not reset:
        _check_target(store, name, old, embedder)
    before = {} if old is None else old.fingerprints
    fresh, report = _changed(name, given, before, embedder)
    whole = old is not None and _is_whole(store, name, old)
    if whole and not fresh:
        return report
    _withhold(store, name, path, given)
    rows = {row.chunk.id: row for row in ([] if reset else copies.read_copy(path))}
    parts = workspace.copies_dir / f"{name}.parts"
    vectors = {_key(row.chunk): row.vector for row in rows.values()}
    vectors |= copies.read_parts(parts, embedder=embedder.name)
    missing = _unembedded(fresh, vectors)
    step = counter(progress, len(missing) + (len(fresh) if whole else report.total))
    save = partial(copies.save_part, parts, embedder=embedder.name)
    vectors |= _embed(missing, embedder, save, step)
    rows |= {record.chunk.id: _row(record, vectors) for record in fresh}
    if fresh:
        copies.write_copy(path, list(rows.values()), embedder=embedder.name)
    # In the order of the records, in which the rules are exported.
    changed = [record.chunk.id for record in fresh] if whole else list(rows)
    _fill(store, name, rows, changed, embedder.name, rules(), step, anew=not whole)
    copies.remove_parts(parts)
    return replace(report, embedded=len(missing), written=len(changed))


def _index_in_database(
    database: PgStore,
    name: str,
    given: Mapping[str, Record],
    embedder: Embedder,
    reset: bool,
    rules: Callable[[], Rules],
    progress: Progress | None,
) -> IndexReport:
    old = database.summary(name)
    if not reset:
        check_embedder(name, old.embedder if old else "", embedder.name)
    before = {} if old is None or reset else old.fingerprints
    fresh, report = _changed(name, given, before, embedder)
    if not fresh:
        return report
    vectors = database.parts(name, embedder=embedder.name)
    if old is not None:
        database.change_clearances(name, _bars(given))
        if old.embedder == embedder.name:
            vectors |= database.vectors_of(name, [_key(record.chunk) for record in fresh])
    missing = _unembedded(fresh, vectors)
    step = counter(progress, len(missing) + len(fresh))
    save = partial(database.save_part, name, embedder=embedder.name)
    vectors |= _embed(missing, embedder, save, step)
    prints = {**before, **{i: record.fingerprint for i, record in given.items()}}
    database.put(
        name,
        [_row(record, vectors) for record in fresh],
        embedder=embedder.name,
        content=copies.content_fingerprint(embedder.name, prints),
        reset=reset,
        rules=rules,
        progress=step,
    )
    database.remove_parts(name)
    return replace(report, embedded=len(missing), written=len(fresh))


def rebuild(
    name: str,
    *,
    workspace: Workspace,
    rules: Rules | None = None,
    progress: Progress | None = None,
) -> IndexReport:
    """Rewrite the collection `name` from our own copy, without the model.

    Raises StoreError if there is no copy, or it is damaged, or the collection is somebody else's.
    """
    started = perf_counter()
    check_name(name)
    path = workspace.copy_path(name)
    with locked(workspace, name):
        summary = copies.read_summary(path)
        if summary is None:
            raise StoreError(
                f"There is no copy of collection {name!r} in {workspace.copies_dir}.",
                remedy="Index its source again.",
            )
        rows = {row.chunk.id: row for row in copies.read_copy(path)}
        step = counter(progress, len(rows))
        try:
            store = workspace.versioned_store()
            store.check_ours(name)
            _fill(store, name, rows, rows.keys(), summary.embedder, rules or {}, step, anew=True)
        except StoreError as error:
            if error.action != "rebuild":
                raise
            # A store that fails even here is not repaired by what its own errors advise.
            where = "the data of the Chroma server" if workspace.server else workspace.chroma_dir
            raise StoreError(
                error.message,
                remedy=f"Move {where} away, which deletes nothing. Then rebuild every collection "
                f"that has a copy: {', '.join(workspace.copied())}.",
                action="rebuild",
            ) from error
    seconds = perf_counter() - started
    return IndexReport(collection=name, total=len(rows), written=len(rows), seconds=seconds)


def _changed(
    name: str, given: Mapping[str, Record], before: Mapping[str, str], embedder: Embedder
) -> tuple[list[Record], IndexReport]:
    """The records that are not there as they are, by the fingerprints of what was `before`, and
    what indexing them does."""
    fresh = [record for i, record in given.items() if before.get(i) != record.fingerprint]
    return fresh, IndexReport(
        collection=name,
        total=len(before.keys() | given.keys()),
        added=sum(1 for record in fresh if record.chunk.id not in before),
        changed=sum(1 for record in fresh if record.chunk.id in before),
        unchanged=len(given) - len(fresh),
        not_in_source=len(before.keys() - given.keys()),
        warnings=_warnings(given.values(), getattr(embedder, "reads", 0)),
    )


def counter(progress: Progress | None, total: int) -> Step:
    """Counts embedding and writing as one progress. A stop is raised by it, so call it only after
    the results are safe."""
    done = 0

    def add(steps: int) -> None:
        nonlocal done
        done += steps
        if progress is not None:
            progress(done, total)

    return add


def _unique(records: Iterable[Record]) -> dict[str, Record]:
    """The records by id. Raises InputError if two share one, and if there is none."""
    found: dict[str, Record] = {}
    for record in records:
        twin = found.setdefault(record.chunk.id, record)
        if twin is not record:
            raise InputError(
                f"{record.place}: the id {record.chunk.id!r} was already used in {twin.place}.",
                remedy="Give every record an id of its own.",
            )
    if not found:
        raise InputError("The source holds no records.", remedy="Name another source.")
    return found


def _warnings(records: Collection[Record], reads: int) -> tuple[str, ...]:
    warnings = [warning for record in records for warning in record.warnings]
    # None is named, because everybody who may index reads this.
    long = [record for record in records if reads and len(record.chunk.passage) > reads]
    if long:
        warnings.append(
            f"The embedding model reads about {reads:,} characters of a chunk, so it misses the "
            f"end of {len(long):,} in {len(records):,}. Cut them smaller, or choose a model that "
            "reads more."
        )
    return tuple(warnings)


@contextmanager
def locked(workspace: Workspace, name: str) -> Iterator[None]:
    """Lock the collection against other indexing and changes. Raises WorkspaceLocked."""
    if (database := workspace.pg()) is not None:
        with database.only_one(name):
            yield
        return
    lock = lock_file(workspace.copies_dir / f".{name}.lock")
    if not taken(lock):
        raise WorkspaceLocked(
            f"Collection {name!r} is being indexed already.", remedy="Wait until that is done."
        )
    try:
        yield
    finally:
        lock.release()


def _check_target(
    store: VersionedStore[Any], name: str, old: copies.CopySummary | None, embedder: Embedder
) -> None:
    check_embedder(name, old.embedder if old else "", embedder.name)
    try:
        count = store.collection(name).count()
    except CollectionMissing:
        return
    if old is None and count:
        raise StoreError(
            f"Collection {name!r} exists, but this workspace did not index it.",
            remedy="Choose another name, or replace it.",
            action="replace",
        )


def _is_whole(store: VersionedStore[Any], name: str, copy: copies.CopySummary) -> bool:
    """Whether the collection holds what the copy holds, and all of it can be found."""
    try:
        collection = store.collection(name)
        return (
            collection.content == copy.content
            and collection.count() == len(copy.fingerprints)
            and not collection.incomplete
        )
    except CollectionMissing:
        return False


def _withhold(
    store: VersionedStore[Any], name: str, path: Path, given: Mapping[str, Record]
) -> None:
    """If `given` changes who may see a chunk, make sure that neither the collection nor one
    restored from the copy returns it under the old clearance."""
    copies.change_clearances(path, _bars(given))
    with suppress(CollectionMissing):
        collection = store.collection(name)
        if not collection.withheld and any(
            _for_whom(chunk) != _for_whom(given[i].chunk)
            for i, chunk in collection.entries().items()
            if i in given
        ):
            collection.withhold()


def _bars(given: Mapping[str, Record]) -> dict[str, copies.Bars]:
    """Who may see each chunk, by its record."""
    return {i: (*_for_whom(r.chunk), r.clearance_as_given) for i, r in given.items()}


def _for_whom(chunk: Chunk) -> tuple[int | None, str | None]:
    return chunk.clearance, chunk.department


def _unembedded(fresh: Iterable[Record], vectors: Mapping[str, Vectors]) -> list[str]:
    """The passages that have no vector yet."""
    waiting = {r.chunk.passage for r in fresh if _key(r.chunk) not in vectors}
    # Texts of similar length waste the least padding; longest first, so that the time left falls.
    return sorted(waiting, key=lambda text: (-len(text), text))


def _embed(
    texts: Sequence[str],
    embedder: Embedder,
    save: Callable[[Sequence[str], Vectors], None],
    step: Step,
) -> dict[str, Vectors]:
    """The vectors of these texts by their keys; every part is saved before the next. An embedder
    may say how many it embeds `at_once`."""
    vectors: dict[str, Vectors] = {}
    step(0)
    for part in pages(texts, getattr(embedder, "at_once", EMBED_PART)):
        keys = [copies.text_key(text) for text in part]
        made = embedder.embed(part)
        save(keys, made)
        vectors.update(zip(keys, made, strict=True))
        step(len(part))
    return vectors


def _fill(
    store: VersionedStore[Any],
    name: str,
    rows: Mapping[str, StoredRow],
    changed: Collection[str],
    embedder: str,
    rules: Rules,
    step: Step,
    *,
    anew: bool,
) -> None:
    if anew:
        collection = store.renew(name, embedder=embedder)
    else:
        collection = store.collection(name)
        collection.set_content("")
    waiting = [with_rule(rows[i], rules) for i in changed]
    for part in pages(waiting, WRITE_PART):
        collection.write(part)
        step(len(part))
    prints = {i: row.fingerprint for i, row in rows.items()}
    collection.set_content(copies.content_fingerprint(embedder, prints))


def _row(record: Record, vectors: Mapping[str, Vectors]) -> StoredRow:
    """What is stored of a record, with the vector of its passage."""
    vector = vectors[_key(record.chunk)]
    return StoredRow(record.chunk, vector, record.clearance_as_given, record.fingerprint)


def _key(chunk: Chunk) -> str:
    return copies.text_key(chunk.passage)
