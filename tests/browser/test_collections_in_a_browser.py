"""A newcomer's data in a real browser: a folder of Markdown in, indexed, asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.model]

PAGES = {
    "trolls.md": "# Trolls\n\nTrolls regenerate.\n\n## Fire\n\nA burned troll stays dead.\n",
    "owls.md": "# Owls\n\nOwls hoot at night and hunt mice.\n",
    "boats.md": "# Boats\n\nA rowing boat carries four people over a river.\n",
}


def test_a_folder_of_markdown_is_indexed_from_the_page_and_asked(
    open_tab: Callable[..., Any], tmp_path: Path
) -> None:
    tab = open_tab({"q": "Tell me about owlbears", "profile": "adaptive-gap"}).expect_kept(4)
    for name, text in PAGES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    tab.page.get_by_role("link", name="Collections").click()
    box = tab.page.locator("[data-testid='stFileUploader'] input[type='file']")
    expect(box).to_be_attached()
    box.set_input_files([tmp_path / name for name in PAGES])
    chunks = tab.page.locator(".rf-chunks article")
    expect(chunks).to_have_count(4)
    expect(chunks.nth(2)).to_contain_text("Trolls")
    expect(chunks.nth(3)).to_contain_text("Trolls > Fire")
    name = tab.keyed("upload-name", "input")
    name.fill("handbook")
    name.press("Enter")
    button = tab.keyed("index", "button")
    expect(button).to_be_enabled()
    button.click()
    expect(tab.page.get_by_text("holds 4 chunks")).to_be_visible()
    tab.page.get_by_role("button", name="Ask it").first.click()
    # The question that was asked before is still there.
    expect(tab.keyed("question", "input")).to_have_value("Tell me about owlbears")
    tab.keyed("question", "input").fill("How does one kill a troll for good?")
    tab.keyed("question", "input").press("Enter")
    expect(tab.kept).to_contain_text("of 4 retrieved")
    expect(tab.cell(0, "title")).to_have_text("Trolls > Fire")
