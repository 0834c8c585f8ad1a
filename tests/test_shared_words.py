"""Words shared by question and passage: BM25 calculated by hand, values as people write them."""

from __future__ import annotations

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragfilter.text.shared_words import FUNCTION_WORDS, overlaps, shared_values, values


def test_overlap_by_hand() -> None:
    troll, both, none = overlaps("Do trolls fear fire?", ["A troll.", "Trolls fear, fear!", "Tea."])
    # Three passages of 2, 3 and 1 words, 2 on average. "troll" is in two, "fear" in one, and "do"
    # and "fire" in none, so those do not count.
    common, rare = log(1 + 1.5 / 2.5), log(1 + 2.5 / 1.5)
    most = 2.2 * (common + rare)
    assert troll.share == pytest.approx(2.2 * common / (1 + 1.2) / most)
    long = 1.2 * (0.25 + 0.75 * 3 / 2)
    assert both.share == pytest.approx((2.2 * common / (1 + long) + 2.2 * rare * 2 / (2 + long)) / most)
    assert (troll.words, both.words, none.words, none.share) == (("troll",), ("fear", "troll"), (), 0)


@given(st.text(max_size=30), st.lists(st.text(max_size=30), max_size=6))
def test_law_a_share_is_a_share(query: str, passages: list[str]) -> None:
    made = overlaps(query, passages)
    assert len(made) == len(passages)
    assert all(0 <= one.share < 1 and bool(one.share) >= bool(one.words) for one in made)
    assert not any(FUNCTION_WORDS.intersection(one.words) for one in made)


def test_values() -> None:
    for text, stated in [
        ("with strength 17", {("strength", "17")}),
        ("a Strength of 17", {("strength", "17")}),
        ("strength is 17", {("strength", "17")}),
        ("(AC 3) vs (AC -2)", {("ac", "3"), ("ac", "-2")}),
        ("the X-15 and version 1.5", {("x", "15"), ("version", "1.5")}),
        ("status 429.", {("status", "429")}),
        ("a 7th level cleric", set()),
        ("10-13, 18/01", set()),
        ("17", set()),
        ("levels 3-4", {("level", "3")}),
        ("", set()),
    ]:
        assert values(text) == stated


pieces = st.sampled_from(["strength", "Strengths", "17", "of", "is", "(AC", "3)", "-2", "7th", "(17"])


@given(st.lists(pieces), st.lists(pieces))
def test_law_a_passage_states_what_it_has_in_common_with_the_query(query: list[str], passage: list[str]) -> None:
    asked, text = values(" ".join(query)), " ".join(passage)
    assert shared_values(asked, text) == asked & values(text)
