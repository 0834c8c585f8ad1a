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
    assert leaked(downloaded(tab, "download-trace", tmp_path / "trace.txt")) == set()
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


def test_neither_a_reference_nor_a_pattern_for_files_tells_of_a_secret(open_tab: OpenTab) -> None:
    link = AS_USER | {"q": "How strong is a hill giant?", "retrieval.source_pattern": "*secret*"}
    tab, received = open_listening(open_tab, link)
    pattern = tab.open("settings").keyed("set-retrieval-source_pattern", "input")
    # A pattern that only hidden files match tells the same as one that none matches.
    told = []
    for wanted in ("*secret*", "*nowhere*"):
        pattern.fill(wanted)
        pattern.press("Enter")
        problem = tab.keyed("problem").filter(has_text=wanted)
        expect(problem).to_contain_text("No file of the collection")
        expect(tab.keyed("retry", "button")).to_be_visible()
        # The rest of the page stands.
        expect(tab.keyed("line-idle", "button")).to_be_visible()
        told.append(tab.rest().keyed("problem").inner_text().replace(wanted, "PATTERN"))
    assert told[0] == told[1]
    pattern.fill("")
    pattern.press("Enter")
    # The reference of a chunk to a secret is not named.
    tab.rest().keyed("filter", "input").fill("monster-hill-giant")
    tab.page.keyboard.press("Enter")
    expect(tab.cell(0, "title")).to_have_text("Hill Giant")
    tab.rest().click_row(0)
    expect(tab.chunk.locator("h3")).to_have_text("Hill Giant")
    tab.rest().choose("chunk-part", "References")
    expect(tab.keyed("refs")).to_be_visible()
    tab.rest()
    assert leaked(received.text) == set()
    tab.view_as("Operator")
    expect(tab.keyed("panel")).to_contain_text("(hidden)")
    assert "secret-giant-steading" in leaked(page_text(tab.rest()))


def test_an_operator_sees_it_with_the_reason_and_prompt_and_answer_stay_the_users(
    open_tab: OpenTab, tmp_path: Path
) -> None:
    tab, received = open_listening(open_tab, AS_USER)
    answer = tab.keyed("answer-filtered").inner_text()
    assert leaked(received.text) == set()
    tab.view_as("Operator")
    expect(tab.cell(0, "title")).to_have_text(TITLE)
    expect(tab.cell(0, "reason")).to_have_text("clearance 1 > 0")
    expect(tab.cell(0, "outcome")).to_have_text("⊠ dropped")
    tab.rest()
    # The same check of the same channels finds what is there.
    assert NEAREST in leaked(received.text)
    assert NEAREST in leaked(page_text(tab))
    panel = tab.keyed("panel")
    expect(panel).to_contain_text("Made as the user: level 0, no department.")
    assert tab.keyed("answer-filtered").inner_text() == answer
    for name in ("Prompt", "Debug"):
        tab.choose("panel-box", name)
        expect(panel).to_contain_text("Made as the user: level 0, no department.")
        assert leaked(panel.inner_text()) == set(), name
        tab.rest()
    assert leaked(downloaded(tab, "download-trace", tmp_path / "trace.txt")) == set()
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


def test_one_chip_says_who_looks_and_opens_the_choice(open_tab: OpenTab) -> None:
    tab = open_tab(AS_USER | {"q": "When may the referee override the dice?"})
    chip = tab.keyed("viewing", "button")
    expect(chip).to_contain_text("Viewing as Guest")
    expect(tab.kept).to_contain_text("5 kept")
    chip.click()
    tab.rest().keyed("user-level").get_by_role("slider").press("ArrowRight")
    expect(tab.kept).to_contain_text("2 kept")
    expect(tab.cell(0, "title")).to_have_text(re.compile("^When The Referee"))
    # It stays open, says what was chosen, and offers the departments of the collection.
    expect(chip).to_contain_text("Viewing as Player")
    tab.rest().keyed("user-departments").get_by_role("combobox").click()
    for department in ("referee", "treasury"):
        expect(tab.page.get_by_role("option", name=department)).to_be_visible()
    tab.page.keyboard.press("Escape")
    tab.page.keyboard.press("Escape")
    tab.rest().view_as("Operator")
    expect(chip).to_contain_text("Viewing as operator")
    tab.rest().switch("clearance")
    expect(chip).to_contain_text("Viewing as everyone")
    expect(tab.page.get_by_text("everyone sees everything here")).to_be_visible()
