"""Where every hit stands on the curve: its x, its y, and which stretch of x is shown. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragfilter.layers.cutoff import LOWERED, RERANK
from ragfilter.model import CutoffDetail, Result
from ragfilter.report import Row
from ragfilter.ui.look import numbers

FEWEST_SHOWN = 10
SPACES = {
    "l2": "squared L2 of unit vectors",
    "cosine": "cosine distance",
    "ip": "1 − inner product",
}


@dataclass(frozen=True, slots=True)
class Points:
    """Where every drawn hit stands: x by row, y by row. `axis` and `unit` name the two axes."""

    rows: tuple[Row, ...]
    x: tuple[int, ...]
    y: tuple[float, ...]
    axis: str
    unit: str


def cut_of(result: Result) -> CutoffDetail | None:
    """What the cutoff did, where it is on and had something to cut."""
    for trace in result.traces:
        if trace.layer == "cutoff" and isinstance(trace.detail, CutoffDetail) and trace.detail.ids:
            return trace.detail
    return None


def drawn(result: Result, *, by_distance: bool) -> CutoffDetail | None:
    """The cut as the curve shows it: none of the scores' cut stands on a curve of distances."""
    detail = cut_of(result)
    return None if by_distance and reranked(detail) else detail


def reranked(detail: CutoffDetail | None) -> bool:
    """Whether the values in force are rerank scores."""
    return detail is not None and detail.value_name == RERANK


def place(result: Result, rows: Sequence[Row], detail: CutoffDetail | None) -> Points:
    """Rank against distance; after a reranker, place against 1 − rerank score; with shared words,
    place against the lowered distance."""
    if reranked(detail):
        scored = sorted(
            (row for row in rows if row.rerank_score is not None),
            key=lambda row: (-(row.rerank_score or 0.0), row.rank),
        )
        return Points(
            rows=tuple(scored),
            x=tuple(range(1, len(scored) + 1)),
            y=tuple(1.0 - (row.rerank_score or 0.0) for row in scored),
            axis="place after reranking"
            f" · {numbers.count(len(rows) - len(scored))} of {numbers.chunks(len(rows))} "
            "have no score: see by distance",
            unit="1 − rerank score",
        )
    ranked = [row for row in rows if row.rank > 0]
    brought = len(rows) - len(ranked)
    if detail is not None and detail.value_name == LOWERED:
        return _lowered(result, ranked)
    return Points(
        rows=tuple(ranked),
        x=tuple(row.rank for row in ranked),
        y=tuple(row.distance for row in ranked),
        axis="rank by distance"
        + (f"; {numbers.chunks(brought)} brought in by an expansion have none" if brought else ""),
        unit=f"distance, {SPACES[result.pool.space]}",
    )


def _lowered(result: Result, rows: Sequence[Row]) -> Points:
    """The hits in the order that the cutoff saw. What fell before words were compared stands where
    its own distance puts it."""
    words = {d.chunk_id: d.value for d in result.trace("words").decisions}
    known = {row.id: words.get(row.id) for row in rows}
    y = {i: row.distance if (v := known[row.id]) is None else v for i, row in enumerate(rows)}
    order = sorted(y, key=lambda i: (y[i], rows[i].rank))
    return Points(
        rows=tuple(rows[i] for i in order),
        x=tuple(range(1, len(order) + 1)),
        y=tuple(y[i] for i in order),
        axis="place by distance less shared words",
        unit="distance less shared words",
    )


def around_cut(result: Result, points: Points, detail: CutoffDetail | None) -> tuple[float, float]:
    """The x from and to that show the cut and what lies just beyond it."""
    settings = result.settings
    k = settings.cutoff.max_results if settings.cutoff.enabled else settings.retrieval.k
    entered = set() if detail is None else set(detail.ids[: detail.cut.kept + 1])
    # A pin, or what an expansion brought, may stand anywhere; the view stays with the others, and
    # the curve names what is beyond.
    reached = [
        x
        for row, x in zip(points.rows, points.x, strict=True)
        if (row.kept or row.id in entered) and row.outcome not in ("pinned", "expanded")
    ]
    last = max(reached, default=0)
    high = max(2 * k, FEWEST_SHOWN, last + 3)
    return 0.3, min(float(high), float(max(points.x, default=FEWEST_SHOWN))) + 0.7
