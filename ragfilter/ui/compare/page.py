"""The Compare page: choose two sides, and one question or a query set."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragfilter.stores.runs import Run
from ragfilter.ui.compare import one, queries
from ragfilter.ui.compare import sides as choosing
from ragfilter.ui.compare.sides import ComparedSide
from ragfilter.ui.kit import empty, problems, question_box, sidebar
from ragfilter.ui.kit.runs import measuring
from ragfilter.ui.kit.share import draw_link
from ragfilter.ui.look import html
from ragfilter.ui.session import link, state, visit, widget
from ragfilter.ui.session.visit import Visit

ONE = "One question"


@problems.shown(retry=True)
def draw(here: Visit) -> None:
    """Draw the two sides and their comparison."""
    name = choosing.query_set()
    if name or not here.ready:
        # Otherwise the question is the heading.
        html.heading("Compare", level=1)
    if not here.ready:
        sidebar.draw(here, None)
        empty.draw(here, None)
        return
    runs = measuring.saved_runs(here)
    problems.incomplete(here.incomplete if name else "")
    sides, share = _bar(here, runs, name)
    if name:
        link.share(more=choosing.parameters())
        link.show_address()
        draw_link(share, None)
        sidebar.draw(here, None)
        queries.draw(here, sides, name, runs)
        return
    question_box.draw(here)
    view, error = visit.view(here, choosing.parameters())
    link.show_address()
    draw_link(share, view)
    sidebar.draw(here, None)
    if view is None:
        html.heading("Compare", level=1)
        empty.draw(here, error)
        return
    problems.incomplete(view.result.pool.incomplete)
    one.draw(view, sides)


def _bar(
    here: Visit, runs: Mapping[int, Run], name: str
) -> tuple[tuple[ComparedSide, ComparedSide], DeltaGenerator]:
    """Draw the choice of the two sides, and over what. Returns the sides, and the place for the
    link."""
    a, b = (choosing.read(letter, here.settings, runs) for letter in link.SIDES)
    # Messages about values of a link that could not be used.
    problems.notices(state.notices())
    with st.container(key="sides", horizontal=True, vertical_alignment="bottom", gap="small"):
        _choice("a", here, runs)
        st.button("Swap", key="sides-swap", icon=":material/swap_horiz:", on_click=choosing.swap)
        _choice("b", here, runs)
        _over(measuring.sets_of(here), name)
        st.button(
            "Copy A to B",
            key="sides-copy",
            icon=":material/content_copy:",
            on_click=choosing.copy,
            args=(a,),
            help="Copies current settings as a snapshot, so later changes are compared with it.",
        )
        share = st.container(key="share", width="content")
    return (a, b), share


def _choice(letter: str, here: Visit, runs: Mapping[int, Run]) -> None:
    word = choosing.chosen(letter)
    words = choosing.words(letter, here.settings, runs)
    labels = {each: choosing.named(each, letter, runs) for each in words}
    choose = partial(choosing.put, letter, changes={})
    widget.select(letter.upper(), labels, word, f"side-{letter}-box", choose, width=250)


def _over(sets: Mapping[str, int], name: str) -> None:
    """Draw the choice between one question and a query set."""
    names = sets if name in sets or not name else [name, *sets]
    labels = {"": ONE} | {each: measuring.called(sets, each) for each in names}
    widget.select("Over", labels, name, "compare-over", choosing.put_query_set, width=210)
