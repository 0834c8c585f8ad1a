"""Gather a pool from the store, and with `run` decide over it, too.

Source: docs/design.md#pool, with the measurements behind "wide pool, doubled, then `ids=`".
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from time import perf_counter

from ragfilter.basics.threads import check_stopped
from ragfilter.engine.complete import complete_all, references_of
from ragfilter.engine.replay import entering_hits, replay, replay_as_user, scan_rules
from ragfilter.engine.search import LEXICAL_DEPTH, Backends, Pairs, Search, by_distance, find_words, fuse, matcher
from ragfilter.errors import InputError
from ragfilter.layers import query_must
from ragfilter.layers.base import LayerInput, LayerSpec, nearness
from ragfilter.layers.clearance import effective_user, is_clean, visible_pool, with_clearance
from ragfilter.layers.registry import LAYERS
from ragfilter.model import Chunk, Entity, Hit, Pool, PoolResult, Score, User
from ragfilter.protocols import Catalogue, Collection, DistinctRules, Vectors
from ragfilter.rules.match import Scan, rule_book
from ragfilter.settings.schema import Settings, field
from ragfilter.text.comparison import alternatives, detect, title_is
from ragfilter.text.normalise import whole

log = logging.getLogger(__name__)

CLEAN_TARGET = 50
"""Minimum number of clean chunks to gather, so that no slider asks for more than the pool has."""
PER_ENTITY = 50
PINNED_REFERENCES = int(field("query_must.references").ceiling or 0)
SHOWN_FILES = 10
SPARE = 3
"""Over-fetch factor if rules or clearance may drop hits."""
WIDEST = 16
"""If the pool still lacks clean hits at this many times its first size, search with `ids=`."""


def run(
    query: str, settings: Settings, backends: Backends, user: User | None = None, *, wide: bool = False
) -> PoolResult:
    """Gather and replay until no needs are left, for the command line, `OpenCollection.search` and measurements.

    Without a `user`, the settings decide who asks (`clearance.viewer`). Gathers only what the enabled layers can use
    or, with `wide`, everything that any settings could use and show. Raises InputError for an empty query or a file
    pattern without a match, StoreError, and ModelError (from the embedder). If the collection is incomplete or damaged,
    message and status say so, unless the status is `insufficient_clearance`.
    """
    started = perf_counter()
    pool, scan = _gather(query, settings, backends, user, wide=wide)
    result = complete_all(pool, settings, backends, user, replay=partial(replay, scan=scan), push_down=not wide)
    _log(result, (perf_counter() - started) * 1000)
    return result


def _log(result: PoolResult, ms: float) -> None:
    """Log one line per query, with figures in the record's `fields`, from what the user sees."""
    if not log.isEnabledFor(logging.INFO):
        return
    n_retrieved, n_kept = replay_as_user(result).retrieved, len(result.kept)
    reduction = 1 - n_kept / n_retrieved if n_retrieved else 0.0
    near = nearness(visible_pool(result.pool, result.user))
    fields = {
        "query": result.query,
        "collection": result.pool.collection,
        "status": result.status,
        "retrieved": n_retrieved,
        "kept": n_kept,
        "reduction": round(reduction, 4),
        "ms": round(ms, 1),
        "fallback": result.fallbacks,
        "nearness": None if near is None else round(near, 4),
    }
    log.info(
        "query %r: retrieved=%d, kept=%d, reduction=%.1f%%, ms=%.0f, fallback=%s",
        result.query,
        n_retrieved,
        n_kept,
        100 * reduction,
        ms,
        ", ".join(result.fallbacks) or "none",
        extra={"fields": fields},
    )


def gather(query: str, settings: Settings, backends: Backends, user: User | None = None, *, wide: bool = True) -> Pool:
    """Gather a pool of hits, including those for each side of a comparison: wide enough for any
    settings, or only for these.

    Raises the same errors as `run`.
    """
    return _gather(query, settings, backends, user, wide=wide)[0]


def _gather(
    query: str, settings: Settings, backends: Backends, user: User | None, *, wide: bool
) -> tuple[Pool, Scan | None]:
    """The pool, and the query matched with every rule of the collection (None if that was not needed)."""
    query = whole(query)
    if not query.strip():
        raise InputError("The query is empty.", remedy="Pass a question.")
    started = perf_counter()
    backends = backends.snapshot()
    collection, incomplete = backends.collection, backends.incomplete
    user = effective_user(user, settings)
    settings = with_clearance(settings, user)
    # A layer that reads the whole pool needs the same pool as on the page to decide the same.
    far = wide or _any_reads_all(_on(settings))

    # 1. Open the collection as this user, so that hidden chunks affect nothing below.
    catalogue = _catalogue(collection)
    if incomplete:
        # After the catalogue, which raises an error if the collection is closed.
        log.warning(incomplete)
    search = _open(collection, catalogue, settings, user)

    # 2. Embed the query and the sides of a comparison in one call: several calls take longer.
    sides, is_certain = _sides(query, settings, wide=wide)
    vectors = backends.embedder.embed([query, *sides])

    # 3. Search until enough chunks pass clearance and rules: only those reach the other layers.
    distinct = None
    if far or settings.query_must.enabled:
        distinct = _distinct_rules(collection, catalogue)
    scan = None if distinct is None else rule_book(distinct).scan(query)
    known_scan = scan or rule_book(()).scan(query)
    passes = _clean_test(settings, user, search.known, known_scan, wide=far)
    reach = _reach_of(settings, user, distinct, wide=far)

    def passing(clean: int) -> Pairs:
        """The nearest clean chunks, found by searching only those; none if only `clean` exist."""
        if catalogue is not None:
            ids = [i for i in catalogue if passes(i)]
            most = min(reach.wanted, len(ids))
            return search.among(vectors[0], most, ids) if most > clean else []
        if distinct is None:
            return []
        return search.by_rules(vectors[0], reach.wanted, tuple(filter(known_scan.passes, distinct)))

    findings = _search(vectors[0], reach, search, passes, passing)
    all_hidden = search.push_down and not findings.pairs
    if all_hidden:
        # Search again without clearance and without texts, to name the level that is needed.
        search = replace(search, push_down=False)
        findings = _search(vectors[0], reach, search, passes, passing)
    exhaustive = _is_whole([i for i, _ in findings.pairs], catalogue, search)

    scores: Mapping[str, Mapping[str, Score]] = {}
    if settings.retrieval.lexical and not all_hidden:
        scores = _add_words(findings, query, vectors[0], search)

    check_stopped()

    # 4. Search for each side alone, since the query's nearest chunks may all be about one side.
    width = PER_ENTITY if wide else settings.entities.per_entity
    entities = [
        Entity(name, tuple(i for i, _ in search.nearest(vector, width)))
        for name, vector in zip(sides, vectors[1:], strict=True)
    ]
    findings.searches += len(entities)
    if not is_certain:
        entities = _titled(entities, collection, user)
    # If several sides found a chunk, name the first.
    by_side = {i: f"entity:{each.name}" for each in reversed(entities) for i in each.ids}
    findings.add(by_side, vectors[0], search)

    # 5. Fetch the texts of chunks that can be shown or kept; those of a whole pool take too long.
    # Only an operator, who sees the wide pool, sees hidden chunks, or that all are hidden.
    visible_pairs = [pair for pair in findings.pairs if wide or search.seen(pair[0])]
    pairs = _in_order(visible_pairs or findings.pairs, collection)
    if all_hidden:
        known = ((i, search.known[i]) for i, _ in pairs if i in search.known)
        chunks = {i: replace(chunk, text="", title="", loaded=False) for i, chunk in known}
    else:
        named_ids = {i for entity in entities for i in entity.ids} | scores.keys()
        chunks = _payload(pairs, named_ids, reach, search, passes, wide=wide)
    hits = tuple(
        Hit(chunks[i], d, rank, findings.found_by.get(i, "query"), scores=scores.get(i, {}))
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
        lexical_user=user if settings.retrieval.lexical else None,
        source_pattern=settings.retrieval.source_pattern,
        exhaustive=exhaustive,
        incomplete=incomplete,
        queries=findings.searches,
    )
    pool = _with_pinned_texts(pool, settings, collection, user, scan, wide=wide)
    return replace(pool, gather_ms=(perf_counter() - started) * 1000), scan


def _open(collection: Collection, catalogue: Catalogue | None, settings: Settings, user: User) -> Search:
    """Open the collection as `user` sees it. Without a catalogue, clearance is pushed down to the
    store, and chunks become known as they are found."""
    if catalogue is None:
        learned: dict[str, Chunk] = {}
        push_down = not user.unrestricted
        return Search(collection, learned, user, push_down=push_down, learned=learned)
    files = _only_sources(settings, user, collection.name, catalogue)
    return Search(collection, catalogue, user, files, share=catalogue.share(user))


def _sides(query: str, settings: Settings, *, wide: bool) -> tuple[tuple[str, ...], bool]:
    """The sides of a comparison, and whether it certainly is one: "X or Y" may be one thing."""
    if not (wide or settings.entities.enabled):
        return (), True
    compared = detect(query)
    return compared or alternatives(query), bool(compared)


def _add_words(
    findings: SearchFindings, query: str, vector: Vectors, search: Search
) -> Mapping[str, Mapping[str, Score]]:
    """Add the chunks that only words found. Returns the lexical and fused scores by id."""
    by_words = find_words(query, search)
    own = [i for i, _ in findings.pairs if search.seen(i) and i not in findings.found_by]
    findings.add({i: "lexical" for i, _ in by_words}, vector, search)
    return fuse(own, by_words)


def _in_order(pairs: Pairs, collection: Collection) -> Pairs:
    """The pairs sorted by distance; if the store gives only an order, each with its place in it."""
    if collection.space == "rank":
        log.warning("%s gives no distances, so only its order counts", collection.name)
        return [(i, float(place)) for place, (i, _) in enumerate(pairs, start=1)]
    return sorted(pairs, key=by_distance)


def _is_whole(ids: Sequence[str], catalogue: Catalogue | None, search: Search) -> bool:
    """Whether these are all the chunks that the user can see."""
    if catalogue is None:
        return search.user.unrestricted and len(ids) >= search.collection.count()
    return sum(map(search.seen, ids)) >= catalogue.visible(search.user)


def _with_pinned_texts(
    pool: Pool, settings: Settings, collection: Collection, user: User, scan: Scan | None, *, wide: bool
) -> Pool:
    """Add the texts of the chunks that rules pin, however far down they are."""
    if wide:
        most = {"enabled": True, "pin": True, "references": PINNED_REFERENCES}
        settings = settings.with_values({f"query_must.{key}": value for key, value in most.items()})
    if not (settings.query_must.enabled and settings.query_must.pin):
        return pool
    inputs = LayerInput(settings, pool, scan or scan_rules(pool), user, explain=False)
    hits = tuple(hit for hit in entering_hits(pool, settings, user) if user.sees(hit.chunk))
    pinned = query_must.apply(hits, inputs).pinned
    lacking = [hit.id for hit in hits if hit.id in pinned and not hit.chunk.loaded]
    full = collection.chunks(lacking)
    if not full:
        return pool
    return replace(pool, hits=tuple(replace(h, chunk=full[h.id]) if h.id in full else h for h in pool.hits))


def _distinct_rules(collection: Collection, catalogue: Catalogue | None) -> tuple[str, ...] | None:
    """The collection's distinct rules; None if a rule is known only once its chunk is found."""
    if catalogue is not None:
        return catalogue.distinct_rules
    return collection.distinct_rules() if isinstance(collection, DistinctRules) else None


def _catalogue(collection: Collection) -> Catalogue | None:
    known = collection.catalogue()
    return known if known is None or isinstance(known, Catalogue) else Catalogue(known)


def _titled(entities: list[Entity], collection: Collection, user: User) -> list[Entity]:
    """The sides of a bare "X or Y", if the user can see a chunk titled like each of them; otherwise none."""
    chunks = collection.chunks(list({i for entity in entities for i in entity.ids}))
    for entity in entities:
        own = (chunks[i] for i in entity.ids if i in chunks)
        if not any(title_is(entity.name, chunk.title) and user.sees(chunk) for chunk in own):
            return []
    return entities


@dataclass(frozen=True, slots=True)
class SearchReach:
    """How far a search goes: it starts with `first` hits and stops at `wanted` clean chunks or
    `most` hits. `shown` of the hits are fetched with their texts, clean or not."""

    wanted: int
    first: int
    most: int
    shown: int


def _reach_of(settings: Settings, user: User, distinct: Sequence[str] | None, *, wide: bool) -> SearchReach:
    pool_size = settings.retrieval.pool_size
    most = pool_size * WIDEST
    fused = LEXICAL_DEPTH if settings.retrieval.lexical else 0
    if wide:
        wanted = wanted_hits(settings)
        width = max(pool_size, wanted, fused)
        return SearchReach(wanted, width, most, shown=most if _any_reads_all(LAYERS) else width)
    wanted = usable_hits(settings)
    ruled = settings.query_must.enabled and (distinct is None or bool(distinct))
    filtered = ruled or not user.unrestricted or bool(settings.retrieval.source_pattern.strip())
    first = max(fused, SPARE * wanted if filtered else wanted)
    if any(layer.reads_pool(settings) for layer in _on(settings)):
        first = max(first, pool_size)
    return SearchReach(wanted, first, max(pool_size, first) * WIDEST, wanted)


def _on(settings: Settings) -> list[LayerSpec]:
    return [layer for layer in LAYERS if layer.enabled(settings)]


def _any_reads_all(layers: Iterable[LayerSpec]) -> bool:
    return any(layer.candidates is None for layer in layers)


def _most_of(layers: Iterable[LayerSpec], settings: Settings) -> int:
    return max((layer.candidates(settings) for layer in layers if layer.candidates), default=0)


def usable_hits(settings: Settings) -> int:
    """The number of clean chunks that the enabled layers can use; the whole pool if one of them can use that."""
    if _any_reads_all(_on(settings)):
        return settings.retrieval.pool_size * WIDEST
    return _compared(settings) + max(settings.retrieval.k, _most_of(_on(settings), settings))


def wanted_hits(settings: Settings) -> int:
    """The most clean chunks that the settings could need from one pool."""
    return _compared(settings) + max(CLEAN_TARGET, settings.retrieval.k, _most_of(LAYERS, settings))


def _compared(settings: Settings) -> int:
    """How many dropped near-duplicates may need replacing."""
    return sum(layer.compares for layer in _on(settings))


def _only_sources(settings: Settings, user: User, name: str, catalogue: Catalogue) -> tuple[str, ...] | None:
    """The sources that match the file pattern; None if all do. Raises InputError.

    If a pattern matches only hidden files, the error is the same as if it matches none. Otherwise
    patterns would reveal hidden names, letter by letter.
    """
    pattern = settings.retrieval.source_pattern
    if not pattern.strip():
        return None
    fits = matcher(pattern)
    visible_sources = {chunk.source for chunk in catalogue.audiences if user.sees(chunk)}
    if catalogue and not any(map(fits, visible_sources)):
        raise InputError(
            f"No file in the collection {name!r} matches {pattern!r}.", remedy=_files_there(visible_sources)
        )
    sources = dict.fromkeys(chunk.source for chunk in catalogue.audiences)
    return tuple(source for source in sources if fits(source))


def _files_there(sources: Iterable[str]) -> str:
    """The names of the first few files."""
    names = sorted(filter(None, sources))
    if not names:
        return "Its chunks have no file names; leave the pattern empty."
    more = f" and {len(names) - SHOWN_FILES} more" if len(names) > SHOWN_FILES else ""
    return f"There are: {', '.join(names[:SHOWN_FILES])}{more}."


def _clean_test(
    settings: Settings, user: User, known: Mapping[str, Chunk], scan: Scan, *, wide: bool
) -> Callable[[str], bool]:
    fits = matcher(settings.retrieval.source_pattern)
    if wide:
        # Rules count even while they are off, so that switching them on needs no further search.
        on = settings.query_must.model_copy(update={"enabled": True})
        settings = settings.model_copy(update={"query_must": on})

    def passes(chunk_id: str) -> bool:
        chunk = known.get(chunk_id)
        return chunk is not None and fits(chunk.source) and is_clean(chunk, settings, scan, user)

    return passes


@dataclass(slots=True)
class SearchFindings:
    """The findings of several searches: pairs (id, distance), which search found an id (unless the
    query's own did), and the number of searches."""

    pairs: Pairs
    found_by: dict[str, str]
    searches: int

    def add(self, found_by: Mapping[str, str], vector: Vectors, search: Search) -> None:
        """Add the chunks that are new, with their distances to the query."""
        own = {i for i, _ in self.pairs}
        new = {i: finder for i, finder in found_by.items() if i not in own}
        if new:
            self.found_by |= new
            self.pairs += search.among(vector, len(new), list(new))
            self.searches += any(map(search.seen, new))


def _search(
    vector: Vectors, reach: SearchReach, search: Search, passes: Callable[[str], bool], passing: Callable[[int], Pairs]
) -> SearchFindings:
    """The query's own hits, doubled while there are too few clean ones; then those that `passing` adds."""
    wanted, n = reach.wanted, reach.first
    searches = 0
    while True:
        check_stopped()
        pairs = search.nearest(vector, n)
        searches += 1
        clean = sum(passes(i) for i, _ in pairs)
        if clean >= wanted or n >= reach.most or sum(search.seen(i) for i, _ in pairs) < n:
            break
        n *= 2
    found_by: dict[str, str] = {}
    if clean < wanted and (exact := passing(clean)):
        own = {i for i, _ in pairs}
        new = [pair for pair in exact if pair[0] not in own and passes(pair[0])]
        found_by = dict.fromkeys((i for i, _ in new), "rules")
        pairs += new
        searches += 1
    return SearchFindings(pairs, found_by, searches)


def _payload(
    pairs: Sequence[tuple[str, float]],
    named: set[str],
    reach: SearchReach,
    search: Search,
    passes: Callable[[str], bool],
    *,
    wide: bool,
) -> dict[str, Chunk]:
    """Complete chunks for hits that can be shown or kept; the catalogue's entries for the rest."""
    seen = [i for i, _ in pairs if search.seen(i)]
    hidden = [i for i, _ in pairs if wide and not search.seen(i)]
    named = named if wide else named.intersection(seen)
    shown = named | {*seen[: reach.shown], *hidden[: reach.shown]}
    shown |= {*islice(filter(passes, seen), reach.wanted)}
    full = {i: c for i in shown if (c := search.known.get(i)) is not None and c.loaded}
    full |= search.collection.chunks([i for i, _ in pairs if i in shown and i not in full])
    chunks = ((i, full.get(i) or search.known.get(i)) for i, _ in pairs)
    return {i: chunk for i, chunk in chunks if chunk is not None}
