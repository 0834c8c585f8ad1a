"""`cut` on every worked example and edge case of the seeds, then its laws, then the layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from ragfilter.layers import cutoff, layer
from ragfilter.layers.cutoff import apply, cut, cuts_by_strategy
from ragfilter.layers.layer import LayerInput
from ragfilter.layers.strategies.strategy import strategies
from ragfilter.model import PUBLIC, Chunk, CutoffDetail, Hit, Pool
from ragfilter.rules.match import compiled_rules
from ragfilter.settings.schema import Cutoff, Settings

BEHOLDERS = [0.12, 0.18, 0.22, 0.35, 0.50]
DRAGONS = [0.10, 0.12, 0.15, 0.17, 0.20, 0.22, 0.25, 0.28, 0.45, 0.55]
EXCEPTIONAL = [0.08, 0.35, 0.50]
LIGHTSABER = [0.60, 0.65, 0.70]
ALIKE = [0.10, 0.12, 0.14, 0.16, 0.18]
MONSTERS = [0.05, 0.08, 0.20, 0.35, 0.55]
OWLBEARS = [0.10, 0.15, 0.40, 0.45, 0.50]
GIANT_TROLL = [0.8813, 0.9313, 0.9356, 1.0763, 1.0834]
TEN = {"max_results": 10, "gap_threshold": 0.2}
BLACK_GOLD = [0.6927, 0.8071, 0.8692, 0.8936, 0.9173]


@pytest.mark.parametrize(
    ("values", "options", "kept", "cliff", "gap", "limit"),
    [
        pytest.param(BEHOLDERS, {}, 4, 4, 0.15, None, id="beholders"),
        pytest.param(EXCEPTIONAL, {"skip_first": False, "min_results": 1}, 1, 1, 0.27, None, id="first step"),
        pytest.param(BEHOLDERS, {"gap_threshold": 0.05}, 4, 4, 0.15, None, id="aggressive"),
        pytest.param(BEHOLDERS, {"gap_threshold": 0.15}, 4, 4, 0.15, None, id="conservative"),
        pytest.param(BEHOLDERS, {"gap_threshold": 0.2}, 5, None, None, 0.52, id="no cliff"),
        pytest.param(DRAGONS, {"max_results": 10}, 8, 8, 0.17, None, id="ten dragons"),
        # The seed uses them to show a fallback that leaves out the drake:
        pytest.param(DRAGONS, TEN, 9, None, None, 0.50, id="fallback"),
        pytest.param(DRAGONS, TEN | {"distance_offset": 0.3}, 8, None, None, 0.40, id="stricter"),
        pytest.param(DRAGONS, TEN | {"distance_offset": 0.5}, 10, None, None, 0.60, id="lenient"),
        pytest.param(DRAGONS, {}, 5, None, None, 0.50, id="dragons, k 5"),
        pytest.param(DRAGONS, {"max_results": 3}, 3, None, None, 0.50, id="dragons, k 3"),
        pytest.param(EXCEPTIONAL, {}, 2, 2, 0.15, None, id="single exceptional match"),
        pytest.param(LIGHTSABER, {}, 3, None, None, 1.0, id="lightsaber"),
        pytest.param(ALIKE, {}, 5, None, None, 0.50, id="equally relevant"),
        pytest.param(MONSTERS, {}, 4, 4, 0.20, None, id="several large gaps"),
        pytest.param(OWLBEARS, {}, 2, 2, 0.25, None, id="owlbears"),
        pytest.param(OWLBEARS, {"strategy": "fixed"}, 5, None, None, None, id="owlbears fixed"),
        pytest.param(GIANT_TROLL, {}, 3, 3, 0.1407, None, id="hill giant or troll"),
        pytest.param(BLACK_GOLD, {}, 5, None, None, 1.0927, id="black or gold dragon"),
        pytest.param(BLACK_GOLD, {"distance_offset": 0.2}, 3, None, None, 0.8927, id="strict"),
        pytest.param([0.7], {}, 1, None, None, 1.1, id="single result"),
        pytest.param([0.2, 1.9], {}, 2, None, None, 0.6, id="two far apart"),
        pytest.param([0.2, 0.2, 0.2], {}, 3, None, None, 0.6, id="identical"),
        pytest.param([0.3, 0.4, 0.7], {"max_results": 1}, 1, None, None, 0.7, id="k 1"),
        pytest.param([0.3, 0.4, 0.7], {"min_results": 9}, 3, 2, 0.3, None, id="fewer than min"),
    ],
)
def test_the_seeds_examples(
    values: list[float], options: dict[str, Any], kept: int, cliff: int | None, gap: float | None, limit: float | None
) -> None:
    made = cut(values, Cutoff(**options))
    assert made.kept == kept
    assert made.cliff_after_rank == cliff
    assert made.gap == pytest.approx(gap)
    assert made.limit == pytest.approx(limit)


REASONS: list[tuple[list[float], dict[str, Any]]] = [
    (GIANT_TROLL, {}),
    (BLACK_GOLD, {}),
    (OWLBEARS, {"min_results": 4}),
    ([0.2, 1.9], {}),
    (DRAGONS, {}),
    (OWLBEARS, {"min_results": 50, "max_results": 3}),
    (OWLBEARS, {"max_results": 1}),
    (OWLBEARS[:3], {"min_results": 50, "max_results": 3}),
    (DRAGONS, {"strategy": "fixed"}),
    (GIANT_TROLL, {"strategy": "autocut"}),
    (GIANT_TROLL, {"strategy": "adaptive_k"}),
    ([*ALIKE, 1.0], {"strategy": "adaptive_k", "b_extra": 9}),
    ([], {}),
]


def test_reasons(snapshot: SnapshotAssertion) -> None:
    made = {f"{values} {options}": cut(values, Cutoff(**options)) for values, options in REASONS}
    assert {case: decision.reason for case, decision in made.items()} == snapshot


@pytest.mark.parametrize(
    ("values", "pinned", "options", "kept", "reason"),
    [
        # Hill giant and troll first: 0.8813, 0.9356 | 0.9313, 1.0763, 1.0834.
        ([0.8813, 0.9356, 0.9313, 1.0763, 1.0834], 2, {}, 3, "gap 0.145 ≥ 0.100 after hit 3"),
        # A pin far away stays, and the step down after it is not a cliff.
        ([0.1, 1.5, 0.2, 0.25, 0.6], 2, {}, 4, "gap 0.350 ≥ 0.100 after hit 4"),
        # More pins than k.
        (
            [0.1, 0.2, 0.3, 0.31],
            3,
            {"max_results": 2},
            3,
            "no later gap ≥ 0.100; kept values ≤ 0.500 (best 0.100 + 0.400); max_results = 2 leaves out the other 1",
        ),
        ([0.1, 1.9], 2, {"min_results": 0}, 2, None),
        ([0.1, 1.9], 9, {"strategy": "adaptive_k", "min_results": 0}, 2, None),
        ([1.0, 0.1, 0.2, 0.3, 0.4], 1, {"strategy": "fixed", "max_results": 3}, 3, "first 3"),
    ],
)
def test_pins_are_never_cut(
    values: list[float], pinned: int, options: dict[str, Any], kept: int, reason: str | None
) -> None:
    made = cut(values, Cutoff(**options), pinned=pinned)
    assert made.kept == kept
    assert reason in (None, made.reason)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_only_finite_numbers_can_be_cut(bad: float) -> None:
    with pytest.raises(ValueError, match=r"value 2 is .*; only finite numbers"):
        cut([0.1, bad], Cutoff())
    with pytest.raises(ValueError, match="pinned is -1"):
        cut([0.1], Cutoff(), pinned=-1)


# Multiples of 1/1024 are exact in floating point, so the laws hold to the last bit.
GRID = st.lists(st.integers(0, 2048), max_size=40).map(lambda v: [i / 1024 for i in sorted(v)])
SETTINGS = st.builds(
    Cutoff,
    strategy=st.sampled_from([*strategies()]),
    max_results=st.integers(1, 30),
    min_results=st.integers(0, 10),
    gap_threshold=st.integers(0, 512).map(lambda i: i / 1024),
    distance_offset=st.integers(0, 1024).map(lambda i: i / 1024),
    jumps=st.integers(1, 4),
    b_extra=st.integers(0, 6),
)


@given(GRID, SETTINGS, st.integers(0, 6))
def test_law_kept_lies_between_the_fewest_and_k(values: list[float], settings: Cutoff, pinned: int) -> None:
    made = cut(values, settings, pinned=pinned)
    n, pins = len(values), min(pinned, len(values))
    assert made.strategy == settings.strategy
    assert made.kept >= min(settings.min_results, settings.max_results, n)
    assert made.kept >= pins
    assert made.kept <= max(min(n, settings.max_results), pins)
    assert (made.cliff_after_rank is None) == (made.gap is None)


@given(GRID, SETTINGS, st.integers(0, 2048))
def test_law_a_constant_on_all_values_moves_the_limit_and_nothing_else(
    values: list[float], settings: Cutoff, shift: int
) -> None:
    # Its values are probabilities, which have a scale.
    assume(settings.strategy != "calibrated")
    before = cut(values, settings)
    after = cut([value + shift / 1024 for value in values], settings)
    assert (after.kept, after.gaps, after.cliff_after_rank) == (before.kept, before.gaps, before.cliff_after_rank)
    if before.limit is not None:
        assert after.limit == pytest.approx(before.limit + shift / 1024)


@given(GRID, SETTINGS, GRID)
def test_law_what_lies_beyond_k_changes_nothing_but_the_words(
    values: list[float], settings: Cutoff, more: list[float]
) -> None:
    k = settings.max_results
    values = (values + [2.0] * k)[:k]
    alone = cut(values, settings, background=1.5)
    longer = cut([*values, *more], settings, background=1.5)
    assert replace(longer, reason="") == replace(alone, reason="")


# The layer.


def make_hits(values: list[float], scores: list[float | None] | None = None) -> tuple[Hit, ...]:
    """Hits a, b, c … in the order given, ranked by distance."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    ranks = {place: rank for rank, place in enumerate(order, start=1)}
    return tuple(
        Hit(Chunk(chr(97 + i), title=f"Chunk {i}"), value, ranks[i], rerank_score=scores[i] if scores else None)
        for i, value in enumerate(values)
    )


LookAt = Callable[..., LayerInput]


@pytest.fixture
def look_at() -> LookAt:
    def make(
        hits: tuple[Hit, ...], *, pinned: tuple[str, ...] = (), reranked: bool = False, **options: Any
    ) -> LayerInput:
        values = {path.replace("__", "."): value for path, value in options.items()}
        pool = Pool("q", "c", "l2", hits)
        settings = Settings().with_values(values)
        return LayerInput(
            settings,
            pool,
            compiled_rules(()).scan("q"),
            PUBLIC,
            dict.fromkeys(pinned, "named in the comparison"),
            reranked,
        )

    return make


def rows(step: Any) -> list[tuple[str, str, str, float | None, float | None]]:
    return [(d.chunk_id, d.outcome, d.reason, d.value, d.limit and round(d.limit, 4)) for d in step.decisions]


def test_decisions_at_a_cliff(look_at: LookAt, snapshot: SnapshotAssertion) -> None:
    hits = make_hits([*GIANT_TROLL, 1.2])
    step = apply(hits, look_at(hits))
    before = "before the cliff of 0.141 after hit 3"
    after = "after the cliff: gap 0.141 ≥ 0.100 after hit 3"
    assert rows(step) == [
        ("a", "kept", before, 0.8813, 0.9356),
        ("b", "kept", before, 0.9313, 0.9356),
        ("c", "kept", before, 0.9356, 0.9356),
        ("d", "dropped", after, 1.0763, 0.9356),
        ("e", "dropped", after, 1.0834, 0.9356),
        ("f", "dropped", "beyond the first 5", 1.2, None),
    ]
    assert step.hits == hits[:3]
    assert step.note == snapshot
    assert step.detail == CutoffDetail(
        cut([*GIANT_TROLL, 1.2], Cutoff()), ("a", "b", "c", "d", "e", "f"), (*GIANT_TROLL, 1.2), "distance"
    )


@pytest.mark.parametrize("reranked", [True, False])
def test_which_values_are_in_force(look_at: LookAt, reranked: bool) -> None:
    # The order matches the distances only by coincidence, which the order alone cannot show.
    hits = make_hits([1.2, 1.3, 1.4], [0.9, 0.8, 0.5])
    step = apply(hits, look_at(hits, reranked=reranked))
    assert isinstance(step.detail, CutoffDetail)
    assert step.detail.value_name == ("1 − rerank score" if reranked else "distance")
    wanted = [0.1, 0.2, 0.5] if reranked else [1.2, 1.3, 1.4]
    assert step.detail.values == pytest.approx(wanted)
    assert ("reranker reordered" in step.note) == reranked


@pytest.mark.parametrize(("scored_by", "wanted"), [("late_interaction", [0.1, 0.2, 0.5]), ("other", [1.2, 1.3, 1.4])])
def test_scores_of_another_reranker_are_not_cut_by(look_at: LookAt, scored_by: str, wanted: list[float]) -> None:
    hits = make_hits([1.2, 1.3, 1.4], [0.9, 0.8, 0.5])
    inputs = look_at(hits, cutoff__score="rerank")
    step = apply(hits, replace(inputs, pool=replace(inputs.pool, reranker=scored_by)))
    assert isinstance(step.detail, CutoffDetail)
    assert step.detail.values == pytest.approx(wanted)


def test_a_pin_without_a_score_makes_no_step(look_at: LookAt) -> None:
    hits = make_hits([1.9, 1.4, 1.2, 1.3], [None, 0.9, 0.85, 0.5])
    step = apply(hits, look_at(hits, pinned=("a",), reranked=True))
    assert isinstance(step.detail, CutoffDetail)
    assert step.detail.values == pytest.approx([0.1, 0.1, 0.15, 0.5])
    assert [hit.id for hit in step.hits] == ["a", "b", "c"]
    assert step.decisions[0].value is None


def test_the_strategies_side_by_side() -> None:
    values = tuple(DRAGONS)
    detail = CutoffDetail(cut(values, Cutoff()), tuple("abcdefghij"), values, "distance", 0.35)
    kept = {made.strategy: made.kept for made in cuts_by_strategy(detail, Cutoff(max_results=10), pinned=0)}
    # autocut: over the diagonal only the last value rises, above both left of it moving_avg: from (0.22 + 0.25 + 0.28)
    # / 3 … the largest gap is 0.1, after the seventh spike: steps 0.02, 0.03, 0.02: they grow, then shrink behind the
    # third car: the two farthest are one cluster, the others another otsu: 0.186 and 0.5 lie farthest apart. relative:
    # ≤ 0.10 + 0.3 × (0.35 − 0.10)
    expected = {
        "gap": 8,
        "fixed": 10,
        "autocut": 9,
        "adaptive_k": 8,
        "moving_avg": 7,
        "spike": 3,
        "car": 8,
        "otsu": 8,
        "relative": 4,
    }
    assert kept | expected == kept
    assert "calibrated" not in kept


@pytest.fixture
def from_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the number of hits needed for a background from 50 to 4."""
    for module in (layer, cutoff):
        monkeypatch.setattr(module, "BACKGROUND_FROM", 4)


@pytest.mark.usefixtures("from_few")
def test_the_background_is_what_the_query_found_and_the_user_may_see(look_at: LookAt) -> None:
    hits = make_hits([0.2, 0.4, 0.5, 0.8, 1.2, 1.6, 1.9])
    hidden = replace(hits[5], chunk=replace(hits[5].chunk, clearance=9))
    foreign = replace(hits[6], found_by="entity:troll")
    inputs = look_at((*hits[:5], hidden, foreign), cutoff__strategy="relative")
    step = apply(hits[:2], inputs)
    assert isinstance(step.detail, CutoffDetail)
    # The farther half of 0.2, 0.4, 0.5, 0.8 and 1.2; hits dropped by an earlier layer count too.
    assert step.detail.background == pytest.approx((0.5 + 0.8 + 1.2) / 3)


@pytest.mark.usefixtures("from_few")
def test_the_background_does_not_depend_on_how_far_the_pool_was_doubled(look_at: LookAt) -> None:
    hits = make_hits([0.1 * place for place in range(1, 15)])
    step = apply(hits[:2], look_at(hits, retrieval__pool_size=10))
    assert isinstance(step.detail, CutoffDetail)
    assert step.detail.background == pytest.approx(0.8)


@pytest.mark.usefixtures("from_few")
def test_passages_of_longer_texts_share_titles_and_their_background_is_nearer(look_at: LookAt) -> None:
    distances = [0.2, 0.25, 0.3, 0.35, 0.5, 0.6, 0.8, 0.9, 1.0, 1.1]
    # The farther half has a mean of 0.88; of the way there from 0.2, two thirds count.
    for titles, background, kept in [
        (["a", "b", "c", "d", "e", "f", "g", "h", "i", "i"], 0.88, 4),
        (["a", "b", "c", "d", "e", "f", "g", "i", "i", "i"], 0.2 + 0.68 * 2 / 3, 3),
        ([""] * 10, 0.88, 4),
    ]:
        hits = [
            replace(hit, chunk=replace(hit.chunk, title=title))
            for hit, title in zip(make_hits(distances), titles, strict=True)
        ]
        step = apply(tuple(hits), look_at(tuple(hits), cutoff__strategy="relative", cutoff__max_results=10))
        assert isinstance(step.detail, CutoffDetail)
        # 0.2 + 0.3 × 0.68 = 0.404, and 0.2 + 0.3 × 0.453 = 0.336.
        assert (step.detail.background, len(step.hits)) == (pytest.approx(background), kept)
        assert ("since many hits share their titles" in step.note) == (kept == 3)


@pytest.mark.usefixtures("from_few")
def test_the_background_of_rerank_scores_is_in_their_scale(look_at: LookAt) -> None:
    hits = make_hits([0.2, 0.3, 0.4, 0.5, 0.6], [0.9, 0.8, 0.4, 0.2, None])
    step = apply(hits[:2], look_at(hits, reranked=True, cutoff__strategy="relative"))
    assert isinstance(step.detail, CutoffDetail)
    assert step.detail.background == pytest.approx((0.6 + 0.8) / 2)


def test_without_a_background_relative_cuts_by_gap(look_at: LookAt) -> None:
    hits = make_hits([0.1, 0.12, *[0.5] * 47])
    step = apply(hits, look_at(hits, cutoff__strategy="relative"))
    assert isinstance(step.detail, CutoffDetail)
    assert (step.detail.cut.strategy, step.detail.cut.kept) == ("gap", 2)
    assert step.note.endswith("; cut by gap instead: a background needs at least 50 hits")
    more = make_hits([0.1, 0.12, *[0.5] * 48])
    step = apply(more, look_at(more, cutoff__strategy="relative"))
    assert isinstance(step.detail, CutoffDetail)
    assert step.detail.cut.strategy == "relative"


def test_lowered_distances_are_what_is_cut(look_at: LookAt, snapshot: SnapshotAssertion) -> None:
    hits = make_hits([0.5, 0.6, 0.9])
    inputs = replace(look_at(hits), adjusted_distances={"a": 0.5, "b": 0.3, "c": 0.9})
    step = apply((hits[1], hits[0], hits[2]), inputs)
    assert isinstance(step.detail, CutoffDetail)
    assert step.detail.values == (0.3, 0.5, 0.9)
    assert step.detail.value_name == snapshot
    assert step.note.endswith("; the values are distance minus shared words")
    assert rows(step)[2][2] == snapshot
