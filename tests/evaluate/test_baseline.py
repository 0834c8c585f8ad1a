"""A baseline: broad drops by the paired test, single severe losses by their own limit."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from ragfilter.evaluate.baseline import (
    About,
    Gone,
    check_drops,
    check_gone,
    dumps,
    of_reached,
    read,
    stale,
)
from ragfilter.evaluate.junit import Case, junit
from ragfilter.evaluate.limits import QueryFigures

from ragfilter.errors import InputError

ABOUT = About("c", "7", "a", "m", "l2")


def rows(*recalls: float) -> list[QueryFigures]:
    return [QueryFigures(f"q{i}", 0.5, recall, 0.5, 0, 0, 2) for i, recall in enumerate(recalls)]


@pytest.mark.parametrize(
    ("now", "broad", "severe"),
    [
        # Eight of eight drop by 0.1: 2 of 256 sign flips are as far from 0.
        ((0.9,) * 8, True, 0),
        # One drops by 0.3: a mean drop of 0.0375, which chance can explain.
        ((0.7, *(1.0,) * 7), False, 0),
        # One drops by 0.6: too much at once, whatever the mean.
        ((0.4, *(1.0,) * 7), False, 1),
        ((1.0,) * 8, False, 0),
    ],
)
def test_what_breaks_a_gate(now: tuple[float, ...], broad: bool, severe: int) -> None:
    baseline = of_reached(rows(*(1.0,) * 8), ABOUT)
    drop = check_drops(baseline, rows(*now), {"recall": 0.02})[0]
    assert (drop.broad, len(drop.severe)) == (broad, severe)
    assert drop.passed == (not broad and not severe)
    assert drop.drop == pytest.approx(1.0 - sum(now) / 8)


@pytest.mark.parametrize("allowed", [{"recall": 1.0}, {"f1": 1.0, "recall": 1.0}])
def test_a_severe_loss_breaks_whichever_means_may_drop(allowed: dict[str, float]) -> None:
    baseline = of_reached(rows(*(1.0,) * 8), ABOUT)
    # All drop a little, which only a limit on the mean of recall would detect.
    drops = check_drops(baseline, rows(*(0.9,) * 8), allowed)
    assert [drop.figure for drop in drops] == [*allowed]
    assert all(drop.passed for drop in drops)
    drops = check_drops(baseline, rows(0.4, *(1.0,) * 7), allowed)
    assert [drop.figure for drop in drops if not drop.passed] == ["recall"]


def test_only_queries_that_both_have_are_compared() -> None:
    baseline = of_reached(rows(1.0, 1.0), ABOUT)
    drops = check_drops(baseline, rows(1.0, 1.0, 0.0), {"recall": 0.0})
    assert all(drop.passed for drop in drops)
    with pytest.raises(InputError, match="None of the baseline's queries"):
        check_drops(baseline, [], {"recall": 0.0})


def test_queries_and_relevant_chunks_that_are_gone(tmp_path: Path) -> None:
    whole = rows(1.0, 1.0)
    file = tmp_path / "baseline.json"
    file.write_text(dumps(of_reached(whole, ABOUT)), "utf-8")
    baseline = read(file)
    assert check_gone(baseline, whole).passed
    fewer = replace(whole[1], relevant=1)
    assert check_gone(baseline, [fewer]) == Gone(("q0",), (("q1", 1),))
    # Early baselines do not count relevant chunks.
    file.write_text(re.sub(r',\s*"relevant": 2', "", file.read_text("utf-8")), "utf-8")
    assert check_gone(read(file), [whole[0], fewer]).passed


def test_stale() -> None:
    baseline = of_reached(rows(1.0), ABOUT)
    assert stale(baseline, ABOUT) == ()
    assert stale(baseline, About("c", "8", "a", "m", "l2")) == (
        "another version of the collection",
    )


@pytest.mark.parametrize("figure", ["NaN", "Infinity", "-Infinity", "1e999", '"nan"'])
def test_a_figure_that_is_not_finite_is_refused(tmp_path: Path, figure: str) -> None:
    file = tmp_path / "baseline.json"
    text = dumps(of_reached(rows(0.25), ABOUT))
    file.write_text(text, "utf-8")
    assert read(file) == of_reached(rows(0.25), ABOUT)
    file.write_text(text.replace("0.25", figure), "utf-8")
    with pytest.raises(InputError, match="is not a baseline file") as raised:
        read(file)
    assert raised.value.remedy


def test_junit_holds_any_text() -> None:
    made = junit("a & b", [Case("fine"), Case("\x00<odd>", "why\n& where")])
    suite = ElementTree.fromstring(made.partition("\n")[2])
    assert suite.get("failures") == "1"
    names = [case.get("name") for case in suite]
    assert names == ["fine", "\N{REPLACEMENT CHARACTER}<odd>"]
    failure = suite[1].find("failure")
    assert failure is not None
    assert failure.text == "why\n& where"
