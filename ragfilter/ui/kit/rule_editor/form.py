"""A rule as a form with a row of chips for each group. It reads and writes the editor's text, so
form and JSON always agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from ragfilter.errors import RuleError
from ragfilter.rules.rule import MODES, Rule, parse
from ragfilter.text.characters import whole
from ragfilter.ui.kit.rule_editor import saving
from ragfilter.ui.look import elements
from ragfilter.ui.session import widget

ALL, NONE, MODE, FIELDS = "rule-all", "rule-none", "rule-mode", "rule-fields"
TYPE = "Type a term and press Enter"


def draw(chunk_id: str, text: str, stored: str | None, *, disabled: bool) -> None:
    """Draw the form for `text`; if the text cannot be read, say how to repair it."""
    try:
        rule = parse(text) if text.strip() else Rule()
    except RuleError:
        elements.aside("The form shows the rule as soon as the JSON can be read.")
        return
    fields = _fields(chunk_id, rule.contain_one_of)
    write = (chunk_id, len(fields), stored)
    with st.container(key="rule-form", gap="small"):
        # An empty field has the key of the group that it will become, so it stays the same widget
        # and further typing goes into that group.
        number = 0
        for i, group in enumerate(fields):
            number += bool(group)
            named = (
                f"Group {number}" if group else "Another group" if len(fields) > 1 else "A group"
            )
            _chips(f"rule-group-{i}", group, f"{named}: any of", write, disabled)
        _chips(ALL, rule.required, "All of", write, disabled)
        _chips(NONE, rule.contain_none_of, "None of", write, disabled)
        st.segmented_control(
            "Match",
            MODES,
            default=rule.match,
            required=True,
            disabled=disabled,
            help="word: whole words in upper or lower case. substring: also inside words.",
            **widget.of(MODE, rule.match, _write, *write),
        )


def _fields(chunk_id: str, groups: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    """The groups, followed by an empty one. An emptied field keeps its place as long as the groups
    are those of the form, since somebody may be typing in it."""
    known, n_fields = st.session_state.get(FIELDS, ("", 0))
    fields = tuple(_terms(f"rule-group-{i}") for i in range(n_fields if known == chunk_id else 0))
    while fields and not fields[-1]:
        fields = fields[:-1]
    if tuple(filter(None, fields)) != groups:
        fields = groups
    st.session_state[FIELDS] = (chunk_id, len(fields) + 1)
    return (*fields, ())


def _chips(
    name: str, terms: Sequence[str], label: str, write: tuple[Any, ...], disabled: bool
) -> None:
    chosen = list(dict.fromkeys(terms))
    st.multiselect(
        label,
        # Only the field's own terms. Others would be offered again when they are removed, and could
        # come back with the next key.
        chosen,
        chosen,
        accept_new_options=True,
        placeholder=TYPE,
        disabled=disabled,
        help=HELP.get(name, GROUP if terms else NEW),
        **widget.of(name, chosen, _write, *write),
    )


GROUP = (
    "The question must contain one of these. Backspace removes the last one; a group without terms "
    "is removed."
)
NEW = "Terms typed here make a group of their own. Every group must be met."
HELP = {
    ALL: "The question must contain each of these.",
    NONE: "The question must contain none of these.",
}


def _write(_: Any, chunk_id: str, n_fields: int, stored: str | None) -> None:
    """Update the text from the form."""
    if st.session_state[FIELDS][0] != chunk_id:
        # The browser has not replaced the form of another chunk yet.
        return
    rule = Rule().with_parts(
        contain_one_of=tuple(filter(None, (_terms(f"rule-group-{i}") for i in range(n_fields)))),
        contain_all_of=_terms(ALL),
        contain_none_of=_terms(NONE),
        match=widget.value_of(MODE),
    )
    saving.put(chunk_id, rule.pretty if rule.terms else "", stored)


def _terms(name: str) -> tuple[str, ...]:
    return tuple(term for term in map(whole, widget.value_of(name, ())) if term.strip())
