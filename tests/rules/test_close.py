"""Families of chunks that are close in meaning and state values of the same kinds."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pytest

from ragfilter.model import Chunk
from ragfilter.rules.families import find_families
from ragfilter.rules.proposals import NO_NAME, propose

BLOCKS = {
    "ashghast": "Ashghast\nArmor Class: 4\nHit Dice: 3\nIt feeds on lamp oil and hides by day.",
    "mirewolf": "Mirewolf: AC 5; HD 3. Shepherds keep it off with bells.",
    "gloomcrab": "| Name | AC | HD |\n| --- | --- | --- |\n| Gloomcrab | 4 | 6 |\n\n"
    "Nobody has seen the young of a gloomcrab.",
    "siltboar": "A siltboar, with armor class 6 and hit dice 2, digs for roots. Leave a siltboar "
    "alone in spring.",
}
SHOP = "A shop in the old town that is open all day and sells rope, oil and salt."
EAST, NORTH = [1.0, 0.0], [0.0, 1.0]


def found(
    chunks: Sequence[Chunk], north: Sequence[str] = ()
) -> list[tuple[str, list[list[str]], str]]:
    """The id, groups and doubt of each proposal. Chunks in the `north` are far from the others."""
    families = find_families(
        chunks, lambda ids: np.array([NORTH if i in north else EAST for i in ids], np.float32)
    )
    made = propose(families, [chunk.text for chunk in chunks])
    return [(p.chunk.id, json.loads(p.rule)["contain_one_of"], p.doubt) for p in made]


def blocks(titled: bool) -> list[Chunk]:
    chunks = [Chunk(name, text, name.title() * titled) for name, text in BLOCKS.items()]
    return [*chunks, Chunk("shop", SHOP, "Shop" * titled)]


@pytest.mark.parametrize("titled", [True, False])
def test_stat_blocks_in_any_words_are_a_family_and_each_rule_asks_for_its_own(titled: bool) -> None:
    chunks = blocks(titled)
    made = found(chunks)
    assert [chunk_id for chunk_id, _, _ in made] == list(BLOCKS)
    assert {doubt for _, _, doubt in made} == {NO_NAME}
    asked = {chunk_id: group for chunk_id, (group,), _ in made}
    assert [group[0] for group in asked.values()] == list(BLOCKS)
    # A value that a sibling also states, in any words, distinguishes nothing.
    assert asked["ashghast"] == ["ashghast"]
    assert {"armor class 5", "ac 5"} <= set(asked["mirewolf"])
    # Texts alone do not find them.
    assert find_families(chunks) == ()


def test_neither_the_same_kinds_nor_closeness_is_enough() -> None:
    assert found(blocks(titled=True), north=["ashghast", "mirewolf"]) == []
    unstated = [
        Chunk(name, text.replace("AC", "").replace("Class", ""), name)
        for name, text in BLOCKS.items()
    ]
    assert found(unstated) == []


def test_what_nothing_tells_apart_gets_no_proposal() -> None:
    same = [
        Chunk(str(i), f"{way} armor class 3 and hit dice 2. {rest}")
        for i, (way, rest) in enumerate(
            (("It has", "It flies."), ("A beast of", "Beware!"), ("Treat it as", "Run away."))
        )
    ]
    assert found(same) == []
    odd = Chunk("odd", "In all it counts as armor class 3 and hit dice 7, and it is big.")
    made = found([*same, odd, *blocks(titled=False)])
    assert {chunk_id for chunk_id, _, _ in made} == {"odd", *BLOCKS}
