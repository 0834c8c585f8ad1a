"""Save, undo and redo a chunk's rule: journal, then store, then journal again.

Source: docs/design.md#journal. An edit never overwrites a change that its author has not seen. If
the process is stopped at any point, it leaves an entry that `recover` can finish or roll back.

If two people edit a chunk at the same time, exactly one wins. The journal takes one pending entry
per chunk, and the owner of this entry compares the stored rule with the expected one before
writing. This holds between threads, and between processes that share a journal.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from types import EllipsisType

from ragfilter.errors import ConflictError, InputError, StoreError
from ragfilter.protocols import RuleStore
from ragfilter.rules.journal import Journal
from ragfilter.rules.journal_rows import Edit, Kind, Turn, turned
from ragfilter.rules.rule import stored_form

log = logging.getLogger(__name__)

# A pending edit this old belongs to no running call, because every store call has a shorter
# deadline, and a step of many calls renews the time of its edits.
STALE_S = 120.0


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
    return _change(store, journal, chunk_id, expected or None, stored_form(rule), who=who)


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
    batches: set[str] = set()
    for edit in journal.unfinished(store.name, chunk_id):
        if edit.at > latest and not journal.was_let_go(edit.id):
            continue
        if edit.batch is not None:
            if edit.batch not in batches:
                batches.add(edit.batch)
                settled += settle_batch(store, journal, edit.batch)
            continue
        try:
            present = _stored(store, edit.chunk_id)
        except StoreError as error:
            log.warning("edit %d of %s stays unfinished: %s", edit.id, edit.chunk_id, error)
            continue
        settled.append(_settle(journal, edit, present))
    return tuple(settled)


def settle_batch(store: RuleStore, journal: Journal, batch: str) -> tuple[Edit, ...]:
    """Settle edits that were made together. If all of them reached the store, they are finished;
    otherwise those that did are reverted, and all are rolled back. If the store fails, they stay
    pending."""
    edits = journal.batch(batch)
    try:
        present = store.rules([edit.chunk_id for edit in edits])
        there = {i: rule or None for i, rule in present.items()}
        if all(edit.chunk_id in there and there[edit.chunk_id] == edit.after for edit in edits):
            journal.finish_all(batch)
        else:
            arrived = {
                edit.chunk_id: edit.before
                for edit in edits
                if edit.chunk_id in there and there[edit.chunk_id] == edit.after
            }
            if arrived:
                store.set_rules(arrived)
            journal.roll_back_all(batch)
    except StoreError as error:
        log.warning("a change of %d rules stays unfinished: %s", len(edits), error)
        return ()
    return journal.batch(batch)


def _change(
    store: RuleStore,
    journal: Journal,
    chunk_id: str,
    before: str | None,
    after: str | None,
    *,
    who: str,
    kind: Kind = "edit",
    of: int | None = None,
) -> Edit | None:
    _must_be(store, chunk_id, before)
    if before == after:
        return None
    recover(store, journal, chunk_id=chunk_id, min_age_s=STALE_S)
    edit = journal.begin(
        who=who,
        collection=store.name,
        chunk_id=chunk_id,
        before=before,
        after=after,
        kind=kind,
        of=of,
    )
    try:
        return _write(store, journal, edit)
    except StoreError:
        journal.let_go(edit.id)
        raise


def _write(store: RuleStore, journal: Journal, edit: Edit) -> Edit:
    try:
        # Check again, now that nobody else can write.
        _must_be(store, edit.chunk_id, edit.before)
        store.set_rule(edit.chunk_id, edit.after)
    except ConflictError:
        journal.roll_back(edit.id)
        raise
    except StoreError as error:
        return _after_failure(store, journal, edit, error)
    return journal.finish(edit.id)


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
    entry = _change(
        store, journal, edit.chunk_id, made.before, made.after, who=who, kind=kind, of=edit.id
    )
    assert entry is not None, "an edit that changes nothing is never entered"
    return entry


def _after_failure(store: RuleStore, journal: Journal, edit: Edit, error: StoreError) -> Edit:
    """Settle an edit whose write failed. Raises `error` unless the write arrived anyway."""
    try:
        present = _stored(store, edit.chunk_id)
    except StoreError:
        # It stays pending until the store responds again.
        raise error from None
    settled = _settle(journal, edit, present)
    if settled.state != "done":
        raise error
    log.warning("the store reported a failure but holds the edit: %s", error)
    return settled


def _settle(journal: Journal, edit: Edit, present: str | None) -> Edit:
    if present == edit.after:
        return journal.finish(edit.id)
    if present != edit.before:
        log.warning(
            "edit %d is rolled back: the rule of %s is neither what it was before nor after",
            edit.id,
            edit.chunk_id,
        )
    return journal.roll_back(edit.id)


def _must_be(store: RuleStore, chunk_id: str, expected: str | None) -> None:
    if _stored(store, chunk_id) != expected:
        raise _conflict(chunk_id)


def _conflict(chunk_id: str) -> ConflictError:
    return ConflictError(
        f"The rule of {chunk_id} was changed by somebody else meanwhile.",
        remedy="Nothing was written. Look at the rule as it is now and repeat your change.",
    )


def _stored(store: RuleStore, chunk_id: str) -> str | None:
    return store.rule(chunk_id) or None
