"""Hidden chunks change no page: for a user, every page sends the same to the browser and offers the
same downloads as on a twin of the collection without the chunks hidden from them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from twins import QUESTIONS, SECRET, USER, make_twins, still_clocks

from ragfilter.settings.deployment import Deployment
from ragfilter.ui import resources
from ragfilter.ui.kit import controls
from ragfilter.ui.session.state import PANELS
from ragfilter.workbench import Workbench

pytestmark = pytest.mark.model

ID = re.compile(r"\b[0-9a-f]{32}\b")
"""A random id of Streamlit or of the workspace."""
QUESTION = "Why does the cat do that?"
AS_USER = {
    "collection": "small",
    "clearance.enabled": "true",
    "level": str(USER.level),
    "departments": "sales",
    "q": QUESTION,
}


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    with still_clocks():
        twins = make_twins(tmp_path_factory.mktemp("twins"))
        for world in twins:
            with Workbench.open(Deployment(data_dir=world / "ws")) as bench:
                bench.labels.put_set("small", "few", dict([*QUESTIONS.items()][::3]))
        yield twins


@pytest.fixture(scope="module")
def demo_page_workspace() -> None:
    """Each page names its workspace, so that the demo need not be indexed."""


def inspect(page: Any) -> Iterator[None]:
    yield
    for panel in PANELS:
        page.choose("panel-box", panel)
        yield


def chunk(page: Any) -> Iterator[None]:
    for chunk_id in ("cat-0", "hidden-cat-0"):
        page.open_chunk(chunk_id)
        yield


def of_page(name: str, *buttons: str) -> Callable[[Any], Iterator[None]]:
    def walk(page: Any) -> Iterator[None]:
        page.at.switch_page(f"pages/{name}.py")
        page.at.session_state["by-hand"] = True
        page.run()
        yield
        for button in buttons:
            page.at.selectbox(key="query-set-box").set_value("few")
            page.run().press(button)
            yield

    return walk


WALKS = {
    "inspect": ({"profile": "full"}, inspect),
    "chunk": ({"profile": "query-must"}, chunk),
    "present": ({"profile": "full", "present": "true"}, lambda page: iter((None,))),
    "rules": ({"profile": "query-must"}, of_page("rules")),
    "evaluate": ({"profile": "adaptive-gap"}, of_page("evaluate", "evaluate")),
    "tune": ({"profile": "adaptive-gap"}, of_page("tune", "map", "suggest")),
    "compare": ({"profile": "full"}, of_page("compare")),
    "collections": ({"profile": "full"}, of_page("collections")),
}


@pytest.mark.parametrize("name", WALKS)
def test_a_page_is_the_same_without_the_hidden_chunks(
    open_page: Any,
    worlds: tuple[Path, Path],
    name: str,
    downloads: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    few_candidates: None,
) -> None:
    monkeypatch.setattr("ragfilter.evaluate.frame.RESAMPLES", 99)
    # Only the offered departments depend on all chunks.
    monkeypatch.setattr(controls, "departments", lambda resources: ("hr", "sales"))
    params, walk = WALKS[name]
    made = []
    for world in worlds:
        downloads.clear()
        page = open_page({**AS_USER, **params}, workspace=world / "ws")
        sent = []
        for _ in walk(page):
            files = "\n".join(f"{file}\n{read()}" for file, read in page.downloads.items())
            told = f"{page.sent}\n{files}".replace(str(world), "WORLD")
            sent.append(ID.sub("ID", told))
        made.append(sent)
    for one, other in zip(*made, strict=True):
        first, second = one.splitlines(), other.splitlines()
        apart = [pair for pair in zip(first, second, strict=False) if pair[0] != pair[1]]
        assert apart[:5] == []
        assert len(first) == len(second)
        assert SECRET not in one


def test_an_edit_in_another_tab_is_told_to_who_sees_the_chunk(open_page: Any, worlds: tuple[Path, Path]) -> None:
    page = open_page({**AS_USER, "profile": "query-must"}, workspace=worlds[0] / "ws")
    ranked = page.ids
    for chunk_id, told in (("hidden-cat-0", 0), ("cat-1", 1)):
        store = resources.open_resources().bench.collection("small")
        store.set_rules({chunk_id: '{"contain": "dog"}'})
        assert len(page.run().at.toast) == told
        assert page.ids == ranked
