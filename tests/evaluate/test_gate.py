"""The gate: limits and a baseline, on figures that are calculated by hand."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest
from evaluate.test_query_records import CLIFF, FLAT, K4, QRELS

from ragfilter.errors import InputError
from ragfilter.evaluate.evaluation import score
from ragfilter.evaluate.regression_gate import (
    BaselineOrigin,
    Limit,
    decide,
    junit,
    reached,
    read,
    read_limit,
    to_baseline,
)

# Precision 1 and 2/5, recall 2/3 and 1, kept 2 and 5.
ROWS = reached(score({"cliff": CLIFF, "flat": FLAT}, QRELS, K4).records)
RESET = "The settings have changed: Max results: 8 → 2."
ORIGIN = BaselineOrigin(collection="c", collection_version="7", labels_version="a", model="m", space="l2", settings={})


def rows(*recalls: float, first: int = 0, **relevant: int) -> pd.DataFrame:
    """Queries q0, q1 … with these recalls and numbers of relevant chunks, by default two, numbered from `first`."""
    names = [f"q{place}" for place in range(len(recalls))]
    return pd.DataFrame(
        {
            "id": names,
            "precision": 0.5,
            "recall": recalls,
            "f1": 0.5,
            "kept": 0,
            "lost": 0,
            "nearness": None,
            "fell_back": False,
            "asked": names,
            "relevant": [" ".join(f"{first + n}" for n in range(relevant.get(name, 2))) for name in names],
        }
    )


def test_a_limit_is_on_the_mean_and_names_the_queries_beyond_it() -> None:
    for figure, at, limit, passed, mean, beyond in [
        ("precision", "least", 0.7, True, 0.7, ["flat"]),
        ("precision", "least", 0.71, False, 0.7, ["flat"]),
        ("kept", "most", 3.5, True, 3.5, ["flat"]),
        ("lost", "most", 0.5, True, 0.5, ["cliff"]),
    ]:
        gate = decide(ROWS, [Limit(figure=figure, at=at, limit=limit)])
        (check,) = gate.limits
        assert (gate.passed, check.passed, check.figures["value"]) == (passed, passed, pytest.approx(mean)), check
        assert [*check.figures["beyond"]] == [*check.reasons] == beyond, check


def test_limits_are_read() -> None:
    assert read_limit("f1=0.6", "least", option="--min") == Limit(figure="f1", at="least", limit=0.6)
    for text in ("kept = 5.5", "kept=5.5"):
        limit = read_limit(text, "most", option="--max")
        assert limit == Limit(figure="kept", at="most", limit=5.5)


@pytest.mark.parametrize("text", ["f1", "f9=0.6", "=1", "f1=much", "f1=nan", "f1=-1", "f1=inf", "f1=1.6"])
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--min"):
        read_limit(text, "least", option="--min")


def test_what_breaks_a_gate() -> None:
    for now, passed, severe in [
        # Eight of eight drop by 0.1: 2 of 256 sign flips are as far from 0.
        ((0.9,) * 8, False, 0),
        # One drops by 0.3: a mean drop of 0.0375, which chance can explain.
        ((0.7, *(1.0,) * 7), True, 0),
        # One drops by 0.6: too much at once, whatever the mean.
        ((0.4, *(1.0,) * 7), False, 1),
        ((1.0,) * 8, True, 0),
    ]:
        baseline = to_baseline(rows(*(1.0,) * 8), ORIGIN)
        gate = decide(rows(*now), baseline=baseline, now=ORIGIN, allowed={"recall": 0.02})
        (drop,) = gate.drops
        assert (gate.passed, drop.passed, len(drop.figures["severe"])) == (passed, passed, severe), now
        assert drop.figures["before"] - drop.figures["value"] == pytest.approx(1.0 - sum(now) / 8), now


def test_only_queries_that_both_have_are_compared() -> None:
    baseline = to_baseline(rows(1.0, 1.0), ORIGIN)
    gate = decide(rows(1.0, 1.0, 0.0), baseline=baseline, now=ORIGIN, allowed={"recall": 0.0})
    assert gate.passed
    assert "1 of 3 questions, such as 'q2'" in gate.notes[0]
    with pytest.raises(InputError, match="None of the baseline's queries"):
        decide(rows(), baseline=baseline, now=ORIGIN)


def test_queries_and_relevant_chunks_that_are_gone() -> None:
    baseline, fewer = to_baseline(rows(1.0, 1.0), ORIGIN), rows(1.0, 1.0, q1=1)[1:]
    gate = decide(fewer, baseline=baseline, now=ORIGIN)
    assert gate.gone
    assert (gate.passed, gate.gone.figures) == (False, {"queries": ["q0"], "relevant": {"q1": 1}})
    partly = decide(fewer, baseline=baseline, now=ORIGIN, partly=True)
    assert (partly.passed, partly.gone) == (True, None)
    assert "1 of 2 questions in the baseline were not measured" in partly.notes[0]


def test_a_baseline_of_something_else_is_told() -> None:
    baseline = to_baseline(rows(1.0), ORIGIN)
    assert decide(rows(1.0), baseline=baseline, now=ORIGIN).notes == ()
    other = ORIGIN.model_copy(update={"collection_version": "8"})
    (note,) = decide(rows(1.0), baseline=baseline, now=other).notes
    assert "another version of the collection" in note


def test_changed_chunking_is_told_from_a_worse_filter() -> None:
    baseline = to_baseline(rows(*(1.0,) * 8), ORIGIN)
    other = ORIGIN.model_copy(update={"collection_version": "8"})
    cut = rows(*(0.4,) * 8, q1=3)
    gate = decide(cut, baseline=baseline, now=other, mapped=0.98)
    assert gate.notes[0] == "Chunking changed, labels mapped: 98%."
    assert gate.verdict == "The chunking has changed: recalibrate, then renew the baseline."
    assert decide(rows(*(1.0,) * 8), baseline=baseline, now=other, mapped=0.98).verdict == ""
    # With another model, thresholds mean something else, whatever the chunking.
    remodelled = other.model_copy(update={"model": "n"})
    assert decide(cut, baseline=baseline, now=remodelled, mapped=0.98).verdict.startswith(
        "The embedding model has changed"
    )
    assert decide(rows(*(1.0,) * 8), baseline=baseline, now=remodelled).verdict == ""
    # Changed settings are named, and told apart from the chunking.
    tuned, fixed = ({"cutoff.strategy": "fixed", "cutoff.max_results": most} for most in (8, 2))
    before = to_baseline(rows(*(1.0,) * 8), ORIGIN.model_copy(update={"settings": tuned}))
    both = decide(cut, baseline=before, now=other.model_copy(update={"settings": fixed}), mapped=0.98)
    assert both.notes == ("Chunking changed, labels mapped: 98%.", *gate.notes[1:], RESET)
    assert both.verdict == f"{gate.verdict} So have the settings: gate the old ones to tell the effects apart."
    new = remodelled.model_copy(update={"settings": fixed})
    assert decide(cut, baseline=before, now=new).verdict == decide(cut, baseline=baseline, now=new).verdict
    same = decide(cut, baseline=before, now=other.model_copy(update={"settings": tuned}), mapped=0.98)
    assert (same.notes, same.verdict) == (gate.notes, gate.verdict)
    # Other chunks are relevant, though as many or fewer.
    for again in (rows(*(0.4,) * 8, first=1), rows(*(0.4,) * 8, first=2, q1=1)):
        gate = decide(again, baseline=baseline, now=other, mapped=1.0)
        assert (gate.notes[0], bool(gate.gone and gate.gone.passed)) == ("Chunking changed, labels mapped: 100%.", True)
        assert gate.verdict.startswith("The chunking has changed")
    # Labels that were mapped once, for an earlier baseline, excuse nothing later.
    worse = decide(rows(*(0.4,) * 8), baseline=baseline, now=other, mapped=0.98)
    assert worse.verdict.startswith("The filter got worse")


def test_gone_labels_are_told_from_changed_chunking() -> None:
    """Labels that were mapped for an earlier baseline remain mapped, and one is found in another source."""
    baseline = to_baseline(rows(*(1.0,) * 9), ORIGIN)
    other = ORIGIN.model_copy(update={"collection_version": "8"})
    left = rows(*(0.4,) * 9, q1=1, q2=1)
    left.loc[0, "relevant"] = "0 9"
    gate = decide(left[:8], baseline=baseline, now=other, mapped=0.48)
    assert gate.gone
    assert gate.gone.line.startswith("gone since the baseline: 1 labelled question, 2 relevant labels")
    assert gate.gone.figures == {"queries": ["q8"], "relevant": {"q1": 1, "q2": 1}}
    assert "Chunking" not in " ".join(gate.notes)
    # The filter is blamed only for questions that kept their labels.
    assert gate.verdict.startswith("The filter got worse")
    fewer = rows(1.0, 0.4, 0.4, *(1.0,) * 6, q1=1, q2=1)
    told = decide(fewer, baseline=baseline, now=other, mapped=0.48).verdict
    assert told.startswith("Labels are gone")


@pytest.mark.parametrize(
    ("part", "other"),
    [
        *(("0.25", figure) for figure in ("NaN", "Infinity", "-Infinity", "1e999", '"nan"')),
        ('"settings": {},', ""),
        ('"settings": {}', '"settings": {"cutoff.gone": 1}'),
        ('"asked"', '"question"'),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path: Path, part: str, other: str) -> None:
    file, baseline = tmp_path / "baseline.json", to_baseline(rows(0.25), ORIGIN)
    file.write_text(baseline.dumps(), "utf-8")
    assert read(file) == baseline
    assert part in baseline.dumps()
    file.write_text(baseline.dumps().replace(part, other), "utf-8")
    with pytest.raises(InputError, match="is not a baseline file"):
        read(file)


def test_junit_holds_any_text() -> None:
    gate = decide(rows(0.25), [Limit(figure="recall", at="least", limit=0.5)])
    suite = ElementTree.fromstring(junit(gate, "a & b\x00", {"q0": "<odd>"}).partition("\n")[2])
    assert suite.get("name") == "ragfilter gate a & b\N{REPLACEMENT CHARACTER}"
    assert suite.get("failures") == "1"
    (failure,) = suite.iter("failure")
    assert "recall 0.250 < 0.500" in str(failure.text)
