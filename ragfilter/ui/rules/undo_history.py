"""Every change to rules, single and bulk, with its diff. Each can be undone and redone."""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import partial

import pandas as pd
import streamlit as st

from ragfilter.errors import OutcomeUnknown, RagfilterError
from ragfilter.rules import edits
from ragfilter.rules.journal import Step, Turn
from ragfilter.rules.rule import read_rule
from ragfilter.text.numbers import counted
from ragfilter.ui.kit import grid
from ragfilter.ui.kit.rule_editor import rule_effect, saving
from ragfilter.ui.kit.rule_editor.saving import DONE
from ragfilter.ui.kit.rule_editor.visible_collection import VisibleCollection
from ragfilter.ui.look import elements
from ragfilter.ui.look.prose import message
from ragfilter.ui.resources import CacheSpec
from ragfilter.ui.rules import many_rules
from ragfilter.ui.session import asking, state

PAGE, TITLE_WIDTH = 50, 35
TURNS: CacheSpec[dict[Turn, int]] = CacheSpec(8)


def draw_undo_redo(visible: VisibleCollection) -> None:
    """Draw the buttons that undo and redo the last change to the collection's rules."""
    among, journal = _among(visible), visible.resources.bench.journal
    key = (*visible.key, journal.export_mark(visible.collection))
    steps = visible.resources.cache(TURNS).of(key, lambda: _next_turns(journal.steps(visible.collection, among=among)))
    turns: tuple[tuple[Turn, str], ...] = (("undo", "Ctrl+Z"), ("redo", "Ctrl+Shift+Z"))
    for turn, keys in turns:
        off, label = turn not in steps, "Undo change" if turn == "undo" else "Redo"
        about = f"No rule change to {turn}." if off else f"{turn.capitalize()} the last change to rules ({keys})."
        go = partial(_go, visible, steps.get(turn, 0), turn)
        elements.button(label, f"rules-{turn}", go, icon=turn, disabled=off, shortcut=keys, about=about)


def _next_turns(steps: Sequence[Step]) -> dict[Turn, int]:
    """The edits to undo and redo next, from the steps of a collection, newest first."""
    turns: dict[Turn, int] = {}
    redone: set[int | None] = set()
    for step in steps:
        edit = step.edit
        if edit.kind == "redo":
            redone.add(edit.of)
        elif edit.kind == "undo" and edit.of in redone:
            redone.discard(edit.of)
        elif edit.kind == "undo" and edit.of is not None and edit.state == "done":
            turns.setdefault("redo", edit.of)
        elif edit.kind == "edit" and step.done:
            turns["undo"] = edit.id
            break
    return turns


def draw(visible: VisibleCollection) -> None:
    """Draw the list and the selected step."""
    journal, among = visible.resources.bench.journal, _among(visible)
    count = journal.count_steps(visible.collection, among=among)
    if not count:
        elements.empty("No rule has been edited yet.", "Every saved change is listed here.")
        return
    left, right = st.columns((1.2, 1), gap="medium")
    with left:
        page = grid.choose_page("history-page", count, PAGE)
        _table(visible, journal.steps(visible.collection, among=among, limit=PAGE, offset=page.start))
    with right, st.container(key="history-panel", border=True, gap="small"):
        _step(visible, state.session().rules.step)


def _among(visible: VisibleCollection) -> Container[str] | None:
    """The chunks whose edits are listed; deleted ones only if the viewer sees everything."""
    return None if visible.user.unrestricted else visible.chunks


def _table(visible: VisibleCollection, listed: Sequence[Step]) -> None:
    titles = visible.titles((step.edit.chunk_id for step in listed), TITLE_WIDTH)
    table = {
        "edit": [step.edit.id for step in listed],
        "when": [step.edit.at for step in listed],
        "who": [step.edit.who for step in listed],
        "what": [_what(step) for step in listed],
        "chunk": [t if s.size == 1 else counted(s.size, "rule") for s, t in zip(listed, titles, strict=True)],
    }
    widths = {"edit": 50, "what": 120, "chunk": 260}
    columns = {name: st.column_config.Column(width=width) for name, width in widths.items()}
    columns["who"] = st.column_config.Column(width=80, help="“Your name” in More settings; not the viewing user.")
    columns["when"] = st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm", width=120)
    ids = (str(step.edit.id) for step in listed)
    row = grid.draw_clickable(pd.DataFrame(table), ids, name="history", height=560, columns=columns)
    if row is not None:
        state.session().rules.step = listed[row].edit.id


def _what(step: Step) -> str:
    edit = step.edit
    if edit.kind != "edit":
        return f"{edit.kind} of {edit.of}"
    if edit.state in ("pending", "rolled_back"):
        return "did not happen" if edit.state == "rolled_back" else "under way"
    return "edit" if step.done == step.size else "edit, part" if step.done else "edit, undone"


def _step(visible: VisibleCollection, edit_id: int | None) -> None:
    among = _among(visible)
    step = () if edit_id is None else visible.resources.bench.journal.step(edit_id)
    of_collection = (edit for edit in step if edit.collection == visible.collection)
    visible_edits = [edit for edit in of_collection if among is None or edit.chunk_id in among]
    if not visible_edits:
        elements.empty("No change is open.", "Click a row.")
        return
    first = visible_edits[0]
    st.markdown(message(f"Edit {first.id} by {first.who}: {counted(len(visible_edits), 'rule')}."))
    states = {edit.state for edit in visible_edits if first.kind == "edit"}
    if states & {"done", "undone"}:
        _turn(visible, first.id, "undo" if "done" in states else "redo")
    diffs = [(visible.name(edit.chunk_id), read_rule(edit.before), read_rule(edit.after)) for edit in visible_edits]
    many_rules.draw_diffs(diffs, "history-changes")
    rule_effect.wait(visible)


def _turn(visible: VisibleCollection, edit_id: int, turn: Turn) -> None:
    bench = visible.resources.bench
    try:
        collection = bench.collection(visible.collection)
        entries = edits.plan_turn(turn, collection, bench.journal, edit_id=edit_id, among=_among(visible))
    except RagfilterError as error:
        elements.aside(f"{turn.capitalize()} is not possible: {error}")
        return
    sure = rule_effect.confirm(
        visible, {entry.chunk_id: read_rule(entry.after) for entry in entries}, f"history-{turn}-sure"
    )
    label, go = f"{turn.capitalize()} this change", partial(_go, visible, edit_id, turn)
    elements.button(label, f"history-{turn}", go, icon=turn, disabled=not sure, about="As one step.")


def _go(visible: VisibleCollection, edit_id: int, turn: Turn) -> None:
    bench, done = visible.resources.bench, DONE[turn]
    saving.show_outcome("", None)
    try:
        collection, among = bench.collection(visible.collection), _among(visible)
        changed = edits.turn(turn, collection, bench.journal, edit_id=edit_id, who=state.author(), among=among)
    except RagfilterError as error:
        failed = "" if isinstance(error, OutcomeUnknown) else f"Not {done}: "
        many_rules.put_outcome(f"{failed}{error}", good=False)
    else:
        many_rules.put_outcome(f"{done.capitalize()}: {counted(len(changed), 'rule')}.", good=True)
        asking.update_after_edits(visible.resources)
