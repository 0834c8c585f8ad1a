"""Save, undo and redo the rules of one chunk or many: all of a change or nothing.

Source: docs/design.md#journal. A change is entered in the journal in one transaction, then written to the store, then
closed in one transaction. It never overwrites what its author has not seen. If the process is stopped in between, all
edits of the change are pending. `recover` then finishes it if every rule had reached the store, and otherwise rolls
back those that had. If rules and journal are in one database, a change is one transaction (`store.transaction`).

If two people edit a chunk at the same time, exactly one wins, even in two processes that share a journal. The journal
takes one pending entry per chunk, and its owner compares the stored rule with the expected one before writing."""

from __future__ import annotations

import logging
from collections.abc import Container, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from types import EllipsisType
from uuid import uuid4

from ragfilter.errors import ConflictError, InputError, OutcomeUnknown, StoreError
from ragfilter.protocols import RuleStore
from ragfilter.rules.journal import Edit, Entry, Journal, Kind, State, Turn, turned
from ragfilter.rules.rule import RuleTexts, ValidChanges, parse
from ragfilter.text.numbers import first_of

log = logging.getLogger(__name__)

# No running call owns a pending edit this old: store calls have shorter deadlines, and changes take only minutes.
STALE_S = 600.0
SHOWN = 3
NOTHING_SAVED = "Nothing was saved."
UNDECIDED = "The whole change is finished or rolled back at the next start."


def save(
    store: RuleStore, journal: Journal, *, chunk_id: str, rule: str | None, expected: str | None, who: str
) -> Edit | None:
    """Store a rule's text as `save_all` does; None or blank removes it. Returns the edit, or None if it is already
    stored. Raises RuleError for an invalid rule."""
    read = parse(rule) if rule and rule.strip() else None
    edits = save_all(store, journal, rules={chunk_id: read}, expected={chunk_id: expected}, who=who)
    return edits[0] if edits else None


def save_all(
    store: RuleStore, journal: Journal, *, rules: ValidChanges, expected: RuleTexts, who: str
) -> tuple[Edit, ...]:
    """Store these rules as one change.

    `expected` are the stored texts that the user saw. Returns the edits, empty if nothing had to change. Raises
    RuleError for a rule that is too large, ConflictError if a stored text is not the expected one or another edit of a
    chunk is in progress, and StoreError. Nothing is changed then, unless a StoreError says that the next start finishes
    the change or rolls it back."""
    # A changed rule may be too large to be read again.
    entries = [Entry(i, expected.get(i) or None, parse(rule.text).text if rule else None) for i, rule in rules.items()]
    return _write(store, journal, entries, who=who, kind="edit")


def turn(
    kind: Turn,
    store: RuleStore,
    journal: Journal,
    *,
    who: str,
    edit_id: int | None = None,
    chunk_id: str | None = None,
    expected: str | EllipsisType | None = ...,
    among: Container[str] | None = None,
) -> tuple[Edit, ...]:
    """Undo or redo what `plan_turn` says, restoring the exact texts. `expected`, if given, is the stored text of the
    one chunk that the user saw. Raises InputError and ConflictError as `plan_turn` does, ConflictError if the rule is
    not what the user saw, and StoreError."""
    entries = plan_turn(kind, store, journal, edit_id=edit_id, chunk_id=chunk_id, among=among)
    if expected is not ... and entries[0].before != (expected or None):
        raise _changed_by_another(entries[0].chunk_id)
    return _write(store, journal, entries, who=who, kind=kind)


def plan_turn(
    kind: Turn,
    store: RuleStore,
    journal: Journal,
    *,
    edit_id: int | None = None,
    chunk_id: str | None = None,
    among: Container[str] | None = None,
) -> tuple[Entry, ...]:
    """The changes that an undo or redo would make, rule by rule.

    Undo reverts the last change of the collection, the last edit of one chunk, or any edit in the history, together
    with the edits of its step. Redo restores what was undone last, unless another edit was saved since. With `among`,
    only edits of these chunks count, as if the others did not exist. Chunks that are gone are left out.

    Raises InputError if there is nothing to undo or redo, or no such edit, and ConflictError naming the chunks that
    have changed since."""
    if edit_id is None:
        recover(store, journal, chunk_id=chunk_id, min_age_s=STALE_S)
        last = journal.turnable(kind, store.name, chunk_id)
        if last is None:
            first = "Save a change of a rule" if kind == "undo" else "Undo an edit"
            raise InputError(f"There is nothing to {kind}.", remedy=f"{first} first.")
        if chunk_id is not None or last.batch is None:
            return (turned(kind, last),)
        edit_id = last.id
    edits = _edits_in(store, journal, edit_id, among, "done" if kind == "undo" else "undone")
    # A later edit counts even if the text is the same again: otherwise, its undo would always fail.
    later = journal.changed_since(edits[0])
    changed = [edit.chunk_id for edit in edits if edit.chunk_id in later]
    if changed:
        raise _changed_since(changed)
    current_rules = store.rules([edit.chunk_id for edit in edits])
    entries = tuple(turned(kind, edit) for edit in edits if edit.chunk_id in current_rules or not current_rules)
    _check(store, entries)
    return entries


def recover(
    store: RuleStore, journal: Journal, *, chunk_id: str | None = None, min_age_s: float = 0.0
) -> tuple[Edit, ...]:
    """Settle the collection's pending edits; call this at start-up. Returns the settled edits.

    A change that reached the store is finished. Otherwise it is rolled back and not written again, because nobody was
    told that it was saved. If the store has a third text, the edit is also rolled back, with a warning. If the rule
    cannot be read, the edit stays pending. Processes that share a store set `min_age_s` to leave each other's edits
    alone; edits that failed in this process are settled at any age."""
    settled: list[Edit] = []
    latest = datetime.now(UTC) - timedelta(seconds=min_age_s)
    seen: set[str | int] = set()
    for edit in journal.unfinished(store.name, chunk_id):
        change = edit.batch or edit.id
        if change not in seen and (edit.at <= latest or edit.id in journal.let_go):
            seen.add(change)
            settled += _settle(store, journal, edit)
    return tuple(settled)


def _settle(store: RuleStore, journal: Journal, edit: Edit) -> tuple[Edit, ...]:
    """Settle an edit and the others of its step. If all of them reached the store, they are finished; otherwise those
    that did are reverted, and all are rolled back. If the store fails, they stay pending, and nothing is returned."""
    edits = journal.step(edit.id)
    try:
        present = {i: rule or None for i, rule in store.rules([e.chunk_id for e in edits]).items()}
        arrived = [e for e in edits if e.chunk_id in present and present[e.chunk_id] == e.after]
        if len(arrived) == len(edits):
            return journal.finish(edit)
        if arrived:
            store.set_rules({e.chunk_id: e.before for e in arrived})
        for e in edits:
            if present.get(e.chunk_id) not in (e.before, e.after):
                log.warning("edit %d is rolled back: %s has neither of its rules", e.id, e.chunk_id)
        return journal.roll_back(edit)
    except StoreError as error:
        log.warning("edit %d stays unfinished: %s", edit.id, error)
        return ()


def _write(store: RuleStore, journal: Journal, entries: Sequence[Entry], *, who: str, kind: Kind) -> tuple[Edit, ...]:
    """Write the `entries` with a change, all or none; in one transaction if rules and journal are in one database."""
    transaction = getattr(store, "transaction", None)
    begun: tuple[Edit, ...] = ()
    settled: tuple[Edit, ...] = ()
    try:
        if transaction is None:
            chunk_id = entries[0].chunk_id if len(entries) == 1 else None
            recover(store, journal, chunk_id=chunk_id, min_age_s=STALE_S)
        with nullcontext() if transaction is None else transaction():
            _check(store, entries)
            entries = [entry for entry in entries if entry.before != entry.after]
            if not entries:
                return ()
            batch = uuid4().hex if len(entries) > 1 else None
            begun = journal.begin(entries, who=who, collection=store.name, kind=kind, batch=batch)
            try:
                # Check again, now that nobody else can write.
                _check(store, entries)
                store.set_rules({entry.chunk_id: entry.after for entry in entries})
            except ConflictError:
                journal.roll_back(begun[0])
                raise
            except StoreError as error:
                settled = () if transaction else _settle(store, journal, begun[0])
                if not settled or settled[0].state != "done":
                    raise
                log.warning("the store reported a failure but holds the edit: %s", error)
                return settled
            finished = journal.finish(begun[0])
    except StoreError as error:
        undecided = begun and not settled and transaction is None
        journal.let_go.update(edit.id for edit in (begun if undecided else ()))
        if transaction is not None and isinstance(error, OutcomeUnknown):
            raise
        outcome = UNDECIDED if undecided else NOTHING_SAVED
        raise type(error)(f"{error.message} {outcome}", remedy=error.remedy, action=error.action) from error
    if finished[0].state == "rolled_back":
        raise ConflictError(
            "This process was suspended while writing, so another one took the change back. Some "
            "of its rules may be stored.",
            remedy="Look at the rules as they are now and repeat your change.",
        )
    return finished


def _edits_in(
    store: RuleStore, journal: Journal, edit_id: int, among: Container[str] | None, state: State
) -> list[Edit]:
    """The edits of this edit's step that are in this state."""
    step = (edit for edit in journal.step(edit_id) if edit.collection == store.name)
    edits = [edit for edit in step if among is None or edit.chunk_id in among]
    if not edits:
        raise InputError(f"{store.name} has no edit {edit_id}.", remedy="Look it up in the history.")
    in_state = [edit for edit in edits if edit.kind == "edit" and edit.state == state]
    if not in_state:
        called = "in effect" if state == "done" else state
        raise InputError(f"No part of edit {edit_id} is {called}.", remedy=f"Choose an edit that is {called}.")
    return in_state


def _check(store: RuleStore, entries: Sequence[Entry]) -> None:
    """Raise ConflictError unless the store has the rules that the entries expect."""
    expected = {entry.chunk_id: entry.before for entry in entries}
    present = {i: rule or None for i, rule in store.rules(list(expected)).items()}
    gone = [i for i in expected if i not in present]
    if gone:
        raise ConflictError(
            f"{first_of(gone, SHOWN)} {'is' if len(gone) == 1 else 'are'} no longer in the collection. "
            "Nothing was written.",
            remedy="Leave it out." if len(gone) == 1 else "Leave them out.",
        )
    changed = [i for i in expected if present[i] != expected[i]]
    if changed:
        raise _changed_by_another(changed[0]) if len(expected) == 1 else _changed_since(changed)


def _changed_by_another(chunk_id: str) -> ConflictError:
    return ConflictError(
        f"Somebody else has changed the rule of {chunk_id}.",
        remedy="Nothing was written. Look at the rule as it is now and repeat your change.",
    )


def _changed_since(ids: Sequence[str]) -> ConflictError:
    return ConflictError(
        f"The rules of {first_of(ids, SHOWN)} have changed since. Nothing was written.",
        remedy="Look at them as they are now, and undo the later change first.",
    )
