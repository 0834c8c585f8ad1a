"""The users that a collection offers follow from its chunks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import streamlit as st

from ragfilter.library.workspace import open_workspace
from ragfilter.model import Chunk, User
from ragfilter.stores.copies import StoredRow
from ragfilter.ui.kit import view_as
from ragfilter.ui.kit.view_as import Groups
from ragfilter.ui.session.resources import Resources
from ragfilter.ui.session.state import KEY, Session


def chunk(chunk_id: str, clearance: int = 0, department: str | None = None) -> StoredRow:
    made = Chunk(chunk_id, text="words", clearance=clearance, department=department)
    return StoredRow(made, np.array([1, 0], dtype=np.float32))


def test_the_users_follow_the_collection_as_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(st.session_state, KEY, Session("full", {}, collection="mine"))
    with open_workspace(tmp_path / "ws") as bench:
        resources = Resources(bench, bench.deployment)
        store = bench.stores.of("mine")
        mine = store.create("mine", embedder=bench.embedder.name)
        mine.write([chunk("a", 1, "ops")])
        assert view_as.groups(resources) == Groups(1, {"ops": 1})
        mine.write([chunk("b", 4, "pay")])
        assert view_as.groups(resources) == Groups(4, {"ops": 1, "pay": 4})
        store.delete("mine")
        assert view_as.groups(resources) == Groups(0, {})
        store.create("mine", embedder=bench.embedder.name).write([chunk("c")])
        assert view_as.groups(resources) == Groups(0, {})


BOOKS = [
    Chunk("open"), Chunk("notes", clearance=1), Chunk("plan", clearance=2, department="ops"),
    Chunk("wages", clearance=4, department="pay"), Chunk("broken", clearance=None, department="x"),
]  # fmt: skip


def test_each_department_gets_a_user_who_sees_all_of_it() -> None:
    assert Groups.of(BOOKS).users == {
        "Guest": User(),
        "ops": User(2, ("ops",)),
        "pay": User(4, ("pay",)),
        "All departments": User(4, ("ops", "pay")),
    }
    assert Groups.of(BOOKS[:1]).users == {"Guest": User()}
