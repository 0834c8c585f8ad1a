"""Votes on which of two answers is better, stored with the labels: one per person and pair."""

from __future__ import annotations

from collections import Counter

import streamlit as st

from ragfilter.answer.stream import Answer
from ragfilter.settings.config import of_profile
from ragfilter.settings.schema import Settings
from ragfilter.stores.preferences import Answered, Choice, on_pair, on_settings
from ragfilter.text import numbers
from ragfilter.ui.kit import problems
from ragfilter.ui.kit.answer_sides import AnswerSide
from ragfilter.ui.look import elements
from ragfilter.ui.resources import open_resources
from ragfilter.ui.session import state
from ragfilter.ui.session.views import View, author


def answered(side: AnswerSide, answer: Answer, profile: str, settings: Settings) -> Answered:
    """One side as a vote stores it. Clearance is left out: a comparison never varies the user."""
    changes = state.without_clearance(settings.changed_from(of_profile(profile)))
    return Answered(profile, changes, tuple(hit.id for hit in side.context.chunks), answer.model)


@problems.show_errors()
def draw(view: View, pair: tuple[Answered, Answered], names: tuple[str, str], *, key: str) -> None:
    """Draw the four buttons, the current vote and the tally. `names` are the columns'. `key` tells two places apart."""
    query, (left, right) = view.asked.query, pair
    if left.text == right.text or left.chunks == right.chunks:
        # Both contexts are the same, so there is nothing to choose between.
        return
    collection = state.session().collection
    every = view.resources.bench.preferences.votes(collection)
    pair_votes = on_pair((each for each in every if each.query == query.strip()), left, right)
    mine = next((vote.seen_from(left) for vote in pair_votes if vote.who == author()), None)
    first, second = names
    choices: dict[Choice, tuple[str, str]] = {
        "first": (f"{first.capitalize()} is better", f"for {first}"),
        "second": (f"{second.capitalize()} is better", f"for {second}"),
        "both": ("Both fine", "both fine"),
        "neither": ("Both poor", "both poor"),
    }

    def tally(of: Counter[Choice]) -> str:
        counts = [f"{of[choice]} {words}" for choice, (_, words) in choices.items() if of[choice]]
        return ", ".join([numbers.counted(of.total(), "vote"), *counts])

    on_this, on_these = Counter(vote.seen_from(left) for vote in pair_votes), on_settings(every, left, right)
    words = f"This pair: {tally(on_this)}." if pair_votes else "No votes on this pair yet."
    if on_these.total() > len(pair_votes):
        words += f" These settings over all questions: {tally(on_these)}."
    with st.container(key=f"preference-{key}", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
            for choice, (label, _) in choices.items():
                look = "primary" if choice == mine else "secondary"
                elements.button(label, f"prefer-{key}-{choice}", _vote, collection, query, *pair, choice, type=look)
        elements.draw(f'<p class="rf-aside" role="status">{elements.text(words)}</p>')


@state.tell_errors()
def _vote(collection: str, query: str, left: Answered, right: Answered, choice: Choice) -> None:
    open_resources().bench.preferences.vote(collection, query, left, right, choice, who=author())
