"""Nearly identical texts that differ in names and numbers, whatever their titles."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import permutations

import pytest

from ragfilter.model import Chunk
from ragfilter.rules.families import find_families
from ragfilter.rules.near import find_near
from ragfilter.rules.proposals import NO_NAME, propose

LEAVE = (
    "Employees in {} receive {} days of annual leave. Leave is requested two weeks ahead from the "
    "manager and may be carried over until March."
)
TARIFF = (
    "This policy covers fire, water and theft. It applies to tariff {}. The deductible is {} "
    "euros. Claims are reported in writing to the branch."
)
POLICY = (
    "This policy covers fire, water and theft. The deductible is {} euros and the highest sum is "
    "{} euros. Claims are reported within {} days in writing to the branch that issued it."
)
FLIGHT = "The {} flight leaves gate {} every morning, and passengers are asked to be there early."
DAYS_30 = ["30 day", "30-day", "30day", "30 days", "30-days"]
EUROS_0 = [f"{zero}{sep}{e}" for e in ("euro", "euros") for zero in ("0", "zero") for sep in " -"]


@pytest.mark.parametrize(
    ("titles", "texts", "values", "groups", "doubt"),
    [
        # No title. A name distinguishes them, and the number is stated in the text.
        (
            [""] * 4,
            [LEAVE.format(*v)
             for v in (("Germany", 30), ("France", 25), ("Spain", 23), ("Italy", 25))],
            ["germany, 30 days", "france, 25 days", "spain, 23 days", "italy, 25 days"],
            [["germany", *DAYS_30]], NO_NAME,
        ),
        # One title.
        (
            ["Terms and conditions"] * 3,
            [TARIFF.format(*v) for v in (("Basic", 0), ("Comfort", 150), ("Premium", 300))],
            ["basic, 0 euros", "comfort, 150 euros", "premium, 300 euros"],
            [["basic", *EUROS_0]], NO_NAME,
        ),
        # Titles that tell nothing apart, and numbers alone.
        (
            ["Our policy", "Our policy", "Our policy"],
            [POLICY.format(*v) for v in ((150, 5000, 45), (300, 9000, 30), (500, 7000, 60))],
            ["150 euros, 5000, 45 days", "300 euros, 9000, 30 days",
             "500 euros, 7000, 60 days"],
            [["150 euro", "150-euro", "150 euros", "150-euros", "5000",
              "45 day", "45-day", "45day", "45 days", "45-days"]], NO_NAME,
        ),
        # A value that a sibling also states distinguishes nothing.
        (
            [""] * 4,
            [LEAVE.format(*v).replace("March", v[2])
             for v in (("Germany", 30, "March"), ("France", 25, "May"), ("Spain", 23, "March"),
                       ("Italy", 30, "April"))],
            ["germany, 30 days, march", "france, 25 days, may", "spain, 23 days, march",
             "italy, 30 days, april"],
            [["germany"]], NO_NAME,
        ),
        # Neither the name nor the number distinguishes one from all others: both are asked for.
        (
            [""] * 4,
            [FLIGHT.format(*v)
             for v in (("Oslo", "B1"), ("Oslo", "B2"), ("Rome", "B1"), ("Rome", "B2"))],
            [f"{city}, leaves gate {gate}" for city in ("oslo", "rome") for gate in ("b1", "b2")],
            [["oslo"], ["b1"]], NO_NAME,
        ),
    ],
)  # fmt: skip
def test_a_family_is_found_by_its_texts(
    titles: Sequence[str],
    texts: Sequence[str],
    values: list[str],
    groups: list[list[str]],
    doubt: str,
) -> None:
    pairs = enumerate(zip(titles, texts, strict=True))
    (family,) = find_families(Chunk(str(i), text, title) for i, (title, text) in pairs)
    assert [member.named for member in family.members] == values
    first, *_ = propose([family], texts)
    asked = json.loads(first.rule)["contain_one_of"]
    assert [set(group) for group in asked] == [set(group) for group in groups]
    assert first.doubt == doubt


def test_a_rule_that_the_own_title_does_not_meet_is_not_proposed() -> None:
    """A question about young drivers names none of the numbers of their policy."""
    titles = ["Commercial fleets", "Young drivers start here", "Our family protection"]
    texts = [POLICY.format(*v) for v in ((150, 5000, 45), (300, 9000, 30), (500, 7000, 60))]
    chunks = [Chunk(str(i), text, titles[i]) for i, text in enumerate(texts)]
    families = find_families(chunks)
    assert [len(family.members) for family in families] == [3]
    assert propose(families, texts) == ()


REST = (
    "They hunt in packs at dusk and flee from fire, and nobody has tamed one yet. When wounded "
    "they burrow and wait for the night, and the pack returns to where one of them was killed."
)
FIELDS = ("ashghast", "armor class 2", "hit dice 1", "strength 8")


@pytest.mark.parametrize(
    ("block", "told"),
    [
        ("{}\nArmor Class: {}\nHit Dice: {}\n", FIELDS[:3]),
        ("{}\n| Armor Class | {} |\n| Hit Dice | {} |\n", FIELDS[:3]),
        ("{}\n| Armor Class | Hit Dice |\n| --- | --- |\n| {} | {} |\n", FIELDS[:3]),
        ("{}: armor class {}, hit dice {}. ", FIELDS[:3]),
        ("{}\nAC {}\nHD {}\nNo. appearing: 7. ", ("ashghast", "ac 2", "hd 1")),
        # More than four places, one of which is a name: that one and three of the others.
        ("{}\nArmor Class: {}\nHit Dice: {}\nStrength: {}\nMorale: {}\nSpeed: {}\n", FIELDS),
        # Anything that is not a value is left out.
        ("{}\nArmor Class: {}\nHit Dice: {}\nAttack: {}+{} bites\n", (*FIELDS[:3], "attack 8")),
    ],
)
def test_stat_blocks_are_a_family_in_every_form(block: str, told: Sequence[str]) -> None:
    stats = (
        ("Ashghast", 2, 1, 8, 6, 9), ("Mirewolf", 5, 2, 11, 9, 12), ("Gloomcrab", 5, 6, 17, 7, 6),
        ("Siltboar", 4, 2, 8, 10, 9), ("Dreadmoth", 7, 3, 11, 6, 15),
    )  # fmt: skip
    chunks = [Chunk(row[0], block.format(*row) + REST, row[0]) for row in stats]
    (family,) = find_families(chunks)
    assert len(family.members) == len(stats)
    assert [value.named for value in family.members[0].values] == list(told)
    # The siltboar has the first one's strength or attack, which distinguish it from no other.
    told = [value for value in told if not value.endswith(" 8")]
    first = propose([family], [chunk.text for chunk in chunks])[0]
    (asked,) = json.loads(first.rule)["contain_one_of"]
    assert set(told) <= set(asked)
    assert not [term for term in asked if term.endswith(" 8")]


def test_many_numbers_without_a_name_are_no_family() -> None:
    block = "On a throw of {} or more within {} feet, {} within {} feet and {} rounds, it holds. "
    rows = ((19, 20, 17, 40, 3), (17, 25, 15, 45, 5), (15, 30, 13, 50, 7), (13, 35, 11, 55, 9))
    assert list(find_near([block.format(*row) + REST for row in rows], 3)) == []


def test_the_pattern_is_the_text_with_signs_for_the_values() -> None:
    texts = [FLIGHT.format(*v) for v in (("Oslo", "B1"), ("Rome", "B2"), ("New York", "C1"))]
    ((pattern, group),) = find_near(texts, 3)
    assert pattern == (
        "the * flight leaves gate # every morning , and passengers are asked to be there early ."
    )
    assert [each.at for each in group] == [0, 1, 2]
    assert group[2].label == "the new york flight leaves gate c1 every morning"


@pytest.mark.parametrize(
    "other",
    [
        # More than a name or number differs; too little is the same; nothing distinguishes it.
        LEAVE.format("Italy", 26).replace("two weeks", "as soon as the date is known, or"),
        "Employees in Italy receive 26 days of annual leave.",
        LEAVE.format("France", 25),
    ],
)
def test_a_text_that_differs_in_more_or_in_nothing_is_no_member(other: str) -> None:
    texts = [LEAVE.format(*v) for v in (("Germany", 30), ("Spain", 23), ("Italy", 26))]
    ((_, group),) = find_near([*texts, other, LEAVE.format("France", 25)], 3)
    assert 3 not in [each.at for each in group]


def test_texts_about_other_things_in_the_same_words_are_no_family() -> None:
    texts = [
        "Leave is requested from the manager. The manager answers within a week, in writing.",
        "The manager answers questions about leave. In writing, a week is usual.",
        "In writing, a manager may shorten the week. Leave is then lost.",
    ]
    assert list(find_near(texts, 3)) == []


def test_a_family_may_be_large() -> None:
    texts = [TARIFF.format(f"plan{n:03}x", n + 20) for n in range(400)]
    ((_, group),) = find_near(texts, 3)
    assert len(group) == 400


def test_a_few_of_many_near_texts_that_differ_by_chance_alone_are_no_family() -> None:
    words = ("shock", "wing", "model", "pressure")
    near = [f"{LEAVE.format('Spain', 23)} Gas {' '.join(p)} flow." for p in permutations(words, 3)]
    chance = [f"{LEAVE.format('Spain', 23)} The {word} of it." for word in words[:3]]
    assert [len(group) for _, group in find_near([*chance, *near], 3)] == []
    assert [len(group) for _, group in find_near(chance, 3)] == [3]
