"""Singular and plural, by the regular rules of English."""

from __future__ import annotations

import pytest

from ragfilter.rules.values import forms


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("clerics", ("cleric", "clerics")),
        ("thieves", ("thief", "thieves")),
        ("bodies", ("body", "bodies")),
        ("magic-users", ("magic-user", "magic-users", "magic user", "magic users")),
        ("witch", ("witch", "witches")),
        ("swordsmen", ("swordsman", "swordsmen")),
        ("dwarf", ("dwarf", "dwarves")),
        ("knife", ("knife", "knives")),
        ("chief", ("chief", "chiefs")),
        ("valves", ("valve", "valves")),
        ("curve", ("curve", "curves")),
        ("elves", ("elf", "elves")),
        ("witches", ("witch", "witches")),
        ("boxes", ("box", "boxes")),
        ("taxes", ("tax", "taxes")),
        ("battle axes", ("battle axe", "battle axes")),
        ("houses", ("house", "houses")),
        ("classes", ("class", "classes")),
        ("human", ("human", "humans")),
        ("specimen", ("specimen", "specimens")),
        ("women", ("woman", "women")),
        ("boss", ("boss", "bosses")),
        ("monkey", ("monkey", "monkeys")),
        ("série", ("série",)),
    ],
)
def test_forms_of_a_name(name: str, wanted: tuple[str, ...]) -> None:
    assert forms(name) == wanted
