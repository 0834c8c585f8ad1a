"""Queries and changes a pool: the hits that enter the first layer or that a plain search would send, the rules, how
near the best hit is, and the outputs and failures of models. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ragfilter.engine.search import source_matcher
from ragfilter.layers.layer import BACKGROUND_FROM, estimate_background
from ragfilter.layers.visibility import effective_user, is_clean, visible_entities
from ragfilter.model import Chunk, Hit, Judgement, NeedKind, Pool, User, with_chunks
from ragfilter.rules.match import Scan, compiled_rules
from ragfilter.settings.schema import Settings

MAX_JUDGEMENTS = 16


def entering_hits(pool: Pool, settings: Settings, user: User | None = None) -> tuple[Hit, ...]:
    """The hits that enter the first layer: the query's own and, if entities are on, each side's.

    All are from files that match `source_pattern`, even if the pool was gathered without it. If the pattern matches
    only files that are hidden from the user, there are none, as in `gather`."""
    own: tuple[str, ...] = ("query", "rules")
    hits = _of_files(pool.hits, settings)
    user = effective_user(user, settings)
    if settings.retrieval.lexical and pool.lexical_user == user:
        own = (*own, "lexical")
    elif pool.lexical_user is not None:
        hits = tuple(replace(hit, scores={}) if hit.scores else hit for hit in hits)
    if not any(user.sees(hit.chunk) for hit in hits) and settings.retrieval.source_pattern.strip():
        return ()
    if not settings.entities.enabled:
        return tuple(hit for hit in hits if hit.found_by in own)
    sides = (*pool.entities, *visible_entities(pool, user))
    wanted = {i for side in sides for i in side.ids[: settings.entities.per_entity]}
    return tuple(hit for hit in hits if hit.found_by in own or hit.id in wanted)


def with_rules(pool: Pool, rules: Mapping[str, str | None]) -> Pool:
    """Replace the rules of the pool's chunks (by id, None for no rule), without a new search: it
    misses chunks that only gathering again would find."""

    def changed(chunk: Chunk) -> Chunk:
        return replace(chunk, rule=rules[chunk.id]) if chunk.id in rules else chunk

    hits, reachable = (with_chunks(each, changed) for each in (pool.hits, pool.reachable))
    return replace(pool, hits=hits, reachable=reachable, references=tuple(map(changed, pool.references)))


def renew_rules(pool: Pool, chunks: Mapping[str, Chunk], settings: Settings, user: User, wanted: int) -> Pool | None:
    """Give the pool the current rules of `chunks` (by id); the same pool if no rule has changed.
    None if only a new search can answer: fewer than `wanted` hits stay clean, or a text that may be
    needed now was never fetched. Rules count even if `settings` turn them off."""
    known = (chunk for chunk in pool.chunks if chunk.id in chunks)
    rules = {c.id: chunks[c.id].rule for c in known if c.rule != chunks[c.id].rule}
    renewed = with_rules(pool, rules) if rules else pool
    # Chunks found only for a side of a comparison do not count towards how far a search goes.
    on = settings.with_values({"query_must.enabled": True, "entities.enabled": False})
    scan = scan_rules(renewed)
    # Chunks found only through rules do not show that the search itself went far enough.
    own = (hit for hit in entering_hits(renewed, on, user) if hit.found_by == "query")
    clean = [hit for hit in own if is_clean(hit.chunk, on, scan, user)]
    needed = (*clean[:wanted], *(hit for hit in renewed.hits if hit.id in rules))
    enough = pool.exhaustive or len(clean) >= wanted
    return renewed if enough and all(hit.chunk.loaded for hit in needed) else None


def count_clean(pool: Pool, settings: Settings, user: User | None = None) -> int:
    """The number of clean hits among those that enter the first layer."""
    scan, hits = scan_rules(pool), entering_hits(pool, settings, user)
    return sum(is_clean(hit.chunk, settings, scan, user) for hit in hits)


def unfiltered(pool: Pool, settings: Settings, user: User | None = None) -> tuple[Hit, ...]:
    """The hits that a plain search would put into the prompt: the first k of the query's own.

    Clearance applies here too, if it is on: the comparison must not show hidden chunks."""
    user = effective_user(user, settings)
    hits = (hit for hit in _of_files(pool.hits, settings) if hit.found_by == "query")
    return tuple(hit for hit in hits if user.sees(hit.chunk))[: settings.retrieval.k]


def nearness(pool: Pool) -> float | None:
    """The distance of the best hit as a share of the background; None if no background can be estimated."""
    distances = pool.distances
    if pool.space == "rank" or len(distances) < BACKGROUND_FROM:
        return None
    far = estimate_background(distances)
    return min(distances) / far if far > 0 else None


def _of_files(hits: tuple[Hit, ...], settings: Settings) -> tuple[Hit, ...]:
    pattern = settings.retrieval.source_pattern
    if not pattern.strip():
        return hits
    fits = source_matcher(pattern)
    return tuple(hit for hit in hits if fits(hit.chunk.source))


def scan_rules(pool: Pool) -> Scan:
    chunks = (hit.chunk for hit in (*pool.hits, *pool.reachable))
    rules = dict.fromkeys(chunk.rule for chunk in chunks if chunk.rule)
    return compiled_rules(tuple(rules)).scan(pool.query)


def without_failures(pool: Pool, *kinds: NeedKind) -> Pool:
    """Remove failures of these kinds from the pool, so that the failed calls are needed again."""
    if "judge" in kinds:
        pool = replace(pool, judgements=tuple(j for j in pool.judgements if not j.error))
    return replace(pool, failures=tuple(f for f in pool.failures if f.kind not in kinds))


def join_pools(mine: Pool, theirs: Pool) -> Pool:
    """Add to `mine` the model outputs that another session has since got for its copy, `theirs`."""
    scores = _only_in(theirs, mine, "rerank_score")
    if scores and mine.reranker in ("", theirs.reranker):
        # New scores clear the reranker's failure.
        mine = without_failure_of(with_attribute(mine, "rerank_score", scores), theirs.reranker)
        mine = replace(mine, reranker=theirs.reranker, scores_are_ranks=theirs.scores_are_ranks)
    return replace(
        with_attribute(mine, "contributions", _only_in(theirs, mine, "contributions")),
        judgements=join_judgements(theirs.judgements, mine.judgements),
        reachable=tuple({hit.id: hit for hit in (*theirs.reachable, *mine.reachable)}.values()),
        references=tuple({c.id: c for c in (*theirs.references, *mine.references)}.values()),
    )


def join_judgements(before: Iterable[Judgement], new: Iterable[Judgement]) -> tuple[Judgement, ...]:
    """Add new judgements to a pool's: one per prompt, the latest last. A failure never replaces a success."""
    by_prompt: dict[object, Judgement] = {}
    for judgement in (*before, *new):
        prompt = judgement.prompt_key or (judgement.asked, judgement.left_out)
        earlier = by_prompt.get(prompt)
        if earlier is not None and judgement.error and not earlier.error:
            continue
        by_prompt.pop(prompt, None)
        by_prompt[prompt] = judgement
    return tuple(by_prompt.values())[-MAX_JUDGEMENTS:]


def _only_in(theirs: Pool, mine: Pool, attribute: str) -> dict[str, Any]:
    """The values of this attribute that hits in `theirs` have and hits in `mine` lack, by id."""
    lacking = {hit.id for hit in mine.hits if getattr(hit, attribute) is None}
    values = ((hit.id, getattr(hit, attribute)) for hit in theirs.hits if hit.id in lacking)
    return {i: value for i, value in values if value is not None}


def with_attribute(pool: Pool, attribute: str, values: Mapping[str, Any]) -> Pool:
    """Set an attribute of the pool's hits to these values, given by id."""

    def changed(hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
        return tuple(replace(h, **{attribute: values[h.id]}) if h.id in values else h for h in hits)

    return replace(pool, hits=changed(pool.hits), reachable=changed(pool.reachable))


def without_failure_of(pool: Pool, model: str) -> Pool:
    return replace(pool, failures=tuple(f for f in pool.failures if f.model != model))
