"""Which thresholds were fitted to something else: said where they are in force and untouched."""

from __future__ import annotations

import pytest

from ragfilter.errors import SettingsError
from ragfilter.layers.calibration import Calibration, read
from ragfilter.model import Pool
from ragfilter.report import foreign_thresholds
from ragfilter.settings.config import load
from ragfilter.settings.profiles import Fit
from ragfilter.settings.schema import Settings

DEMO = Fit("demo", "all-MiniLM-L6-v2", "l2")
OTHER = Fit("mine", "all-MiniLM-L6-v2", "l2")
SOURCES = "the source documents' collections (l2), not to this collection."
ON_DEMO = "demo (all-MiniLM-L6-v2, l2), not to this collection."
LEARNED = Calibration(
    collection="demo", embedder="all-MiniLM-L6-v2", space="l2", reranker="", labels="", queries=20,
    relevant=40, date="", depth=12, intercept=1.0, weights={"way": -4.0},
).to_json()  # fmt: skip
UNNAMED = read(LEARNED).model_copy(update={"collection": "", "embedder": ""}).to_json()
BY_GAP = {"cutoff.strategy": "gap"}


@pytest.mark.parametrize(
    ("profile", "values", "here", "told"),
    [
        ("full", {}, OTHER, ""),
        ("full", BY_GAP, DEMO, ""),
        ("full", BY_GAP, OTHER, f"Gap threshold and Distance offset were fitted to {ON_DEMO}"),
        # another model or space over the same texts
        ("full", BY_GAP, Fit("demo", "other", "l2"),
         f"Gap threshold and Distance offset were fitted to {ON_DEMO}"),
        ("full", BY_GAP, Fit("demo", "all-MiniLM-L6-v2", "cosine"),
         f"Gap threshold and Distance offset were fitted to {ON_DEMO}"),
        # what somebody set is theirs
        ("full", {**BY_GAP, "cutoff.gap_threshold": 0.07}, OTHER,
         f"Distance offset was fitted to {ON_DEMO}"),
        ("adaptive-gap", {}, DEMO, f"Gap threshold and Distance offset were fitted to {SOURCES}"),
        ("adaptive-gap", {"cutoff.strategy": "otsu"}, DEMO, ""),
        ("adaptive-retrieval", {}, DEMO, f"Similarity threshold was fitted to {SOURCES}"),
        ("query-must", {}, OTHER, ""),
        ("full", {"cutoff.strategy": "calibrated", "cutoff.calibration": LEARNED}, DEMO, ""),
        ("full", {"cutoff.strategy": "calibrated", "cutoff.calibration": LEARNED}, OTHER,
         "The cutoff was learned on demo, not on this collection."),
        ("full", {"cutoff.strategy": "calibrated", "cutoff.calibration": UNNAMED}, OTHER,
         "The cutoff was learned on hits of no named collection, not on this collection."),
        ("llm-filter", {}, OTHER, f"Min similarity was fitted to {SOURCES}"),
    ],
)  # fmt: skip
def test_what_was_fitted_elsewhere(
    profile: str, values: dict[str, object], here: Fit, told: str
) -> None:
    settings = load(profile=profile, environ={}).settings.with_values(values)
    assert foreign_thresholds(settings, profile, here) == told


def test_what_names_no_model_is_refused_in_whole_words() -> None:
    pool = Pool("Who?", "mine", "l2", (), embedder="all-MiniLM-L6-v2")
    said = r"on hits of no named collection with the embedding model \(not named\), not all-MiniLM"
    with pytest.raises(SettingsError, match=said):
        read(UNNAMED).check_fits(pool, Settings().quality)
