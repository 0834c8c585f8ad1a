"""Present mode: the question, plain sentences, what was dropped step by step, and both answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragfilter.ingest import demo
from ragfilter.stores.workspace import Workspace

pytestmark = pytest.mark.model

CLERIC = demo.queries()["cleric-ac6"]
STAGE = {"profile": "full", "q": CLERIC, "present": "true"}


def said(page: Any) -> list[str]:
    """The sentences at the top, without their markup."""
    return [
        re.sub(r"[*\\]", "", text.value) for text in page.at.markdown if text.help and text.value
    ]


def scene(page: Any) -> str:
    (caption,) = (e.value for e in page.at.html if 'class="rf-scene"' in e.value)
    return re.sub(r"<[^>]+>", "", caption)


def test_a_link_opens_the_stage_with_its_sentences(open_page: Callable[..., Any]) -> None:
    page = open_page(STAGE)
    assert CLERIC in page.html
    assert said(page) == [
        "Of 200 passages found, 2 are needed.",
        "80 were about another armor class, 3 were for other questions, 101 came too far down the "
        "list, 7 did not match well enough, 7 were too far from the best match.",
        "The prompt shrinks from 2,329 (the first 15 passages) to 313 tokens: 87% less.",
    ]
    # `full` has a limit and no cliff: its help says so.
    (fell,) = (text.help for text in page.at.markdown if "too far from" in text.value)
    assert fell.endswith(
        "“Too far” means beyond a limit set from the best match; the cut is not at a jump."
    )
    assert not page.at.sidebar.children
    assert not page.at.dataframe
    assert page.at.query_params["present"] == "true"
    leave = page.at.button(key="present-button")
    assert (leave.label, leave.proto.shortcut) == ("Leave", "p")


def test_what_fell_is_walked_through_layer_by_layer(open_page: Callable[..., Any]) -> None:
    page = open_page(STAGE)
    assert scene(page) == "2 passages needed"
    page.press("scene-flip")
    assert scene(page) == "Everything found: 200"
    walked = []
    while not page.at.button(key="scene-next").disabled:
        page.press("scene-next")
        walked.append(scene(page))
    assert walked == [
        "Step 1 of 3: 117 of 200 left",
        "Step 2 of 3: 9 of 200 left",
        "2 passages needed",
    ]
    assert scene(page.press("scene-back")) == "Step 2 of 3: 9 of 200 left"
    assert scene(page.press("scene-flip")) == "2 passages needed"


def test_every_number_is_explained_on_demand(open_page: Callable[..., Any]) -> None:
    page = open_page(STAGE)
    marks = [text.help for text in page.at.markdown if text.help and not text.value]
    assert [
        next(n for n, words in enumerate(("passages are left", "lets into", "plain search"))
             if words in mark)
        for mark in marks
    ] == [0, 1, 2]  # fmt: skip
    assert all("Tokens are" in mark for mark in marks[1:])
    (chart,) = page.at.get("plotly_chart")
    notes = json.loads(chart.proto.spec)["layout"]["annotations"]
    assert [note["text"].split("> ")[-1] for note in notes] == [
        "a plain search takes the first 15",
        "80 were about another armor class, 3 were for other questions",
        "101 came too far down the list, 7 did not match well enough",
        "7 were too far from the best match",
    ]
    assert all(note["hovertext"] for note in notes)


def test_only_the_unfiltered_answer_is_marked(open_page: Callable[..., Any]) -> None:
    page = open_page(STAGE)
    used = [e.value for e in page.at.html if 'class="rf-used ' in e.value]
    marked = [body.count("class=rf-only") for body in used]
    assert marked == [0, 13]
    assert "Marked: 13 passages that only this side used." in used[1]
    # Each side quotes its sources; the wrong armor class is on one side only.
    quotes = [text.value for text in page.at.markdown if "ATTACK MATRIX" in text.value]
    assert sum("Armor Class 6" in quote for quote in quotes) == 2
    assert sum("Armor Class 7" in quote for quote in quotes) == 1


def test_without_a_question_the_stage_offers_one(open_page: Callable[..., Any]) -> None:
    page = open_page({"profile": "full", "present": "true"})
    assert any("Ask a question to show what the filter does" in text for text in page.html)
    page.ask(CLERIC)
    assert said(page)[0] == "Of 200 passages found, 2 are needed."


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
    page.press("scene-flip")
    assert secret not in page.sent
    assert "Which Treasure Maps Are False" not in page.sent


def test_what_is_kept_is_not_called_needed_if_it_lacks_a_word(
    open_page: Callable[..., Any],
) -> None:
    page = open_page(STAGE | {"q": "What is a lightsaber?"})
    assert "Nothing kept mentions “lightsaber”." in " ".join(page.html)
    assert re.fullmatch(r"\d+ passages kept", scene(page))
    assert "needed" not in page.sent
