"""Profiles: each seed system alone with its defaults, and all of them tuned together.

Sources: the seeds named at each profile. docs/tuning.md says how they were tuned.
"""

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


def _profile(name: str, help: str, *, fitted: Fit = SOURCES, **values: Any) -> Profile:
    return Profile(name, help, {k.replace("__", "."): v for k, v in values.items()}, fitted)


# If the background is unknown, distances and similarities decide.
DEMO = Fit("demo", "all-MiniLM-L6-v2", "l2")
_FULL: dict[str, Any] = {
    "clearance__enabled": True,
    "query_must__enabled": True,
    "query_must__pin": True,
    "query_must__references": 5,
    "entities__enabled": True,
    "words__enabled": True,
    "quality__enabled": True,
    "quality__min_top_k": 15,
    "quality__max_top_k": 15,
    "quality__good_by": "background",
    "quality__score_threshold": 0.35,
    "cutoff__enabled": True,
    "cutoff__strategy": "relative",
    "cutoff__relative_offset": 0.33,
    "cutoff__max_results": 15,
    "cutoff__min_results": 1,
    "cutoff__distance_offset": 0.3,
    "confidence__high_below": 0.8,
    "confidence__medium_below": 1.1,
}

PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        _profile(
            "full",
            "All layers that need no LLM, with thresholds that work on any distance scale.",
            fitted=DEMO,
            **_FULL,
        ),
        _profile(
            "short-answers",
            "Like full, but cuts sooner: for questions that one to three chunks answer.",
            fitted=DEMO,
            **_FULL | {"cutoff__relative_offset": 0.2},
        ),
        _profile(
            "unfiltered", "No filter: the first 15 hits of a plain search, for comparison.", cutoff__enabled=False
        ),
        _profile(
            "query-must",
            "Only the chunks' own rules, k 15 (Filtering).",
            query_must__enabled=True,
            cutoff__enabled=False,
        ),
        _profile(
            "adaptive-gap", "Only the cliff in the distances, k 5 (Adaptive Filtering Algorithm).", retrieval__k=5
        ),
        _profile(
            "adaptive-gap+entities",
            "The cliff, with both sides of a comparison pinned (Adaptive Result Filtering).",
            retrieval__k=5,
            entities__enabled=True,
        ),
        _profile(
            "adaptive-retrieval",
            "Clearance and quality: good matches or none (Adaptive Retrieval System).",
            retrieval__k=10,
            clearance__enabled=True,
            quality__enabled=True,
            cutoff__enabled=False,
        ),
        _profile(
            "llm-filter",
            "An LLM keeps, discards and expands up to 25 chunks (Intelligent Chunk Filtering).",
            retrieval__k=25,
            cutoff__enabled=False,
            judge__enabled=True,
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
