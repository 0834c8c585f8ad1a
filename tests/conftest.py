"""Fixtures that more than one test folder needs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import settings

# A busy machine is slow; a law does not become false by that.
settings.register_profile("ragfilter", deadline=None)
settings.load_profile("ragfilter")

CRANFIELD = Path(__file__).resolve().parents[2] / "shared" / "data" / "cranfield"


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting or key of the machine reaches a test."""
    for name in list(os.environ):
        if name.startswith(("RAGFILTER_", "OPENAI_")) and not name.startswith("RAGFILTER_TEST_"):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def cranfield() -> Path:
    """The folder of the Cranfield collection (BEIR form), where it is at hand."""
    if not (CRANFIELD / "corpus.jsonl").exists():
        pytest.skip("the Cranfield data set is not on this machine")
    return CRANFIELD


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of Chromium; skips where there is none, fails where one is required."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path:
        return path
    if os.environ.get("RAGFILTER_TEST_REQUIRE_BROWSER"):
        pytest.fail("Chromium is required for this run and is not installed")
    pytest.skip("install Chromium (Debian: apt-get install chromium) for the browser tests")
