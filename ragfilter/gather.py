"""Gather: the only place with effects. One wide query, then whatever a layer says it needs.

Source: design, section 2; the measured reasons for "wide pool, doubled, then ids=" stand there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from ragfilter import judging
from ragfilter.entities import detect
from ragfilter.errors import InputError, ModelError
from ragfilter.layers.clearance import may_see
from ragfilter.layers.quality import reranker_key
from ragfilter.pipeline import replay
from ragfilter.ports import ChatModel, Collection, Embedder, Reranker, Vectors, Where
from ragfilter.rules.match import rule_book
from ragfilter.settings import Quality, Settings
from ragfilter.types import Chunk, Entity, Failure, Hit, Judgement, Need, Pool, Result

log = logging.getLogger(__name__)

CLEAN_TARGET = 50
"""Clean chunks gathered at least, so that no slider within its range runs out of the pool."""
PER_ENTITY = 50
WIDEST = 16
"""A pool that still runs dry at this many times its first size goes to `ids=`."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The outside world of one query: where the chunks are and which models may be asked."""

    collection: Collection
    embedder: Embedder
    reranker: Callable[[Quality], Reranker] | None = None
    chat: ChatModel | None = None


def run(query: str, settings: Settings, sources: Sources, *, push_down: bool = True) -> Result:
    """Gather and replay until nothing is needed: the library's and command line's one call.

    With `push_down` the clearance condition is also part of the store's own filter.
    Raises InputError for an empty query, StoreError, ModelError (the embedder's).
    """
    pool = gather(query, settings, sources, push_down=push_down)
    result = replay(pool, settings)
    for _ in range(3):
        if not result.needs:
            break
        pool = fulfil(pool, result.needs, settings, sources)
        result = replay(pool, settings)
    return result


def gather(query: str, settings: Settings, sources: Sources, *, push_down: bool = False) -> Pool:
    """A pool wide enough for every layer: hits, and what each side of a comparison found."""
    if not query.strip():
        raise InputError("The query is empty.", remedy="Type a question.")
    started = perf_counter()
    collection = sources.collection
    names = detect(query)
    vectors = sources.embedder.embed([query, *names])
    user = settings.clearance
    where = Where(user.level, user.department) if push_down and user.enabled else None
    catalogue = collection.catalogue()
    passes = _clean_test(query, settings, catalogue)
    total = collection.count()
    pairs, exact, calls = _wide(vectors[0], settings, collection, passes, total, where)
    bare = where is not None and not pairs
    if bare:
        # Nothing accessible: what there is is asked for without texts, to say which level it takes.
        where = None
        pairs, exact, calls = _wide(vectors[0], settings, collection, passes, total, where)
    found_by = {i: "rules" for i, _ in exact}
    pairs += exact
    entities: list[Entity] = []
    for name, vector in zip(names, vectors[1:], strict=True):
        found = collection.nearest(vector, PER_ENTITY, where=where)
        entities.append(Entity(name, tuple(i for i, _ in found)))
        calls += 1
    distances = dict(pairs)
    extra = list(dict.fromkeys(i for e in entities for i in e.ids if i not in distances))
    found_by |= {i: f"entity:{e.name}" for e in reversed(entities) for i in e.ids if i in extra}
    if extra:
        pairs += collection.nearest(vectors[0], len(extra), ids=extra, where=where)
        calls += 1
    plain = frozenset(distances)
    pairs.sort(key=lambda pair: pair[1])
    named = {i for entity in entities for i in entity.ids}
    if bare:
        chunks = {i: catalogue[i] for i, _ in pairs if i in catalogue}
    else:
        chunks = _payload(pairs, named, settings, collection, catalogue, passes)
    hits = tuple(
        Hit(chunks[i], d, rank, found_by.get(i, "query"))
        for rank, (i, d) in enumerate(pairs, start=1)
        if i in chunks
    )
    return Pool(
        query=query,
        collection=collection.name,
        space=collection.space,
        hits=hits,
        entities=tuple(entities),
        complete=len(plain) >= total,
        queries=calls,
        gather_ms=(perf_counter() - started) * 1000,
    )


def target(settings: Settings) -> int:
    """How many clean chunks the settings could want from one pool."""
    return max(
        CLEAN_TARGET,
        settings.retrieval.k,
        settings.cutoff.max_results,
        settings.quality.max_top_k,
        int(settings.judge.max_chunks * settings.judge.oversample),
    )


def fulfil(pool: Pool, needs: Sequence[Need], settings: Settings, sources: Sources) -> Pool:
    """The pool with what was needed: rerank scores, verdicts. A failure is part of the pool."""
    for need in needs:
        if need.kind == "rerank":
            pool = _rerank(pool, need, settings, sources)
        elif need.kind == "judge":
            pool = _judge(pool, need, settings, sources)
    return pool


def _clean_test(
    query: str, settings: Settings, catalogue: Mapping[str, Chunk]
) -> Callable[[str], bool]:
    rules = tuple(dict.fromkeys(chunk.rule for chunk in catalogue.values() if chunk.rule))
    scan = rule_book(rules).scan(query)
    user = settings.clearance

    def passes(chunk_id: str) -> bool:
        chunk = catalogue.get(chunk_id)
        if chunk is None:
            return False
        return scan.passes(chunk.rule) and (not user.enabled or may_see(chunk, user))

    return passes


def _wide(
    vector: Vectors,
    settings: Settings,
    collection: Collection,
    passes: Callable[[str], bool],
    total: int,
    where: Where | None,
) -> tuple[list[tuple[str, float]], list[tuple[str, float]], int]:
    """The query's own hits, doubled while clean ones run short; then what one exact `ids=` query
    over the chunks whose rules hold adds to them; and the number of store calls."""
    wanted = target(settings)
    n = max(settings.retrieval.pool_size, wanted)
    calls = 0
    while True:
        pairs = collection.nearest(vector, n, where=where)
        calls += 1
        clean = sum(passes(i) for i, _ in pairs)
        if clean >= wanted or n >= total or n >= settings.retrieval.pool_size * WIDEST:
            break
        n *= 2
    exact: list[tuple[str, float]] = []
    if clean < wanted and len(pairs) < total:
        ids = [i for i in collection.catalogue() if passes(i)]
        if len(ids) > clean:
            known = {i for i, _ in pairs}
            found = collection.nearest(vector, min(wanted, len(ids)), ids=ids, where=where)
            exact = [pair for pair in found if pair[0] not in known]
            calls += 1
    return pairs, exact, calls


def _payload(
    pairs: Sequence[tuple[str, float]],
    named: set[str],
    settings: Settings,
    collection: Collection,
    catalogue: Mapping[str, Chunk],
    passes: Callable[[str], bool],
) -> dict[str, Chunk]:
    """Whole chunks for what can be shown or kept; the catalogue's bare ones for the rest."""
    shown = named | {i for i, _ in pairs[: max(settings.retrieval.pool_size, target(settings))]}
    clean = 0
    for i, _ in pairs:
        if clean >= target(settings):
            break
        if passes(i):
            shown.add(i)
            clean += 1
    whole = collection.chunks([i for i, _ in pairs if i in shown])
    return {i: chunk for i, _ in pairs if (chunk := whole.get(i) or catalogue.get(i)) is not None}


def _rerank(pool: Pool, need: Need, settings: Settings, sources: Sources) -> Pool:
    key = reranker_key(settings.quality)
    failures = tuple(f for f in pool.failures if f.kind != "rerank")
    chunks = {hit.id: hit.chunk for hit in pool.hits}
    ids = [i for i in need.chunk_ids if i in chunks]
    try:
        if sources.reranker is None:
            raise ModelError("No reranker is set up.", remedy="Pass one in Sources.")
        reranker = sources.reranker(settings.quality)
        scores = reranker.score(pool.query, [chunks[i].passage for i in ids])
    except ModelError as error:
        log.warning("reranking failed: %s", error)
        return replace(pool, failures=(*failures, Failure("rerank", str(error))), reranker=key)
    fresh = dict(zip(ids, scores, strict=True))
    same = pool.reranker == key
    hits = tuple(
        replace(hit, rerank_score=fresh.get(hit.id, hit.rerank_score if same else None))
        for hit in pool.hits
    )
    return replace(pool, hits=hits, failures=failures, reranker=key)


def _judge(pool: Pool, need: Need, settings: Settings, sources: Sources) -> Pool:
    by_id = {hit.id: hit for hit in pool.hits}
    asked = [by_id[i] for i in need.chunk_ids if i in by_id]
    if sources.chat is None:
        judgement = Judgement(
            asked=tuple(hit.id for hit in asked),
            error="no LLM is configured; set OPENAI_API_KEY or OPENAI_BASE_URL",
        )
    else:
        judgement = judging.ask(pool.query, asked, sources.chat, settings.judge, pool.space)
    reachable = _reachable(pool, judgement, settings, sources)
    return replace(pool, judgement=judgement, reachable=reachable)


def _reachable(
    pool: Pool, judgement: Judgement, settings: Settings, sources: Sources
) -> tuple[Hit, ...]:
    """The chunks that the verdicts' expansions can reach and the pool does not hold whole."""
    loaded = {hit.id: hit.chunk for hit in pool.hits if hit.chunk.loaded}
    fetched: dict[str, Chunk] = {}
    for verdict in judgement.verdicts:
        if verdict.action != "EXPAND" or verdict.chunk_id not in loaded:
            continue
        frontier, seen = [verdict.chunk_id], {verdict.chunk_id}
        for _ in range(verdict.depth):
            refs = _unseen_refs((fetched.get(i) or loaded.get(i) for i in frontier), seen)
            refs = refs[: settings.judge.max_expansion + 1 - len(seen)]
            fetched |= sources.collection.chunks(
                [i for i in refs if i not in loaded and i not in fetched]
            )
            seen.update(refs)
            frontier = refs
    if not fetched:
        return ()
    vector = sources.embedder.embed([pool.query])[0]
    pairs = sources.collection.nearest(vector, len(fetched), ids=list(fetched))
    return tuple(Hit(fetched[i], d, 0, "expansion") for i, d in pairs)


def _unseen_refs(chunks: Iterable[Chunk | None], seen: set[str]) -> list[str]:
    refs = (ref for chunk in chunks if chunk is not None for ref in chunk.refs)
    return [ref for ref in dict.fromkeys(refs) if ref not in seen]
