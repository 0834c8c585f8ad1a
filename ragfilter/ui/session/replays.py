"""The replays of one session: what a change leaves as it was is not decided again."""

from __future__ import annotations

from dataclasses import dataclass

from ragfilter.engine.replay import Steps, as_user, replay
from ragfilter.model import Pool, Result, User
from ragfilter.settings.schema import Settings

MOST = 300
"""Steps kept. One is the decisions of a layer over a pool."""


@dataclass(slots=True)
class Replays:
    """Replays of one pool after another."""

    # One value, since a run that is being stopped may still be here beside the next.
    _last: tuple[Pool | None, Steps] = (None, {})

    def of(self, pool: Pool, settings: Settings, user: User) -> Result:
        """`replay` of the pool."""
        last, steps = self._last
        if pool is not last or len(steps) > MOST:
            steps = {}
            self._last = pool, steps
        return replay(pool, settings, user, steps=steps)

    def as_user(self, result: Result) -> Result:
        """`as_user` of a result."""
        last, steps = self._last
        return as_user(result, steps=steps if result.pool is last else None)
