"""The `query_must` editor: check, preview, save, undo, redo; what was typed survives everything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import streamlit as st

from ragfilter.engine.replay import replay, with_rules
from ragfilter.errors import ConflictError, RagfilterError, RuleError
from ragfilter.model import Chunk, Result, User
from ragfilter.rules import edits
from ragfilter.rules.match import rule_book
from ragfilter.rules.rule import canonical, parse, pretty, template
from ragfilter.text.characters import whole
from ragfilter.ui.look import html
from ragfilter.ui.panels import draft_note, drafting
from ragfilter.ui.session import state
from ragfilter.ui.session.resources import Resources, open_resources
from ragfilter.ui.session.state import Asked

HEIGHT = 148
Act = Literal["save", "undo", "redo"]


@dataclass(frozen=True, slots=True)
class Trouble:
    """An edit that did not go through; `stored` is the rule as it is now, where that matters."""

    chunk_id: str
    message: str
    conflict: bool = False
    stored: str | None = None


def draw(result: Result, chunk: Chunk, asked: Asked, resources: Resources) -> None:
    """The editor of one chunk's rule."""
    busy = drafting.collect(chunk, asked, resources)
    drafts: dict[str, str] = state.drafts()
    shown = drafts.get(chunk.id, _pretty(chunk.rule))
    if st.session_state.get("rule-editor") != shown:
        st.session_state["rule-editor"] = shown
    st.text_area(
        "query_must",
        key="rule-editor",
        height=HEIGHT,
        placeholder="No rule: this chunk always passes.",
        on_change=_typed,
        args=(chunk.id, _pretty(chunk.rule)),
        disabled=busy,
        help="All parts must hold: contain_one_of (groups of alternatives), contain, "
        "contain_all_of, contain_none_of; match is word or substring. Empty means no rule.",
    )
    _buttons(chunk, asked, resources, result.user, busy=busy)
    if not _trouble(chunk.id):
        _preview(result, chunk, shown)
    place = draft_note.draw(chunk, asked, shown, result.user, resources, busy=busy)
    if place is not None:
        draft_note.wait(place, chunk, asked, resources)


def _buttons(chunk: Chunk, asked: Asked, resources: Resources, user: User, *, busy: bool) -> None:
    journal, name = resources.bench.journal, asked.collection
    can_undo = journal.undoable(name, chunk.id) is not None
    can_redo = journal.redoable(name, chunk.id) is not None
    changed = chunk.id in state.drafts()
    with st.container(key="rule-actions", horizontal=True, gap="small"):
        st.button(
            "Save",
            key="rule-save",
            type="primary",
            on_click=_act,
            args=("save", chunk.id, chunk.rule, asked),
            help="Saves the rule and asks the question again.",
        )
        st.button("Preview", key="rule-preview", help="Check the rule and show what would change.")
        draft_note.button(chunk, asked, user, resources, busy=busy)
        st.button(
            "Undo",
            key="rule-undo",
            icon=":material/undo:",
            on_click=_act,
            args=("undo", chunk.id, chunk.rule, asked),
            disabled=not can_undo,
            help="Undo the last saved edit of this chunk." if can_undo else "Nothing to undo.",
        )
        st.button(
            "Redo",
            key="rule-redo",
            icon=":material/redo:",
            on_click=_act,
            args=("redo", chunk.id, chunk.rule, asked),
            disabled=not can_redo,
            help="Redo the edit that was undone." if can_redo else "Nothing to redo.",
        )
        # Last, so that no button moves when it comes and goes.
        if not chunk.rule and not changed:
            st.button(
                "Template",
                key="rule-template",
                on_click=_draft,
                args=(chunk.id, template(chunk.name)),
                help="A valid rule to start from, made from the title.",
            )
        elif changed:
            st.button(
                "Discard",
                key="rule-discard",
                on_click=_draft,
                args=(chunk.id, None),
                help="Discard what was typed. It has not been saved.",
            )


def _preview(result: Result, chunk: Chunk, text: str) -> None:
    """Whether this query would keep the chunk, and what would change in the kept list."""
    try:
        rule = canonical(parse(text)) if text.strip() else None
    except RuleError as error:
        place = f"<b>{html.text(error.place)}</b> " if error.place else ""
        message = error.message.removeprefix(f"{error.place}: ")
        html.draw(
            f'<p class="rf-verdict rf-bad" role="alert">{place}{html.text(message)} '
            f"{html.text(error.remedy)}</p>"
        )
        return
    check = rule_book((rule,) if rule else ()).scan(result.query).check(rule)
    sign = html.outcome_sign("kept" if check.passes else "dropped", "query_must")
    verb = "passes" if check.passes else "fails"
    line = f"{sign}This question <b>{verb}</b> the rule: {html.text(_sentence(check.reason))}"
    if not result.settings.query_must.enabled:
        line += " The query_must layer is off, so nothing changes."
    elif (rule or None) != _canonical(chunk.rule):
        line += f" Not saved. {_changes(result, chunk, rule)}"
    html.draw(f'<p class="rf-verdict">{line}</p>')


def _sentence(reason: str) -> str:
    return reason if reason.endswith("…") else f"{reason}."


def _changes(result: Result, chunk: Chunk, rule: str | None) -> str:
    after = replay(with_rules(result.pool, {chunk.id: rule}), result.settings, result.user)
    old = {hit.id: hit.chunk.name for hit in result.kept}
    new = {hit.id: hit.chunk.name for hit in after.kept}
    enters = [i for i in new if i not in old]
    leaves = [i for i in old if i not in new]
    parts = []
    for word, ids in (("Enters", enters), ("Leaves", leaves)):
        if ids:
            parts.append(f"<b>{word}</b> the kept list: {html.text(', '.join(ids))}.")
    kept = f"{len(old)} → {len(new)} kept."
    return " ".join(parts) + f" {kept}" if parts else "The kept list does not change."


def _trouble(chunk_id: str) -> bool:
    """What went wrong with the last edit of this chunk, with both versions after a conflict."""
    trouble: Trouble | None = st.session_state.get("rule-trouble")
    if trouble is None or trouble.chunk_id != chunk_id:
        return False
    html.draw(f'<p class="rf-verdict rf-bad" role="alert">{html.text(trouble.message)}</p>')
    if trouble.conflict:
        html.draw('<p class="rf-caption">Stored rule; yours is still in the editor</p>')
        st.code(_pretty(trouble.stored) or "no rule", language="json")
        with st.container(horizontal=True, gap="small"):
            asked = state.asked()
            st.button(
                "Use the stored rule",
                key="rule-take",
                on_click=_take,
                args=(chunk_id,),
                help="Discard what was typed here.",
            )
            st.button(
                "Overwrite with mine",
                key="rule-overwrite",
                on_click=_act,
                args=("save", chunk_id, trouble.stored, asked),
                help="Replace the stored rule with the text in the editor.",
            )
    return True


def _act(act: Act, chunk_id: str, expected: str | None, asked: Asked) -> None:
    """Save, undo or redo; then the question is put to the changed collection."""
    st.session_state.pop("rule-trouble", None)
    text = st.session_state.get("rule-editor", "")
    try:
        resources = open_resources()
        store = resources.bench.collection(asked.collection)
        journal, who = resources.bench.journal, resources.deployment.user
    except RagfilterError as error:
        st.session_state["rule-trouble"] = Trouble(chunk_id, str(error))
        return
    try:
        if act == "save":
            edits.save(store, journal, chunk_id=chunk_id, rule=text, expected=expected, who=who)
        elif act == "undo":
            edits.undo(store, journal, who=who, chunk_id=chunk_id, expected=expected)
        else:
            edits.redo(store, journal, who=who, chunk_id=chunk_id, expected=expected)
    except ConflictError as error:
        st.session_state["rule-trouble"] = _conflict(error, chunk_id, asked, resources)
    except RuleError:
        pass  # The preview under the editor names the place.
    except RagfilterError as error:
        st.session_state["rule-trouble"] = Trouble(chunk_id, str(error))
    else:
        state.drafts().pop(chunk_id, None)
        drafting.forget(chunk_id)
        state.renew()


def _conflict(error: ConflictError, chunk_id: str, asked: Asked, resources: Resources) -> Trouble:
    stored = None
    try:
        stored = resources.bench.collection(asked.collection).rule(chunk_id)
    except RagfilterError as second:
        return Trouble(chunk_id, f"{error} {second}")
    return Trouble(chunk_id, str(error), conflict=True, stored=stored)


def _typed(chunk_id: str, stored: str) -> None:
    text = whole(st.session_state["rule-editor"])
    st.session_state.pop("rule-trouble", None)
    if text == stored:
        state.drafts().pop(chunk_id, None)
    else:
        state.drafts()[chunk_id] = text


def _draft(chunk_id: str, text: str | None) -> None:
    st.session_state.pop("rule-trouble", None)
    drafting.forget(chunk_id)
    if text is None:
        state.drafts().pop(chunk_id, None)
    else:
        state.drafts()[chunk_id] = text


def _take(chunk_id: str) -> None:
    _draft(chunk_id, None)
    state.renew()


def _canonical(rule: str | None) -> str | None:
    try:
        return canonical(parse(rule)) if rule else None
    except RuleError:
        return rule


def _pretty(rule: str | None) -> str:
    """A stored rule as the editor shows it; one that cannot be read stays as it is."""
    if not rule:
        return ""
    try:
        return pretty(parse(rule))
    except RuleError:
        return rule
