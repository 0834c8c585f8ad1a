"""The page warns above a result that chunks may be missing, and rejects a withheld collection."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from killed import Even, killed, records
from test_collections import indexed, table

from ragfilter.stores.index import index
from ragfilter.stores.workspace import Workspace

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose collection `demo` is complete."""
    folder = tmp_path_factory.mktemp("whole") / "ws"
    with Workspace.open(folder) as workspace:
        index(records(), name="demo", workspace=workspace, embedder=Even())
    return folder


@pytest.fixture(scope="module")
def killed_rebuild(whole: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of it whose rebuild was killed."""
    folder = tmp_path_factory.mktemp("killed") / "ws"
    shutil.copytree(whole, folder)
    killed(folder, "rebuild", "write")
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy of the complete workspace that may be changed."""
    return Path(shutil.copytree(whole, tmp_path / "ws"))


@pytest.fixture
def interrupted(killed_rebuild: Path, tmp_path: Path) -> Path:
    """A copy of the interrupted workspace that may be changed."""
    return Path(shutil.copytree(killed_rebuild, tmp_path / "ws"))


def test_an_interrupted_rebuild_is_told_above_the_result(open_page: Callable[..., Any], interrupted: Path) -> None:
    page = open_page({"q": "text 7", "profile": "adaptive-gap"}, workspace=interrupted)
    (warning,) = page.warnings
    assert warning.startswith("Collection 'demo' is incomplete: ")
    assert "of 20 retrieved" in page.strip
    assert "incomplete collection" in page.strip


def test_every_page_tells_it_and_a_rebuild_is_offered(open_page: Callable[..., Any], interrupted: Path) -> None:
    page = open_page(workspace=interrupted)
    page.session.compared = {"set": "labelled"}
    for name in (pages := ("evaluate", "tune", "rules", "compare", "collections")):
        page.at.switch_page(f"pages/{name}.py")
        (warning,) = page.run().warnings
        assert warning.startswith("Collection 'demo' is incomplete: "), name
    indexed(page.press("rebuild"))
    assert "rebuild" not in page.buttons
    assert table(page)["state"] == ["complete"]
    for name in pages:
        page.at.switch_page(f"pages/{name}.py")
        assert page.run().warnings == [], name


def test_withheld_chunks_do_not_reach_the_page(open_page: Callable[..., Any], folder: Path) -> None:
    killed(folder, "index", "embed", "before", text="new text", clearance=5)
    page = open_page({"q": "text 7", "profile": "adaptive-gap"}, workspace=folder)
    (error,) = page.errors
    assert "a change of its clearances has not finished" in error
    assert "ragfilter index" in error
    assert "text 1" not in page.sent
