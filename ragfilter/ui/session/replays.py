"""The replays of one session: what a change leaves as it was is not decided again."""

from __future__ import annotations

from dataclasses import dataclass, field

from ragfilter.engine.replay import Steps, as_user, replay
from ragfilter.model import Pool, Result, User
from ragfilter.settings.schema import Settings

MOST = 300
"""Steps kept. One is the decisions of a layer over a pool."""


@dataclass(slots=True)
class Replays:
    """Replays of one pool after another. For one thread, as a session's page is."""

    _pool: Pool | None = None
    _steps: Steps = field(default_factory=dict)

    def of(self, pool: Pool, settings: Settings, user: User) -> Result:
        """`replay` of the pool."""
        if pool is not self._pool or len(self._steps) > MOST:
            self._pool, self._steps = pool, {}
        return replay(pool, settings, user, steps=self._steps)

    def as_user(self, result: Result) -> Result:
        """`as_user` of a result."""
        return as_user(result, steps=self._steps if result.pool is self._pool else None)
