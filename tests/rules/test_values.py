"""Numbers, ranges, ordinals, Roman numerals and names in titles, and how questions write them."""

from __future__ import annotations

import pytest

from ragfilter.rules.values import Value, forms, mask, spellings, values


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Attack matrix for clerics - Opponent Armor Class 6", (Value(("armor", "class"), 6),)),
        ("Opponent Armor Class −6", (Value(("armor", "class"), -6),)),
        ("Intelligence/Wisdom 1-5", (Value(("wisdom",), 1, 5, "1-5"),)),
        ("7th level, 2d6", (Value(("level",), 7, None, "7th", after=True),)),
        ("Spells of the seventh level", (Value(("level",), 7, None, "seventh", after=True),)),
        ("Part IV: the sea", (Value(("part",), 4, None, "iv"),)),
        ("Tour - 3 days", (Value(("days",), 3, None, after=True),)),
        ("Release 2.10 notes", (Value(("release",), "2.10"),)),
        # As stat blocks, lists and tables write it.
        ("Armor Class: 7\nHit Dice: 5", (Value(("armor", "class"), 7), Value(("hit", "dice"), 5))),
        ("| Armor Class | 6 |", (Value(("armor", "class"), 6),)),
        ("| AC | HD |\n| --- | :-: |\n| 6 | 3 |", (Value(("ac",), 6), Value(("hd",), 3))),
        ("Chapter 2: 5 goblins", (Value(("chapter",), 2), Value(("goblins",), 5, None, after=True))),
        # Not a value: nothing says what is counted, or the numbers belong together.
        ("6", ()),
        ("Odds 4/6", ()),
        ("Levels 6-4", ()),
        ("How do I win", ()),
        pytest.param("Level " + "9" * 5000, (), id="digits"),
        pytest.param("Level " + "9" * 5000 + "th", (), id="place"),
    ],
)
def test_values_of_a_title(text: str, wanted: tuple[Value, ...]) -> None:
    assert values(text) == wanted


def test_spellings_of_a_number_that_words_stand_before() -> None:
    assert list(spellings(Value(("armor", "class"), 6), ("armor class", "ac"))) == (
        "armor class 6|armor class of 6|armor class six|armor class of six|ac 6|ac of 6|ac six|ac of six|a.c. 6|"
        "a.c. of 6|ac6"
    ).split("|")
    below = spellings(Value(("armor", "class"), -2), ("ac",))
    assert {"ac -2", "ac minus 2", "ac of negative two", "ac-2", "a.c. -2"} <= set(below)


def test_spellings_of_other_values() -> None:
    for title, has, lacks in [
        (
            "Levels 4-6",
            {"level 4", "level five", "levels 6", "levels 4-6", "level 4 to 6"},
            {"level 3", "level 7", "5th level"},
        ),
        ("7th level", {"7th level", "7th-level", "seventh level", "level 7", "level seven"}, {"7 level", "level 7th"}),
        ("Part IV", {"part iv", "part 4", "part four"}, {"4th part"}),
        ("3 days", {"3 days", "3 day", "three-day", "3-day"}, {"day 3", "3rd day"}),
        ("Rooms 1-100", {"rooms 1-100", "rooms 1 to 100"}, {"room 7"}),
        ("Release 2.10", {"release 2.10", "release of 2.10"}, {"release 2", "release 2.1", "2.10"}),
        ("Release 2.10.1", {"2.10.1"}, {"2.10", "release 2.10", "release 2.10.1"}),
        ("Offset −1.5 mm", {"offset -1.5"}, {"offset 1.5", "offset -1"}),
        ("Annual report 2018", {"2018"}, {"2017", "annual report 2018"}),
        ("Router X200", {"x200"}, {"router x200", "200"}),
        ("10-12 kg", {"10 kg", "11kg", "twelve kg", "10-12 kg"}, {"13 kg", "tenkg"}),
    ]:
        (value,) = values(title)
        made = set(spellings(value, (" ".join(value.words),)))
        assert has <= made
        assert not lacks & made


def test_a_number_is_called_by_its_place_where_others_are() -> None:
    for number, wanted in [
        (1, {"1st level", "first level"}),
        (11, {"11th level", "eleventh-level"}),
        (112, {"112th level"}),
    ]:
        level = Value(("level",), number)
        assert wanted <= set(spellings(level, ("level",), ordered=True))
        assert not wanted & set(spellings(level, ("level",)))


def test_titles_of_one_pattern_have_the_same_mask() -> None:
    assert mask("Armor Class 6") == mask("ARMOR CLASS -10") == ("armor", "class", "#")
    assert mask("Level 1-3 spells") == mask("Level IV spells") == ("level", "#", "spells")


def test_forms_of_a_name() -> None:
    for name, wanted in [
        ("clerics", ("cleric", "clerics")),
        ("thieves", ("thief", "thieves")),
        ("magic-users", ("magic-user", "magic-users", "magic user", "magic users")),
        ("witch", ("witch", "witches")),
        ("swordsmen", ("swordsman", "swordsmen")),
        ("knife", ("knife", "knives")),
        ("chief", ("chief", "chiefs")),
        ("valves", ("valve", "valves")),
        ("boxes", ("box", "boxes")),
        ("battle axes", ("battle axe", "battle axes")),
        ("human", ("human", "humans")),
        ("specimen", ("specimen", "specimens")),
        ("série", ("série",)),
    ]:
        assert forms(name) == wanted
