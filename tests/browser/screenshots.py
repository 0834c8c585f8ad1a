"""Screenshots of every page and mode, for visual review: at four widths, light and dark, in
`build/screenshots`. Not collected as a test; name the file to run it:

`.venv/bin/python -m pytest tests/browser/screenshots.py`
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from browser.test_every_page import CHUNK, pages

pytestmark = [pytest.mark.browser, pytest.mark.model]

FOLDER = Path(__file__).resolve().parents[2] / "build" / "screenshots"
HEIGHTS = {400: 800, 900: 900, 1920: 1080, 1440: 900}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages(open_tab: Callable[..., Any], theme: str) -> None:
    tab = open_tab(CHUNK, dark=theme == "dark")
    for name in pages(tab):
        for width, height in HEIGHTS.items():
            tab.page.set_viewport_size({"width": width, "height": height})
            # Colours and charts change over a moment.
            tab.rest().page.wait_for_timeout(300)
            tab.page.screenshot(path=FOLDER / f"{width}-{theme}" / f"{name.lower()}.png")
