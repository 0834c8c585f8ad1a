"""A collection that lacks chunks says so whenever it answers, and stale chunks are withheld."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from killed import Even, N, killed, records

from ragfilter.cli.program import main
from ragfilter.engine.gather import Backends
from ragfilter.engine.pipeline import search_and_filter
from ragfilter.engine.replay import replay
from ragfilter.errors import StoreError
from ragfilter.model import Chunk, Hit, Pool, PoolResult, User
from ragfilter.settings.schema import Settings
from ragfilter.stores import indexer as indexing
from ragfilter.stores.base import IndexReport
from ragfilter.stores.indexer import index, rebuild
from ragfilter.stores.workspace_files import Workspace

pytestmark = pytest.mark.slow


def made(workspace: Workspace, n: int = N, *, reset: bool = False, **fields: Any) -> IndexReport:
    given = records(n, **fields)
    return index(given, name="demo", workspace=workspace, embedder=Even(), reset=reset)


def ask(workspace: Workspace, level: int = 0) -> PoolResult:
    settings = Settings().with_values({"clearance.enabled": True})
    collection = workspace.store().collection("demo")
    return search_and_filter("text 7", settings, Backends(collection, Even()), User(level))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose collection `demo` is complete."""
    folder = tmp_path_factory.mktemp("whole") / "ws"
    with Workspace.open(folder) as workspace:
        made(workspace)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy of it that may be changed."""
    shutil.copytree(whole, tmp_path / "ws")
    return tmp_path / "ws"


# --- an interruption that leaves some chunks out


@pytest.mark.parametrize(
    ("start", "act", "point", "fields"),
    [
        ("new", "index", "write", {}),
        ("whole", "rebuild", "write", {}),
        ("whole", "index", "write", {"text": "new text"}),
        ("whole", "reset", "write", {"text": "new text"}),
    ],
    ids=["first", "rebuild", "in place", "reset"],
)
def test_every_result_says_that_indexing_was_interrupted(
    folder: Path, tmp_path: Path, start: str, act: str, point: str, fields: dict[str, Any]
) -> None:
    folder = folder if start == "whole" else tmp_path / "new"
    killed(folder, act, point, **fields)
    with Workspace.open(folder) as workspace:
        (info,) = workspace.store().collections()
        result = ask(workspace)
        assert result.kept
        assert (info.complete, result.status) == (False, "incomplete_collection")
        assert result.message == result.pool.incomplete == info.incomplete
        assert result.message.startswith("Collection 'demo' is incomplete: ")
        assert "Index the same source again" in result.message

        # The remedy is to run the same command again; nothing is embedded again.
        if act == "rebuild":
            rebuild("demo", workspace=workspace)
        else:
            assert made(workspace, **fields).embedded == 0
        result = ask(workspace)
        assert (result.status, result.message) == ("ok", "")
        assert workspace.store().collection("demo").count() == N


FAR = (Hit(Chunk("x", "text"), 1.9, 1),)


def test_finding_nothing_good_does_not_hide_that_chunks_are_missing() -> None:
    pool = Pool("q", "demo", "l2", FAR, incomplete="Half of it is missing.")
    settings = Settings().with_values({"quality.enabled": True, "quality.reranker": "none"})
    assert replay(replace(pool, incomplete=""), settings).status == "low_quality_results"
    result = replay(pool, settings)
    assert result.status == "incomplete_collection"
    assert result.message.endswith(" Half of it is missing.")
    assert result.kept == ()


# --- clearances


RAISED = {"text": "new text", "clearance": 5}
ONLY_RAISED = {"clearance": 5}
MOVED = {"department": "ops"}


@pytest.mark.parametrize(
    ("act", "point", "when", "fields"),
    [
        ("index", "withhold", "after", RAISED),
        ("index", "embed", "before", RAISED),
        ("index", "replace", "before", RAISED),
        ("index", "write", "before", ONLY_RAISED),
        ("index", "write", "after", MOVED),
        ("reset", "embed", "before", RAISED),
        ("reset", "write", "after", RAISED),
    ],
)
def test_changed_clearances_are_never_answered_under_the_old_ones(
    folder: Path, tmp_path: Path, act: str, point: str, when: str, fields: dict[str, Any]
) -> None:
    killed(folder, act, point, when, **fields)
    shutil.copytree(folder, tmp_path / "second")
    shutil.copytree(folder, tmp_path / "third")
    with Workspace.open(folder) as workspace:
        assert not workspace.store().collections()[0].complete
        collection = workspace.store().collection("demo")
        for read in (
            lambda: ask(workspace, level=9),
            lambda: collection.chunks(["c1"]),
            lambda: collection.catalogue(),
            lambda: collection.nearest(Even().embed(["text 1"])[0], 1),
            lambda: collection.rule("c1"),
        ):
            with pytest.raises(StoreError, match="a change of its clearances has not finished") as error:
                read()
            assert "Index the same source again" in error.value.remedy
            assert error.value.action == "finish"
        made(workspace, reset=act == "reset", **fields)
        assert_new(workspace, fields)

    # Anything else that completes the collection also restores the new clearances.
    with Workspace.open(tmp_path / "second") as workspace:
        rebuild("demo", workspace=workspace)
        assert_new(workspace, fields)
        made(workspace, **fields)
        assert_new(workspace, fields)
    with Workspace.open(tmp_path / "third") as workspace:
        made(workspace, 3, start=N, **fields)
        assert_new(workspace, fields)


def assert_new(workspace: Workspace, fields: dict[str, Any]) -> None:
    result = ask(workspace, level=0)
    assert (result.kept, result.status) == ((), "insufficient_clearance")
    catalogue = workspace.store().collection("demo").catalogue()
    wanted = (fields.get("clearance", 0), fields.get("department"))
    assert {(c.clearance, c.department) for c in catalogue.values()} == {wanted}


def test_a_damaged_copy_does_not_keep_a_reset_from_withholding(folder: Path) -> None:
    (folder / "copies" / "demo.parquet").write_bytes(b"no parquet")
    killed(folder, "reset", "embed", "before", **RAISED)
    with Workspace.open(folder) as workspace:
        with pytest.raises(StoreError, match="clearances"):
            ask(workspace)
        made(workspace, reset=True, **RAISED)
        assert_new(workspace, RAISED)


# --- an index that lacks chunks


LARGE = 1_500
"""More records than Chroma keeps outside its index: the last 500 or so survive in its log."""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large") / "ws"
    with Workspace.open(folder) as workspace, pytest.MonkeyPatch.context() as patch:
        patch.setattr(indexing, "WRITE_PART", 500)
        made(workspace, LARGE)
    return folder


@pytest.fixture
def damaged(large: Path, tmp_path: Path) -> Path:
    """A copy of a large workspace whose vector index has lost its folder."""
    shutil.copytree(large, tmp_path / "ws")
    (index_folder,) = {path.parent for path in (tmp_path / "ws" / "chroma").glob("*/header.bin")}
    shutil.rmtree(index_folder)
    return tmp_path / "ws"


@pytest.mark.parametrize(
    ("opened", "repair"),
    [(2, lambda workspace: rebuild("demo", workspace=workspace)), (1, lambda w: made(w, LARGE))],
    ids=["rebuild", "index"],
)
def test_a_lost_index_is_told_and_repaired(damaged: Path, repair: Callable[..., IndexReport], opened: int) -> None:
    for _ in range(opened):
        # Chroma creates a new, small index there, and the next opening must not take it for complete.
        with Workspace.open(damaged) as workspace:
            (info,) = workspace.store().collections()
            result = ask(workspace)
            assert (info.complete, result.status) == (False, "incomplete_collection")
            assert result.message == info.incomplete
            assert "damaged: only 501 of its 1,500 chunks can be found" in result.message
            assert "Rebuild the collection, or index the same source again" in result.message
    with Workspace.open(damaged) as workspace:
        report = repair(workspace)
        assert (report.embedded, report.written) == (0, LARGE)
        assert workspace.store().collections()[0].complete
        assert ask(workspace).status == "ok"
        found = workspace.store().collection("demo").nearest(Even().embed(["q"])[0], LARGE)
        # With many equal vectors, HNSW may leave one without a link. A lost index lacks 999.
        assert len(found) >= LARGE - 5


# --- the command line


def cli(capsys: pytest.CaptureFixture[str], *args: str, code: int = 0) -> tuple[Any, str]:
    """The output of a command: the document (`--json` is added) and standard error."""
    capsys.readouterr()
    assert main([*args, "--json"]) == code
    out, err = capsys.readouterr()
    return json.loads(out) if out else None, err


FILES = {
    "queries.jsonl": '{"_id": "q1", "text": "text 1"}\n{"_id": "q2", "text": "text 2"}\n',
    "qrels.tsv": "query-id\tcorpus-id\tscore\nq1\tc1\t1\nq2\tc2\t1\n",
    "rules.jsonl": '{"id": "c1", "query_must": {"contain": "other"}}\n',
    "expected.jsonl": '{"question": "text 1", "stay": ["c1"]}\n',
}
LABELLED = "|--queries|queries.jsonl|--qrels|qrels.tsv"
COMMANDS = (
    "query|text 7",
    f"eval{LABELLED}",
    f"tune|--no-rerank{LABELLED}",
    f"gate|--min|f1=0{LABELLED}",
    "rules|list",
    "rules|check",
    f"rules|matrix{LABELLED}",
    "rules|test|expected.jsonl",
    "rules|bulk|--remove|--dry-run",
    "rules|import|rules.jsonl|--dry-run",
    "rules|suggest|--families",
    f"labels|import{LABELLED}",
    "labels|list",
    "labels|propose",
)


@pytest.mark.model
@pytest.mark.parametrize("how", ["interrupted", "damaged"])
def test_every_command_says_it_once_on_standard_error_and_in_its_document(
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    how: str,
) -> None:
    folder: Path = request.getfixturevalue("damaged" if how == "damaged" else "folder")
    if how == "interrupted":
        killed(folder, "rebuild", "write")
    words = "Collection 'demo' is " + ("damaged" if how == "damaged" else "incomplete")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    where = ["--collection", "demo", "--data-dir", str(folder)]
    # Without --yes, `labels propose` only says what its calls would cost.
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    for command in COMMANDS if how == "interrupted" else (COMMANDS[0], *COMMANDS[-3:]):
        words_of_it = [str(tmp_path / w) if w in FILES else w for w in command.split("|")]
        document, err = cli(capsys, *words_of_it, *where)
        assert document["incomplete"].startswith(words), command
        # A command also says that two labelled queries are few, and what an LLM would cost.
        lines = [line for line in err.splitlines() if not re.search("too few|tokens", line)]
        assert len(lines) == err.count(words) == 1, command
    document, _ = cli(capsys, "query", "text 7", *where)
    assert document["status"] == "incomplete_collection"
    assert not document["success"]
    assert document["message"].startswith(words)
    (listed,), _ = cli(capsys, "collections", "--data-dir", str(folder))
    assert (listed["complete"], listed["incomplete"][: len(words)]) == (False, words)
    assert main(["collections", "--data-dir", str(folder)]) == 0
    assert words in capsys.readouterr().out
    assert main(["labels", "export", str(tmp_path / "labels"), *where]) == 0
    assert capsys.readouterr().err.count(words) == 1
    assert main(["collections", "export", "demo", "--data-dir", str(folder)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert f"Nothing was exported. {words}" in err
    assert main(["labels", "map", "--drop-gone", *where]) == 2
    assert f"No label was removed. {words}" in capsys.readouterr().err
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tmissing\t1\n")
    files = [str(tmp_path / word) if word in FILES else word for word in LABELLED.split("|")[1:]]
    assert main(["labels", "import", *files, *where]) == 2
    assert f"is in the collection 'demo'. {words}" in capsys.readouterr().err


@pytest.mark.model
def test_every_command_that_reads_refuses_what_is_withheld(
    folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    killed(folder, "index", "embed", "before", **RAISED)
    where = ["--collection", "demo", "--data-dir", str(folder)]
    for command in (["query", "text 7"], ["rules", "check"], ["rules", "export"]):
        capsys.readouterr()
        assert main([*command, *where]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert "a change of its clearances has not finished" in err
        assert err.count("\n") == 1, command
