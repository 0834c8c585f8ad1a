"""Settings derived anew after a change of embedding model, space, reranker, chunking or corpus.

With labels they are tuned again, and compared on the same questions with the settings in use, as if
those still applied. They replace them only if they are shown to be no worse: if the interval of the
difference lies above the margin that the user allows. Without labels, thresholds are carried over,
which is a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from ragfilter.engine.search import Backends
from ragfilter.evaluate.carrying import RECORDS, as_they_are, carried
from ragfilter.evaluate.crossval import MIN_QUERIES, Interval, Target
from ragfilter.evaluate.labelled_queries import Labels, Qrels, Queries
from ragfilter.evaluate.learning import Provenance
from ragfilter.evaluate.measure import gather_all
from ragfilter.evaluate.tune import Tuning, check_tunable, gathering, tune
from ragfilter.layers.quality import always_reranks
from ragfilter.model import Pool, User
from ragfilter.protocols import Progress
from ragfilter.settings.profiles import PROFILES
from ragfilter.settings.schema import Settings

MARGIN = 0.02
RERANKING = (
    "quality.mode", "quality.max_top_k", "quality.reranker_top_k", "quality.reranker_threshold",
)  # fmt: skip
"""What tuning sets where it always reranks."""


@dataclass(frozen=True, slots=True)
class Recalibration:
    """Settings in use (`old`) and what was tuned anew. `tuning.before` are the old ones as they
    are; `margin` is the loss in the judged figure that is allowed, from 0 to 1."""

    old: Settings
    tuning: Tuning
    margin: float

    @property
    def figure(self) -> str:
        """The figure that decides: what is tuned for, or recall where that is tokens."""
        figure = self.tuning.target.figure
        return "recall" if figure == "tokens" else figure

    @property
    def difference(self) -> Interval:
        """That of the figure, new minus old, on the same questions; the new ones are held out."""
        return self.tuning.tuned.gain_over_before.each[self.figure]

    @property
    def no_worse(self) -> bool:
        """Whether the new settings are shown to lose no more than the margin."""
        difference = self.difference
        alike = difference.mean if self.tuning.queries >= MIN_QUERIES else -inf
        return (difference.ends[0] if difference.ends else alike) >= -self.margin


def start(old: Settings, profile: str) -> Settings:
    """Where tuning starts: what labels chose is as in the profile, the rest as it is."""
    if not any(old.get(path) for path in RECORDS):
        return old
    fresh = Settings().with_values(PROFILES[profile].values)
    reranks = always_reranks(old.quality)
    paths = ["quality.enabled", *(RERANKING if reranks else ())]
    if reranks and old.quality.reranker == "late_interaction":
        paths.append("quality.reranker")
    chosen = {path: fresh.get(path) for path in paths}
    return old.model_copy(update={"cutoff": fresh.cutoff}).with_values(chosen)


def recalibrate_questions(
    labels: Labels,
    old: Settings,
    backends: Backends,
    user: User | None = None,
    *,
    profile: str,
    target: Target = Target(),
    margin: float = MARGIN,
    folds: int = 5,
    rerank: bool = True,
    gathered: Progress | None = None,
    replayed: Progress | None = None,
) -> Recalibration:
    """Gather the labelled questions of a collection, and recalibrate on them. Raises as `tune`
    does, and what `gather_all` raises."""
    check_tunable(old, len(labels.qrels))
    rerank = rerank or always_reranks(old.quality)
    wide = gathering(start(old, profile), rerank=rerank)
    pools = gather_all(labels.labelled, wide, backends, user, progress=gathered)
    return recalibrate(
        pools, labels.qrels, old, user, profile=profile, target=target, margin=margin, folds=folds,
        rerank=rerank, provenance=Provenance.of(labels), progress=replayed,
    )  # fmt: skip


def recalibrate(
    pools: Mapping[str, Pool],
    qrels: Qrels,
    old: Settings,
    user: User | None = None,
    *,
    profile: str,
    target: Target = Target(),
    margin: float = MARGIN,
    folds: int = 5,
    rerank: bool = True,
    provenance: Provenance = Provenance(),
    progress: Progress | None = None,
) -> Recalibration:
    """Derive the settings anew from labels, and compare them with the `old` ones on the same
    questions. `profile` names what they started from. Raises as `tune` does."""
    tuning = tune(
        pools, qrels, start(old, profile), user, target=target, folds=folds, rerank=rerank,
        replaces=as_they_are(old, next(iter(pools.values()))), provenance=provenance,
        progress=progress,
    )  # fmt: skip
    return Recalibration(old, tuning, margin)


def carry_over(
    queries: Queries,
    old: Settings,
    backends: Backends,
    user: User | None = None,
    *,
    gathered: Progress | None = None,
) -> Settings:
    """The settings carried over by recorded queries, without labels: a guess. Raises what
    `gather_all` raises."""
    wide = gathering(old, rerank=False)
    return carried(old, gather_all(queries, wide, backends, user, progress=gathered).values())
