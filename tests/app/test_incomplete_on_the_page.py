"""The page warns above a result that chunks may be missing, and rejects a withheld collection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from killed import Even, killed, records
from test_collections import indexed, table

from ragfilter.stores.indexer import index
from ragfilter.stores.workspace_files import Workspace

pytestmark = pytest.mark.model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace whose collection `demo` is complete."""
    with Workspace.open(tmp_path / "ws") as workspace:
        index(records(), name="demo", workspace=workspace, embedder=Even())
    return tmp_path / "ws"


def test_every_page_tells_it_and_a_rebuild_is_offered(open_page: Any, folder: Path) -> None:
    killed(folder, "rebuild", "write")
    page = open_page({"q": "text 7", "profile": "adaptive-gap"}, workspace=folder)
    assert "of 20 retrieved" in page.strip
    assert "incomplete collection" in page.strip
    page.session.compared = {"set": "labelled"}
    for name in (pages := ("inspect", "evaluate", "tune", "rules", "compare", "collections")):
        page.at.switch_page(f"pages/{name}.py")
        (warning,) = page.run().warnings
        assert warning.startswith("Collection 'demo' is incomplete: "), name
    indexed(page.press("rebuild"))
    assert "rebuild" not in page.buttons
    assert table(page)["state"] == ["complete"]
    for name in pages:
        page.at.switch_page(f"pages/{name}.py")
        assert page.run().warnings == [], name


def test_withheld_chunks_do_not_reach_the_page(open_page: Any, folder: Path) -> None:
    killed(folder, "index", "embed", "before", text="new text", clearance=5)
    page = open_page({"q": "text 7", "profile": "adaptive-gap"}, workspace=folder)
    (error,) = page.errors
    assert "a change of its clearances has not finished" in error
    assert "ragfilter index" in error
    assert "text 1" not in page.sent
