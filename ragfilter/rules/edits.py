"""Save, undo and redo a chunk's rule: journal, then store, then journal again.

Source: docs/design.md#journal. An edit never overwrites a change that its author has not seen. If
the process is stopped at any point, it leaves an entry that `recover` can finish or roll back.

If two people edit a chunk at the same time, exactly one wins. The journal takes one pending entry
per chunk, and the owner of this entry compares the stored rule with the expected one before
writing. This holds between threads, and between processes that share a journal.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import EllipsisType

from ragfilter.errors import ConflictError, InputError, StoreError
from ragfilter.protocols import RuleStore
from ragfilter.rules.journal import Journal
from ragfilter.rules.journal_rows import Edit, Entry, Kind, Turn, turned
from ragfilter.rules.rule import stored_form

log = logging.getLogger(__name__)

# A pending edit this old belongs to no running call, because every store call has a shorter
# deadline, and the times of edits under way are renewed.
STALE_S = 120.0
RENEW_S = STALE_S / 4
NOTHING_SAVED = "Nothing was saved."
UNDECIDED = "The whole change is finished or rolled back at the next start."


def save(
    store: RuleStore,
    journal: Journal,
    *,
    chunk_id: str,
    rule: str | None,
    expected: str | None,
    who: str,
) -> Edit | None:
    """Store `rule` (JSON text; None or blank removes the rule) in its canonical form.

    `expected` is the stored text that the user saw. Returns the finished edit, or None if the rule
    is already stored. Raises RuleError if the rule is invalid, ConflictError if the stored text is
    not `expected` or another edit of the chunk is in progress, and StoreError. Nothing is changed
    then, unless the store or journal stops responding: the edit then stays pending until `recover`
    or the chunk's next edit.
    """
    entry = Entry(chunk_id, expected or None, stored_form(rule))
    made = change(store, journal, [entry], who=who, kind="edit", check=_must_be)
    return made[0] if made else None


def recover(
    store: RuleStore, journal: Journal, *, chunk_id: str | None = None, min_age_s: float = 0.0
) -> tuple[Edit, ...]:
    """Settle the collection's pending edits; call this at start-up. Returns the settled edits.

    An edit that reached the store is finished. One that did not is rolled back and not written
    again, because nobody was told that it was saved. If the store holds a third text, the edit is
    also rolled back, with a warning. If the rule cannot be read, the edit stays pending. Processes
    that share a store must leave each other's edits alone by setting `min_age_s`; edits that failed
    in this process are settled at any age.
    """
    settled: list[Edit] = []
    latest = datetime.now(UTC) - timedelta(seconds=min_age_s)
    seen: set[str | int] = set()
    for edit in journal.unfinished(store.name, chunk_id):
        step = edit.batch or edit.id
        if step not in seen and (edit.at <= latest or journal.was_let_go(edit.id)):
            seen.add(step)
            settled += settle(store, journal, edit)
    return tuple(settled)


def settle(store: RuleStore, journal: Journal, edit: Edit) -> tuple[Edit, ...]:
    """Settle an edit and those made together with it. If all of them reached the store, they are
    finished; otherwise those that did are reverted, and all are rolled back. If the store fails,
    they stay pending, and nothing is returned."""
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


def change(
    store: RuleStore,
    journal: Journal,
    entries: Sequence[Entry],
    *,
    who: str,
    kind: Kind,
    check: Callable[[RuleStore, Sequence[Entry]], None],
    batch: str | None = None,
) -> tuple[Edit, ...]:
    """Write the `entries` that change something, all or none; several need a `batch`. `check`
    raises ConflictError unless the store holds what they expect."""
    begun: tuple[Edit, ...] = ()
    settled: tuple[Edit, ...] = ()
    try:
        chunk_id = entries[0].chunk_id if batch is None else None
        recover(store, journal, chunk_id=chunk_id, min_age_s=STALE_S)
        check(store, entries)
        entries = [entry for entry in entries if entry.before != entry.after]
        if not entries:
            return ()
        begun = journal.begin(entries, who=who, collection=store.name, kind=kind, batch=batch)
        with _renewed(journal, begun[0]):
            try:
                # Check again, now that nobody else can write.
                check(store, entries)
                store.set_rules({entry.chunk_id: entry.after for entry in entries})
            except ConflictError:
                journal.roll_back(begun[0])
                raise
            except StoreError as error:
                settled = settle(store, journal, begun[0])
                if not settled or settled[0].state != "done":
                    raise
                log.warning("the store reported a failure but holds the edit: %s", error)
                return settled
            made = journal.finish(begun[0])
    except StoreError as error:
        undecided = begun and not settled
        for edit in begun if undecided else ():
            journal.let_go(edit.id)
        if batch is None:
            raise
        outcome = UNDECIDED if undecided else NOTHING_SAVED
        raise type(error)(
            f"{error.message} {outcome}", remedy=error.remedy, action=error.action
        ) from error
    if made[0].state == "rolled_back":
        raise ConflictError(
            "This process was suspended while it wrote, so another one took the change back. Some "
            "of its rules may be stored.",
            remedy="Look at the rules as they are now and repeat your change.",
        )
    return made


@contextmanager
def _renewed(journal: Journal, edit: Edit) -> Iterator[None]:
    """Renew the times of an edit and those made together with it until the block ends."""
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(RENEW_S):
            try:
                journal.touch(edit)
            except StoreError as error:
                log.warning("the time of a change under way was not renewed: %s", error)

    thread = threading.Thread(target=renew, name="ragfilter-step", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def turn(
    kind: Turn,
    store: RuleStore,
    journal: Journal,
    *,
    who: str,
    chunk_id: str | None = None,
    expected: str | EllipsisType | None = ...,
) -> Edit:
    """Undo the last edit of the collection, or of one chunk, restoring the exact text; or redo the
    edit that was undone last, unless another was saved since.

    `expected`, if given, is the stored text that the user saw. Raises InputError if there is
    nothing to undo or redo, ConflictError if the rule is not what the user saw or has changed
    since, and StoreError.
    """
    recover(store, journal, chunk_id=chunk_id, min_age_s=STALE_S)
    edit = journal.turnable(kind, store.name, chunk_id)
    if edit is None:
        first = "Save a change of a rule" if kind == "undo" else "Undo an edit"
        raise InputError(f"There is nothing to {kind}.", remedy=f"{first} first.")
    made = turned(kind, edit)
    if expected is not ... and made.before != (expected or None):
        raise _conflict(edit.chunk_id)
    (entered,) = change(store, journal, [made], who=who, kind=kind, check=_must_be)
    return entered


def _must_be(store: RuleStore, entries: Sequence[Entry]) -> None:
    for entry in entries:
        if (store.rule(entry.chunk_id) or None) != entry.before:
            raise _conflict(entry.chunk_id)


def _conflict(chunk_id: str) -> ConflictError:
    return ConflictError(
        f"The rule of {chunk_id} was changed by somebody else meanwhile.",
        remedy="Nothing was written. Look at the rule as it is now and repeat your change.",
    )
