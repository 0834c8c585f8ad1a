"""A rule as a form: every group a row of chips. It reads and writes the editor's text, so that
form and JSON are always in step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from ragfilter.errors import RuleError
from ragfilter.rules.rule import MODES, Rule, canonical, parse, pretty
from ragfilter.text.characters import whole
from ragfilter.ui.look import html
from ragfilter.ui.rules import saving

NEW = "rule-group-new"
ALL, NONE, MODE = "rule-all", "rule-none", "rule-mode"
TYPE = "Type a term and press Enter"
Given = dict[str, Any]


def draw(chunk_id: str, text: str, stored: str | None, *, disabled: bool) -> None:
    """The form of `text`; where that cannot be read, how to get it back."""
    try:
        rule = parse(text) if text.strip() else Rule()
    except RuleError:
        html.draw(
            '<p class="rf-aside">The form shows the rule as soon as the JSON can be read.</p>'
        )
        return
    groups = rule.contain_one_of
    write: Given = {
        "on_change": _write,
        "args": (chunk_id, len(groups), stored),
        "disabled": disabled,
    }
    with st.container(key="rule-form", gap="small"):
        for i, group in enumerate(groups):
            _chips(f"rule-group-{i}", group, f"Group {i + 1}: any of", write)
        _chips(NEW, (), "Another group: any of" if groups else "A group: any of", write)
        single = () if rule.contain is None else (rule.contain,)
        _chips(ALL, (*single, *rule.contain_all_of), "All of", write)
        _chips(NONE, rule.contain_none_of, "None of", write)
        _show(MODE, rule.match)
        st.segmented_control(
            "Match",
            MODES,
            key=MODE,
            required=True,
            help="word: whole words, without case and accents. substring: also inside words.",
            **write,
        )


def _chips(key: str, terms: Sequence[str], label: str, write: Given) -> None:
    chosen = list(dict.fromkeys(terms))
    _show(key, chosen)
    st.multiselect(
        label,
        chosen,
        key=key,
        accept_new_options=True,
        placeholder=TYPE,
        help=HELP[key if key in HELP else "group"],
        **write,
    )


HELP = {
    "group": "The question must contain one of these. Backspace removes the last one; a group "
    "without terms is removed.",
    NEW: "The first term makes a group of its own. Every group must be met.",
    ALL: "The question must contain each of these.",
    NONE: "The question must contain none of these.",
}


def _show(key: str, value: object) -> None:
    if st.session_state.get(key) != value:
        st.session_state[key] = value


def _write(chunk_id: str, n_groups: int, stored: str | None) -> None:
    """Bring the text in line with the form."""
    chips = [_terms(f"rule-group-{i}") for i in range(n_groups)]
    rule = Rule(
        contain_one_of=tuple(filter(None, (*chips, _terms(NEW)))),
        contain_all_of=_terms(ALL),
        contain_none_of=_terms(NONE),
        match=st.session_state[MODE],
    )
    asks = canonical(rule) not in ("{}", '{"match":"substring"}')
    saving.put(chunk_id, pretty(rule) if asks else "", stored)


def _terms(key: str) -> tuple[str, ...]:
    return tuple(term for term in map(whole, st.session_state.get(key, ())) if term.strip())
