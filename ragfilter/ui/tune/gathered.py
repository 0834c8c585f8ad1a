"""The labelled questions with all that the settings need: gathered in the background and cached."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from ragfilter.evaluate.beir import Labels
from ragfilter.evaluate.maps import gathering_for
from ragfilter.evaluate.measuring import labels_version
from ragfilter.evaluate.run import gather_all
from ragfilter.layers.quality import always_reranks, reranker_key
from ragfilter.layers.registry import LAYERS
from ragfilter.model import Pool
from ragfilter.settings.schema import fields
from ragfilter.ui.kit import progress
from ragfilter.ui.session import state
from ragfilter.ui.session.jobs import Job
from ragfilter.ui.session.visit import Visit

Axes = tuple[str, str]
STOP = "Stops after the current question. Nothing is changed."


@dataclass(frozen=True, slots=True)
class Gathered:
    """The labelled questions of a set with their pools. `key` identifies them."""

    key: Hashable
    labels: Labels
    pools: Mapping[str, Pool]

    @property
    def failed(self) -> bool:
        """Whether a reranker failed for a question."""
        return any(pool.failures for pool in self.pools.values())


def begin(visit: Visit, given: Labels, axes: Axes) -> None:
    """Start gathering for a map over these axes, unless it is done or running. If a reranker
    failed, it is asked again."""
    key, jobs = _key(visit, given, axes), visit.resources.jobs
    known: Job[Gathered] | None = jobs.find(key)
    if known is not None and not (known.done and (known.failure or known.value().failed)):
        return
    backends = visit.resources.backends(state.session().collection)
    settings, user = gathering_for(visit.settings, *axes), state.user()

    def work(job: Job[Gathered]) -> Gathered:
        pools = gather_all(given.labelled, settings, backends, user, progress=job.step)
        return Gathered(key, given, pools)

    jobs.start(user, key, work, again=True)


def of(visit: Visit, given: Labels, axes: Axes) -> Gathered | None:
    """Wait for the pools. None if gathering has not been started, was stopped or failed."""
    job = visit.resources.jobs.find(_key(visit, given, axes))
    return progress.result(job, "gathering", "Gathering", stop=STOP)


def _key(visit: Visit, given: Labels, axes: Axes) -> Hashable:
    """The key of gathered pools: collection, labels, user, and the settings that decide how far a
    search goes and which hits have rerank scores. A click on the map changes only its axes."""
    settings = gathering_for(visit.settings, *axes)
    quality = settings.quality
    scored: list[object] = [quality.enabled]
    if quality.enabled and quality.reranker != "none":
        # With a score for the first hits of every question, thresholds decide nothing.
        names = [layer.name for layer in LAYERS]
        early = names[: names.index("quality") + (not always_reranks(quality))]
        scored = [reranker_key(quality), quality.max_top_k]
        scored += [
            settings.get(info.path)
            for info in fields()
            if info.path.partition(".")[0] in early and info.path not in axes
        ]
    version = visit.resources.bench.collection(state.session().collection).version
    return (
        "pools", state.session().collection, version, labels_version(given),
        state.user(), settings.retrieval, tuple(scored),
    )  # fmt: skip
