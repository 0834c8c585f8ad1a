"""Text from outside is shown literally everywhere on the Inspect page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from acting import active
from faults import Behave, Serve, error_body, says
from faults import page as http_page
from hostile import CANARY, CHUNKS, HOSTILE, ODD, SAID, build

from ragfilter.ui.inspect.chunk_panel import PARTS
from ragfilter.ui.session.state import PANELS

pytestmark = pytest.mark.model

LINK = {"profile": "query-must", "q": "What is in the vault?"}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("hostile"))


def opened_in_all_parts(page: Any) -> Iterator[Any]:
    """The page with each panel, and with chunks in each of their parts."""
    yield page
    for panel in PANELS:
        yield page.choose("panel-box", panel)
    # All are listed, and tests/ui/test_prose.py has each text.
    for chunk, part in zip((*CHUNKS[::5], ODD), cycle(PARTS), strict=False):
        page.session.part = part
        yield page.open_chunk(chunk.id)
    yield page.switch("clearance", True)
    yield page.choose("view-as", "Operator")


def test_text_from_a_collection_or_a_link_does_nothing(open_page: Any, workspace: Path) -> None:
    nasty = {"profile": HOSTILE[0], "collection": HOSTILE[1], HOSTILE[2]: "1"}
    assert active(open_page({"q": HOSTILE[0]} | nasty, workspace=workspace)) == []
    assert active(open_page(workspace=workspace)) == []
    page = open_page(LINK, workspace=workspace).switch("clearance", False)
    assert f"of {len(CHUNKS)} retrieved" in page.strip
    assert sum(CANARY in button.label for button in page.at.button) > 5
    for each in opened_in_all_parts(page):
        assert active(each) == []
        assert CANARY in each.sent


@pytest.mark.parametrize(
    "behave", [says(SAID), http_page(500, error_body(SAID), "application/json")], ids=["says", "500"]
)
def test_text_from_an_llm_fetches_nothing_and_hides_no_link(
    open_page: Any, workspace: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch, behave: Behave
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", serve(behave).url)
    monkeypatch.setenv("OPENAI_MODEL", "[zqx](http://zqx.example) :material/zqx: _x_")
    page = open_page(LINK | {"judge.enabled": "true"}, workspace=workspace)
    assert active(page) == []
    page.press("answer")
    assert any(CANARY in text for text in (*page.html, *(e.value for e in page.at.markdown)))
    assert active(page, formatted=True) == []
    page.press("need-judge")
    for panel in PANELS:
        assert active(page.choose("panel-box", panel), formatted=True) == []
    page.edit_rule(CHUNKS[0].id)
    assert active(page.draft()) == []
    assert any("No draft" in text for text in page.html)


def test_a_broken_rule_is_named_and_formulas_are_harmless_in_the_csv(open_page: Any, workspace: Path) -> None:
    page = open_page(LINK, workspace=workspace).edit_rule(ODD.id)
    assert page.at.text_area(key="rule-editor").value == "{broken"
    assert any("cannot be read" in text or "not valid JSON" in text for text in page.html)
    cells = {cell for row in page.rows for cell in row.values()}
    assert {"'=1+1", '\'=HYPERLINK("http://x")', "'@SUM(A1)", "'+2", "'-3", "'\t=4"} <= cells
    formulas = [cell for cell in cells if cell[:1] in tuple("=+-@\t")]
    assert [cell for cell in formulas if not re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", cell)] == []
