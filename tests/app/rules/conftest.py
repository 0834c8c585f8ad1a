"""The Rules page in a workspace that the tests of a file share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragfilter.ui import resources
from ragfilter.ui.kit.rule_editor import rule_effect, visible_collection

GATHERED = 20
"""How many labelled questions a change is tried on, of 156."""


@pytest.fixture(autouse=True)
def _few_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (rule_effect, visible_collection):
        monkeypatch.setattr(module, "MAX_LABELLED", GATHERED)


@pytest.fixture
def page(open_page: Any, workspace: Path) -> Iterator[Any]:
    """The page, whose rules are reverted even if the test fails."""
    made = open_page(workspace=workspace, on="rules")
    store = resources.open_resources().bench.collection("demo")
    before = store.rules([*store.entries()])
    yield made
    now = store.rules([*before])
    store.set_rules({i: rule for i, rule in before.items() if rule != now.get(i)})
