"""What the Tune page computes in the background and caches, and the pools that it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from threading import Event

import streamlit as st

from ragfilter.engine.backends import Backends
from ragfilter.engine.retrieve import run
from ragfilter.evaluate.beir import Labels
from ragfilter.evaluate.maps import Map
from ragfilter.evaluate.tune import Tuning
from ragfilter.model import Chunk, Pool, User
from ragfilter.protocols import Progress
from ragfilter.settings.schema import Settings
from ragfilter.text.pace import Pace, in_words
from ragfilter.ui.session.background import Job

TURN_S = 0.3


@dataclass(frozen=True, slots=True)
class Gathered:
    """The labelled questions of a set with their pools, as of one version of the collection."""

    labels: Labels
    pools: Mapping[str, Pool]


@dataclass(frozen=True, slots=True)
class Work:
    """A job with how far it has come: done and all, and what is being done."""

    job: Job[Gathered | Tuning | Map]
    progress: list[tuple[int, int, str]]


class Stopped(Exception):
    """The job was asked to stop."""


def gather(
    labels: Labels, settings: Settings, backends: Backends, user: User, stop: Event, step: Progress
) -> Gathered:
    """Every labelled question with all that the settings need. Chunks that several pools hold are
    kept once. Raises what `run` raises, and Stopped."""
    chunks: dict[str, Chunk] = {}
    pools: dict[str, Pool] = {}
    for query_id in labels.qrels:
        if stop.is_set():
            raise Stopped
        pool = run(labels.queries[query_id], settings, backends, user, wide=True).pool
        hits = tuple(replace(h, chunk=chunks.setdefault(h.id, h.chunk)) for h in pool.hits)
        pools[query_id] = replace(pool, hits=hits)
        step(len(pools), len(labels.qrels))
    return Gathered(labels, pools)


def wait(work: Work, key: str) -> None:
    """Show how far a job has come, with a way to stop it, until it ends. A run of the page may wait
    for several jobs: each has its own `key`."""
    if work.job.wait(TURN_S):
        return
    place = st.empty()
    row = place.container(key=key, horizontal=True, vertical_alignment="center", gap="small")
    with row:
        st.button(
            "Stop",
            key=f"{key}-stop",
            icon=":material/stop:",
            on_click=work.job.stop.set,
            help="Stops after the current question. Nothing is changed.",
        )
        bar = st.progress(0.0, text="Gathering …")
    pace = Pace()
    while not work.job.wait(TURN_S):
        done, total, what = work.progress[-1] if work.progress else (0, 1, "Gathering")
        share = min(done / max(total, 1), 1.0)
        when = in_words(pace.left(done, total))
        bar.progress(share, text=f"{what}: {done} of {total} questions {when}")
    place.empty()
