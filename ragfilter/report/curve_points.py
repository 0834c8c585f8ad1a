"""The place of every hit on the curve: its x, its y, and the visible range of x. Pure.

The curve is the list that was cut: hits that reached the cutoff are at places 1, 2, 3 … of that
list. Hits dropped earlier are between those places, by their value.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from ragfilter.model import CutoffDetail, PoolResult
from ragfilter.report.rows import ChunkRow
from ragfilter.report.thresholds import CutLine, compared

MIN_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Points:
    """The place of every drawn hit: x by row, y by row. `unit` names the compared value. `entered`
    are the ids that reached the cut, in order; empty if nothing cuts. `labels` are grades by
    id."""

    rows: tuple[ChunkRow, ...]
    x: tuple[float, ...]
    y: tuple[float, ...]
    unit: str
    entered: tuple[str, ...] = ()
    labels: Mapping[str, int] = field(default_factory=dict)

    def folded(self, chosen: str | None) -> Points:
        """Without what was dropped before the cut, but for labelled chunks and the open one."""
        if not self.entered:
            return self
        reached = {*self.entered, *self.labels, chosen}
        at = [i for i, row in enumerate(self.rows) if row.kept or row.id in reached]
        rows, x, y = (tuple(each[i] for i in at) for each in (self.rows, self.x, self.y))
        return replace(self, rows=rows, x=x, y=y)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Frame:
    """The visible ranges of x and y."""

    window: tuple[float, float]
    span: tuple[float, float]


def place(result: PoolResult, rows: Sequence[ChunkRow], detail: CutoffDetail | None) -> Points:
    """Place every hit by its rank in the list that was cut and the value compared there."""
    unit, values = compared(result, detail)
    cut = result.trace("top_k").decisions
    entered = tuple(each.chunk_id for each in cut) if detail is None else detail.ids
    every = [row for row in rows if row.id in values and (row.rank > 0 or row.id in entered)]
    at = _places(entered, [row.id for row in every], values)
    shown = sorted(every, key=lambda row: at[row.id])
    return Points(
        rows=tuple(shown),
        x=tuple(at[row.id] for row in shown),
        y=tuple(values[row.id] for row in shown),
        unit=unit,
        entered=entered,
    )


def _places(
    entered: Sequence[str], every: Sequence[str], values: Mapping[str, float]
) -> dict[str, float]:
    """The x of every hit: its place among `entered`, or a fraction within the step it fell into;
    beyond the last place, one step each. `every` is in order of value."""
    known = [i for i in entered if i in values]
    at = {i: float(place) for place, i in enumerate(known, start=1)}
    # A pinned hit may come before nearer ones. Hits in between are placed by the hits after it.
    reached = list(accumulate((values[i] for i in reversed(known)), min))[::-1]
    between: dict[int, list[str]] = {}
    for i in every:
        if i not in at:
            between.setdefault(bisect_right(reached, values[i]), []).append(i)
    for after, members in between.items():
        members.sort(key=lambda i: values[i])
        share = 1.0 if after == len(known) else 1.0 / (len(members) + 1)
        at |= {i: after + share * n for n, i in enumerate(members, start=1)}
    return at


def around_cut(
    result: PoolResult, points: Points, detail: CutoffDetail | None
) -> tuple[float, float]:
    """The range of x that shows the cut and a little beyond it."""
    settings = result.settings
    k = settings.cutoff.max_results if settings.cutoff.enabled else settings.retrieval.k
    beyond = set() if detail is None else set(detail.ids[: detail.cut.kept + 1])
    k = min(k, len(points.entered) or k)
    # Chunks from an expansion may be anywhere; the view stays with the others.
    reached = [
        x
        for row, x in zip(points.rows, points.x, strict=True)
        if (row.kept or row.id in beyond) and row.outcome != "expanded"
    ]
    last = max(reached, default=0)
    high = max(2 * k, MIN_SHOWN, last + 3)
    return 0.3, min(float(high), max(points.x, default=float(MIN_SHOWN))) + 0.7


def framed(points: Points, window: tuple[float, float], line: CutLine | None) -> Frame:
    """The ranges in which `points` and, if it is close, the `line` can be seen, with room for the
    words below it."""
    seen = [y for x, y in zip(points.x, points.y, strict=True) if window[0] <= x <= window[1]]
    if not seen:
        return Frame(window, (0.0, 1.0))
    low, high = min(seen), max(seen)
    room = max(high - low, 0.05)
    if line is not None and line.limit is not None and line.limit <= high + 0.6 * room:
        low, high = min(low, line.limit), max(high, line.limit)
        room = max(high - low, 0.05)
    return Frame(window, (low - 0.3 * room, high + 0.12 * room))
