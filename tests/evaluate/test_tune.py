"""Tuning on pools whose best cutoff is known, and what its figures guarantee."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from syrupy.assertion import SnapshotAssertion

from ragfilter.engine.replay import replay
from ragfilter.errors import InputError
from ragfilter.evaluate import tuning
from ragfilter.evaluate.learning import Provenance
from ragfilter.evaluate.tuning import Tuning, candidates, recorded, tune, wide_settings
from ragfilter.evaluate.wording import notes
from ragfilter.layers.strategies.calibrated import SCORED
from ragfilter.layers.strategies.strategy import strategies
from ragfilter.model import Chunk, Failure, Hit, Pool
from ragfilter.settings.schema import Settings

# Each fits models on every fold.
pytestmark = pytest.mark.slow

PLAIN = Settings().with_values({"cutoff.min_results": 1, "retrieval.k": 15})


def cliff(after: int) -> Pool:
    """Hits 0.01 apart, with a step of 0.4 after the first `after`."""
    distances = [0.2 + 0.01 * i + (0.4 if i >= after else 0.0) for i in range(60)]
    return Pool(
        f"q{after}", "c", "l2", tuple(Hit(Chunk(f"c{i}", f"text {i}"), d, i + 1) for i, d in enumerate(distances))
    )


# The hits before the cliff are relevant, which is after 2 to 9 hits: no fixed k fits.
POOLS = {f"q{n}": cliff(2 + n % 8) for n in range(24)}
QRELS = {f"q{n}": {f"c{i}": 1 for i in range(2 + n % 8)} for n in range(24)}


@cache
def plainly_tuned() -> Tuning:
    """A tuning that several tests share, since each tuning fits many models."""
    return tune(POOLS, QRELS, PLAIN, rerank=False)


def test_a_cliff_is_found_and_beats_every_fixed_k() -> None:
    made = plainly_tuned()
    assert made.tuned.means["f1"].mean == 1
    assert made.oracle["f1"].mean == 1
    assert made.strategies["gap"].means["f1"].mean == made.strategies["otsu"].means["f1"].mean == 1
    assert made.best_fixed_k["f1"].mean < 0.85
    assert made.beats_fixed_k
    assert made.tuned.gain["f1"].mean == pytest.approx(1 - made.best_fixed_k["f1"].mean)
    assert (made.queries, made.folds, str(made.target)) == (24, 5, "f1")
    assert set(made.strategies) == {*strategies()}


def test_distances_that_were_tuned_without_a_reranker_can_be_tuned_again_with_one() -> None:
    tuned = plainly_tuned().strategies["gap"].settings
    assert tuned.cutoff.tuned_on
    assert replay(POOLS["q0"], wide_settings(tuned, rerank=True)).kept


def test_where_the_same_k_always_fits_nothing_beats_it() -> None:
    flat = Pool("q", "c", "l2", tuple(Hit(Chunk(f"c{i}"), 0.2 + 0.01 * i, i + 1) for i in range(60)))
    qrels = {f"q{n}": {f"c{i}": 1 for i in range(4)} for n in range(10)}
    made = tune(dict.fromkeys(qrels, flat), qrels, PLAIN, rerank=False)
    assert (made.k, made.best_fixed_k["f1"].mean, made.tuned.gain["f1"].mean) == (4, 1, 0)
    assert not made.beats_fixed_k


def test_labels_by_chance_show_no_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    """In-sample, the best of many candidates looks good on noise; held out it does not."""
    monkeypatch.setattr(tuning, "KS", tuning.COARSE_KS)
    qrels = {name: {f"c{(7 * n * n + 11 * i * i + n * i) % 60}": 1 for i in range(3)} for n, name in enumerate(POOLS)}
    assert not tune(POOLS, qrels, PLAIN, rerank=False).beats_fixed_k


def test_what_has_no_label_makes_f1_a_range() -> None:
    # Every second hit before the cliff is labelled.
    some = {name: {i: 1 for n, i in enumerate(labels) if n % 2 == 0} for name, labels in QRELS.items()}
    first = PLAIN.with_values({"cutoff.strategy": "gap", "cutoff.max_results": 15})
    before = tune(POOLS, some, first, rerank=False).before
    assert before["unlabelled"].mean == pytest.approx(sum((2 + n % 8) // 2 for n in range(24)) / 24)
    assert (before["f1"].mean < 0.8, before["f1_most"].mean) == (True, 1.0)


def test_settings_that_nothing_beats_stay_as_they_are() -> None:
    """Among equals the current settings come first, so that nothing changes without a gain."""
    first = PLAIN.with_values({"cutoff.gap_threshold": 0.37, "cutoff.max_results": 15})
    made = tune(POOLS, QRELS, first, rerank=False)
    assert (made.before["f1"].mean, made.before["unlabelled"].mean) == (1, 0)
    assert made.before["f1_most"] == made.before["f1"]
    assert made.tuned.settings == first
    assert made.tuned.gain_over_before["f1"].mean == 0
    otsu = made.only("otsu").tuned
    assert (otsu.settings.cutoff.strategy, otsu.means["f1"].mean) == ("otsu", 1)
    with pytest.raises(KeyError):
        made.only("before")


def test_settings_chosen_on_a_map_of_labels_are_not_a_candidate() -> None:
    """Their figures are in-sample, so they must not become those of the tuned settings."""
    best = PLAIN.with_values({"cutoff.gap_threshold": 0.37, "cutoff.max_results": 15})
    clicked = recorded(best, POOLS.values(), Provenance(), ["cutoff.gap_threshold"], values_only=True)
    made = tune(POOLS, QRELS, clicked, rerank=False)
    assert (made.seen, made.before["f1"].mean) == (True, 1)
    assert made.tuned.settings not in (best, clicked)


def test_what_always_reranks_without_scores_is_tuned_by_distance() -> None:
    # Nobody asked a reranker, as in the library.
    changes = {"quality.enabled": True, "quality.mode": "always", "quality.reranker": "late_interaction"}
    always = PLAIN.with_values(changes)
    made = tune(POOLS, QRELS, always, rerank=False)
    assert not made.why_not
    learned = made.strategies["calibrated"].settings.cutoff.calibration
    assert learned.features.isdisjoint(SCORED)
    assert learned.reranker == ""


def test_what_was_never_learned_is_learned_by_tuning(snapshot: SnapshotAssertion) -> None:
    wish = PLAIN.with_values({"cutoff.strategy": "calibrated"})
    assert replay(POOLS["q0"], wide_settings(wish, rerank=False)).kept
    made = tune(POOLS, QRELS, wish, rerank=False)
    assert made.strategies["calibrated"].settings.cutoff.calibration
    assert made.stands_in == snapshot
    assert made.before["f1"].mean == plainly_tuned().before["f1"].mean
    assert any("“Before” is therefore the strategy gap" in note for note in notes(made))


def test_settings_that_no_longer_apply_have_still_seen_their_labels() -> None:
    tuned = recorded(PLAIN, POOLS.values(), Provenance("v1"))
    record = tuned.cutoff.tuned_on.model_copy(update={"reranker": "late_interaction"})
    made = tune(POOLS, QRELS, tuned.with_values({"cutoff.tuned_on": record.json_text}), rerank=False)
    assert "with the reranker late_interaction, not none" in made.stands_in
    assert (made.seen, "before" in made.strategies) == (True, False)


def test_where_a_reranker_failed_nothing_is_tuned() -> None:
    failed = replace(POOLS["q0"], failures=(Failure("rerank", "late_interaction", "no such model"),))
    with pytest.raises(InputError, match="Reranking failed: no such model"):
        tune({**POOLS, "q0": failed}, QRELS, PLAIN)


def test_absolute_thresholds_follow_the_scale_of_the_collection() -> None:
    def thresholds(pools: dict[str, Pool]) -> set[float]:
        tried = candidates(PLAIN, pools.values(), rerank=False)["gap"]
        return {each.cutoff.gap_threshold for each in tried}

    small = {
        name: Pool("q", "c", "cosine", tuple(Hit(h.chunk, h.distance / 10, h.rank) for h in p.hits))
        for name, p in POOLS.items()
    }
    assert max(thresholds(small)) == pytest.approx(max(thresholds(POOLS)) / 10, rel=0.1)


@pytest.mark.parametrize("n", [0, 1])
def test_one_query_cannot_be_held_out(n: int) -> None:
    with pytest.raises(InputError, match="at least two"):
        tune(dict(list(POOLS.items())[:n]), QRELS, PLAIN, rerank=False)
