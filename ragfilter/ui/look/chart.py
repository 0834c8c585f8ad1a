"""Draws a plot as all plots look."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import streamlit as st


def draw(
    plot: go.Figure | dict[str, Any], *, key: str, alt: str, fixed: bool = False, **more: Any
) -> None:
    """Draw a plot in our colours without Plotly's buttons; a `fixed` one ignores double clicks.

    `more` is for `st.plotly_chart`.
    """
    config = {"displayModeBar": False} | ({"doubleClick": False} if fixed else {})
    st.plotly_chart(plot, key=key, alt=alt, theme=None, config=config, **more)
