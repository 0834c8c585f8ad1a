"""The start of every page, and the page's own scripts, which are components of Streamlit."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import streamlit as st

from ragfilter.ui.look import theme

if TYPE_CHECKING:
    from streamlit.components.v2.types import ComponentRenderer


def mount(script: str, html: str | None = None, **given: Any) -> Any:
    """Run `script`, a file below `ragfilter/ui`, beside its `html`. `given` goes to Streamlit.
    Returns the component's state."""
    return _register(script, html)(**given)


@cache
def _register(script: str, html: str | None) -> ComponentRenderer:
    js = files("ragfilter.ui").joinpath(script).read_text(encoding="utf-8")
    name = script.replace("/", ".").removesuffix(".js")
    return st.components.v2.component(f"ragfilter.{name}", html=html, js=js, isolate_styles=False)


def dress() -> None:
    """Add the style sheet to the page, once per run. Charts and tables have the colours of the run
    that drew them, so switching the theme starts another run, with a callback that does nothing."""
    dark = theme.is_dark()
    st.html(theme.stylesheet(dark=dark))
    mount(
        "look/frame.js",
        key="theme",
        data="dark" if dark else "light",
        on_switched_change=lambda: None,
    )
