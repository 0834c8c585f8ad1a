"""Every change of the collection's rules, single and bulk, with its diff. Each can be undone and
redone."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from ragfilter.errors import ConflictError, RagfilterError
from ragfilter.rules import steps
from ragfilter.rules.journal_rows import Step, Turn
from ragfilter.text.numbers import counted
from ragfilter.ui.kit import grid
from ragfilter.ui.kit.rule_editor import effect
from ragfilter.ui.kit.rule_editor.desk import Desk
from ragfilter.ui.kit.rule_editor.saving import DONE
from ragfilter.ui.look import elements
from ragfilter.ui.look.prose import message
from ragfilter.ui.rules import diff, outcome, pages
from ragfilter.ui.session import state
from ragfilter.ui.session.visit import author

PAGE, TITLE_WIDTH = 50, 35
OPEN, DOUBT = "history-open", "history-doubt"


@dataclass(frozen=True, slots=True)
class HarmfulUndo:
    """An undo, or a redo (`again`), that would do harm; `changes` are the rules it would store.
    `rest`: without those changed since. Without `changes`, that is all that is offered."""

    edit_id: int
    again: bool
    rest: bool = True
    changes: Mapping[str, str | None] | None = None


def draw(work: Desk) -> None:
    """Draw the list and the selected step."""
    journal, among = work.resources.bench.journal, _among(work)
    count = journal.count_steps(work.collection, among=among)
    if not count:
        elements.empty(
            "No rule has been edited yet.",
            "Every change that is saved is listed here, with who made it and what it changed.",
        )
        return
    left, right = st.columns((1.2, 1), gap="medium")
    with left:
        page = pages.choose("history-page", count, PAGE)
        _table(work, journal.steps(work.collection, among=among, limit=PAGE, offset=page.start))
    with right, st.container(key="history-panel", border=True, gap="small"):
        _step(work, st.session_state.get(OPEN))


def _among(work: Desk) -> Container[str] | None:
    """The chunks whose edits are listed. Edits of deleted chunks are listed only if the viewer sees
    everything."""
    return None if work.user.unrestricted else work.chunks


def _table(work: Desk, found: Sequence[Step]) -> None:
    column = st.column_config
    row = grid.picked(
        pd.DataFrame(
            {
                "edit": [step.edit.id for step in found],
                "when": [step.edit.at for step in found],
                "who": [step.edit.who for step in found],
                "what": [_what(step) for step in found],
                "chunk": [
                    counted(step.size, "rule")
                    if step.size > 1
                    else work.title(step.edit.chunk_id, TITLE_WIDTH)
                    for step in found
                ],
            }
        ),
        (str(step.edit.id) for step in found),
        name="history",
        height=560,
        columns={
            "edit": column.NumberColumn(width=50),
            "when": column.DatetimeColumn(format="YYYY-MM-DD HH:mm", width=120),
            "who": column.TextColumn(width=80),
            "what": column.TextColumn(width=120),
            "chunk": column.TextColumn(width=260),
        },
    )
    chosen = st.session_state.get(OPEN) if row is None else found[row].edit.id
    if chosen != st.session_state.get(OPEN):
        st.session_state[OPEN] = chosen
        _forget()


def _what(step: Step) -> str:
    edit = step.edit
    if edit.kind == "edit":
        if edit.state in ("pending", "rolled_back"):
            return "did not happen" if edit.state == "rolled_back" else "under way"
        return (
            "edit" if step.done == step.size else "edit, undone" if not step.done else "edit, part"
        )
    return f"{edit.kind} of {edit.of}"


def _forget() -> None:
    """Clear the outcome of the last undo or redo, because another action begins."""
    outcome.forget()
    st.session_state.pop(DOUBT, None)


def _step(work: Desk, edit_id: int | None) -> None:
    edits = () if edit_id is None else work.resources.bench.journal.step(edit_id)
    among = _among(work)
    seen = [
        edit
        for edit in edits
        if edit.collection == work.collection and (among is None or edit.chunk_id in among)
    ]
    if not seen:
        elements.empty(
            "No change is open.", "Click a row to see what it changed, and to undo or redo it."
        )
        return
    first = seen[0]
    st.markdown(message(f"Edit {first.id} by {first.who}: {counted(len(seen), 'rule')}."))
    outcome.draw()
    _doubt(work, first.id)
    states = {edit.state for edit in seen if first.kind == "edit"}
    with st.container(key="history-actions", horizontal=True, gap="small"):
        for kind, needed, about in (
            ("undo", "done", "Takes back the whole change. If any of its rules was changed since, "
             "those rules are named and nothing is taken back."),
            ("redo", "undone", "Brings back all of it that was undone."),
        ):  # fmt: skip
            st.button(
                f"{kind.capitalize()} this change",
                key=f"history-{kind}",
                icon=f":material/{kind}:",
                on_click=_go,
                args=(work, first.id, kind == "redo"),
                disabled=needed not in states,
                help=about,
            )
    changes = [(work.name(edit.chunk_id), edit.before, edit.after) for edit in seen]
    st.fragment(diff.draw_all)(changes, "history-changes")


def _doubt(work: Desk, edit_id: int) -> None:
    """Draw the confirmation for the open step, with what it would change; or the button that leaves
    out the rules that were changed since."""
    found: HarmfulUndo | None = st.session_state.get(DOUBT)
    if found is None or found.edit_id != edit_id:
        return
    turn = "Redo" if found.again else "Undo"
    if found.changes is None:
        st.button(
            f"{turn} the others",
            key="history-others",
            on_click=_go,
            args=(work, edit_id, found.again, True),
            help="Leaves the rules that were changed since as they are, and does the rest.",
        )
        return
    effect.of_changes(work, found.changes)
    progress = st.container()
    st.button(
        f"{turn} anyway",
        key="history-confirm",
        on_click=_go,
        args=(work, edit_id, found.again, found.rest, True),
        help="Proceeds even though labelled questions would lose relevant chunks.",
    )
    with progress:
        effect.wait(work)


def _go(work: Desk, edit_id: int, again: bool, rest: bool = False, sure: bool = False) -> None:
    """Undo the step, or redo it `again`. With `rest`, without the rules changed since. Asks for
    confirmation unless it is `sure`."""
    _forget()
    bench, among = work.resources.bench, _among(work)
    store, journal = bench.collection(work.collection), bench.journal
    kind: Turn = "redo" if again else "undo"
    word = DONE[kind]
    try:
        entries = steps.plan(kind, store, journal, edit_id=edit_id, among=among, rest=rest)
        changes = {entry.chunk_id: entry.after for entry in entries}
        spoilt = "" if sure else effect.guard_changes(work, changes)
        if spoilt:
            st.session_state[DOUBT] = HarmfulUndo(edit_id, again, rest, changes)
            outcome.put(f"Not {word} yet. {spoilt}", good=False)
            return
        made = steps.turn(
            kind, store, journal, edit_id=edit_id, who=author(), among=among, rest=rest
        )
    except ConflictError as error:
        if error.action == "rest" and not rest:
            st.session_state[DOUBT] = HarmfulUndo(edit_id, again)
        outcome.put(f"Not done: {error}", good=False)
    except RagfilterError as error:
        outcome.put(f"Not done: {error}", good=False)
    else:
        outcome.put(f"{word.capitalize()}: {counted(len(made), 'rule')}.", good=True)
        state.renew()
