"""An agent's tools: what they find, and that they never return anything hidden."""

from __future__ import annotations

from typing import Any

import pytest

from ragfilter.library.tools import ChunkTools
from ragfilter.model import PUBLIC, User
from ragfilter.settings.config import of_profile
from ragfilter.settings.profiles import PROFILES
from ragfilter.settings.schema import Settings
from ragfilter.workbench import Workbench

SEES_ALL = User(level=2)


def tools(workspace: Workbench, user: User = PUBLIC, settings: Settings | str = "full") -> ChunkTools:
    settings = of_profile(settings) if isinstance(settings, str) else settings
    return ChunkTools(workspace, "refs", settings, user)


def ids(chunks: list[dict[str, Any]]) -> list[str]:
    return [chunk["id"] for chunk in chunks]


@pytest.mark.parametrize("profile", [None, *PROFILES])
@pytest.mark.parametrize("settings", ["query-must", Settings()])
def test_no_profile_lets_a_hidden_chunk_out(
    workspace: Workbench, profile: str | None, settings: Settings | str
) -> None:
    said = tools(workspace, settings=settings).search_chunks("hush", k=20, profile=profile)
    assert said["chunks"]
    assert "ecret" not in str(said)
    assert "hush" not in str(said)


def test_k_limits_the_chunks_in_every_profile(workspace: Workbench) -> None:
    for profile in PROFILES:
        said = tools(workspace).search_chunks("what is there?", k=2, profile=profile)
        assert ids(said["chunks"]) == ["root", "a"], profile


def test_what_is_missing_is_told_with_why(workspace: Workbench) -> None:
    said = tools(workspace).get_chunks(["nowhere"])
    assert said["status"] == "incomplete_collection"
    assert "'refs' is incomplete" in said["message"]
    workspace.collection("refs").set_content("x")
    said = tools(workspace).get_chunks(["nowhere"])
    assert (said["status"], said["message"]) == ("ok", "")


def test_chunks_are_read_with_what_they_refer_to(workspace: Workbench) -> None:
    said = tools(workspace).get_chunks(["root", "d", "root"], depth=1)
    assert (ids(said["chunks"]), ids(said["expanded"])) == (["root", "d"], ["a", "b", "e"])
    assert said["chunks"][0] == {
        "id": "root",
        "title": "Root",
        "text": "the root",
        "type": "",
        "source": "",
        "page": None,
        "refs": ["a", "b"],
    }
    assert tools(workspace).get_chunks(["root"])["expanded"] == []


def test_a_hidden_chunk_is_as_one_that_is_not_there(workspace: Workbench) -> None:
    said = tools(workspace).get_chunks(["b", "secret", "nowhere"], depth=5)
    assert said["missing"] == ["secret", "nowhere"]
    # Nor can it be reached through others.
    assert "deep" not in ids(said["expanded"])
    assert [chunk["refs"] for chunk in said["chunks"]] == [["root"]]
    for_all = tools(workspace, SEES_ALL).get_chunks(["b"], depth=5)
    assert {"secret", "deep"} <= set(ids(for_all["expanded"]))
