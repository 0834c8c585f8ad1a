"""Proposals for families of chunks: what distinguishes the members, and the effect of the rules."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from ragfilter.evaluate.proposed import Suggested, suggest
from ragfilter.rules.proposals import Proposal
from ragfilter.stores.labels import ASKED
from ragfilter.ui.kit import progress
from ragfilter.ui.kit.rule_editor import rule_effect
from ragfilter.ui.kit.rule_editor.desk import Desk
from ragfilter.ui.look import elements
from ragfilter.ui.rules import offers
from ragfilter.ui.rules.offers import Offer
from ragfilter.ui.session.jobs import Job

WANTED, FAMILY = "suggest-wanted", "suggest-family"


def draw(work: Desk) -> None:
    """Draw the families, their proposals, and the buttons that accept them."""
    elements.aside(
        "A family is a set of chunks whose titles tell them apart: titles that count the same "
        "thing, or titles of texts that state the same kinds of values, such as stat blocks. No "
        "LLM is asked."
    )
    if st.session_state.get(WANTED) != work.collection:
        st.button(
            "Find families",
            key="suggest-find",
            type="primary",
            on_click=lambda: st.session_state.update({WANTED: work.collection}),
            help="Reads every chunk once. Nothing is saved.",
        )
        return
    if rule_effect.gathered(work) is None and work.labels is not None:
        if rule_effect.available(work):
            rule_effect.wait_for(work)
        return
    made = progress.result(_job(work), "suggest-looking", "Looking for families")
    if made is None:
        return
    if not made.families:
        elements.empty(
            "No families.",
            "No three titles count the same thing, such as “Armor Class 6” and “Armor Class 7”, "
            "or have texts that state the same kinds of values.",
        )
        return
    _family(work, made)
    rule_effect.wait(work)


def _job(work: Desk) -> Job[Suggested]:
    resources = work.resources
    known = rule_effect.gathered(work)
    collection = resources.bench.collection(work.collection)
    mark = rule_effect.mark(work)
    # Without the version, so that accepting one family does not start a new search for the others.
    content = collection.content or work.version
    key = ("families", work.collection, content, work.user, work.settings, mark, known is None)
    ids, user = list(work.chunks), work.user

    def look(_: Job[Suggested]) -> Suggested:
        asked = resources.bench.labels.queries(work.collection, ASKED).values()
        chunks = [c for c in collection.chunks(ids).values() if user.sees(c)]
        return suggest(chunks, asked, known)

    return resources.jobs.start(user, key, look)


def _family(work: Desk, made: Suggested) -> None:
    by_pattern = {family.pattern: family for family in made.families}
    proposed: dict[str, list[Proposal]] = {name: [] for name in by_pattern}
    for each in made.proposals:
        if each.chunk.id in work.chunks:
            proposed[each.family].append(each)
    left = [
        name
        for name, some in proposed.items()
        if not all(work.chunks[p.chunk.id].rule for p in some)
    ]
    pattern = st.selectbox(
        "Family",
        list(by_pattern),
        key=FAMILY,
        persist_state="session",
        format_func=lambda name: f"{name} · {len(by_pattern[name].members)}",
        help="What the titles or texts count. # stands for the number.",
    )
    if len(left) < len(by_pattern):
        done = len(by_pattern) - len(left)
        elements.aside(f"Families with a rule on every chunk: {done:,} of {len(by_pattern):,}.")
    proposals = proposed[pattern]
    losses = made.evidence.losses
    offered = [
        Offer(
            work.chunks[p.chunk.id],
            p.rule,
            p.value,
            (
                *filter(None, (p.doubt,)),
                *(f"would drop what “{query}” needs" for query in losses.get(p.chunk.id, ())),
            ),
        )
        for p in proposals
    ]
    listed, chosen = st.columns((1.2, 1), gap="medium")
    with listed:
        offers.draw(work, offered, made.evidence, {"value": [p.value for p in proposals]})
    with chosen:
        offers.accept(work, offered, "of this family", partial(_next, left, pattern))


def _next(left: Sequence[str], pattern: str) -> None:
    """Draw the button to the next family with chunks that have no rule; after the last comes the
    first."""
    others = [name for name in left if name != pattern]
    at = left.index(pattern) if pattern in left else 0
    st.button(
        "Next family",
        key="suggest-next",
        on_click=lambda: st.session_state.update({FAMILY: others[at % len(others)]}),
        disabled=not others,
        help="Opens the next family with chunks that have no rule.",
    )
