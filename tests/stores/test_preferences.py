"""Votes on pairs of answers: one per person and pair, whichever side was on the left."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ragfilter.stores.preferences import Answered, Choice, Preferences, on_pair, on_settings

FULL = Answered("full", {"cutoff.max_results": 3}, ("a", "b"), "extractive")
PLAIN = Answered("unfiltered", {}, ("a", "b", "c"), "extractive")
OTHER = Answered("unfiltered", {}, ("d",), "extractive")


@pytest.fixture
def book(tmp_path: Path) -> Preferences:
    return Preferences(f"sqlite:///{tmp_path}/votes.db")


@pytest.mark.parametrize(
    ("said", "turned"), [("first", "second"), ("second", "first"), ("both", "both"), ("neither", "neither")]
)
def test_a_vote_is_the_same_from_either_side(book: Preferences, said: Choice, turned: Choice) -> None:
    book.vote("demo", " Who? ", FULL, PLAIN, said, who="ann")
    (vote,) = on_pair(book.votes("demo"), PLAIN, FULL)
    assert vote.seen_from(FULL) == said
    assert vote.seen_from(PLAIN) == turned
    assert sorted((vote.first.text, vote.second.text)) == sorted((FULL.text, PLAIN.text))


def test_a_person_has_one_vote_a_pair_and_may_change_it(book: Preferences) -> None:
    book.vote("demo", "Who?", FULL, PLAIN, "first", who="ann")
    book.vote("demo", "Who?", FULL, PLAIN, "neither", who="bob")
    book.vote("demo", "Who?", PLAIN, FULL, "first", who="ann")
    votes = book.votes("demo")
    assert [(v.who, v.seen_from(FULL)) for v in votes] == [("bob", "neither"), ("ann", "second")]


def test_settings_are_tallied_over_all_questions(book: Preferences) -> None:
    book.vote("demo", "Who?", FULL, PLAIN, "first", who="ann")
    book.vote("demo", "What?", OTHER, FULL, "second", who="ann")
    book.vote("demo", "Why?", FULL, PLAIN, "both", who="bob")
    book.vote("adsapi", "Why?", FULL, PLAIN, "neither", who="bob")
    assert on_settings(book.votes("demo"), FULL, PLAIN) == Counter(first=2, both=1)
    assert on_settings(book.votes("demo"), PLAIN, FULL) == Counter(second=2, both=1)
    assert len(on_pair(book.votes("demo"), FULL, PLAIN)) == 2
