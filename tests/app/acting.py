"""Finds places on a page where text from outside is active instead of only shown.

A page is walked element by element, and every string sent to Streamlit is treated as Markdown
unless `PLAIN` says otherwise, so a new place is covered automatically.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from google.protobuf.message import Message
from hostile import CANARY
from streamlit_markdown import acts, fetches

PLAIN = {
    *("BidiComponent.json", "Code.code_text", "Text.body", "DownloadButton.url"),
    *("TextInput.default", "TextInput.value", "TextArea.default", "TextArea.value"),
    *("MultiSelect.options", "MultiSelect.raw_values", "Selectbox.options", "Selectbox.raw_value"),
}
"""Strings that Streamlit shows as they are."""


def strings(message: Message) -> Iterator[tuple[str, str]]:
    """Every string that is sent for an element, with the names of its message and field."""
    for field, value in message.ListFields():
        for each in value if field.is_repeated else (value,):
            if isinstance(each, Message):
                yield from strings(each)
            elif isinstance(each, str):
                yield f"{message.DESCRIPTOR.name}.{field.name}", each


def hover_texts(spec: str) -> Iterator[str]:
    """The hover texts of a plotly plot. The first entry of a point's data is its id, which is not shown."""

    def walk(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for name, each in value.items():
                rows = [r[1:] for r in each if isinstance(r, list)] if name == "customdata" else each
                yield from walk(rows)
        elif isinstance(value, list):
            for each in value:
                yield from walk(each)
        elif isinstance(value, str):
            yield value

    yield from walk(json.loads(spec))


OURS = (
    "article|b|br|code|dd|div|dl|dt|em|h1|h2|h3|i|li|mark|ol|p|pre|section|small|span|style|table|tbody"
    "|td|th|thead|tr|ul"
)


def markup(html: str) -> list[str]:
    """Tags that the page itself never writes."""
    return re.findall(rf"<(?!/?(?:{OURS})\b)", html)


OWN_MARKDOWN = {"code_inline", "strong_open", "strong_close", "hardbreak"} | {
    f"{name}_{end}" for name in ("bullet_list", "list_item") for end in ("open", "close")
}
"""Markdown in our own messages and labels, which only changes how text looks."""


def active(page: Any, *, formatted: bool = False) -> list[tuple[str, str, Any]]:
    """The places on the page where text from outside is active. `formatted`: text written by an
    LLM, which may be formatted."""
    found: list[tuple[str, str, Any]] = []
    for node in page.at:
        proto = getattr(node, "proto", None)
        for name, text in strings(proto) if isinstance(proto, Message) else ():
            bad: Any = ()
            if name == "PlotlyChart.spec":
                bad = [t for t in hover_texts(text) if CANARY in t and markup(t)]
            elif CANARY not in text or name in PLAIN or name.endswith(".id"):
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
