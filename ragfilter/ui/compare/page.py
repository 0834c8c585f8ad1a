"""The Compare page: choose two sides, and one question or a query set."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragfilter.errors import SettingsError
from ragfilter.stores.runs import Run
from ragfilter.ui.compare import one, queries
from ragfilter.ui.compare import sides as choosing
from ragfilter.ui.compare.sides import ComparedSide
from ragfilter.ui.kit import ask, controls, empty, problems
from ragfilter.ui.kit.runs import chosen
from ragfilter.ui.kit.share import draw_link
from ragfilter.ui.look import elements, html, prose
from ragfilter.ui.session import link, state, visit, widget
from ragfilter.ui.session.visit import Visit

ONE, SET = "One question", "Query set"
MOST_MB = 1
REFUSED = "side-refused"


@problems.shown(retry=True)
def draw(here: Visit) -> None:
    """Draw the two sides and their comparison."""
    name = choosing.query_set()
    if name or not here.ready:
        # Otherwise the question is the heading.
        html.heading("Compare", level=1)
    if not here.ready:
        controls.draw(here, None)
        empty.draw(here, None)
        return
    runs = chosen.saved_runs(here)
    problems.incomplete(here.incomplete if name else "")
    sides, share = _bar(here, runs)
    _mode(chosen.sets_of(here), name)
    if name:
        link.share(more=choosing.parameters())
        link.show_address()
        draw_link(share, None)
        controls.draw(here, None)
        queries.draw(here, sides, name, runs)
        return
    ask.box(here)
    view, error = visit.view(here, choosing.parameters())
    link.show_address()
    draw_link(share, view)
    controls.draw(here, view)
    if view is None:
        html.heading("Compare", level=1)
        empty.draw(here, error, empty.COMPARE)
        return
    problems.incomplete(view.result.pool.incomplete)
    one.draw(view, sides)


def _bar(
    here: Visit, runs: Mapping[int, Run]
) -> tuple[tuple[ComparedSide, ComparedSide], DeltaGenerator]:
    """Draw the choice of the two sides, and their differences. Returns the sides, and the place for
    the link."""
    a, b = (choosing.read(letter, here.settings, runs) for letter in link.SIDES)
    # Messages about values of a link that could not be used.
    problems.notices(state.notices())
    with st.container(key="sides", horizontal=True, vertical_alignment="bottom", gap="small"):
        _choice("a", here, runs)
        st.button(
            "Swap",
            key="sides-swap",
            icon=":material/swap_horiz:",
            on_click=choosing.swap,
            help="Swaps A and B.",
        )
        st.button(
            "Copy to B",
            key="sides-copy",
            icon=":material/content_copy:",
            on_click=choosing.copy,
            args=(a,),
            help="Copies A to B. Current settings are copied as a snapshot, so later changes are "
            "compared with it.",
        )
        _choice("b", here, runs)
        with st.popover(
            "File", key="sides-file", icon=":material/upload_file:",
            help="Load a side from a settings file (TOML).",
        ):  # fmt: skip
            _files()
        share = st.container(key="share", width="content")
    told = choosing.differences(a.settings, b.settings)
    elements.aside(
        f"From A to B: {', '.join(told)}." if told else "A and B have the same settings."
    )
    return (a, b), share


def _choice(letter: str, here: Visit, runs: Mapping[int, Run]) -> None:
    word = choosing.chosen(letter)
    words = dict.fromkeys([*choosing.words(letter, here.settings, runs), word])
    labels = {each: choosing.named(each, letter, runs) for each in words}
    st.selectbox(
        letter.upper(),
        list(words),
        list(words).index(word),
        format_func=lambda each: labels.get(each, each),
        width=330,
        help="A profile, the settings on the left, those with another cutoff strategy, or a saved "
        "run. B is judged against A.",
        **widget.of(f"side-{letter}-box", word, _choose, letter, labels=labels),
    )


def _choose(word: str, letter: str) -> None:
    choosing.put(letter, word, {})


def _files() -> None:
    for letter in link.SIDES:
        st.file_uploader(
            f"Settings file for {letter.upper()}",
            type="toml",
            key=f"side-{letter}-file",
            max_upload_size=MOST_MB,
            on_change=_load,
            args=(letter,),
            help="A file downloaded with Save, or any file that `ragfilter query --config` reads.",
        )
    if st.session_state.get(REFUSED):
        st.error(prose.message(st.session_state[REFUSED]))


def _load(letter: str) -> None:
    st.session_state[REFUSED] = ""
    given = st.session_state[f"side-{letter}-file"]
    if given is None:
        return
    try:
        choosing.load(letter, given.getvalue(), given.name)
    except SettingsError as error:
        st.session_state[REFUSED] = str(error)


def _mode(sets: Mapping[str, int], name: str) -> None:
    """Draw the choice between one question and a query set."""
    with st.container(
        key="compare-mode", horizontal=True, vertical_alignment="bottom", gap="small"
    ):
        mode = SET if name else ONE
        st.segmented_control(
            "Over", (ONE, SET), default=mode, required=True, label_visibility="collapsed",
            **widget.of("compare-mode-box", mode, _choose_mode, chosen.usual(sets)),
        )  # fmt: skip
        elements.hint(
            "One question: both lists side by side, and both answers. Query set: which side does "
            "better over labelled questions."
        )
        if name:
            _choose_set(sets, name)


def _choose_set(sets: Mapping[str, int], name: str) -> None:
    names = sets if name in sets else [name, *sets]
    labels = {each: chosen.called(sets, each) for each in names}
    st.selectbox(
        "Questions",
        list(labels),
        list(labels).index(name),
        format_func=lambda each: labels.get(each, each),
        width=260,
        help="The query set to compare over.",
        **widget.of("compare-set-box", name, choosing.put_query_set, labels=labels),
    )


def _choose_mode(mode: str, name: str) -> None:
    choosing.put_query_set(name if mode == SET else "")
