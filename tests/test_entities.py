"""Which queries are comparisons, what they compare, and which chunks name it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import ends_soon

from ragfilter.text.comparison import (
    MAX_CHARS,
    MAX_ENTITIES,
    MAX_WORDS,
    alternatives,
    detect,
    names,
    parts,
    title_is,
    title_names,
)

FIGHTERS = (
    "Who is more likely to win in a fight - a 4th level fighter with an armor class of 3 or a 7th "
    "level fighter with an armor class of 9? Both fighters have a strength of 16, a constitution "
    "of 16, and a dexterity of 12. They both wield long swords."
)
DRUID = FIGHTERS.replace("7th level fighter", "7th level druid").replace("Both fighters", "Both")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # X vs Y
        ("hill giant vs troll", "hill giant|troll"),
        ("Hill Giant vs. Troll?", "Hill Giant|Troll"),
        ("Black Dragon VS Gold Dragon", "Black Dragon|Gold Dragon"),
        ("a hill giant versus the troll.", "hill giant|troll"),
        ("hill giant vs.troll", "hill giant|troll"),
        ("X vs Y vs Z", "X|Y|Z"),
        ("X vs Y vs", "X|Y"),
        ("“hill giant” vs 'troll'", "hill giant|troll"),
        ("  hill giant \t vs \u00a0 troll  ", "hill giant|troll"),
        ("Tell me about hill giant vs troll in a fight", "hill giant|troll"),
        ("Who would win: hill giant vs troll", "hill giant|troll"),
        ("hill giant vs troll, which is stronger?", "hill giant|troll"),
        ("hill giant vs troll: who wins?", "hill giant|troll"),
        ("longsword vs. two-handed sword - which one is better?", "longsword|two-handed sword"),
        ("a hill giant with a club vs a troll", "hill giant|troll"),
        (
            "Protection from Evil vs Protection from Good",
            "Protection from Evil|Protection from Good",
        ),
        ("Staff of the Magi vs Staff of Power", "Staff of the Magi|Staff of Power"),
        ("Will-o'-wisp vs wraith", "Will-o'-wisp|wraith"),
        ("St. Cuthbert vs. Dr. Strange", "St. Cuthbert|Dr. Strange"),
        ("I have a question. Hill giant vs troll?", "Hill giant|troll"),
        ("How strong is a troll compared to an ogre?", "troll|ogre"),
        ("Дракон vs Тролль", "Дракон|Тролль"),
        (
            "Who wins: 4th level fighter (AC 3) vs 7th level druid (AC 9)?",
            "fighter|druid",
        ),
        # compare X and|with|to Y
        ("compare X and Y", "X|Y"),
        ("Compare a hill giant with a troll", "hill giant|troll"),
        ("compare the lich to the vampire.", "lich|vampire"),
        ("compare X, Y and Z", "X|Y|Z"),
        ("Compare X, Y, and Z", "X|Y|Z"),
        ("compare X and Y with Z", "X|Y|Z"),
        ("Please compare a black dragon and a gold dragon in combat", "black dragon|gold dragon"),
        ("compare and contrast elves and dwarves", "elves|dwarves"),
        ("compare speak with dead and speak with animals", "speak with dead|speak with animals"),
        ("compare speak with dead to animate dead", "speak with dead|animate dead"),
        ("compare the armor class of a troll and an ogre", "troll|ogre"),
        ("compare X and Y, which one is stronger?", "X|Y"),
        ("compare X and Y: which is better?", "X|Y"),
        (
            "Compare hit dice: hill giant, stone giant and frost giant",
            "hill giant|stone giant|frost giant",
        ),
        ("How does a troll compare to an ogre?", "troll|ogre"),
        ("comparison of owlbear and bugbear", "owlbear|bugbear"),
        # difference between X and Y
        ("difference between a wraith and a wight", "wraith|wight"),
        (
            "What are the differences between a wraith, a wight and a spectre?",
            "wraith|wight|spectre",
        ),
        ("What's the difference in hit dice between trolls and ogres?", "trolls|ogres"),
        # which|what …, X or Y
        ("What monster is more powerful, a hill giant or a troll?", "hill giant|troll"),
        ("Which is stronger, hill giant or troll?", "hill giant|troll"),
        ("which is stronger: a hill giant or a troll", "hill giant|troll"),
        ("What monster is tougher - ettin or troll?", "ettin|troll"),
        ("which is stronger a hill giant or a troll", "hill giant|troll"),
        ("Which is strongest, a troll, an ogre, or a hill giant?", "troll|ogre|hill giant"),
        ("Which monster, in a dungeon, is stronger, a troll or an ogre?", "troll|ogre"),
        ("Tell me which is stronger, a troll or an ogre, and why", "troll|ogre"),
        ("In a fight, which is stronger, a troll or an ogre?", "troll|ogre"),
        # who would win … X or|against Y
        ("Who would win in a fight, a troll or an ogre?", "troll|ogre"),
        ("Who would win a fight between a troll and an ogre in a swamp?", "troll|ogre"),
        ("who would win: troll against ogre", "troll|ogre"),
        ("Who would win, a troll, an ogre or an ettin?", "troll|ogre|ettin"),
        ("who would win troll or ogre", "troll|ogre"),
        ("who’d win, Orcus or Demogorgon", "Orcus|Demogorgon"),
        (DRUID, "fighter|druid"),
        ("level 3 thief vs a 12-level monk", "thief|monk"),
    ],
)
def test_comparisons(query: str, expected: str) -> None:
    assert detect(query) == tuple(expected.split("|"))


@pytest.mark.parametrize(
    "query",
    [
        "",
        "vs",
        "vs.",
        "X vs",
        "vs Y",
        "versus versus versus",
        "compare",
        "compare their strength",
        "What's the difference?",
        "fighter vs Fighter",
        FIGHTERS,
        "what is armor class or ac",
        "is it true or false",
        "What is better, yes or no?",
        "What happens if I am hit, dead or alive?",
        "either",
        "Tell me about owlbears",
        "black or white magic?",
        "Hill giant or troll?",
        "What is the AC of a troll, or its hit dice?",
        "What lies between the Keep and the Caves?",
        "What do I compare my roll to and when?",
        "How do I turn undead: by level or by table?",
        "I have a strength of 17. What are my bonuses, to hit or damage?",
        "A 7th level cleric is attacking an opponent with armor class 6. What must he roll to hit?",
        "troll vs one two three four five six seven eight nine ten eleven twelve thirteen",
        "troll vs " + "x" * 81,
        "troll vs ???",
    ],
)
def test_no_comparisons(query: str) -> None:
    assert detect(query) == ()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "Who wins: 4th level fighter (AC 3) vs 7th level druid (AC 9)?",
            {"fighter": "who wins: 4th level fighter (ac 3) vs",
             "druid": " 7th level druid (ac 9)?"},
        ),
        (
            "Which is better, a Fighter with a shield or a druid or a thief of level 2?",
            {"Fighter": "which is better, a fighter with a shield or", "druid": " a druid or",
             "thief of level 2": " a thief of level 2?"},
        ),
        ("compare a strong troll to an ogre", {"strong troll": "compare a strong troll to",
                                               "ogre": " an ogre"}),
        (FIGHTERS, {}),
        ("How do trolls regenerate?", {}),
    ],
)  # fmt: skip
def test_what_the_query_says_of_each_side(query: str, expected: dict[str, str]) -> None:
    assert parts(query) == expected


def test_no_more_sides_than_can_be_retrieved() -> None:
    assert len(detect("compare " + ", ".join(f"beast {i}" for i in range(50)))) == MAX_ENTITIES


@pytest.mark.parametrize(
    "piece",
    ["vs ", "compare ", "a or ", "which is best, a b or ", "(", "who would win ", ", ", " ", "x"],
)
def test_a_megabyte_is_read_in_linear_time(piece: str) -> None:
    query = piece * (1_000_000 // len(piece))
    with ends_soon():
        detect(query)


FILLERS = ["a", "an", "the", "of", "in", "is", ",", ":", "-", "?", ".", "(", ")", "fight", "3rd"]
SIGNALS = ["vs", "vs.", "versus", "compare", "and", "with", "to", "or", "which", "what", "between"]
NAMES = ["troll", "ogre", "giant", "X", "who would win", "difference between"]
WORDS = st.sampled_from(FILLERS + SIGNALS + NAMES)


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
    return {
        word[i:j]
        for word in query.split()
        for i in range(len(word))
        for j in range(i + 1, len(word) + 1)
    }


@pytest.mark.parametrize(
    ("entity", "title", "text", "by_title", "by_text"),
    [
        ("troll", "TROLL", "", True, True),
        ("trolls", "Troll", "", True, True),
        ("Troll", "Lair of the trolls", "", True, True),
        ("hill giants", "Giant: Hill Giant", "", True, True),
        ("hill giant", "Hill-Giant (lesser)", "", True, True),
        ("black dragon", "Dragon, Black", "", True, True),
        ("black dragon", "Dragon, Red", "", False, False),
        ("troll", "Ogre", "Its cousin is the troll's mother.", False, True),
        ("troll", "Trollop", "controlled trolling", False, False),
        ("bear", "Owlbear", "an owlbear", False, False),
        ("giant hill", "Hill Giant", "", False, False),
        ("hill giant", "Hill", "giant", False, False),
        ("wolves", "Wolf", "", True, True),
        ("harpy", "Harpies", "", True, True),
        ("lich", "Liches of old", "", True, True),
        ("knife", "Knives", "", True, True),
        ("swordsmen", "Swordsman", "", True, True),
        ("armor class 3", "Armor class 30", "", False, False),
        ("ＴＲＯＬＬ", "troll", "", True, True),
        ("", "Troll", "troll", False, False),
        ("!", "Troll", "troll", False, False),
    ],
)
def test_names(entity: str, title: str, text: str, by_title: bool, by_text: bool) -> None:
    assert title_names(entity, title) == by_title
    assert (by_title or names(entity, text)) == by_text


@pytest.mark.parametrize(
    ("entity", "title", "same"),
    [
        ("lights", "Light", True),
        ("light", " LIGHT: ", True),
        ("light", "Continual Light", False),
        ("black dragon", "Dragon, Black", True),
        ("hill giant", "Hill-Giant", True),
        ("", "", False),
    ],
)
def test_title_is(entity: str, title: str, same: bool) -> None:
    assert title_is(entity, title) == same


@pytest.mark.parametrize(
    ("query", "sides"),
    [
        ("hill giant or troll", ("hill giant", "troll")),
        ("Hill giant or a troll?", ("Hill giant", "troll")),
        ("orc, ogre, or troll", ("orc", "ogre", "troll")),
        ("black or white magic?", ("black", "white magic")),
        ("troll or Troll", ()),
        ("a troll", ()),
        ("Is it a troll or an ogre?", ()),
        ("What is a troll or an ogre", ()),
        ("a troll. or an ogre", ()),
        ("true or false", ()),
        ("troll or " + "x" * 81, ()),
        ("or", ()),
        ("", ()),
    ],
)
def test_what_is_nothing_but_x_or_y(query: str, sides: tuple[str, ...]) -> None:
    assert alternatives(query) == sides
