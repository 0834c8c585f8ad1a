"""One change applied to all filtered rows: chosen, previewed as a diff, then saved as one step."""

from __future__ import annotations

import streamlit as st

from ragfilter.errors import InputError
from ragfilter.rules import bulk
from ragfilter.rules.bulk import RuleChange
from ragfilter.ui.kit.rule_editor import desk, saving
from ragfilter.ui.kit.rule_editor.desk import Desk
from ragfilter.ui.look import elements
from ragfilter.ui.rules import change_preview

KINDS = GROUP, SPELLINGS, REPLACE, SET, REMOVE = (
    "Add a group", "Add spellings", "Replace a term", "Set a rule", "Remove the rule",
)  # fmt: skip
ACTIONS = {
    GROUP: "Add a group to", SPELLINGS: "Add spellings to", REPLACE: "Replace a term in",
    SET: "Set", REMOVE: "Remove",
}  # fmt: skip
"""What the button says before the number of rules."""
KIND = "bulk-kind"
FIELDS = TERM, TERMS, RULE, NEW = "bulk-term", "bulk-terms", "bulk-rule", "bulk-new"


def draw(work: Desk) -> None:
    """Draw the filter, the choice of change, its preview and the button that saves it."""
    desk.draw_filter(work)
    kind = st.segmented_control(
        "Change", KINDS, key=KIND, default=GROUP, required=True, persist_state="session",
        on_change=_forget,
    )  # fmt: skip
    try:
        change = _change(str(kind))
    except InputError as error:
        if any(st.session_state.get(name) for name in FIELDS):
            elements.aside(saving.said(error))
        return
    plan = bulk.plan(change, [row.chunk for row in desk.selected(work)])
    change_preview.draw(work, ACTIONS[str(kind)], plan, "bulk")


def _forget() -> None:
    """Clear the fields, since the terms were meant for another change."""
    for name in FIELDS:
        st.session_state.pop(name, None)


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
