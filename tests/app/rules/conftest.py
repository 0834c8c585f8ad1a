"""The Rules page in a workspace that the tests of a file share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rules_page import open_rules

from ragfilter.ui.kit.rule_editor import rule_effect, visible_collection

GATHERED = 40
"""How many labelled questions a change is tried on. All 156 would take two seconds for each new workspace."""


@pytest.fixture(autouse=True)
def _few_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (rule_effect, visible_collection):
        monkeypatch.setattr(module, "MAX_LABELLED", GATHERED)


@pytest.fixture(scope="module")
def workspace(copy_demo: Callable[[], Path]) -> Path:
    """One copy for this file; tests revert their edits or edit chunks of their own."""
    return copy_demo()


@pytest.fixture
def page(open_page: Callable[..., Any], workspace: Path) -> Any:
    return open_rules(open_page(workspace=workspace))
