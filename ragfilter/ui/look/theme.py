"""The palette of outcomes and layers: a colour, a sign and a marker shape for each. Every view and plot uses it, so
that things look the same in curve, funnel, table and panel. Signs and shapes differ as well as colours. People with any
kind of colour vision can tell the colours apart, in light and dark; tests/test_theme.py has the figures. Also what all
Plotly plots share: ink, traces, markers and drawing."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import streamlit as st

from ragfilter.layers import registry
from ragfilter.layers.layer import Mark
from ragfilter.model import Outcome

if TYPE_CHECKING:
    import plotly.graph_objects as go

OUTCOMES: dict[Outcome, Mark] = {
    "kept": Mark("●", "circle", "#0f766e", "#3cc4b4"),
    "pinned": Mark("★", "star", "#5727b4", "#aabeed"),
    "expanded": Mark("✚", "cross", "#1177e3", "#5f92cb"),
    "fallback": Mark("■", "square", "#9b7247", "#f7d15a"),
}

LAYERS: dict[str, Mark] = {layer.name: layer.mark for layer in registry.LAYERS}

RULE_SIGNS = {
    "invalid": ("✕", LAYERS["query_must"]),
    "warning": ("!", OUTCOMES["fallback"]),
    "none": ("○", LAYERS["context"]),
    "note": ("◦", OUTCOMES["kept"]),
    "valid": ("●", OUTCOMES["kept"]),
    "draft": ("✎", OUTCOMES["pinned"]),
    "changed": ("↑", OUTCOMES["expanded"]),
}
"""The sign of each state of a rule, the same on every page."""
RULE_STATES_HELP = (
    "invalid: cannot work. warning: questioned by the linter. none: no rule. note: the linter can improve it. valid: "
    "no finding. draft: not saved. changed: edited since the last export, or ever if nothing was exported."
)

ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="64" height="64" viewBox="0 0 22 22">'
    '<rect width="22" height="22" rx="6" fill="#0f766e"/>'
    '<path d="M4.5 15.5h3.7c2.6 0 2.6-8.7 5.2-8.7h4.1" fill="none" stroke="#fff" '
    'stroke-width="1.8" stroke-linecap="round"/>'
    '<circle cx="4.9" cy="15.5" r="1.8" fill="#fff"/></svg>'
)
"""The product's logo: a curve with its cliff, embedded so that it needs no network."""

TEXT = ("#1b2527", "#e3e9e7")
MUTED = ("#5b696b", "#93a2a2")
LINE = ("#dcdfd8", "#2b3638")
SURFACE = ("#ffffff", "#161d1f")
LABELLED = "⚑"
"""The sign before the grade that somebody gave a chunk."""
LOST = ("#b3261e", "#ff9d94")
"""A chunk that a labelled question needs and would lose."""
ON_PRIMARY = ("#ffffff", "#06211d")
"""The text of the main buttons: Streamlit's white is too faint on the dark theme's primary."""


def is_dark() -> bool:
    """Whether the visitor sees the page in its dark theme."""
    return st.context.theme.type == "dark"


def mark(outcome: Outcome, layer: str, setting: str = "") -> Mark:
    """The mark of the layer and `setting` that dropped the hit; otherwise of the outcome."""
    if outcome != "dropped":
        return OUTCOMES[outcome]
    return registry.layer(layer).marks.get(setting, LAYERS[layer])


def chips(*, dark: bool) -> dict[str, str]:
    """The tint of every sign-and-word combination in a table."""
    kept = {f"{m.sign} {name}": tint(m, dark) for name, m in OUTCOMES.items()}
    marks = (mark for layer in registry.LAYERS for mark in (layer.mark, *layer.marks.values()))
    return kept | {f"{m.sign} dropped": tint(m, dark) for m in marks}


def rule_state(word: str) -> str:
    """``✎ draft``."""
    return f"{RULE_SIGNS[word][0]} {word}"


def rule_chips(*, dark: bool) -> dict[str, str]:
    """The tint of each state of a rule."""
    return {rule_state(word): tint(mark, dark) for word, (_, mark) in RULE_SIGNS.items()}


def verdicts(*, dark: bool) -> dict[str, str]:
    """The tint of each verdict sign: the outcome's or, for dropped chunks, the judge's."""
    marks = (*OUTCOMES.values(), LAYERS["judge"])
    return {mark.sign: tint(mark, dark) for mark in marks}


def tint(mark: Mark, dark: bool) -> str:
    """A mark's colour blended with the page background, used behind a chip."""
    share, ground = (0.30, SURFACE[1]) if dark else (0.16, SURFACE[0])
    pairs = zip(_rgb(mark.colour(dark=dark)), _rgb(ground), strict=True)
    return "#" + "".join(f"{round(share * a + (1 - share) * b):02x}" for a, b in pairs)


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


@cache
def stylesheet(*, dark: bool) -> str:
    """The page's style sheet: the palette as variables, then `style.css`. `light-dark()` follows the theme in the
    browser, so a switch needs no rerun. Only dialogs and popovers, outside the element that Streamlit themes, need
    `dark`."""
    pairs = {"text": TEXT, "muted": MUTED, "line": LINE, "surface": SURFACE, "on-primary": ON_PRIMARY, "lost": LOST}
    pairs |= {name: (m.light, m.dark) for name, m in OUTCOMES.items()}
    pairs |= {f"layer-{name}": (m.light, m.dark) for name, m in LAYERS.items()}
    variables = "".join(f"--rf-{name}: light-dark({light}, {dark});" for name, (light, dark) in pairs.items())
    icon = b64encode(ICON.encode()).decode()
    variables += f"--rf-icon: url('data:image/svg+xml;base64,{icon}');"
    css = files("ragfilter.ui.look").joinpath("style.css").read_text(encoding="utf-8")
    scheme = "dark" if dark else "light"
    css += _printed_light(pairs.values()) if dark else ""
    return f"<style>:root {{color-scheme: {scheme};{variables}}}\n{css}</style>"


def _printed_light(pairs: Iterable[tuple[str, str]]) -> str:
    """Rules that print plots and tables drawn in dark colours in the light ones."""
    rules = (
        f'.main-svg [style*="{what}:{written}"] {{{what}: {light} !important}}'
        for light, dark in pairs
        for what in ("fill", "stroke")
        for written in (f" rgb{_rgb(dark)}", dark)
    )
    table = ".stDataFrame canvas {filter: invert(1) hue-rotate(180deg)}"
    return f"@media print {{{''.join(rules)}{table}}}"


FONT = '"Source Sans", "Source Sans Pro", sans-serif'
CLEAR = "rgba(0,0,0,0)"
THREE_DECIMALS = {"tickformat": ".3f"}
"""The axis of a measure or a distance, with as many decimals as in tables."""
LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}


class Ink:
    """The colours of plots in one theme; `band` is translucent."""

    def __init__(self, dark: bool) -> None:
        self.text, self.muted, self.line, self.surface = (pair[dark] for pair in (TEXT, MUTED, LINE, SURFACE))
        self.kept = OUTCOMES["kept"].colour(dark=dark)
        self.curve = "#5a7f86" if dark else "#6f8c90"
        self.band = "rgba(60,196,180,0.16)" if dark else "rgba(15,118,110,0.10)"

    def layout(self, *, align: str = "left") -> dict[str, Any]:
        """The layout of a plot; `align` aligns the lines of a hint."""
        font = {"family": FONT, "size": 13, "color": self.text}
        hint = {"bgcolor": self.surface, "bordercolor": self.line, "align": align, "font": font}
        return {"paper_bgcolor": CLEAR, "plot_bgcolor": CLEAR, "font": font, "hoverlabel": hint, "showlegend": False}

    def axes(self, x: str, y: str) -> dict[str, Any]:
        """The layout of a plot with two named axes."""
        axis = {"gridcolor": self.line, "zeroline": False, "linecolor": self.line, "fixedrange": True}
        return self.layout(align="auto") | {
            "height": 360,
            "margin": {"l": 56, "r": 12, "t": 36, "b": 44},
            "xaxis": {**axis, "title": {"text": x}},
            "yaxis": {**axis, "title": {"text": y}},
        }


UNDIMMED = {"selected": {"marker": {"opacity": 1}}, "unselected": {"marker": {"opacity": 1}}}
"""A click selects points; the others keep their colours."""


def trace(mode: str, places: Iterable[tuple[Any, Any]], **more: Any) -> dict[str, Any]:
    """The points or lines of a plot at these places."""
    xs, ys = [list(each) for each in zip(*places, strict=True)] or [[], []]
    return {"type": "scatter", "mode": mode, "x": xs, "y": ys, **more}


def marker(symbol: str, size: float, colour: str, width: float = 1) -> dict[str, Any]:
    """The sign of points, with lines of `width` pixels."""
    line = {"color": colour, "width": width}
    return {"symbol": symbol, "size": size, "color": colour, "line": line}


def draw_plot(plot: go.Figure | dict[str, Any], *, key: str, alt: str, fixed: bool = False, **more: Any) -> None:
    """Draw a plot in our colours, without Plotly's buttons and, if `fixed`, double clicks. `more` is Streamlit's."""
    config = {"displayModeBar": False} | ({"doubleClick": False} if fixed else {})
    st.plotly_chart(plot, key=key, alt=alt, theme=None, config=config, **more)
