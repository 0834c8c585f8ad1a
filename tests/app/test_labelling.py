"""Labels in the chunk panel and in the table, each with its undo."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ragfilter.stores.label_book import qrels_of
from ragfilter.ui import resources
from ragfilter.ui.session.state import MAX_NAME

pytestmark = pytest.mark.model

DATE = r"\(\d\d \w+ \d{4}\)"
QUESTION = "Tell me about owlbears"
LINK = {"q": QUESTION, "collection": "demo", "profile": "adaptive-gap", "open": "evidence"}


@pytest.fixture
def page(open_page: Any, workspace: Path) -> Any:
    return open_page(LINK, workspace=workspace)


def labels() -> dict[str, int]:
    book = resources.open_resources().bench.labels
    return qrels_of(book.standing("demo")).get(QUESTION, {})


def test_labels_stand_in_the_table_and_are_taken_back_one_by_one(page: Any) -> None:
    first, second, *_ = page.ids
    for chunk, grade in ((first, 2), (second, 0), (first, 1)):
        page.open_chunk(chunk).press(f"mark-{grade}")
        assert page.session.chunk == chunk
    assert labels() == {first: 1, second: 0}
    (table,) = (f.value for f in page.at.dataframe if "label" in f.value)
    assert list(table["label"].dropna()) == [1, 0]
    assert shows(page, f"curator: partly relevant {DATE}.")
    for left in ({first: 2, second: 0}, {first: 2}, {}):
        page.press("mark-undo")
        assert labels() == left
    assert page.at.button(key="mark-undo").disabled
    # Undo says so if the label belongs to another question.
    page.press("mark-2").ask("Tell me about owls")
    page.open_chunk(opened := page.ids[0]).press("mark-undo")
    assert labels() == {}
    assert page.session.chunk == opened
    assert [f"Undone: the last label for “{QUESTION}” in demo."] == [t.value for t in page.at.toast]


def test_a_label_that_came_with_the_collection_counts_until_somebody_labels_the_chunk(
    open_page: Any, workspace: Path
) -> None:
    page = open_page({"q": "Which monsters can turn people to stone?"}, workspace=workspace)
    drops = "The filter drops 5 of 5 retrieved passages labelled relevant"
    assert any(drops in said for said in page.html)

    def graded() -> dict[str, int]:
        (table,) = (f.value for f in page.at.dataframe if "label" in f.value)
        return {page.ids[i]: grade for i, grade in table["label"].dropna().items()}

    came = graded()
    assert sorted(came.values()) == [1, 2, 2, 2, 2]
    chunk = next(iter(came))
    page.open_chunk(chunk)
    assert shows(page, "Came with the collection: relevant.")
    page.press("mark-0")
    assert shows(page, f"curator: not relevant {DATE}.")
    assert not shows(page, "Came with the collection")
    assert graded() == came | {chunk: 0}
    assert shows(page, drops.replace("5 of 5", "4 of 4"))
    # The filter cannot drop what the search does not find.
    bench = resources.open_resources().bench
    far = next(i for i in bench.collection("demo").entries() if i not in page.ids)
    bench.labels.add("demo", [("Which monsters can turn people to stone?", far, 2)], who="me")
    assert shows(page.run(), drops.replace("5 of 5", "4 of 4"))


def shows(page: Any, told: str) -> bool:
    return any(re.search(told, text) for text in page.html)


def sign(page: Any, name: str) -> Any:
    page.at.text_input(key="author-box").set_value(name)
    return page.run()


def test_two_people_on_one_server_are_told_apart(open_page: Any, workspace: Path) -> None:
    for name, grade in (("Ada", 2), ("  Bob  ", 0)):
        page = sign(open_page(LINK | {"q": "What is a beholder?"}, workspace=workspace), name)
        first = page.ids[0]
        page.open_chunk(first).press(f"mark-{grade}").open_chunk(first)
    told = f"Ada: relevant {DATE}; Bob: not relevant {DATE}. They disagree, and the last one counts."
    assert shows(page, told)

    # The name stays with the session on every page.
    page.at.switch_page("pages/rules.py")
    page.run()
    assert page.at.text_input(key="author-box").value == "Bob"
    for name, kept in (("Cy" * MAX_NAME, ("Cy" * MAX_NAME)[:MAX_NAME]), (" ", "curator")):
        assert sign(page, name).at.text_input(key="author-box").value == kept


def test_a_question_of_a_trace_is_filtered_over_what_was_recorded(page: Any) -> None:
    first, *_, last = page.ids
    book = resources.open_resources().bench.labels
    assert "open-recorded" not in page.buttons
    # Recorded hits that the user may not see are none.
    book.record("demo", {QUESTION: ["secret-mill-sword"]})
    assert "open-recorded" not in page.ask(QUESTION).buttons
    book.record("demo", {QUESTION: [last, first, "gone"]})
    page.ask(QUESTION).press("open-recorded")
    assert page.ids == [first, last]
    assert page.at.query_params["open"] == "evidence,recorded"
    assert len(page.press("open-recorded").ids) > 2
