"""The one shape every layer has: `apply(hits, look) -> LayerOutput`, pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragfilter.model import Decision, Detail, Hit, Pending, Pool, Status, User, similarity
from ragfilter.rules.match import Scan

if TYPE_CHECKING:
    from ragfilter.settings.schema import Settings


@dataclass(frozen=True, slots=True)
class LayerInput:
    """What a layer may look at: the settings, the pool, the scanned query, as whom, the pins, and
    whether a layer before it put the hits in a reranker's order."""

    settings: Settings
    pool: Pool
    rules: Scan
    user: User
    pinned: frozenset[str] = frozenset()
    reranked: bool = False

    def similarity(self, hit: Hit) -> float:
        return similarity(hit.distance, self.pool.space)


@dataclass(frozen=True, slots=True)
class LayerOutput:
    """What a layer made of the hits it got: those that go on, in order, and every decision.

    `reranked` says that the order is now a reranker's, and not by distance.
    """

    hits: tuple[Hit, ...]
    decisions: tuple[Decision, ...] = ()
    needs: tuple[Pending, ...] = ()
    detail: Detail = None
    note: str = ""
    status: Status = "ok"
    message: str = ""
    pinned: frozenset[str] = frozenset()
    reranked: bool = False


Layer = Callable[[tuple[Hit, ...], LayerInput], LayerOutput]
