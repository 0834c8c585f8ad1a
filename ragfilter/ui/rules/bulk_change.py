"""One change applied to all filtered rows: chosen, previewed as a diff, then saved as one step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pandas as pd
import streamlit as st

from ragfilter.errors import InputError
from ragfilter.rules import bulk
from ragfilter.rules.bulk import BulkPlan, RuleChange
from ragfilter.rules.overview import brief
from ragfilter.text.numbers import counted
from ragfilter.ui.kit import grid
from ragfilter.ui.kit.rule_editor import desk
from ragfilter.ui.kit.rule_editor.desk import Desk
from ragfilter.ui.look import say
from ragfilter.ui.look.prose import message
from ragfilter.ui.rules import change_preview
from ragfilter.ui.rules.change_preview import LEFT_OUT, Rules

KINDS = GROUP, SPELLINGS, REPLACE, SET, REMOVE = (
    "Add a group", "Add spellings", "Replace a term", "Set a rule", "Remove the rule",
)  # fmt: skip
KIND, TERM, TERMS, RULE, NEW = "bulk-kind", "bulk-term", "bulk-terms", "bulk-rule", "bulk-new"
MOST_TICKED = 1_000


def draw(work: Desk) -> None:
    """Draw the choice of change, its preview and the button that saves it."""
    rows = desk.selected(work)
    say.aside(f"Changes the {counted(len(rows), 'chunk')} that the filter under Chunks shows.")
    kind = st.segmented_control(
        "Change",
        KINDS,
        key=KIND,
        default=GROUP,
        required=True,
        persist_state="session",
        help="You see every change before it is saved.",
    )
    try:
        change = _change(str(kind))
    except InputError as error:
        change_preview.draw_outcome()
        if any(st.session_state.get(name) for name in (TERM, TERMS, NEW, RULE)):
            say.aside(str(error))
        return
    change_preview.draw_outcome()
    preview(work, change.label, bulk.plan(change, [row.chunk for row in rows]), kind)


def _change(kind: str) -> RuleChange:
    """The change described by the form. Raises InputError, RuleError."""
    if kind == REMOVE:
        return bulk.remove()
    if kind == SET:
        text = st.text_area(
            "Rule",
            key=RULE,
            persist_state="session",
            placeholder='{"contain_one_of": [["term", "other spelling"]]}',
            help="Replaces the rule of every chunk.",
        )
        if not text or not text.strip():
            raise InputError("There is no rule.", remedy="Write one.")
        return bulk.set_rule(text)
    if kind == GROUP:
        return bulk.add_group(_terms("Terms of the new group"))
    term = st.text_input(
        "Existing term",
        key=TERM,
        persist_state="session",
        help="Changes every group that contains this term.",
    )
    if kind == SPELLINGS:
        return bulk.add_spellings(term or "", _terms("Spellings to add"))
    new = st.text_input(
        "Replacement term", key=NEW, persist_state="session", help="Replaces the existing term."
    )
    return bulk.replace_term(term or "", new or "")


def _terms(label: str) -> list[str]:
    return st.multiselect(
        label,
        st.session_state.get(TERMS, []),
        key=TERMS,
        persist_state="session",
        accept_new_options=True,
        placeholder="Type a term and press Enter",
        help="The question must contain one of them.",
    )


def preview(work: Desk, what: str, plan: BulkPlan, of: object) -> None:
    """Draw what `plan` would change, with a tick for each chunk, and the button that saves it.
    `of` is the change: another one, or another filter, begins with every row ticked."""
    if plan.refused:
        first, why = next(iter(plan.refused.items()))
        refused = counted(len(plan.refused), "rule")
        st.error(message(f"{refused} cannot be changed, such as {first}: {why}"))
    rules = _ticked(work, plan.after, (work.collection, desk.rule_filter(), of))
    if rules:
        change_preview.offer(work, rules, what, key="bulk")
    else:
        say.empty(
            "Nothing would change.",
            "The rules already have this change, or no chunk is shown or ticked.",
        )


def _ticked(work: Desk, rules: Rules, change: object) -> Rules:
    """Draw a box for each chunk. Returns the rules of those that are ticked."""
    ids = list(rules)
    of, left_out = st.session_state.get(LEFT_OUT, (change, frozenset()))
    chosen = [i for i in ids if of != change or i not in left_out]
    if 0 < len(ids) <= MOST_TICKED:
        # The label stays the same, since an expander with a new one is closed.
        with st.container(key="bulk-chunks"), st.expander("Leave out chunks"):
            grid.draw(
                pd.DataFrame(
                    {
                        "chunk": [work.title(i) for i in ids],
                        "id": ids,
                        "rule": [brief(work.chunks[i].rule) for i in ids],
                    }
                ),
                ids,
                name="bulk",
                height=min(32 * (len(ids) + 1) + 6, 320),
                row_height=32,
                columns={"rule": st.column_config.TextColumn(width="large")},
                ticked=chosen,
                tick=partial(_tick, change, ids),
            )
            say.aside("Chunks without a tick keep their rules.")
    if len(chosen) < len(ids):
        say.aside(f"{len(chosen):,} of {counted(len(ids), 'chunk')} are ticked.")
    return {i: rules[i] for i in chosen}


def _tick(change: object, ids: Sequence[str], ticked: Sequence[str]) -> None:
    st.session_state[LEFT_OUT] = change, frozenset(ids).difference(ticked)
