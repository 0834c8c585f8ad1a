"""From labels by keyboard to measured and tuned settings that the command line reads, in a real
browser."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from ragfilter.cli import main
from ragfilter.ingest import demo

pytestmark = [pytest.mark.browser, pytest.mark.model]

OWLBEARS = {"q": "Tell me about owlbears", "profile": "adaptive-gap", "collection": "demo"}
BEHOLDER = "What is a beholder?"
TEN = [i for i in demo.queries() if i in demo.qrels()][-10:]
OpenTab = Callable[..., Any]


@pytest.fixture(scope="module")
def app(serve_app: Callable[..., str]) -> str:
    return serve_app()


def visit(tab: Any, page: str) -> Any:
    tab.page.get_by_test_id("stTopNavLink").get_by_text(page, exact=True).click()
    return tab.rest()


def resize(tab: Any, width: int) -> None:
    tab.page.set_viewport_size({"width": width, "height": 900})
    tab.rest()


def mark(tab: Any, key: str) -> None:
    """Press a key; the next chunk opens."""
    before = tab.chunk.locator("h3").inner_text()
    tab.page.keyboard.press(key)
    expect(tab.chunk.locator("h3")).not_to_have_text(before)
    tab.rest()


def download(tab: Any, key: str, path: Path) -> Path:
    with tab.rest().page.expect_download() as waiting:
        tab.click(key)
    waiting.value.save_as(path)
    return path


def test_settings_are_loaded_from_a_file_and_kept_under_a_name(
    open_tab: OpenTab, tmp_path: Path
) -> None:
    good, bad = tmp_path / "ours.toml", tmp_path / "bad.toml"
    good.write_text('profile = "query-must"\n[retrieval]\nk = 9\n', "utf-8")
    bad.write_text("[retrieval]\nk = 3\npool_size = -1\n", "utf-8")
    tab = open_tab(OWLBEARS).expect_kept(4).rest()
    tab.open("settings")
    file = tab.keyed("settings-file").locator("input[type=file]")
    file.set_input_files(good)
    tab.expect_kept(9)
    expect(tab.page.get_by_text("Loaded ours.toml: profile query-must.")).to_be_visible()
    tab.rest()
    file.set_input_files(bad)
    expect(tab.page.get_by_text("bad.toml, line 3")).to_be_visible()
    tab.rest().expect_kept(9)
    tab.keyed("settings-name", "input").fill("nine")
    tab.click("save-as-button")
    expect(tab.page.get_by_text("Saved as nine.")).to_be_visible()
    # Other visitors of the workspace find them.
    tab.go(OWLBEARS).expect_kept(4).open("settings").rest().click("load-saved")
    tab.expect_kept(9)
    expect(tab.page).to_have_url(re.compile("profile=query-must.*retrieval.k=9"))
    tab.rest().click("delete-saved")
    expect(tab.keyed("load-saved", "button")).to_be_disabled()


def test_label_evaluate_tune_and_take_the_settings_to_the_command_line(
    open_tab: OpenTab,
    copy_demo: Callable[[], Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tab = open_tab(OWLBEARS)
    label_by_key(tab)
    label_several_at_once(tab)
    visit(tab, "Evaluate")
    tab.pick("query-set-box", "^labelled · ")
    expect(tab.keyed("evaluate", "button")).to_have_text(re.compile("Evaluate 2 questions"))
    import_ten(tab, tmp_path)
    tab.rest().click("evaluate")
    expect(tab.page.locator(".rf-strip[aria-label=Evaluation]")).to_contain_text("Oracle")
    resize(tab, 900)
    tab.choose("view", "Questions")
    expect(tab.keyed("queries-bar")).to_contain_text("10 questions")
    tab.open_question()
    # The question opens in Inspect.
    expect(tab.kept).to_be_visible()
    question = tab.rest().keyed("question", "input").input_value()
    assert question in {demo.queries()[i] for i in TEN}

    resize(tab, 1440)
    visit(tab, "Tune")
    click_the_map(tab, "cutoff: Distance offset", 50)
    # Its squares are larger than Plotly's usual reach.
    tab.click("reset").rest()
    resize(tab, 900)
    click_the_map(tab, "context: Context budget", 9)
    tab.rest().click("suggest")
    suggestion = tab.keyed("suggestion")
    expect(suggestion).to_contain_text("10 questions, 5-fold cross-validation")
    expect(suggestion).to_contain_text(re.compile("Best fixed k .* to 0"))
    # The second is a learned one.
    for width, strategy in ((900, "otsu"), (1440, "calibrated")):
        # The best of all may be what the click on the map set.
        tab.pick("tuned-strategy", f"^{strategy}$")
        expect(suggestion).to_contain_text(f"cutoff.strategy = {strategy}")
        tab.rest().click("apply-tuning")
        expect(suggestion).to_contain_text("These are the current settings.")
        shown, settings = take_along(tab, tmp_path)
        command = ["query", question, "--collection", "demo", "--config", str(settings), "--json"]
        capsys.readouterr()
        assert main([*command, "--data-dir", str(copy_demo())]) == 0
        assert json.loads(capsys.readouterr().out)["kept"] == shown
        assert shown
        resize(tab, width)
        visit(tab, "Tune")


def label_by_key(tab: Any) -> None:
    """Label chunks, take a label back, and switch blind labelling."""
    expect(tab.kept).to_be_visible()
    tab.click_row(0)
    title, undo = tab.chunk.locator("h3"), tab.keyed("mark-undo", "button")
    expect(title).to_be_visible()
    first = tab.rest().chunk.locator("h3").inner_text()
    expect(undo).to_be_disabled()
    mark(tab, "2")
    expect(undo).to_be_enabled()
    tab.page.keyboard.press("u")
    expect(title).to_have_text(first)
    expect(undo).to_be_disabled()
    hidden = tab.rest().page.get_by_text("Hidden while you label blind.")
    expect(hidden).to_have_count(0)
    tab.page.keyboard.press("b")
    expect(hidden.first).to_be_visible()
    tab.rest().page.keyboard.press("b")
    expect(hidden).to_have_count(0)
    tab.rest()
    for key in ("2", "0", "1"):
        mark(tab, key)
    expect(undo).to_be_enabled()


def label_several_at_once(tab: Any) -> None:
    """Tick rows and label them by a button, or in a small window by a key."""
    tab.keyed("question", "input").fill(BEHOLDER)
    tab.click("ask-button")
    expect(tab.kept).to_be_visible()
    tab.rest().keyed("label-several", "label").click()
    several = tab.keyed("marks-several")
    for width in (1440, 900):
        resize(tab, width)
        expect(several).to_contain_text("Tick rows")
        tab.rest()
        for row, told in ((0, "1 chunk selected"), (2, "2 chunks selected")):
            tab.click_row(row)
            expect(several).to_contain_text(told)
            tab.rest()
        if width == 900:
            tab.page.keyboard.press("2")
        else:
            tab.click("mark-several-2")
        expect(several).to_contain_text("Tick rows")
    resize(tab, 1440)


def import_ten(tab: Any, folder: Path) -> None:
    """Import ten of the demo's questions with their labels as a query set."""
    tab.rest().keyed("sets-open", "label").click()
    asked = [json.dumps({"_id": i, "text": demo.queries()[i]}) for i in TEN]
    rows = [f"{i}\t{c}\t{g}" for i in TEN for c, g in demo.qrels()[i].items()]
    (folder / "ten.jsonl").write_text("\n".join(asked), "utf-8")
    (folder / "qrels.tsv").write_text("\n".join(rows), "utf-8")
    # One after the other: Streamlit forgets to answer an uploader while a run begins, and the first
    # file starts one.
    for box, file, told in (
        ("set-file-0", "ten.jsonl", "Import questions"),
        ("set-qrels-0", "qrels.tsv", "Import questions and labels"),
    ):
        tab.rest().keyed(box).locator("input[type=file]").set_input_files(folder / file)
        expect(tab.keyed("set-import", "button")).to_have_text(told)
    tab.rest().click("set-import")
    expect(tab.keyed("evaluate", "button")).to_have_text(re.compile("Evaluate 10 questions"))
    tab.rest().keyed("sets-open", "label").click()


def click_the_map(tab: Any, vertical: str, side: int) -> None:
    """Draw the map of the gap threshold and this setting, with so many squares a side, and click
    one of them, then the first setting of the front. Each click sets what it shows."""
    tab.pick("map-y", f"^{vertical}$").rest().click("map")
    expect(tab.keyed("map-chart")).to_contain_text(vertical.partition(": ")[2])
    points = tab.keyed("map-chart").locator("path.point")
    middle = side // 2 * (side + 1)
    expect(points.nth(middle + side + 1)).to_be_attached()
    tab.rest()
    assert "cutoff.gap_threshold" not in tab.page.url
    points.nth(middle).scroll_into_view_if_needed()
    tab.rest()
    # Near the corner, a little less than halfway to the next square.
    square, next_one = (points.nth(n).bounding_box() for n in (middle, middle + side + 1))
    x, y = (square[way] + 0.4 * (next_one[way] - square[way]) + 2.5 for way in "xy")
    tab.page.mouse.click(x, y)
    expect(tab.page).to_have_url(re.compile("cutoff.gap_threshold="))
    expect(tab.page.get_by_text("of 10 questions change")).to_be_visible()
    clicked = tab.rest().page.url
    # The front is drawn after all settings, and the first of it needs the fewest tokens.
    front = tab.keyed("front-chart").locator(".trace.scatter").nth(1).locator("path.point")
    front.first.scroll_into_view_if_needed()
    tab.rest()
    least = front.first.bounding_box()
    tab.page.mouse.click(least["x"] + least["width"] / 2, least["y"] + least["height"] / 2)
    expect(tab.page).not_to_have_url(clicked)
    tab.rest()


def take_along(tab: Any, folder: Path) -> tuple[list[str], Path]:
    """The ids of the chunks that Inspect keeps now, and the current settings as a file."""
    visit(tab.rest(), "Inspect")
    expect(tab.kept).to_be_visible()
    tab.rest()
    with download(tab, "download-csv", folder / "chunks.csv").open(encoding="utf-8") as file:
        shown = [row["id"] for row in csv.DictReader(file) if row["place"]]
    tab.open("settings")
    settings = download(tab, "download-settings", folder / "tuned.toml")
    tab.rest().click("line-settings")
    return shown, settings
