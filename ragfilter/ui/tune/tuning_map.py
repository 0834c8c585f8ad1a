"""A map over one or two settings: gathers every labelled question, replays them in the background
under many values, and plots the figures.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from ragfilter.evaluate.beir import Labels
from ragfilter.evaluate.labels import labels_version
from ragfilter.evaluate.maps import Map, by_factors, gathering_for, make
from ragfilter.evaluate.measure import gather_all
from ragfilter.evaluate.tune import RECORD
from ragfilter.layers.quality import always_reranks, reranker_key
from ragfilter.layers.registry import LAYERS
from ragfilter.model import Pool
from ragfilter.settings.schema import fields
from ragfilter.ui.kit import progress
from ragfilter.ui.kit.runs.plots import FIGURES, layout
from ragfilter.ui.look import elements
from ragfilter.ui.look.plotting import CLEAR, LEGEND, Ink
from ragfilter.ui.session import state
from ragfilter.ui.session.jobs import Job
from ragfilter.ui.session.visit import Visit

Axes = tuple[str, str]
STOP = "Stops after the current question. Nothing is changed."


@dataclass(frozen=True, slots=True)
class GatheredQuestions:
    """The labelled questions of a set with their pools. `key` identifies them."""

    key: Hashable
    labels: Labels
    pools: Mapping[str, Pool]

    @property
    def failed(self) -> bool:
        """Whether a reranker failed for a question."""
        return any(pool.failures for pool in self.pools.values())


def gather(visit: Visit, given: Labels, axes: Axes) -> None:
    """Start gathering for a map over these axes, unless it is done or running. If a reranker
    failed, it is asked again."""
    key, jobs = _key(visit, given, axes), visit.resources.jobs
    known: Job[GatheredQuestions] | None = jobs.find(key)
    if known is not None and not (known.done and (known.failure or known.value().failed)):
        return
    backends = visit.resources.backends(state.session().collection)
    settings, user = gathering_for(visit.settings, *axes), state.user()

    def work(job: Job[GatheredQuestions]) -> GatheredQuestions:
        pools = gather_all(given.labelled, settings, backends, user, progress=job.step)
        return GatheredQuestions(key, given, pools)

    jobs.start(user, key, work, again=True)


def gathered(visit: Visit, given: Labels, axes: Axes) -> GatheredQuestions | None:
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


def replayed(
    visit: Visit, found: GatheredQuestions, axes: tuple[str, str], *, again: bool
) -> Map | None:
    """Wait for the map over these axes. None if it was stopped, until it is requested `again`."""
    settings = visit.settings
    # Without the settings of the axes and their record: a click on the map changes only those, and
    # the map stays valid.
    moving = {*axes, RECORD}
    others = tuple(settings.get(info.path) for info in fields() if info.path not in moving)
    key = ("map", found.key, others, state.user(), axes)
    job = visit.resources.jobs.find(key)
    # A map that was abandoned for another one was stopped too, and starts again when chosen again.
    stays = st.session_state.get("map-job") is job and not again
    failed = again and job is not None and job.failure
    if job is None or failed or (job.stop.is_set() and not stays):
        job = _replay(visit, found, axes, key)
    made = progress.result(job, "mapping", "Replaying", stop=STOP)
    if made is not None and not made.holds(settings):
        # Its grid was chosen around other values.
        job = _replay(visit, found, axes, key)
        made = progress.result(job, "mapping-anew", "Replaying", stop=STOP)
    if made is None and job.stop.is_set():
        elements.empty("The map was stopped.", "Map starts it again from the beginning.")
    return made


def _replay(
    visit: Visit, found: GatheredQuestions, axes: tuple[str, str], key: Hashable
) -> Job[Map]:
    """Start the replay, and stop the one this session waited for before."""
    before: Job[Map] | None = st.session_state.get("map-job")
    if before is not None and not before.done:
        before.stop.set()
    settings, user = visit.settings, state.user()
    jobs = visit.resources.jobs
    jobs.stop(key)
    job: Job[Map] = jobs.start(
        user,
        key,
        lambda job: make(found.pools, found.labels.qrels, settings, user, *axes, progress=job.step),
    )
    st.session_state["map-job"] = job
    return job


HIGHEST = "#e0457b"
COLOURS = "Viridis"
SHOWN = {"f1": "F1", "f2": "F2", "precision": "precision", "recall": "recall"}


def heatmap(
    made: Map, measure: str, here: int, best: int, before: int | None = None, *, dark: bool
) -> dict[str, Any]:
    """The measure over both settings as square markers, since Streamlit reports no clicks on a
    plotly heatmap. One below them fills the gaps between them. With one setting, a line with a
    point for each value. `before` is the place before the last click."""
    ink = Ink.of(dark)
    flat = made.figures[measure].ravel()
    pairs = [(x, y) for x in made.xs for y in made.ys]
    two = made.y is not None
    ys = [y for _, y in pairs] if two else flat.tolist()
    places = made.places
    chosen = {"marker": {"opacity": 1}}
    square = {"symbol": "square", "size": 5, "color": flat[places].tolist(), "colorscale": COLOURS}
    data = [
        {
            "type": "scatter", "mode": "markers" if two else "lines+markers", "showlegend": False,
            "x": [pairs[place][0] for place in places], "y": [ys[place] for place in places],
            "customdata": places,
            "line": {"color": ink.kept, "width": 1.5},
            "marker": square if two else {"size": 7, "color": ink.kept},
            "text": [_told(made, place, measure) for place in places],
            "hoverinfo": "text", "selected": chosen, "unselected": chosen,
        },
        *([_between(made, measure)] if two else []),
        *_marks([x for x, _ in pairs], ys, before, here, best, "#ffffff" if two else ink.text),
    ]  # fmt: skip
    y = (made.y.label if made.y is not None else SHOWN[measure]) or ""
    laid_out = layout(ink, made.x.label, y) | {
        "clickmode": "event+select", "showlegend": True, "height": 430,
        # A click anywhere on a square counts, not only near its middle.
        "hoverdistance": -1,
        "legend": LEGEND | {"bgcolor": "#4a5a5c" if two else CLEAR,
                            "font": {"color": "#ffffff" if two else ink.text}},
    }  # fmt: skip
    if not two:
        laid_out["yaxis"] |= FIGURES
    for axis, values in (("xaxis", made.xs), ("yaxis", made.ys)):
        if by_factors(values[0], values[-1]):
            laid_out[axis]["type"] = "log"
    return {"data": data, "layout": laid_out}


def _between(made: Map, measure: str) -> dict[str, Any]:
    return {
        "type": "heatmap", "name": SHOWN[measure], "x": made.xs, "y": made.ys, "hoverinfo": "skip",
        "z": made.figures[measure].T.tolist(), "colorscale": COLOURS,
        "colorbar": {"thickness": 10, "title": {"text": SHOWN[measure]}, **FIGURES},
    }  # fmt: skip


def front(
    made: Map, here: int, best: int, before: int | None = None, *, dark: bool
) -> dict[str, Any]:
    """Recall against context tokens for every setting, with the Pareto front."""
    ink = Ink.of(dark)
    recall, tokens = made.figures["recall"].ravel(), made.figures["tokens"].ravel()
    line = made.front()
    data = [
        {"type": "scatter", "mode": "markers", "name": "every setting",
         "x": tokens[made.places].tolist(), "y": recall[made.places].tolist(), "hoverinfo": "skip",
         "marker": {"size": 4, "color": ink.muted, "opacity": 0.35}},
        {"type": "scatter", "mode": "lines+markers", "name": "none has more recall for less",
         "x": [float(tokens[i]) for i in line], "y": [float(recall[i]) for i in line],
         "customdata": line, "line": {"color": ink.kept, "width": 1.5},
         "marker": {"size": 8, "color": ink.kept},
         "text": [_told(made, i, "recall") for i in line], "hoverinfo": "text",
         "selected": {"marker": {"opacity": 1}}, "unselected": {"marker": {"opacity": 1}}},
        *_marks(tokens.tolist(), recall.tolist(), before, here, best, ink.text),
    ]  # fmt: skip
    laid_out = layout(ink, "context tokens", "recall") | {
        "clickmode": "event+select", "showlegend": True, "height": 430, "legend": LEGEND,
    }  # fmt: skip
    laid_out["yaxis"] |= FIGURES
    return {"data": data, "layout": laid_out}


def _marks(
    xs: Sequence[float],
    ys: Sequence[float],
    before: int | None,
    here: int,
    best: int,
    colour: str,
) -> list[dict[str, Any]]:
    marks = (
        ("before the click", before, "diamond-open", colour),
        ("in force", here, "circle-open", colour),
        ("highest", best, "x-thin", HIGHEST),
    )
    return [
        {
            "type": "scatter", "mode": "markers", "name": name, "x": [xs[place]],
            "y": [ys[place]], "hoverinfo": "skip", "showlegend": True,
            "marker": {"symbol": symbol, "size": 16, "color": ink,
                       "line": {"width": 2.4, "color": ink}},
        }
        for name, place, symbol, ink in marks if place is not None
    ]  # fmt: skip


def _told(made: Map, place: int, measure: str) -> str:
    values = ", ".join(f"{path.partition('.')[2]} {v:g}" for path, v in made.values(place).items())
    flat = made.at(place)
    return (
        f"{values}<br>{SHOWN.get(measure, measure)} {flat[measure]:.3f}, recall "
        f"{flat['recall']:.3f}<br>{flat['kept']:.1f} chunks, {flat['tokens']:,.0f} tokens"
    )
