"""Text from outside is shown as text, wherever it stands on the page.

The page is walked element by element, and every string that Streamlit is sent is taken for Markdown
but where `PLAIN` says otherwise: a new place is covered before anyone thinks of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from faults import Behave, Serve, error_body, says
from faults import page as http_page
from google.protobuf.message import Message
from hostile import CANARY, CHUNKS, HOSTILE, ODD, SAID, build
from streamlit_markdown import acts, fetches

from ragfilter.ui.panels.chunk import PARTS
from ragfilter.ui.session.state import PANELS

pytestmark = pytest.mark.model

LINK = {"profile": "query-must", "q": "What is in the vault?"}

PLAIN = {
    "Code.code_text", "Text.body", "TextInput.default", "TextInput.value", "TextArea.default",
    "TextArea.value", "Selectbox.options", "Selectbox.raw_value", "DownloadButton.url",
}  # fmt: skip
"""Strings that Streamlit shows as they are."""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("hostile"))


def strings(message: Message) -> Iterator[tuple[str, str]]:
    """Every string in what is sent for an element, with the names of its message and field."""
    for field, value in message.ListFields():
        for each in value if field.is_repeated else (value,):
            if isinstance(each, Message):
                yield from strings(each)
            elif isinstance(each, str):
                yield f"{message.DESCRIPTOR.name}.{field.name}", each


def hover_texts(spec: str) -> Iterator[str]:
    """What plotly shows of a figure; the first of a point's data is its id, which stays unseen."""

    def walk(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for name, each in value.items():
                rows = [row[1:] for row in each] if name == "customdata" else each
                yield from walk(rows)
        elif isinstance(value, list):
            for each in value:
                yield from walk(each)
        elif isinstance(value, str):
            yield value

    yield from walk(json.loads(spec))


OURS = "b|br|i|p|em|h1|h2|h3|ul|ol|li|dl|dt|dd|div|span|code|section|style"


def markup(html: str) -> list[str]:
    """Tags that the page itself never writes."""
    return re.findall(rf"<(?!/?(?:{OURS})\b)", html)


OWN_MARKDOWN = {
    "code_inline", "strong_open", "strong_close", "hardbreak",
    "bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close",
}  # fmt: skip
"""What our own messages and labels are made of; none of it is more than a look."""


def active(page: Any, *, formatted: bool = False) -> list[tuple[str, str, Any]]:
    """Where on the page text from outside does anything. `formatted`: what an LLM wrote may be."""
    found: list[tuple[str, str, Any]] = []
    for node in page.at:
        proto = getattr(node, "proto", None)
        for name, text in strings(proto) if isinstance(proto, Message) else ():
            bad: Any = ()
            if name == "PlotlyChart.spec":
                bad = [t for t in hover_texts(text) if CANARY in t and markup(t)]
            elif CANARY not in text or name in PLAIN:
                continue
            elif name == "Html.body":
                bad = markup(text)
            elif name == "Markdown.body" and formatted:
                bad = fetches(text)
            else:
                bad = acts(re.sub(r":(gray|small)\[", "[", text)) - OWN_MARKDOWN
            if bad:
                found.append((name, text, bad))
    return found


def opened_in_all_parts(page: Any) -> Iterator[Any]:
    """The page with each panel, with each chunk, and with one of them in each of its parts."""
    yield page
    for panel in PANELS:
        yield page.choose("panel-box", panel)
    for chunk in CHUNKS:
        yield page.open_chunk(chunk.id)
    for part in PARTS:
        yield page.choose("chunk-part", part)
    yield page.switch("clearance", True)
    yield page.choose("view-as", "Operator")


def test_text_from_a_collection_or_a_link_does_nothing(
    open_page: Callable[..., Any], workspace: Path
) -> None:
    nasty = {"profile": HOSTILE[0], "collection": HOSTILE[1], HOSTILE[2]: "1"}
    assert active(open_page({"q": HOSTILE[0]} | nasty, workspace=workspace)) == []
    assert active(open_page(workspace=workspace)) == []
    page = open_page(LINK, workspace=workspace)
    assert f"of {len(CHUNKS)} retrieved" in page.strip
    assert sum(CANARY in button.label for button in page.at.button) > 5
    for each in opened_in_all_parts(page):
        assert active(each) == []
        assert CANARY in each.sent


@pytest.mark.parametrize(
    "behave",
    [says(SAID), http_page(500, error_body(SAID), "application/json")],
    ids=["says", "500"],
)
def test_text_from_an_llm_fetches_nothing_and_hides_no_link(
    open_page: Callable[..., Any],
    workspace: Path,
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
    behave: Behave,
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
    assert active(page.press("rule-draft")) == []
    assert any("No draft" in text for text in page.html)


@pytest.fixture
def page(open_page: Callable[..., Any], workspace: Path) -> Any:
    return open_page(LINK, workspace=workspace)


def test_a_broken_rule_lets_its_chunk_pass_and_says_what_is_wrong(page: Any) -> None:
    assert ODD.id in page.ids
    page.edit_rule(ODD.id)
    assert page.at.text_area(key="rule-editor").value == "{broken"
    assert any("cannot be read" in text or "not valid JSON" in text for text in page.html)


def test_formulas_are_made_harmless_in_the_csv(page: Any) -> None:
    cells = {cell for row in page.rows for cell in row.values()}
    assert {"'=1+1", '\'=HYPERLINK("http://x")', "'@SUM(A1)", "'+2", "'-3", "'\t=4"} <= cells
    numbers = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")
    assert not [c for c in cells if c[:1] in tuple("=+-@\t") and not numbers.fullmatch(c)]
