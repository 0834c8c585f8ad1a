"""Families of chunks that differ in a value, and the rules that tell them apart."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from ragfilter.ingest import demo
from ragfilter.model import Chunk
from ragfilter.rules.families import find_families
from ragfilter.rules.match import RuleBook
from ragfilter.rules.named import find_crossed
from ragfilter.rules.proposals import NAME_ALONE, NO_NAME, SAME, propose


def table(who: str, number: int) -> Chunk:
    text = f"The score a {who} needs to roll on a die to hit an opponent with armor class {number}."
    return Chunk(
        f"{who}-{number}", text, f"Attack matrix for {who}s - Opponent Armor Class {number}"
    )


CLERICS = [table("cleric", n) for n in (5, 6, -7)]
FIGHTERS = [table("fighter", n) for n in (5, 6, -7)]
OTHERS = [
    Chunk("a", "On wings.", "Notes on flow, part 1"),
    Chunk("b", "On tails and their drag at high speed.", "Notes on flow, part 2"),
    Chunk("c", "What the tunnel measured, and how.", "Notes on flow, part 3"),
    Chunk("d", "Nothing.", "Armor Class 5"),
    Chunk("e", "Nothing.", ""),
]


def test_families_have_one_pattern_one_number_and_texts_alike() -> None:
    found = find_families([*OTHERS, *CLERICS, *FIGHTERS])
    assert [(f.names, [m.named for m in f.members]) for f in found] == [
        (("clerics",), ["armor class 5", "armor class 6", "armor class -7"]),
        (("fighters",), ["armor class 5", "armor class 6", "armor class -7"]),
    ]


def price(what: str) -> Chunk:
    text = f"What a merchant in town asks for {what}, and what a smuggler takes for the same."
    return Chunk(what, text, f"Price List - {what.title()}")


@pytest.mark.parametrize(
    ("titles", "title"),
    [
        (("Matrix - AC 10", "Matrix - AC 9", "Matrix - AC -1"), "Matrix - AC #"),
        (("Level 1 spells", "Level 2 spells", "Level 3 spells"), "Level # spells"),
        (("Part 1, AC 4", "Part 1, AC 5", "Part 1, AC 6"), "Part 1, AC #"),
        # Written differently, they have only their pattern in common.
        (("LEVEL 1 SPELLS", "level 2 spells", "Level 3 Spells"), "level # spells"),
    ],
)
def test_a_family_is_called_as_its_titles_are_written(titles: Sequence[str], title: str) -> None:
    (family,) = find_families(
        Chunk(str(i), f"The same text, but for {i}.", each) for i, each in enumerate(titles)
    )
    assert family.title == title


def test_titles_that_differ_in_a_name_are_a_family_and_each_rule_asks_for_its_own() -> None:
    goods = [price(what) for what in ("lanterns", "silk ropes", "wolves")]
    (family,) = find_families([*goods, *OTHERS])
    assert (family.pattern, family.names) == ("price list - *", ())
    assert [m.named for m in family.members] == ["lanterns", "silk ropes", "wolves"]
    made = [json.loads(p.rule)["contain_one_of"] for p in propose([family], ())]
    assert made == [
        [["lantern", "lanterns"]], [["silk rope", "silk ropes"]], [["wolf", "wolves"]],
    ]  # fmt: skip
    # A person has to review them, because a name may be in questions about anything.
    assert {p.doubt for p in propose([family], ())} == {NAME_ALONE}
    assert {p.doubt for p in propose(find_families(CLERICS), ())} == {""}
    # Numbers come first, a title with two patterns counts once, and two of a kind are too few.
    assert [len(f.members) for f in find_families([*goods, *CLERICS])] == [3, 3]
    assert find_families(goods[:2]) == ()


def beasts(*titles: str) -> list[Chunk]:
    text = "Bite: one target is hit and takes damage. Speed, armor and hit points of the"
    return [Chunk(title, f"{text} {title}.", title) for title in titles]


@pytest.mark.parametrize(
    ("titles", "pattern", "rule"),
    [
        # The words that the titles share belong to the name: "black" alone is any black thing.
        (
            ("Black Bear", "Brown Bear", "Polar Bear"),
            "* bear", [["bear", "bears"], ["black"]],
        ),
        (
            ("Swarm of Bats", "Swarm of Rats", "Swarm of Wasps"),
            "swarm of *", [["swarm", "swarms"], ["bat", "bats"]],
        ),
        # Two words that each occur in several names are asked for separately.
        (
            ("Adult Black Dragon", "Adult Red Dragon", "Young Black Dragon", "Young Red Dragon"),
            "* dragon", [["dragon", "dragons"], ["adult"], ["black"]],
        ),
        (
            ("Giant Fire Beetle", "Giant Rat", "Giant Half-Red Newt"),
            "giant *", [["giant", "giants"], ["fire beetle", "fire beetles"]],
        ),
        # A sign separates the name; of two patterns, the one with the shorter name is used.
        (
            ("Vampire, Bat Form", "Vampire, Mist Form", "Vampire, Wolf Form"),
            "vampire , * form", [["bat", "bats"]],
        ),
    ],
)  # fmt: skip
def test_titles_that_are_phrases_give_the_words_they_share_as_names(
    titles: Sequence[str], pattern: str, rule: list[list[str]]
) -> None:
    (family,) = find_families(beasts(*titles))
    assert family.pattern == pattern
    first, *_ = propose([family], ["bats and beetles"])
    assert json.loads(first.rule) == {"contain_one_of": rule}
    assert first.doubt == (NO_NAME if family.names else NAME_ALONE)


def test_one_text_that_differs_does_not_break_up_a_family() -> None:
    *alike, last = beasts("Black Bear", "Brown Bear", "Polar Bear", "Cave Bear")
    other = Chunk(
        last.id, "Extinct since the ice came; bones were found in many places.", "Cave Bear"
    )
    (family,) = find_families([*alike, other])
    assert len(family.members) == 4
    told = ("Old trees.", "A roof leaks when rain falls.", "Nobody went north after noon.")
    unlike = [Chunk(c.id, text, c.title) for c, text in zip(alike, told, strict=True)]
    assert find_families(unlike) == ()


@pytest.mark.parametrize(
    ("titles", "pattern", "values", "meets", "misses"),
    [
        (
            ("Clerics, levels 1-3", "Clerics, levels 4-6", "Clerics, levels 7-9"),
            "clerics , levels #", ["levels 1-3", "levels 4-6", "levels 7-9"],
            "a 2nd level cleric", "a 5th level cleric",
        ),
        (
            ("Spells, 1st level", "Spells, 2nd level", "Spells, 3rd level"), "spells , # level",
            ["1st level", "2nd level", "3rd level"], "first-level spells", "spells at level 3",
        ),
        (
            ("Part I: the sea", "Part II: the sea", "Part IV: the sea"), "part # : the sea",
            ["part i", "part ii", "part iv"], "what happens in part 1?", "what happens in part 4?",
        ),
        (
            ("Room 1, bed 1", "Room 1, bed 2", "Room 2, bed 1"), "room # , bed #",
            ["room 1, bed 1", "room 1, bed 2", "room 2, bed 1"],
            "bed 1 in room 1", "bed 2 in room 1",
        ),
        # A version of three parts and a year are distinctive by themselves; a decimal is not.
        (
            ("Release 1.0 notes", "Release 1.1 notes", "Release 2.0 notes"), "release # notes",
            ["release 1.0", "release 1.1", "release 2.0"],
            "what is new in release 1.0?", "a grade of 1.0",
        ),
        (
            ("Release 1.0.2 notes", "Release 1.1.0 notes", "Release 2.0.0 notes"),
            "release # notes", ["release 1.0.2", "release 1.1.0", "release 2.0.0"],
            "what is new in 1.0.2?", "what is new in release 1.0?",
        ),
        (
            ("Annual report 2018", "Annual report 2019", "Annual report 2020"), "annual report #",
            ["annual report 2018", "annual report 2019", "annual report 2020"],
            "the annual report for 2018", "the annual report for 2019",
        ),
    ],
)  # fmt: skip
def test_values_are_ranges_ordinals_roman_numerals_and_several_numbers(
    titles: Sequence[str], pattern: str, values: list[str], meets: str, misses: str
) -> None:
    chunks = [Chunk(t, f"What one needs to know and may do there: {t}.", t) for t in titles]
    (family,) = find_families(chunks)
    assert (family.pattern, [m.named for m in family.members]) == (pattern, values)
    first, *_ = propose([family], ["a fighter of the 8th level"])
    book = RuleBook([first.rule])
    assert (book.scan(meets).passes(first.rule), book.scan(misses).passes(first.rule)) == (
        True, False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("title", "pattern"), [("", "zone # : parcels"), ("Shipping", "shipping - zone # : parcels")]
)
def test_where_titles_are_missing_or_the_same_the_text_tells(title: str, pattern: str) -> None:
    texts = [f"Zone {n}: parcels\nare sent within a few days, for a fee." for n in (1, 2, 3)]
    (family,) = find_families(Chunk(str(i), text, title) for i, text in enumerate(texts))
    assert family.pattern == pattern
    assert [m.named for m in family.members] == ["zone 1", "zone 2", "zone 3"]


REGIONS = (("Europe", "America"), ("EU", "US"))
GOODS = ("Boots", "Ropes", "Silk Scarves")


@pytest.mark.parametrize("regions", REGIONS)
@pytest.mark.parametrize(
    ("form", "groups"),
    [
        ("Price list {y} {r} - {g}", [["{r}"], ["boot", "boots"], ["2022"]]),
        ("Price list {y}: {g}, {r}", [["boot", "boots"], ["{r}"], ["2022"]]),
        ("Price list {r} {g} {y}", [["{r}"], ["boot", "boots"], ["2022"]]),
    ],
)
def test_a_rule_asks_for_a_name_of_each_place_in_which_kin_cross(
    form: str, groups: list[list[str]], regions: Sequence[str]
) -> None:
    every = [form.format(y=y, r=r, g=g) for y in (2022, 2023, 2024) for r in regions for g in GOODS]
    chunks = [Chunk(t, f"What a merchant asks for his goods: {t}.", t) for t in every]
    made = propose(find_families(chunks), ())
    region = regions[0].lower()
    plural = [region] if len(region) == 2 else [region, f"{region}s"]
    asked = next(p for p in made if p.chunk.id == every[0])
    wanted = [plural if group == ["{r}"] else group for group in groups]
    assert json.loads(asked.rule)["contain_one_of"] == wanted
    assert len({p.rule for p in made}) == len(every)
    assert {p.doubt for p in made} == {""}


def test_names_that_a_title_lists_or_that_tell_the_same_are_one_place() -> None:
    lists = ("clerics, druids and monks", "clerics and thieves", "thieves and monks")
    titles = [f"Table for {who} (sub-class) - AC {n}" for who in lists for n in (3, 4, 5)]
    found = find_families(Chunk(t, f"What one needs to hit: {t}.", t) for t in titles)
    assert {family.places for family in found} == {
        (("clerics", "druids", "monks"),), (("clerics", "thieves"),), (("thieves", "monks"),),
    }  # fmt: skip


def test_one_rule_for_several_chunks_is_a_doubt() -> None:
    titles = [f"Price list {where} - {what}" for where in REGIONS[0] for what in GOODS]
    chunks = [Chunk(t, "What a merchant asks for his goods.", t) for t in titles]
    assert {p.doubt for p in propose(find_families(chunks), ())} == {SAME}


def test_two_letters_are_a_name_where_titles_differ_in_them() -> None:
    titles = [f"Price list - {name}" for name in ("EU", "US", "UK")]
    families = find_families(Chunk(t, "What one pays there.", t) for t in titles)
    rules = [json.loads(each.rule) for each in propose(families, ["What uses the EU?"])]
    assert rules == [{"contain_one_of": [[name]]} for name in ("eu", "us", "uk")]
    others = [f"Price list - {word}" for word in ("it", "is", "IV")]
    assert find_families(Chunk(t, "What one pays there.", t) for t in others) == ()


def test_two_chunks_or_equal_numbers_are_no_family() -> None:
    assert find_families(CLERICS[:2]) == ()
    assert find_families([CLERICS[0]] * 3) == ()


def test_a_family_without_kin_has_no_names_and_its_rule_asks_for_the_value_alone() -> None:
    (first, *_) = propose(find_families(CLERICS), [chunk.text for chunk in CLERICS])
    assert first.names == ()
    assert json.loads(first.rule) == {
        "contain_one_of": [[
            "armor class 5", "armor class of 5", "armor class five", "armor class of five",
        ]]
    }  # fmt: skip


STATES = ("Ohio", "Texas", "Utah")
TAX = "The sales tax rate in {0} is set by the legislature, and food is exempt in {0}."
DOSE = "For patients of {} kg give the drug twice a day with food, and no more than that."
EARNED = "Revenue rose in the quarter, and net income with it. Expenses were as before."


@pytest.mark.parametrize(
    ("chunks", "rules"),
    [
        # The texts say what the numbers count: kilograms, not tables.
        (
            [(f"Dosage table {w} kg", DOSE.format(w)) for w in ("1-2", "3-4", "5-6")],
            [[*(f"{n}{sep}{kg}" for n in (1, 2, "one", "two") for kg in ("kg", "kgs")
                for sep in " -"), "1kg", "1kgs", "2kg", "2kgs",
              *(f"1{to}2 {kg}" for to in ("-", " - ", " to ") for kg in ("kg", "kgs"))]],
        ),
        # A code is distinctive by itself, and so is a year next to it.
        (
            [(f"Q{q} {y} earnings report", EARNED) for y in (2021, 2022) for q in (1, 2)],
            [["q1"], ["2021"]],
        ),
        ([(f"Router X{n}00 setup", EARNED) for n in (2, 3, 4)], [["x200"]]),
        # A decimal needs the word for what it counts, even if only the text says it.
        (
            [("Setup", f"These steps are for version {n}.0 of it.") for n in (4, 5, 6)],
            [["version 4.0", "version of 4.0"]],
        ),
        # A word that the text capitalises is a name, and Texas is not a plural.
        ([(f"Sales tax rates: {s}", TAX.format(s)) for s in STATES[::-1]], [["utah"]]),
        ([(f"Sales tax rates: {s}", TAX.format(s)) for s in STATES[1:] + STATES[:1]], [["texas"]]),
    ],
)  # fmt: skip
def test_proposals_for_the_titles_of_others(
    chunks: list[tuple[str, str]], rules: list[list[str]]
) -> None:
    (family,) = find_families([Chunk(title + text, text, title) for title, text in chunks])
    first, *_ = propose([family], ())
    asked = json.loads(first.rule)["contain_one_of"]
    assert [set(group) for group in asked] == [set(group) for group in rules]


@pytest.mark.parametrize(
    ("texts", "groups"),
    [
        ((), [["germany"], ["rope", "ropes"], ["fire beetle"]]),
        (("The two Germanies.",), [["germany", "germanies"], ["rope", "ropes"], ["fire beetle"]]),
        (("Do beetles fly?",), [["germany"], ["rope", "ropes"], ["fire beetle", "fire beetles"]]),
    ],
)
def test_a_name_has_a_plural_where_texts_or_questions_hold_it(
    texts: Sequence[str], groups: list[list[str]]
) -> None:
    titles = [f"Price list: {name}" for name in ("Germany", "Ropes", "Fire Beetle")]
    families = find_families(Chunk(title, "What one pays there.", title) for title in titles)
    rules = [json.loads(each.rule) for each in propose(families, texts)]
    assert rules == [{"contain_one_of": [group]} for group in groups]


def test_spellings_come_from_texts_and_questions() -> None:
    families = find_families([*CLERICS, *FIGHTERS])
    asked = ["to hit AC 6?", "against armour class of 6", "a clear glass 6", "level 6"]
    proposals = propose(families, asked, {families[0].pattern: ["priest"]})
    rule = json.loads(next(p.rule for p in proposals if p.chunk.id == "cleric-6"))
    names, values = rule["contain_one_of"]
    assert names == ["cleric", "clerics", "priest", "priests"]
    assert {"armor class 6", "armour class of six", "ac 6", "a.c. 6", "ac6"} <= set(values)
    assert not [value for value in values if "level" in value or "glass" in value]


def test_a_context_of_one_word_has_spellings_too() -> None:
    titles = [f"Swatches of color {n}" for n in (1, 2, 3)]
    families = find_families(Chunk(t, "What one paints with it.", t) for t in titles)
    asked = ["paint with colour 2", "colors 1", "coller 3", "dolor 3", "flavor 1"]
    rule = json.loads(propose(families, asked)[1].rule)
    (group,) = rule["contain_one_of"]
    assert {"color 2", "colour 2"} <= {*group}
    assert not [term for term in group if "coller" in term or "dolor" in term or "flavor" in term]


def test_the_families_of_the_demo_are_attack_matrices_and_encounter_tables() -> None:
    chunks = [Chunk(r["id"], r["text"], r.get("title", "")) for r in demo.records()]
    found = find_families(chunks)
    matrices, encounters = found[:4], found[4:]
    # Of the eighteen, plains and woods are below one climate only.
    assert [(family.pattern, len(family.members)) for family in encounters] == [
        ("arctic/temperate/tropical - *", 16)
    ]
    assert {tuple(v.named for v in m.values) for m in encounters[0].members} > {
        ("temperate", "open sea"), ("arctic", "hills"), ("tropical", "swamp"),
    }  # fmt: skip
    assert [len(family.members) for family in matrices] == [21, 21, 21, 21]
    assert {family.names for family in matrices} == {
        ("clerics", "druids", "monks"), ("fighters", "paladins", "rangers", "bards"),
        ("magic-users", "illusionists"), ("thieves", "assassins"),
    }  # fmt: skip


def test_titles_whose_two_names_cross_ask_for_both() -> None:
    beasts, ages = ("Ash Drake", "Mire Troll", "Gloom Bat"), ("hatchling", "adult", "ancient")
    text = "It lairs in burnt hills and hoards what shines. Nobody has tamed one yet."
    chunks = [Chunk(f"{b} {a}", f"{b}. {text}", f"{b}, {a}") for b in beasts for a in ages]
    # Alone below its name, and below neither.
    odd = [Chunk("wyrm", f"Wyrm. {text}", "Wyrm, adult"), Chunk("note", text, "A note")]
    # Another family with the same sign, which shares no name with the first.
    gems, cuts = ("Ruby", "Opal"), ("round", "oval")
    stones = [
        Chunk(f"{g} {c}", f"{g} {c} weighs a carat.", f"{g}, {c}") for g in gems for c in cuts
    ]
    family, other = find_families([*chunks, *odd, *stones])
    assert (family.title, len(family.members)) == ("ash drake/gloom bat/mire troll , *", 9)
    assert family.names == ()
    assert (other.title, len(other.members)) == ("opal/ruby , *", 4)
    first, *_, last = propose([family], [chunk.text for chunk in chunks])
    assert json.loads(first.rule)["contain_one_of"] == [["ash drake"], ["hatchling"]]
    assert (last.value, last.doubt) == ("gloom bat, ancient", "")


@pytest.mark.parametrize(
    "titles",
    [
        # Each name once; in three parts; a number; a sentence on one side.
        ["Drake, adult", "Troll, young", "Bat, old"],
        ["Drake, adult, red", "Drake, young, red", "Troll, adult, red", "Troll, young, red"],
        ["Red", "Blue", "Green", "White"],
        ["A drake that flies, adult", "A drake that flies, young", "A troll that swims, adult",
         "A troll that swims, young"],
    ],
)  # fmt: skip
def test_names_cross_in_two_short_halves_alone(titles: list[str]) -> None:
    assert list(find_crossed(titles, 3)) == []
