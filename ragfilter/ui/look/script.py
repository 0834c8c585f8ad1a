"""The page's own scripts, as components of Streamlit."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import streamlit as st

if TYPE_CHECKING:
    from streamlit.components.v2.types import ComponentRenderer


def mount(script: str, html: str | None = None, **given: Any) -> None:
    """Run `script`, a file below `ragfilter/ui`, beside its `html`. `given` goes to Streamlit."""
    _register(script, html)(**given)


@cache
def _register(script: str, html: str | None) -> ComponentRenderer:
    js = files("ragfilter.ui").joinpath(script).read_text(encoding="utf-8")
    name = script.replace("/", ".").removesuffix(".js")
    return st.components.v2.component(f"ragfilter.{name}", html=html, js=js, isolate_styles=False)
