"""Change the rules of many chunks as one step, and undo or redo any step: all of it or nothing.

Source: docs/design.md#journal. The edits of a step are entered in one transaction, then written to
the store, then closed in one transaction. If the process is killed in between, all of them are
pending. `ragfilter.rules.edits.recover` then finishes the step if every rule had reached the store,
and otherwise rolls back those that had.

A large step takes minutes. The times of its edits are renewed meanwhile, so that other processes
leave it alone.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from functools import partial
from uuid import uuid4

from ragfilter.errors import Action, ConflictError, InputError
from ragfilter.protocols import RuleStore
from ragfilter.rules.edits import change
from ragfilter.rules.journal import Journal
from ragfilter.rules.journal_rows import Edit, Entry, Kind, State, Turn, turned
from ragfilter.rules.rule import stored_form

SHOWN = 3


def save_all(
    store: RuleStore,
    journal: Journal,
    *,
    rules: Mapping[str, str | None],
    expected: Mapping[str, str | None],
    who: str,
) -> tuple[Edit, ...]:
    """Store these rules (chunk id to JSON text, None for no rule) as one step.

    `expected` are the stored texts that the user saw. Returns the edits, empty if nothing had to
    change. Raises RuleError for an invalid rule, ConflictError naming the chunks whose rule is not
    the expected one, and StoreError. Nothing is changed then, unless a StoreError says that the
    next start finishes the step or rolls it back.
    """
    entries = [
        Entry(chunk_id, expected.get(chunk_id) or None, stored_form(rule))
        for chunk_id, rule in rules.items()
    ]
    return _change(store, journal, entries, who=who, kind="edit")


def turn(
    kind: Turn,
    store: RuleStore,
    journal: Journal,
    *,
    edit_id: int,
    who: str,
    among: Container[str] | None = None,
    rest: bool = False,
) -> tuple[Edit, ...]:
    """Undo an edit and all edits made together with it, anywhere in the history, or redo what was
    undone. With `among`, only edits of these chunks, as if the others did not exist. With `rest`,
    without the chunks that have changed since or are gone.

    Raises InputError if there is no such edit or none of it is in effect (or undone), ConflictError
    naming the chunks that have changed since, and StoreError. Nothing is changed then.
    """
    entries = plan(kind, store, journal, edit_id=edit_id, among=among, rest=rest)
    return _change(store, journal, entries, who=who, kind=kind)


def plan(
    kind: Turn,
    store: RuleStore,
    journal: Journal,
    *,
    edit_id: int,
    among: Container[str] | None = None,
    rest: bool = False,
) -> tuple[Entry, ...]:
    """What `turn` would change, rule by rule. Raises InputError and ConflictError as it does."""
    state: State = "done" if kind == "undo" else "undone"
    found = _step(store, journal, edit_id, among, state)
    entries = tuple(turned(kind, edit) for edit in found)
    return _unchanged(store, journal, found, entries, rest=rest)


def _change(
    store: RuleStore, journal: Journal, entries: Sequence[Entry], *, who: str, kind: Kind
) -> tuple[Edit, ...]:
    check = partial(_must_be, action="" if kind == "edit" else "rest")
    batch = uuid4().hex
    return change(store, journal, entries, who=who, kind=kind, check=check, batch=batch)


def _must_be(store: RuleStore, entries: Sequence[Entry], *, action: Action) -> None:
    wanted = {entry.chunk_id: entry.before for entry in entries}
    present = {i: rule or None for i, rule in store.rules(list(wanted)).items()}
    gone = [i for i in wanted if i not in present]
    changed = [i for i in wanted if i in present and present[i] != wanted[i]]
    if gone:
        raise ConflictError(
            f"{_named(gone, verb=' is' if len(gone) == 1 else ' are')} no longer in the "
            "collection. Nothing was written.",
            remedy="Leave it out." if len(gone) == 1 else "Leave them out.",
            action=action,
        )
    if changed:
        raise _changed_since(changed, action)


def _changed_since(ids: Sequence[str], action: Action) -> ConflictError:
    return ConflictError(
        f"The rules of {_named(ids, verb='')} were changed since. Nothing was written.",
        remedy="Look at them as they are now, and undo the later change first or leave them out.",
        action=action,
    )


def _named(ids: Sequence[str], *, verb: str) -> str:
    more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
    return f"{', '.join(ids[:SHOWN])}{more}{verb}"


def _step(
    store: RuleStore,
    journal: Journal,
    edit_id: int,
    among: Container[str] | None,
    state: State,
) -> list[Edit]:
    """The edits of a step that are in this state."""
    mine = [
        edit
        for edit in journal.step(edit_id)
        if edit.collection == store.name and (among is None or edit.chunk_id in among)
    ]
    if not mine:
        raise InputError(
            f"{store.name} has no edit {edit_id}.", remedy="Look it up in the history."
        )
    found = [edit for edit in mine if edit.kind == "edit" and edit.state == state]
    if not found:
        called = "in effect" if state == "done" else state
        raise InputError(
            f"No part of edit {edit_id} is {called}.", remedy=f"Choose an edit that is {called}."
        )
    return found


def _unchanged(
    store: RuleStore,
    journal: Journal,
    found: Sequence[Edit],
    entries: tuple[Entry, ...],
    *,
    rest: bool,
) -> tuple[Entry, ...]:
    """The entries, made of the edits `found`. Raises ConflictError for chunks that have changed
    since or are gone; with `rest`, leaves these out."""
    # The same text may be back. Without the edits in between, their undo would fail for ever.
    later = journal.changed_since(found[0])
    if rest:
        present = store.rules([entry.chunk_id for entry in entries])
        same = tuple(
            entry
            for entry in entries
            if entry.chunk_id not in later
            and entry.chunk_id in present
            and (present[entry.chunk_id] or None) == entry.before
        )
        if not same:
            raise ConflictError(
                "All rules of this change were changed since. Nothing was written.",
                remedy="Undo the later changes first.",
            )
        return same
    changed = [entry.chunk_id for entry in entries if entry.chunk_id in later]
    if changed:
        raise _changed_since(changed, "rest")
    _must_be(store, entries, action="rest")
    return entries
