"""What all plots share: the colours of the theme, the font, the layout, and how they are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from ragfilter.ui.look import theme

FONT = '"Source Sans", "Source Sans Pro", sans-serif'
CLEAR = "rgba(0,0,0,0)"
LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}


@dataclass(frozen=True, slots=True)
class Ink:
    """The colours of plots in one theme; `band` is translucent."""

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

    def layout(self, *, align: str = "left") -> dict[str, Any]:
        """The layout of a plot; `align` aligns the lines of a hint."""
        font = {"family": FONT, "size": 13, "color": self.text}
        hint = {"bgcolor": self.surface, "bordercolor": self.line, "align": align, "font": font}
        return {
            "paper_bgcolor": CLEAR, "plot_bgcolor": CLEAR, "font": font, "hoverlabel": hint,
            "showlegend": False,
        }  # fmt: skip


def draw(
    plot: go.Figure | dict[str, Any], *, key: str, alt: str, fixed: bool = False, **more: Any
) -> None:
    """Draw a plot in our colours without Plotly's buttons; a `fixed` one ignores double clicks.

    `more` is for `st.plotly_chart`.
    """
    config = {"displayModeBar": False} | ({"doubleClick": False} if fixed else {})
    st.plotly_chart(plot, key=key, alt=alt, theme=None, config=config, **more)
