"""The `query_must` editor of one chunk, used on every page: a rule as JSON or a form, with errors in place, findings
with their fix, save, undo and redo. The form reads and writes the editor's text, so both always agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from ragfilter.model import Chunk
from ragfilter.rules.journal import Turn
from ragfilter.rules.lint import Finding
from ragfilter.rules.rule import MODES, AnyRule, Rule, in_words, place_name, pretty_rule, read_rule, starter
from ragfilter.text.normalise import mend_characters
from ragfilter.ui.kit.rule_editor import llm_drafts, saving
from ragfilter.ui.kit.rule_editor.saving import EDITOR, Editing
from ragfilter.ui.look import elements
from ragfilter.ui.session import state, widget
from ragfilter.ui.session.state import Trouble

HEIGHT = 160
MAX_FINDINGS = 6
VIEWS = JSON, FORM = "JSON", "Form"
ALL, NONE, MODE = "rule-all", "rule-none", "rule-mode"
TURNS: dict[Turn, str] = {"undo": "Undo the last saved edit of this chunk.", "redo": "Redo the edit that was undone."}
JSON_HELP = (
    "All parts must hold: contain_one_of (one term from each group), contain_all_of, contain_none_of. match is word or "
    "substring. Empty means no rule."
)
HELP = {ALL: "The question must contain each of these.", NONE: "The question must contain none of these."}
GROUP = "The question must contain one of these. A group without terms is removed."
NEW = "Type terms to add a group. The question must match every group."
UNREADABLE = "This is the effect of the stored rule. The effect of your text appears once it can be read."


def draw(editing: Editing, beside: DeltaGenerator | None = None) -> None:
    """Draw the editor, and the effect of its text `beside` it or, by default, below."""
    chunk = editing.chunk
    busy = llm_drafts.collect(editing)
    unsaved, typed = state.unsaved_rule(chunk.id), saving.unfinished(chunk.id)
    drawn = pretty_rule(saving.base(chunk.id, chunk.rule)) if unsaved is None else unsaved.text
    state.session().rules.drawn = drawn
    text = drawn if typed is None else typed.text
    rule, trouble = read_rule(text.strip()), saving.outcome_of(chunk.id, Trouble)
    error = None if rule is None or isinstance(rule, Rule) else rule.error
    with st.container(key="rule-views", horizontal=True, vertical_alignment="center", gap="xsmall"):
        about = "JSON: the rule as stored. Form: its groups as rows of terms."
        view = elements.choice("Edit as", VIEWS, about, key="rule-view", default=JSON)
    if view == FORM:
        _form(chunk, rule or Rule(), disabled=busy)
        # Saving would read the previous text area.
        st.session_state.pop(widget.current(EDITOR), None)
    else:
        _json(chunk, drawn, error.place if error else "", disabled=busy)
    # This container stays in view, because it shows errors and the outcome of saving.
    with st.container(key="rule-foot", gap="small"):
        _buttons(editing, busy=busy)
        if trouble is not None:
            elements.draw_action_result(trouble.message, good=False)
            if trouble.conflict:
                _choose_version(editing, trouble)
        elif error is not None:
            elements.draw_action_result(in_words(error), good=False)
        elif outcome := saving.outcome_of(chunk.id, str):
            elements.draw_action_result(outcome, good=True)
        if edit := saving.pending(chunk.id):
            elements.draw_action_result(f"Not {saving.DONE[edit.act]} yet. {edit.harm}", good=False)
            anyway = partial(saving.perform, editing, edit.act, edit.expected, confirmed=True)
            elements.button(f"{edit.act.capitalize()} anyway", "rule-confirm", anyway)
    effect = beside or st.container(key="rule-effect", gap="small")
    saving.tell_restored(chunk)
    if trouble is not None and trouble.conflict:
        elements.draw('<p class="rf-caption">Stored rule; yours is still in the editor</p>')
        st.code(pretty_rule(trouble.stored) or "no rule", language="json")
    elif isinstance(rule, Rule):
        _findings(editing, rule)
    with effect:
        editing.draw_effect(rule if error is None else read_rule(chunk.rule))
        if error is not None:
            elements.aside(UNREADABLE)
    llm_drafts.draw_note(editing, busy=busy)


def _json(chunk: Chunk, text: str, wrong: str, *, disabled: bool) -> None:
    """Draw the rule as text, with the place `wrong` marked."""
    given = widget.key_and_callback(EDITOR, text, saving.set_unsaved, chunk.id, chunk.rule)
    hint = "No rule: query_must always keeps this chunk."
    st.text_area("query_must", text, height=HEIGHT, placeholder=hint, disabled=disabled, help=JSON_HELP, **given)
    typing = partial(saving.type_on, chunk.id, chunk.rule)
    elements.mount("kit/rule_editor/while_typing.js", key=saving.TYPING, data=chunk.id, on_typed_change=typing)
    elements.mount("kit/rule_editor/painting.js", key="rule-painting", data={"place": wrong})


def _form(chunk: Chunk, rule: AnyRule, *, disabled: bool) -> None:
    """Draw the form, with a row of chips for each group, or a hint if the text is unreadable."""
    if not isinstance(rule, Rule):
        elements.aside("The form shows the rule once the JSON can be read.")
        return
    fields = _fields(chunk.id, rule.contain_one_of)
    write = partial(_write, chunk, len(fields))
    with st.container(key="rule-form", gap="small"):
        # An empty field has the key of the group that it will become. It stays the same widget, so
        # further typing goes into that group.
        number = 0
        for i, group in enumerate(fields):
            number += bool(group)
            name = f"Group {number}" if group else "Another group" if len(fields) > 1 else "A group"
            _chips(f"rule-group-{i}", group, f"{name}: one of", write, disabled)
        _chips(ALL, rule.required, "All of", write, disabled)
        _chips(NONE, rule.contain_none_of, "None of", write, disabled)
        given = widget.key_and_callback(MODE, rule.match, write)
        about = "word: whole words in upper or lower case. substring: also inside words."
        st.segmented_control("Match", MODES, default=rule.match, required=True, disabled=disabled, help=about, **given)


def _fields(chunk_id: str, groups: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    """The groups, followed by an empty one. An emptied field keeps its place while the groups come
    from the form, because somebody may be typing in it."""
    known, n_fields = state.session().rules.fields
    fields = tuple(_terms(f"rule-group-{i}") for i in range(n_fields if known == chunk_id else 0))
    while fields and not fields[-1]:
        fields = fields[:-1]
    if tuple(filter(None, fields)) != groups:
        fields = groups
    state.session().rules.fields = (chunk_id, len(fields) + 1)
    return (*fields, ())


def _chips(name: str, terms: Sequence[str], label: str, write: Callable[[Any], None], disabled: bool) -> None:
    # Only the field's current terms are options. A removed term would otherwise be offered again
    # and could come back with the next key.
    options = list(dict.fromkeys(terms))
    given = widget.key_and_callback(name, options, write) | {"help": HELP.get(name, GROUP if terms else NEW)}
    hint = "Type a term and press Enter"
    st.multiselect(label, options, options, accept_new_options=True, placeholder=hint, disabled=disabled, **given)


def _write(chunk: Chunk, n_fields: int, _: Any) -> None:
    """Update the text from the form."""
    if state.session().rules.fields[0] != chunk.id:
        # The browser still shows another chunk's form.
        return
    rule = Rule().with_parts(
        contain_one_of=tuple(filter(None, (_terms(f"rule-group-{i}") for i in range(n_fields)))),
        contain_all_of=_terms(ALL),
        contain_none_of=_terms(NONE),
        match=widget.value_of(MODE),
    )
    saving.set_unsaved(rule.pretty if rule.terms else "", chunk.id, chunk.rule)


def _terms(name: str) -> tuple[str, ...]:
    return tuple(term for term in map(mend_characters, widget.value_of(name, ())) if term.strip())


def _buttons(editing: Editing, *, busy: bool) -> None:
    chunk, journal, act_on = editing.chunk, editing.resources.bench.journal, partial(saving.perform, editing)
    base = saving.base(chunk.id, chunk.rule)
    with elements.row("rule-actions", "top"):
        elements.button("Save", "rule-save", act_on, "save", base, type="primary", about="Saves the rule.")
        llm_drafts.draw_button(editing, busy=busy)
        for act, about in TURNS.items() if editing.undo_buttons else ():
            can_act = journal.turnable(act, editing.collection, chunk.id) is not None
            about = about if can_act else f"Nothing to {act}."
            label = "Undo save" if act == "undo" else "Redo"
            elements.button(label, f"rule-{act}", act_on, act, chunk.rule, disabled=not can_act, about=about)
        # Drawn last, so that no button moves when this one comes or goes.
        if state.unsaved_rule(chunk.id):
            elements.button("Discard", "rule-discard", saving.discard, chunk.id, about="Discards your unsaved text.")
        elif not chunk.rule:
            # Based on the rule that the author sees, not on a newer one.
            use = partial(saving.set_unsaved, starter(chunk.name), chunk.id, chunk.rule)
            elements.button("Template", "rule-template", use, about="Starts a rule from the title.")


def _findings(editing: Editing, rule: Rule) -> None:
    """Draw the linter's findings about the rule in the editor, each with a button that fixes it."""
    chunk = editing.chunk
    findings = editing.resources.checks.findings(replace(chunk, rule=rule.text))
    if rule == read_rule(chunk.rule):
        findings = (*findings, *editing.more)
    for number, finding in enumerate(findings[:MAX_FINDINGS]):
        _finding(chunk, number, finding)
    if len(findings) > MAX_FINDINGS:
        elements.aside(f"and {len(findings) - MAX_FINDINGS} more")


def _finding(chunk: Chunk, number: int, finding: Finding) -> None:
    place = f" <b>{elements.text(place_name(finding.place))}</b>" if finding.place else ""
    with elements.row(f"rule-finding-{number}"):
        elements.draw(
            f'<p class="rf-finding"><b>{finding.severity.capitalize()}</b>{place}: {elements.text(finding.message)}</p>'
        )
        if finding.fix is not None:
            about = "Puts the fixed rule into the editor. Nothing is saved."
            elements.button("Fix", f"rule-mend-{number}", saving.set_fixed, finding, chunk, about=about)


def _choose_version(editing: Editing, trouble: Trouble) -> None:
    """Draw the choice between both versions of a rule that somebody else has changed."""
    with elements.row(align="top"):
        about = "Discards your text."
        elements.button("Use the stored rule", "rule-take", saving.use_stored, editing.chunk.id, about=about)
        about = "Replaces the stored rule with the text in the editor."
        elements.button(
            "Overwrite with mine", "rule-overwrite", saving.perform, editing, "save", trouble.stored, about=about
        )
