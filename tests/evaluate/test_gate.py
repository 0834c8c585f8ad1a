"""Limits over two queries whose figures are calculated by hand in test_run."""

from __future__ import annotations

import pytest
from ragfilter.evaluate.limits import Check, Limit, check, of_records, of_rows, read_limit
from ragfilter.evaluate.records import record
from test_run import CLIFF, FLAT, K4, QRELS

from ragfilter.errors import InputError
from ragfilter.evaluate.evaluation import score
from ragfilter.evaluate.variants import variants
from ragfilter.model import PUBLIC

MADE = score({"cliff": CLIFF, "flat": FLAT}, QRELS, K4)
# Filtered: precision 1 and 2/5, recall 2/3 and 1, kept 2 and 5.


@pytest.mark.parametrize(
    ("limit", "passed", "mean", "worst"),
    [
        (Limit("precision", 0.7, True), True, 0.7, ["flat"]),
        (Limit("precision", 0.71, True), False, 0.7, ["flat"]),
        (Limit("recall", 0.9, True), False, 5 / 6, ["cliff"]),
        (Limit("kept", 3.5, False), True, 3.5, ["flat"]),
        (Limit("kept", 1, False), False, 3.5, ["flat", "cliff"]),
        (Limit("lost", 0.5, False), True, 0.5, ["cliff"]),
    ],
)
def test_a_limit_is_on_the_mean_and_names_the_queries_beyond_it(
    limit: Limit, passed: bool, mean: float, worst: list[str]
) -> None:
    (made,) = check(of_rows(MADE.rows), [limit])
    assert isinstance(made, Check)
    assert (made.passed, made.mean) == (passed, pytest.approx(mean))
    assert [query_id for query_id, _ in made.worst] == worst


def test_a_run_reaches_the_same_as_an_evaluation() -> None:
    made = [
        record(pool.query, pool, QRELS[pool.query], variants(K4), PUBLIC) for pool in (CLIFF, FLAT)
    ]
    assert of_records(made) == of_rows(MADE.rows)


def test_limits_are_read() -> None:
    assert read_limit("f1=0.6", least=True, option="--min") == Limit("f1", 0.6, True)
    assert read_limit("kept = 5.5", least=False, option="--max") == Limit("kept", 5.5, False)
    assert read_limit("kept = 5", least=False, option="--max") == Limit("kept", 5.0, False)


@pytest.mark.parametrize(
    "text", ["f1", "f9=0.6", "=1", "f1=much", "f1=nan", "f1=-1", "f1=inf", "f1=1.6"]
)
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--min"):
        read_limit(text, least=True, option="--min")
