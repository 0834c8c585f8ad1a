"""`replay`: a pure function from pool and settings to result. Source: docs/design.md#replay.

`Replays` remembers the steps of the last pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from ragfilter.engine.search import matcher
from ragfilter.layers import clearance
from ragfilter.layers.base import LayerInput, LayerSpec
from ragfilter.layers.clearance import is_clean
from ragfilter.layers.registry import LAYERS
from ragfilter.model import Chunk, Hit, LayerTrace, Need, Pool, PoolResult, Status, User
from ragfilter.rules.match import Scan, rule_book
from ragfilter.settings.schema import Settings

ReplayMemo = dict[object, Any]
"""What layers made of one pool for one user, for replays under many settings. A step is reused
where all before it, the layer's own section, those in its `reads`, and `retrieval` are the same."""


def replay(
    pool: Pool,
    settings: Settings,
    user: User | None = None,
    scan: Scan | None = None,
    *,
    memo: ReplayMemo | None = None,
    explain: bool = True,
) -> PoolResult:
    """Decide over a gathered pool. Pure and deterministic; asks no store and no model.

    `user` is who asks; without one, the settings decide (`clearance.viewer`). `scan` is the pool's
    query matched with its rules, for a caller who replays it under many. Without `explain`, layers
    may leave their decisions out; what is kept is the same. Replays that share `memo` must have the
    same `explain`.

    What a layer lacks (rerank scores, verdicts, what sentences contribute) is listed in
    `PoolResult.needs`. Until it is there, the layer falls back, and the note of
    its trace says so.
    """
    memo = {} if memo is None else memo
    user = clearance.viewer(user, settings)
    settings = clearance.with_clearance(settings, user)
    # Without sides of a comparison, what the entities' settings say makes no difference here.
    sides_key = pool.entities and settings.entities
    start = (settings.retrieval.source_pattern, settings.retrieval.lexical, sides_key, user)
    if start not in memo:
        if scan_rules not in memo:
            memo[scan_rules] = scan or scan_rules(pool)
        sides = clearance.visible_entities(pool, user)
        first = entering_hits(pool, settings, user)
        memo[start] = first, replace(pool, entities=sides), {hit.id: hit for hit in first}
    hits, pool_with_sides, entered = before = memo[start]
    shared = memo.setdefault((settings.retrieval, user), {})
    inputs = LayerInput(
        settings, pool_with_sides, memo[scan_rules], user, shared=shared, explain=explain
    )
    seen = dict(entered)
    traces: list[LayerTrace] = []
    needs: list[Need] = []
    status: Status = "ok"
    message = ""
    for layer in LAYERS:
        if not layer.enabled(settings):
            traces.append(LayerTrace(layer.name, False, len(hits), len(hits)))
            continue
        # By identity: `memo` holds what came before, and hashing it would take long.
        own = tuple(getattr(settings, name, None) for name in (layer.name, *layer.reads))
        key = (layer.name, own, settings.retrieval, id(before))
        if key not in memo:
            started = perf_counter()
            output = layer.apply(hits, inputs)
            new = [hit for hit in output.hits if hit.id not in entered]
            memo.setdefault(key, (output, new, (perf_counter() - started) * 1000))
        step, new, ms = before = memo[key]
        traces.append(LayerTrace(
            layer.name, True, len(hits), len(step.hits), step.decisions, step.detail, step.note, ms,
            step.failed, step.reranked,
        ))  # fmt: skip
        needs.extend(step.needs)
        inputs = inputs.after(step)
        if status == "ok":
            status, message = step.status, step.message
        hits = step.hits
        for hit in new:
            seen.setdefault(hit.id, hit)
    if not hits and seen and not message:
        message = _nothing_left(traces)
    if pool.incomplete:
        # What would have matched may be among the chunks that cannot be found.
        found_nothing = status in ("ok", "low_quality_results")
        status = "incomplete_collection" if found_nothing else status
        message = f"{message} {pool.incomplete}".strip()
    return PoolResult(
        pool.query, settings, pool, tuple(seen.values()), hits, tuple(traces), tuple(needs), status,
        message, user,
    )  # fmt: skip


def keep(
    layers: Iterable[LayerSpec], hits: tuple[Hit, ...], inputs: LayerInput
) -> tuple[tuple[Hit, ...], tuple[Need, ...]]:
    """What `layers` keep of `hits`, one after the other, and what they lacked."""
    needs: list[Need] = []
    for layer in layers:
        step = layer.apply(hits, inputs)
        hits, inputs = step.hits, inputs.after(step)
        needs += step.needs
    return hits, tuple(needs)


def as_user(result: PoolResult, *, memo: ReplayMemo | None = None) -> PoolResult:
    """The result as its user sees it: over the same pool, without what clearance hides.

    Ranks, gaps, counts and reasons then count visible chunks only, so that nothing reveals a hidden
    one. Only the message that the clearance is insufficient stays. `memo` belongs to the
    result's own replay.
    """
    user, pool = result.user, result.pool
    if all(user.sees(hit.chunk) for hit in pool.hits):
        return result
    memo = {} if memo is None else memo
    key = (as_user, user)
    if key not in memo:
        memo[key] = clearance.visible_pool(pool, user), {}
    visible, own = memo[key]
    user_result = replay(visible, result.settings, user, memo=own)
    if result.status == "insufficient_clearance":
        user_result = replace(user_result, status=result.status, message=result.message)
    return user_result


def entering_hits(pool: Pool, settings: Settings, user: User | None = None) -> tuple[Hit, ...]:
    """The hits that enter the first layer: the query's own, and the entities' where switched on.

    All are of the files that `source_pattern` admits, even if the pool was gathered without it;
    none where it admits only what the user may not see, as in `gather`.
    """
    own: tuple[str, ...] = ("query", "rules")
    hits = _of_files(pool.hits, settings)
    user = clearance.viewer(user, settings)
    if settings.retrieval.lexical and pool.lexical_user == user:
        own = (*own, "lexical")
    elif pool.lexical_user is not None:
        hits = tuple(replace(hit, scores={}) if hit.scores else hit for hit in hits)
    if not any(user.sees(hit.chunk) for hit in hits) and settings.retrieval.source_pattern.strip():
        return ()
    if not settings.entities.enabled:
        return tuple(hit for hit in hits if hit.found_by in own)
    sides = (*pool.entities, *clearance.visible_entities(pool, user))
    wanted = {i for side in sides for i in side.ids[: settings.entities.per_entity]}
    return tuple(hit for hit in hits if hit.found_by in own or hit.id in wanted)


def with_rules(pool: Pool, rules: Mapping[str, str | None]) -> Pool:
    """The pool as it would be with these rules on its chunks (by id, None for no rule), without a
    new query: chunks that only another gathering would find stay out."""

    def changed(chunk: Chunk) -> Chunk:
        return replace(chunk, rule=rules[chunk.id]) if chunk.id in rules else chunk

    def of(hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
        return tuple(replace(h, chunk=changed(h.chunk)) if h.id in rules else h for h in hits)

    return replace(
        pool,
        hits=of(pool.hits),
        reachable=of(pool.reachable),
        references=tuple(map(changed, pool.references)),
    )


def renew_rules(
    pool: Pool, chunks: Mapping[str, Chunk], settings: Settings, user: User, wanted: int
) -> Pool | None:
    """The pool with the rules that `chunks` (by id) have now, itself if they are the same; None if
    only a search could tell what comes in: fewer than `wanted` hits stay clean, or a text was never
    fetched that may be needed now. Rules count also while `settings` leave them off."""
    known = (chunk for chunk in pool.chunks if chunk.id in chunks)
    rules = {c.id: chunks[c.id].rule for c in known if c.rule != chunks[c.id].rule}
    renewed = with_rules(pool, rules) if rules else pool
    # Chunks that only a side of a comparison brought in take no part in how far a search goes.
    on = settings.with_values({"query_must.enabled": True, "entities.enabled": False})
    scan = scan_rules(renewed)
    # What only the rules brought in does not show that the search itself goes far enough.
    clean = [
        hit
        for hit in entering_hits(renewed, on, user)
        if hit.found_by == "query" and is_clean(hit.chunk, on, scan, user)
    ]
    needed = (*clean[:wanted], *(hit for hit in renewed.hits if hit.id in rules))
    enough = pool.exhaustive or len(clean) >= wanted
    return renewed if enough and all(hit.chunk.loaded for hit in needed) else None


def count_clean(pool: Pool, settings: Settings, user: User | None = None) -> int:
    """The number of clean hits among those that enter the first layer."""
    scan, hits = scan_rules(pool), entering_hits(pool, settings, user)
    return sum(is_clean(hit.chunk, settings, scan, user) for hit in hits)


def unfiltered(pool: Pool, settings: Settings, user: User | None = None) -> tuple[Hit, ...]:
    """What a plain search would have put into the prompt: the first k of the query's own hits.

    Clearance, where it is on, holds here too: the comparison must not show what is hidden.
    """
    user = clearance.viewer(user, settings)
    hits = (hit for hit in _of_files(pool.hits, settings) if hit.found_by == "query")
    return tuple(hit for hit in hits if user.sees(hit.chunk))[: settings.retrieval.k]


def _of_files(hits: tuple[Hit, ...], settings: Settings) -> tuple[Hit, ...]:
    pattern = settings.retrieval.source_pattern
    if not pattern.strip():
        return hits
    fits = matcher(pattern)
    return tuple(hit for hit in hits if fits(hit.chunk.source))


def scan_rules(pool: Pool) -> Scan:
    chunks = (hit.chunk for hit in (*pool.hits, *pool.reachable))
    rules = dict.fromkeys(chunk.rule for chunk in chunks if chunk.rule)
    return rule_book(tuple(rules)).scan(pool.query)


def _nothing_left(traces: Iterable[LayerTrace]) -> str:
    trace = next(trace for trace in traces if trace.n_in and not trace.n_out)
    last = "chunk" if trace.n_in == 1 else f"{trace.n_in} chunks"
    return f"Nothing is left: {trace.layer} dropped the last {last}."


MAX_STEPS = 300
"""Maximum number of cached steps. A step is the decisions of one layer on a pool."""


@dataclass(slots=True)
class Replays:
    """Replays pools and reuses the steps of the last one."""

    # One value, so that a run which is being stopped cannot mix its steps with the next run's.
    _last: tuple[Pool, ReplayMemo] | None = None

    def of(self, pool: Pool, settings: Settings, user: User | None = None) -> PoolResult:
        """Call `replay` with the pool."""
        return replay(pool, settings, user, memo=self._memo(pool))

    def as_user(self, result: PoolResult) -> PoolResult:
        """Call `as_user` with a result."""
        return as_user(result, memo=self._memo(result.pool))

    def _memo(self, pool: Pool) -> ReplayMemo:
        """The memo of this pool; empty for another pool, or if it holds too much."""
        last = self._last
        if last is None or last[0] is not pool or len(last[1]) > MAX_STEPS:
            self._last = last = pool, {}
        return last[1]
