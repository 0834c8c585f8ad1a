"""Learning from labels: what is learned, what it guarantees, and when nothing can be learned."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from calibrations import calibration
from syrupy.assertion import SnapshotAssertion

from ragfilter.errors import InputError
from ragfilter.evaluate import wording
from ragfilter.evaluate.crossval import Interval, Target, assign_folds, read_target
from ragfilter.evaluate.learning import Provenance, TrainingExample, calibrate, example
from ragfilter.evaluate.tuning import Tuning, tune
from ragfilter.layers.strategies.calibrated import probabilities
from ragfilter.model import PUBLIC, Chunk, Hit, Pool
from ragfilter.settings.schema import Calibration, Settings

# Each fits models on every fold.
pytestmark = pytest.mark.slow

PLAIN = Settings().with_values({"cutoff.min_results": 1})
RANDOM = np.random.default_rng(7)


def pool(n: int) -> tuple[Pool, dict[str, int]]:
    """Sixty hits at even distances. Those that share the question's word are relevant, wherever
    they are, which no cut of the order can find."""
    told = {int(i) for i in RANDOM.choice(30, size=3, replace=False)}
    hits = tuple(
        Hit(Chunk(f"c{i}", f"about topic{n}" if i in told else f"about other{i}"), 0.3 + 0.01 * i, i + 1)
        for i in range(60)
    )
    return Pool(f"topic{n} please", "c", "l2", hits, embedder="m"), {f"c{i}": 1 for i in told}


MADE = {f"q{n}": pool(n) for n in range(24)}
POOLS = {i: each for i, (each, _) in MADE.items()}
QRELS = {i: labels for i, (_, labels) in MADE.items()}


def examples() -> list[TrainingExample]:
    return [example(POOLS[i], QRELS[i], PLAIN, PUBLIC) for i in POOLS]


@cache
def plainly_tuned() -> Tuning:
    """A tuning that several tests share, since each tuning fits many models."""
    return tune(POOLS, QRELS, PLAIN, rerank=False, provenance=Provenance("v1", "2026-11-22"))


def test_what_no_cut_can_tell_is_learned(snapshot: SnapshotAssertion) -> None:
    made = plainly_tuned()
    assert made.strategies["calibrated"].means["f1"].mean > 0.95
    assert made.tuned.means["f1"].mean > 0.95
    assert made.best_fixed_k["f1"].mean < 0.4
    assert made.beats_fixed_k
    assert made.tuned.settings.cutoff.strategy == "calibrated"
    shown = {name for name, gain in made.over_strategies.items() if gain["f1"].shows_gain}
    # A fixed k is as bad for every question, and equal gains have no interval.
    assert made.over_strategies.keys() - shown == {"fixed"}
    unsure = replace(made, tuned=replace(made.tuned, gain={"f1": Interval(0.0, (-0.1, 0.1))}))
    assert wording.verdict(made) == snapshot
    assert wording.verdict(unsure).startswith("No settings clearly beat")
    about = made.tuned.settings.cutoff.calibration
    assert (about.collection, about.embedder, about.space, about.reranker) == ("c", "m", "l2", "")
    assert (about.labels, about.date, about.queries, about.relevant) == ("v1", "2026-11-22", 24, 72)
    assert "score" not in about.weights


def test_a_query_is_measured_by_what_was_learned_without_it() -> None:
    """Random labels teach nothing about held-out queries."""
    shuffled = {name: {f"c{i}": 1 for i in RANDOM.choice(30, size=3, replace=False)} for name in POOLS}
    made = tune(POOLS, shuffled, PLAIN, rerank=False)
    assert made.strategies["calibrated"].means["f1"].mean < 0.3
    assert not made.beats_fixed_k
    # The current settings stay if nothing does better.
    assert made.tuned.gain_over_before["f1"].mean >= 0


def test_the_dial_keeps_its_share_on_queries_that_were_held_out() -> None:
    made = plainly_tuned()
    assert {"0.5", "0.9"} <= made.dial.keys()
    assert made.dial["0.9"] >= 0.8
    assert made.dial["0.5"] <= made.dial["0.9"] <= 1
    told = made.strategies["calibrated"].settings.cutoff.calibration.held_out
    assert told == {share: round(kept, 3) for share, kept in made.dial.items()}


def test_what_fills_the_budget_is_measured_on_queries_that_were_held_out() -> None:
    small = PLAIN.with_values({"context.max_context_tokens": 50})
    made = tune(POOLS, QRELS, small, rerank=False)
    assert made.budget is not None
    assert made.budget["tokens"].mean <= 50
    # More than the likeliest few, for which F1 asks.
    assert made.budget["recall"].mean >= made.strategies["calibrated"].means["recall"].mean
    told_of = f"a recall of {made.budget['recall'].mean:.3f} with {made.budget['tokens'].mean:.0f} tokens"
    assert any(told_of in note for note in wording.notes(made))


def test_both_kinds_of_model_are_rounded_and_readable() -> None:
    about = calibration(embedder="m", queries=24, relevant=72, depth=50, intercept=0.0)
    for boosted in (False, True):
        made = calibrate(examples(), about, ["words", "way"], boosted=boosted)
        text = made.json_text
        assert Calibration.model_validate(text) == made
        assert len(text) < 12_000
        chances = probabilities(made, {"words": np.array([1.0, 0.0]), "way": np.array([0.2, 0.2])})
        assert chances[0] > 0.5 > chances[1]


def test_where_nothing_can_be_learned_the_rest_is_tuned_and_why_is_said() -> None:
    for n, labels, why in [
        (9, "own", "at least 10 labelled queries"),
        (24, "all", "relevant and irrelevant hits"),
        (24, "unknown", "relevant and irrelevant hits"),
    ]:
        names = list(POOLS)[:n]
        others = {"all": {f"c{i}": 1 for i in range(60)}, "unknown": {"nowhere": 1}}
        qrels = {i: others.get(labels, QRELS[i]) for i in names}
        made = tune({i: POOLS[i] for i in names}, qrels, PLAIN, rerank=False)
        assert why in made.why_not
        assert "calibrated" not in made.strategies, n
        assert not made.tuned.settings.cutoff.calibration, n


def test_fewest_tokens_at_a_recall() -> None:
    made = tune(POOLS, QRELS, PLAIN, target=Target("tokens", 0.9), rerank=False)
    assert made.tuned.means["recall"].mean >= 0.8
    assert made.tuned.means["tokens"].mean < made.best_fixed_k["tokens"].mean
    saved = made.best_fixed_k["tokens"].mean - made.tuned.means["tokens"].mean
    assert made.gain(made.tuned.gain).mean == pytest.approx(saved)
    # Values that an earlier tuning for F1 has set make no difference.
    prefix = PLAIN.with_values({"cutoff.prefix": True})
    again = tune(POOLS, QRELS, prefix, target=Target("tokens", 0.9), rerank=False)
    assert again.strategies["calibrated"].settings == made.strategies["calibrated"].settings


def test_a_recall_is_held_before_tokens_are_saved() -> None:
    tables = {
        "recall": np.array([[0.5, 0.9, 0.8], [0.7, 0.9, 1.0]]),
        "tokens": np.array([[10.0, 90.0, 50.0], [10.0, 90.0, 60.0]]),
    }
    # Means 0.6, 0.9, 0.9.
    assert Target("tokens", 0.6).choose(tables) == 0
    assert Target("tokens", 0.8).choose(tables) == 2
    assert Target("tokens", 1.0).choose(tables) == 2
    # Each measured by the other's row.
    assert [*Target("tokens", 0.65).held_out(tables, assign_folds(2, 2))] == [0, 2]


def test_targets_as_they_are_written() -> None:
    for text, expected in [("f1", Target("f1")), ("f2", Target("f2")), ("tokens@0.8", Target("tokens", 0.8))]:
        assert read_target(text) == expected
        assert str(expected) == text


@pytest.mark.parametrize("text", ["f9", "tokens", "tokens@", "tokens@0", "tokens@1.5", "f1@0.5"])
def test_what_is_no_target(text: str) -> None:
    with pytest.raises(InputError, match="There is no measure"):
        read_target(text)
