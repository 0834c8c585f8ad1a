"""`replay`: a pure function from pool and settings to result. Source: docs/design.md#replay.

`Replays` remembers the steps of the last pool."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from ragfilter.engine.pool import entering_hits, scan_rules
from ragfilter.layers import visibility
from ragfilter.layers.layer import LayerInput
from ragfilter.layers.registry import LAYERS
from ragfilter.model import LayerTrace, Need, Pool, PoolResult, Status, User
from ragfilter.rules.match import Scan
from ragfilter.settings.schema import Settings

ReplayMemo = dict[object, Any]
"""The steps of replaying one pool for one user, cached for replays with other settings. A step is
reused if all earlier steps, the layer's section, those in its `reads` and `retrieval` are equal."""


def replay(
    pool: Pool,
    settings: Settings,
    user: User | None = None,
    scan: Scan | None = None,
    *,
    memo: ReplayMemo | None = None,
    explain: bool = True,
) -> PoolResult:
    """Run the layers over a gathered pool. Pure and deterministic; calls no store and no model.

    Without a `user`, the settings decide who asks (`clearance.enabled`). `scan` is the query matched against the pool's
    rules, for a caller who replays with many rules. Without `explain`, layers can omit their decisions; the kept chunks
    are the same. Replays that share `memo` must have the same `explain`.

    `PoolResult.needs` lists what layers lack (rerank scores, verdicts, sentence contributions). Until the pool has it,
    such a layer falls back, and the note in its trace says so."""
    memo = {} if memo is None else memo
    user = visibility.effective_user(user, settings)
    settings = visibility.with_clearance_for(settings, user)
    # If the query compares nothing, the settings of the entities layer make no difference here.
    sides_key = pool.entities and settings.entities
    start = (settings.retrieval.source_pattern, settings.retrieval.lexical, sides_key, user)
    if start not in memo:
        if scan_rules not in memo:
            memo[scan_rules] = scan or scan_rules(pool)
        sides = visibility.visible_entities(pool, user)
        first = entering_hits(pool, settings, user)
        memo[start] = first, replace(pool, entities=sides), {hit.chunk.id: hit for hit in first}
    previous = memo[start]
    hits, pool_with_sides, entered = previous
    shared = memo.setdefault((settings.retrieval, user), {})
    inputs = LayerInput(settings, pool_with_sides, memo[scan_rules], user, shared=shared, explain=explain)
    seen = dict(entered)
    traces: list[LayerTrace] = []
    needs: list[Need] = []
    status: Status = "ok"
    message = ""
    for layer in LAYERS:
        if not layer.enabled(settings):
            traces.append(LayerTrace(layer.name, False, len(hits), len(hits)))
            continue
        # Keyed by identity, because hashing earlier steps is slow; `memo` keeps them alive, so ids stay unique.
        read_sections = tuple(getattr(settings, name, None) for name in (layer.name, *layer.reads))
        key = (layer.name, read_sections, settings.retrieval, id(previous))
        # Looked up as rarely as possible, since each time hashes the settings.
        if (cached := memo.get(key)) is None:
            started = perf_counter()
            output = layer.apply(hits, inputs)
            new = [hit for hit in output.hits if hit.chunk.id not in entered]
            cached = memo.setdefault(key, (output, new, (perf_counter() - started) * 1000))
        output, new, ms = cached
        previous = cached
        details = (output.decisions, output.detail, output.note, ms, output.failed, output.reranked)
        traces.append(LayerTrace(layer.name, True, len(hits), len(output.hits), *details))
        needs.extend(output.needs)
        inputs = inputs.after(output)
        if status == "ok":
            status, message = output.status, output.message
        hits = output.hits
        for hit in new:
            seen.setdefault(hit.id, hit)
    if not hits and seen and not message:
        message = _nothing_left(traces)
    if pool.incomplete:
        # A better match may be among the chunks that cannot be found.
        if status != "insufficient_clearance":
            status = "incomplete_collection"
        message = f"{message} {pool.incomplete}".strip()
    return PoolResult(
        pool.query, settings, pool, tuple(seen.values()), hits, tuple(traces), tuple(needs), status, message, user
    )


def replay_as_user(result: PoolResult, *, memo: ReplayMemo | None = None) -> PoolResult:
    """The result as its user sees it: for the same pool without the chunks that clearance hides.

    Ranks, gaps, counts and reasons refer only to visible chunks, so that nothing reveals a hidden one. Only the message
    that the clearance is insufficient stays. `memo` belongs to the result's own replay."""
    user, pool = result.user, result.pool
    if all(user.sees(hit.chunk) for hit in pool.hits):
        return result
    memo = {} if memo is None else memo
    key = (replay_as_user, user)
    if key not in memo:
        memo[key] = visibility.visible_pool(pool, user), {}
    visible, own = memo[key]
    user_result = replay(visible, result.settings, user, memo=own)
    if result.status == "insufficient_clearance":
        user_result = replace(user_result, status=result.status, message=result.message)
    return user_result


def _nothing_left(traces: Iterable[LayerTrace]) -> str:
    trace = next(trace for trace in traces if trace.n_in and not trace.n_out)
    last = "chunk" if trace.n_in == 1 else f"{trace.n_in} chunks"
    return f"Nothing is left: {trace.layer} dropped the last {last}."


MAX_STEPS = 300
"""Maximum number of cached steps. A step holds one layer's decisions about a pool."""


@dataclass(slots=True)
class Replays:
    """Replays pools and reuses the steps of the last one."""

    # A single value, so that a run that is being stopped cannot mix its steps with the next run's.
    _last: tuple[Pool, ReplayMemo] | None = None

    def of(self, pool: Pool, settings: Settings, user: User | None = None) -> PoolResult:
        """Call `replay` with the pool."""
        return replay(pool, settings, user, memo=self._memo(pool))

    def as_user(self, result: PoolResult) -> PoolResult:
        """Call `replay_as_user` with a result."""
        return replay_as_user(result, memo=self._memo(result.pool))

    def _memo(self, pool: Pool) -> ReplayMemo:
        """The memo for this pool; a new one if the pool is another or the memo is full."""
        last = self._last
        if last is None or last[0] is not pool or len(last[1]) > MAX_STEPS:
            self._last = last = pool, {}
        return last[1]
