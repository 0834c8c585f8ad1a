"""Applying what was learned: probabilities, expected F, the recall dial, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import exp, prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from ragfilter.engine.replay import ReplayMemo, replay
from ragfilter.errors import SettingsError
from ragfilter.layers.strategies.calibrated import expected_f, probabilities
from ragfilter.model import Chunk, CutoffDetail, Hit, Pool, PoolResult
from ragfilter.settings.config import load, to_toml
from ragfilter.settings.schema import Calibration, Settings, Split

LEARNED: dict[str, Any] = {
    "collection": "here",
    "embedder": "model",
    "space": "l2",
    "reranker": "",
    "labels": "v",
    "queries": 30,
    "relevant": 60,
    "date": "2026-11-22",
    "depth": 10,
    "intercept": 2.0,
    "weights": {"way": -8.0},
    "keeps": {"0.5": 0.7, "0.9": 0.2},
}


def calibration(**values: Any) -> str:
    return Calibration(**{**LEARNED, **values}).json_text


def settings(text: str, **values: Any) -> Settings:
    """Only the cutoff, with what was learned."""
    given = {"strategy": "calibrated", "calibration": text, "max_results": 50, "min_results": 0}
    return Settings().with_values({f"cutoff.{k}": v for k, v in {**given, **values}.items()})


# Ways of 0, 0.1, 0.2, … 0.9, and 1.0 for the far half: log-odds of 2.0, 1.2, 0.4, −0.4 …
POOL = Pool(
    "a question",
    "here",
    "l2",
    tuple(Hit(Chunk(f"c{i}", f"text {i}"), 0.5 + 0.1 * min(i, 10), i + 1) for i in range(60)),
    embedder="model",
)


def detail(result: PoolResult) -> CutoffDetail:
    found = result.trace("cutoff").detail
    assert isinstance(found, CutoffDetail)
    return found


def test_expected_f_counts_what_is_relevant_elsewhere() -> None:
    # One more elsewhere: 2/(1+2) and 2/(2+2).
    assert expected_f(np.array([1, 0]), 1, 1) == pytest.approx([0, 2 / 3, 1 / 2])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.sampled_from([1.0, 2.0]))
def test_expected_f_is_the_mean_over_everything_that_may_be_relevant(chances: list[float], beta: float) -> None:
    made = expected_f(np.array(chances), beta)
    for k in range(1, len(chances) + 1):
        mean = 0.0
        for labels in product((0, 1), repeat=len(chances)):
            likely = prod(c if y else 1 - c for c, y in zip(chances, labels, strict=True))
            found, wanted = sum(labels[:k]), sum(labels)
            mean += likely * (1 + beta**2) * found / (k + beta**2 * wanted)
        assert made[k] == pytest.approx(mean)


def test_each_hit_gets_its_probability_and_the_cut_its_reason(snapshot: SnapshotAssertion) -> None:
    result = replay(POOL, settings(calibration()))
    values = detail(result).values
    assert values[0] == pytest.approx(1 - 1 / (1 + exp(-2.0)))
    assert values[3] == pytest.approx(1 - 1 / (1 + exp(0.4)))
    assert set(values[10:]) == {1.0}
    assert detail(result).value_name == "1 − probability"
    kept = len(result.kept)
    assert [hit.id for hit in result.kept] == [f"c{i}" for i in range(kept)]
    decided = {d.chunk_id: d for d in result.trace("cutoff").decisions}
    assert f"falls after hit {kept}" in detail(result).cut.reason
    assert decided["c0"].reason.startswith("probability 0.88; expected F1 ")
    assert decided["c9"].reason.startswith("after the cut: probability 0.01; expected F1 ")
    assert decided["c10"].reason == snapshot


def test_the_likeliest_come_first_unless_the_order_is_kept() -> None:
    # The farther, the more probable.
    turned = calibration(intercept=-4.0, weights={"way": 8.0})
    assert [h.id for h in replay(POOL, settings(turned)).kept][:2] == ["c9", "c8"]
    first = replay(POOL, settings(turned, prefix=True)).kept
    assert [h.id for h in first] == [f"c{i}" for i in range(10)]


def test_trees_are_walked() -> None:
    tree = Split(feature="way", at=0.25, low=1.0, high=Split(feature="way", at=0.35, low=0.5, high=-9.0))
    grown = calibration(intercept=0.0, weights={}, trees=(tree, 1.0))
    chances = probabilities(Calibration.model_validate(grown), {"way": np.array([0.2, 0.25, 0.3, 0.4])})
    assert chances == pytest.approx([1 / (1 + exp(-x)) for x in (2.0, 2.0, 1.5, -8.0)])
    assert [h.id for h in replay(POOL, settings(grown)).kept] == ["c0", "c1", "c2", "c3"]


@pytest.mark.parametrize(("recall", "kept"), [(0.5, 2), (0.51, 4), (0.9, 4)])
def test_the_dial_keeps_what_reaches_its_threshold(recall: float, kept: int) -> None:
    # Probabilities 0.88, 0.77, 0.60, 0.40, 0.23, 0.12: two from 0.7 up, five from 0.2 up.
    result = replay(POOL, settings(calibration(keeps={"0.5": 0.7, "0.9": 0.3}), target="recall", recall=recall))
    assert len(result.kept) == kept
    assert "of the relevant hits" in detail(result).cut.reason
    assert "held out" not in detail(result).cut.reason


# A share of 95% needs 19 labels outside every fold; shares above 90% are rounded up to it.
@pytest.mark.parametrize(
    ("relevant", "recall", "folds", "missing"),
    [(12, 0.95, 5, 12), (12, 0.92, 5, 12), (12, 0.95, 2, 26), (23, 0.95, 5, 1), (40, 0.95, 5, 1)],
)
def test_a_share_without_labels_enough_is_refused_with_the_number_that_is_missing(
    relevant: int, recall: float, folds: int, missing: int
) -> None:
    few = calibration(relevant=relevant, folds=folds, keeps={"0.9": 0.2})
    with pytest.raises(SettingsError, match="promise 95% of the relevant hits that reach") as error:
        replay(POOL, settings(few, target="recall", recall=recall))
    words = "chunk" if missing == 1 else "chunks"
    assert f"Label at least {missing} more relevant {words} and" in error.value.remedy


@pytest.mark.parametrize(
    ("words", "budget", "kept"),
    [
        # Probabilities 0.88, 0.77, 0.60. One that is as long as two others gives way to both.
        ((150, 40, 40), 130, ["c1", "c2"]),
        # Of equal length, the most probable first.
        ((40, 40, 40), 130, ["c0", "c1"]),
        # If there is room for all, all stay.
        ((150, 40, 40), 1000, ["c1", "c2", "c0"]),
    ],
)
def test_a_budget_buys_the_most_probability(words: tuple[int, ...], budget: int, kept: list[str]) -> None:
    hits = tuple(
        replace(hit, chunk=Chunk(hit.id, "a " * n)) for hit, n in zip(POOL.hits, (*words, *[2000] * 57), strict=True)
    )
    given = settings(calibration(), target="budget")
    given = given.with_values({"context.max_context_tokens": budget})
    result = replay(replace(POOL, hits=hits), given)
    assert [hit.id for hit in result.kept] == kept
    reasons = {d.chunk_id: d.reason for d in result.trace("cutoff").decisions}
    assert reasons["c0"].startswith("probability 0.88; the most probability per token first")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"space": "cosine"}, "distances l2, not cosine"),
        ({"embedder": "another"}, "the embedding model model, not another"),
    ],
)
def test_another_model_or_space_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message) as error:
        replay(replace(POOL, **changed), settings(calibration()))
    assert error.value.action == "recalibrate"


def test_another_reranker_is_refused_and_missing_scores_are_said() -> None:
    scored = settings(calibration(reranker="late_interaction", weights={"score": 3.0}))
    result = replay(POOL, scored)
    assert detail(result).cut.strategy == "gap"
    assert "needs rerank scores" in result.trace("cutoff").note
    shared: ReplayMemo = {}
    replay(POOL, scored, memo=shared)
    for memo in (None, shared):
        with pytest.raises(SettingsError, match="the reranker late_interaction, not none"):
            replay(POOL, scored.with_values({"quality.reranker": "none"}), memo=memo)


def test_without_anything_learned_there_is_a_remedy() -> None:
    with pytest.raises(SettingsError, match="nothing has been learned yet") as error:
        replay(POOL, settings(""))
    assert "Tune on labels" in error.value.remedy
    assert error.value.action == "tune"


@pytest.mark.parametrize("text", ["{", "[]", '{"collection": "x"}', calibration().replace('"way"', '"taste"')])
def test_what_is_no_calibration_is_refused_in_one_line(text: str, tmp_path: Any) -> None:
    file = tmp_path / "tuned.toml"
    file.write_text(f"[cutoff]\ncalibration = '{text}'\n", "utf-8")
    with pytest.raises(SettingsError, match=r"^cutoff.calibration \(from .*tuned.toml\): "):
        load(file=file, environ={})


def test_a_settings_file_carries_it_as_a_table_and_gives_it_back(tmp_path: Any) -> None:
    tree = Split(feature="way", at=0.25, low=1.0, high=-0.5)
    given = settings(calibration(trees=(tree, 0.25)))
    file = tmp_path / "tuned.toml"
    file.write_text(to_toml(given, "adaptive-gap"), "utf-8")
    written = file.read_text("utf-8")
    assert "[cutoff.calibration.weights]\nway = -8.0\n" in written
    assert [line for line in written.splitlines() if "feature" in line] == [
        '    {feature = "way",at = 0.25,low = 1.0,high = -0.5},'
    ]
    loaded = load(file=file, environ={}).settings
    assert loaded.cutoff.calibration == given.cutoff.calibration
    assert replay(POOL, loaded).kept == replay(POOL, given.with_values({"retrieval.k": 5})).kept
