"""axe-core on every page and mode in a real browser, light and dark: no finding but minor ones. And
no name is read out with the marks of Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from ragfilter.ingest import demo

pytestmark = [pytest.mark.browser, pytest.mark.model]

CLERIC = {"q": demo.queries()["cleric-ac6"], "profile": "full", "collection": "demo"}
CHUNK = CLERIC | {"chunk": "attack-matrix-clerics-ac-7", "panel": "Chunk"}
GRAVE = ("critical", "serious", "moderate")
COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}
"""The rules about colours alone."""
GROUND = {False: "rgb(251, 251, 249)", True: "rgb(16, 22, 23)"}
"""The background of the page, light and dark."""
MARKS = re.compile(r":[a-z-]+\[|\*\*|`|\\")
LABELS = "[...document.querySelectorAll('[aria-label]')].map(part => part.ariaLabel)"
NAME = re.compile(r'^\s*- .?[a-z]+ ("(?:[^"\\]|\\.)*")', re.MULTILINE)
"""A name in a snapshot of what a screen reader gets."""


def pages(tab: Any) -> Iterator[str]:
    """Open every page and mode in `tab` in turn, and yield the name of each once it is drawn."""
    expect(tab.chunk).to_be_visible()
    tab.edit_rule()
    yield "rule editor"
    tab.choose("panel-box", "Answer")
    expect(tab.keyed("answer-unfiltered")).to_be_visible()
    tab.rest()
    yield "Inspect"
    for page in ("Rules", "Evaluate", "Tune", "Compare", "Collections"):
        tab.visit(page)
        expect(tab.page).to_have_url(re.compile(rf"/{page.lower()}\b"))
        tab.rest()
        yield page
        if page == "Evaluate":
            tab.click("open-labelling")
            dialog = tab.page.locator("dialog.rf-label")
            expect(dialog.get_by_role("heading", level=2)).to_be_visible()
            tab.rest()
            yield "Label"
            tab.page.keyboard.press("Escape")
            expect(dialog).to_have_count(0)
            tab.rest()
    tab.visit("Inspect").click("present-button")
    expect(tab.page.locator(".rf-scene")).to_be_visible()
    tab.rest()
    yield "Present"


def test_no_page_has_a_grave_fault_light_or_dark(open_tab: Callable[..., Any]) -> None:
    tab = open_tab(CHUNK)
    found: list[tuple[str, str, str]] = []
    dark = False
    for page in pages(tab):
        # Streamlit names some parts by their label as it is given.
        names = [
            *map(json.loads, NAME.findall(tab.page.locator("body").aria_snapshot())),
            *tab.page.evaluate(LABELS),
        ]
        found += [(page, "name", name) for name in names if MARKS.search(name)]
        found += [(page, *fault) for fault in grave(tab)]
        # Only colours differ in the other theme, in which the next page is drawn.
        dark = not dark
        tab.page.emulate_media(color_scheme="dark" if dark else "light")
        expect(tab.page.locator(".stApp")).to_have_css("background-color", GROUND[dark])
        found += [(page, *fault) for fault in grave(tab.rest(), COLOURS)]
    assert not found


def grave(tab: Any, rules: dict[str, Any] | None = None) -> list[tuple[str, str]]:
    """The faults of the page that are more than minor: the rule and the part that breaks it."""
    options = {"resultTypes": ["violations"]} | (rules or {})
    return [
        (fault["id"], node["html"])
        for fault in Axe().run(tab.page, options=options).response["violations"]
        if fault["impact"] in GRAVE
        for node in fault["nodes"]
    ]
