"""Two sessions edit the same chunk on the Rules page: neither overwrites what it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults import says, servers
from rules_page import open_rules, settled

from ragfilter.rules import edits
from ragfilter.ui.session import resources
from ragfilter.workbench import Workbench

pytestmark = pytest.mark.model

CHUNK = "monster-beholder"
THEIRS, DRAFT = '{"contain":"theirs"}', '{"contain_one_of":[["eye","beholder"]]}'


@pytest.fixture(scope="module")
def workspace(copy_demo: Callable[[], Path]) -> Path:
    return copy_demo()


def bench() -> Workbench:
    found: Workbench = resources.open_resources().bench
    return found


def stored() -> str | None:
    return bench().collection("demo").rule(CHUNK)


def save(rule: str | None) -> None:
    """Save as another session does."""
    edits.save(
        bench().collection("demo"), bench().journal,
        chunk_id=CHUNK, rule=rule, expected=stored(), who="test",
    )  # fmt: skip


def save_here(page: Any) -> Any:
    page.press("rule-save")
    return page.press("rule-confirm") if "rule-confirm" in page.buttons else page


def told(page: Any) -> str:
    return "\n".join(page.html)


def text(page: Any) -> str:
    found: str = page.at.text_area(key="rule-editor").value
    return found


def test_neither_template_nor_draft_overwrites_what_was_saved_since(
    open_page: Callable[..., Any], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with servers() as start:
        server = start(says(DRAFT))
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_MODEL", "small-model")
        page = open_rules(open_page(workspace=workspace))
        page.at.session_state["rules-open"] = CHUNK
        settled(page.run())
        for button in ("rule-template", "rule-draft"):
            save(THEIRS)
            page.press(button)
            assert "theirs" not in text(page)
            save_here(page)
            assert "yours is still in the editor" in told(page)
            assert stored() == THEIRS
            page.press("rule-take")
            save(None)
            page.run()
        # Undo takes back the last edit only if the author has seen it.
        save('{"contain":"mine"}')
        page.run()
        save(THEIRS)
        page.press("rule-undo")
        assert "Not undone: " in told(page)
        assert stored() == THEIRS
