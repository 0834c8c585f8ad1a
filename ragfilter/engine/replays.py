"""Replays of one pool after another. Layers that a change does not affect do not run again."""

from __future__ import annotations

from dataclasses import dataclass

from ragfilter.engine.replay import ReplayMemo, as_user, replay
from ragfilter.model import Pool, PoolResult, User
from ragfilter.settings.schema import Settings

MOST = 300
"""Maximum number of cached steps. A step is the decisions of one layer on a pool."""


@dataclass(slots=True)
class Replays:
    """Replays pools and reuses the steps of the last one."""

    # One value, so that a run which is being stopped cannot mix its steps with those of the next.
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
        if last is None or last[0] is not pool or len(last[1]) > MOST:
            self._last = last = pool, {}
        return last[1]
