"""An initial rule, from the chunk whose title differs least."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragfilter.model import Chunk
from ragfilter.rules.families import rule_of_sibling
from ragfilter.rules.rule import parse

MATRIX = "Attack matrix for clerics - Armor Class 6"
AC_6 = (
    '{"contain_one_of": [["cleric", "clerics"], ["armor class 6", "armour class of 6", "AC6",'
    ' "ac six"]]}'
)
COAST = "Tropical Conditions - Coast"
OF_COAST = (
    '{"contain_one_of": [["coast", "coasts", "beach"], ["tropical"]],'
    ' "contain_none_of": ["arctic", "deserts"]}'
)


@pytest.mark.parametrize(
    ("title", "other", "rule", "proposed"),
    [
        ("Attack matrix for clerics - Armor Class 7", MATRIX, AC_6,
         '{"contain_one_of":[["cleric","clerics"],["armor class 7","armour class of 7","ac7",'
         '"ac seven"]]}'),
        # both ends of a range; the numbers between them belong only to the sibling
        ("Wisdom 14-15", "Wisdom 6-9",
         '{"contain_one_of": [["wisdom"], ["6", "7", "8", "9", "6-9", "6 to 9"]]}',
         '{"contain_one_of":[["wisdom"],["14","15","14-15","14 to 15"]]}'),
        ("7th level spells", "4th level spells", '{"contain": "fourth level"}',
         '{"contain":"seventh level"}'),
        # a name, also in the plural; synonyms for the sibling's, and what would block this, are
        # dropped
        ("Tropical Conditions - Desert", COAST, OF_COAST,
         '{"contain_one_of":[["desert","deserts"],["tropical"]],"contain_none_of":["arctic"]}'),
        ("Tropical Conditions - Hills", COAST, '{"contain_all_of": ["coasts", "tropical"]}',
         '{"contain_all_of":["hills","tropical"]}'),
        ("Attack matrix for clerics - Armor Class -6", MATRIX, AC_6, None),
        ("Attack matrix for clerics - Armor Class 6", MATRIX, AC_6, None),
        ("Green Dragon", MATRIX, AC_6, None),
        # names nothing that tells them apart
        ("Attack matrix for clerics - Armor Class 7", MATRIX, '{"contain": "cleric"}', None),
        ("Attack matrix for clerics - Armor Class 7", MATRIX, "{broken", None),
        (f"Armor {'9' * 5000}", f"Armor {'8' * 5000}", '{"contain": "armor"}', None),
        ("Beholder", "Troll", '{"contain": "troll"}', None),
    ],
)  # fmt: skip
def test_the_rule_of_a_sibling_gets_what_is_ones_own(
    title: str, other: str, rule: str, proposed: str | None
) -> None:
    made = rule_of_sibling(title, [Chunk("c", title=other, rule=rule)])
    assert (made and made.text) == proposed


def test_the_title_that_differs_least_is_taken() -> None:
    titles = ["Arctic Conditions - Coast", "Tropical Conditions - Swamp"]
    near = '{"contain_one_of": [["coast"], ["arctic", "polar"]]}'
    far = '{"contain_one_of": [["swamp", "bog"], ["tropical"]]}'
    chunks = [
        Chunk(title, title=title, rule=rule)
        for title, rule in zip(titles, (near, far), strict=True)
    ]
    made = rule_of_sibling("Arctic Conditions - Swamp", chunks)
    assert made is not None
    assert made.text == '{"contain_one_of":[["swamp"],["arctic","polar"]]}'


@given(st.text(max_size=40), st.lists(st.tuples(st.text(max_size=40), st.text(max_size=20))))
def test_whatever_the_titles_what_comes_out_is_a_rule(
    title: str, ruled: list[tuple[str, str]]
) -> None:
    ruled = [*ruled, (f"{title} 1", '{"contain": "one 1"}')]
    made = rule_of_sibling(title, [Chunk("c", title=other, rule=rule) for other, rule in ruled])
    assert made is None or parse(made.text) == made
