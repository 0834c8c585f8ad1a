"""Collections in a real browser: upload files, index them, look after them, ask."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from playwright.sync_api import Browser, expect

pytestmark = [pytest.mark.browser, pytest.mark.model]


@pytest.fixture(scope="module")
def app(serve_app: Callable[..., str]) -> str:
    return serve_app()


CAVES = "\n\n".join(f"Cave {i} is dark and deep, and bats hang in it." for i in range(9))
GOATS = """openapi: 3.0.3
info: {title: Goats, version: "1"}
paths:
  /goats:
    get: {summary: List goats, responses: {"200": {description: All of them.}}}
"""


def test_files_of_every_kind_become_a_collection_that_is_looked_after(
    open_tab: Callable[..., Any], browser: Browser, tmp_path: Path
) -> None:
    files = {
        "notes.csv": "Nr,When,Body\n1,Monday,Trolls fear fire.\n2,,\n3,Friday,Owls hoot.\n",
        "bad.jsonl": "nonsense\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with ZipFile(tmp_path / "more.zip", "w") as packed:
        packed.writestr("goats.yaml", GOATS)
        packed.writestr("caves.txt", CAVES)
    paper = browser.new_page()
    paper.set_content("<p>Bats hang in caves.</p>")
    paper.pdf(path=tmp_path / "bats.pdf")
    paper.close()
    tab = open_tab().rest()
    page = tab.page
    page.get_by_role("link", name="Collections").click()
    box = page.locator("[data-testid='stFileUploader'] input[type='file']")
    box.set_input_files([tmp_path / name for name in (*files, "more.zip", "bats.pdf")])
    # The columns of the CSV file are mapped, and all files are shown as they would be cut.
    chunks = tab.keyed("first-chunks").locator("strong")
    expect(chunks.first).to_be_visible()
    tab.pick("column-title", "^When$")
    expect(tab.keyed("column-text").get_by_role("combobox")).to_have_value("Body")
    for title in ("Monday", "bats, page 1", "List goats"):
        expect(chunks.filter(has_text=title)).to_have_count(1)
    # The preview follows the size: at 100 characters, there are three and more chunks of caves.
    size = tab.keyed("cut-size").get_by_role("slider")
    for key, parts in (("Home", 3), ("End", 1)):
        size.press(key)
        expect(chunks.filter(has_text="caves")).to_have_count(parts)
        tab.rest()
    name = tab.keyed("upload-name", "input")
    name.fill("mixed")
    name.press("Enter")
    expect(tab.keyed("index", "button")).to_be_enabled()
    tab.rest().click("index")
    # What is bad is listed, and the rest is indexed.
    expect(page.get_by_text("mixed holds 5 chunks: 5 added")).to_be_visible()
    left_out = page.locator("[class*='st-key-left-out-']")
    expect(left_out).to_contain_text("notes.csv, line 3")
    expect(left_out).to_contain_text("bad.jsonl, line 1")
    tab.pick("manage-name", "^mixed$").rest()
    with page.expect_download() as download:
        tab.click("export")
    assert download.value.suggested_filename == "mixed.jsonl"
    lines = download.value.path().read_text(encoding="utf-8").splitlines()
    assert {"1", "3"} < {json.loads(line)["id"] for line in lines}
    assert len(lines) == 5
    manage = tab.keyed("manage")
    manage.get_by_role("button", name="Rename").click()
    tab.keyed("rename-mixed", "input").fill("kept")
    tab.keyed("rename-mixed", "input").press("Enter")
    tab.click("rename")
    chosen = tab.keyed("manage-name").get_by_role("combobox")
    expect(chosen).to_have_value("kept")
    expect(tab.rest().page.get_by_test_id("stPopoverBody")).to_have_count(0)
    # It is deleted only by its whole name.
    manage.get_by_role("button", name="Delete").click()
    typed, delete = tab.keyed("delete-kept", "input"), tab.keyed("delete", "button")
    for text in ("kep", "kept"):
        expect(delete).to_be_disabled()
        typed.fill(text)
        typed.press("Enter")
        tab.rest()
    delete.click()
    expect(chosen).not_to_have_value("kept")
    expect(tab.rest().page.get_by_test_id("stPopoverBody")).to_have_count(0)


SECTIONS = {
    "owls.md": ("Owls", {"Hunting": "Owls hunt mice at night.", "Nests": "Owls nest in old trees.",
                         "Voice": "Owls hoot to keep others away."}),
    "trolls.md": ("Trolls", {"Wounds": "Trolls regenerate all wounds but burns.",
                             "Fire": "A burned troll stays dead. Fire and acid kill trolls.",
                             "Food": "Trolls eat whatever they catch."}),
    "boats.md": ("Boats\n\nBoats go down rivers and up canals.",
                 {"Oars": "A rowing boat has four oars.", "Sails": "A sailing boat needs wind."}),
}  # fmt: skip
TROLLS = "Do fire and acid kill trolls?"


def test_a_newcomer_needs_no_manual(
    serve_app: Callable[..., str], open_tab: Callable[..., Any], tmp_path: Path
) -> None:
    folder = tmp_path / "handbook"
    folder.mkdir()
    for name, (title, parts) in SECTIONS.items():
        text = "\n\n".join(f"## {head}\n\n{said}" for head, said in parts.items())
        (folder / name).write_text(f"# {title}\n\n{text}\n", encoding="utf-8")
    url = serve_app(RAGFILTER_DATA_DIR=str(tmp_path / "workspace"))
    walk(open_tab(url=url, newcomer=True), folder)


def walk(tab: Any, folder: Path) -> None:
    page = tab.page
    # Nothing is there yet, and the page says where to go.
    page.get_by_role("link", name="Or add your own files").click()
    tab.keyed("upload-kind").get_by_text("Folder", exact=True).click()
    box = tab.rest().page.locator("[data-testid='stFileUploader'] input[type='file']")
    expect(box).to_have_attribute("webkitdirectory", "")
    box.set_input_files(folder)
    # Each part of a text is a chunk, named by its headings.
    chunks = tab.keyed("first-chunks").locator("strong")
    for place, heading in enumerate(("Boats", "Boats > Oars", "Boats > Sails", "Owls > Hunting")):
        expect(chunks.nth(place)).to_have_text(re.compile(f"{heading}$"))
    expect(chunks).to_have_count(6)
    tab.keyed("upload-name", "input").fill("handbook")
    tab.keyed("upload-name", "input").press("Enter")
    expect(tab.keyed("index", "button")).to_be_enabled()
    tab.click("index")
    expect(page.get_by_text("holds 9 chunks")).to_be_visible()
    page.get_by_role("button", name="Ask a question").first.click()
    tab.keyed("question", "input").fill(TROLLS)
    tab.keyed("question", "input").press("Enter")
    expect(page.locator(".rf-headline")).to_contain_text("9 passages found")
    tab.rest().click("open-evidence")
    expect(tab.kept).to_contain_text("of 9 retrieved")
    expect(tab.cell(0, "title")).to_have_text("Trolls > Fire")
    kept = int(tab.rest().kept.inner_text().split()[0])
    assert 0 < kept < 9
    # Why one was dropped, and how to bring it back.
    tab.keyed("table-bar").get_by_text("Kept first", exact=True).click()
    tab.rest().click_row(kept)
    expect(tab.chunk).to_be_visible()
    expect(tab.chunk).to_contain_text(re.compile(r"(Quality|Cutoff) dropped: .*\d\.\d{3}"))
    tab.rest().click("whatif-0")
    expect(tab.kept).not_to_contain_text(f"{kept} kept")
    more = int(tab.rest().kept.inner_text().split()[0])
    assert more > kept
    # In front of an audience.
    page.locator(".stMain").press("p")
    expect(page.locator("h1.rf-question")).to_have_text(TROLLS)
    expect(page.locator(".rf-headline")).to_contain_text(
        re.compile(rf"9 passages found.*\b{more}\b")
    )
    page.locator(".stMain").press("b")
    expect(page.locator(".rf-scene")).to_be_visible()
