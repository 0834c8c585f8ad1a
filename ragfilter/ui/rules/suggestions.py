"""Proposals for families of chunks: what tells the siblings apart, and what asking for it does.
Accepted by family, one by one, or edited first; nothing is stored unasked."""

from __future__ import annotations

import threading

import pandas as pd
import streamlit as st

from ragfilter.evaluate.proposed import Suggested, likeness_of, suggest
from ragfilter.rules.families import Family, Proposal
from ragfilter.rules.rule import parse, pretty
from ragfilter.text.numbers import counted
from ragfilter.ui.look import html
from ragfilter.ui.rules import bulk, desk, diff, effect, labelled, saving
from ragfilter.ui.rules.desk import Desk
from ragfilter.ui.session import background
from ragfilter.ui.session.background import Job

WANTED, FAMILY, ONE, DOUBTS = "suggest-wanted", "suggest-family", "suggest-one", "suggest-doubts"
TICK_S = 0.3


def draw(work: Desk) -> None:
    """Families, their proposals, and the buttons that accept them."""
    html.draw(
        '<p class="rf-aside">A family is a set of chunks whose titles differ in one number that '
        "words say something about, and whose texts resemble each other. No LLM is asked.</p>"
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
    known = labelled.gathered(work) if labelled.told(work) else None
    if known is None and labelled.labels(work.collection) is not None:
        labelled.wait(work)
        return
    job = _job(work)
    if not job.done:
        place = st.empty()
        while not job.done:
            place.html(
                f'<p class="rf-aside" role="status">Looking for families … {job.seconds:.0f} s</p>'
            )
            job.wait(TICK_S)
        st.rerun()
    made = job.value()
    bulk.said()
    if not made.families:
        html.draw(
            '<p class="rf-empty"><b>No families.</b> No three chunks have titles that differ in '
            "one number only, such as “Armor Class 6” and “Armor Class 7”.</p>"
        )
        return
    _family(work, made)


def _job(work: Desk) -> Job[Suggested]:
    resources = work.resources
    known = labelled.gathered(work)
    key = (work.collection, work.version, work.user, work.settings, known is None)
    job = resources.suggested.get(key)
    if job is None:
        collection = resources.bench.collection(work.collection)
        ids, user = list(work.chunks), work.user

        def look(_: threading.Event) -> Suggested:
            chunks = [c for c in collection.chunks(ids).values() if user.sees(c)]
            return suggest(chunks, (), known, likeness_of(resources.bench.embedder))

        job = resources.suggested.put(key, background.start(look))
    return job


def _family(work: Desk, made: Suggested) -> None:
    by_pattern = {family.pattern: family for family in made.families}
    pattern = st.selectbox(
        "Family",
        list(by_pattern),
        key=FAMILY,
        persist_state="session",
        format_func=lambda name: f"{name} · {len(by_pattern[name].members)}",
        help="The titles' pattern; # stands for the number in which they differ.",
    )
    family = by_pattern[pattern]
    proposals = [p for p in made.proposals if p.family == pattern]
    new = [p for p in proposals if work.chunks[p.chunk.id].rule != p.rule]
    left, right = st.columns((1.2, 1), gap="medium")
    with left:
        _table(work, family, proposals, made)
    with right:
        effect.of_changes(work, {p.chunk.id: p.rule for p in new})
        sure = [p for p in new if p.chunk.id not in made.losses]
        with_doubts = len(sure) < len(new) and st.checkbox(
            f"With the {len(new) - len(sure)} that would drop what is labelled relevant",
            key=DOUBTS,
            help="They are marked in the table.",
        )
        taken = new if with_doubts else sure
        st.button(
            f"Accept {counted(len(taken), 'rule')} of this family",
            key="suggest-accept",
            type="primary",
            on_click=_accept,
            args=(work, taken),
            disabled=not taken,
            help="Saves them as one step, which can be undone under History.",
        )
        _one(work, proposals)


def _table(work: Desk, family: Family, proposals: list[Proposal], made: Suggested) -> None:
    rows = [made.rows.get(p.rule) for p in proposals]
    st.dataframe(
        pd.DataFrame(
            {
                "value": [p.value for p in proposals],
                "names": [", ".join(family.names) or "–" for _ in proposals],
                "chunk": [p.chunk.name for p in proposals],
                "now": [
                    "accepted" if work.chunks[p.chunk.id].rule == p.rule
                    else "another rule" if work.chunks[p.chunk.id].rule else "no rule"
                    for p in proposals
                ],
                "blocks": [None if row is None else row.blocks for row in rows],
                "passes": [None if row is None else row.passes for row in rows],
                "conflicts": [None if row is None else len(row.conflicts) for row in rows],
                "would drop": [len(made.losses.get(p.chunk.id, ())) for p in proposals],
            }
        ),
        key="suggest-table",
        hide_index=True,
        height=440,
        column_config={
            "conflicts": st.column_config.NumberColumn(
                "conflicts", help="Blocks of chunks that are labelled relevant."
            ),
            "would drop": st.column_config.NumberColumn(
                "would drop", help="Labelled questions that would lose this chunk."
            ),
        },
    )  # fmt: skip


def _one(work: Desk, proposals: list[Proposal]) -> None:
    by_id = {p.chunk.id: p for p in proposals}
    chosen = st.selectbox(
        "One chunk",
        list(by_id),
        key=ONE,
        format_func=lambda i: f"{by_id[i].value} · {by_id[i].chunk.name}",
        help="See one proposal, accept it alone, or edit it first.",
    )
    if chosen is None:
        return
    each = by_id[chosen]
    stored = work.chunks[each.chunk.id].rule
    with st.container(key="suggest-actions", horizontal=True, gap="small"):
        st.button(
            "Accept this one",
            key="suggest-one-accept",
            on_click=_accept,
            args=(work, [each]),
            disabled=stored == each.rule,
            help="Saves this rule alone.",
        )
        st.button(
            "Edit first",
            key="suggest-edit",
            on_click=_edit,
            args=(each, stored),
            help="Puts it into the editor under Chunks. Nothing is saved.",
        )
    diff.draw(each.chunk.name, stored, each.rule)


def _accept(work: Desk, proposals: list[Proposal]) -> None:
    bulk.save(
        work,
        {p.chunk.id: p.rule for p in proposals},
        {p.chunk.id: work.chunks[p.chunk.id].rule for p in proposals},
        "accept proposals",
    )


def _edit(each: Proposal, stored: str | None) -> None:
    saving.put(each.chunk.id, pretty(parse(each.rule)), stored)
    desk.open_(each.chunk.id)
    st.session_state["rules-part"] = "Chunks"
