"""Labels in the chunk panel: the next unlabelled chunk opens, undo reverts, blind hides rank."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rules_page import open_rules

from ragfilter.engine.retrieve import run
from ragfilter.model import CutoffDetail
from ragfilter.settings.config import load
from ragfilter.stores.labels import settle
from ragfilter.ui.inspect.label_buttons import QUEUE
from ragfilter.ui.session import resources
from ragfilter.ui.session.visit import MOST_NAME

pytestmark = pytest.mark.model

DATE = r"\(\d\d \w+ \d{4}\)"
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
        opened.append(page.session.chunk)
    # From the cut outwards: the last kept, the first dropped, and so on; the first is labelled.
    around = sorted(range(len(ids)), key=lambda i: abs(i - (len(kept) - 1) - 0.5))
    expected = [ids[i] for i in around if ids[i] != ids[0]]
    assert opened[1:] == expected[:3]
    assert labels() == {opened[0]: 2, opened[1]: 0, opened[2]: 1}
    page.press("mark-undo")
    assert page.session.chunk == opened[2]
    assert labels() == {opened[0]: 2, opened[1]: 0}
    page.press("mark-undo").press("mark-undo")
    assert labels() == {}
    assert page.at.button(key="mark-undo").disabled


def test_beside_the_cut_is_what_stood_there_when_it_was_made(
    open_page: Callable[..., Any], copy_demo: Callable[[], Path]
) -> None:
    """Shared words and pins change the order, so it is not the order of the ranks."""
    asked = "What does a 7th level cleric need to roll to hit an opponent with armor class 6?"
    page = open_page(LINK | {"q": asked, "profile": "full"}, workspace=copy_demo())
    backends = resources.open_resources().bench.backends("demo")
    result = run(asked, load(profile="full", environ={}).settings, backends, wide=True)
    detail = result.trace("cutoff").detail
    assert isinstance(detail, CutoffDetail)
    kept = [hit.id for hit in result.kept]
    assert kept == page.kept
    beside = [kept[-1], detail.ids[len(kept)]]
    page.choose("panel-box", "Chunk").press("mark-next")
    opened = [page.session.chunk]
    page.press("mark-1")
    assert [*opened, page.session.chunk] == beside
    by_rank = [hit.id for hit in result.pool.hits]
    assert by_rank.index(beside[1]) != by_rank.index(beside[0]) + 1


def shows(page: Any, told: str) -> bool:
    return any(re.search(told, text) for text in page.html)


def test_what_was_said_of_a_chunk_is_shown_and_can_be_changed(page: Any) -> None:
    first = page.ids[0]
    page.open_chunk(first).press("mark-2").open_chunk(first)
    assert shows(page, f"curator: relevant {DATE}.")
    page.press("mark-0").open_chunk(first)
    assert shows(page, f"curator: not relevant {DATE}.")
    assert labels() == {first: 0}


def sign(page: Any, name: str) -> Any:
    page.at.text_input(key="author-box").set_value(name)
    return page.run()


def test_two_people_on_one_server_are_told_apart(
    open_page: Callable[..., Any], copy_demo: Callable[[], Path]
) -> None:
    workspace = copy_demo()
    for name, grade in (("Ada", 2), ("  Bob  ", 0)):
        page = sign(open_page(LINK, workspace=workspace), name)
        first = page.ids[0]
        page.open_chunk(first).press(f"mark-{grade}").open_chunk(first)
    told = (
        f"Ada: relevant {DATE}; Bob: not relevant {DATE}. They disagree, and the last one counts."
    )
    assert shows(page, told)

    # The name stays with the session on every page.
    open_rules(page)
    assert page.at.text_input(key="author-box").value == "Bob"
    page.press("rules-next")
    page.at.text_area(key="rule-editor").set_value('{"contain": "strength"}')
    page.run().press("rule-save").choose("rules-part", "History")
    (frame,) = (f.value for f in page.at.dataframe if "who" in f.value)
    assert list(frame["who"]) == ["Bob"]
    sign(page, "Cy" * MOST_NAME)
    page.session.rules.step = int(frame["edit"][0])
    page.run().press("history-undo")
    (frame,) = (f.value for f in page.at.dataframe if "who" in f.value)
    assert list(frame["who"]) == [("Cy" * MOST_NAME)[:MOST_NAME], "Bob"]
    sign(page, " ")
    assert page.at.text_input(key="author-box").value == "curator"


def test_blind_hides_rank_and_decisions_and_mixes_the_order(page: Any) -> None:
    ids = page.ids
    page.open_chunk(ids[0])
    assert any("rank 1" in text for text in page.html)
    page.press("blind-box")
    assert not any("rank 1 ·" in text for text in page.html)
    opened = []
    for _ in range(6):
        page.press("mark-1")
        opened.append(ids.index(page.session.chunk))
    assert opened != sorted(opened)
    assert any("chunks offered have no label" in text for text in page.html)
    assert "chunk-part" not in {each.key.partition("--")[0] for each in page.at.get("button_group")}


def test_a_question_is_kept_in_the_history_unless_it_is_off(page: Any) -> None:
    book = resources.open_resources().bench.labels
    assert list(book.queries("demo", "asked").values()) == [QUESTION]
    book.record_history("demo", False)
    page.ask("what is a beholder?")
    assert book.queries("demo", "asked") == {}


def test_ticked_rows_are_labelled_together_and_taken_back_together(page: Any) -> None:
    ids = page.ids
    page.at.toggle(key="label-several").set_value(True)
    page.run()
    assert page.at.button(key="mark-several-2").disabled
    tick(page, 0, 3, 5)
    page.press("mark-several-2")
    assert labels() == {ids[0]: 2, ids[3]: 2, ids[5]: 2}
    assert page.at.button(key="mark-several-0").disabled
    tick(page, 3)
    page.press("mark-several-0")
    assert labels() == {ids[0]: 2, ids[3]: 0, ids[5]: 2}
    page.press("mark-several-undo")
    assert labels() == {ids[0]: 2, ids[3]: 2, ids[5]: 2}
    page.press("mark-several-undo")
    assert labels() == {}


def test_only_rows_that_the_filter_shows_are_labelled(page: Any) -> None:
    ids = page.ids
    page.at.toggle(key="label-several").set_value(True)
    page.run()
    tick(page, 0, 1)
    page.at.text_input(key="filter").set_value(ids[1])
    page.run().press("mark-several-1")
    assert labels() == {ids[1]: 1}


def test_ten_labels_and_more_are_taken_back_one_by_one(page: Any) -> None:
    page.open_chunk(page.ids[0])
    for _ in range(12):
        page.press("mark-1")
    assert len(labels()) == 12
    for left in range(11, -1, -1):
        page.press("mark-undo")
        assert len(labels()) == left


def test_undo_says_so_if_the_label_belongs_to_another_question(page: Any) -> None:
    page.open_chunk(page.ids[0]).press("mark-2")
    page.at.text_input(key="question").set_value("What is a beholder?")
    page.press("ask-button")
    page.open_chunk(opened := page.ids[0]).press("mark-undo")
    assert labels() == {}
    assert page.session.chunk == opened
    assert [f"Undone: the last label for “{QUESTION}” in demo."] == [t.value for t in page.at.toast]


def test_the_queue_opens_by_a_button_and_says_when_it_is_empty(page: Any) -> None:
    page.choose("panel-box", "Chunk").press("mark-next")
    # The last kept chunk is next to the cut.
    last = page.kept[-1]
    assert page.session.chunk == last
    # Of the chunks that the queue covers, only this one is left.
    first = [i for i in page.ids[:QUEUE] if i != last]
    book = resources.open_resources().bench.labels
    book.mark("demo", QUESTION, first, 0, who="ann")
    page.run().press("mark-2")
    assert page.session.chunk == last
    page.session.chunk = None
    begin = page.run().at.button(key="mark-next")
    assert begin.disabled
    assert begin.help == f"All of the first {QUEUE} chunks, and all that are kept, have a label."


def test_labellers_who_disagree_are_shown_and_blind_ones_see_their_own_labels(page: Any) -> None:
    first, second = page.kept[-1], page.kept[-2]
    book = resources.open_resources().bench.labels
    book.mark("demo", QUESTION, [first], 0, who="ann")
    page.open_chunk(first).press("mark-2").open_chunk(first)
    told = f"ann: not relevant {DATE}; curator: relevant {DATE}. They disagree"
    assert shows(page, told)
    book.mark("demo", QUESTION, [second], 0, who="ann")
    page.press("blind-box").open_chunk(second)
    assert any("No label yet" in text for text in page.html)
    assert not any("ann:" in text for text in page.html)
    assert any("Hidden while you label blind" in text for text in page.html)
    assert not page.at.dataframe
    # Elsewhere nothing is revealed either, and Blind can be switched off there.
    kept = sum("kept have no label" in text for text in page.html)
    assert not kept
    for panel in ("Answer", "Prompt", "Debug"):
        page.session.panel = panel
        page.run()
        assert sum("Hidden while you label blind" in text for text in page.html) == 3
    page.press("blind-box")
    assert page.at.dataframe


def tick(page: Any, *rows: int) -> None:
    """Do what ticking rows of the table does; the browser test does the clicking."""
    shown = [i for i in page.ids if page.at.text_input(key="filter").value in i]
    page.session.ticked = QUESTION, [shown[row] for row in rows]
    page.run()
