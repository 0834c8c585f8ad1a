"""The Rules page in a workspace that the tests of a file share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragfilter.ui.kit.rule_editor import rule_effect, visible_collection

GATHERED = 20
"""How many labelled questions a change is tried on, of 156."""


@pytest.fixture(autouse=True)
def _few_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (rule_effect, visible_collection):
        monkeypatch.setattr(module, "MAX_LABELLED", GATHERED)


@pytest.fixture
def page(open_page: Any, workspace: Path) -> Any:
    return open_page(workspace=workspace, on="rules")
