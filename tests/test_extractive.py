"""Extractive answers: which sentences and rows are quoted. With the real model."""

from __future__ import annotations

import pytest

from ragfilter.answer.answer import AnswerStream
from ragfilter.answer.context_packing import Context
from ragfilter.answer.extractive import doubt, extract
from ragfilter.ingest import bundled
from ragfilter.model import Chunk, Hit
from ragfilter.models.embedders import BundledEmbedder
from ragfilter.text.sentences import sentences, units

MATRIX = (
    "The score needed to hit, by the level of the attacker. Level 1-3: {0}; Level 4-6: {1}; "
    "Level 7-9: {2}; Level 19 and above: {3}. Add strength bonuses to the roll."
)


def test_sentences() -> None:
    for text, expected in [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Ask Dr. Moreau. He knows.", ["Ask Dr. Moreau.", "He knows."]),
        ("See fig. 3 and p. 12. Then stop.", ["See fig. 3 and p. 12.", "Then stop."]),
        ("J. R. R. Tolkien wrote it. Read it.", ["J. R. R. Tolkien wrote it.", "Read it."]),
        ('He said "Run!" Then he ran.', ['He said "Run!"', "Then he ran."]),
        ("lift was measured . the wing stalled .", ["lift was measured .", "the wing stalled ."]),
        ("火が怖い。水は平気だ。", ["火が怖い。", "水は平気だ。"]),
        ("no end", ["no end"]),
        ("", []),
    ]:
        assert sentences(text) == expected


def test_rows_stay_whole() -> None:
    for text, rows in [
        (MATRIX.format(14, 12, 10, 4), ["Level 1-3: 14", "Level 4-6: 12", "Level 7-9: 10", "Level 19 and above: 4"]),
        ("Human: 18; Elf: 17; Dwarf: 16", ["Human: 18", "Elf: 17", "Dwarf: 16"]),
        ("| Level | Score |\n|---|:--:|\n| 1-3 | 14 |\n| 7-9 | 10 |", ["Level 1-3: Score 14", "Level 7-9: Score 10"]),
        ("He came; he saw: nothing.", []),
        ("Plain text. Nothing else.", []),
    ]:
        assert [unit.text for unit in units(text) if unit.is_row] == rows


def hits(*chunks: tuple[str, str]) -> tuple[Hit, ...]:
    return tuple(Hit(Chunk(f"c{n}", text, title=title), 0.5, n) for n, (title, text) in enumerate(chunks, start=1))


@pytest.fixture(scope="module")
def embedder() -> BundledEmbedder:
    return BundledEmbedder()


@pytest.mark.model
def test_the_row_that_the_query_asks_for_comes_first(embedder: BundledEmbedder) -> None:
    for query, row in [
        ("What does a 7th level cleric need to roll to hit armor class 6?", "Level 7-9: 10"),
        ("a cleric of level 2 against armor class 6", "Level 1-3: 14"),
    ]:
        context = hits(
            ("Clerics", "Clerics of level 7 wear any armor and turn the undead."),
            ("ATTACK MATRIX FOR CLERICS - Opponent Armor Class 6", MATRIX.format(14, 12, 10, 4)),
        )
        quotes = extract(query, context, embedder)
        assert quotes[0].is_row, query
        assert quotes[0].number == 2, query
        assert quotes[0].text == f"ATTACK MATRIX FOR CLERICS - Opponent Armor Class 6: {row}"
        # The rows for other levels would be wrong answers.
        assert sum(quote.is_row for quote in quotes) == 1, query


def rows(query: str, context: tuple[Hit, ...], embedder: BundledEmbedder) -> list[tuple[int, str]]:
    """The quoted rows, each with the number of its chunk and without the title."""
    quotes = (quote for quote in extract(query, context, embedder) if quote.is_row)
    return sorted((q.number, q.text.removeprefix(context[q.number - 1].chunk.title)) for q in quotes)


FIGHTER, CLERIC = "ATTACKS OF FIGHTERS - Class", "ATTACKS OF CLERICS AND DRUIDS - Class"
TABLES = hits(
    (f"{FIGHTER} 3", MATRIX.format(17, 14, 11, 1)),
    (f"{CLERIC} 3", MATRIX.format(18, 15, 13, 6)),
    (f"{FIGHTER} 9", MATRIX.format(11, 8, 5, -5)),
)


@pytest.mark.model
def test_each_table_answers_a_comparison_for_the_sides_that_it_names(embedder: BundledEmbedder) -> None:
    for query, expected in [
        (
            "Who wins: 4th level fighter (AC 3) vs 7th level druid (AC 9)?",
            [(1, ": Level 4-6: 14"), (2, ": Level 7-9: 13"), (3, ": Level 4-6: 8")],
        )
    ]:
        assert rows(query, TABLES, embedder) == expected


@pytest.mark.model
def test_a_comparison_quotes_no_table_of_another_number(embedder: BundledEmbedder) -> None:
    query = "7th level fighter with class 9 vs 7th level druid with class 8"
    assert rows(query, TABLES, embedder) == [(3, ": Level 7-9: 5")]


@pytest.mark.model
def test_quotes_name_their_chunk_and_repeat_nothing(embedder: BundledEmbedder) -> None:
    fire = "Only fire or acid kills a troll for good."
    context = hits(("Weather", "It rains in autumn."), ("Troll", fire), ("Troll again", fire))
    quotes = extract("How do I kill a troll for good?", context, embedder)
    assert [q.text for q in quotes] == [fire]
    assert quotes[0].number in (2, 3)


def test_nothing_to_quote_asks_no_model() -> None:
    class NoModel:
        name = "none"

        def embed(self, texts: object) -> object:
            raise AssertionError("asked")

    assert extract("q", (), NoModel()) == ()  # type: ignore[arg-type]
    assert extract("q", hits(("Title", " \n ")), NoModel()) == ()  # type: ignore[arg-type]


SWORDS = hits(
    ("Magic swords", "Magic swords glow 15 or 20 feet. The glow is that of a torch."),
    ("Swords", "Long sword: 1d8, 1d12, 15; an average of 4.5 to a man-sized opponent."),
)


@pytest.mark.model
def test_a_context_without_the_answer_is_told(embedder: BundledEmbedder) -> None:
    for query, why in [
        ("What is a lightsaber?", "the chunks do not mention “lightsaber”"),
        ("How much damage does a lightsaber do?", "the chunks do not mention “lightsaber”"),
        ("What is the capital of France?", "no sentence is close to the question"),
        ("x" * 20_000, "no sentence is close to the question"),
        ("How far do magic swords glow?", ""),
    ]:
        made = AnswerStream(query, Context(SWORDS, (), "", 0), None, embedder, timeout_s=1).read()
        assert made.doubt == why
        assert made.text, query


# Of all labelled queries, these have the lowest scores or lack an uncommon word.
HARDEST = (
    "monsters-flee jungle monsters-65 soldier-pay monsters-12 monsters-63 monsters-59 surprise monsters-24 "
    "disarm-trap monsters-40"
).split()


@pytest.mark.model
def test_no_doubt_where_the_labelled_answer_is_there(embedder: BundledEmbedder) -> None:
    for name in HARDEST:
        labels = bundled.qrels("demo")[name]
        context = hits(*((r["title"], r["text"]) for r in bundled.demo_rows() if labels.get(r["id"]) == 2))
        assert context, name
        query = bundled.queries("demo")[name]
        assert doubt(query, context, extract(query, context, embedder), embedder) == "", name
