"""Index records into a collection, and rebuild one from our own copy.

Source: docs/design.md#chroma. The order matters: an interruption at any point leaves either the old
collection or one marked as incomplete, which the next run repairs without the model.

1. If clearances change, put them into the copy, and withhold the collection until the end, so that
   no chunk is returned under its old clearance, whatever happens.
2. Embed new and changed chunks; save them part by part, so that the next run can continue.
3. Replace the copy.
4. Mark the collection incomplete, write, and mark it complete with the fingerprint of the copy.

In PostgreSQL, clearances change at once, and embedded chunks are written in one transaction at the
end. Until then, questions are answered from the old collection.

Indexing adds and replaces; only `reset` removes chunks that the source no longer has. The copy holds the content of the
sources. Edits of rules are in the journal: pass them as `rules` (chunk id to rule text, None if the rule was removed),
and they override the rules written to the store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ragfilter.errors import CollectionMissing, InputError, StoreError, WorkspaceLocked
from ragfilter.ingest.records import Record, each_id_once
from ragfilter.model import Chunk
from ragfilter.protocols import Embedder, Progress, Vectors
from ragfilter.stores.base import IndexReport, check_embedder, check_name, pages
from ragfilter.stores.caches import UNFINISHED, VectorCache
from ragfilter.stores.copies import Bars, Copies, CopySummary, StoredRow, content_fingerprint, with_rule
from ragfilter.stores.workspace_files import Workspace, lock_file, take_lock

if TYPE_CHECKING:
    from ragfilter.stores.base import VersionedCollection, VersionedStore
    from ragfilter.stores.postgres.store import PgStore

Rules = Mapping[str, str | None]
Step = Callable[[int], None]
EMBED_PART = 64
"""Number of texts embedded between saves, lost if the process is killed; a batch of the models."""
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
    """Index `records` into the collection `name`. Unchanged chunks are not touched. `rules` returns the edited rules.

    `progress` counts embedded texts and written chunks together. If the embedder says how many characters of a chunk it
    `reads`, the report warns of longer chunks. Raises InputError for a bad name or bad records, before any change;
    StoreError; ModelError; and WorkspaceLocked if the same collection is being indexed."""
    started = perf_counter()
    check_name(name)
    by_id, contents = {record.chunk.id: record for record in each_id_once(records)}, workspace.contents
    if not by_id:
        raise InputError("The source holds no records.", remedy="Name another source.")
    indexing = _Indexing(name, by_id, embedder, reset, rules, progress, workspace.vectors)
    with locked(workspace, name):
        report = indexing.in_folder(workspace, contents) if isinstance(contents, Copies) else indexing.in_pg(contents)
        if report.written:
            workspace.vectors.forget(f"{UNFINISHED}{name}")
    return replace(report, seconds=perf_counter() - started)


@dataclass(frozen=True, slots=True)
class _Indexing:
    """The arguments of `index`, with the records by id."""

    name: str
    records: Mapping[str, Record]
    embedder: Embedder
    reset: bool
    rules: Callable[[], Rules]
    progress: Progress | None
    cached: VectorCache

    def in_folder(self, workspace: Workspace, copies: Copies) -> IndexReport:
        name, model, store = self.name, self.embedder.name, workspace.versioned_store()
        store.check_ours(name)
        old = CopySummary() if self.reset else copies.summary(name)
        if not self.reset:
            self._check_target(store, old)
        fresh, report = self._changes(old.fingerprints)
        whole = _is_whole(store, name, old)
        if whole and not fresh:
            return report
        copies.change_clearances(name, self._bars())
        self._withhold(store)
        rows = {row.chunk.id: row for row in ([] if self.reset else copies.read(name))}
        vectors = {row.chunk.passage: row.vector for row in rows.values()}
        embedded, step = self._embed(fresh, vectors, len(fresh) if whole else report.total)
        rows |= {record.chunk.id: _row(record, vectors) for record in fresh}
        if fresh:
            copies.replace(name, list(rows.values()), embedder=model)
        # In the order of the records, which is also the order of exported rules.
        changed = [record.chunk.id for record in fresh] if whole else list(rows)
        rules = self.rules()
        collection = store.collection(name) if whole else store.recreate(name, embedder=model)
        _fill(collection, rows, changed, rules, step)
        return replace(report, embedded=embedded, written=len(changed))

    def in_pg(self, database: PgStore) -> IndexReport:
        name, model = self.name, self.embedder.name
        old = database.summary(name)
        if not self.reset:
            check_embedder(name, old.embedder, model)
        before = {} if self.reset else old.fingerprints
        fresh, report = self._changes(before)
        if not fresh:
            return report
        vectors: dict[str, Vectors] = {}
        if old.fingerprints:
            database.change_clearances(name, self._bars())
            if old.embedder == model:
                vectors |= database.vectors_of(name, [record.chunk.passage for record in fresh])
        embedded, step = self._embed(fresh, vectors, len(fresh))
        prints = {**before, **{i: record.fingerprint for i, record in self.records.items()}}
        database.put(
            name,
            [_row(record, vectors) for record in fresh],
            embedder=model,
            content=content_fingerprint(model, prints),
            reset=self.reset,
            rules=self.rules,
            progress=step,
        )
        return replace(report, embedded=embedded, written=len(fresh))

    def _check_target(self, store: VersionedStore[Any], old: CopySummary) -> None:
        check_embedder(self.name, old.embedder, self.embedder.name)
        with suppress(CollectionMissing):
            if not old.fingerprints and store.collection(self.name).count():
                message = f"Collection {self.name!r} exists, but this workspace did not index it."
                raise StoreError(message, remedy="Choose another name, or replace it.", action="replace")

    def _changes(self, before: Mapping[str, str]) -> tuple[list[Record], IndexReport]:
        """The new and changed records, judged by the fingerprints `before`, and a report of their indexing."""
        records = self.records
        fresh = [each for i, each in records.items() if before.get(i) != each.fingerprint]
        changed = sum(record.chunk.id in before for record in fresh)
        return fresh, IndexReport(
            collection=self.name,
            total=len(before.keys() | records.keys()),
            added=len(fresh) - changed,
            changed=changed,
            unchanged=len(records) - len(fresh),
            not_in_source=len(before.keys() - records.keys()),
            warnings=_warnings(records.values(), getattr(self.embedder, "reads", 0)),
        )

    def _bars(self) -> dict[str, Bars]:
        """The clearance and department of each chunk, from its record."""
        return {i: (*_bar(r.chunk), r.clearance_as_given) for i, r in self.records.items()}

    def _withhold(self, store: VersionedStore[Any]) -> None:
        """Withhold the collection if the records change who can see a chunk."""
        with suppress(CollectionMissing):
            collection = store.collection(self.name)
            if not collection.withheld and any(
                _bar(chunk) != _bar(self.records[i].chunk)
                for i, chunk in collection.entries().items()
                if i in self.records
            ):
                collection.withhold()

    def _embed(self, fresh: Iterable[Record], vectors: dict[str, Vectors], written: int) -> tuple[int, Step]:
        """Add the missing vectors to `vectors`, by passage. Saves each part before embedding the next; an embedder can
        say how many texts it embeds `at_once`. Returns the number of embedded texts, and a counter for the chunks
        `written` afterwards."""
        model, unfinished = self.embedder.name, f"{UNFINISHED}{self.name}"
        lacking = {record.chunk.passage for record in fresh} - vectors.keys()
        vectors |= self.cached.find(model, list(lacking), collection=unfinished)
        # Similar lengths in a batch waste the least padding. The longest first, so that the estimated time left falls.
        texts = sorted(lacking - vectors.keys(), key=lambda text: (-len(text), text))
        step = counter(self.progress, len(texts) + written)
        step(0)
        for part in pages(texts, getattr(self.embedder, "at_once", EMBED_PART)):
            embedded = self.embedder.embed(part)
            self.cached.put(unfinished, model, part, embedded)
            vectors.update(zip(part, embedded, strict=True))
            step(len(part))
        return len(texts), step


def rebuild(
    name: str, *, workspace: Workspace, rules: Rules | None = None, progress: Progress | None = None
) -> IndexReport:
    """Rewrite the collection `name` from our own copy, without the model. Raises StoreError if the copy is missing or
    damaged, or if the collection is foreign."""
    started = perf_counter()
    check_name(name)
    copies = Copies(workspace.copies_dir)
    with locked(workspace, name):
        summary = copies.summary(name)
        if not summary.fingerprints:
            message = f"There is no copy of collection {name!r} in {workspace.copies_dir}."
            raise StoreError(message, remedy="Index its source again.")
        rows = {row.chunk.id: row for row in copies.read(name)}
        step = counter(progress, len(rows))
        try:
            store = workspace.versioned_store()
            store.check_ours(name)
            collection = store.recreate(name, embedder=summary.embedder)
            _fill(collection, rows, rows.keys(), rules or {}, step)
        except StoreError as error:
            if error.action != "rebuild":
                raise
            # If the store fails even here, the remedies of its own errors do not help.
            where = "the data of the Chroma server" if workspace.server else workspace.chroma_dir
            raise StoreError(
                error.message,
                remedy=f"Move {where} away, which deletes nothing. Then rebuild every collection "
                f"that has a copy: {', '.join(workspace.copied())}.",
                action="rebuild",
            ) from error
    seconds = perf_counter() - started
    return IndexReport(collection=name, total=len(rows), written=len(rows), seconds=seconds)


def counter(progress: Progress | None, total: int) -> Step:
    """Make a counter of embedding and writing together. It raises if the user stops, so call it only after saving."""
    done = 0

    def add(steps: int) -> None:
        nonlocal done
        done += steps
        if progress is not None:
            progress(done, total)

    return add


def _warnings(records: Collection[Record], reads: int) -> tuple[str, ...]:
    warnings = [warning for record in records for warning in record.warnings]
    # The warning names no chunk, because everybody who can index reads it.
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
    contents = workspace.contents
    if not isinstance(contents, Copies):
        with contents.only_one(name):
            yield
        return
    lock = lock_file(workspace.copies_dir / f".{name}.lock")
    if not take_lock(lock):
        raise WorkspaceLocked(f"Collection {name!r} is already being indexed.", remedy="Wait until that is done.")
    try:
        yield
    finally:
        lock.release()


def _is_whole(store: VersionedStore[Any], name: str, copy: CopySummary) -> bool:
    """Whether the collection has the same content as the copy, and all of it can be found."""
    try:
        collection = store.collection(name)
        return (
            collection.content == copy.content
            and collection.count() == len(copy.fingerprints)
            and not collection.incomplete
        )
    except CollectionMissing:
        return False


def _bar(chunk: Chunk) -> tuple[int | None, str | None]:
    return chunk.clearance, chunk.department


def _fill(
    collection: VersionedCollection, rows: Mapping[str, StoredRow], changed: Collection[str], rules: Rules, step: Step
) -> None:
    """Write the changed rows, after which the collection holds all rows."""
    collection.set_content("")
    for part in pages([with_rule(rows[i], rules) for i in changed], WRITE_PART):
        collection.write(part)
        step(len(part))
    prints = {i: row.fingerprint for i, row in rows.items()}
    collection.set_content(content_fingerprint(collection.embedder, prints))


def _row(record: Record, vectors: Mapping[str, Vectors]) -> StoredRow:
    """The row to store for a record, with the vector of its passage."""
    return StoredRow(record.chunk, vectors[record.chunk.passage], record.clearance_as_given, record.fingerprint)
