"""The shape of every layer: `apply(hits, inputs) -> LayerOutput`, pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from ragfilter.layers.strategies.base import far_end
from ragfilter.model import Decision, Detail, Hit, Pending, Pool, Status, User, similarity
from ragfilter.rules.match import Scan

if TYPE_CHECKING:
    from ragfilter.settings.schema import Settings


BACKGROUND_FROM = 50
"""Smallest pool from which the background distance is estimated."""


@dataclass(frozen=True, slots=True)
class LayerInput:
    """What a layer may read: the settings, the pool, the scanned query, the user, the pins with the
    reason of each, whether an earlier layer put the hits in a reranker's order, and the lowered
    distances. `shared` is what layers compute once for all of them. Without `explain`, nobody reads
    decisions, details and notes, and a layer may leave them out.
    """

    settings: Settings
    pool: Pool
    rules: Scan
    user: User
    pinned: Mapping[str, str] = field(default_factory=dict)
    reranked: bool = False
    lowered: Mapping[str, float] = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict, compare=False)
    explain: bool = True

    @property
    def found(self) -> tuple[Hit, ...]:
        """What the query itself found and the user may see: the first pool_size, however far the
        pool was doubled."""
        if "found" not in self.shared:
            own = (h for h in self.pool.hits if h.found_by == "query" and self.user.sees(h.chunk))
            self.shared["found"] = tuple(islice(own, self.settings.retrieval.pool_size))
        found: tuple[Hit, ...] = self.shared["found"]
        return found

    @property
    def far_end(self) -> float | None:
        """The mean distance of the farther half of what the query found, None if that is too
        little to tell."""
        if "far_end" not in self.shared:
            distances = [hit.distance for hit in self.found]
            deep = len(distances) >= BACKGROUND_FROM
            self.shared["far_end"] = far_end(distances) if deep else None
        end: float | None = self.shared["far_end"]
        return end

    @property
    def background(self) -> float | None:
        """The distance of chunks that have nothing to do with the query: the mean of the farther
        half of the hits that it found. None if there are too few, or the store gives no distances.
        """
        return None if self.pool.space == "rank" else self.far_end

    def similarity(self, hit: Hit) -> float:
        return similarity(hit.distance, self.pool.space)

    def after(self, step: LayerOutput) -> LayerInput:
        """What the next layer may look at."""
        if not (step.pinned or step.lowered or step.reranked):
            return self
        # Not by `replace`, which takes five times as long: a matrix of rules asks often.
        return LayerInput(
            self.settings,
            self.pool,
            self.rules,
            self.user,
            pinned={**step.pinned, **self.pinned},
            lowered=step.lowered or self.lowered,
            reranked=self.reranked or step.reranked,
            shared=self.shared,
            explain=self.explain,
        )


@dataclass(frozen=True, slots=True)
class LayerOutput:
    """What a layer returns: the hits that go on, in order, and every decision.

    `failed`: a model failed, so the layer fell back. `reranked` says that the order is now a
    reranker's. `lowered` has the distances that decide the order, if they are not the hits' own.
    """

    hits: tuple[Hit, ...]
    decisions: tuple[Decision, ...] = ()
    needs: tuple[Pending, ...] = ()
    detail: Detail = None
    note: str = ""
    status: Status = "ok"
    message: str = ""
    pinned: Mapping[str, str] = field(default_factory=dict)
    reranked: bool = False
    lowered: Mapping[str, float] = field(default_factory=dict)
    failed: bool = False


def in_order(place: int, hit: Hit) -> str:
    """What a reason begins with that a hit is too far down: its place among those that came to the
    layer, where that is not its rank."""
    return "" if place == hit.rank else f"place {place} in this order, "


Layer = Callable[[tuple[Hit, ...], LayerInput], LayerOutput]
