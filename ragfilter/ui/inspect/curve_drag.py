"""The curve's lines as handles. The browser drags them and looks up how many chunks each position
would keep. Keys move them too, and step from chunk to chunk.

The server sends the steps with the picture, so dragging needs no request. Releasing a line changes
the setting, as any other control does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from ragfilter.engine.whatif import SettingChange
from ragfilter.layers.strategies.registry import strategy
from ragfilter.model import CutoffDetail, PoolResult
from ragfilter.report.curve_points import Points
from ragfilter.report.thresholds import CutLine, keeps
from ragfilter.settings.schema import field
from ragfilter.stores.labels import GRADES
from ragfilter.ui.inspect.curve_plot import marker_size
from ragfilter.ui.look import frame, theme
from ragfilter.ui.session import state

KEY = "drag"
# The count is announced in an element that persists; a redrawn one is not read aloud.
HTML = '<p class="rf-unseen" aria-live="polite"></p><div class="rf-drag"></div>'


def draw(
    result: PoolResult,
    points: Points,
    detail: CutoffDetail | None,
    line: CutLine | None,
    plot: go.Figure,
    nearest: tuple[SettingChange | None, SettingChange | None],
    titles: Mapping[str, str],
    *,
    tuning: bool,
    told: str,
) -> None:
    """Lay the handles over `plot`. `nearest` are the changes that keep one less and one more,
    `titles` the short titles by id; `told` is the change to announce to screen readers."""
    data = overlay(result, points, detail, plot, titles, state.session().chunk)
    data["lines"] = [] if detail is None else lines(result, detail, line, tuning=tuning)
    data["steps"] = [_step(titles, change) for change in nearest] if detail is not None else []
    data |= (
        {"cut": None, "place": None} if line is None else {"cut": line.limit, "place": line.place}
    )
    # Counts the moves, so that the browser drops its own position even if undo leads back to the
    # same picture.
    data |= {"told": told, "moves": state.session().drag_moves}
    ids = [row.id for row in points.rows]
    frame.mount("inspect/curve_drag.js", HTML, key=KEY, data=data, height="stretch",
                 on_moved_change=_moved, on_walked_change=partial(_walked, ids))  # fmt: skip


def overlay(
    result: PoolResult,
    points: Points,
    detail: CutoffDetail | None,
    plot: go.Figure,
    titles: Mapping[str, str],
    chosen: str | None,
) -> dict[str, Any]:
    """The browser's data: the points that reached the cut, every chunk on the curve with its title
    and label, which one is `chosen`, and the position of the plot's axes."""
    layout = plot.layout
    margin = layout.margin
    at = {row.id: xy for row, *xy in zip(points.rows, points.x, points.y, strict=True)}
    return {
        "points": [at[i] for i in points.entered if i in at],
        "pinned": 0 if detail is None else result.trace("cutoff").count("pinned"),
        "chunks": [
            [*at[row.id], titles[row.id], row.kept, *_label(points.labels.get(row.id))]
            for row in points.rows
        ],
        "open": next((i for i, row in enumerate(points.rows) if row.id == chosen), -1),
        "size": marker_size(layout.xaxis.range[1] - layout.xaxis.range[0]),
        "margin": [margin.l, margin.t, margin.r, margin.b],
        "axes": {
            name: {"range": axis.range, "domain": axis.domain or (0, 1)}
            for name, axis in (("x", layout.xaxis), ("y", layout.yaxis), ("y2", layout.yaxis2))
        },
    }


def _label(grade: int | None) -> tuple[str, str]:
    """What the curve shows of a label, and what a screen reader says."""
    if grade is None:
        return "", ""
    return f"{theme.LABELLED} {grade}", f", labelled {GRADES.get(grade, grade)}"


def _step(titles: Mapping[str, str], change: SettingChange | None) -> dict[str, Any] | None:
    """A button's setting, value and what it would change, in words."""
    if change is None:
        return None

    def named(ids: Sequence[str]) -> str:
        more = f" and {len(ids) - 2} more" if len(ids) > 2 else ""
        return ", ".join(f"“{titles.get(i, i)}”" for i in ids[:2]) + more

    moved = (("keeps", change.came), ("drops", change.went))
    moves = " and ".join(f"{verb} {named(ids)}" for verb, ids in moved if ids)
    return {"path": change.path, "value": change.new, "about": f"{change.words} {moves}."}


def lines(
    result: PoolResult, detail: CutoffDetail, line: CutLine | None, *, tuning: bool
) -> list[dict[str, Any]]:
    """The thresholds of the strategy that cut: each with the axis of its line, and the base and
    factor that convert its value to a position there. While nothing is tuned, only that of the
    line which cuts."""
    reads = strategy(detail.cut.strategy).reads
    best = min(detail.values[: len(detail.cut.gaps) + 1])
    places = {
        "max_results": ("x", 0.5, 1.0),
        "gap_threshold": ("y2", 0.0, 1.0),
        "distance_offset": ("y", best, 1.0),
        "relative_offset": ("y", best, (detail.background or best) - best),
    }
    cuts = ""
    if line is not None and (line.place or line.limit is not None):
        cuts = "x" if line.place else "y" if line.limit == detail.cut.limit else ""
    return [
        _line(result, name, *place) | {"drawn": place[0] in ("y2", cuts)}
        for name, place in places.items()
        if name in reads and place[-1] > 0 and (tuning or place[0] == cuts)
    ]


def _line(result: PoolResult, name: str, axis: str, base: float, per: float) -> dict[str, Any]:
    info, value = field(f"cutoff.{name}"), result.settings.get(f"cutoff.{name}")
    low, step = info.low or 0, info.step or 1
    # As far as the setting's slider reaches.
    count = round((max(info.ceiling or info.high or low, value) - low) / step)
    values = tuple(info.value_type(round(low + step * i, 6)) for i in range(count + 1))
    return {
        "path": info.path, "label": info.label, "axis": axis, "base": base, "per": per,
        "low": low, "step": step, "count": count, "digits": 0 if info.value_type is int else 3,
        "value": value, "steps": keeps(result, name, values),
    }  # fmt: skip


def _walked(ids: Sequence[str]) -> None:
    state.open_chunk(ids[st.session_state[KEY].walked])


def _moved() -> None:
    state.session().drag_moves += 1
    moved = st.session_state[KEY].moved
    state.change({moved["path"]: field(moved["path"]).value_type(moved["value"])})
