"""Profiles: each seed system alone with its defaults, and all of them tuned together.

Sources: the documents named at each profile (docs/design.md). docs/tuning.md says how they were tuned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragfilter.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Fit:
    """The collection and model for which thresholds of distance or similarity were chosen."""

    collection: str
    embedder: str
    space: str

    @property
    def words(self) -> str:
        """``demo (all-MiniLM-L6-v2, l2)``."""
        model = f"{self.embedder}, " if self.embedder else ""
        return f"{self.collection} ({model}{self.space})"


SOURCES = Fit("the source documents' collections", "", "l2")


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile. `values` maps dotted paths to values that differ from the defaults of `Settings`;
    `fitted` says for what its absolute thresholds were chosen."""

    name: str
    help: str
    values: Mapping[str, Any]
    fitted: Fit = SOURCES


# If the background is unknown, distances and similarities decide.
DEMO = Fit("demo", "all-MiniLM-L6-v2", "l2")
_FULL: dict[str, Any] = {
    "clearance.enabled": True,
    "query_must.enabled": True,
    "query_must.pin": True,
    "query_must.references": 5,
    "entities.enabled": True,
    "words.enabled": True,
    "quality.enabled": True,
    "quality.min_top_k": 15,
    "quality.max_top_k": 15,
    "quality.good_by": "background",
    "quality.score_threshold": 0.35,
    "cutoff.enabled": True,
    "cutoff.strategy": "relative",
    "cutoff.max_results": 15,
    "cutoff.min_results": 1,
    "cutoff.distance_offset": 0.3,
    "confidence.high_below": 0.8,
    "confidence.medium_below": 1.1,
}

PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile(
            "full",
            "All layers except diversity, judge and prune, with thresholds that work on any distance scale.",
            _FULL,
            DEMO,
        ),
        Profile(
            "short-answers",
            "Like full, but cuts sooner: for chunks without titles of which one to three answer a question.",
            _FULL | {"cutoff.relative_offset": 0.2},
            DEMO,
        ),
        Profile(
            "unfiltered", "No filter: the first 15 hits of a plain search, for comparison.", {"cutoff.enabled": False}
        ),
        Profile(
            "query-must",
            "Only the chunks' own rules, k 15 (Filtering).",
            {"query_must.enabled": True, "cutoff.enabled": False},
        ),
        Profile(
            "adaptive-gap", "Only the cliff in the distances, k 5 (Adaptive Filtering Algorithm).", {"retrieval.k": 5}
        ),
        Profile(
            "adaptive-gap+entities",
            "The cliff, with both sides of a comparison pinned (Adaptive Result Filtering).",
            {"retrieval.k": 5, "entities.enabled": True},
        ),
        Profile(
            "adaptive-retrieval",
            "Clearance and quality: good matches or none (Adaptive Retrieval System).",
            {"retrieval.k": 10, "clearance.enabled": True, "quality.enabled": True, "cutoff.enabled": False},
        ),
        Profile(
            "llm-filter",
            "An LLM keeps, discards and expands up to 25 chunks (Intelligent Chunk Filtering).",
            {"retrieval.k": 25, "cutoff.enabled": False, "judge.enabled": True},
        ),
    )
}

DEFAULT = "full"


def profile(name: str, *, origin: str = "") -> Profile:
    """The profile called `name`; `origin` says who asks for it. Raises SettingsError."""
    try:
        return PROFILES[name]
    except KeyError:
        raise SettingsError(
            f"There is no profile {name!r}{f' (from {origin})' if origin else ''}.",
            remedy=f"Choose one of: {', '.join(PROFILES)}.",
        ) from None
