from __future__ import annotations

from dataclasses import replace

import pytest

from ragfilter.layers import clearance, visibility
from ragfilter.layers.layer import LayerInput
from ragfilter.model import Chunk, Hit, Pool, User
from ragfilter.rules.match import compiled_rules
from ragfilter.settings.schema import Settings

CASES = [
    # chunk's clearance, its department, user's level, user's department, seen
    (0, None, 0, "", True),
    (1, None, 0, "", False),
    (1, None, 1, "", True),
    (2, None, 1, "", False),
    (0, "referee", 0, "", False),
    (0, "referee", 5, "player", False),
    (0, "referee", 0, "referee", True),
    (3, "referee", 2, "referee", False),
    (3, "referee", 3, "referee", True),
    (None, None, 100, "", False),
]


@pytest.mark.parametrize(("level", "department", "user", "mine", "seen"), CASES)
def test_who_may_see_what(level: int | None, department: str | None, user: int, mine: str, seen: bool) -> None:
    chunk = Chunk("c", clearance=level, department=department)
    assert User(user, (mine,)).sees(chunk) is seen


def look(level: int) -> LayerInput:
    settings = Settings().with_values({"clearance.enabled": True})
    return LayerInput(settings, Pool("q", "c", "l2", ()), compiled_rules(()).scan("q"), User(level))


def hits(*levels: int | None) -> tuple[Hit, ...]:
    return tuple(Hit(Chunk(f"c{i}", clearance=v), 0.1 * i, i) for i, v in enumerate(levels, 1))


def test_the_highest_level_is_named_where_nothing_is_accessible() -> None:
    step = clearance.apply(hits(2, 4, 3), look(1))
    assert step.hits == ()
    assert step.status == "insufficient_clearance"
    assert "4" in step.message
    assert [d.reason for d in step.decisions] == ["clearance 2 > 1", "clearance 4 > 1", "clearance 3 > 1"]


BARRED = [
    # levels and departments of the chunks, the user's level, whom to ask, the level to raise to
    ([(0, "referee")], 0, "in department referee", None),
    # The user's level is not that of the person to ask.
    ([(None, None), (1, "smith")], 1, "in department smith with clearance level 1", None),
    # A level that the user has in another department is not the one that is missing.
    ([(2, "referee"), (3, None)], 2, "with clearance level 3, or in department referee with clearance level 2", 3),
    (
        [(1, "referee"), (4, "referee"), (3, "mine")],
        2,
        "with clearance level 3, or in department referee with clearance level 4",
        4,
    ),
    ([(None, None), (3, None), (1, None)], 0, "with clearance level 3", 3),
    ([(None, None)], 100, "", None),
]


@pytest.mark.parametrize(("chunks", "level", "ways", "needed"), BARRED)
def test_what_is_missing_is_told_and_no_more(
    chunks: list[tuple[int | None, str | None]], level: int, ways: str, needed: int | None
) -> None:
    found = tuple(Hit(Chunk(f"c{i}", clearance=v, department=of), 0.1 * i, i) for i, (v, of) in enumerate(chunks, 1))
    user = User(level, ("mine",))
    step = clearance.apply(found, replace(look(level), user=user))
    message = f"{clearance.BARRED} Ask someone {ways}." if ways else clearance.UNREADABLE_MESSAGE
    assert (step.status, step.message) == ("insufficient_clearance", message)
    assert visibility.level_needed((hit.chunk for hit in found), user) == needed
