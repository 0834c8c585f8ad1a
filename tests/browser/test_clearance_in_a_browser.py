"""View as, in a real browser: what the user may not see is never sent to the browser."""

from __future__ import annotations

import csv
import re
import tomllib
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from ragfilter.ingest import demo
from ragfilter.ui.session.state import PANELS

pytestmark = [pytest.mark.browser, pytest.mark.model]

AS_USER = {
    "q": "Which treasure maps are false?",
    "profile": "adaptive-gap",
    # No link switches clearance off.
    "clearance.enabled": "false",
}
NEAREST = "secret-treasure-maps"
TITLE = "Which Treasure Maps Are False"
SECRETS = {str(r["id"]): r for r in demo.records() if r.get("clearance")}
OpenTab = Callable[..., Any]


def leaked(text: str) -> set[str]:
    """The secrets whose id, or a distinctive part of whose title or text, is in `text`."""
    return {
        i
        for i, record in SECRETS.items()
        if i in text or _part(record["title"]) in text or _part(record["text"][25:90]) in text
    }


def _part(text: Any) -> str:
    """The longest piece without characters that HTML or JSON might escape."""
    return max(re.split(r"['\"&\n]", str(text)), key=len).strip()


class Received:
    """Everything that the server sends to one page over its connection."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def watch(self, page: Page) -> None:
        page.on("websocket", lambda socket: socket.on("framereceived", self._add))

    def _add(self, frame: bytes | str) -> None:
        self.parts.append(frame if isinstance(frame, str) else frame.decode("utf-8", "replace"))

    @property
    def text(self) -> str:
        return "".join(self.parts)


def open_listening(open_tab: OpenTab, params: dict[str, str]) -> tuple[Any, Received]:
    received = Received()
    return open_tab(params, watch=received.watch).rest(), received


def page_text(tab: Any) -> str:
    """The page's HTML and the curve's data, which are in no element."""
    curve = tab.keyed("curve").evaluate(
        """chart => JSON.stringify([...chart.querySelectorAll(".js-plotly-plot")].map(
             plot => plot.data.map(trace => [trace.customdata, trace.text])))"""
    )
    return str(tab.page.content()) + str(curve)


def downloaded(tab: Any, key: str, path: Path) -> str:
    with tab.page.expect_download() as download:
        tab.click_in_menu(key) if key == "download-csv" else tab.click(key)
    assert download.value.suggested_filename == path.name
    download.value.save_as(path)
    return path.read_text(encoding="utf-8")


def test_as_a_user_no_secret_is_anywhere(open_tab: OpenTab, tmp_path: Path) -> None:
    tab, received = open_listening(open_tab, AS_USER | {"cutoff.max_results": "3"})
    # The third of what the user sees, whatever secrets come before it.
    told = tab.click_point(0)
    assert told[1] == "monster-cave-bear"
    assert "rank 3 " in " ".join(told)
    tab.rest().choose("window-box", "All 200")
    # The open chunk's point has a ring around it, which counts as a point too.
    expect(tab.keyed("curve").locator("path.point")).to_have_count(201)
    for panel in PANELS:
        tab.rest().choose("panel-box", panel).rest()
        assert leaked(page_text(tab)) == set(), panel
    table = downloaded(tab, "download-csv", tmp_path / "ragfilter.csv")
    assert "treasure-types" in table
    assert leaked(table) == set()
    tab.open("settings")
    saved = downloaded(tab, "download-settings", tmp_path / "ragfilter.toml")
    assert tomllib.loads(saved) == {
        "profile": "adaptive-gap",
        "clearance": {"enabled": True},
        "cutoff": {"max_results": 3},
    }
    assert leaked(tab.page.url) == set()
    # Not just hidden, but never sent.
    assert "treasure-types" in received.text
    assert leaked(received.text) == set()


def test_an_operator_sees_it_with_the_reason_and_prompt_and_answer_stay_the_users(
    open_tab: OpenTab, tmp_path: Path
) -> None:
    tab, received = open_listening(open_tab, AS_USER)
    answer = tab.keyed("answer-filtered").inner_text()
    assert leaked(received.text) == set()
    tab.view_as("Operator")
    expect(tab.cell(0, "title")).to_have_text("Which Treasure … Are False")
    expect(tab.cell(0, "reason")).to_have_text("clearance 1 > 0")
    expect(tab.cell(0, "outcome")).to_have_text("⊠ dropped")
    tab.rest()
    # The same check of the same channels finds what is there.
    assert leaked(received.text)
    assert leaked(page_text(tab))
    panel = tab.keyed("panel")
    expect(panel).to_contain_text("Made as the user: level 0, no department.")
    assert tab.keyed("answer-filtered").inner_text() == answer
    for name in ("Prompt", "Debug"):
        tab.choose("panel-box", name)
        expect(panel).to_contain_text("Made as the user: level 0, no department.")
        assert leaked(panel.inner_text()) == set(), name
        tab.rest()
    table = downloaded(tab, "download-csv", tmp_path / "ragfilter.csv")
    assert leaked(table) == set()
    first = next(csv.DictReader(StringIO(table)))
    assert (first["rank"], first["id"]) == ("1", "treasure-types")
    # What clearance dropped is folded away around the cut.
    tab.choose("window-box", "First 50").rest()
    told = tab.click_point(0)
    assert told[:2] == [TITLE, NEAREST]
    expect(tab.chunk).to_contain_text("Clearance dropped: clearance 1 > 0")
    expect(tab.keyed("chunk-text")).to_contain_text("For the referee only.")
    tab.edit_rule()
    expect(tab.keyed("rule-draft", "button")).to_be_disabled()
    # As a user again, with the chunk still open.
    tab.rest().view_as("User")
    expect(panel).to_contain_text("This chunk is not shown.")
    assert leaked(page_text(tab.rest())) == set()
