"""Two answers side by side: what only one of the contexts has, and the tokens saved."""

from __future__ import annotations

import pytest

from ragfilter.answer.answer import Answer
from ragfilter.answer.context_packing import Context
from ragfilter.answer.extractive import Quote
from ragfilter.model import Chunk, Hit
from ragfilter.models.embedders import BundledEmbedder
from ragfilter.protocols import Usage
from ragfilter.ui.kit.answer_making import Piece, pieces, quotes_beyond, savings_of

TEXTS = {
    "cleric": "A cleric of 7th level needs a 10 to hit armor class 6.",
    "thief": "A thief of 7th level needs a 14 to hit armor class 6.",
    "weather": "Rain falls on half the days of spring.",
}


def context(*ids: str) -> Context:
    return Context(tuple(Hit(Chunk(i, TEXTS[i]), 0.1, 1) for i in ids), (), "", 0)


WIDE, NARROW = context("weather", "cleric", "thief"), context("cleric")


def test_a_sentence_stands_apart_that_cites_what_the_other_lacks() -> None:
    for text, found in [
        (
            "It is 10 [2]. Thieves need 14. [3] Clerics do not [2].",
            [("It is 10 [2].", False), ("Thieves need 14. [3]", True), ("Clerics do not [2].", False)],
        ),
        (
            "It is 10 [2]. It rains [1]. Often [1, 3].",
            [("It is 10 [2].", False), ("It rains [1]. Often [1, 3].", True)],
        ),
        ("Ten.\n\nFourteen [2][3].", [("Ten.", False), ("Fourteen [2][3].", True)]),
        # A number that no chunk has means nothing, and a list is not split.
        ("Ten [7].", [("Ten [7].", False)]),
        ("- Ten [2].\n- Rain [1]. Wet.", [("- Ten [2].\n- Rain [1]. Wet.", True)]),
        ("```\nTen. Rain [1].\n\nx\n```", [("```\nTen. Rain [1].\n\nx\n```", True)]),
        ("", []),
    ]:
        assert pieces(Answer(text), WIDE, NARROW) == tuple(Piece(*each) for each in found)


def test_a_quote_stands_apart_by_its_own_number_alone() -> None:
    said = Answer("See [1] for more. Really [2]\n\nIt rains [2] here [1]", extractive=True)
    assert pieces(said, WIDE, NARROW) == (
        Piece("See [1] for more. Really [2]", False),
        Piece("It rains [2] here [1]", True),
    )


def test_nothing_stands_apart_in_the_smaller_context() -> None:
    assert not any(p.apart for p in pieces(Answer("Ten [1]. Or so [1]."), NARROW, WIDE))


@pytest.mark.model
def test_what_a_context_adds_is_quoted_with_its_own_numbers() -> None:
    embedder = BundledEmbedder()
    query = "What does a 7th level thief need to hit?"
    (first, *rest) = quotes_beyond(query, WIDE, NARROW, embedder)
    assert (first.number, first.text) == (3, TEXTS["thief"])
    assert all(isinstance(q, Quote) and q.number == 1 for q in rest)
    assert quotes_beyond(query, NARROW, WIDE, embedder) == ()


def llm(tokens: int, ms: float, cost: float | None = None, **fields: object) -> Answer:
    given = {"text": "Ten.", "usage": Usage(tokens, 0), "cost": cost, "ms": ms, **fields}
    return Answer(**given)  # type: ignore[arg-type]


def test_the_sum_is_said_of_two_whole_answers() -> None:
    for filtered, unfiltered, said in [
        (llm(313, 800, 0.0023), llm(2329, 2000, 0.01), "77% cheaper, 1.2 s faster"),
        (llm(300, 1000), llm(1000, 1000), "70% fewer tokens"),
        (llm(1200, 1500), llm(1000, 1000), "20% more tokens, 0.5 s slower"),
        (llm(300, 800, error="No."), llm(1000, 1000), ""),
        (llm(300, 800, extractive=True), llm(1000, 1000, extractive=True), ""),
    ]:
        assert savings_of(filtered, unfiltered) == said
