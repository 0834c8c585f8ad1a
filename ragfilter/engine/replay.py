"""`replay`: a pure function from pool and settings to result. Source: docs/design.md#replay.

`Replays` remembers the steps of the last pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from ragfilter.engine.search import matcher
from ragfilter.layers import visibility
from ragfilter.layers.base import LayerInput, LayerSpec
from ragfilter.layers.registry import LAYERS
from ragfilter.layers.visibility import is_clean
from ragfilter.model import Chunk, Hit, LayerTrace, Need, Pool, PoolResult, Status, User
from ragfilter.rules.match import Scan, rule_book
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

    `PoolResult.needs` lists what layers lack (rerank scores, verdicts, sentence contributions).
    Until the pool has it, such a layer falls back, and the note in its trace says so.
    """
    memo = {} if memo is None else memo
    user = visibility.effective_user(user, settings)
    settings = visibility.with_clearance(settings, user)
    # If the query compares nothing, the settings of the entities layer make no difference here.
    sides_key = pool.entities and settings.entities
    start = (settings.retrieval.source_pattern, settings.retrieval.lexical, sides_key, user)
    if start not in memo:
        if scan_rules not in memo:
            memo[scan_rules] = scan or scan_rules(pool)
        sides = visibility.visible_entities(pool, user)
        first = entering_hits(pool, settings, user)
        memo[start] = first, replace(pool, entities=sides), {hit.chunk.id: hit for hit in first}
    hits, pool_with_sides, entered = before = memo[start]
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
        # By identity: `memo` keeps the earlier steps alive, and hashing them would take long.
        own = tuple(getattr(settings, name, None) for name in (layer.name, *layer.reads))
        key = (layer.name, own, settings.retrieval, id(before))
        # Looked up as rarely as possible, since each time hashes the settings.
        if (known := memo.get(key)) is None:
            started = perf_counter()
            output = layer.apply(hits, inputs)
            new = [hit for hit in output.hits if hit.chunk.id not in entered]
            known = memo.setdefault(key, (output, new, (perf_counter() - started) * 1000))
        step, new, ms = before = known
        n_in, n_out = len(hits), len(step.hits)
        traces.append(
            LayerTrace(
                layer.name, True, n_in, n_out, step.decisions, step.detail, step.note, ms, step.failed, step.reranked
            )
        )
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
        # A better match may be among the chunks that cannot be found.
        if status != "insufficient_clearance":
            status = "incomplete_collection"
        message = f"{message} {pool.incomplete}".strip()
    return PoolResult(
        pool.query, settings, pool, tuple(seen.values()), hits, tuple(traces), tuple(needs), status, message, user
    )


def keep(
    layers: Iterable[LayerSpec], hits: tuple[Hit, ...], inputs: LayerInput
) -> tuple[tuple[Hit, ...], tuple[Need, ...]]:
    """Apply `layers` to `hits` in turn. Returns the kept hits and the layers' needs."""
    needs: list[Need] = []
    for layer in layers:
        step = layer.apply(hits, inputs)
        hits, inputs = step.hits, inputs.after(step)
        needs += step.needs
    return hits, tuple(needs)


def replay_as_user(result: PoolResult, *, memo: ReplayMemo | None = None) -> PoolResult:
    """The result as its user sees it: for the same pool without the chunks that clearance hides.

    Ranks, gaps, counts and reasons refer only to visible chunks, so that nothing reveals a hidden one. Only the message
    that the clearance is insufficient stays. `memo` belongs to the result's own replay.
    """
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


def entering_hits(pool: Pool, settings: Settings, user: User | None = None) -> tuple[Hit, ...]:
    """The hits that enter the first layer: the query's own and, if entities are on, each side's.

    All are from files that match `source_pattern`, even if the pool was gathered without it. If the
    pattern matches only files that are hidden from the user, there are none, as in `gather`.
    """
    own: tuple[str, ...] = ("query", "rules")
    hits = _of_files(pool.hits, settings)
    user = visibility.effective_user(user, settings)
    if settings.retrieval.lexical and pool.lexical_user == user:
        own = (*own, "lexical")
    elif pool.lexical_user is not None:
        hits = tuple(replace(hit, scores={}) if hit.scores else hit for hit in hits)
    if not any(user.sees(hit.chunk) for hit in hits) and settings.retrieval.source_pattern.strip():
        return ()
    if not settings.entities.enabled:
        return tuple(hit for hit in hits if hit.found_by in own)
    sides = (*pool.entities, *visibility.visible_entities(pool, user))
    wanted = {i for side in sides for i in side.ids[: settings.entities.per_entity]}
    return tuple(hit for hit in hits if hit.found_by in own or hit.id in wanted)


def with_rules(pool: Pool, rules: Mapping[str, str | None]) -> Pool:
    """Replace the rules of the pool's chunks (by id, None for no rule), without a new search: it
    misses chunks that only gathering again would find."""

    def changed(chunk: Chunk) -> Chunk:
        return replace(chunk, rule=rules[chunk.id]) if chunk.id in rules else chunk

    hits, reachable = (visibility.with_chunks(each, changed) for each in (pool.hits, pool.reachable))
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

    Clearance applies here too, if it is on: the comparison must not show hidden chunks.
    """
    user = visibility.effective_user(user, settings)
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
