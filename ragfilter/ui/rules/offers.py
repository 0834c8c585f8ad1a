"""Proposed rules from any source: accepted all at once, one by one, or edited first. Nothing is
saved without a click."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from ragfilter.evaluate.proposed import Evidence
from ragfilter.model import Chunk
from ragfilter.rules.rule import parse
from ragfilter.text.numbers import counted
from ragfilter.ui.kit.rule_editor import desk, rule_effect, saving
from ragfilter.ui.kit.rule_editor.desk import Desk
from ragfilter.ui.look import elements
from ragfilter.ui.rules import change_preview

ONE, DOUBTS, REPLACE = "suggest-one", "suggest-doubts", "suggest-replace"
SURE, ONE_SURE = "suggest-sure", "suggest-one-sure"
ACCEPT = "accept proposals"


@dataclass(frozen=True, slots=True)
class Offer:
    """A rule proposed for a chunk with its stored rule, its name in the list and its doubts."""

    chunk: Chunk
    rule: str
    label: str
    doubts: tuple[str, ...] = ()


def draw(
    work: Desk, offers: Sequence[Offer], evidence: Evidence, more: Mapping[str, list[str]]
) -> None:
    """Draw the offers, each with its row of the matrix; `more` are extra columns."""
    st.dataframe(
        {
            **more,
            "chunk": [work.title(each.chunk.id) for each in offers],
            "now": [_now(each) for each in offers],
            # Unknown if there are no labels.
            "would drop": [
                None if evidence.effect is None else len(evidence.losses.get(each.chunk.id, ()))
                for each in offers
            ],
            "doubts": ["; ".join(each.doubts) for each in offers],
        },
        key="suggest-table",
        hide_index=True,
        placeholder="–",
        column_config={
            "would drop": st.column_config.NumberColumn(
                help="Labelled questions that would lose this chunk."
            ),
        },
    )


def accept(
    work: Desk, offers: Sequence[Offer], whose: str, beside: Callable[[], None] = lambda: None
) -> None:
    """Draw what accepting the offers would do, and the buttons. `whose` describes the rules: ``of
    this family``. `beside` draws more buttons beside the first."""
    change_preview.draw_outcome()
    others = sum(each.chunk.rule not in (None, each.rule) for each in offers)
    # A rule that was edited after it was proposed is one of them.
    replaces = others > 0 and st.checkbox(
        f"Replace {counted(others, 'other rule')}",
        # Of these offers alone: a box with the same key stays ticked.
        key=f"{REPLACE}-{offers[0].chunk.id}",
        help="Otherwise, chunks whose rule differs from the proposed one, such as one you edited, "
        "keep theirs.",
    )
    new = [
        each
        for each in offers
        if not each.chunk.rule or (replaces and each.chunk.rule != each.rule)
    ]
    sure = [each for each in new if not each.doubts]
    with_doubts = len(sure) < len(new) and st.checkbox(
        f"Include {counted(len(new) - len(sure), 'doubtful rule')}",
        key=DOUBTS,
        help="The table lists the objections.",
    )
    taken = {each.chunk.id: each.rule for each in (new if with_doubts else sure)}
    sure_of_it = bool(taken) and rule_effect.confirm(work, taken, SURE)
    if not taken:
        elements.aside(_why_none(new, others))
    with st.container(key="suggest-all", horizontal=True, gap="small"):
        st.button(
            f"Accept {counted(len(taken), 'rule')} {whose}" if taken else "Accept",
            key="suggest-accept",
            type="primary",
            on_click=change_preview.save,
            args=(work, taken, ACCEPT),
            disabled=not sure_of_it,
            help="Saves them as one step, which can be undone under History.",
        )
        beside()
    _one(work, offers)


def _why_none(new: Sequence[Offer], others: int) -> str:
    """Why there is nothing to accept, and what to select."""
    if new:
        return "The remaining rules are doubtful. Tick the box above to include them."
    if others:
        return "Every chunk already has a rule. Tick the box above to replace those that differ."
    return "All of these rules are accepted."


def _now(each: Offer) -> str:
    if each.chunk.rule == each.rule:
        return "accepted"
    return "another rule" if each.chunk.rule else "no rule"


def _one(work: Desk, offers: Sequence[Offer]) -> None:
    by_id = {each.chunk.id: each for each in offers}
    chosen = st.selectbox(
        "One chunk",
        list(by_id),
        key=ONE,
        format_func=lambda i: f"{by_id[i].label} · {by_id[i].chunk.name}" if i in by_id else "",
        help="See one proposal, accept it alone, or edit it first.",
    )
    if chosen not in by_id:
        return
    each = by_id[chosen]
    stored, rules = each.chunk.rule, {chosen: each.rule}
    sure = stored != each.rule and rule_effect.confirm(work, rules, ONE_SURE, again=True)
    with st.container(key="suggest-actions", horizontal=True, gap="small"):
        st.button(
            "Accept this one",
            key="suggest-one-accept",
            on_click=change_preview.save,
            args=(work, rules, ACCEPT),
            disabled=not sure,
            help="Saves this rule alone.",
        )
        st.button(
            "Edit first",
            key="suggest-edit",
            on_click=_edit,
            args=(each,),
            help="Puts it into the editor under Chunks. Nothing is saved.",
        )
    for doubt in each.doubts:
        elements.aside(f"Doubt: {doubt}")
    change_preview.draw_diffs([(each.chunk.name, stored, each.rule)], "suggest-one-diff")


def _edit(each: Offer) -> None:
    saving.put(parse(each.rule).pretty, each.chunk.id, each.chunk.rule)
    desk.edit(each.chunk.id)
