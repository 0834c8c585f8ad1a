"""Which queries are comparisons, what they compare, and which chunks name it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from waiting import ends_soon

from ragfilter.text.comparison import (
    MAX_CHARS,
    MAX_WORDS,
    alternatives,
    detect,
    mentions,
    parts,
    readings,
    title_is,
    title_names,
)

FIGHTERS = (
    "Who is more likely to win in a fight - a 4th level fighter with an armor class of 3 or a 7th "
    "level fighter with an armor class of 9? Both fighters have a strength of 16, a constitution "
    "of 16, and a dexterity of 12. They both wield long swords."
)


TABLE = Path(__file__).parent / "data" / "comparisons.tsv"
"""Questions, each with what it compares, if anything."""
COMPARISONS = [
    line.rpartition("\t")[::2] for line in TABLE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")
]


def test_comparisons() -> None:
    table = {**dict(COMPARISONS), "  hill giant \t vs \u00a0 troll  ": "hill giant|troll", "": ""}
    assert {query: "|".join(detect(query)) for query in table} == table


def test_what_the_query_says_of_each_side() -> None:
    for query, expected in [
        (
            "Who wins: 4th level fighter (AC 3) vs 7th level druid (AC 9)?",
            {"fighter": "who wins: 4th level fighter (ac 3) vs", "druid": " 7th level druid (ac 9)?"},
        ),
        (
            "Which is better, a Fighter with a shield or a druid or a thief of level 2?",
            {
                "Fighter": "which is better, a fighter with a shield or",
                "druid": " a druid or",
                "thief of level 2": " a thief of level 2?",
            },
        ),
        (FIGHTERS, {}),
        ("How do trolls regenerate?", {}),
    ]:
        assert parts(query) == expected


@pytest.mark.parametrize(
    "piece", ["vs ", "compare ", "a or ", "which is best, a b or ", "(", "who would win ", ", ", " ", "x"]
)
def test_a_megabyte_is_read_in_linear_time(piece: str) -> None:
    query = piece * (1_000_000 // len(piece))
    with ends_soon():
        detect(query)


FILLERS = ["a", "an", "the", "of", "in", "is", ",", ":", "-", "?", ".", "(", ")", "fight", "3rd"]
SIGNALS = ["vs", "vs.", "versus", "compare", "and", "with", "to", "or", "which", "what", "between"]
SIGNALS += ["VS", "than", "better", "over", "should I use", "for", "performance", "does"]
NAMES = ["troll", "ogre", "giant", "X", "who would win", "difference between"]
NAMES += ["C++", ".NET", "iPhone 15", "16"]
WORDS = st.sampled_from(FILLERS + SIGNALS + NAMES)


@example("SHOULD I 0 VS")
@given(st.one_of(st.text(), st.lists(WORDS, max_size=30).map(" ".join)))
def test_law_names_are_short_distinct_parts_of_the_query(query: str) -> None:
    found = detect(query)
    assert len(found) != 1
    assert len({name.casefold() for name in found}) == len(found)
    for name in found:
        assert name == name.strip()
        assert len(name.split()) <= MAX_WORDS
        assert 0 < len(name) <= MAX_CHARS
        assert set(name.split()) <= set(_pieces(query))


def _pieces(query: str) -> set[str]:
    """Every run of characters within a word, as if names could be cut anywhere."""
    return {word[i:j] for word in query.split() for i in range(len(word)) for j in range(i + 1, len(word) + 1)}


def test_names() -> None:
    for entity, title, text, by_title, by_text in [
        ("troll", "TROLL", "", True, True),
        ("trolls", "Troll", "", True, True),
        ("hill giant", "Hill-Giant (lesser)", "", True, True),
        ("black dragon", "Dragon, Black", "", True, True),
        ("black dragon", "Dragon, Red", "", False, False),
        ("troll", "Ogre", "Its cousin is the troll's mother.", False, True),
        ("troll", "Trollop", "controlled trolling", False, False),
        ("giant hill", "Hill Giant", "", False, False),
        ("wolves", "Wolf", "", True, True),
        ("armor class 3", "Armor class 30", "", False, False),
        ("ＴＲＯＬＬ", "troll", "", True, True),
        ("", "Troll", "troll", False, False),
        ("C", "C memory", "", True, True),
        ("C", "C++ streams", "C++11, C# and CS", False, False),
        ("C++", "Modern C++11", "", True, True),
        ("C#", "C# basics", "", True, True),
        (".NET", "Nets", "The net of ASP.NET", False, False),
        (".NET", "Intro to .NET", "", True, True),
        ("NET", ".NET", "Over the net.", False, True),
        ("troll", "Ogres", "A **troll** heals.", False, True),
        ("armor class 1", "Armor class −1", "", False, False),
        ("10 13", "Wisdom 10–13", "", True, True),
        ("R", "Rust", "Rs", False, False),
        ("PATH", "$PATH", "Set PATH.", False, True),
        ("A", "A-", "A- or B", False, False),
        ("Yahoo!", "Yahoo", "Yahoo! Mail", False, True),
        ("==", "The `==` operator", "", True, True),
        ("driver's license", "Driver’s licenses", "", True, True),
    ]:
        assert title_names(entity, title) == by_title
        assert (by_title or mentions(entity, text)) == by_text


def test_title_is() -> None:
    for entity, title, same in [
        ("lights", "Light", True),
        ("light", " LIGHT: ", True),
        ("light", "Continual Light", False),
        ("black dragon", "Dragon, Black", True),
        ("hill giant", "Hill-Giant", True),
        ("C", "C++", False),
        (".NET", ".NET", True),
        ("iPhone 15 Pro", "iPhone 15 Pro Max", False),
    ]:
        assert title_is(entity, title) == same


def test_readings() -> None:
    for query, name, expected in [
        ("Rails vs Flask in prod", "Flask", ("Flask in prod", "Flask")),
        ("X vs PostgreSQL performance", "PostgreSQL", ("PostgreSQL performance", "PostgreSQL")),
        ("x vs postgres costs", "postgres costs", ("postgres costs", "postgres")),
        ("troll vs hill giant", "hill giant", ("hill giant",)),
        ("troll or ogre", "ogre", ("ogre",)),
    ]:
        assert readings(query, name) == expected


def test_what_is_nothing_but_x_or_y() -> None:
    for query, sides in [
        ("hill giant or troll", ("hill giant", "troll")),
        ("Hill giant or a troll?", ("Hill giant", "troll")),
        ("orc, ogre, or troll", ("orc", "ogre", "troll")),
        ("black or white magic?", ("black", "white magic")),
        ("troll or Troll", ()),
        ("a troll", ()),
        ("Is it a troll or an ogre?", ()),
        ("a troll. or an ogre", ()),
        ("true or false", ()),
        ("troll or " + "x" * 81, ()),
        ("", ()),
    ]:
        assert alternatives(query) == sides
