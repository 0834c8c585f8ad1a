"""The `query_must` editor of one chunk, used on every page: JSON and form of the same rule, errors
at their place, findings with their fix, save, undo and redo."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import streamlit as st

from ragfilter.errors import RuleError
from ragfilter.model import Chunk, User
from ragfilter.rules.findings import Finding
from ragfilter.rules.rule import InvalidRule, read_rule, template
from ragfilter.rules.sibling import propose
from ragfilter.ui.kit.rule_editor import draft_note, drafting, form, recovery, saving
from ragfilter.ui.kit.rule_editor.saving import Guard, Trouble
from ragfilter.ui.look import elements, frame, html
from ragfilter.ui.session import state, widget
from ragfilter.ui.session.resources import Resources

HEIGHT = 190
MOST_FINDINGS, MOST_LISTED = 6, 60
VIEWS = JSON, FORM = "JSON", "Form"
Preview = Callable[[str | None], None]
"""Draws the effect of a rule, given in its stored form."""


@dataclass(frozen=True, slots=True)
class Editing:
    """A chunk whose rule is edited by `user`, in a collection of this version. `more` are findings
    about the stored rule that involve other rules."""

    chunk: Chunk
    collection: str
    version: str
    user: User
    resources: Resources
    preview: Preview
    guard: Guard
    more: Sequence[Finding] = ()


def draw(it: Editing, *, both: bool = False) -> None:
    """Draw the editor. With `both`, form and JSON are side by side if there is room; otherwise one
    at a time."""
    chunk, collection, resources = it.chunk, it.collection, it.resources
    busy = drafting.collect(chunk, collection)
    text = state.drafts().get(chunk.id, saving.shown(saving.base(chunk)))
    so_far = saving.unfinished(chunk.id, text)
    error = _error(so_far)
    view = None if both else _view()
    if view != JSON:
        form.draw(chunk.id, so_far, chunk.rule, disabled=busy)
    if view == FORM:
        # Saving would read a text area of before.
        st.session_state.pop(widget.current(saving.EDITOR), None)
    else:
        _json(chunk.id, text, chunk.rule, error.place if error else "", disabled=busy)
    text = so_far
    trouble = saving.last(chunk.id, Trouble)
    # This container stays in view, since errors and the outcome of saving are shown there.
    with st.container(key="rule-foot", gap="small"):
        if trouble is not None:
            _bad(html.text(trouble.message))
        elif error is not None:
            where = f"<b>{html.text(error.place)}</b> " if error.place else ""
            message = error.message.removeprefix(f"{error.place}: ")
            _bad(f"{where}{html.text(message)} {html.text(error.remedy)}")
        sound = trouble is None and error is None
        _doubt(it)
        _buttons(it, busy=busy, said=saving.last(chunk.id, str) if sound else None)
    recovery.draw(chunk, text)
    if trouble is not None and trouble.conflict:
        _conflict(it, trouble)
    elif sound:
        _findings(it, _stored(text))
        it.preview(_stored(text))
    note = draft_note.draw(chunk, collection, text, it.user, resources, busy=busy)
    if note is not None:
        draft_note.wait(note, chunk, collection, resources)


def _begin(it: Editing) -> None:
    """Put an initial rule into the editor, based on a sibling's rule if the user may see one."""
    chunk, catalogue = it.chunk, it.resources.bench.collection(it.collection).catalogue()
    others = (c for c in (catalogue or {}).values() if c.id != chunk.id and it.user.sees(c))
    sibling = propose(chunk.name, others)
    drafting.forget(chunk.id)
    # On the rule that the author saw, not on one that was saved since.
    saving.put(chunk.id, sibling.pretty if sibling else template(chunk.name), chunk.rule)


def is_changed(chunk: Chunk, rule: str | None) -> bool:
    """Whether `rule`, in the form in which it would be stored, differs from the chunk's rule."""
    return (rule or None) != _stored(chunk.rule)


def _stored(text: str | None) -> str | None:
    """The rule in the form in which it would be stored; an invalid one as it is."""
    rule = read_rule(text)
    return None if rule is None else rule.text


def _view() -> str:
    with st.container(key="rule-views", horizontal=True, vertical_alignment="center", gap="xsmall"):
        return elements.choice(
            "Edit as", VIEWS,
            "JSON: the rule as it is stored. Form: its groups as rows of terms.",
            key="rule-view", default=JSON,
        )  # fmt: skip


def _json(chunk_id: str, text: str, stored: str | None, wrong: str, *, disabled: bool) -> None:
    """Draw the rule as text, with what is at the place `wrong` marked."""
    given = widget.of(saving.EDITOR, text, saving.typed, chunk_id, stored)
    st.text_area(
        "query_must",
        text,
        height=HEIGHT,
        placeholder="No rule: this chunk always passes.",
        disabled=disabled,
        help="All parts must hold: contain_one_of (groups of alternatives), contain, "
        "contain_all_of, contain_none_of; match is word or substring. Empty means no rule.",
        **given,
    )
    frame.mount(
        "kit/rule_editor/while_typing.js",
        key=saving.TYPING,
        data=chunk_id,
        on_typed_change=partial(saving.type_on, chunk_id, stored),
    )
    frame.mount("kit/rule_editor/painting.js", key="rule-painting", data={"place": wrong})


def _buttons(it: Editing, *, busy: bool, said: str | None) -> None:
    """Draw the action buttons and `said`, the outcome of the last action."""
    chunk, journal = it.chunk, it.resources.bench.journal
    changed = chunk.id in state.drafts()
    with st.container(key="rule-actions", horizontal=True, gap="small"):
        st.button(
            "Save",
            key="rule-save",
            type="primary",
            on_click=saving.act,
            args=("save", chunk.id, saving.base(chunk), it.collection, it.guard),
            help="Saves the rule.",
        )
        st.button("Preview", key="rule-preview", help="Check the rule and show what would change.")
        draft_note.button(chunk, it.collection, it.user, it.resources, busy=busy)
        for act, can, about in (
            ("undo", journal.undoable, "Undo the last saved edit of this chunk."),
            ("redo", journal.redoable, "Redo the edit that was undone."),
        ):
            possible = can(it.collection, chunk.id) is not None
            st.button(
                act.capitalize(),
                key=f"rule-{act}",
                on_click=saving.act,
                args=(act, chunk.id, chunk.rule, it.collection, it.guard),
                disabled=not possible,
                help=about if possible else f"Nothing to {act}.",
            )
        # Last, so that no button moves when this one appears or disappears.
        if not chunk.rule and not changed:
            st.button(
                "Template",
                key="rule-template",
                on_click=_begin,
                args=(it,),
                help="A valid rule to start from: that of a chunk whose title differs in a number "
                "or a name, with this chunk's own in it; else the words of the title.",
            )
        elif changed:
            st.button(
                "Discard",
                key="rule-discard",
                on_click=saving.discard,
                args=(chunk.id,),
                help="Discard what was typed. It has not been saved.",
            )
        if said:
            html.draw(
                f'<p class="rf-verdict rf-good" role="status"><b>{html.text(said)}</b></p>',
                width="content",
            )


def _error(text: str) -> RuleError | None:
    """What is wrong with the text, if anything."""
    rule = read_rule(text)
    return rule.error if isinstance(rule, InvalidRule) else None


def _doubt(it: Editing) -> None:
    """Draw the confirmation that is needed before the rule is saved, undone or redone."""
    found = saving.doubt(it.chunk.id)
    if found is None:
        return
    _bad(f"<b>Not {saving.DONE[found.act]} yet.</b> {html.text(found.spoilt)}")
    st.button(
        f"{found.act.capitalize()} anyway",
        key="rule-confirm",
        on_click=saving.act,
        args=(found.act, it.chunk.id, found.expected, it.collection),
        help="Saves it even though labelled questions would lose relevant chunks.",
    )


def _findings(it: Editing, rule: str | None) -> None:
    """Draw the linter's findings about the rule in the editor, each with a button that fixes it."""
    if not rule:
        return
    chunk = it.chunk
    checks = it.resources.checks_of(it.collection, it.version, it.user)
    found = (
        *checks.findings(replace(chunk, rule=rule)),
        *(() if is_changed(chunk, rule) else it.more),
    )
    for number, finding in enumerate(found[:MOST_FINDINGS]):
        _finding(chunk, number, finding)
    if len(found) > MOST_FINDINGS:
        with st.expander(f"{len(found) - MOST_FINDINGS} more findings", key="rule-findings"):
            for number, finding in enumerate(found[MOST_FINDINGS:MOST_LISTED], start=MOST_FINDINGS):
                _finding(chunk, number, finding)


def _finding(chunk: Chunk, number: int, finding: Finding) -> None:
    place = f" <b>{html.text(finding.place)}</b>" if finding.place else ""
    with st.container(
        key=f"rule-finding-{number}", horizontal=True, vertical_alignment="center", gap="small"
    ):
        html.draw(
            f'<p class="rf-aside"><b>{finding.severity.capitalize()}</b>{place}: '
            f"{html.text(finding.message)}</p>"
        )
        if finding.fix is not None:
            st.button(
                "Fix",
                key=f"rule-mend-{number}",
                on_click=saving.put,
                args=(chunk.id, finding.fix.pretty if finding.fixed else "", chunk.rule),
                help="Puts the fixed rule into the editor. Nothing is saved.",
            )


def _conflict(it: Editing, trouble: Trouble) -> None:
    """Draw both versions of a rule that somebody else changed in the meantime."""
    by = f" (by {html.text(trouble.by)})" if trouble.by else ""
    html.draw(f'<p class="rf-caption">Stored rule{by}; yours is still in the editor</p>')
    st.code(saving.shown(trouble.stored) or "no rule", language="json")
    with st.container(horizontal=True, gap="small"):
        st.button(
            "Use the stored rule",
            key="rule-take",
            on_click=saving.take,
            args=(it.chunk.id,),
            help="Discard what was typed here.",
        )
        st.button(
            "Overwrite with mine",
            key="rule-overwrite",
            on_click=saving.act,
            args=("save", it.chunk.id, trouble.stored, it.collection, it.guard),
            help="Replace the stored rule with the text in the editor.",
        )


def _bad(inner: str) -> None:
    html.draw(f'<p class="rf-verdict rf-bad" role="alert">{inner}</p>')
