"""Saves, undoes and redoes one chunk's rule from the page, and reports the outcome.

Typed text is a draft until it is saved or discarded. A failure never loses it, and the browser
keeps it for the next session (`kept.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

import streamlit as st

from ragfilter.errors import ConflictError, RagfilterError
from ragfilter.model import Chunk
from ragfilter.protocols import RuleStore
from ragfilter.rules import edits
from ragfilter.rules.journal import Journal
from ragfilter.rules.journal_rows import Turn, turned
from ragfilter.rules.rule import read_rule
from ragfilter.text.characters import whole
from ragfilter.ui.kit.rule_editor import drafting
from ragfilter.ui.look import prose
from ragfilter.ui.session import questions, state, widget
from ragfilter.ui.session.resources import Resources, open_resources
from ragfilter.ui.session.visit import author

T = TypeVar("T")
Act = Turn | Literal["save"]
Guard = Callable[[str, str], str]
"""Takes chunk id and text, and returns the harm that saving would do, in words; empty if none."""
EDITOR, TYPING, DRAWN, LAST = "rule-editor", "rule-typing", "rule-drawn", "rule-last"
"""LAST holds a chunk's id with what the last action on its rule came to: a Trouble, a Doubt, text
that is Unfinished, or what to say of it. Each action replaces it."""
DONE: dict[Act, str] = {"save": "saved", "undo": "undone", "redo": "redone"}


@dataclass(frozen=True, slots=True)
class Trouble:
    """An edit that failed. `stored` is the current rule, if that matters; `by` says who saved it
    and when, if known."""

    message: str
    conflict: bool = False
    stored: str | None = None
    by: str = ""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Text that is still being typed, and the stored rule it started from."""

    text: str
    base: str | None


@dataclass(frozen=True, slots=True)
class HarmfulEdit:
    """The harm that an action over the `expected` rule would do; `draft` is the text in the editor
    at that time."""

    act: Act
    expected: str | None
    draft: str | None
    spoilt: str


def last(chunk_id: str, kind: type[T]) -> T | None:
    """What the last action on this chunk's rule came to, if it is of this kind."""
    of, found = st.session_state.get(LAST, ("", None))
    return found if of == chunk_id and isinstance(found, kind) else None


def doubt(chunk_id: str) -> HarmfulEdit | None:
    """The confirmation that is pending, as long as the editor still holds the same text."""
    found = last(chunk_id, HarmfulEdit)
    return found if found and found.draft == state.drafts().get(chunk_id) else None


def act(
    act: Act, chunk_id: str, expected: str | None, collection: str, guard: Guard | None = None
) -> None:
    """Save, undo or redo, unless `guard` objects; then answer the open question with the changed
    rules."""
    forget()
    # While only the form is shown, there is no text area. One that was replaced before the browser
    # has drawn that may have reported the draft.
    text = widget.value_of(EDITOR)
    if text is None or text == st.session_state.get(DRAWN):
        text = state.drafts().get(chunk_id, shown(expected) if text is None else text)
    try:
        resources = open_resources()
        store = resources.bench.collection(collection)
        version = store.version
        journal, who = resources.bench.journal, author()
        after = text if act == "save" else _brought_back(act, store, journal, chunk_id)
        spoilt = "" if guard is None or after is None else guard(chunk_id, after)
        if spoilt:
            if act == "save":
                state.drafts()[chunk_id] = text
                state.bases()[chunk_id] = expected
            draft = state.drafts().get(chunk_id)
            st.session_state[LAST] = chunk_id, HarmfulEdit(act, expected, draft, spoilt)
            _warn(f"Not {DONE[act]} yet. {spoilt}")
            return
        said = f"{DONE[act].capitalize()}."
        if act == "save":
            if not edits.save(
                store, journal, chunk_id=chunk_id, rule=text, expected=expected, who=who
            ):
                said = "Nothing to save."
            discard(chunk_id)
        else:
            edits.turn(act, store, journal, who=who, chunk_id=chunk_id, expected=expected)
            said += _rebase(chunk_id, expected, after)
        st.session_state[LAST] = chunk_id, said
    except RagfilterError as error:
        told = f"Not {DONE[act]}: {error}"
        failed = Trouble(told)
        if isinstance(error, ConflictError):
            failed = _conflict(told, chunk_id, collection, resources)
        st.session_state[LAST] = chunk_id, failed
        _warn(told)
    else:
        try:
            questions.follow_edit(collection, version, resources)
        except RagfilterError:
            # Asking the question again shows what is wrong.
            state.renew()


def _rebase(chunk_id: str, seen: str | None, stored: str | None) -> str:
    """Let the draft start from the rule now `stored`, if it started from the one `seen` before.
    Returns what to say of the draft."""
    text = state.drafts().get(chunk_id)
    if text is None or text == shown(stored):
        discard(chunk_id)
        return ""
    if state.bases()[chunk_id] == seen:
        state.bases()[chunk_id] = stored or None
    return " The text in the editor is not saved."


def _brought_back(act: Turn, store: RuleStore, journal: Journal, chunk_id: str) -> str | None:
    """The rule that undo or redo would restore; None if there is nothing to restore."""
    edit = journal.turnable(act, store.name, chunk_id)
    return None if edit is None else turned(act, edit).after or ""


def _warn(message: str) -> None:
    """Show a toast, because a message below the editor may be outside the window."""
    st.toast(prose.message(message), icon=":material/warning:")


def forget() -> None:
    """Clear what came of the last action, because another one begins."""
    st.session_state.pop(LAST, None)


def base(chunk: Chunk) -> str | None:
    """The stored rule from which the chunk's draft or unfinished text started, so that saving does
    not overwrite a newer change unseen. Without either, the stored rule."""
    return _began(chunk.id, chunk.rule)


def _began(chunk_id: str, rule: str | None) -> str | None:
    if chunk_id in state.drafts():
        return state.bases().setdefault(chunk_id, rule)
    found = last(chunk_id, Unfinished)
    return rule if found is None else found.base


def typed(text: str, chunk_id: str, rule: str | None) -> None:
    """Store the editor's text as a draft. `rule` is the stored rule; equal text is not a draft."""
    put(chunk_id, whole(text), rule)


def type_on(chunk_id: str, rule: str | None) -> None:
    """Show the effect of the text while it is still being typed. It does not become a draft yet,
    because replacing the editor would lose what has been typed since. `rule` is the stored
    rule."""
    typed_for, text = st.session_state[TYPING].typed
    # Otherwise the browser still shows another chunk, or the editor has lost the focus and its text
    # is already a draft.
    if typed_for == chunk_id and widget.value_of(EDITOR) == st.session_state.get(DRAWN):
        base = _began(chunk_id, rule)
        forget()
        text = whole(text)
        # If the text is back to how it was drawn, nothing is unfinished.
        if text != st.session_state[DRAWN]:
            st.session_state[LAST] = chunk_id, Unfinished(text, base)


def unfinished(chunk_id: str, text: str) -> str:
    """The text being typed into a chunk's editor, or `text`, with which the editor was drawn, if
    nothing is being typed."""
    st.session_state[DRAWN] = text
    found = last(chunk_id, Unfinished)
    return text if found is None else found.text


def put(chunk_id: str, text: str, rule: str | None) -> None:
    """Make `text` the draft of a chunk whose stored rule is `rule`."""
    base = _began(chunk_id, rule)
    forget()
    if text == shown(rule):
        _drop(chunk_id)
    else:
        state.drafts()[chunk_id] = text
        state.bases()[chunk_id] = base


def discard(chunk_id: str) -> None:
    """Start again from the stored rule."""
    forget()
    drafting.forget(chunk_id)
    _drop(chunk_id)


def _drop(chunk_id: str) -> None:
    state.drafts().pop(chunk_id, None)
    state.bases().pop(chunk_id, None)


def every() -> dict[tuple[str, str], tuple[str, str | None]]:
    """Every draft by collection and chunk: its text and the stored rule it started from."""
    bases = st.session_state.get("rule-bases", {})
    return {
        (collection, chunk_id): (text, bases.get(collection, {}).get(chunk_id))
        for collection, drafts in state.session().drafts.items()
        for chunk_id, text in drafts.items()
    }


def restore(kept: Mapping[tuple[str, str], tuple[str, str | None]]) -> frozenset[tuple[str, str]]:
    """Restore drafts of an earlier session for chunks that have none now. Returns the restored
    ones."""
    new = kept.keys() - every().keys()
    for collection, chunk_id in new:
        text, rule = kept[collection, chunk_id]
        state.session().drafts.setdefault(collection, {})[chunk_id] = text
        state.bases(collection)[chunk_id] = rule
    return frozenset(new)


def take(chunk_id: str) -> None:
    """Discard the draft and use the rule that somebody else stored."""
    discard(chunk_id)
    state.renew()


def shown(rule: str | None) -> str:
    """A stored rule formatted for the editor; an invalid one is returned unchanged."""
    read = read_rule(rule)
    return "" if read is None else read.pretty


def _conflict(told: str, chunk_id: str, collection: str, resources: Resources) -> Trouble:
    try:
        stored = resources.bench.collection(collection).rule(chunk_id)
        last = resources.bench.journal.history(collection, chunk_id, limit=1)
    except RagfilterError as second:
        return Trouble(f"{told} {second}")
    # A rule stored in another way, for example by `index`, is not in the journal.
    by = next((f"{e.who}, {e.at:%Y-%m-%d %H:%M} UTC" for e in last if e.after == stored), "")
    return Trouble(told, conflict=True, stored=stored, by=by)
