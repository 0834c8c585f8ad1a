"""Two sides over the same queries: counted by hand, with the test compared to scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from ragfilter.evaluate.paired import compare, permutation_p
from scipy.stats import permutation_test

from ragfilter.evaluate.agreement import agreement
from ragfilter.evaluate.crossval import interval, intervals

A = {"q1": 0.5, "q2": 1.0, "q3": 0.2, "q4": 0.4, "only a": 1.0}
B = {"q1": 0.7, "q2": 0.3, "q3": 0.2, "q4": 0.5, "only b": 0.0}


def test_wins_losses_and_the_severest_loss() -> None:
    made = compare(A, B)
    assert (made.queries, made.wins, made.losses, made.ties) == (4, 2, 1, 1)
    assert made.gain.mean == pytest.approx(-0.1)
    assert made.worst == ("q2", pytest.approx(-0.7))
    assert [i for i, _ in made.changes] == ["q2", "q1", "q4", "q3"]


def test_the_test_is_scipys_where_all_exchanges_are_tried() -> None:
    apart = np.array([0.2, -0.1, 0.3, 0.05, 0.15, 0.22])
    theirs = permutation_test((apart,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert permutation_p(apart) == pytest.approx(theirs.pvalue)
    # Sums of 0.82 (as it is), 0.92 and 1.02, and their opposites: 6 of 64 exchanges.
    assert permutation_p(apart) == pytest.approx(6 / 64)


def test_many_queries_are_exchanged_at_random_and_repeatably() -> None:
    apart = np.random.default_rng(1).normal(0.1, 0.2, 60)
    assert permutation_p(apart) == permutation_p(apart) < 0.01
    assert permutation_p(np.zeros(60)) == 1.0


def test_sides_without_a_common_query_are_alike() -> None:
    made = compare({"a": 1.0}, {"b": 0.0})
    assert (made.queries, made.p_value, made.worst) == (0, 1.0, None)


def test_intervals_of_a_table_are_those_of_its_columns() -> None:
    table = np.random.default_rng(2).random((30, 3))
    for column, made in zip(table.T, intervals(table), strict=True):
        alone = interval(column)
        assert made.mean == pytest.approx(alone.mean)
        assert made.ends == pytest.approx(alone.ends)


@pytest.mark.parametrize(
    ("human", "llm", "expected"),
    [
        ({"q": {"a": 1, "b": 0}}, {"q": {"a": 2, "b": 0}}, (2, 2, 1.0)),
        ({"q": {"a": 1, "b": 0}}, {"q": {"a": 0, "b": 1}}, (2, 0, -1.0)),
        # Observed 3 of 4; by chance 0.5 × 0.25 + 0.5 × 0.75 = 0.5.
        ({"q": dict.fromkeys("ab", 1) | dict.fromkeys("cd", 0)},
         {"q": {"a": 1, "b": 0, "c": 0, "d": 0}}, (4, 3, 0.5)),
        ({"q": {"a": 1}}, {"q": {"a": 1}}, (1, 1, None)),
        ({"q": {"a": 1}}, {"p": {"a": 1}}, (0, 0, None)),
    ],
)  # fmt: skip
def test_cohens_kappa(
    human: dict[str, dict[str, int]],
    llm: dict[str, dict[str, int]],
    expected: tuple[int, int, float | None],
) -> None:
    made = agreement(human, llm)
    assert (made.pairs, made.agreed) == expected[:2]
    assert made.kappa == (None if expected[2] is None else pytest.approx(expected[2]))
