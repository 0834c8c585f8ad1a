"""Votes on which of two answers is better: stored with the labels, one per person and pair."""

from __future__ import annotations

from collections import Counter

import streamlit as st

from ragfilter.stores.preferences import Answered, Choice, on_pair, on_settings
from ragfilter.text.numbers import counted
from ragfilter.ui.kit import problems
from ragfilter.ui.look import html
from ragfilter.ui.session import state
from ragfilter.ui.session.resources import open_resources
from ragfilter.ui.session.visit import View, author

Names = tuple[str, str]


@problems.shown()
def draw(view: View, pair: tuple[Answered, Answered], names: Names, *, own: str) -> None:
    """Draw the four buttons, the current vote and the tally. `names` are the column names; `own`
    keeps the button keys of two places apart."""
    query, (left, right) = view.asked.query, pair
    if left.text == right.text or left.chunks == right.chunks:
        # Both contexts are the same, so there is nothing to choose between.
        return
    collection = state.session().collection
    every = view.resources.bench.preferences.votes(collection)
    here = on_pair((each for each in every if each.query == query.strip()), left, right)
    me = author()
    mine = next((v.seen_from(left) for v in here if v.who == me), None)
    labels: dict[Choice, str] = {
        "first": f"{names[0].capitalize()} is better",
        "second": f"{names[1].capitalize()} is better",
        "both": "Both fine",
        "neither": "Both poor",
    }
    words = _said(Counter(v.seen_from(left) for v in here), on_settings(every, left, right), names)
    with st.container(key=f"preference-{own}", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
            for choice, label in labels.items():
                st.button(
                    label,
                    key=f"prefer-{own}-{choice}",
                    type="primary" if choice == mine else "secondary",
                    on_click=_vote,
                    args=(collection, query, left, right, choice),
                    help="Your vote on these two answers, stored with the labels. Click another "
                    "button to change it.",
                )
        html.draw(f'<p class="rf-aside" role="status">{html.text(words)}</p>')


def _said(here: Counter[Choice], settings: Counter[Choice], names: Names) -> str:
    if not here.total() and not settings.total():
        return "No votes on these answers yet."
    words = f"This pair: {_tally(here, names)}." if here.total() else "No votes on this pair yet."
    if settings.total() > here.total():
        words += f" These settings over all questions: {_tally(settings, names)}."
    return words


def _tally(tally: Counter[Choice], names: Names) -> str:
    words: dict[Choice, str] = {
        "first": f"for {names[0]}", "second": f"for {names[1]}",
        "both": "both fine", "neither": "both poor",
    }  # fmt: skip
    words_of = ", ".join(
        f"{tally[choice]} {word}" for choice, word in words.items() if tally[choice]
    )
    return f"{counted(tally.total(), 'vote')}, {words_of}"


@state.tell_errors()
def _vote(collection: str, query: str, left: Answered, right: Answered, choice: Choice) -> None:
    open_resources().bench.preferences.vote(collection, query, left, right, choice, who=author())
