"""Present mode: the question, plain sentences, what was dropped step by step, and both answers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from ragfilter.ingest import demo
from ragfilter.stores.workspace import Workspace

pytestmark = pytest.mark.model

CLERIC = demo.queries()["cleric-ac6"]
STAGE = {"profile": "full", "q": CLERIC, "present": "true"}


def scene(page: Any) -> str:
    (caption,) = (e.value for e in page.at.html if 'class="rf-scene"' in e.value)
    return re.sub(r"<[^>]+>", "", caption)


def test_a_link_opens_the_stage_with_its_sentence(open_page: Callable[..., Any]) -> None:
    page = open_page(STAGE)
    assert CLERIC in page.html
    assert any(
        text.startswith("15 chunks found by plain search, 2 pass the filter: ✕ 13 were about")
        for text in page.html
    )
    assert not page.at.sidebar.children
    assert not page.at.dataframe
    assert not any("Seeing everything" in text for text in page.html)
    assert page.at.query_params["present"] == "true"
    assert "what-does-a-7th-level-cleric-need-to-roll-to-hit-an-opponent.html" in page.downloads
    leave = page.at.button(key="present-button")
    assert (leave.label, leave.proto.shortcut) == ("Leave", "p")


def test_what_fell_is_walked_through_reason_by_reason(
    open_page: Callable[..., Any], snapshot: SnapshotAssertion
) -> None:
    page = open_page(STAGE | {"q": demo.queries()["fighter-fighter"]})
    assert scene(page) == "Everything found"
    assert scene(page.press("scene-flip")) == snapshot
    page.press("scene-flip")
    walked = []
    while not page.at.button(key="scene-next").disabled:
        page.press("scene-next")
        walked.append(scene(page))
    assert walked == [
        "8 were about another armor class", "2 were too far from the best match",
        "9 chunks pass the filter",
    ]  # fmt: skip
    assert scene(page.press("scene-back")) == snapshot
    assert scene(page.press("scene-flip")) == snapshot


def test_only_the_unfiltered_answer_is_marked(open_page: Callable[..., Any]) -> None:
    page = open_page(STAGE)
    quoted = [e.value for e in page.at.html if 'class="rf-quoted' in e.value]
    assert ["<mark>" in body for body in quoted] == [False, True]
    assert ["Armor Class 6" in body for body in quoted] == [True, True]
    assert ["Armor Class 7" in body for body in quoted] == [False, True]


def test_the_stage_of_an_empty_collection_can_be_left(
    open_page: Callable[..., Any], copy_demo: Callable[[], Path]
) -> None:
    workspace = copy_demo()
    with Workspace.open(workspace) as opened:
        opened.store().create("hollow", embedder="all-MiniLM-L6-v2")
    page = open_page({"present": "true", "collection": "hollow"}, workspace=workspace)
    assert any("Collection hollow is empty" in text for text in page.html)
    page.press("present-button")
    assert not page.session.present


def test_a_user_is_shown_nothing_hidden(open_page: Callable[..., Any]) -> None:
    secret = "secret-treasure-maps"
    asked = {"profile": "adaptive-gap", "q": "Which treasure maps are false?"}
    page = open_page(asked).switch("clearance", False)
    page.session.present = True
    assert "Which Treasure Maps Are False" in page.run().sent
    page = open_page(asked | {"present": "true"})
    page.session.operator = True
    page.run()
    assert secret not in page.sent
    assert "Which Treasure Maps Are False" not in page.sent
