"""The Tune page: a map of one or two settings, and settings suggested by cross-validation."""

from __future__ import annotations

from threading import Event
from typing import Any

import streamlit as st

from ragfilter.errors import RagfilterError
from ragfilter.evaluate import stored
from ragfilter.evaluate.beir import Labels
from ragfilter.evaluate.maps import NONE, OFFSET, Map, axes, usual
from ragfilter.evaluate.measuring import PATIENT, labels_version
from ragfilter.evaluate.told import in_sample, unlabelled
from ragfilter.evaluate.tune import FEW, Tuning
from ragfilter.layers.clearance import viewer
from ragfilter.settings.schema import Settings, field
from ragfilter.text.numbers import counted
from ragfilter.ui.evaluate.page import choose_set, chosen_set, draw_llm_note, labelled
from ragfilter.ui.look import hint, html, numbers
from ragfilter.ui.main import empty, problems
from ragfilter.ui.session import background, state
from ragfilter.ui.session.visit import Visit
from ragfilter.ui.tune import changed, mapping, plots, suggesting
from ragfilter.ui.tune.gathered import Gathered, Stopped, Work, gather, wait

CHART = {"displayModeBar": False}


def draw(visit: Visit) -> None:
    """The bar, then the map and what a point of it changes; below, the suggestion."""
    if not visit.ready:
        empty.draw(visit, None)
        return
    try:
        sets = stored.sets(visit.resources.bench.labels, st.session_state.collection)
        problems.incomplete(visit.incomplete)
    except RagfilterError as error:
        problems.show(error)
        return
    name = chosen_set(sets)
    given, why = labelled(visit, name)
    judged = visit.settings.judge.enabled
    with st.container(key="tune-bar", horizontal=True, vertical_alignment="bottom", gap="small"):
        choose_set(sets, name)
        x, y, measure = _axes(visit.settings)
        ready = given is not None and not judged
        pressed = st.button(
            "Map",
            key="map",
            type="primary",
            icon=":material/grid_on:",
            disabled=not ready,
            help="Gathers every labelled question once; the map is then replayed.",
        )
        if pressed and given is not None:
            _gather(visit, given)
    if ready and given is not None:
        suggesting.ask(visit, given)
    if why is not None:
        html.draw(
            f'<p class="rf-empty"><b>{html.text(why.message)}</b> {html.text(why.remedy)}</p>'
        )
        return
    assert given is not None
    draw_llm_note(visit)
    if judged:
        html.draw(
            '<p class="rf-empty"><b>The judge is on,</b> and tuning cannot replay LLM answers. '
            "Switch it off to tune the rest.</p>"
        )
        return
    if len(given.qrels) < FEW:
        html.draw(
            f'<p class="rf-aside">Only {counted(len(given.qrels), "labelled question")}, so the '
            f"best setting on the map may be chance. Label at least {FEW}.</p>"
        )
    learned = in_sample(visit.settings, labels_version(given))
    if learned:
        html.draw(f'<p class="rf-aside">{html.text(learned)}</p>')
    suggesting.draw(visit, given)
    found = _gathered(visit, given)
    if found is None:
        html.draw(
            '<p class="rf-empty"><b>No map yet.</b> Map replays all labelled questions under '
            "many values of the settings chosen above. A click on the map then sets the sliders. "
            "<b>Suggest settings</b> tries strategies and thresholds itself, and shows their "
            "gain on questions that they were not tuned on.</p>"
        )
        return
    made = mapping.of(
        found, _key(visit, given), visit.settings, state.user(), (x, y), visit.resources,
        again=pressed,
    )  # fmt: skip
    if made is not None:
        _draw_map(visit, found, made, measure)


def _axes(settings: Settings) -> tuple[str, str, str]:
    """Which settings the map goes over, and what it shows."""
    paths = axes(settings)
    first = st.selectbox(
        "Across", paths, index=paths.index(usual(paths)), key="map-x",
        persist_state="session", format_func=_label, width=200,
        help="The setting along the map's lower edge.",
    )  # fmt: skip
    others = [NONE, *(path for path in paths if path != first)]
    second = st.selectbox(
        "Up", others, index=others.index(OFFSET) if OFFSET in others else 0, key="map-y",
        persist_state="session", format_func=lambda path: _label(path) if path else "nothing",
        width=200, help="The setting along the left edge; nothing draws a line instead of a map.",
    )  # fmt: skip
    measure = st.selectbox(
        "Shown", list(plots.SHOWN), key="map-measure", persist_state="session", width=130,
        format_func=lambda name: plots.SHOWN[name], help="The mean over the questions.",
    )  # fmt: skip
    return first or paths[0], second or NONE, measure or "f1"


def _label(path: str) -> str:
    return f"{path.partition('.')[0]}: {field(path).label}"


def _key(visit: Visit, given: Labels) -> tuple[object, ...]:
    """What gathered pools hold for: collection, labels, user, and what decides how far a search
    goes and how it is reranked."""
    settings = visit.settings
    version = visit.resources.bench.collection(st.session_state.collection).version
    return (
        "pools", st.session_state.collection, version, labels_version(given),
        viewer(state.user(), settings), settings.retrieval, settings.quality.enabled,
        settings.quality.mode, settings.quality.reranker, settings.quality.reranker_model,
    )  # fmt: skip


def _gather(visit: Visit, given: Labels) -> None:
    """Begin to gather, unless that is done or under way."""
    key = _key(visit, given)
    shelf = visit.resources.gathered
    known = shelf.get(key)
    if known is not None and not (known.job.done and known.job.future.exception()):
        return
    backends = visit.resources.backends(st.session_state.collection)
    settings, user = visit.settings.with_values(PATIENT), state.user()
    progress: list[tuple[int, int, str]] = []

    def step(done: int, total: int) -> None:
        progress.append((done, total, "Gathering"))

    def work(stop: Event) -> Gathered | Tuning | Map:
        return gather(given, settings, backends, user, stop, step)

    shelf.put(key, Work(background.start(work), progress))


def _gathered(visit: Visit, given: Labels) -> Gathered | None:
    """The pools, waited for where they are under way; None if they are not there."""
    work = visit.resources.gathered.get(_key(visit, given))
    if work is None:
        return None
    wait(work, "gathering")
    try:
        made = work.job.value()
    except Stopped:
        return None
    except RagfilterError as error:
        problems.show(error, retry=False)
        return None
    assert isinstance(made, Gathered)
    return made


def _draw_map(visit: Visit, found: Gathered, made: Map, measure: str) -> None:
    settings = visit.settings
    here, best = made.nearest(settings), made.highest(measure)
    dark = st.context.theme.type == "dark"
    left, right = st.columns((1.15, 1), gap="medium")
    with left:
        st.plotly_chart(
            plots.heatmap(made, measure, here, best, dark=dark), key="map-chart", theme=None,
            on_select=lambda: _choose("map-chart", made), selection_mode="points", config=CHART,
            alt=f"{plots.SHOWN[measure]} for every value of the chosen settings",
        )  # fmt: skip
    with right:
        st.plotly_chart(
            plots.front(made, here, best, dark=dark), key="front-chart", theme=None,
            on_select=lambda: _choose("front-chart", made), selection_mode="points",
            config=CHART, alt="Recall against context tokens of every setting",
        )  # fmt: skip
    _told(made, measure, here, best)
    changed.draw(found, settings)


def _told(made: Map, measure: str, here: int, best: int) -> None:
    """The figures of the settings in force and of the highest place, and a button to go there."""
    facts = []
    for word, place in (("In force", here), ("Highest on these questions", best)):
        flat = made.at(place)
        set_to = ", ".join(f"{field(path).label.lower()} {value:g}"
                           for path, value in made.values(place).items())  # fmt: skip
        facts.append(
            f'<div class="rf-fact"><span>{word}: {html.text(set_to)}</span><b>'
            f"{plots.SHOWN[measure]} {flat[measure]:.3f} <i>{flat['kept']:.1f} chunks, "
            f"{numbers.tokens(round(flat['tokens']))}</i></b></div>"
        )
    html.draw(f'<section class="rf-strip" aria-label="Map">{"".join(facts)}</section>')
    if made.refused:
        html.draw(
            f'<p class="rf-aside">{made.refused} of {made.refused + len(made.places)} points are '
            "left out, because their values contradict each other.</p>"
        )
    for word, place in (("In force", here), ("Highest", best)):
        at = made.at(place)
        said = unlabelled(at["kept"], at["unlabelled"], at["f1"], at["f1_most"])
        if said:
            html.draw(f'<p class="rf-aside">{word}: {said[0].lower()}{said[1:]}</p>')
    with st.container(key="map-actions", horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            "Use the highest",
            key="map-best",
            icon=":material/check:",
            on_click=_set,
            args=(made, best),
            disabled=here == best,
            help="Sets these values in the sidebar, here and on Inspect.",
        )
        hint.beside(
            "Click a square, or a point of the front, to set the sliders to its values. The "
            "highest is chosen and measured on these same questions, so it will be lower on "
            "others; Suggest settings measures on held-out questions."
        )


def _choose(key: str, made: Map) -> None:
    picked: Any = st.session_state[key]["selection"]
    places = [point.get("customdata") for point in picked["points"]]
    place = next((p[0] if isinstance(p, list) else p for p in places if p is not None), None)
    if place is not None:
        _set(made, int(place))


def _set(made: Map, place: int) -> None:
    """Set the sliders to a place of the map."""
    changed.remember(state.settings())
    state.change(made.values(place))
