"""From a question to its pool, with as few calls as possible.

A pool is gathered when a question is asked, and cached for all sessions. Sliders only replay it.
Local rerank scores and the LLM's earlier answers are fetched with the question. If a later change
of settings lacks something, it stays a `Pending`, which the page offers as a button.
"""

from __future__ import annotations

from ragfilter.engine import complete
from ragfilter.engine.complete import Replay, forget_failures, join_pools, look_up
from ragfilter.engine.replay import count_clean, renew_rules, replay
from ragfilter.engine.retrieve import gather, target
from ragfilter.model import PendingKind, Pool, PoolResult, User
from ragfilter.settings.schema import Settings
from ragfilter.ui.session.resources import Resources
from ragfilter.ui.session.state import AskedQuestion, PoolReach


def reach(settings: Settings, user: User) -> PoolReach:
    """How far a question asked now would reach."""
    return PoolReach(
        pool_size=settings.retrieval.pool_size,
        wanted=target(settings),
        user=user,
        source_pattern=settings.retrieval.source_pattern,
    )


def put(
    query: str, collection: str, settings: Settings, user: User, resources: Resources
) -> AskedQuestion:
    """A question asked now, of the current version of the collection. Raises StoreError."""
    version = resources.bench.collection(collection).version
    return AskedQuestion(query, collection, version, reach(settings, user))


def pool_of(asked: AskedQuestion, settings: Settings, resources: Resources) -> Pool:
    """The pool of a question, from the cache or gathered. Raises RagfilterError."""
    pool = resources.pools.get(asked)
    if pool is None:
        reach = asked.reach
        wide = settings.with_values({"retrieval.pool_size": reach.pool_size,
                                     "retrieval.source_pattern": reach.source_pattern})  # fmt: skip
        pool = gather(asked.query, wide, resources.backends(asked.collection), reach.user)
        pool = keep(asked, pool, resources)
    return pool


def keep(asked: AskedQuestion, pool: Pool, resources: Resources) -> Pool:
    """Cache a pool, joined with what models have added to it for other sessions."""
    pools = resources.pools
    with pools.lock:
        before = pools.get(asked)
        return pools.put(asked, pool if before is None else join_pools(pool, before))


def follow(
    asked: AskedQuestion, before: str, settings: Settings, user: User, resources: Resources
) -> AskedQuestion | None:
    """The question after an edit of rules in its collection, which had the version `before`, with
    the new rules in its pool. None if it has to be asked again. Raises StoreError."""
    now = put(asked.query, asked.collection, settings, user, resources)
    pool = resources.pools.get(asked)
    if pool is None or (asked.version, asked.reach) != (before, now.reach):
        return None
    chunks = resources.bench.collection(asked.collection).catalogue()
    if chunks is None:
        return None
    pool = renew_rules(pool, chunks, settings, now.reach.user, now.reach.wanted)
    if pool is None:
        return None
    keep(now, pool, resources)
    return now


def settle(
    asked: AskedQuestion,
    pool: Pool,
    settings: Settings,
    user: User,
    resources: Resources,
    *,
    score: bool = True,
    replay: Replay = replay,
) -> Pool:
    """The pool with the rerank scores that the settings need (unless `score` is False) and the
    LLM's cached replies to the same prompt; the LLM is never called here. A failed reranking is
    tried again, because the user asked again. `replay` may cache its steps for the page, which
    replays next."""
    pool = forget_failures(pool, "rerank")
    backends = resources.backends(asked.collection)
    kinds: tuple[PendingKind, ...] = ("rerank",) if score else ()
    result = complete.settle(pool, settings, backends, user, kinds=kinds, replay=replay)
    pool = look_up(result.pool, result.needs, settings, backends, user)
    return keep(asked, pool, resources)


def falls_short(asked: AskedQuestion, result: PoolResult, settings: Settings) -> bool:
    """Whether asking again would add to the pool: it was limited to other files, a larger one is
    set now, or too few of its hits are clean for the current settings."""
    now = reach(settings, result.user)
    if result.pool.source_pattern not in ("", now.source_pattern):
        return True
    if result.pool.complete:
        return False
    if now.pool_size > asked.reach.pool_size:
        return True
    changed = (
        now.wanted > asked.reach.wanted
        or now.user != asked.reach.user
        or now.source_pattern != asked.reach.source_pattern
    )
    return changed and count_clean(result.pool, settings, result.user) < now.wanted
