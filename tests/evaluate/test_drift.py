"""Drift: whether questions are still answered in the same way, and what moved if not."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragfilter.errors import InputError
from ragfilter.evaluate.measured_runs import BASELINE, MeasuredRun, earlier, moved_since
from ragfilter.evaluate.query_records import from_document, records_of, to_document
from ragfilter.evaluate.regression_gate import mover, read_log, shifts, what_moved
from ragfilter.evaluate.variants import variants
from ragfilter.model import UNRESTRICTED, Chunk, Hit, Pool, User
from ragfilter.settings.schema import Settings
from ragfilter.stores.run_store import Plan, Run


def sample(near: float, kept: float, *, fell: int = 0, seed: int = 0) -> pd.DataFrame:
    """Sixty questions around these means, of which some fell back."""
    rng = np.random.default_rng(seed)
    rows = [(rng.normal(near, 0.1), rng.poisson(kept), n < fell) for n in range(60)]
    return pd.DataFrame(rows, columns=["nearness", "kept", "fell_back"])


BEFORE = sample(0.4, 4)


def test_another_sample_of_the_same_is_no_drift() -> None:
    alarms = [what_moved(shifts(BEFORE, sample(0.4, 4, seed=seed))) for seed in range(1, 21)]
    assert sum(map(bool, alarms)) <= 2


def test_what_moved_is_told_apart() -> None:
    for now, worse, told in [
        (sample(0.6, 4, seed=1), True, "The corpus or the model moved: best distance"),
        (sample(0.4, 4, seed=1), True, "The filter got worse"),
        (sample(0.4, 9, seed=1), False, "The filter decides differently on similar distances"),
        (sample(0.4, 4, fell=20, seed=1), False, "share of fallbacks 0.000 → 0.333"),
        (sample(0.4, 0.2, seed=1), False, "share of empty results"),
    ]:
        assert told in what_moved(shifts(BEFORE, now), worse=worse)


def test_other_questions_are_told_from_another_corpus() -> None:
    for shared, shift, told in [
        (9, 0.0, "The questions moved"),
        (9, 0.2, "The corpus or the model moved"),
        (
            7,
            0.0,
            "The questions, the corpus or the model moved (the log has too few of the baseline's questions to tell)",
        ),
    ]:
        before = BEFORE.assign(asked=[f"q{n}" for n in range(60)])
        again = before[:shared].assign(nearness=before["nearness"][:shared] + shift)
        now = pd.concat([again, sample(0.8, 4, seed=1).assign(asked="off topic")])
        assert what_moved(shifts(before, now), who=mover(before, now)).startswith(told)


def test_nothing_is_said_about_distances_that_nobody_knows() -> None:
    now = sample(0.4, 9, seed=1).assign(nearness=np.nan)
    assert what_moved(shifts(BEFORE, now)).startswith("The filter decides differently: chunks kept")
    assert what_moved(shifts(BEFORE, now), worse=True).endswith("got worse.")


def test_a_log_is_read_line_by_line(tmp_path: Path) -> None:
    log = tmp_path / "day.jsonl"
    rows = [
        {"query": "a", "kept": 3, "fallback": [], "nearness": 0.4},
        {"message": "something else"},
        {"query": "b", "kept": 0, "fallback": ["quality"], "nearness": None, "collection": "c"},
        {"query": "c", "kept": 2, "fallback": [], "nearness": 0.8, "collection": "other"},
    ]
    log.write_text("not JSON\n" + "\n".join(map(json.dumps, rows)), "utf-8")
    read = read_log(log, "c")
    assert read["nearness"].fillna(-1).tolist() == [0.4, -1]
    assert (read["kept"].tolist(), read["fell_back"].tolist()) == ([3, 0], [False, True])
    log.write_text(json.dumps(rows[-1]), "utf-8")
    with pytest.raises(InputError, match="has no questions to the collection 'c', only to other"):
        read_log(log, "c")


def test_a_log_line_without_a_question_is_skipped(tmp_path: Path) -> None:
    for given in [
        '"nearness": NaN',
        '"nearness": 1e999',
        '"nearness": -0.1',
        '"nearness": "0.4"',
        '"nearness": true',
        '"kept": -3',
        '"kept": 2.5',
        '"kept": true',
        f'"kept": 1{"0" * 400}',
        '"fallback": "no"',
        '"fallback": false',
        '"collection": 7',
    ]:
        log, line = tmp_path / "day.jsonl", '{"nearness": 0.4, "kept": 3, "fallback": []'
        log.write_text(f"{line}}}\n{line}, {given}}}", "utf-8")
        assert len(read_log(log, "c")) == 1, given


def saved(number: int, **plan: Any) -> Run:
    """A complete run of 24 questions."""
    given = {"collection": "c", "query_set": "set", "profile": "full", "queries": 24, "viewer": UNRESTRICTED}
    given |= {"changes": {}, "collection_version": "1", "labels_version": "l", "model": "m", "space": "l2"}
    return Run(number, datetime(2026, 1, 2, tzinfo=UTC), "", "", Plan(**given | plan), 24)


def measured(number: int, shift: float = 0.0, most: int = 5, **plan: Any) -> MeasuredRun:
    """A saved run whose best hit is 0.2 away and, without a `shift`, equally near relative to the other hits."""
    settings = Settings().with_values({"cutoff.strategy": "fixed", "cutoff.max_results": most})
    records = []
    for n in range(24):
        hits = tuple(Hit(Chunk(f"c{i}"), shift + 0.2 + 0.01 * (n % 7) + 0.02 * i, i + 1) for i in range(60))
        pool = Pool(f"q{n}", "c", "l2", hits)
        found = records_of(f"q{n}", pool, {f"c{i}": 1 for i in range(5)}, variants(settings))
        records += from_document(json.loads(json.dumps(to_document(found))))
    return MeasuredRun(saved(number, **plan), tuple(records))


def test_a_run_says_what_moved_since_an_earlier_one() -> None:
    for now, told in [
        ({}, ""),
        ({"shift": 0.5, "model": "other"}, "The corpus or the model moved: best distance ÷"),
        ({"most": 1}, "The filter got worse: the search finds chunks as near as before."),
    ]:
        moved = moved_since(measured(2, **now), measured(1))
        assert moved.startswith(told)
        assert bool(moved) is bool(told)


def test_the_earlier_run_has_the_same_questions_user_and_settings() -> None:
    runs = [
        saved(number, **plan)
        for number, plan in enumerate(
            ({}, {"queries": 30}, {"query_set": "other"}, {"viewer": User(1)}, {"profile": "otsu"}, {}), start=1
        )
    ]
    assert earlier(runs[-1], runs) == runs[0]
    assert earlier(runs[0], runs) is None


def test_the_baseline_comes_before_later_runs() -> None:
    first, baseline, third, now = (saved(number) for number in range(1, 5))
    assert earlier(now, [first, baseline, third]) == third
    named = replace(baseline, name=BASELINE)
    assert earlier(now, [first, named, third]) == named
