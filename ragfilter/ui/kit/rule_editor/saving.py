"""Unsaved rules, and saving, undoing and redoing one chunk's rule from the page. Typed text is an unsaved rule until it
is saved or discarded. A failure never loses it. The browser keeps a copy that nobody else sees, so a reload or a
restart of the server loses nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import streamlit as st

from ragfilter.errors import ConflictError, OutcomeUnknown, RagfilterError
from ragfilter.model import Chunk, User
from ragfilter.rules import edits
from ragfilter.rules.journal import Turn, turned
from ragfilter.rules.lint import Finding
from ragfilter.rules.rule import AnyRule, in_words, pretty_rule, read_rule
from ragfilter.text.normalise import mend_characters
from ragfilter.ui.look import elements
from ragfilter.ui.resources import Resources, open_resources
from ragfilter.ui.session import asking, state, widget
from ragfilter.ui.session.state import HarmfulEdit, Trouble, UnsavedRule

T = TypeVar("T")
Act = Turn | Literal["save"]
EDITOR, TYPING, KEPT = "rule-editor", "rule-typing", "rule-kept"
MAX_CHARS = 1_000_000
"""Maximum number of characters accepted from a browser."""
DONE: dict[Act, str] = {"save": "saved", "undo": "undone", "redo": "redone"}


@dataclass(frozen=True, slots=True)
class Editing:
    """A chunk whose rule `user` edits. `draw_effect` draws the effect of a rule. `harm_of` takes a chunk's id and a
    rule, and returns the harm that saving would do, in words. `more` has the findings about the stored rule that
    involve other rules. With `undo_buttons`, the editor has its own buttons to undo and redo."""

    chunk: Chunk
    collection: str
    user: User
    resources: Resources
    draw_effect: Callable[[AnyRule | None], None]
    harm_of: Callable[[str, AnyRule | None], str]
    more: Sequence[Finding] = ()
    undo_buttons: bool = True


def outcome_of(chunk_id: str, kind: type[T]) -> T | None:
    """The outcome of the last action on this chunk's rule, if it has this type."""
    of, outcome = state.session().rules.editor_outcome
    return outcome if of == chunk_id and isinstance(outcome, kind) else None


def show_outcome(chunk_id: str, outcome: Trouble | HarmfulEdit | str | None) -> None:
    """Show an outcome below the editor of a chunk, until the next action. None clears it, because an action begins.
    Either way, no text is unfinished any more."""
    state.session().rules.editor_outcome = (chunk_id, outcome)
    state.session().rules.unfinished = None


def unfinished(chunk_id: str) -> UnsavedRule | None:
    """The text that is being typed into a chunk's editor."""
    typed = state.session().rules.unfinished
    return typed[1] if typed is not None and typed[0] == chunk_id else None


def pending(chunk_id: str) -> HarmfulEdit | None:
    """The edit that waits for confirmation, while the editor still holds the same text."""
    edit = outcome_of(chunk_id, HarmfulEdit)
    return edit if edit and edit.unsaved == state.unsaved_rule(chunk_id) else None


@state.notice_errors()
def perform(editing: Editing, action: Act, expected: str | None, *, confirmed: bool = False) -> None:
    """Save, undo or redo unless that does harm, then update the result. `expected` is the rule that the user sees."""
    chunk_id, resources, unsaved = editing.chunk.id, open_resources(), state.unsaved_rule(editing.chunk.id)
    show_outcome(chunk_id, None)
    # The form has no text area. A replaced one may have reported the unsaved text before the browser drew the new one.
    text = widget.value_of(EDITOR)
    if unsaved and (text is None or text == state.session().rules.drawn):
        text = unsaved.text
    text = pretty_rule(expected) if text is None else text
    store, journal, who = resources.bench.collection(editing.collection), resources.bench.journal, state.author()
    try:
        after: str | None = text
        if action != "save":
            edit = journal.turnable(action, store.name, chunk_id)
            after = None if edit is None else turned(action, edit).after or ""
        harm = "" if confirmed or after is None else editing.harm_of(chunk_id, read_rule(after.strip()))
        if harm:
            if action == "save":
                store_unsaved(chunk_id, UnsavedRule(text, expected))
            show_outcome(chunk_id, HarmfulEdit(action, expected, state.unsaved_rule(chunk_id), harm))
            return
        outcome = f"{DONE[action].capitalize()}."
        if action == "save":
            if not edits.save(store, journal, chunk_id=chunk_id, rule=text, expected=expected, who=who):
                outcome = "Nothing to save."
            store_unsaved(chunk_id, None)
        else:
            edits.turn(action, store, journal, who=who, chunk_id=chunk_id, expected=expected)
            outcome += _rebase(chunk_id, expected, after)
        show_outcome(chunk_id, outcome)
    except RagfilterError as error:
        conflict = isinstance(error, ConflictError)
        stored = store.rule(chunk_id) if conflict else None
        failed = "" if isinstance(error, OutcomeUnknown) else f"Not {DONE[action]}: "
        show_outcome(chunk_id, Trouble(f"{failed}{in_words(error)}", conflict, stored))
        return
    asking.update_after_edits(resources)


def _rebase(chunk_id: str, seen: str | None, stored: str | None) -> str:
    """Rebase the unsaved text on the rule now `stored`, if it started from the one `seen`. Returns a note about it."""
    unsaved = state.unsaved_rule(chunk_id)
    if unsaved is None or unsaved.text == pretty_rule(stored):
        store_unsaved(chunk_id, None)
        return ""
    if unsaved.base == seen:
        store_unsaved(chunk_id, UnsavedRule(unsaved.text, stored or None))
    return " The text in the editor is not saved."


def base(chunk_id: str, rule: str | None) -> str | None:
    """The stored rule that the chunk's unsaved or unfinished text started from, so that saving does
    not overwrite a newer change unseen. Without either, the stored `rule`."""
    unsaved = state.unsaved_rule(chunk_id) or unfinished(chunk_id)
    return rule if unsaved is None else unsaved.base


def type_on(chunk_id: str, rule: str | None) -> None:
    """Show the effect of the text while it is being typed. It is not in the session yet, because replacing
    the editor would lose any text typed since. `rule` is the stored rule."""
    typed_for, text = st.session_state[TYPING].typed
    drawn = state.session().rules.drawn
    # Otherwise the browser still shows another chunk, or the editor has lost focus and its text is in the session.
    if typed_for == chunk_id and widget.value_of(EDITOR) == drawn:
        typed = UnsavedRule(mend_characters(text), base(chunk_id, rule))
        show_outcome(chunk_id, None)
        # If the text equals the drawn one, nothing is unfinished.
        state.session().rules.unfinished = (chunk_id, typed) if typed.text != drawn else None


def set_unsaved(text: str, chunk_id: str, rule: str | None) -> None:
    """Make `text` the unsaved rule of a chunk whose stored rule is `rule`, unless both are equal."""
    unsaved = UnsavedRule(mend_characters(text), base(chunk_id, rule))
    show_outcome(chunk_id, None)
    store_unsaved(chunk_id, None if unsaved.text == pretty_rule(rule) else unsaved)


def set_fixed(finding: Finding, chunk: Chunk) -> None:
    """Make the fix of a finding the unsaved rule of its chunk."""
    set_unsaved(finding.fixed.pretty if finding.fixed else "", chunk.id, chunk.rule)


def discard(chunk_id: str) -> None:
    """Start again from the stored rule."""
    show_outcome(chunk_id, None)
    store_unsaved(chunk_id, None)


def use_stored(chunk_id: str) -> None:
    """Discard the text and use the rule that somebody else stored."""
    discard(chunk_id)
    state.ask_again()


def store_unsaved(chunk_id: str, unsaved: UnsavedRule | None) -> None:
    """Keep the unsaved rule of a chunk of the current collection; None if there is none."""
    unsaved_rules, key = state.session().unsaved_rules, (state.session().collection, chunk_id)
    unsaved_rules.pop(key, None)
    if unsaved is not None:
        unsaved_rules[key] = unsaved


def tell_restored(chunk: Chunk) -> None:
    """Say if the unsaved text of a chunk comes from an earlier session."""
    if (state.session().collection, chunk.id) in state.session().rules.restored and state.unsaved_rule(chunk.id):
        changed = base(chunk.id, chunk.rule) != chunk.rule
        since = " The stored rule has changed since." if changed else ""
        words = f"Typed before you reopened this page, and not saved.{since}"
        elements.draw(f'<p class="rf-caption" role="status">{words}</p>')


def keep_in_browser() -> None:
    """Store unsaved rules and unfinished text in the browser, and restore earlier ones, on pages with the editor."""
    session = state.session()
    unsaved_rules = dict(session.unsaved_rules)
    if session.rules.unfinished is not None:
        chunk_id, typed = session.rules.unfinished
        unsaved_rules[session.collection, chunk_id] = typed
    data = json.dumps([[*key, *unsaved] for key, unsaved in unsaved_rules.items()]) if unsaved_rules else ""
    elements.mount(
        "kit/rule_editor/unsaved_rules.js", key=KEPT, data=[session.rules.browser, data], on_found_change=_restore
    )


def _restore() -> None:
    """Restore the unsaved rules from the browser. Text typed since takes precedence."""
    session, kept = state.session(), parse_unsaved(st.session_state[KEPT].found)
    new = kept.keys() - session.unsaved_rules.keys()
    session.unsaved_rules |= {key: kept[key] for key in new}
    session.rules.restored |= new


def parse_unsaved(kept: Any) -> dict[tuple[str, str], UnsavedRule]:
    """The unsaved rules that a browser has stored. It can send anything; invalid rows are ignored."""
    try:
        rows = json.loads(kept) if isinstance(kept, str) and len(kept) <= MAX_CHARS else []
    except (ValueError, RecursionError):
        return {}
    rows = rows if isinstance(rows, list) else []
    return {(row[0], row[1]): UnsavedRule(mend_characters(row[2]), row[3]) for row in rows if _is_unsaved_rule(row)}


def _is_unsaved_rule(row: Any) -> bool:
    kinds = (str, str, str, str | None)
    return isinstance(row, list) and len(row) == 4 and all(map(isinstance, row, kinds))
