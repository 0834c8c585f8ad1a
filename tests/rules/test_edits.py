"""Save, undo, redo and recovery: nothing is overwritten unseen, nothing is left half done."""

from __future__ import annotations

import logging
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragfilter.errors import ConflictError, InputError, RuleError, StoreError, StoreUnavailable
from ragfilter.model import Chunk
from ragfilter.rules.edits import recover, save, turn
from ragfilter.rules.journal import Journal
from ragfilter.rules.journal_rows import Edit
from ragfilter.stores.chroma.store import ChromaStore
from ragfilter.stores.copies import StoredRow

A, B, C = '{"contain":"a"}', '{"contain":"b"}', '{"contain":"c"}'


class FakeStore:
    """A store in memory; `before_write` and `after_write` may raise, or look at it."""

    name = "rules"

    def __init__(self, **rules: str | None) -> None:
        self.held = dict(rules)
        self.writes = 0
        self.before_write: Callable[[], None] = lambda: None
        self.after_write: Callable[[], None] = lambda: None
        self.before_read: Callable[[], None] = lambda: None

    def rule(self, chunk_id: str) -> str | None:
        self.before_read()
        if chunk_id not in self.held:
            raise StoreError(f"no chunk {chunk_id}")
        return self.held[chunk_id]

    def rules(self, ids: Sequence[str]) -> dict[str, str | None]:
        self.before_read()
        return {i: self.held[i] for i in ids if i in self.held}

    def set_rules(self, rules: Mapping[str, str | None]) -> None:
        self.before_write()
        self.held |= rules
        self.writes += 1
        self.after_write()


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


def put(
    store: FakeStore, journal: Journal, rule: str | None, *, expected: str | None, chunk: str = "c"
) -> Edit | None:
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


@pytest.mark.parametrize("nothing", [None, "", " \n"])
def test_a_blank_rule_removes_it(journal: Journal, nothing: str | None) -> None:
    store = FakeStore(c=A)
    put(store, journal, nothing, expected=A)
    assert store.held["c"] is None


def test_an_invalid_rule_is_refused_before_anything_is_touched(journal: Journal) -> None:
    store = FakeStore(c=A)
    with pytest.raises(RuleError) as caught:
        put(store, journal, '{"contain_one_of": [["a"], []]}', expected=A)
    assert caught.value.place == "contain_one_of[1]"
    assert (store.writes, states(journal)) == (0, [])


def test_a_rule_that_changed_meanwhile_is_not_overwritten(journal: Journal) -> None:
    store = FakeStore(c=B)
    with pytest.raises(ConflictError, match="by somebody else"):
        put(store, journal, C, expected=A)
    assert (store.held["c"], store.writes, states(journal)) == (B, 0, [])


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


def test_undo_and_redo(journal: Journal) -> None:
    odd = ' {"contain":  "A"} '
    store = FakeStore(c=odd)
    put(store, journal, A, expected=odd)
    put(store, journal, B, expected=A)
    turn("undo", store, journal, who="bob")
    assert store.held["c"] == A
    turn("undo", store, journal, who="bob")
    assert store.held["c"] == odd, "restored to the letter, canonical or not"
    assert turn("redo", store, journal, who="bob").after == A
    assert store.held["c"] == A
    assert turn("redo", store, journal, who="bob").who == "bob"
    assert store.held["c"] == B
    with pytest.raises(InputError, match="nothing to redo"):
        turn("redo", store, journal, who="bob")
    assert states(journal) == [
        "edit done",
        "edit done",
        "undo done",
        "undo done",
        "redo done",
        "redo done",
    ]


def test_a_save_ends_the_redo_chain(journal: Journal) -> None:
    store = FakeStore(c=None)
    put(store, journal, A, expected=None)
    turn("undo", store, journal, who="ann")
    redoable = journal.redoable(store.name)
    assert redoable is not None
    assert redoable.after == A
    put(store, journal, B, expected=None)
    assert journal.redoable(store.name) is None
    with pytest.raises(InputError, match="nothing to redo"):
        turn("redo", store, journal, who="ann")
    assert store.held["c"] == B


def test_undo_of_one_chunk_leaves_the_others(journal: Journal) -> None:
    store = FakeStore(c=None, d=None)
    put(store, journal, A, expected=None, chunk="c")
    put(store, journal, B, expected=None, chunk="d")
    assert turn("undo", store, journal, who="ann", chunk_id="c").chunk_id == "c"
    assert store.held == {"c": None, "d": B}
    undoable = journal.undoable(store.name)
    assert undoable is not None
    assert undoable.chunk_id == "d"
    assert journal.undoable(store.name, "c") is None
    with pytest.raises(InputError, match="nothing to undo"):
        turn("undo", store, journal, who="ann", chunk_id="c")


def test_undo_refuses_where_the_rule_was_changed_since(journal: Journal) -> None:
    store = FakeStore(c=None)
    put(store, journal, A, expected=None)
    store.held["c"] = C
    with pytest.raises(ConflictError):
        turn("undo", store, journal, who="ann")
    assert (store.held["c"], states(journal)) == (C, ["edit done"])


def test_undo_and_redo_refuse_an_edit_that_the_user_has_not_seen(journal: Journal) -> None:
    store = FakeStore(c=None)
    put(store, journal, A, expected=None)
    put(store, journal, B, expected=A)
    with pytest.raises(ConflictError, match="changed by somebody else"):
        turn("undo", store, journal, who="ann", expected=A)
    assert store.held["c"] == B
    turn("undo", store, journal, who="bob", expected=B)
    turn("undo", store, journal, who="bob", expected=A)
    with pytest.raises(ConflictError):
        turn("redo", store, journal, who="ann", expected=A)
    assert store.held["c"] is None
    assert turn("redo", store, journal, who="bob", expected="").after == A


def test_a_write_that_fails_is_rolled_back(journal: Journal) -> None:
    store = FakeStore(c=A)
    store.before_write = fail(StoreUnavailable("no answer"))
    with pytest.raises(StoreUnavailable, match="no answer"):
        put(store, journal, B, expected=A)
    assert (store.held["c"], states(journal)) == (A, ["edit rolled_back"])
    store.before_write = lambda: None
    assert put(store, journal, B, expected=A) is not None


def test_a_write_that_arrived_in_spite_of_an_error_is_done(
    journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    store = FakeStore(c=A)
    store.after_write = fail(StoreUnavailable("the answer was lost"))
    edit = put(store, journal, B, expected=A)
    assert edit is not None
    assert (edit.state, store.held["c"]) == ("done", B)
    assert "the answer was lost" in caplog.text


def test_where_the_store_cannot_tell_the_edit_waits_for_recovery(journal: Journal) -> None:
    store = FakeStore(c=A)

    def lost() -> None:
        store.before_read = fail(StoreUnavailable("gone"))
        raise StoreUnavailable("gone while writing")

    store.after_write = lost
    with pytest.raises(StoreUnavailable, match="while writing"):
        put(store, journal, B, expected=A)
    assert states(journal) == ["edit pending"]
    assert recover(store, journal) == ()
    assert states(journal) == ["edit pending"]
    store.before_read = lambda: None
    (edit,) = recover(store, journal)
    assert (edit.state, edit.after) == ("done", B)


@pytest.mark.parametrize(
    ("moment", "expected_rule", "state"),
    [("before_write", A, "rolled_back"), ("after_write", B, "done")],
)
def test_recovery_after_a_kill(
    journal: Journal, moment: str, expected_rule: str, state: str
) -> None:
    store = FakeStore(c=A)
    setattr(store, moment, fail(Killed()))
    with pytest.raises(Killed):
        put(store, journal, B, expected=A)
    assert states(journal) == ["edit pending"]
    restarted = FakeStore(**store.held)
    (edit,) = recover(restarted, journal)
    assert (edit.state, restarted.held["c"], restarted.writes) == (state, expected_rule, 0)
    assert recover(restarted, journal) == ()
    assert put(restarted, journal, C, expected=expected_rule) is not None


def test_recovery_of_a_killed_undo(journal: Journal) -> None:
    store = FakeStore(c=None)
    put(store, journal, A, expected=None)
    store.after_write = fail(Killed())
    with pytest.raises(Killed):
        turn("undo", store, journal, who="ann")
    recover(store, journal)
    assert states(journal) == ["edit undone", "undo done"]
    store.after_write = lambda: None
    turn("redo", store, journal, who="ann")
    assert store.held["c"] == A


def test_recovery_leaves_a_third_text_alone_and_says_so(
    journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
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

    threads = [
        threading.Thread(target=work, args=(f'{{"contain":"{i}"}}',)) for i in range(writers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(lost), store.writes) == (1, writers - 1, 1)
    assert store.held["c"] == won[0]
    assert states(journal).count("edit done") == 1


def test_a_second_save_while_the_first_one_writes_is_refused(journal: Journal) -> None:
    store = FakeStore(c=A)
    refused: list[str] = []

    def second() -> None:
        store.before_write = lambda: None
        with pytest.raises(ConflictError) as caught:
            put(store, journal, C, expected=A)
        refused.append(caught.value.remedy)

    store.before_write = second
    put(store, journal, B, expected=A)
    assert (store.held["c"], store.writes, len(refused)) == (B, 1, 1)


RULE_TEXTS = st.sampled_from([A, B, C, None])
STEPS = st.lists(
    st.tuples(st.sampled_from(["save", "undo", "redo"]), st.sampled_from("cd"), RULE_TEXTS),
    max_size=20,
)


@pytest.mark.slow
@settings(max_examples=40)
@given(STEPS, st.booleans())
def test_undo_and_redo_equal_two_stacks(
    steps: list[tuple[str, str, str | None]], by_chunk: bool
) -> None:
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
            assert (journal.undoable(store.name, scope) is not None) is bool(done)
            assert (journal.redoable(store.name, scope) is not None) is bool(undone)
        journal.close()


def test_against_a_real_chroma(tmp_path: Path, journal: Journal) -> None:
    store = ChromaStore.folder(tmp_path / "chroma")
    collection = store.create("rules", embedder="test")
    vector = np.array([1.0, 0.0], dtype=np.float32)
    collection.write([StoredRow(Chunk("c", text="a chunk", rule="not a rule"), vector)])
    save(collection, journal, chunk_id="c", rule=A, expected="not a rule", who="ann")
    assert collection.rule("c") == A
    save(collection, journal, chunk_id="c", rule=None, expected=A, who="ann")
    assert collection.rule("c") is None
    turn("undo", collection, journal, who="ann")
    turn("undo", collection, journal, who="ann")
    assert collection.rule("c") == "not a rule"
    assert collection.chunks(["c"])["c"].text == "a chunk"
    with pytest.raises(StoreError):
        save(collection, journal, chunk_id="unknown", rule=A, expected=None, who="ann")
    store.close()
