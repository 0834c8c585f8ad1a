"""`pip install 'ragfilter[app]'` and `ragfilter app`, in a folder without a checkout."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import packed
import pytest
from playwright.sync_api import expect
from waiting import PROCESS_S

from browser.conftest import OpenTab, free_port, healthy

PAPER = "rgb(251, 251, 249)"
"""The light background of our theme; Streamlit's is white."""


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


def test_an_installed_app_answers(installed: str, open_tab: OpenTab) -> None:
    tab = open_tab(url=installed).ask("Tell me about owlbears")
    expect(tab.kept).to_contain_text("of 200 retrieved")
    # The theme and the other pages come from the package as well.
    expect(tab.page.locator(".stApp")).to_have_css("background-color", PAPER)
    tab.visit("Compare")
    expect(tab.page.locator("h1")).to_have_text("Compare")
