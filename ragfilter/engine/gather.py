"""Gather a pool of hits from the store (`Backends`), wide enough for the layers to decide.

Source: docs/design.md#pool, with the measurements behind "wide pool, doubled, then `ids=`"."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from time import perf_counter

from ragfilter.basics.threads import check_stopped
from ragfilter.engine.pool import entering_hits, scan_rules
from ragfilter.engine.search import LEXICAL_DEPTH, Pairs, Search, fuse, source_matcher, word_search
from ragfilter.errors import InputError
from ragfilter.judge.call import JudgementCache
from ragfilter.layers import query_must
from ragfilter.layers.layer import LayerInput, LayerSpec
from ragfilter.layers.references import references_of
from ragfilter.layers.registry import LAYERS
from ragfilter.layers.visibility import effective_user, with_clearance_for
from ragfilter.model import Chunk, Entity, Hit, Pool, Score, User, by_distance, with_chunks
from ragfilter.protocols import Catalogue, ChatModel, Collection, DistinctRules, Embedder, Pruner, Reranker, Vectors
from ragfilter.rules.match import Scan, compiled_rules
from ragfilter.settings.schema import Quality, Settings, field_info
from ragfilter.text.comparison import alternatives, detect, title_is
from ragfilter.text.normalise import mend_characters
from ragfilter.text.numbers import first_of

log = logging.getLogger(__name__)

CLEAN_TARGET = 50
"""Minimum number of clean chunks to gather, so that no slider asks for more than the pool has."""
PER_ENTITY = 50
PINNED_REFERENCES = int(field_info("query_must.references").ceiling or 0)
SHOWN_FILES = 10
SPARE = 3
"""Over-fetch factor if rules or clearance may drop hits."""
WIDEST = 16
"""A search grows to at most this multiple of `pool_size` (or of its first size, if larger). After that, only clean
chunks are searched."""


@dataclass(frozen=True, slots=True)
class Backends:
    """The store and models for one query.

    `judgements` caches the judge's answers. Without it, every question calls the judge."""

    collection: Collection
    embedder: Embedder
    make_reranker: Callable[[Quality], Reranker] | None = None
    chat: ChatModel | None = None
    judgements: JudgementCache | None = None
    pruner: Pruner | None = None

    @property
    def incomplete(self) -> str:
        """Why the collection may lack chunks; empty if it is complete or cannot tell."""
        return getattr(self.collection, "incomplete", "")


def gather(query: str, settings: Settings, backends: Backends, user: User | None = None, *, wide: bool = True) -> Pool:
    """Gather a pool of hits, including those for each side of a comparison: wide enough for any
    settings, or only for these.

    Raises the same errors as `engine.pipeline.search_and_filter`."""
    return gather_with_scan(query, settings, backends, user, wide=wide)[0]


def gather_with_scan(
    query: str, settings: Settings, backends: Backends, user: User | None, *, wide: bool
) -> tuple[Pool, Scan | None]:
    """The pool, and the query matched with every rule of the collection (None if that was not needed)."""
    query = mend_characters(query)
    if not query.strip():
        raise InputError("The query is empty.", remedy="Pass a question.")
    started = perf_counter()
    user = effective_user(user, settings)
    settings = with_clearance_for(settings, user)

    # 1. Open the collection as this user, so that hidden chunks affect nothing below.
    search = _open(backends.collection, settings, user, wide=wide)
    collection = search.collection
    # Not `backends.incomplete`, which would look the collection up again.
    incomplete = getattr(collection, "incomplete", "")
    if incomplete:
        log.warning(incomplete)

    # 2. Embed the query and the sides of a comparison in one call: several calls take longer.
    sides, is_certain = _sides(query, settings, wide=wide)
    vectors = backends.embedder.embed([query, *sides])

    # 3. Search until enough chunks pass clearance and rules: only those reach the other layers.
    findings = _find_hits(query, vectors[0], search, settings, wide=wide)
    check_stopped()

    # 4. Search for each side alone, since the query's nearest chunks may all be about one side.
    width = PER_ENTITY if wide else settings.entities.per_entity
    by_side = dict(zip(sides, vectors[1:], strict=True))
    entities = _find_sides(by_side, width, vectors[0], findings, is_certain=is_certain)

    # 5. Fetch the texts of chunks that can be shown or kept; a whole pool's texts take too long.
    hits = _fetch(findings, entities, wide=wide)
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
        exhaustive=findings.exhaustive,
        incomplete=incomplete,
        queries=findings.searches,
    )
    pool = _with_pinned_texts(pool, settings, collection, user, findings.scan, wide=wide)
    return replace(pool, gather_ms=(perf_counter() - started) * 1000), findings.scan


# -- 1. open ---------------------------------------------------------------------------------------


def _open(collection: Collection, settings: Settings, user: User, *, wide: bool) -> Search:
    """Open the collection as `user` sees it. Without a catalogue, clearance is pushed down to the store, and chunks
    become known as they are found. With one, a database is still faster if it sorts out hidden chunks itself."""
    snapshot = getattr(collection, "snapshot", None)
    # Looked up only once for all searches.
    collection = snapshot() if snapshot else collection
    known = collection.catalogue()
    if known is None:
        return Search(collection, {}, user, push_down=not user.unrestricted)
    catalogue = known if isinstance(known, Catalogue) else Catalogue(known)
    files = _only_sources(settings, user, collection.name, catalogue)
    push_down = isinstance(collection, DistinctRules) and not wide and not user.unrestricted
    return Search(collection, catalogue, user, files, push_down, catalogue, catalogue.share(user))


def _only_sources(settings: Settings, user: User, name: str, catalogue: Catalogue) -> tuple[str, ...] | None:
    """The sources that match the file pattern; None if all do. Raises InputError.

    If a pattern matches only hidden files, the error is the same as if it matches none. Otherwise patterns would reveal
    hidden names, letter by letter."""
    pattern = settings.retrieval.source_pattern
    if not pattern.strip():
        return None
    fits = source_matcher(pattern)
    visible_sources = {chunk.source for chunk in catalogue.audiences if user.sees(chunk)}
    if catalogue and not any(map(fits, visible_sources)):
        raise InputError(
            f"No file in the collection {name!r} matches {pattern!r}.", remedy=_files_there(visible_sources)
        )
    sources = dict.fromkeys(chunk.source for chunk in catalogue.audiences)
    return tuple(source for source in sources if fits(source))


def _files_there(sources: Iterable[str]) -> str:
    names = sorted(filter(None, sources))
    if not names:
        return "Its chunks have no file names; leave the pattern empty."
    return f"There are: {first_of(names, SHOWN_FILES)}."


# -- 2. embed --------------------------------------------------------------------------------------


def _sides(query: str, settings: Settings, *, wide: bool) -> tuple[tuple[str, ...], bool]:
    """The sides of a comparison, and whether it certainly is one: "X or Y" may be one thing."""
    if not (wide or settings.entities.enabled):
        return (), True
    compared = detect(query)
    return compared or alternatives(query), bool(compared)


# -- 3. search -------------------------------------------------------------------------------------


@dataclass(slots=True)
class SearchFindings:
    """What several searches found. `pairs` are (id, distance). `found_by` names the search that found an id, unless it
    was the query's own. `scores` belong to chunks found by words, and `searches` counts the searches. `scan` is None
    without the collection's rules. `exhaustive`: the query's own search found every chunk that the user can see."""

    search: Search
    reach: SearchReach
    passes: Callable[[str], bool]
    scan: Scan | None
    pairs: Pairs = field(default_factory=list)
    found_by: dict[str, str] = field(default_factory=dict)
    scores: Mapping[str, Mapping[str, Score]] = field(default_factory=dict)
    searches: int = 0
    all_hidden: bool = False
    exhaustive: bool = False

    def add(self, found_by: Mapping[str, str], vector: Vectors) -> None:
        """Add the chunks that are new, with their distances to the query."""
        own = {i for i, _ in self.pairs}
        new = {i: finder for i, finder in found_by.items() if i not in own}
        if new:
            self.found_by |= new
            self.pairs += self.search.among(vector, len(new), list(new))
            self.searches += any(map(self.search.is_visible, new))


def _find_hits(query: str, vector: Vectors, search: Search, settings: Settings, *, wide: bool) -> SearchFindings:
    """The query's own hits, those that only rules reach, and those that only words find."""
    # A layer that reads the whole pool needs the same pool as on the page to decide the same.
    as_wide = wide or _any_reads_all(_enabled_layers(settings))
    rules = _distinct_rules(search) if as_wide or settings.query_must.enabled else None
    scan = compiled_rules(rules or ()).scan(query)
    reach = _reach_of(settings, search.user, rules, wide=as_wide)
    passes = _clean_test(settings, search, scan, wide=as_wide)
    findings = SearchFindings(search, reach, passes, None if rules is None else scan)
    _search_until_enough(vector, findings, rules, scan)
    findings.all_hidden = search.push_down and not findings.pairs
    if findings.all_hidden:
        # Search again without clearance and without texts, to name the level that is needed.
        findings.search = replace(search, push_down=False)
        _search_until_enough(vector, findings, rules, scan)
    findings.exhaustive = _is_whole(findings)
    if settings.retrieval.lexical and not findings.all_hidden:
        by_words = word_search(query, search)
        own = [i for i, _ in findings.pairs if search.is_visible(i) and i not in findings.found_by]
        findings.add({i: "lexical" for i, _ in by_words}, vector)
        findings.scores = fuse(own, by_words)
    return findings


def _search_until_enough(vector: Vectors, findings: SearchFindings, rules: Sequence[str] | None, scan: Scan) -> None:
    """Double the query's own search while it finds too few clean hits. If even the widest search finds too few, search
    only clean chunks."""
    search, reach, passes = findings.search, findings.reach, findings.passes
    n, findings.searches = reach.first, 0
    while True:
        check_stopped()
        findings.pairs = search.nearest(vector, n)
        findings.searches += 1
        clean = sum([passes(i) for i, _ in findings.pairs])
        if clean >= reach.wanted:
            return
        if n >= reach.most or sum(search.is_visible(i) for i, _ in findings.pairs) < n:
            break
        n *= 2
    exact: Pairs = []
    if search.catalogue is not None:
        ids = [i for i in search.catalogue if passes(i)]
        exact = search.among(vector, min(reach.wanted, len(ids)), ids) if len(ids) > clean else []
    elif rules is not None:
        exact = search.by_rules(vector, reach.wanted, tuple(filter(scan.passes, rules)))
    if exact:
        own = {i for i, _ in findings.pairs}
        new = [pair for pair in exact if pair[0] not in own and passes(pair[0])]
        findings.found_by = dict.fromkeys((i for i, _ in new), "rules")
        findings.pairs += new
        findings.searches += 1


def _is_whole(findings: SearchFindings) -> bool:
    """Whether these are all the chunks that the user can see."""
    search = findings.search
    if search.catalogue is None:
        return search.user.unrestricted and len(findings.pairs) >= search.collection.count()
    visible = search.catalogue.visible(search.user)
    return len(findings.pairs) >= visible and sum(search.is_visible(i) for i, _ in findings.pairs) >= visible


def _distinct_rules(search: Search) -> tuple[str, ...] | None:
    """The collection's distinct rules; None if a rule is known only once its chunk is found."""
    if search.catalogue is not None:
        return search.catalogue.distinct_rules
    return search.collection.distinct_rules() if isinstance(search.collection, DistinctRules) else None


def _clean_test(settings: Settings, search: Search, scan: Scan, *, wide: bool) -> Callable[[str], bool]:
    fits, known, user = source_matcher(settings.retrieval.source_pattern), search.known, search.user
    # If wide, rules count even while they are off, so that switching them on needs no further search.
    meets = scan.passes if wide or settings.query_must.enabled else lambda rule: True

    def passes(chunk_id: str) -> bool:
        chunk = known.get(chunk_id)
        return chunk is not None and fits(chunk.source) and user.sees(chunk) and meets(chunk.rule)

    return passes


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
        wanted = wanted_count(settings)
        width = max(pool_size, wanted, fused)
        return SearchReach(wanted, width, most, shown=most if _any_reads_all(LAYERS) else width)
    wanted = usable_count(settings)
    ruled = settings.query_must.enabled and (distinct is None or bool(distinct))
    filtered = ruled or not user.unrestricted or bool(settings.retrieval.source_pattern.strip())
    first = max(fused, SPARE * wanted if filtered else wanted)
    if any(layer.reads_pool(settings) for layer in _enabled_layers(settings)):
        first = max(first, pool_size)
    return SearchReach(wanted, first, max(pool_size, first) * WIDEST, wanted)


def _enabled_layers(settings: Settings) -> list[LayerSpec]:
    return [layer for layer in LAYERS if layer.enabled(settings)]


def _any_reads_all(layers: Iterable[LayerSpec]) -> bool:
    return any(layer.candidates is None for layer in layers)


def _most_of(layers: Iterable[LayerSpec], settings: Settings) -> int:
    return max((layer.candidates(settings) for layer in layers if layer.candidates), default=0)


def usable_count(settings: Settings) -> int:
    """The number of clean chunks that the enabled layers can use; the whole pool if one of them can use that."""
    if _any_reads_all(_enabled_layers(settings)):
        return settings.retrieval.pool_size * WIDEST
    return _compared(settings) + max(settings.retrieval.k, _most_of(_enabled_layers(settings), settings))


def wanted_count(settings: Settings) -> int:
    """The most clean chunks that the settings could need from one pool."""
    return _compared(settings) + max(CLEAN_TARGET, settings.retrieval.k, _most_of(LAYERS, settings))


def _compared(settings: Settings) -> int:
    """How many dropped near-duplicates may need replacing."""
    return sum(layer.compares for layer in _enabled_layers(settings))


# -- 4. the sides of a comparison ------------------------------------------------------------------


def _find_sides(
    sides: Mapping[str, Vectors], width: int, vector: Vectors, findings: SearchFindings, *, is_certain: bool
) -> list[Entity]:
    """Search for each side. Unless it certainly is a comparison, return the sides only if each one's search found a
    chunk with that title that the user can see."""
    search = findings.search
    entities = [Entity(name, tuple(i for i, _ in search.nearest(side, width))) for name, side in sides.items()]
    findings.searches += len(entities)
    if not is_certain:
        chunks = search.collection.chunks(list({i for entity in entities for i in entity.ids}))
        for entity in entities:
            own = (chunks[i] for i in entity.ids if i in chunks)
            if not any(title_is(entity.name, chunk.title) and search.user.sees(chunk) for chunk in own):
                return []
    # If several sides found a chunk, name the first.
    findings.add({i: f"entity:{each.name}" for each in reversed(entities) for i in each.ids}, vector)
    return entities


# -- 5. fetch --------------------------------------------------------------------------------------


def _fetch(findings: SearchFindings, entities: Sequence[Entity], *, wide: bool) -> tuple[Hit, ...]:
    """The hits by distance, with the texts that can be shown or kept."""
    search = findings.search
    seen = {i for i, _ in findings.pairs if search.is_visible(i)}
    # Only operators may see hidden chunks, or learn that all are hidden; they use the wide pool.
    pairs = [pair for pair in findings.pairs if wide or pair[0] in seen] or findings.pairs
    if search.collection.space == "rank":
        log.warning("%s gives no distances, so only its order counts", search.collection.name)
        pairs = [(i, float(place)) for place, (i, _) in enumerate(pairs, start=1)]
    else:
        pairs = sorted(pairs, key=by_distance)
    if findings.all_hidden:
        known = ((i, search.known[i]) for i, _ in pairs if i in search.known)
        chunks = {i: replace(chunk, text="", title="", loaded=False) for i, chunk in known}
    else:
        shown = _shown([i for i, _ in pairs], seen, entities, findings, wide=wide)
        chunks = _payload(pairs, shown, search)
    return tuple(
        Hit(chunks[i], d, rank, findings.found_by.get(i, "query"), scores=findings.scores.get(i, {}))
        for rank, (i, d) in enumerate(pairs, start=1)
        if i in chunks
    )


def _shown(
    ids: Sequence[str], seen: set[str], entities: Iterable[Entity], findings: SearchFindings, *, wide: bool
) -> set[str]:
    """The ids of the hits that can be shown or kept."""
    reach = findings.reach
    visible = [i for i in ids if i in seen]
    hidden = [i for i in ids if i not in seen] if wide else []
    named = {i for entity in entities for i in entity.ids} | findings.scores.keys()
    clean = islice(filter(findings.passes, visible), reach.wanted)
    return {*(named if wide else named & seen), *visible[: reach.shown], *hidden[: reach.shown], *clean}


def _payload(pairs: Pairs, shown: set[str], search: Search) -> dict[str, Chunk]:
    """Complete chunks for the hits that are `shown`; the catalogue's entries for the rest."""
    full = {i: c for i in shown if (c := search.known.get(i)) is not None and c.loaded}
    full |= search.collection.chunks([i for i, _ in pairs if i in shown and i not in full])
    return {i: chunk for i, _ in pairs if (chunk := full.get(i) or search.known.get(i)) is not None}


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
    full = collection.chunks([hit.id for hit in hits if hit.id in pinned and not hit.chunk.loaded])
    return replace(pool, hits=with_chunks(pool.hits, lambda chunk: full.get(chunk.id, chunk))) if full else pool
