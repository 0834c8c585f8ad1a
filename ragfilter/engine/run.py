"""Ask one question: gather a pool, decide over it, and complete it until no layer lacks anything."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container
from functools import partial
from time import perf_counter

from ragfilter.basics.threads import check_stopped
from ragfilter.engine.complete import Completion
from ragfilter.engine.gather import Backends, gather_with_scan
from ragfilter.engine.replay import replay, replay_as_user
from ragfilter.layers.base import nearness
from ragfilter.layers.clearance import visible_pool
from ragfilter.model import NeedKind, Pool, PoolResult, User
from ragfilter.settings.schema import Settings

log = logging.getLogger(__name__)

Replay = Callable[[Pool, Settings, User | None], PoolResult]

ROUNDS = 3
"""Maximum number of rounds: a reranker's scores can change what the judge is asked."""


def run(
    query: str, settings: Settings, backends: Backends, user: User | None = None, *, wide: bool = False
) -> PoolResult:
    """Gather and replay until no needs are left, for the command line, `OpenCollection.search` and measurements.

    Without a `user`, the settings decide who asks (`clearance.enabled`). Gathers only what the enabled layers can use
    or, with `wide`, everything that any settings could use and show. Raises InputError for an empty query or a file
    pattern without a match, StoreError, and ModelError (from the embedder). If the collection is incomplete or damaged,
    message and status say so, unless the status is `insufficient_clearance`.
    """
    started = perf_counter()
    pool, scan = gather_with_scan(query, settings, backends, user, wide=wide)
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
    fallback = ", ".join(result.fallbacks) or "none"
    text = "query %r: retrieved=%d, kept=%d, reduction=%.1f%%, ms=%.0f, fallback=%s"
    log.info(text, result.query, n_retrieved, n_kept, 100 * reduction, ms, fallback, extra={"fields": fields})


def complete_all(
    pool: Pool,
    settings: Settings,
    backends: Backends,
    user: User | None = None,
    *,
    kinds: Container[NeedKind] = ("rerank", "judge", "prune"),
    replay: Replay = replay,
    push_down: bool = False,
) -> PoolResult:
    """Replay and complete the pool until no need of these `kinds` is left. `push_down` is as in `Completion`."""
    completion = Completion(settings, backends, user, push_down)
    result = replay(pool, settings, user)
    for _ in range(ROUNDS):
        check_stopped()
        completed = completion.complete(pool, [need for need in result.needs if need.kind in kinds])
        if completed is pool:
            break
        pool = completed
        result = replay(pool, settings, user)
    return result
