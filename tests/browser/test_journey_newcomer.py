"""A newcomer without a manual: from `pip install 'ragfilter[app]'` and `ragfilter app`, in a folder without
a checkout, to an answer from their own files, shown to an audience."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import packed
import pytest
from playwright.sync_api import expect
from waiting import PROCESS_S

from browser.conftest import free_port, healthy

pytestmark = [pytest.mark.browser, pytest.mark.model]

PAPER = "rgb(251, 251, 249)"
"""The light background of our theme; Streamlit's is white."""

SECTIONS = {
    "owls.md": (
        "Owls",
        {
            "Hunting": "Owls hunt mice at night.",
            "Nests": "Owls nest in old trees.",
            "Voice": "Owls hoot to keep others away.",
        },
    ),
    "trolls.md": (
        "Trolls",
        {
            "Wounds": "Trolls regenerate all wounds but burns.",
            "Fire": "A burned troll stays dead. Fire and acid kill trolls.",
            "Food": "Trolls eat whatever they catch.",
        },
    ),
    "boats.md": (
        "Boats\n\nBoats go down rivers and up canals.",
        {"Oars": "A rowing boat has four oars.", "Sails": "A sailing boat needs wind."},
    ),
}
TROLLS = "Do fire and acid kill trolls?"


@pytest.fixture
def installed(
    wheel: Path, bare_environ: dict[str, str], tmp_path: Path, copy_demo: Callable[[], Path]
) -> Iterator[str]:
    """The address of `ragfilter app` on a workspace with the demo, after it has answered."""
    scripts = packed.install(wheel, tmp_path / "venv", *packed.OFFLINE)
    packed.add_packages(tmp_path / "venv")
    folder = copy_demo().parent
    port, log = free_port(), tmp_path / "log.txt"
    url = f"http://127.0.0.1:{port}"
    with log.open("wb") as out:
        server = subprocess.Popen(
            [scripts / "ragfilter", "app", "--port", str(port)], cwd=folder, env=bare_environ, stdout=out, stderr=out
        )
    try:
        deadline = time.monotonic() + PROCESS_S
        while not healthy(url):
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        assert f"workspace: {folder / 'workspace'}  (" in log.read_text()
        assert log.read_text().count("://") == log.read_text().count(url) == 1
        # The folder is locked even before the first visit.
        second = subprocess.run(
            [scripts / "ragfilter", "app", "--port", str(free_port())],
            cwd=folder,
            env=bare_environ,
            capture_output=True,
            text=True,
            timeout=PROCESS_S,
        )
        assert (second.returncode, second.stdout) == (2, "")
        assert f"in use by app (process {server.pid}," in second.stderr
        yield url
    finally:
        server.send_signal(signal.SIGINT)
        code = server.wait(PROCESS_S)
    assert (code, log.read_text().endswith("Stopped.\n")) == (130, True)


def test_a_newcomer_needs_no_manual(installed: str, open_tab: Callable[..., Any], tmp_path: Path) -> None:
    folder = tmp_path / "handbook"
    folder.mkdir()
    for name, (title, parts) in SECTIONS.items():
        text = "\n\n".join(f"## {head}\n\n{said}" for head, said in parts.items())
        (folder / name).write_text(f"# {title}\n\n{text}\n", encoding="utf-8")
    tab = open_tab(url=installed, newcomer=True)
    page = tab.page
    # The theme comes from the package as well.
    expect(page.locator(".stApp")).to_have_css("background-color", PAPER)
    tab.visit("Collections").keyed("upload-kind").get_by_text("Folder", exact=True).click()
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
    tab.ask(TROLLS)
    expect(page.locator(".rf-headline")).to_contain_text("Plain search found 9 passages")
    tab.rest().click("open-evidence")
    expect(tab.kept).to_contain_text("of 9 retrieved")
    expect(tab.cell(0, "title")).to_have_text("Trolls > Fire")
    kept = int(tab.rest().kept.inner_text().split()[0])
    assert 0 < kept < 9
    # Why one was dropped, and how to bring it back.
    tab.keyed("table-bar").get_by_text("Kept first", exact=True).click()
    tab.rest().click_row(kept)
    expect(tab.chunk).to_contain_text(re.compile(r"(Quality|Cutoff) dropped: .*\d\.\d{3}"))
    tab.rest().click("whatif-0")
    expect(tab.kept).not_to_contain_text(f"{kept} kept")
    more = int(tab.rest().kept.inner_text().split()[0])
    assert more > kept
    # In front of an audience.
    page.locator(".stMain").press("p")
    expect(page.locator("h1.rf-question")).to_have_text(TROLLS)
    expect(page.locator(".rf-headline")).to_have_text("Plain search found 9 passages.")
    tab.rest().page.keyboard.press("b")
    expect(page.locator(".rf-headline")).to_contain_text(re.compile(rf"found 9 passages.*\b{more}\b"))
    # The other pages are there, too.
    tab.rest().page.keyboard.press("Escape")
    tab.rest().visit("Compare")
    expect(page.locator("h1")).to_have_text("Compare")
