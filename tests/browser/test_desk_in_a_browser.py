"""The tuned settings are next to the curve, its line is dragged and stepped, steps are undone and
redone, and Back goes to the previous question."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from io import BytesIO
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from pypdf import PageObject, PdfReader

from browser.runs import Runs
from ragfilter.ui.look import theme
from ragfilter.ui.look.theme import OUTCOMES

pytestmark = [pytest.mark.browser, pytest.mark.model]

CLERIC = "What does a 7th level cleric need to roll to hit an opponent with armor class 6?"
LINK = {
    "profile": "full",
    "q": CLERIC,
    "chunk": "attack-matrix-clerics-ac-7",
    "panel": "Chunk",
    "cutoff.relative_offset": "0.25",
    "open": "tuning,evidence",
}
DRAWN_IN = """colour => {
  const probe = document.createElement("i")
  probe.style.color = colour
  return [...document.querySelectorAll(".st-key-curve path.point")]
    .some(point => point.style.fill === probe.style.color)
}"""


def test_the_engineers_desk(open_tab: Callable[..., Any]) -> None:
    runs = Runs()
    tab = open_tab(LINK, watch=runs.watch).rest().expect_kept(2)
    steps_are_undone_and_back_goes_to_the_previous_question(tab)
    tab.click("reset").rest().ask(CLERIC).expect_kept(2)
    another_theme_runs_the_page_once(tab, runs)
    it_is_printed_on_one_page(tab)
    the_line_is_dragged_and_stepped(tab)
    tab.rest().click("reset").rest().pick("profile-box", "^adaptive-gap$")
    a_setting_stays_whatever_the_browser_has_not_drawn(tab.rest())


def steps_are_undone_and_back_goes_to_the_previous_question(tab: Any) -> None:
    expect(tab.chunk).to_contain_text("Opponent Armor Class 7")
    # Strategy, k, the threshold, its reset button and the curve are visible without scrolling.
    curve = tab.keyed("curve").bounding_box()
    for name in ("strategy", "max_results", "relative_offset"):
        control = tab.keyed(f"box-cut-cutoff-{name}").bounding_box()
        assert control["y"] + control["height"] <= curve["y"]
    assert curve["y"] + curve["height"] <= 900
    expect(tab.page.get_by_role("heading", level=2)).to_have_text(["Before and after", "Curve", "Chunks", "Chunk"])
    tab.click("back-cut-cutoff-relative_offset")
    expect(tab.strip).to_contain_text("0.300 of the way")
    # The change that brings the chunk back, and Ctrl+Z.
    tab.rest().click("whatif-0")
    tab.expect_kept(6).rest()
    # In a field, it reverts what was typed instead of a setting.
    question = tab.keyed("ask-row", "input")
    question.press_sequentially("12")
    for _ in "12":  # A browser may take back one character at a time.
        question.press("Control+z")
    expect(question).to_have_value(CLERIC)
    tab.rest().expect_kept(6)
    tab.page.locator(".stMain").press("Control+z")
    tab.expect_kept(2)
    # The buttons at the top do the same, and Reset returns to the profile.
    for button, kept in (("redo", 6), ("reset", 2)):
        tab.rest().click(button)
        tab.expect_kept(kept)
    # Other words in the question bring the chunk back too, and others with it.
    expect(tab.rest().keyed("panel")).to_contain_text("5 chunks would also be kept")
    tab.click("whatif-ask").expect_kept(8)
    asked = f"{CLERIC} armor class 7"
    expect(question).to_have_value(asked)
    # Back goes to the previous question, whatever was set since, and Forward to the next one.
    tab.rest().click("examples").page.get_by_role("menuitem", name="owlbears").click()
    tab.expect_kept(3).rest().switch("diversity")
    expect(tab.page).to_have_url(re.compile("diversity.enabled=true"))
    tab.expect_kept(3).rest()
    tab.page.go_back()
    tab.expect_kept(8)
    expect(question).to_have_value(asked)
    tab.rest().page.go_forward()
    tab.expect_kept(3)
    expect(tab.page).to_have_url(re.compile("diversity.enabled=true"))
    # Another page opens even if the click on its link also ends an entry.
    tab.rest().visit("Collections").keyed("elsewhere", "summary").click()
    tab.rest().keyed("elsewhere-folder", "input").fill("/nowhere")
    tab.visit("Inspect")
    expect(question).to_be_visible()
    tab.rest()


def another_theme_runs_the_page_once(tab: Any, runs: Runs) -> None:
    page, pinned = tab.page, OUTCOMES["pinned"]
    # The curve is drawn in the colours of the theme.
    page.wait_for_function(DRAWN_IN, arg=pinned.colour(dark=False))
    before = runs.whole, runs.alone
    page.get_by_test_id("stMainMenuButton").click()
    page.get_by_test_id("stMainMenuItem-theme-Dark").click()
    page.wait_for_function(DRAWN_IN, arg=pinned.colour(dark=True))
    tab.rest()
    assert (runs.whole, runs.alone) == (before[0] + 1, before[1])
    page.keyboard.press("Escape")


def it_is_printed_on_one_page(tab: Any) -> None:
    tab.choose("panel-box", "Answer").page.set_viewport_size({"width": 900, "height": 900})
    expect(tab.rest().keyed("answer-unfiltered")).to_be_visible()
    # The sheet has the kept chunks, but no elements that only make sense on screen.
    (sheet,) = PdfReader(BytesIO(tab.rest().page.pdf(format="A4"))).pages
    text = " ".join(sheet.extract_text().split())
    for said in (CLERIC, "2 pass the filter", "Armor Class 6"):
        assert said in text
    for hidden in ("Layers, in order", "Strategy", "Prompt", "show all"):
        assert hidden not in text
    # The curve ends where the paper does, and nothing is in the colours of the dark theme.
    assert 0.8 < printed_at(sheet, "limit") < 0.95
    drawn = sheet.get_contents().get_data().decode("latin-1")
    assert f"{printed(theme.TEXT[0])} rg" in drawn
    for colour in (theme.TEXT[1], theme.MUTED[1], *(m.dark for m in theme.LAYERS.values())):
        assert printed(colour) not in drawn
    tab.page.set_viewport_size({"width": 1440, "height": 900})
    tab.page.locator(".stMain").evaluate("main => main.scrollTo(0, 0)")
    tab.rest()


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


def the_line_is_dragged_and_stepped(tab: Any) -> None:
    line = tab.page.get_by_role("slider", name="Relative offset, line of the curve")
    shapes, box = tab.keyed("curve").locator(".shapelayer path"), tab.keyed("curve-box")
    told = box.locator("[aria-live]")
    expect(told).to_have_text("2 kept of 200")
    # The handle lies on the line that plotly drew; what stays is labelled with its telling words.
    assert abs(middle(line.locator("circle")) - middle(shapes.last)) <= 2
    expect(line).to_have_attribute("aria-valuetext", "limit 0.479 keeps 2")
    # A title does not hide plotly's words.
    titles = [each.bounding_box() for each in box.locator("[data-passage] text").all()]
    notes = [each.bounding_box() for each in box.locator(".annotation-text").all()]
    assert titles
    assert notes
    assert not [each for each in titles if any(map(partial(meet, each), notes))]
    # During dragging, only the browser says what would stay.
    handle = line.locator("circle").bounding_box()
    x, y = handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2
    tab.page.mouse.move(x, y)
    tab.page.mouse.down()
    tab.page.mouse.move(x - 60, y - 95, steps=5)
    said = re.fullmatch(r"limit (\d\.\d+) keeps (\d+)", line.get_attribute("aria-valuetext"))
    kept = int(said[2])
    assert kept > 2
    expect(box.locator(".rf-stays")).to_have_count(kept - 1)  # less the pin
    expect(told).to_have_text("2 kept of 200")
    # After release, the server's result is the same, and the axis stays.
    at = middle(line.locator("circle"))
    tab.page.mouse.up()
    expect(told).to_have_text(f"{kept} kept of 200")
    tab.rest()
    assert abs(middle(line.locator("circle")) - at) <= 3
    expect(tab.keyed("curve")).to_contain_text(f"limit {said[1]}")
    # A button below keeps one less. Keys: one step each, ten for a page; the focus stays.
    tab.rest().click("keep-less")
    expect(told).to_have_text(f"{kept - 1} kept of 200")
    tab.rest()
    line.press("Home")
    expect(told).to_have_text("1 kept of 200")  # only the pin
    expect(line).to_be_focused()
    line.press("PageUp")
    line.press("ArrowUp")
    expect(line).to_have_attribute("aria-valuenow", "0.11")
    # Along the curve, keys open one chunk after another.
    walk = tab.rest().page.get_by_role("slider", name="Chunks along the curve")
    walk.press("Home")
    expect(tab.chunk).to_contain_text("Opponent Armor Class 6")
    walk.press("ArrowRight")
    expect(walk).to_have_attribute("aria-valuetext", "The Cleric")
    expect(tab.chunk).to_contain_text("The Cleric")
    expect(walk).to_be_focused()


def meet(one: Any, other: Any) -> bool:
    """Whether two boxes overlap."""
    return all(
        one[at] < other[at] + other[size] and other[at] < one[at] + one[size]
        for at, size in (("x", "width"), ("y", "height"))
    )


def middle(element: Any) -> float:
    box = element.bounding_box()
    return float(box["y"] + box["height"] / 2)


def a_setting_stays_whatever_the_browser_has_not_drawn(tab: Any) -> None:
    tab.open("cutoff")
    sliders = [tab.keyed(f"{view}-cutoff-max_results").get_by_role("slider") for view in ("set", "cut")]
    expect(tab.keyed("set-diversity-enabled")).to_have_count(1)
    for key, kept in (("Home", 1), ("ArrowRight", 2), ("ArrowRight", 3)):
        sliders[1].press(key)
        tab.expect_kept(kept).rest()
    expect(sliders[0]).to_have_value("3")

    # A busy browser draws neither what another widget of the setting shows now, nor an undo,
    # before the next click. It still reports what it shows.
    for act, kept in ((lambda: sliders[0].press("ArrowRight"), 4), (lambda: tab.click("undo"), 3)):
        tab.page.evaluate("hold()")
        act()
        wait_until_all_is_held(tab.page)
        tab.switch("diversity")
        wait_until_all_is_held(tab.page)
        tab.page.evaluate("release()")
        expect(tab.page).to_have_url(re.compile(f"max_results={kept}.*diversity.enabled=true"))
        tab.expect_kept(kept).rest()
        for slider in sliders:
            expect(slider).to_have_value(str(kept))
        tab.click("undo")
        expect(tab.page).not_to_have_url(re.compile("diversity"))
        tab.rest()


def wait_until_all_is_held(page: Page) -> None:
    """Wait until the server has sent everything."""
    held = -1
    while held != (held := page.evaluate("held.length")) or not held:
        page.wait_for_timeout(600)
