"""The Inspect page in a real browser: ask, look, share, export, print."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import expect
from pypdf import PageObject, PdfReader
from seeds import EXPECTED, LEAST, MOST, SEEDS, noise_reduction

from ragfilter.ingest import demo
from ragfilter.ui.look import theme

pytestmark = [pytest.mark.browser, pytest.mark.model]

CLERIC = "What does a 7th level cleric need to roll to hit an opponent with armor class 6?"
OWLBEARS = {"q": "Tell me about owlbears", "profile": "adaptive-gap", "collection": "demo"}
ESSENTIAL = ("ask-row", "curve", "panel", "table")
OpenTab = Callable[..., Any]


def test_the_sources_questions_meet_their_expectations_in_every_wording(
    open_tab: OpenTab, tmp_path: Path
) -> None:
    # Beside the prompt, since quoting an answer takes longer than all else.
    tab = open_tab({"profile": "full", "panel": "Prompt"})
    for name in SEEDS:
        tab.ask(demo.queries()[name])
        rows = chunks(tab, tmp_path / f"{name}.csv")
        kept = [row["id"] for row in rows if row["place"]]
        tab.expect_kept(len(kept), of=len(rows))
        assert set(kept) >= EXPECTED[name], name
        assert len(kept) <= MOST[name], name
        found = [row["id"] for row in rows]
        assert noise_reduction(name, kept, found[:15]) >= LEAST[name], name
        if name == "fighter-fighter-short":
            # What each fighter needs against the other is in the answer.
            tab.choose("panel-box", "Answer")
            for armor_class in (3, 9):
                said = f"Opponent Armor Class {armor_class}"
                expect(tab.keyed("answer-filtered")).to_contain_text(said)
            tab.rest().choose("panel-box", "Prompt").rest()


def chunks(tab: Any, path: Path) -> list[dict[str, str]]:
    """The rows of the table as a CSV file."""
    with tab.page.expect_download() as download:
        tab.click_in_menu("download-csv")
    assert download.value.suggested_filename == "ragfilter.csv"
    download.value.save_as(path)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_point_a_row_and_a_key_open_a_chunk(open_tab: OpenTab) -> None:
    tab = open_tab(OWLBEARS).expect_kept(4).rest()
    facts, head = tab.chunk.locator(".rf-facts"), tab.chunk.locator("h3")
    for index in (0, 3):
        told = tab.click_point(index)
        expect(head).to_have_text(told[0])
        expect(facts).to_contain_text(told[1])
        tab.rest()
    # What would drop a kept one, with what else that changes.
    assert tab.click_row(1) == "Owlbear Lair"
    tab.rest().keyed("dropping", "summary").click()
    expect(tab.keyed("whatif-0", "button")).to_have_text(re.compile("Max results 5 → 1$"))
    expect(tab.keyed("panel")).to_contain_text("2 chunks would be dropped: Owl, Giant Owl.")
    # A click anywhere in a row. In a narrow window too, the essential columns are visible without
    # scrolling sideways.
    tab.page.set_viewport_size({"width": 900, "height": 900})
    # Keys bring a column into view, which moves those before it: the last one is clicked last.
    for row, column in ((3, "title"), (0, "outcome"), (1, "reason"), (2, "")):
        title = tab.rest().click_row(row, column)
        expect(head).to_have_text(title)
        expect(facts).to_contain_text(f"rank {row + 1}")
        # The row of the open chunk is selected, however it was opened.
        expect(tab.selected_row).to_have_attribute("aria-rowindex", str(row + 2))
        if not column:
            continue
        # Arrow keys go on from the cell that was clicked. The table takes the focus once it shows
        # its selection.
        for rank in (row + 2, row + 3) if row == 1 else (row + 2,):
            expect(tab.keyed("table").locator(":focus")).to_be_attached()
            tab.rest().page.keyboard.press("ArrowDown")
            expect(facts).to_contain_text(f"rank {rank}")
    # The first click after a switch, whatever the table was before.
    for row, layers in (
        (0, ("retrieved", "clearance", "query_must", "cutoff", "context")),
        (1, ("retrieved", "clearance", "cutoff", "context")),
    ):
        tab.rest().switch("query_must").expect_layers(*layers)
        title = tab.click_row(row, "reason")
        expect(head).to_have_text(title)
        expect(facts).to_contain_text(f"rank {row + 1}")


def test_a_change_is_read_aloud_and_a_copied_link_shows_the_same_elsewhere(
    open_tab: OpenTab,
) -> None:
    looks = {"chunk": "monster-owl", "panel": "Chunk"}
    tab = open_tab(OWLBEARS | looks, busy=True).expect_kept(4).rest()
    live = tab.keyed("drag", "").locator("[aria-live='polite']")
    expect(live).to_have_text("4 kept of 200")
    # Screen readers announce only changes within an element that persists.
    live.evaluate("element => { element.dataset.stays = 'yes' }")
    tab.open("cutoff").keyed("set-cutoff-max_results").get_by_role("slider").focus()
    tab.page.keyboard.press("ArrowLeft")
    tab.page.keyboard.press("ArrowLeft")
    tab.expect_kept(3)
    expect(live).to_have_text("3 kept of 200")
    expect(live).to_have_attribute("data-stays", "yes")
    # The address says what is set, and nothing else.
    tab.rest().expect_layers("retrieved", "clearance", "cutoff", "context").rest()
    expect(tab.page).to_have_url(re.compile(r"cutoff\.max_results=3"))
    changed = {"cutoff.max_results": "3"}
    assert dict(parse_qsl(urlsplit(tab.page.url).query)) == OWLBEARS | changed | {
        "open": "tuning,evidence"
    }
    # One click copies a link to what is looked at, until that changes.
    tab.view_as("Operator").rest().choose("window-box", "First 50").rest()
    rows = first_rows(tab)
    tab.keyed("filter", "input").fill("owl")
    tab.page.keyboard.press("Enter")
    looks |= {"filter": "owl", "view": "operator", "places": "First 50"}
    expect(tab.keyed("table-bar")).to_contain_text("4 of 205")
    tab.rest()
    said, box = tab.keyed("copy-link").get_by_role("status"), tab.keyed("question", "input")
    for panel in ("Prompt", "Chunk"):
        if panel == "Chunk":
            # As on a page served without HTTPS.
            tab.page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
        tab.click("copy-link")
        expect(said).to_have_text("Link copied")
        box.fill("")
        box.press("Control+v")
        copied = dict(parse_qsl(urlsplit(box.input_value()).query))
        assert (OWLBEARS | changed | looks).items() <= copied.items()
        looks["panel"] = panel
        tab.choose("panel-box", panel)
        expect(said).to_have_text("")
        tab.rest()
    # Elsewhere it shows the same.
    other = open_tab(copied).expect_kept(3, of=205).rest()  # with what an operator sees besides
    other.expect_layers("retrieved", "clearance", "cutoff", "context")
    slider = other.open("cutoff").keyed("set-cutoff-max_results").get_by_role("slider")
    expect(slider).to_have_value("3")
    expect(other.keyed("viewing")).to_contain_text("Viewing as operator")
    expect(other.keyed("question", "input")).to_have_value(OWLBEARS["q"])
    chosen = {"window-box": "First 50", "panel-box": "Prompt"}
    for key, word in chosen.items():
        expect(other.keyed(key, "[aria-checked=true]")).to_have_text(word)
    expect(other.selected_row).to_contain_text(re.compile(r"keptOwl\s"))
    expect(other.keyed("filter", "input")).to_have_value("owl")
    other.keyed("filter", "input").fill("")
    other.page.keyboard.press("Enter")
    expect(other.keyed("table-bar")).not_to_contain_text("4 of 20")
    assert first_rows(other.rest()) == rows


def first_rows(tab: Any) -> list[list[str]]:
    """The titles and outcomes of the first rows of the table."""
    return [tab.column(name)[:10] for name in ("title", "outcome")]


def printed_at(sheet: PageObject, word: str) -> float:
    """Where the last text that is `word` begins, as a share of the sheet's width."""
    found: list[float] = []

    def look(text: str, cm: list[float], tm: list[float], *_: object) -> None:
        if text.strip() == word:
            found.append(tm[4] * cm[0] + tm[5] * cm[2] + cm[4])

    sheet.extract_text(visitor_text=look)
    return found[-1] / float(sheet.mediabox.width)


def printed(colour: str) -> str:
    """How Chromium writes this colour in a PDF: ".1059 .1451 .1529"."""
    shares = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return " ".join(f"{share:.4f}".strip("0") for share in shares)


def test_nothing_essential_is_cut_off(open_tab: OpenTab) -> None:
    tab = open_tab({"q": CLERIC, "profile": "full"})
    expect(tab.keyed("answer-unfiltered")).to_be_visible()
    expect(tab.keyed("curve").locator("path.point").first).to_be_attached()
    tab.rest()
    for width, scheme, ground in (
        (1440, "light", "rgb(251, 251, 249)"),
        (900, "dark", "rgb(16, 22, 23)"),
    ):
        tab.page.set_viewport_size({"width": width, "height": 900})
        tab.page.emulate_media(color_scheme=scheme)
        expect(tab.page.locator(".stApp")).to_have_css("background-color", ground)
        tab.rest()
        assert tab.page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
        main = tab.page.locator(".stMainBlockContainer").bounding_box()
        assert main["x"] + main["width"] <= width + 0.5
        for part in (tab.strip, *(tab.keyed(key) for key in ESSENTIAL)):
            box = part.bounding_box()
            assert box["x"] >= main["x"] - 0.5
            assert box["x"] + box["width"] <= main["x"] + main["width"] + 0.5
        for part in (".rf-kept", ".rf-fact", ".rf-funnel li"):
            for piece in tab.strip.locator(part).all():
                assert piece.evaluate("e => e.scrollWidth <= e.clientWidth + 1"), piece.inner_text()
        # It prints on one page, with the kept chunks, and without what can only be clicked.
        (sheet,) = PdfReader(BytesIO(tab.page.pdf(format="A4"))).pages
        text = " ".join(sheet.extract_text().split())
        for said in (
            CLERIC, "2 pass the filter", "Armor Class 6",
        ):  # fmt: skip
            assert said in text
        for hidden in ("Layers, in order", "Strategy", "Prompt", "First 50"):
            assert hidden not in text
        # The curve ends where the paper does, and nothing is in the colours of the dark theme.
        assert 0.8 < printed_at(sheet, "limit") < 0.95
        drawn = sheet.get_contents().get_data().decode("latin-1")
        assert f"{printed(theme.TEXT[0])} rg" in drawn
        for colour in (theme.TEXT[1], theme.MUTED[1], *(m.dark for m in theme.LAYERS.values())):
            assert printed(colour) not in drawn
