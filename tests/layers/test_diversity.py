"""Near-duplicates collapse, and every part of the question keeps its best chunks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragfilter.engine.replay import replay
from ragfilter.layers.diversity import apply
from ragfilter.layers.layer import LayerInput, LayerOutput
from ragfilter.model import PUBLIC, Chunk, Entity, Hit, Pool, User
from ragfilter.rules.match import compiled_rules
from ragfilter.settings.schema import Settings


def row(*texts: str, **more: Any) -> tuple[Hit, ...]:
    return tuple(Hit(Chunk(f"c{n}", text, **more), 0.5 + n / 100, n) for n, text in enumerate(texts, 1))


def diverse(
    hits: tuple[Hit, ...], query: str = "why?", pinned: frozenset[str] = frozenset(), **values: Any
) -> LayerOutput:
    settings = Settings().with_values({f"diversity.{name}": v for name, v in values.items()})
    pool = Pool(query, "c", "l2", hits)
    return apply(
        hits,
        LayerInput(
            settings, pool, compiled_rules(()).scan(query), PUBLIC, dict.fromkeys(pinned, "named in the comparison")
        ),
    )


def ids(step: LayerOutput) -> list[str]:
    return [hit.id for hit in step.hits]


def reasons(step: LayerOutput) -> list[tuple[str, str, float | None, float | None]]:
    return [(d.outcome, d.reason, d.value, d.limit) for d in step.decisions]


# "a b c d e f" has 4 runs of three words, "a b c d e x" shares abc, bcd and cde: 3 of 5 in all.
SIX, NEAR, FAR = "a b c d e f", "a b c d e x", "u v w x y z"


@pytest.mark.parametrize(
    ("texts", "limit", "kept"),
    [
        ((SIX, NEAR, FAR), 0.6, ["c1", "c3"]),
        ((SIX, NEAR, FAR), 0.65, ["c1", "c2", "c3"]),
        # Case, dashes and white space make no difference.
        ((SIX, "A  b c\nD e-f"), 1.0, ["c1"]),
        # A dropped chunk makes no other one a duplicate: c3 and c1 share only cde, 1 of 6.
        ((SIX, NEAR, "b c d e x y"), 0.6, ["c1", "c3"]),
        # Tables that differ in a figure: 2 runs of 5 on either side are the same, 2 of 8 in all.
        (("level 7 hits on 14 or more", "level 7 hits on 13 or more"), 0.6, ["c1", "c2"]),
        (("one", "one", "two"), 1.0, ["c1", "c3"]),
        # Texts without words are not similar to anything.
        (("", "…", ""), 0.05, ["c1", "c2", "c3"]),
        ((), 0.6, []),
    ],
)
def test_near_duplicates_of_a_better_chunk_go(texts: tuple[str, ...], limit: float, kept: list[str]) -> None:
    assert ids(diverse(row(*texts), max_similarity=limit)) == kept


def test_reasons_hold_value_and_limit() -> None:
    hits = row(SIX, NEAR, "a b c u v w", title="")
    assert reasons(diverse(hits, max_similarity=0.6)) == [
        ("kept", "unlike every better chunk", 0.0, 0.6),
        ("dropped", "text similarity 0.600 ≥ 0.600 to c1", 0.6, 0.6),
        # One of 7 runs.
        ("kept", "text similarity 0.143 < 0.600 to c1", pytest.approx(1 / 7), 0.6),
    ]


WORDS = st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), max_size=8).map(" ".join)


@given(st.lists(WORDS, max_size=12), WORDS, st.floats(0.05, 1.0), st.integers(1, 4))
def test_laws(texts: list[str], query: str, similar: float, per_part: int) -> None:
    hits = row(*texts)
    values = {"max_similarity": similar, "per_part": per_part}
    step = diverse(hits, query, **values)
    # Every hit is decided once, in its order; the best stays.
    assert [d.chunk_id for d in step.decisions] == [hit.id for hit in hits]
    assert step.hits[:1] == hits[:1]
    kept = [d.chunk_id for d in step.decisions if d.outcome == "kept"]
    assert ids(step) == kept
    for decision in step.decisions:
        assert decision.value is not None
        assert decision.limit is not None
        assert (decision.outcome == "dropped") == (decision.value >= decision.limit - 1e-9)
    # Its result needs no second pass if no part is too full.
    wide = values | {"per_part": 100}
    once = diverse(hits, query, **wide)
    assert diverse(once.hits, query, **wide).hits == once.hits


def test_a_freed_place_is_filled_and_off_changes_nothing() -> None:
    hits = row(SIX, NEAR, FAR, "k l m n o p")
    pool = Pool("why?", "c", "l2", hits)
    plain = Settings().with_values({"cutoff.enabled": False, "retrieval.k": 2})
    on = plain.with_values({"diversity.enabled": True, "diversity.max_similarity": 0.6})
    assert [hit.id for hit in replay(pool, plain).kept] == ["c1", "c2"]
    assert [hit.id for hit in replay(pool, on).kept] == ["c1", "c3"]


def test_a_hidden_chunk_makes_nobody_a_duplicate() -> None:
    hidden = Hit(Chunk("secret", SIX, title="Secret", clearance=3), 0.1, 1)
    hits = (hidden, *row(SIX, FAR))
    settings = Settings().with_values({"clearance.enabled": True, "diversity.enabled": True, "cutoff.enabled": False})
    result = replay(Pool("why?", "c", "l2", hits), settings, User(0))
    assert [hit.id for hit in result.kept] == ["c1", "c2"]
    assert "Secret" not in " ".join(d.reason for d in result.trace("diversity").decisions)


def test_the_sides_of_a_comparison_stay() -> None:
    hits = tuple(Hit(Chunk(i, SIX, title=i), 0.5, n) for n, i in enumerate(("troll", "ogre"), 1))
    settings = Settings().with_values(
        {"diversity.enabled": True, "entities.enabled": True, "diversity.max_similarity": 0.05}
    )
    sides = (Entity("troll", ("troll",)), Entity("ogre", ("ogre",)))
    result = replay(Pool("troll vs ogre", "c", "l2", hits, sides), settings)
    assert {hit.id for hit in result.kept} == {"troll", "ogre"}
