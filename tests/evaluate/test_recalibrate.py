"""Recalibrating after the scale of distances changed, on pools whose best cutoff is known."""

from __future__ import annotations

import pytest

import ragfilter as rf
from ragfilter.engine.replay import replay
from ragfilter.errors import InputError, SettingsError
from ragfilter.evaluate.learning import Provenance
from ragfilter.evaluate.recalibrate import as_they_are, start
from ragfilter.evaluate.tuning import MARGIN, recorded
from ragfilter.evaluate.wording import no_worse, sides
from ragfilter.layers.tuned_on import seen_labels
from ragfilter.model import Chunk, Hit, Pool
from ragfilter.settings.config import load

FULL = load(profile="full", environ={}).settings
GAP = FULL.with_values(
    {
        "quality.enabled": False,
        "words.enabled": False,
        "cutoff.strategy": "gap",
        "cutoff.gap_threshold": 0.2,
        "cutoff.distance_offset": 0.15,
        "cutoff.max_results": 20,
    }
)


def pools(scale: float, embedder: str) -> dict[str, Pool]:
    """Hits 0.01 apart, with a step of 0.4 after 2 to 9 of them, on a scale."""
    return {
        f"q{n}": Pool(
            f"q{n % 8} of {n}",
            "c",
            "l2",
            tuple(
                Hit(Chunk(f"c{i}", f"text {i}"), scale * (0.2 + 0.01 * i + (0.4 if i >= 2 + n % 8 else 0)), i + 1)
                for i in range(60)
            ),
            embedder=embedder,
        )
        for n in range(24)
    }


OLD, NEW = pools(1.0, "old"), pools(0.3, "new")
QRELS = {f"q{n}": {f"c{i}": 1 for i in range(2 + n % 8)} for n in range(24)}
TUNED = recorded(GAP, OLD.values(), Provenance("v1", "2026-03-01"))


def test_thresholds_are_carried_over_by_the_share_of_hits_below_them() -> None:
    """They keep the same chunks on a scale of a third, and say that they are a guess."""
    with pytest.raises(SettingsError):
        replay(NEW["q3"], TUNED)
    assert TUNED.cutoff.tuned_on is not None
    of_another = TUNED.cutoff.tuned_on.model_copy(update={"collection": "another"})
    tuned = TUNED.with_values({"cutoff.tuned_on": of_another})
    moved = rf.carry_over({name: replay(pool, FULL) for name, pool in NEW.items()}, tuned)
    assert moved.cutoff.gap_threshold < 0.12
    for name, pool in NEW.items():
        kept = [hit.id for hit in replay(pool, moved).kept]
        assert kept == [hit.id for hit in replay(OLD[name], TUNED).kept]
    record = moved.cutoff.tuned_on
    assert record is not None
    assert (record.guess, record.embedder, record.collection, record.queries) == (True, "new", "c", 24)
    assert "guess" in record.summary
    assert seen_labels(moved) is record


@pytest.mark.slow
def test_recalibrated_settings_are_compared_with_the_old_ones_as_they_are() -> None:
    """The old threshold finds no cliff on the new scale; the new one finds every cliff."""
    results = {name: replay(pool, FULL) for name, pool in NEW.items()}
    tuning = rf.recalibrate(results, QRELS, TUNED)
    assert tuning.tuned.means["f1"].mean == 1
    assert tuning.before["f1"].mean < 1
    assert tuning.loses_at_most(MARGIN)
    difference = tuning.tuned.gain_over_before["f1"]
    assert difference.mean == pytest.approx(1 - tuning.before["f1"].mean)
    record = tuning.tuned.settings.cutoff.tuned_on
    assert record is None or (record.embedder, record.guess) == ("new", False)
    assert [row[0] for row in sides(tuning)] == ["F1", "recall", "tokens"]
    assert difference.ends is not None
    margin = -difference.ends[0] - 0.01
    assert not tuning.loses_at_most(margin)
    assert "may be worse than the old ones" in no_worse(tuning, margin)
    with pytest.raises(InputError, match="folds is 1"):
        rf.recalibrate(results, QRELS, TUNED, folds=1)


def test_recalibrating_starts_from_the_profile_but_keeps_what_was_set_by_hand() -> None:
    limited = {"cutoff.limits": "dense=0.5", "cutoff.score": "fused"}
    by_hand = TUNED.with_values({"context.max_context_tokens": 999, **limited})
    begun = start(by_hand, "full")
    assert begun.cutoff == FULL.with_values(limited).cutoff
    assert begun.quality == FULL.quality
    assert begun.context.max_context_tokens == 999
    assert start(GAP, "full") == GAP
    assert as_they_are(GAP, NEW["q0"]) == GAP
