"""Every control is explained by its label's help, or by a question mark next to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.model

CONTROLS = {
    "button", "button_group", "checkbox", "download_button", "multiselect", "number_input",
    "selectbox", "slider", "text_area", "text_input",
}  # fmt: skip
COLLAPSED = 2
OWLBEARS = {"q": "Tell me about owlbears", "collection": "demo"}
RERANKED = {"quality.mode": "always", "quality.reranker": "late_interaction"}
PANELS = ("Answer", "Prompt", "Chunk", "Judge", "Rounds", "Debug")
PARTS = ("Text", "Rule", "References")


def unexplained(block: Any) -> Iterator[str]:
    """The controls in `block` without help, either their own visible help or a hint next to
    them."""
    inside = list(block.children.values())
    hinted = any(getattr(getattr(one, "proto", None), "help", "")
                 for one in inside if one.type == "markdown")  # fmt: skip
    for one in inside:
        proto = getattr(one, "proto", None)
        if one.type in CONTROLS or hasattr(proto, "label_visibility"):
            hidden = getattr(getattr(proto, "label_visibility", None), "value", 0) == COLLAPSED
            if not (hinted if hidden else proto.help):
                yield f"{one.type} {getattr(proto, 'label', '')}"
        if hasattr(one, "children"):
            yield from unexplained(one)


def of_page(page: Any) -> list[str]:
    assert len(page.at.slider) > 3
    return [*unexplained(page.at.main), *unexplained(page.at.sidebar)]


BOX = ["text_input Question"]
"""Ask, beside it, says what it does."""


def test_every_control_before_a_question(open_page: Callable[..., Any]) -> None:
    page = open_page({"profile": "llm-filter"})
    assert of_page(page) == BOX


def test_every_control_of_every_panel(open_page: Callable[..., Any]) -> None:
    page = open_page(OWLBEARS | {"profile": "full"} | RERANKED)
    assert page.at.button_group(key="curve-values").options == ["By score", "By distance"]
    page.open_chunk(page.ids[0])
    for panel in PANELS:
        assert of_page(page.choose("panel-box", panel)) == BOX, panel
    page.choose("panel-box", "Chunk")
    for part in PARTS:
        assert of_page(page.choose("chunk-part", part)) == BOX, part
