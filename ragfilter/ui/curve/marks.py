"""What is drawn around the curve's points: cliffs, cut, fallback, k, and the steps. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragfilter.layers.cutoff import Cutoff
from ragfilter.layers.strategies.registry import strategy
from ragfilter.model import CutoffDetail
from ragfilter.ui.look import numbers, theme

Shapes = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Ink:
    """The curve's colours in one theme; `band` is translucent."""

    text: str
    muted: str
    line: str
    surface: str
    kept: str
    curve: str
    band: str

    @classmethod
    def of(cls, dark: bool) -> Ink:
        i = int(dark)
        return cls(
            text=theme.TEXT[i],
            muted=theme.MUTED[i],
            line=theme.LINE[i],
            surface=theme.SURFACE[i],
            kept=theme.OUTCOMES["kept"].colour(dark=dark),
            curve="#5a7f86" if dark else "#6f8c90",
            band="rgba(60,196,180,0.16)" if dark else "rgba(15,118,110,0.10)",
        )


def steps(detail: CutoffDetail, at: Mapping[str, int], ink: Ink, *, width: float) -> dict[str, Any]:
    """The gaps between neighbours in the cutoff's list, as bars `width` ranks wide."""
    xs, ys, colours, hover, patterns = [], [], [], [], []
    winner = detail.cut.cliff_after_rank
    for gap in detail.cut.gaps:
        between = _between(detail.ids, at, gap.after_rank)
        if between is None or gap.size < 0 or (gap.skipped and _jumps(between, detail, at)):
            continue
        strong = gap.after_rank == winner
        size = numbers.distance(gap.size)
        state = "the cliff" if strong else "skipped" if gap.skipped else "step"
        xs.append(sum(between) / 2)
        ys.append(gap.size)
        colours.append(ink.kept if strong else ink.muted if gap.cliff else ink.curve)
        hover.append(f"{state} after hit {gap.after_rank}: {size}")
        patterns.append("/" if gap.skipped else "")
    return {
        "type": "bar",
        "x": xs,
        "y": ys,
        "yaxis": "y2",
        "width": [width] * len(xs),
        "marker": {
            "color": colours,
            "line": {"width": 0},
            "pattern": {"shape": patterns, "size": 5, "solidity": 0.35},
        },
        "hovertext": hover,
        "hoverinfo": "text",
        "selected": {"marker": {"opacity": 1}},
        "unselected": {"marker": {"opacity": 1}},
    }


def cut_marks(
    shapes: Shapes,
    notes: Shapes,
    settings: Cutoff,
    detail: CutoffDetail,
    at: Mapping[str, int],
    span: tuple[float, float],
    ink: Ink,
) -> None:
    """Bands, lines and labels: cliffs, skipped gap, cut, fallback line, k, gap threshold."""
    cut = detail.cut
    for gap in cut.gaps:
        between = _between(detail.ids, at, gap.after_rank)
        if between is None or gap.size < 0 or (gap.skipped and _jumps(between, detail, at)):
            continue
        x0, x1 = between
        if gap.after_rank == cut.cliff_after_rank:
            shapes.append(_band(x0, x1, ink))
            label = f"<b>cliff {numbers.distance(gap.size)}</b>"
            notes.append(_label((x0 + x1) / 2, 1.0, label, ink.kept, yref="paper"))
        elif gap.cliff or (gap.skipped and gap.after_rank == 1):
            word = numbers.distance(gap.size) if gap.cliff else "skipped"
            note = _label((x0 + x1) / 2, gap.size, word, ink.muted, yref="y2")
            font = {"size": 11, "color": ink.muted}
            if not gap.cliff:
                # Beside its bar: over it, at the left edge, it would stand on the axis.
                note |= {"xanchor": "left", "xshift": 8, "yanchor": "middle", "y": gap.size / 2}
            notes.append({**note, "font": font, "bgcolor": ink.surface, "borderpad": 0})
        if gap.cliff and gap.after_rank != cut.cliff_after_rank:
            shapes.append(_rule((x0 + x1) / 2, ink.muted, dash="dot", width=1))
    ends = _between(detail.ids, at, cut.kept)
    if ends is not None:
        shapes.append(_rule(sum(ends) / 2, ink.kept, dash="solid", width=1.2))
    reads = strategy(settings.strategy).reads
    if "distance_offset" in reads:
        text = f"fallback: best + {numbers.distance(settings.distance_offset)}"
        limit = fallback(detail, settings.distance_offset)
        _mark_limit(shapes, notes, text, limit, span, ink, decides=cut.limit is not None)
    elif cut.limit is not None:
        text = strategy(cut.strategy).cliff(settings).lower()
        _mark_limit(shapes, notes, text, cut.limit, span, ink, decides=True)
    if "gap_threshold" in reads:
        _mark_threshold(shapes, notes, detail, settings.gap_threshold, ink)
    k_mark(shapes, notes, detail.ids, settings.max_results, at, ink)


def k_mark(
    shapes: Shapes,
    notes: Shapes,
    ids: Sequence[str],
    k: int,
    at: Mapping[str, int],
    ink: Ink,
    *,
    cuts: bool = False,
) -> None:
    """The line after the first k of `ids`, or a word where fewer came in. `cuts`: nothing else
    limits the result, so that it is the cut."""
    beyond = _between(ids, at, k)
    if beyond is not None:
        x = sum(beyond) / 2
        dash = "solid" if cuts else "dash"
        shapes.append(_rule(x, ink.kept if cuts else ink.muted, dash=dash, width=1.2))
        low = _label(x, 0.30, f"k {k}", ink.muted, yref="paper")
        notes.append({**low, "xanchor": "left", "xshift": 3})
    elif ids and k >= len(ids):
        low = _label(1.0, 0.30, f"k {k}: not reached", ink.muted, xref="paper", yref="paper")
        notes.append({**low, "xanchor": "right"})


def _mark_threshold(
    shapes: Shapes, notes: Shapes, detail: CutoffDetail, threshold: float, ink: Ink
) -> None:
    """The line in the strip of steps that a cliff must reach."""
    top = steps_top(detail)
    text = f"threshold {numbers.distance(threshold)}"
    if threshold > top:
        text, threshold = f"{text}, above", 0.72 * top
    else:
        line = {"color": ink.text, "width": 1, "dash": "dot"}
        shapes.append(_level(threshold, line, yref="y2"))
    note = _label(1.0, threshold, text, ink.muted, xref="paper", yref="y2")
    notes.append({**note, "xanchor": "right"})


def steps_top(detail: CutoffDetail) -> float:
    """The upper end of the strip of steps. It depends on the hits alone, so that the threshold's
    line moves and the bars stand still."""
    return max(1.5 * max((gap.size for gap in detail.cut.gaps), default=0.0), 0.04)


def _mark_limit(
    shapes: Shapes,
    notes: Shapes,
    text: str,
    limit: float,
    span: tuple[float, float],
    ink: Ink,
    *,
    decides: bool,
) -> None:
    """The line up to which hits stay: strong where it decides, quiet otherwise."""
    colour = ink.kept if decides else ink.muted
    if limit > span[1]:
        above = f"{text} = {numbers.distance(limit)}, above"
        note = _label(1.0, 1.0, above, colour, xref="paper", yref="paper")
        notes.append({**note, "xanchor": "right", "yanchor": "top"})
        return
    line = {"color": colour, "width": 1.6 if decides else 1, "dash": "solid" if decides else "dot"}
    shapes.append(_level(limit, line))
    # The curve rises, so that above the line the left end is free.
    note = _label(0.0, limit, f"<b>{text}</b>" if decides else text, colour, xref="paper")
    notes.append({**note, "xanchor": "left", "xshift": 2})


def fallback(detail: CutoffDetail, offset: float) -> float:
    """The value up to which hits stay where there is no cliff."""
    if detail.cut.limit is not None:
        return detail.cut.limit
    return min(detail.values[: len(detail.cut.gaps) + 1]) + offset


def _jumps(between: tuple[float, float], detail: CutoffDetail, at: Mapping[str, int]) -> bool:
    """Whether other hits of the list lie between the two, as they may between pins: a skipped step
    over them is not drawn, since it would cover theirs."""
    others = (at[i] for i in detail.ids if i in at)
    return any(between[0] < x < between[1] for x in others)


def _between(ids: Sequence[str], at: Mapping[str, int], after: int) -> tuple[float, float] | None:
    """The x to the left and right of the step after the hit at the 1-based place `after`.

    Pins stand first in the cutoff's list but anywhere on the axis: the step then begins at the
    last of what stands before it.
    """
    if not 0 < after < len(ids):
        return None
    left, right = at.get(ids[after - 1]), at.get(ids[after])
    if left is None or right is None:
        return None
    before = [x for i in ids[:after] if (x := at.get(i)) is not None and x < right]
    left = max(before, default=left)
    return float(min(left, right)), float(max(left, right))


def _band(x0: float, x1: float, ink: Ink) -> dict[str, Any]:
    return {
        "type": "rect", "x0": x0, "x1": x1, "yref": "paper", "y0": 0, "y1": 1,
        "fillcolor": ink.band, "line": {"width": 0}, "layer": "below",
    }  # fmt: skip


def _rule(x: float, colour: str, *, dash: str, width: float) -> dict[str, Any]:
    return {
        "type": "line", "x0": x, "x1": x, "yref": "paper", "y0": 0.28, "y1": 1,
        "line": {"color": colour, "width": width, "dash": dash}, "layer": "below",
    }  # fmt: skip


def _level(y: float, line: dict[str, Any], *, yref: str = "y") -> dict[str, Any]:
    return {
        "type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": yref, "y0": y, "y1": y,
        "line": line,
    }  # fmt: skip


def _label(
    x: float, y: float, text: str, colour: str, *, xref: str = "x", yref: str = "y"
) -> dict[str, Any]:
    return {
        "x": x, "y": y, "xref": xref, "yref": yref, "text": text, "showarrow": False,
        "font": {"size": 12, "color": colour}, "yanchor": "bottom",
    }  # fmt: skip
