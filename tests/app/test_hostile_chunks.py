"""Chunks whose text tries to be HTML, Markdown or a spreadsheet formula are shown as text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragfilter.adapters.embedder import SentenceEmbedder
from ragfilter.corpora.records import Record
from ragfilter.index import index
from ragfilter.types import Chunk
from ragfilter.ui.chunk_panel import PARTS
from ragfilter.ui.state import PANELS
from ragfilter.workspace import Workspace

pytestmark = pytest.mark.model

HTML = "<img src=x onerror=alert(1)></section><script>alert(2)</script>"
CHUNKS = (
    Chunk(f'{HTML}"', text=f"The vault is open. {HTML} $x$", title=HTML, type=HTML, source=HTML),
    Chunk("=1+1", text="The vault is closed.", title='=HYPERLINK("http://x")', source="@SUM(A1)"),
    Chunk("+2", text="", title="-3", type="\t=4", rule='{"contain": "<b>x</b>"}'),
    Chunk("odd-rule", text="The vault is far.", title="[a](javascript:alert(3))", rule="{broken"),
)


@pytest.fixture
def page(open_page: Callable[..., Any], tmp_path: Path) -> Any:
    with Workspace.open(tmp_path) as workspace:
        index(
            [Record(chunk, "here") for chunk in CHUNKS],
            name="odd", workspace=workspace, embedder=SentenceEmbedder(),
        )  # fmt: skip
    return open_page({"profile": "query-must", "q": "What is in the vault?"}, workspace=tmp_path)


def test_no_markup_of_a_chunk_becomes_markup_of_the_page(page: Any) -> None:
    assert "of 4 retrieved" in page.strip
    for panel in PANELS:
        page.choose("panel-box", panel)
        _no_markup(page)
    for chunk in CHUNKS:
        page.open_chunk(chunk.id)
        for part in PARTS:
            page.choose("chunk-part", part)
            _no_markup(page)
    figures = [json.loads(chart.proto.spec) for chart in page.at.get("plotly_chart")]
    texts = [str(trace.get("customdata")) for figure in figures for trace in figure["data"]]
    assert not [text for text in texts if "<script" in text.split("', ")[-1]]


def _no_markup(page: Any) -> None:
    for element in page.at.html:
        assert re.search(r"<(img|script|/section><)", element.value) is None


def test_a_broken_rule_lets_its_chunk_pass_and_says_what_is_wrong(page: Any) -> None:
    assert "odd-rule" in page.kept
    page.edit_rule("odd-rule")
    assert page.at.text_area(key="rule-editor").value == "{broken"
    assert any("cannot be read" in text or "not valid JSON" in text for text in page.html)


def test_formulas_are_made_harmless_in_the_csv(page: Any) -> None:
    cells = {cell for row in page.rows for cell in row.values()}
    assert {"'=1+1", '\'=HYPERLINK("http://x")', "'@SUM(A1)", "'+2", "'-3", "'\t=4"} <= cells
    numbers = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")
    assert not [c for c in cells if c[:1] in tuple("=+-@\t") and not numbers.fullmatch(c)]
