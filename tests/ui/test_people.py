"""The departments to choose from are those of the collection's chunks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import streamlit as st

from ragfilter.library.workspace import open_workspace
from ragfilter.model import Chunk
from ragfilter.stores.copies import StoredRow
from ragfilter.ui.kit import controls
from ragfilter.ui.resources import Resources
from ragfilter.ui.session.state import KEY, Session


def chunk(chunk_id: str, clearance: int = 0, department: str | None = None) -> StoredRow:
    made = Chunk(chunk_id, text="words", clearance=clearance, department=department)
    return StoredRow(made, np.array([1, 0], dtype=np.float32))


def test_the_departments_follow_the_collection_as_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(st.session_state, KEY, Session("full", {}, collection="mine"))
    with open_workspace(tmp_path / "ws") as bench:
        resources = Resources(bench)
        store = bench.stores.of("mine")
        mine = store.create("mine", embedder=bench.embedder.name)
        mine.write([chunk("a", 1, "ops")])
        assert controls.departments(resources) == ("ops",)
        mine.write([chunk("b", 4, "pay")])
        assert controls.departments(resources) == ("ops", "pay")
        store.delete("mine")
        assert controls.departments(resources) == ()
        store.create("mine", embedder=bench.embedder.name).write([chunk("c")])
        assert controls.departments(resources) == ()
