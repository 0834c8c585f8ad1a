"""Every change of the collection's rules, single and bulk, with its diff. Each can be undone and
redone."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from ragfilter.errors import ConflictError, RagfilterError
from ragfilter.rules import edits
from ragfilter.rules.journal import Step, Turn
from ragfilter.text.numbers import counted
from ragfilter.ui.kit import grid
from ragfilter.ui.kit.rule_editor import rule_effect
from ragfilter.ui.kit.rule_editor.desk import Desk
from ragfilter.ui.kit.rule_editor.saving import DONE
from ragfilter.ui.look import say
from ragfilter.ui.look.prose import message
from ragfilter.ui.rules import change_preview
from ragfilter.ui.session import state
from ragfilter.ui.session.author import author

PAGE, TITLE_WIDTH = 50, 35
OPEN, UNSURE = "history-open", "history-doubt"


@dataclass(frozen=True, slots=True)
class HarmfulUndo:
    """An undo or redo of an edit that would do harm; `rules` are those it would store. `rest`:
    without those changed since. Without `rules`, that is all that is offered."""

    edit_id: int
    turn: Turn
    rest: bool = True
    rules: change_preview.Rules | None = None


def draw(work: Desk) -> None:
    """Draw the list and the selected step."""
    journal, among = work.resources.bench.journal, _among(work)
    count = journal.count_steps(work.collection, among=among)
    if not count:
        say.empty("No rule has been edited yet.", "Every saved change is listed here.")
        return
    left, right = st.columns((1.2, 1), gap="medium")
    with left:
        page = change_preview.page("history-page", count, PAGE)
        _table(work, journal.steps(work.collection, among=among, limit=PAGE, offset=page.start))
    with right, st.container(key="history-panel", border=True, gap="small"):
        _step(work, st.session_state.get(OPEN))


def _among(work: Desk) -> Container[str] | None:
    """The chunks whose edits are listed. Edits of deleted chunks are listed only if the viewer sees
    everything."""
    return None if work.user.unrestricted else work.chunks


def _table(work: Desk, listed: Sequence[Step]) -> None:
    column = st.column_config
    row = grid.picked(
        pd.DataFrame(
            {
                "edit": [step.edit.id for step in listed],
                "when": [step.edit.at for step in listed],
                "who": [step.edit.who for step in listed],
                "what": [_what(step) for step in listed],
                "chunk": [
                    counted(step.size, "rule")
                    if step.size > 1
                    else work.title(step.edit.chunk_id, TITLE_WIDTH)
                    for step in listed
                ],
            }
        ),
        (str(step.edit.id) for step in listed),
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
    if row is not None and listed[row].edit.id != st.session_state.get(OPEN):
        st.session_state[OPEN] = listed[row].edit.id
        _forget()


def _what(step: Step) -> str:
    edit = step.edit
    if edit.kind != "edit":
        return f"{edit.kind} of {edit.of}"
    if edit.state in ("pending", "rolled_back"):
        return "did not happen" if edit.state == "rolled_back" else "under way"
    return "edit" if step.done == step.size else "edit, part" if step.done else "edit, undone"


def _forget() -> None:
    """Clear the outcome of the last undo or redo, because another action begins."""
    change_preview.forget_outcome()
    st.session_state.pop(UNSURE, None)


def _step(work: Desk, edit_id: int | None) -> None:
    edits = () if edit_id is None else work.resources.bench.journal.step(edit_id)
    among = _among(work)
    visible = [
        edit
        for edit in edits
        if edit.collection == work.collection and (among is None or edit.chunk_id in among)
    ]
    if not visible:
        say.empty("No change is open.", "Click a row.")
        return
    first = visible[0]
    st.markdown(message(f"Edit {first.id} by {first.who}: {counted(len(visible), 'rule')}."))
    change_preview.draw_outcome()
    _confirmation(work, first.id)
    states = {edit.state for edit in visible if first.kind == "edit"}
    turns: tuple[tuple[Turn, str, str], ...] = (
        ("undo", "done", "Undoes the whole change, unless some of its rules were changed since."),
        ("redo", "undone", "Redoes all of it that was undone."),
    )
    with st.container(key="history-actions", horizontal=True, gap="small"):
        for turn, needed, about in turns:
            st.button(
                f"{turn.capitalize()} this change",
                key=f"history-{turn}",
                icon=f":material/{turn}:",
                on_click=_go,
                args=(work, first.id, turn),
                disabled=needed not in states,
                help=about,
            )
    diffs = [(work.name(edit.chunk_id), edit.before, edit.after) for edit in visible]
    st.fragment(change_preview.draw_diffs)(diffs, "history-changes")


def _confirmation(work: Desk, edit_id: int) -> None:
    """Draw the confirmation for the open step, with what it would change; or the button that leaves
    out the rules that were changed since."""
    unsure: HarmfulUndo | None = st.session_state.get(UNSURE)
    if unsure is None or unsure.edit_id != edit_id:
        return
    turn = unsure.turn.capitalize()
    if unsure.rules is None:
        st.button(
            f"{turn} the others",
            key="history-others",
            on_click=_go,
            args=(work, edit_id, unsure.turn, True),
            help="Leaves the rules that were changed since as they are.",
        )
        return
    rule_effect.of_changes(work, unsure.rules)
    progress = st.container()
    st.button(
        f"{turn} anyway",
        key="history-confirm",
        on_click=_go,
        args=(work, edit_id, unsure.turn, unsure.rest, True),
        help="Labelled questions would lose relevant chunks.",
    )
    with progress:
        rule_effect.wait(work)


def _go(work: Desk, edit_id: int, turn: Turn, rest: bool = False, sure: bool = False) -> None:
    """Undo or redo the step. With `rest`, without the rules changed since. Asks for confirmation
    unless it is `sure`."""
    _forget()
    bench, among, done = work.resources.bench, _among(work), DONE[turn]
    store, journal = bench.collection(work.collection), bench.journal
    try:
        entries = edits.plan_turn(turn, store, journal, edit_id=edit_id, among=among, rest=rest)
        rules = {entry.chunk_id: entry.after for entry in entries}
        if not sure and (harm := rule_effect.guard_changes(work, rules)):
            st.session_state[UNSURE] = HarmfulUndo(edit_id, turn, rest, rules)
            change_preview.put_outcome(f"Not {done} yet. {harm}", good=False)
            return
        turned = edits.turn(
            turn, store, journal, edit_id=edit_id, who=author(), among=among, rest=rest
        )
    except RagfilterError as error:
        if isinstance(error, ConflictError) and error.action == "rest" and not rest:
            st.session_state[UNSURE] = HarmfulUndo(edit_id, turn)
        change_preview.put_outcome(f"Not {done}: {error}", good=False)
    else:
        change_preview.put_outcome(
            f"{done.capitalize()}: {counted(len(turned), 'rule')}.", good=True
        )
        state.renew()
