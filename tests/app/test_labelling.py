"""Marks on the chunk panel: the next unlabelled chunk opens, undo takes back, blind hides rank."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragfilter.stores.labels import settle
from ragfilter.ui.session import resources

pytestmark = pytest.mark.model

QUESTION = "Tell me about owlbears"
LINK = {"q": QUESTION, "collection": "demo", "profile": "adaptive-gap"}


@pytest.fixture
def page(open_page: Callable[..., Any], copy_demo: Callable[[], Path]) -> Any:
    return open_page(LINK, workspace=copy_demo())


def labels() -> dict[str, int]:
    book = resources.open_resources().bench.labels
    return settle(book.standing("demo")).get(QUESTION, {})


def test_a_mark_opens_the_next_chunk_beside_the_cut_and_undo_comes_back(page: Any) -> None:
    kept, ids = page.kept, page.ids
    page.open_chunk(ids[0])
    opened = [ids[0]]
    for grade in (2, 0, 1):
        page.press(f"mark-{grade}")
        opened.append(page.at.session_state["chunk"])
    # From the cut outwards: the last kept, the first dropped, and so on; the first is labelled.
    around = sorted(range(len(ids)), key=lambda i: abs(i - (len(kept) - 1) - 0.5))
    expected = [ids[i] for i in around if ids[i] != ids[0]]
    assert opened[1:] == expected[:3]
    assert labels() == {opened[0]: 2, opened[1]: 0, opened[2]: 1}
    page.press("mark-undo")
    assert page.at.session_state["chunk"] == opened[2]
    assert labels() == {opened[0]: 2, opened[1]: 0}
    page.press("mark-undo").press("mark-undo")
    assert labels() == {}
    assert page.at.button(key="mark-undo").disabled


def test_what_was_said_of_a_chunk_is_shown_and_can_be_changed(page: Any) -> None:
    first = page.ids[0]
    page.open_chunk(first).press("mark-2").open_chunk(first)
    assert any("curator: relevant." in text for text in page.html)
    page.press("mark-0").open_chunk(first)
    assert any("curator: not relevant." in text for text in page.html)
    assert labels() == {first: 0}


def test_blind_hides_rank_and_decisions_and_mixes_the_order(page: Any) -> None:
    ids = page.ids
    page.open_chunk(ids[0])
    assert any("rank 1" in text for text in page.html)
    page.at.toggle(key="blind-box").set_value(True)
    page.run()
    assert not any("rank 1 ·" in text for text in page.html)
    opened = []
    for _ in range(6):
        page.press("mark-1")
        opened.append(ids.index(page.at.session_state["chunk"]))
    assert opened != sorted(opened)


def test_a_question_is_kept_in_the_history_unless_it_is_off(page: Any) -> None:
    book = resources.open_resources().bench.labels
    assert list(book.queries("demo", "asked").values()) == [QUESTION]
    book.record_history("demo", False)
    page.ask("what is a beholder?")
    assert book.queries("demo", "asked") == {}
