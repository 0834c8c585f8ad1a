"""Many rules changed as one step: all or nothing, undone and redone anywhere in the history."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic, sleep

import pytest
from waiting import PATIENT_S

from ragfilter.errors import ConflictError, InputError, StoreError
from ragfilter.rules import edits, steps
from ragfilter.rules.journal import Journal
from ragfilter.rules.journal_rows import Entry

A, B, C = '{"contain":"a"}', '{"contain":"b"}', '{"contain":"c"}'


class Killed(BaseException):
    """The process ends here."""


class Store:
    """Rules in memory; `after_each` may raise between two writes of a bulk."""

    name = "rules"

    def __init__(self) -> None:
        self.stored: dict[str, str | None] = {"x": A, "y": None, "z": B}
        self.after_each: Callable[[], None] = lambda: None

    def rule(self, chunk_id: str) -> str | None:
        return self.stored[chunk_id]

    def rules(self, ids: Sequence[str]) -> dict[str, str | None]:
        return {i: self.stored[i] for i in ids if i in self.stored}

    def set_rules(self, rules: Mapping[str, str | None]) -> None:
        for chunk_id, rule in rules.items():
            self.stored[chunk_id] = rule
            self.after_each()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(f"sqlite:///{tmp_path / 'journal.db'}")
    yield journal
    journal.close()


@pytest.fixture
def store() -> Store:
    return Store()


BEFORE = {"x": A, "y": None, "z": B}
AFTER = {"x": C, "y": C, "z": B}


def save(store: Store, journal: Journal) -> int:
    made = steps.save_all(
        store, journal, rules={"x": C, "y": C, "z": B}, expected=BEFORE, who="ann"
    )
    assert [edit.chunk_id for edit in made] == ["x", "y"]
    return made[0].id


def test_a_step_is_saved_undone_and_redone_as_a_whole(store: Store, journal: Journal) -> None:
    first = save(store, journal)
    assert store.stored == AFTER
    (step,) = journal.steps("rules")
    assert (step.size, step.done, step.edit.id, step.edit.who) == (2, 2, first, "ann")
    steps.turn("undo", store, journal, edit_id=first, who="bob")
    assert store.stored == BEFORE
    assert [(s.edit.kind, s.size, s.done) for s in journal.steps("rules")] == [
        ("undo", 2, 2), ("edit", 2, 0),
    ]  # fmt: skip
    steps.turn("redo", store, journal, edit_id=first, who="bob")
    assert store.stored == AFTER
    assert journal.edited_rules("rules") == {"x": C, "y": C}
    with pytest.raises(InputError, match="No part of edit 1 is undone"):
        steps.turn("redo", store, journal, edit_id=first, who="bob")


def test_an_earlier_step_is_undone_unless_it_was_changed_since(
    store: Store, journal: Journal
) -> None:
    first = save(store, journal)
    later = steps.save_all(store, journal, rules={"z": C}, expected={"z": B}, who="ann")
    steps.turn("undo", store, journal, edit_id=first, who="ann")
    assert store.stored == {"x": A, "y": None, "z": C}
    steps.turn("redo", store, journal, edit_id=first, who="ann")
    edits.save(store, journal, chunk_id="y", rule=A, expected=C, who="bob")
    with pytest.raises(ConflictError, match="The rules of y were changed since"):
        steps.turn("undo", store, journal, edit_id=first, who="ann")
    assert store.stored == {"x": C, "y": A, "z": C}
    steps.turn("undo", store, journal, edit_id=first, who="ann", rest=True)
    assert store.stored == {"x": A, "y": A, "z": C}
    steps.turn("undo", store, journal, edit_id=later[0].id, who="ann")
    assert store.stored["z"] == B


def test_a_step_is_undone_although_a_chunk_is_gone_or_was_indexed_again(
    store: Store, journal: Journal
) -> None:
    first = save(store, journal)
    del store.stored["x"]
    with pytest.raises(ConflictError, match="x is no longer in the collection"):
        steps.turn("undo", store, journal, edit_id=first, who="ann")
    steps.turn("undo", store, journal, edit_id=first, who="ann", rest=True)
    assert store.stored == {"y": None, "z": B}
    store.stored["y"] = A
    with pytest.raises(ConflictError, match="All rules of this change were changed since"):
        steps.turn("redo", store, journal, edit_id=first, who="ann", rest=True)


def test_an_edit_with_later_ones_is_not_undone_though_its_text_is_back(
    store: Store, journal: Journal
) -> None:
    for before, after in ((None, A), (A, B), (B, A)):
        edits.save(store, journal, chunk_id="y", rule=after, expected=before, who="ann")
    with pytest.raises(ConflictError, match="The rules of y were changed since"):
        steps.turn("undo", store, journal, edit_id=1, who="ann")
    for left in (B, A, None):
        edits.turn("undo", store, journal, who="ann", chunk_id="y")
        assert store.stored["y"] == left


def test_an_edit_with_later_ones_is_not_redone_though_its_text_fits(
    store: Store, journal: Journal
) -> None:
    edits.save(store, journal, chunk_id="y", rule=A, expected=None, who="ann")
    edits.turn("undo", store, journal, who="ann")
    for before, after in ((None, B), (B, None)):
        edits.save(store, journal, chunk_id="y", rule=after, expected=before, who="ann")
    with pytest.raises(ConflictError, match="The rules of y were changed since"):
        steps.turn("redo", store, journal, edit_id=1, who="ann")


def test_redo_offers_nothing_that_an_earlier_edit_redone_has_overtaken(
    store: Store, journal: Journal
) -> None:
    for rule in (A, B):
        edits.save(store, journal, chunk_id="y", rule=rule, expected=None, who="ann")
        edits.turn("undo", store, journal, who="ann")
    steps.turn("redo", store, journal, edit_id=1, who="ann")
    assert journal.redoable("rules") is None
    assert journal.redoable("rules", "y") is None
    edits.turn("undo", store, journal, who="ann")
    assert edits.turn("redo", store, journal, who="ann").after == A


@pytest.mark.parametrize("seen", ["x", "y"])
def test_edits_of_other_chunks_are_as_if_they_were_not_there(
    store: Store, journal: Journal, seen: str
) -> None:
    save(store, journal)
    edits.save(store, journal, chunk_id="z", rule=C, expected=B, who="bob")
    (step,) = journal.steps("rules", among={seen})
    assert (step.edit.chunk_id, step.size, step.done) == (seen, 1, 1)
    assert journal.steps("rules", among={seen}, offset=1) == ()
    steps.turn("undo", store, journal, edit_id=step.edit.id, who="ann", among={seen})
    assert store.stored == AFTER | {seen: BEFORE[seen], "z": C}
    with pytest.raises(InputError, match="has no edit"):
        steps.turn("undo", store, journal, edit_id=step.edit.id, who="ann", among={"z"})


def test_one_chunk_of_a_step_is_undone_alone(store: Store, journal: Journal) -> None:
    first = save(store, journal)
    edits.turn("undo", store, journal, who="ann", chunk_id="x")
    assert store.stored == {"x": A, "y": C, "z": B}
    steps.turn("undo", store, journal, edit_id=first, who="ann")
    assert store.stored == BEFORE


@pytest.mark.parametrize(
    ("expected", "named"),
    [({"x": B, "y": None}, "x"), ({"x": B, "y": B}, "x, y")],
)
def test_a_conflict_names_the_chunks_and_writes_nothing(
    store: Store, journal: Journal, expected: dict[str, str | None], named: str
) -> None:
    with pytest.raises(ConflictError, match=f"The rules of {named} were changed since"):
        steps.save_all(store, journal, rules={"x": C, "y": C}, expected=expected, who="ann")
    assert store.stored == BEFORE
    assert journal.steps("rules") == ()


def test_a_chunk_that_is_gone_is_a_conflict(store: Store, journal: Journal) -> None:
    with pytest.raises(ConflictError, match="w is no longer in the collection"):
        steps.save_all(store, journal, rules={"x": C, "w": C}, expected={"x": A}, who="ann")
    assert store.stored == BEFORE


@pytest.mark.parametrize("writes", [0, 1, 2])
def test_a_step_that_was_killed_is_whole_or_not_at_all(
    store: Store, journal: Journal, writes: int
) -> None:
    left = writes

    def die() -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            raise Killed

    if writes:
        store.after_each = die
    else:
        store.set_rules = lambda rules: die()  # type: ignore[method-assign]
    with pytest.raises(Killed):
        save(store, journal)
    del store.after_each
    store.after_each = lambda: None
    if not writes:
        del store.set_rules
    settled = edits.recover(store, journal)
    whole = writes == 2
    assert {edit.state for edit in settled} == {"done" if whole else "rolled_back"}
    assert store.stored == (AFTER if whole else BEFORE)
    assert journal.unfinished() == ()
    assert journal.edited_rules("rules") == ({"x": C, "y": C} if whole else {})


def test_a_step_renews_its_time_while_it_writes(
    store: Store, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edits, "RENEW_S", 0.01)

    def wait() -> None:
        began, until = journal.unfinished()[0].at, monotonic() + PATIENT_S
        while all(edit.at == began for edit in journal.unfinished()):
            assert monotonic() < until
            sleep(0.01)

    store.after_each = wait
    save(store, journal)
    assert store.stored == AFTER


def test_a_step_that_others_took_back_is_not_called_saved(store: Store, journal: Journal) -> None:
    def others_start() -> None:
        edits.recover(store, journal)

    store.after_each = others_start
    with pytest.raises(ConflictError, match="another one took the change back"):
        save(store, journal)


def test_a_store_that_fails_half_way_is_taken_back(store: Store, journal: Journal) -> None:
    def fail() -> None:
        store.after_each = lambda: None
        raise StoreError("no room")

    store.after_each = fail
    with pytest.raises(StoreError, match=r"no room Nothing was saved\."):
        save(store, journal)
    assert store.stored == BEFORE
    assert journal.unfinished() == ()
    save(store, journal)


@pytest.mark.parametrize("whole", [True, False])
def test_a_step_that_stays_open_says_that_the_next_start_settles_it(
    store: Store, journal: Journal, whole: bool
) -> None:
    def fail(*_: object) -> None:
        raise StoreError("no room")

    with pytest.MonkeyPatch.context() as patch:
        if whole:
            patch.setattr(journal, "finish", fail)
        else:
            patch.setattr(store, "after_each", fail)
            patch.setattr(journal, "roll_back", fail)
        with pytest.raises(StoreError, match="finished or rolled back at the next start"):
            save(store, journal)
    assert journal.unfinished()
    edits.recover(store, journal)
    assert store.stored == (AFTER if whole else BEFORE)


def test_the_rules_at_the_last_export_are_known(store: Store, journal: Journal) -> None:
    save(store, journal)
    assert journal.edited_since_export("rules") == {"x": A, "y": None}
    assert journal.edited_since_export("rules", ["x", "z"]) == {"x": A}
    journal.mark_exported("rules", journal.last_edit("rules"))
    assert journal.edited_since_export("rules") == {}
    edits.save(store, journal, chunk_id="y", rule=A, expected=C, who="bob")
    edits.save(store, journal, chunk_id="y", rule=B, expected=A, who="bob")
    assert journal.edited_since_export("rules") == {"y": C}
    journal.mark_exported("rules", journal.last_edit("rules"))
    assert journal.edited_since_export("rules") == {}


def test_the_mark_tells_when_rules_edited_since_the_export_may_have_changed(
    store: Store, journal: Journal
) -> None:
    seen = [journal.export_mark("rules")]
    (pending,) = journal.begin([Entry("z", None, B)], who="bob", collection="rules")
    seen.append(journal.export_mark("rules"))
    journal.finish(pending)
    seen.append(journal.export_mark("rules"))
    journal.mark_exported("rules", pending.id)
    seen.append(journal.export_mark("rules"))
    assert len(set(seen)) == 4
    journal.mark_exported("others", pending.id)
    assert journal.export_mark("rules") == seen[-1]


def test_an_edit_made_after_the_rules_were_read_does_not_count_as_exported(
    store: Store, journal: Journal
) -> None:
    assert journal.last_edit("rules") == 0
    read = edits.save(store, journal, chunk_id="y", rule=A, expected=None, who="ada")
    assert read is not None
    assert journal.last_edit("rules") == read.id
    # Recorded, but possibly not stored yet.
    (pending,) = journal.begin([Entry("z", None, B)], who="bob", collection="rules")
    edits.save(store, journal, chunk_id="y", rule=B, expected=A, who="ada")
    assert journal.last_edit("rules") == read.id
    journal.finish(pending)
    journal.mark_exported("rules", read.id)
    assert journal.edited_since_export("rules") == {"z": None, "y": A}
