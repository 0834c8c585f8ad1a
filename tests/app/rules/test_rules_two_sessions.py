"""Two sessions edit the same chunk on the Rules page: neither overwrites what it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults import says, servers
from rules_page import open_chunk, open_rules, stored, told

from ragfilter.rules import edits
from ragfilter.ui.session import resources

pytestmark = pytest.mark.model

CHUNK = "monster-beholder"
THEIRS, DRAFT = '{"contain":"theirs"}', '{"contain_one_of":[["eye","beholder"]]}'


def save(rule: str | None) -> None:
    """Save as another session does."""
    bench = resources.open_resources().bench
    edits.save(
        bench.collection("demo"), bench.journal,
        chunk_id=CHUNK, rule=rule, expected=stored(CHUNK), who="test",
    )  # fmt: skip


def test_neither_template_nor_draft_overwrites_what_was_saved_since(
    open_page: Callable[..., Any], workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with servers() as start:
        monkeypatch.setenv("OPENAI_BASE_URL", start(says(DRAFT)).url)
        monkeypatch.setenv("OPENAI_MODEL", "small-model")
        page = open_chunk(open_rules(open_page(workspace=workspace)), CHUNK)
        for button in ("rule-template", "rule-draft"):
            save(THEIRS)
            page.press(button)
            assert "theirs" not in page.at.text_area(key="rule-editor").value
            page.press("rule-save")
            if "rule-confirm" in page.buttons:
                page.press("rule-confirm")
            assert "yours is still in the editor" in told(page)
            assert "Stored rule (by test, 20" in told(page)
            assert stored(CHUNK) == THEIRS
            page.press("rule-take")
            save(None)
            page.run()
        # Undo takes back the last edit only if the author has seen it.
        save('{"contain":"mine"}')
        page.run()
        save(THEIRS)
        page.press("rules-undo")
        assert "Not undone: " in told(page)
        assert stored(CHUNK) == THEIRS
