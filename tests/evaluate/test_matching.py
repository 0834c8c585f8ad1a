"""Two settings over a query set: found among saved runs, and compared."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from ragfilter.evaluate.matching import duel, find
from ragfilter.evaluate.records import KeptCounts

from ragfilter.evaluate.measure import QueryRecord
from ragfilter.evaluate.prefixes import Curve
from ragfilter.evaluate.runs import variants_of
from ragfilter.model import PUBLIC, User
from ragfilter.settings.config import of_profile
from ragfilter.settings.schema import Settings
from ragfilter.stores.runs import Plan, Run

PLAN = Plan("demo", "few", "full", {}, PUBLIC, "v1", "l1", "m", "l2", 2, "p1")
RUN = Run(3, datetime(2026, 3, 1, tzinfo=UTC), "ann", PLAN, 2)
CURVE = Curve((0.1,), (1,), (10,))


def record(name: str, relevant: int, **kept: tuple[int, int]) -> QueryRecord:
    """A question with `relevant` chunks; `kept` are (chunks, relevant ones) by variant."""
    counts = {v: KeptCounts(n, found, 0, 0.0, 10 * n, 0.0) for v, (n, found) in kept.items()}
    return QueryRecord(name, f"text of {name}", relevant, 0, CURVE, (1.0,), counts)


FULL = of_profile("full")
GAP = of_profile("adaptive-gap").with_values({"clearance.enabled": True})


@pytest.mark.parametrize("settings", [FULL, GAP, FULL.with_values({"cutoff.strategy": "otsu"})])
def test_settings_are_found_as_a_row_of_a_run(settings: Settings) -> None:
    # Their names in the wanted plan do not matter.
    found = next(find(settings, replace(PLAN, profile="other", changes={"x": 1}), [RUN]))
    (row,) = {v.settings.model_dump_json() for v in variants_of(RUN) if v.name == found.variant}
    assert row == settings.model_dump_json()


@pytest.mark.parametrize(
    "run",
    [
        replace(RUN, done=1),
        replace(RUN, plan=replace(PLAN, labels_version="l2")),
        replace(RUN, plan=replace(PLAN, collection_version="v2")),
        replace(RUN, plan=replace(PLAN, query_set="asked")),
        replace(RUN, plan=replace(PLAN, viewer=User(3))),
        # the same names, but other values then
        replace(RUN, plan=replace(PLAN, profiles="p2")),
    ],
)
def test_a_run_of_something_else_is_not_taken(run: Run) -> None:
    found = list(find(FULL, PLAN, [run, RUN]))
    assert found
    assert all(each.run == RUN for each in found)


def test_settings_that_nobody_measured_are_not_found() -> None:
    assert not list(find(FULL.with_values({"cutoff.max_results": 2}), PLAN, [RUN]))


def test_wins_losses_and_the_severest_loss() -> None:
    # F1 with a and b: q1 0.5 and 1, q2 1 and 0, q3 equal; only b has q4.
    a = [
        record("q1", 1, plain=(3, 1)),
        record("q2", 1, plain=(1, 1)),
        record("q3", 2, plain=(2, 2)),
    ]
    b = [
        record("q3", 2, own=(2, 2)),
        record("q1", 1, own=(1, 1)),
        record("q2", 1, own=(4, 0)),
        record("q4", 1, own=(1, 1)),
    ]
    made = duel(a, "plain", b, "own")
    assert (made.paired.wins, made.paired.losses, made.paired.ties) == (1, 1, 1)
    assert [(c.id, c.f1) for c in made.changes] == [
        ("q2", (1.0, 0.0)), ("q1", (0.5, 1.0)), ("q3", (1.0, 1.0)),
    ]  # fmt: skip
    worst = made.worst
    assert worst is not None
    assert (worst.query, worst.gain, worst.chunks, worst.tokens) == (
        "text of q2", -1.0, (1, 4), (10, 40),
    )  # fmt: skip
    assert made.mean("chunks", 0) == 2.0
    assert made.mean("chunks", 1) == pytest.approx(7 / 3)
    assert duel(b, "own", a, "plain").worst is not None
    assert duel(a, "plain", a, "plain").worst is None
    assert duel(a, "plain", [], "own").paired.queries == 0


def test_different_questions_with_the_same_id_are_not_compared() -> None:
    a = [record("1", 1, x=(1, 1)), record("2", 1, x=(1, 1))]
    b = [record("1", 1, x=(1, 0)), replace(record("2", 1, x=(1, 0)), query="something else")]
    made = duel(a, "x", b, "x")
    assert (made.paired.queries, [each.query for each in made.changes]) == (1, ["text of 1"])
    assert duel(a[1:], "x", b[1:], "x").paired.queries == 0
