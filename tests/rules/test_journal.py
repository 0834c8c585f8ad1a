"""The journal: entries, their states, and what can be undone or redone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ragfilter.errors import ConflictError
from ragfilter.rules.journal import Edit, Entry, Journal, Kind


@pytest.fixture
def journal(book_url: str) -> Iterator[Journal]:
    journal = Journal(book_url)
    yield journal
    journal.close()


def enter(journal: Journal, chunk: str = "c", *, kind: Kind = "edit", of: int | None = None) -> Edit:
    entry = Entry(chunk, None, "{}", of)
    return journal.begin([entry], who="ann", collection="rules", kind=kind)[0]


def done(journal: Journal, chunk: str = "c", *, kind: Kind = "edit", of: int | None = None) -> Edit:
    return journal.finish(enter(journal, chunk, kind=kind, of=of))[0]


def test_a_chunk_has_one_pending_edit(journal: Journal) -> None:
    first = enter(journal, "c")
    with pytest.raises(ConflictError, match="under way"):
        enter(journal, "c")
    enter(journal, "d")
    journal.roll_back(first)
    assert enter(journal, "c").state == "pending"


def test_what_is_settled_stays_settled(journal: Journal) -> None:
    edit = enter(journal)
    journal.roll_back(edit)
    assert journal.finish(edit)[0].state == "rolled_back"
    assert journal.roll_back(done(journal))[0].state == "done"
    assert journal.step(99) == ()


def undoable(journal: Journal, chunk: str | None = None) -> int | None:
    edit = journal.turnable("undo", "rules", chunk)
    return edit and edit.id


def redoable(journal: Journal, chunk: str | None = None) -> int | None:
    edit = journal.turnable("redo", "rules", chunk)
    return edit and edit.id


def test_a_save_elsewhere_ends_the_collections_chain_but_not_the_chunks(journal: Journal) -> None:
    done(journal, "a")
    done(journal, "a", kind="undo", of=1)
    assert (redoable(journal), redoable(journal, "a"), redoable(journal, "b")) == (1, 1, None)
    done(journal, "b")
    assert (redoable(journal), redoable(journal, "a"), redoable(journal, "b")) == (None, 1, None)
    assert (undoable(journal), undoable(journal, "a")) == (3, None)


A, B, C = '{"contain":"a"}', '{"contain":"b"}', '{"contain":"c"}'


def change(journal: Journal, *entries: Entry) -> int:
    return journal.finish(begin(journal, *entries))[0].id


def begin(journal: Journal, *entries: Entry) -> Edit:
    batch = "together" if len(entries) > 1 else None
    return journal.begin(entries, who="bob", collection="rules", batch=batch)[0]


def test_the_rules_at_the_last_export_are_known(journal: Journal) -> None:
    change(journal, Entry("x", A, C), Entry("y", None, C))
    assert journal.edited_since_export("rules") == {"x": A, "y": None}
    assert journal.edited_since_export("rules", ["x", "z"]) == {"x": A}
    journal.mark_exported("rules", journal.last_edit("rules"))
    assert journal.edited_since_export("rules") == {}
    change(journal, Entry("y", C, A))
    change(journal, Entry("y", A, B))
    assert journal.edited_since_export("rules") == {"y": C}
    journal.mark_exported("rules", journal.last_edit("rules"))
    assert journal.edited_since_export("rules") == {}


def test_the_mark_changes_whenever_the_rules_edited_since_the_export_may_have(journal: Journal) -> None:
    marks = [journal.export_mark("rules")]
    pending = begin(journal, Entry("z", None, B))
    marks.append(journal.export_mark("rules"))
    journal.finish(pending)
    marks.append(journal.export_mark("rules"))
    journal.mark_exported("rules", pending.id)
    marks.append(journal.export_mark("rules"))
    assert len(set(marks)) == 4
    journal.mark_exported("others", pending.id)
    assert journal.export_mark("rules") == marks[-1]


def test_an_edit_made_after_the_rules_were_read_does_not_count_as_exported(journal: Journal) -> None:
    assert journal.last_edit("rules") == 0
    exported = change(journal, Entry("y", None, A))
    assert journal.last_edit("rules") == exported
    # Recorded, but possibly not stored yet.
    pending = begin(journal, Entry("z", None, B))
    change(journal, Entry("y", A, B))
    assert journal.last_edit("rules") == exported
    journal.finish(pending)
    journal.mark_exported("rules", exported)
    assert journal.edited_since_export("rules") == {"z": None, "y": A}
