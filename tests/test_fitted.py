"""Thresholds that were fitted to something else are reported while they are unchanged."""

from __future__ import annotations

import pytest
from calibrations import calibration

from ragfilter.engine.replay import replay
from ragfilter.errors import SettingsError
from ragfilter.evaluate.wording import in_sample
from ragfilter.model import Chunk, Hit, Pool, Space
from ragfilter.results.thresholds import applied_settings, foreign_thresholds
from ragfilter.settings.config import load
from ragfilter.settings.profiles import Fit
from ragfilter.settings.schema import Calibration, Settings, TunedOn

DEMO = Fit("demo", "all-MiniLM-L6-v2", "l2")
OTHER = Fit("mine", "all-MiniLM-L6-v2", "l2")
SOURCES = "the source documents' collections (l2), not to this collection."
ON_DEMO = "demo (all-MiniLM-L6-v2, l2), not to this collection."
LEARNED = calibration(collection="demo", embedder="all-MiniLM-L6-v2", weights={"way": -4.0}).json_text
UNNAMED = Calibration.model_validate(LEARNED).model_copy(update={"collection": "", "embedder": ""}).json_text
BY_GAP = {"cutoff.strategy": "gap"}
TUNED = TunedOn(
    collection="demo",
    embedder="all-MiniLM-L6-v2",
    space="l2",
    reranker="",
    labels="v1",
    queries=20,
    date="2026-11-25",
    strategy="gap",
    values={"cutoff.gap_threshold": 0.12, "cutoff.distance_offset": 0.2, "cutoff.max_results": 10},
)
AS_TUNED = {
    "cutoff.strategy": "gap",
    "cutoff.gap_threshold": 0.12,
    "cutoff.distance_offset": 0.2,
    "cutoff.max_results": 10,
    "cutoff.tuned_on": TUNED.json_text,
}
SHARED = {
    "cutoff.strategy": "otsu",
    "cutoff.tuned_on": TUNED.model_copy(update={"strategy": "otsu", "values": {}}).json_text,
}


def test_what_was_fitted_elsewhere() -> None:
    for profile, values, here, told in [
        ("full", {}, OTHER, ""),
        ("full", BY_GAP, DEMO, ""),
        ("full", BY_GAP, OTHER, f"Gap threshold and Distance offset were fitted to {ON_DEMO}"),
        # another model or space for the same texts
        ("full", BY_GAP, Fit("demo", "other", "l2"), f"Gap threshold and Distance offset were fitted to {ON_DEMO}"),
        # values that somebody has set are theirs
        ("full", {**BY_GAP, "cutoff.gap_threshold": 0.07}, OTHER, f"Distance offset was fitted to {ON_DEMO}"),
        ("adaptive-gap", {"cutoff.strategy": "otsu"}, DEMO, ""),
        ("adaptive-retrieval", {}, DEMO, f"Similarity threshold was fitted to {SOURCES}"),
        ("query-must", {}, OTHER, ""),
        ("full", {"cutoff.strategy": "calibrated", "cutoff.calibration": LEARNED}, DEMO, ""),
        (
            "full",
            {"cutoff.strategy": "calibrated", "cutoff.calibration": LEARNED},
            OTHER,
            "The cutoff was learned on demo, not on this collection.",
        ),
        (
            "full",
            {"cutoff.strategy": "calibrated", "cutoff.calibration": UNNAMED},
            OTHER,
            "The cutoff was learned on hits without a collection name, not on this collection.",
        ),
        ("full", AS_TUNED, DEMO, ""),
        ("full", AS_TUNED, OTHER, "The settings were tuned on demo, not on this collection."),
        # re-indexed; shares have no scale, so they are not refused
        ("full", SHARED, DEMO, ""),
        (
            "full",
            SHARED,
            Fit("demo", "other", "l2"),
            "The settings were tuned on demo (all-MiniLM-L6-v2, l2), not with other, l2.",
        ),
        ("llm-filter", {}, OTHER, f"Min similarity was fitted to {SOURCES}"),
    ]:
        settings = load(profile=profile, environ={}).settings.with_values(values)
        assert foreign_thresholds(settings, profile, here) == told


def test_few_hits_are_measured_by_thresholds_that_belong_elsewhere() -> None:
    for hits, told in [
        (60, ""),
        (30, f"Similarity threshold, Gap threshold and Distance offset were fitted to {ON_DEMO}"),
    ]:
        near = tuple(Hit(Chunk(f"c{n}", "text"), 0.3 + 0.02 * n, n + 1) for n in range(hits))
        settings = load(profile="full", environ={}).settings
        result = replay(Pool("Who?", "mine", "l2", near, embedder="all-MiniLM-L6-v2"), settings)
        assert foreign_thresholds(applied_settings(result), "full", OTHER) == told


SCORED = TUNED.model_copy(update={"reranker": "late_interaction"}).json_text


def pool(embedder: str, space: Space) -> Pool:
    hits = tuple(Hit(Chunk(f"c{i}", f"Text {i}."), 0.1 * i, i) for i in range(1, 4))
    return Pool("Who?", "mine", space, hits, embedder=embedder)


@pytest.mark.parametrize(
    ("changes", "embedder", "space", "refused"),
    [
        ({}, "all-MiniLM-L6-v2", "l2", ""),
        # hits of a caller, who alone knows their model
        ({}, "", "l2", ""),
        (
            {},
            "all-MiniLM-L6-v2",
            "cosine",
            "cutoff.gap_threshold and cutoff.distance_offset were tuned on demo with distances l2, not cosine",
        ),
        ({}, "other", "l2", "with the embedding model all-MiniLM-L6-v2, not other"),
        # if everything is reranked, scores are cut instead of distances
        ({"quality.enabled": True, "quality.mode": "always"}, "", "l2", "with the reranker none, not late_interaction"),
        ({"quality.enabled": True}, "", "l2", ""),
        # values that somebody has set are theirs
        ({"cutoff.gap_threshold": 0.13}, "other", "l2", "cutoff.distance_offset was tuned on demo"),
        ({"cutoff.gap_threshold": 0.13, "cutoff.distance_offset": 0.3}, "other", "l2", ""),
        ({"cutoff.enabled": False}, "other", "cosine", ""),
        # tuned on scores, and the distances are cut now, always or for some questions
        ({"cutoff.tuned_on": SCORED}, "", "l2", "with the reranker late_interaction, not none"),
        ({"cutoff.tuned_on": SCORED, "quality.enabled": True}, "", "l2", "not none"),
        ({"cutoff.tuned_on": SCORED, "quality.enabled": True, "quality.mode": "always"}, "", "l2", ""),
    ],
)
def test_distances_that_were_tuned_on_another_scale_are_refused(
    changes: dict[str, object], embedder: str, space: Space, refused: str
) -> None:
    settings = Settings().with_values(AS_TUNED | changes)
    if refused:
        with pytest.raises(SettingsError, match=refused) as error:
            replay(pool(embedder, space), settings)
        assert "Recalibrate on labels of this collection" in error.value.remedy
    else:
        replay(pool(embedder, space), settings)


SEEN = "The settings were tuned on these same labels"
MAYBE = "The settings were tuned on labels of this collection (gap, tuned on 20 queries of demo)"
FILTERED = TUNED.model_copy(update={"strategy": "", "values": {"quality.score_threshold": 0.4}}).json_text
LIMITED: dict[str, object] = {
    "cutoff.enabled": False,
    "quality.enabled": True,
    "quality.score_threshold": 0.4,
    "cutoff.tuned_on": FILTERED,
}
MOVED: dict[str, object] = {"cutoff.gap_threshold": 0.13, "cutoff.distance_offset": 0.3, "cutoff.max_results": 12}
LEARNED_HERE = {"cutoff.strategy": "calibrated", "cutoff.calibration": LEARNED}


def test_figures_over_labels_that_were_tuned_on_say_so() -> None:
    for changes, labels, collection, told in [
        ({}, "v1", "demo", SEEN),
        # under another name
        ({}, "v1", "copy", SEEN),
        # one label was added since
        ({}, "v2", "demo", MAYBE),
        ({}, "v2", "mine", ""),
        # one value was moved, the others are still those that the labels chose
        ({"cutoff.gap_threshold": 0.13}, "v1", "demo", SEEN),
        # all were moved, but the labels chose the strategy
        (MOVED, "v1", "demo", SEEN),
        # otsu has a k, too, but reads none of the others
        ({"cutoff.strategy": "otsu"}, "v1", "demo", SEEN),
        # figures outside the cutoff
        (LIMITED, "v1", "demo", SEEN),
        (LIMITED | {"quality.score_threshold": 0.5}, "v1", "demo", ""),
        (LEARNED_HERE, "", "mine", "The cutoff was learned from these same labels"),
        (LEARNED_HERE, "v2", "demo", "The cutoff was learned from labels of this collection"),
        (LEARNED_HERE, "v2", "mine", ""),
    ]:
        said = in_sample(Settings().with_values(AS_TUNED | changes), labels, collection)
        assert said.startswith(told) if told else not said
