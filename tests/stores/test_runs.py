"""Saved runs: a stopped run continues, a complete one does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from ragfilter.errors import InputError
from ragfilter.model import User
from ragfilter.stores.run_store import Plan, Runs

PLAN = Plan(
    collection="c",
    query_set="mine",
    profile="full",
    changes={"cutoff.max_results": 3},
    viewer=User(2, ("ops", "hr")),
    collection_version="7",
    labels_version="a",
    model="m",
    space="l2",
    queries=2,
)


@pytest.fixture
def runs(book_url: str) -> Iterator[Runs]:
    runs = Runs(book_url)
    yield runs
    runs.close()


def test_a_stopped_run_goes_on_and_a_complete_one_is_left_alone(runs: Runs) -> None:
    first = runs.begin(PLAN, who="ann")
    runs.keep(first.id, "q1", {"id": "q1", "n": 1})
    runs.keep(first.id, "q1", {"id": "q1", "n": 2})
    again = runs.begin(PLAN, who="bob")
    assert (again.id, again.done, again.complete, again.who) == (first.id, 1, False, "ann")
    assert again.plan == replace(PLAN, viewer=User(2, ("hr", "ops")))
    runs.keep(first.id, "q2", {"id": "q2"})
    assert runs.records(first.id) == ({"id": "q1", "n": 2}, {"id": "q2"})
    assert runs.done(first.id) == {"q1", "q2"}
    # Whoever continues a run that nobody asked for has measured.
    unasked = runs.begin(PLAN, who="")
    assert unasked.id != first.id
    assert runs.begin(PLAN, who="bob").who == runs.get(unasked.id).who == "bob"


@pytest.mark.parametrize(
    "changed",
    [{"collection_version": "8"}, {"labels_version": "b"}, {"changes": {}}, {"viewer": User()}, {"model": "n"}],
    ids=lambda changed: next(iter(changed)),
)
def test_a_run_of_anything_else_is_another_run(runs: Runs, changed: dict[str, object]) -> None:
    first = runs.begin(PLAN, who="ann")
    assert runs.begin(replace(PLAN, **changed), who="ann").id != first.id  # type: ignore[arg-type]


def test_one_run_of_a_query_set_has_a_name(runs: Runs) -> None:
    first, second, other = (
        runs.begin(replace(PLAN, query_set=name, profile=profile), who="ann").id
        for name, profile in (("mine", "full"), ("mine", "otsu"), ("yours", "full"))
    )
    for run in (first, other, second):
        runs.rename(run, "baseline")
    assert [(run.id, run.name) for run in runs.saved()] == [(other, "baseline"), (second, "baseline"), (first, "")]


def test_the_runs_of_a_renamed_query_set_get_its_new_title(runs: Runs) -> None:
    for query_set, collection in (("mine", "c"), ("mine, with LLM labels", "c"), ("mine too", "c"), ("mine", "d")):
        runs.begin(replace(PLAN, query_set=query_set, collection=collection), who="ann")
    runs.retitle("c", {"mine": "ours", "mine, with LLM labels": "ours, with LLM labels"})
    assert [run.plan.query_set for run in runs.saved()] == ["mine", "mine too", "ours, with LLM labels", "ours"]


def test_runs_are_listed_newest_first_and_removed(runs: Runs) -> None:
    ids = [runs.begin(replace(PLAN, collection=name), who="ann").id for name in ("c", "d", "e")]
    assert [run.id for run in runs.saved()] == ids[::-1]
    assert [run.id for run in runs.saved("d")] == [ids[1]]
    runs.remove(ids[1])
    assert runs.saved("d") == ()
    with pytest.raises(InputError, match=f"There is no run {ids[1]}"):
        runs.remove(ids[1])


def test_a_run_does_not_take_over_the_records_of_a_deleted_one(runs: Runs) -> None:
    # It was deleted while it was being measured.
    runs.keep(1, "q1", {"id": "q1", "of": "another"})
    assert runs.begin(PLAN, who="ann").done == 0
    assert runs.done(1) == frozenset()
