"""Save, undo, redo and recovery of one rule or many: nothing is overwritten unseen, nothing is left half done."""

from __future__ import annotations

import logging
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragfilter.errors import ConflictError, InputError, RuleError, StoreError, StoreUnavailable
from ragfilter.rules.edits import recover, save, save_all, turn
from ragfilter.rules.journal import Edit, Journal
from ragfilter.rules.rule import Rule

A, B, C = '{"contain":"a"}', '{"contain":"b"}', '{"contain":"c"}'
RULE_C = Rule(contain="c")


class FakeStore:
    """A store in memory. `before_read`, `before_write` and `after_each` rule written may raise, or look at it."""

    name = "rules"

    def __init__(self, **rules: str | None) -> None:
        self.held = dict(rules)
        self.writes = 0
        self.before_read: Callable[[], None] = lambda: None
        self.before_write: Callable[[], None] = lambda: None
        self.after_each: Callable[[], None] = lambda: None

    def rule(self, chunk_id: str) -> str | None:
        return self.rules([chunk_id])[chunk_id]

    def rules(self, ids: Sequence[str]) -> dict[str, str | None]:
        self.before_read()
        return {i: self.held[i] for i in ids if i in self.held}

    def set_rules(self, rules: Mapping[str, str | None]) -> None:
        self.before_write()
        self.writes += 1
        for chunk_id, rule in rules.items():
            self.held[chunk_id] = rule
            self.after_each()


class Killed(BaseException):
    """The process ends here."""


def fail(error: BaseException) -> Callable[[], None]:
    def raise_it() -> None:
        raise error

    return raise_it


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(f"sqlite:///{tmp_path / 'journal.db'}")
    yield journal
    journal.close()


def put(store: FakeStore, journal: Journal, rule: str | None, *, expected: str | None, chunk: str = "c") -> Edit | None:
    return save(store, journal, chunk_id=chunk, rule=rule, expected=expected, who="ann")


def states(journal: Journal) -> list[str]:
    return [f"{edit.kind} {edit.state}" for edit in reversed(journal.history("rules"))]


def test_save_stores_the_canonical_text_and_enters_the_edit(journal: Journal) -> None:
    store = FakeStore(c=None)
    edit = put(store, journal, '{ "match": "word", "contain": "a" }', expected=None)
    assert store.held["c"] == A
    assert edit is not None
    assert (edit.who, edit.collection, edit.chunk_id) == ("ann", "rules", "c")
    assert (edit.before, edit.after, edit.state) == (None, A, "done")


def test_an_invalid_rule_is_refused_before_anything_is_touched(journal: Journal) -> None:
    store = FakeStore(c=A)
    with pytest.raises(RuleError) as caught:
        put(store, journal, '{"contain_one_of": [["a"], []]}', expected=A)
    assert caught.value.place == "contain_one_of[1]"
    with pytest.raises(RuleError, match="limit is 1,000"):
        save_all(store, journal, rules={"c": Rule(contain_all_of=("a",) * 1001)}, expected={"c": A}, who="ann")
    assert (store.writes, states(journal)) == (0, [])


def test_a_change_between_look_and_write_is_not_overwritten(journal: Journal) -> None:
    store = FakeStore(c=A)
    reads = iter([A, B])
    store.before_read = lambda: store.held.update(c=next(reads))
    with pytest.raises(ConflictError):
        put(store, journal, C, expected=A)
    assert (store.held["c"], store.writes, states(journal)) == (B, 0, ["edit rolled_back"])


def test_saving_what_is_stored_is_no_edit(journal: Journal) -> None:
    store = FakeStore(c=A)
    assert put(store, journal, ' {"contain": "a"}', expected=A) is None
    assert put(FakeStore(c=None), journal, "", expected="") is None
    assert (store.writes, states(journal)) == (0, [])


def test_undo_and_redo_refuse_an_edit_that_the_user_has_not_seen(journal: Journal) -> None:
    store = FakeStore(c=None)
    put(store, journal, A, expected=None)
    put(store, journal, B, expected=A)
    with pytest.raises(ConflictError, match="Somebody else has changed"):
        turn("undo", store, journal, who="ann", expected=A)
    assert store.held["c"] == B
    turn("undo", store, journal, who="bob", expected=B)
    turn("undo", store, journal, who="bob", expected=A)
    with pytest.raises(ConflictError):
        turn("redo", store, journal, who="ann", expected=A)
    assert store.held["c"] is None
    assert turn("redo", store, journal, who="bob", expected="")[0].after == A


def test_a_write_that_arrived_in_spite_of_an_error_is_done(journal: Journal, caplog: pytest.LogCaptureFixture) -> None:
    store = FakeStore(c=A)
    store.after_each = fail(StoreUnavailable("the answer was lost"))
    edit = put(store, journal, B, expected=A)
    assert edit is not None
    assert (edit.state, store.held["c"]) == ("done", B)
    assert "the answer was lost" in caplog.text


def test_where_the_store_cannot_tell_the_edit_waits_for_recovery(journal: Journal) -> None:
    store = FakeStore(c=A)

    def lost() -> None:
        store.before_read = fail(StoreUnavailable("gone"))
        raise StoreUnavailable("gone while writing")

    store.after_each = lost
    with pytest.raises(StoreUnavailable, match="while writing"):
        put(store, journal, B, expected=A)
    assert recover(store, journal) == ()
    assert states(journal) == ["edit pending"]
    store.before_read = lambda: None
    (edit,) = recover(store, journal)
    assert (edit.state, edit.after) == ("done", B)


def test_recovery_leaves_a_third_text_alone_and_says_so(journal: Journal, caplog: pytest.LogCaptureFixture) -> None:
    store = FakeStore(c=A)
    store.before_write = fail(Killed())
    with pytest.raises(Killed):
        put(store, journal, B, expected=A)
    store.held["c"] = C
    with caplog.at_level(logging.WARNING):
        (edit,) = recover(store, journal)
    assert (edit.state, store.held["c"]) == ("rolled_back", C)
    assert "neither" in caplog.text


def test_recovery_spares_young_edits_of_other_processes(journal: Journal) -> None:
    store = FakeStore(c=A)
    store.before_write = fail(Killed())
    with pytest.raises(Killed):
        put(store, journal, B, expected=A)
    assert recover(store, journal, min_age_s=3600) == ()
    assert len(recover(store, journal)) == 1


def test_of_threads_that_save_the_same_chunk_exactly_one_wins(journal: Journal) -> None:
    store = FakeStore(c=None)
    writers = 8
    start = threading.Barrier(writers)
    won: list[str] = []
    lost: list[ConflictError] = []

    def work(text: str) -> None:
        start.wait()
        try:
            put(store, journal, text, expected=None)
            won.append(text)
        except ConflictError as error:
            lost.append(error)

    threads = [threading.Thread(target=work, args=(f'{{"contain":"{i}"}}',)) for i in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(lost), store.writes) == (1, writers - 1, 1)
    assert store.held["c"] == won[0]
    assert states(journal).count("edit done") == 1


RULE_TEXTS = st.sampled_from([A, B, C, None])
STEPS = st.lists(st.tuples(st.sampled_from(["save", "undo", "redo"]), st.sampled_from("cd"), RULE_TEXTS), max_size=20)


@pytest.mark.slow
@settings(max_examples=40)
@given(STEPS, st.booleans())
def test_undo_and_redo_equal_two_stacks(steps: list[tuple[str, str, str | None]], by_chunk: bool) -> None:
    store = FakeStore(c=None, d=None)
    done: list[tuple[str, str | None, str | None]] = []
    undone: list[tuple[str, str | None, str | None]] = []
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal(f"sqlite:///{folder}/journal.db")
        for action, chunk, rule in steps:
            chunk = "c" if by_chunk else chunk
            scope = chunk if by_chunk else None
            before = store.held[chunk]
            if action == "save" and rule != before:
                put(store, journal, rule, expected=before, chunk=chunk)
                done.append((chunk, before, rule))
                undone.clear()
            elif action == "undo" and done:
                undone.append(done.pop())
                turn("undo", store, journal, who="ann", chunk_id=scope)
                assert store.held[undone[-1][0]] == undone[-1][1]
            elif action == "redo" and undone:
                done.append(undone.pop())
                turn("redo", store, journal, who="ann", chunk_id=scope)
                assert store.held[done[-1][0]] == done[-1][2]
            assert (journal.turnable("undo", store.name, scope) is not None) is bool(done)
            assert (journal.turnable("redo", store.name, scope) is not None) is bool(undone)
        journal.close()


# several rules

BEFORE = {"x": A, "y": None, "z": B}
AFTER = {"x": C, "y": C, "z": B}


@pytest.fixture
def store() -> FakeStore:
    return FakeStore(**BEFORE)


def change_two(store: FakeStore, journal: Journal) -> int:
    made = save_all(
        store, journal, rules={"x": RULE_C, "y": RULE_C, "z": Rule(contain="b")}, expected=BEFORE, who="ann"
    )
    assert [edit.chunk_id for edit in made] == ["x", "y"]
    return made[0].id


def test_a_step_is_saved_undone_and_redone_as_a_whole(store: FakeStore, journal: Journal) -> None:
    first = change_two(store, journal)
    assert store.held == AFTER
    (step,) = journal.steps("rules")
    assert (step.size, step.done, step.edit.id, step.edit.who) == (2, 2, first, "ann")
    turn("undo", store, journal, edit_id=first, who="bob")
    assert store.held == BEFORE
    assert [(s.edit.kind, s.size, s.done) for s in journal.steps("rules")] == [("undo", 2, 2), ("edit", 2, 0)]
    turn("redo", store, journal, edit_id=first, who="bob")
    assert store.held == AFTER
    assert journal.edited_rules("rules") == {"x": C, "y": C}
    with pytest.raises(InputError, match="No part of edit 1 is undone"):
        turn("redo", store, journal, edit_id=first, who="bob")


def test_an_earlier_step_is_undone_unless_it_was_changed_since(store: FakeStore, journal: Journal) -> None:
    first = change_two(store, journal)
    later = save_all(store, journal, rules={"z": RULE_C}, expected={"z": B}, who="ann")
    turn("undo", store, journal, edit_id=first, who="ann")
    assert store.held == {"x": A, "y": None, "z": C}
    turn("redo", store, journal, edit_id=first, who="ann")
    save(store, journal, chunk_id="y", rule=A, expected=C, who="bob")
    with pytest.raises(ConflictError, match="The rules of y have changed since"):
        turn("undo", store, journal, edit_id=first, who="ann")
    assert store.held == {"x": C, "y": A, "z": C}
    turn("undo", store, journal, edit_id=later[0].id, who="ann")
    assert store.held["z"] == B


def test_a_step_is_undone_although_a_chunk_is_gone_or_was_indexed_again(store: FakeStore, journal: Journal) -> None:
    first = change_two(store, journal)
    del store.held["x"]
    turn("undo", store, journal, edit_id=first, who="ann")
    assert store.held == {"y": None, "z": B}
    store.held["y"] = A
    with pytest.raises(ConflictError, match="changed"):
        turn("redo", store, journal, edit_id=first, who="ann")


def test_an_edit_with_later_ones_is_not_undone_though_its_text_is_back(store: FakeStore, journal: Journal) -> None:
    for before, after in ((None, A), (A, B), (B, A)):
        save(store, journal, chunk_id="y", rule=after, expected=before, who="ann")
    with pytest.raises(ConflictError, match="The rules of y have changed since"):
        turn("undo", store, journal, edit_id=1, who="ann")
    for left in (B, A, None):
        turn("undo", store, journal, who="ann", chunk_id="y")
        assert store.held["y"] == left


@pytest.mark.parametrize("seen", ["x", "y"])
def test_edits_of_other_chunks_are_as_if_they_were_not_there(store: FakeStore, journal: Journal, seen: str) -> None:
    change_two(store, journal)
    save(store, journal, chunk_id="z", rule=C, expected=B, who="bob")
    (step,) = journal.steps("rules", among={seen})
    assert (step.edit.chunk_id, step.size, step.done) == (seen, 1, 1)
    assert journal.steps("rules", among={seen}, offset=1) == ()
    turn("undo", store, journal, edit_id=step.edit.id, who="ann", among={seen})
    assert store.held == AFTER | {seen: BEFORE[seen], "z": C}
    with pytest.raises(InputError, match="has no edit"):
        turn("undo", store, journal, edit_id=step.edit.id, who="ann", among={"z"})


@pytest.mark.parametrize(("expected", "named"), [({"x": B, "y": None}, "x"), ({"x": B, "y": B}, "x, y")])
def test_a_conflict_names_the_chunks_and_writes_nothing(
    store: FakeStore, journal: Journal, expected: dict[str, str | None], named: str
) -> None:
    with pytest.raises(ConflictError, match=f"The rules of {named} have changed since"):
        save_all(store, journal, rules={"x": RULE_C, "y": RULE_C}, expected=expected, who="ann")
    assert store.held == BEFORE
    assert journal.steps("rules") == ()


@pytest.mark.parametrize("writes", [0, 1, 2])
def test_a_step_that_was_killed_is_whole_or_not_at_all(store: FakeStore, journal: Journal, writes: int) -> None:
    left = iter(range(writes, 0, -1))

    def die() -> None:
        if next(left) == 1:
            raise Killed

    if writes:
        store.after_each = die
    else:
        store.before_write = fail(Killed())
    with pytest.raises(Killed):
        change_two(store, journal)
    store.after_each = store.before_write = lambda: None
    settled = recover(store, journal)
    whole = writes == 2
    assert {edit.state for edit in settled} == {"done" if whole else "rolled_back"}
    assert store.held == (AFTER if whole else BEFORE)
    assert journal.unfinished() == ()
    assert journal.edited_rules("rules") == ({"x": C, "y": C} if whole else {})


def test_a_step_that_others_took_back_is_not_called_saved(store: FakeStore, journal: Journal) -> None:
    def others_start() -> None:
        recover(store, journal)

    store.after_each = others_start
    with pytest.raises(ConflictError, match="another one took the change back"):
        change_two(store, journal)


def test_a_store_that_fails_half_way_is_taken_back(store: FakeStore, journal: Journal) -> None:
    def fail() -> None:
        store.after_each = lambda: None
        raise StoreError("no room")

    store.after_each = fail
    with pytest.raises(StoreError, match=r"no room Nothing was saved\."):
        change_two(store, journal)
    assert store.held == BEFORE
    assert journal.unfinished() == ()
    change_two(store, journal)


@pytest.mark.parametrize("whole", [True, False])
def test_a_step_that_stays_open_says_that_the_next_start_settles_it(
    store: FakeStore, journal: Journal, whole: bool
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
            change_two(store, journal)
    assert journal.unfinished()
    recover(store, journal)
    assert store.held == (AFTER if whole else BEFORE)
