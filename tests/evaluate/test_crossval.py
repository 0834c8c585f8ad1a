"""Cross-validation and intervals: small tables calculated by hand, and a comparison with scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import bootstrap as resample

from ragfilter.evaluate.crossval import assign_folds, bootstrap, choose, folds_of, pick
from ragfilter.evaluate.target import Target

TABLE = np.array([[0.9, 0.5], [0.9, 0.5], [0.0, 0.5], [0.0, 0.5]])


@pytest.mark.parametrize(("queries", "folds", "used"), [(10, 5, 5), (3, 5, 3), (7, 2, 2)])
def test_folds_are_of_equal_size_and_no_more_than_queries(
    queries: int, folds: int, used: int
) -> None:
    sizes = np.bincount(assign_folds(queries, folds))
    assert (len(sizes), sizes.sum()) == (used, queries)
    assert sizes.max() - sizes.min() <= 1


def test_folds_are_the_same_every_time_and_not_in_the_order_of_the_file() -> None:
    folds = assign_folds(50, 5)
    assert folds.tolist() == assign_folds(50, 5).tolist()
    assert folds.tolist() != (np.arange(50) % 5).tolist()


def test_queries_with_the_same_text_share_a_fold() -> None:
    texts = [f"Question {n // 2}" for n in range(20)]
    folds = folds_of([*texts[::2], *(text.upper() + " " for text in texts[1::2])], 5)
    assert folds[:10].tolist() == folds[10:].tolist() == assign_folds(10, 5).tolist()
    # Without such queries, and where there is no other text, queries are held out one by one.
    assert folds_of([f"q{n}" for n in range(20)], 5).tolist() == assign_folds(20, 5).tolist()
    assert folds_of(["Who?"] * 3, 5).tolist() == assign_folds(3, 5).tolist()


@pytest.mark.parametrize(("queries", "folds"), [(1, 5), (0, 5), (10, 1)])
def test_nothing_can_be_held_out_of_one(queries: int, folds: int) -> None:
    with pytest.raises(ValueError, match="at least two"):
        assign_folds(queries, folds)


def test_the_first_of_equal_candidates_is_chosen() -> None:
    assert choose(np.array([[0.1, 0.5, 0.5]])) == 1
    # 0.1 + 0.2 is a little more than 0.3.
    assert choose(np.array([[0.3, 0.1], [0.0, 0.2]])) == 0


def test_a_query_is_measured_with_what_the_others_chose() -> None:
    # Without the first two the second candidate is best (0.5 against 0), and the other way round.
    chosen = Target().held_out({"f1": TABLE}, np.array([0, 0, 1, 1]))
    assert chosen.tolist() == [1, 1, 0, 0]
    assert pick(TABLE, chosen).tolist() == [0.5, 0.5, 0.0, 0.0]
    # In-sample each candidate alone would show 0.45 or 0.5; held out it is 0.25.
    assert pick(TABLE, chosen).mean() == 0.25


def test_intervals_equal_scipys() -> None:
    values = np.random.default_rng(3).random(40)
    ours = bootstrap(values)
    made = resample((values,), np.mean, n_resamples=2000, method="percentile", rng=0)
    assert ours.mean == values.mean()
    assert (ours.low, ours.high) == (
        made.confidence_interval.low, made.confidence_interval.high,
    )  # fmt: skip
    assert ours.low < ours.mean < ours.high


@pytest.mark.parametrize("values", [[0.4], [0.4, 0.4, 0.4]])
def test_an_interval_of_equal_values_is_that_value(values: list[float]) -> None:
    made = bootstrap(np.array(values))
    assert made.mean == pytest.approx(0.4)
    assert made.low == made.high == made.mean


@pytest.mark.parametrize(
    ("values", "gain"),
    [
        # The interval excludes 0, but the signs of so few are all one way by chance: 2 / 2⁵ > 0.05.
        ([0.2, 0.2], False),
        ([0.2, 0.1, 0.05], False),
        ([0.1] * 5, False),
        ([0.1] * 6, True),
        # Queries on which both are alike say nothing.
        ([0.1] * 5 + [0.0] * 3, False),
        ([0.1] * 9 + [-0.1] * 8, False),
    ],
)
def test_a_gain_is_claimed_only_where_enough_queries_differ(
    values: list[float], gain: bool
) -> None:
    made, turned = bootstrap(np.array(values)), bootstrap(-np.array(values))
    assert (made.shows_gain, made.shows_loss) == (gain, False)
    assert (turned.shows_gain, turned.shows_loss) == (False, gain)
