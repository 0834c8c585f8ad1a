"""Empty places say what would fill them; a locked workspace says which process holds it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from waiting import PROCESS_S

from ragfilter.answer.answer import EMPTY
from ragfilter.indexing.queue import queue_of
from ragfilter.ingest.records import Record
from ragfilter.model import Chunk
from ragfilter.models.embedders import BundledEmbedder
from ragfilter.stores.indexer import index
from ragfilter.stores.workspace_files import Workspace
from ragfilter.ui import resources

ROOT = Path(__file__).resolve().parents[2]
HOLD = """
import sys
from ragfilter.stores.workspace_files import Workspace
with Workspace.open(sys.argv[1], kind="index"):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def holder(tmp_path: Path, bare_environ: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the workspace in `tmp_path`."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(
        command, cwd=ROOT, env=bare_environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_no_collection_offers_the_demo_and_builds_it(
    open_page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = [Record(Chunk(f"c{i}", text=f"text {i}", title=f"Title {i}"), "x") for i in range(3)]
    monkeypatch.setattr("ragfilter.ingest.load.load", lambda source, **_: few)
    page = open_page(workspace=tmp_path)
    assert any("No collection yet" in text for text in page.html)
    assert [link.proto.label for link in page.at.get("page_link")] == ["Or add your own files"]
    assert "ask-button" not in page.buttons
    page.press("build-demo")
    queue = queue_of(resources.open_resources().bench)
    while any(job.status.open for job in queue.jobs()):
        sleep(0.01)
    page.at.switch_page("pages/inspect.py")
    page.run().ask("title 2")
    assert "of 3 retrieved" in page.strip


def test_an_empty_collection(open_page: Any, tmp_path: Path) -> None:
    with Workspace.open(tmp_path) as workspace:
        workspace.store().create("hollow", embedder="")
    page = open_page({"q": "anything?"}, workspace=tmp_path)
    assert any("Collection hollow is empty" in text for text in page.html)
    assert [code.value for code in page.at.code] == ["ragfilter index FOLDER --collection hollow"]
    assert page.at.button(key="ask-button").disabled
    assert len(page.at.dataframe) == 0


@pytest.mark.model
def test_nothing_kept_says_who_dropped_the_last_and_one_click_relaxes_it(
    open_page: Any, monkeypatch: pytest.MonkeyPatch, dead_url: str, calls: Counter[str]
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", dead_url)
    page = open_page({"profile": "adaptive-retrieval", "q": "What is a lightsaber?"})
    assert page.kept == []
    # No chunks need no LLM.
    assert EMPTY in " ".join(page.html)
    assert calls["OpenAIChat.stream"] == 0
    assert page.strip.startswith("0 kept of 200 retrieved")
    assert "Nothing matches the query well enough." in page.strip
    assert any(re.search(r"Quality dropped the last \d+ chunks", text) for text in page.html)
    # Even the best is far away, so nothing that would let in noise is offered.
    assert any("far below the rerank threshold of 0.300" in text for text in page.html)
    assert "relax" not in page.buttons
    page.select("quality.reranker", "none")
    # Whatever the panel shows.
    for panel in ("Debug", "Chunk", "Answer"):
        page.choose("panel-box", panel)
        assert "relax" in page.buttons
    page.session.panel, page.session.blind = "Answer", False
    page.run()
    label = page.at.button(key="relax").label
    assert label.startswith("Lower the similarity threshold from 0.500 to 0.")
    page.press("relax")
    assert page.kept
    assert set(page.changes) == {"quality.reranker", "quality.score_threshold"}
    assert "relax" not in page.buttons


def vault(open_page: Any, folder: Path, link: dict[str, str], *chunks: Chunk) -> Any:
    """The page on a collection of these chunks."""
    with Workspace.open(folder) as workspace:
        records = [Record(chunk, "one line") for chunk in chunks]
        index(records, name="vault", workspace=workspace, embedder=BundledEmbedder())
    return open_page({"profile": "adaptive-gap", "q": "What is in the vault?"} | link, workspace=folder)


@pytest.mark.model
def test_one_click_switches_off_the_layer_that_dropped_all(open_page: Any, tmp_path: Path) -> None:
    chunk = Chunk("c1", text="The vault is empty.", rule='{"contain": "treasure"}')
    page = vault(open_page, tmp_path, {"query_must.enabled": "true"}, chunk)
    assert page.strip.startswith("0 kept of 1 retrieved")
    page.press("relax")
    assert page.kept == ["c1"]
    assert page.changes == {}


@pytest.mark.model
@pytest.mark.parametrize(
    ("secrets", "said"),
    [
        (
            [(5, None), (2, "vault"), (0, "referee")],
            "Ask someone with clearance level 5, or in department referee, or in department vault "
            "with clearance level 2.",
        ),
        ([(None, None)], "so all are hidden. Ask the maintainer of this collection."),
    ],
)
def test_a_user_who_may_see_nothing_is_told_whom_to_ask_and_can_switch_nothing_off(
    open_page: Any, tmp_path: Path, secrets: list[tuple[int | None, str | None]], said: str
) -> None:
    chunks = [
        Chunk(f"c{i}", text=f"The vault number {i} is empty.", clearance=level, department=of)
        for i, (level, of) in enumerate(secrets)
    ]
    page = vault(open_page, tmp_path, {}, *chunks)
    assert page.strip.startswith("0 kept of 0 retrieved")
    assert any(text.endswith(said) for text in page.html)
    assert "relax" not in page.buttons
    # A hidden chunk looks exactly like one that does not exist.
    told = [[t for t in page.open_chunk(i).html if "No chunk is open" in t] for i in ("c0", "absent")]
    assert told[0] == told[1] != []
    page.choose("panel-box", "Answer").choose("view-as", "Operator")
    assert page.at.button(key="relax").label == "Switch clearance off"
    assert page.press("relax").kept
    assert page.changes == {"clearance.enabled": False}


def test_a_workspace_that_another_process_holds(open_page: Any, tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    page = open_page({"q": "anything?"}, workspace=tmp_path)
    assert len(page.errors) == 1
    said = page.errors[0].replace("\\", "")
    assert "is in use by" in said
    assert f"index (process {holder.pid}" in said
    assert "use another folder." in said
    assert "PostgreSQL" not in said
    assert page.buttons == {"retry"}
    holder.communicate("let go\n", timeout=PROCESS_S)
    page.press("retry")
    assert page.errors == []
    assert any("No collection yet" in text for text in page.html)
