"""The label book: which label counts, what undo restores, query sets and history."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from syrupy.assertion import SnapshotAssertion

from ragfilter.errors import ConflictError, InputError
from ragfilter.stores.label_book import MAX_ASKED, LabelBook, conflicts, qrels_of, query_id


@pytest.fixture
def book(book_url: str) -> Iterator[LabelBook]:
    book = LabelBook(book_url)
    yield book
    book.close()


def grades(book: LabelBook, *, llm: bool = False) -> dict[str, dict[str, int]]:
    return qrels_of(book.standing("c"), llm=llm)


def test_a_labellers_last_word_stands_and_undo_brings_the_one_before_back(book: LabelBook) -> None:
    book.label("c", "q", ["x"], 2, who="ann")
    [second] = book.label("c", " q ", ["x"], 0, who="ann")
    book.label("c", "q", ["y"], 1, who="ann")
    book.label("other", "q", ["z"], 2, who="ann")
    assert grades(book) == {"q": {"x": 0, "y": 1}}
    book.take_back([second.id])
    book.take_back([second.id])
    assert grades(book) == {"q": {"x": 2, "y": 1}}
    assert [label.chunk_id for label in book.standing("c", "q")] == ["x", "y"]
    assert book.standing("c", "another") == ()


def test_two_people_disagree_the_last_counts_and_it_is_told(book: LabelBook) -> None:
    for who, grade in (("ann", 2), ("bob", 0), ("ann", 1)):
        book.label("c", "q", ["x"], grade, who=who)
    book.label("c", "q", ["y"], 2, who="bob")
    assert grades(book) == {"q": {"x": 1, "y": 2}}
    [pair] = conflicts(book.standing("c"))
    assert {(label.who, label.grade) for label in pair} == {("ann", 1), ("bob", 0)}


def test_an_llms_labels_are_never_mixed_in_silently(book: LabelBook, snapshot: SnapshotAssertion) -> None:
    book.label("c", "q", ["x"], 0, who="ann")
    book.add("c", [("q", "x", 2), ("q", "y", 2)], who="gpt", made_by="llm")
    assert grades(book) == {"q": {"x": 0}}
    assert grades(book, llm=True) == {"q": {"x": 0, "y": 2}}
    one = book.standing("c")[-1]
    noon = replace(one, at=datetime(2025, 3, 21, 12, tzinfo=UTC))
    assert noon.words == snapshot
    assert conflicts(book.standing("c")) == ()


def test_the_version_changes_with_every_label(book: LabelBook) -> None:
    seen = {book.version("c")}
    [first] = book.label("c", "q", ["x"], 2, who="ann")
    seen.add(book.version("c"))
    book.take_back([first.id])
    book.label("c", "q", ["x"], 2, who="ann")
    assert book.version("c") not in seen


def test_another_version_changes_with_every_question(book: LabelBook) -> None:
    seen = [book.version("c", questions=True)]
    for change in (
        lambda: book.label("c", "q", ["x"], 2, who="ann"),
        lambda: book.put_set("c", "mine", {"1": "q"}),
        lambda: book.put_set("c", "mine", {"1": "another"}),
        lambda: book.remove_set("c", "mine"),
        lambda: book.remember("c", "q"),
        lambda: book.remember("c", "another"),
    ):
        change()
        seen.append(book.version("c", questions=True))
    assert all(before != after for before, after in pairwise(seen))
    book.remember("d", "q")
    assert book.version("c", questions=True) == seen[-1]


def test_query_sets_are_named_replaced_and_removed(book: LabelBook) -> None:
    book.put_set("c", "mine", {"2": "two ", "1": "one"})
    assert list(book.queries("c", "mine").items()) == [("2", "two"), ("1", "one")]
    book.put_set("c", "mine", {"3": "three"})
    book.label("c", "one", ["x"], 2, who="ann")
    assert book.sets("c") == {"mine": 1, "labelled": 1, "asked": 0}
    assert book.queries("c", "labelled") == {query_id("one"): "one"}
    book.remove_set("c", "mine")
    assert book.queries("c", "mine") == {}
    assert grades(book) == {"one": {"x": 2}}


def test_a_set_that_changed_meanwhile_is_not_replaced(book: LabelBook) -> None:
    seen = {"1": "one"}
    book.put_set("c", "mine", {"2": "two"}, before=seen)
    with pytest.raises(ConflictError, match="Somebody else has changed the query set 'mine'"):
        book.put_set("c", "mine", seen, before=seen)
    assert book.queries("c", "mine") == {"2": "two"}
    book.put_set("c", "mine", seen, before={"2": "two"})
    assert book.queries("c", "mine") == seen


@pytest.mark.parametrize(("name", "queries"), [("", {"1": "x"}), ("asked", {"1": "x"}), ("mine", {})])
def test_a_set_needs_a_name_of_its_own_and_questions(book: LabelBook, name: str, queries: dict[str, str]) -> None:
    with pytest.raises(InputError):
        book.put_set("c", name, queries)


def test_asked_questions_are_kept_once_and_can_be_forgotten(book: LabelBook) -> None:
    for question in ("one", "two", "one ", *(f"q{i}" for i in range(3))):
        book.remember("c", question)
    assert list(book.queries("c", "asked").values()) == ["two", "one", "q0", "q1", "q2"]
    book.record_history("c", False)
    book.remember("c", "three")
    assert book.queries("c", "asked") == {}
    assert not book.records_history("c")
    book.record_history("c", True)
    book.remember("c", "four")
    assert list(book.queries("c", "asked").values()) == ["four"]
    assert MAX_ASKED == 1000
