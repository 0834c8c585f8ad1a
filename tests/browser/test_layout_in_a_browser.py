"""Where the parts of the page stand: what comes and goes moves and covers nothing, and every width
shows all that can be clicked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator

from ragfilter.ingest import demo

pytestmark = [pytest.mark.browser, pytest.mark.model]

CLERIC = {"q": demo.queries()["cleric-ac6"], "profile": "full", "collection": "demo"}
WATCH = """() => {
  window.strips = new Set()
  window.waited = false
  const look = () => {
    if (document.querySelector(".st-key-waiting")) window.waited = true
    const strip = document.querySelector(".rf-strip")?.getBoundingClientRect()
    if (strip) window.strips.add(`${strip.x} ${strip.y} ${strip.width}`)
  }
  new MutationObserver(look).observe(document.body, {subtree: true, childList: true})
  look()
}"""
"""Keeps in `strips` where the strip ever was, and in `waited` whether the page said it searched."""
OpenTab = Callable[..., Any]


def apart(one: Locator, other: Locator) -> bool:
    """Whether neither covers a part of the other."""
    a, b = one.bounding_box(), other.bounding_box()
    assert a is not None
    assert b is not None
    beside = a["x"] + a["width"] <= b["x"] or b["x"] + b["width"] <= a["x"]
    return beside or a["y"] + a["height"] <= b["y"] or b["y"] + b["height"] <= a["y"]
