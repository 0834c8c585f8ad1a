"""Gather: one wide query to the store. Only this module and `engine.complete` have effects.

Source: docs/design.md#pool, with the measurements behind "wide pool, doubled, then `ids=`".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from time import perf_counter

from ragfilter.engine.complete import references_of, settle
from ragfilter.engine.replay import as_user, replay, retrieved, scan_rules
from ragfilter.engine.search import Backends, Search, by_distance, matcher
from ragfilter.errors import InputError
from ragfilter.layers import query_must
from ragfilter.layers.base import LayerInput, LayerSpec
from ragfilter.layers.clearance import is_clean, viewer, with_clearance
from ragfilter.layers.registry import LAYERS
from ragfilter.model import Chunk, Entity, Hit, Pool, PoolResult, User
from ragfilter.protocols import Catalogue, Collection, Vectors
from ragfilter.rules.match import Scan, rule_book
from ragfilter.settings.schema import Settings, field
from ragfilter.text.comparison import alternatives, detect, title_is
from ragfilter.text.normalise import whole

log = logging.getLogger(__name__)

CLEAN_TARGET = 50
"""Clean chunks gathered at least, so that no slider within its range runs out of the pool."""
PER_ENTITY = 50
PINNED_REFERENCES = int(field("query_must.references").ceiling or 0)
SHOWN_FILES = 10
SPARE = 3
"""Over-fetch factor when rules or clearance may drop hits."""
WIDEST = 16
"""A pool that still runs dry at this many times its first size goes to `ids=`."""


def run(
    query: str,
    settings: Settings,
    backends: Backends,
    user: User | None = None,
    *,
    wide: bool = False,
) -> PoolResult:
    """Gather and replay until nothing is needed: the one call of the library and the command line.

    `user` is who asks; without one, the settings decide (`clearance.viewer`). Only what the enabled
    layers can use is gathered; with `wide`, everything that any settings could use and show. Raises
    InputError for an empty query and for a file pattern that matches nothing, StoreError, and
    ModelError (from the embedder). If the collection is incomplete or damaged, message and status
    say so, unless the status is `insufficient_clearance`.
    """
    started = perf_counter()
    pool, scan = _gather(query, settings, backends, user, wide=wide)
    result = settle(
        pool, settings, backends, user, replay=partial(replay, scan=scan), push_down=not wide
    )
    _log(result, (perf_counter() - started) * 1000)
    return result


def _log(result: PoolResult, ms: float) -> None:
    """One line a query, and its figures as `fields` of the record; of what the user sees."""
    if not log.isEnabledFor(logging.INFO):
        return
    retrieved, kept = as_user(result).retrieved, len(result.kept)
    reduction = 1 - kept / retrieved if retrieved else 0.0
    waiting = {need.layer for need in result.needs}
    fell = [t.layer for t in result.traces if t.failed or t.layer in waiting]
    fields = {
        "query": result.query,
        "collection": result.pool.collection,
        "status": result.status,
        "retrieved": retrieved,
        "kept": kept,
        "reduction": round(reduction, 4),
        "ms": round(ms, 1),
        "fallback": fell,
    }
    log.info(
        "query %r: retrieved=%d, kept=%d, reduction=%.1f%%, ms=%.0f, fallback=%s",
        result.query, retrieved, kept, 100 * reduction, ms, ", ".join(fell) or "none",
        extra={"fields": fields},
    )  # fmt: skip


def gather(
    query: str,
    settings: Settings,
    backends: Backends,
    user: User | None = None,
    *,
    wide: bool = True,
) -> Pool:
    """A pool of hits, and of what each side of a comparison found: wide enough for any settings, or
    only for these.

    Raises like `run`.
    """
    return _gather(query, settings, backends, user, wide=wide)[0]


def _gather(
    query: str,
    settings: Settings,
    backends: Backends,
    user: User | None,
    *,
    wide: bool,
) -> tuple[Pool, Scan | None]:
    """The pool, and the query held against every rule of the collection; None if that was not
    needed."""
    query = whole(query)
    if not query.strip():
        raise InputError("The query is empty.", remedy="Pass a question.")
    started = perf_counter()
    backends = backends.at_once()
    collection = backends.collection
    catalogue = _catalogue(collection)
    incomplete = backends.incomplete
    if incomplete:
        log.warning(incomplete)
    user = viewer(user, settings)
    settings = with_clearance(settings, user)
    only = None if catalogue is None else _only_sources(settings, user, collection.name, catalogue)
    compared = detect(query) if wide or settings.entities.enabled else ()
    names = compared or (alternatives(query) if wide or settings.entities.enabled else ())
    vectors = backends.embedder.embed([query, *names])
    learned: dict[str, Chunk] | None = {} if catalogue is None else None
    known = catalogue if learned is None else learned
    assert known is not None
    pushed = catalogue is None and not user.unrestricted
    share = 1.0 if catalogue is None else catalogue.share(user)
    search = Search(collection, known, user, only, pushed=pushed, learned=learned, share=share)
    # What reads the whole pool must get the page's, or it would decide otherwise.
    far = wide or _any_reads_all(_on(settings))
    reach = _reach_of(settings, user, catalogue, wide=far)
    scan = None
    if catalogue is not None and (far or settings.query_must.enabled):
        scan = rule_book(catalogue.rules).scan(query)
    passes = _clean_test(settings, user, known, scan or rule_book(()).scan(query), wide=far)
    pairs, exact, calls = _search(vectors[0], reach, search, passes)
    bare = search.pushed and not pairs
    if bare:
        # Nothing accessible: what there is is asked for without texts, to say which level it takes.
        search = replace(search, pushed=False)
        pairs, exact, calls = _search(vectors[0], reach, search, passes)
    found_by = {i: "rules" for i, _ in exact}
    pairs += exact
    entities: list[Entity] = []
    for name, vector in zip(names, vectors[1:], strict=True):
        found = search.nearest(vector, PER_ENTITY if wide else settings.entities.per_entity)
        entities.append(Entity(name, tuple(i for i, _ in found)))
        calls += 1
    if not compared:
        entities = _known(entities, collection, user)
    distances = dict(pairs)
    extra = list(dict.fromkeys(i for e in entities for i in e.ids if i not in distances))
    found_by |= {i: f"entity:{e.name}" for e in reversed(entities) for i in e.ids if i in extra}
    if extra:
        pairs += search.among(vectors[0], len(extra), extra)
        calls += any(map(search.seen, extra))
    plain = frozenset(distances)
    if collection.space == "rank":
        log.warning("%s gives no distances: what compares them is left out", collection.name)
        pairs = [(i, float(place)) for place, (i, _) in enumerate(pairs, start=1)]
    else:
        pairs.sort(key=by_distance)
    named = {i for entity in entities for i in entity.ids}
    if bare:
        bares = ((i, known[i]) for i, _ in pairs if i in known)
        chunks = {i: replace(chunk, text="", title="", loaded=False) for i, chunk in bares}
    else:
        chunks = _payload(pairs, named, reach, search, passes, wide=wide)
    hits = tuple(
        Hit(chunks[i], d, rank, found_by.get(i, "query"))
        for rank, (i, d) in enumerate(pairs, start=1)
        if i in chunks
    )
    pool = Pool(
        query=query,
        collection=collection.name,
        space=collection.space,
        hits=hits,
        entities=tuple(entities),
        references=references_of((hit.chunk for hit in hits), collection),
        embedder=backends.embedder.name,
        source_pattern=settings.retrieval.source_pattern,
        complete=_is_whole(plain, catalogue, search),
        incomplete=incomplete,
        queries=calls,
    )
    pool = _with_pinned_texts(pool, settings, collection, user, scan, wide=wide)
    return replace(pool, gather_ms=(perf_counter() - started) * 1000), scan


def _is_whole(ids: frozenset[str], catalogue: Catalogue | None, search: Search) -> bool:
    """Whether these are all chunks that the user may see."""
    if catalogue is None:
        return search.user.unrestricted and len(ids) >= search.collection.count()
    return sum(map(search.seen, ids)) >= catalogue.visible(search.user)


def _with_pinned_texts(
    pool: Pool,
    settings: Settings,
    collection: Collection,
    user: User,
    scan: Scan | None,
    *,
    wide: bool,
) -> Pool:
    """The pool with the texts of what rules pin, however far down it is."""
    if wide:
        most = {"enabled": True, "pin": True, "references": PINNED_REFERENCES}
        settings = settings.with_values({f"query_must.{key}": value for key, value in most.items()})
    if not (settings.query_must.enabled and settings.query_must.pin):
        return pool
    inputs = LayerInput(settings, pool, scan or scan_rules(pool), user, explain=False)
    hits = tuple(hit for hit in retrieved(pool, settings, user) if user.sees(hit.chunk))
    pinned = query_must.apply(hits, inputs).pinned
    lacking = [hit.id for hit in hits if hit.id in pinned and not hit.chunk.loaded]
    whole = collection.chunks(lacking)
    if not whole:
        return pool
    return replace(
        pool,
        hits=tuple(replace(h, chunk=whole[h.id]) if h.id in whole else h for h in pool.hits),
    )


def _catalogue(collection: Collection) -> Catalogue | None:
    known = collection.catalogue()
    return known if known is None or isinstance(known, Catalogue) else Catalogue(known)


def _known(entities: list[Entity], collection: Collection, user: User) -> list[Entity]:
    """The sides of a bare "X or Y", where the collection holds a chunk titled like each that the
    user may see; none otherwise."""
    chunks = collection.chunks(list({i for entity in entities for i in entity.ids}))
    for entity in entities:
        found = (chunks[i] for i in entity.ids if i in chunks)
        if not any(title_is(entity.name, chunk.title) and user.sees(chunk) for chunk in found):
            return []
    return entities


@dataclass(frozen=True, slots=True)
class SearchReach:
    """How far a search goes: until `wanted` clean chunks are found, `first` hits at first and
    `most` at last; `shown` of what is found are fetched whole, clean or not."""

    wanted: int
    first: int
    most: int
    shown: int


def _reach_of(
    settings: Settings, user: User, catalogue: Catalogue | None, *, wide: bool
) -> SearchReach:
    pool_size = settings.retrieval.pool_size
    most = pool_size * WIDEST
    if wide:
        wanted = target(settings)
        width = max(pool_size, wanted)
        return SearchReach(wanted, width, most, shown=most if _any_reads_all(LAYERS) else width)
    wanted = used(settings)
    rules = settings.query_must.enabled and (catalogue is None or bool(catalogue.rules))
    filtered = rules or not user.unrestricted or bool(settings.retrieval.source_pattern.strip())
    first = SPARE * wanted if filtered else wanted
    if any(layer.reads_pool(settings) for layer in _on(settings)):
        first = max(first, pool_size)
    return SearchReach(wanted, first, max(pool_size, first) * WIDEST, wanted)


def _on(settings: Settings) -> list[LayerSpec]:
    return [layer for layer in LAYERS if layer.enabled(settings)]


def _any_reads_all(layers: Iterable[LayerSpec]) -> bool:
    return any(layer.candidates is None for layer in layers)


def _most_of(layers: Iterable[LayerSpec], settings: Settings) -> int:
    return max((layer.candidates(settings) for layer in layers if layer.candidates), default=0)


def used(settings: Settings) -> int:
    """The number of clean chunks that the enabled layers can use; the whole pool if one of them
    may.
    """
    if _any_reads_all(_on(settings)):
        return settings.retrieval.pool_size * WIDEST
    return _compared(settings) + max(settings.retrieval.k, _most_of(_on(settings), settings))


def target(settings: Settings) -> int:
    """The number of clean chunks that the settings could need from one pool."""
    return _compared(settings) + max(CLEAN_TARGET, settings.retrieval.k, _most_of(LAYERS, settings))


def _compared(settings: Settings) -> int:
    """How many chunks may go since their texts are like others', all of which must be replaced."""
    return sum(layer.compares for layer in _on(settings))


def _only_sources(
    settings: Settings, user: User, name: str, catalogue: Catalogue
) -> tuple[str, ...] | None:
    """The sources that the file pattern admits; None if it admits all. Raises InputError.

    If a pattern admits only hidden files, the error is the same as if it admits nothing. Otherwise
    patterns would reveal hidden names, letter by letter.
    """
    pattern = settings.retrieval.source_pattern
    if not pattern.strip():
        return None
    fits = matcher(pattern)
    seen = {chunk.source for chunk in catalogue.audiences if user.sees(chunk)}
    if catalogue and not any(map(fits, seen)):
        raise InputError(
            f"No file of the collection {name!r} matches {pattern!r}.", remedy=_files_there(seen)
        )
    there = dict.fromkeys(chunk.source for chunk in catalogue.audiences)
    return tuple(source for source in there if fits(source))


def _files_there(backends: Iterable[str]) -> str:
    """The names of the first few files."""
    names = sorted(filter(None, backends))
    if not names:
        return "Its chunks have no file names; leave the pattern empty."
    more = f" and {len(names) - SHOWN_FILES} more" if len(names) > SHOWN_FILES else ""
    return f"There are: {', '.join(names[:SHOWN_FILES])}{more}."


def _clean_test(
    settings: Settings, user: User, known: Mapping[str, Chunk], scan: Scan, *, wide: bool
) -> Callable[[str], bool]:
    fits = matcher(settings.retrieval.source_pattern)
    if wide:
        # Rules count also while they are off, so that switching them on asks the store for nothing.
        on = settings.query_must.model_copy(update={"enabled": True})
        settings = settings.model_copy(update={"query_must": on})

    def passes(chunk_id: str) -> bool:
        chunk = known.get(chunk_id)
        return chunk is not None and fits(chunk.source) and is_clean(chunk, settings, scan, user)

    return passes


def _search(
    vector: Vectors, reach: SearchReach, search: Search, passes: Callable[[str], bool]
) -> tuple[list[tuple[str, float]], list[tuple[str, float]], int]:
    """The query's own hits, doubled while clean ones run short; then what one exact `ids=` query
    over the chunks whose rules hold adds to them; and the number of searches."""
    wanted, n = reach.wanted, reach.first
    calls = 0
    while True:
        pairs = search.nearest(vector, n)
        calls += 1
        clean = sum(passes(i) for i, _ in pairs)
        if clean >= wanted or n >= reach.most or sum(search.seen(i) for i, _ in pairs) < n:
            break
        n *= 2
    exact: list[tuple[str, float]] = []
    if clean < wanted and search.learned is None:
        ids = [i for i in search.known if passes(i)]
        if len(ids) > clean:
            known = {i for i, _ in pairs}
            found = search.among(vector, min(wanted, len(ids)), ids)
            exact = [pair for pair in found if pair[0] not in known]
            calls += 1
    return pairs, exact, calls


def _payload(
    pairs: Sequence[tuple[str, float]],
    named: set[str],
    reach: SearchReach,
    search: Search,
    passes: Callable[[str], bool],
    *,
    wide: bool,
) -> dict[str, Chunk]:
    """Whole chunks for what can be shown or kept; the catalogue's bare ones for the rest."""
    seen: list[str] = []
    hidden: list[str] = []
    for i, _ in pairs:
        (seen if search.seen(i) else hidden).append(i)
    if not wide:
        # What is hidden is for an operator's eyes, on the page and in reports alone.
        named, hidden = named.intersection(seen), []
    shown = named | {*seen[: reach.shown]} | {*hidden[: reach.shown]}
    shown |= {*islice(filter(passes, seen), reach.wanted)}
    whole = {i: c for i in shown if (c := search.known.get(i)) is not None and c.loaded}
    whole |= search.collection.chunks([i for i, _ in pairs if i in shown and i not in whole])
    there = ((i, whole.get(i) or search.known.get(i)) for i, _ in pairs)
    return {i: chunk for i, chunk in there if chunk is not None}
