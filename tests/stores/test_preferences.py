"""Votes on pairs of answers: one per person and pair, whichever side was on the left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import pytest

from ragfilter.stores.preferences import Choice, PairSide, PreferenceBook, on_pair, on_settings

FULL = PairSide("full", {"cutoff.max_results": 3}, ("a", "b"), "extractive")
PLAIN = PairSide("unfiltered", {}, ("a", "b", "c"), "extractive")
OTHER = PairSide("unfiltered", {}, ("d",), "extractive")


@pytest.fixture
def book(book_url: str) -> Iterator[PreferenceBook]:
    with closing(PreferenceBook(book_url)) as book:
        yield book


@pytest.mark.parametrize(
    ("said", "turned"), [("first", "second"), ("second", "first"), ("both", "both"), ("neither", "neither")]
)
def test_a_vote_is_the_same_from_either_side(book: PreferenceBook, said: Choice, turned: Choice) -> None:
    book.record("demo", " Who? ", FULL, PLAIN, said, who="ann")
    (vote,) = on_pair(book.of("demo"), PLAIN, FULL)
    assert vote.seen_from(FULL) == said
    assert vote.seen_from(PLAIN) == turned
    assert sorted((vote.first.text, vote.second.text)) == sorted((FULL.text, PLAIN.text))


def test_a_person_has_one_vote_a_pair_and_may_change_it(book: PreferenceBook) -> None:
    book.record("demo", "Who?", FULL, PLAIN, "first", who="ann")
    book.record("demo", "Who?", FULL, PLAIN, "neither", who="bob")
    book.record("demo", "Who?", PLAIN, FULL, "first", who="ann")
    votes = book.of("demo")
    assert [(v.who, v.seen_from(FULL)) for v in votes] == [("bob", "neither"), ("ann", "second")]


def test_settings_are_tallied_over_all_questions(book: PreferenceBook) -> None:
    book.record("demo", "Who?", FULL, PLAIN, "first", who="ann")
    book.record("demo", "What?", OTHER, FULL, "second", who="ann")
    book.record("demo", "Why?", FULL, PLAIN, "both", who="bob")
    book.record("adsapi", "Why?", FULL, PLAIN, "neither", who="bob")
    assert on_settings(book.of("demo"), FULL, PLAIN) == Counter(first=2, both=1)
    assert on_settings(book.of("demo"), PLAIN, FULL) == Counter(second=2, both=1)
    assert len(on_pair(book.of("demo"), FULL, PLAIN)) == 2
