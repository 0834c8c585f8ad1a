"""The command line, end to end: what is printed where, exit codes, and one line for every error."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from commands import ROOT, Cli, run, write
from commands import cli as cli
from commands import restored_logging as restored_logging
from faults import Behave, Handler, Serve, cut_off, events, half_a_json, says, status
from syrupy.assertion import SnapshotAssertion
from waiting import PATIENT_S

from ragfilter.cli import output, serve
from ragfilter.cli.program import MODULES, app, load_commands, main
from ragfilter.rules import edits
from ragfilter.settings.deployment import read_deployment
from ragfilter.stores.workspace_files import Workspace
from ragfilter.workbench import Workbench

CHUNKS: list[dict[str, object]] = [
    {
        "id": "cleric-6",
        "title": "Attack matrix for clerics, armor class 6",
        "text": "A cleric of level 7 to 9 needs a score of 10 to hit armor class 6.",
        "type": "special",
        "source": "tables.md",
        "page": 4,
        "refs": ["cleric"],
        "query_must": {"contain_one_of": [["cleric"], ["armor class 6", "ac 6"]]},
    },
    {
        "id": "cleric-7",
        "title": "Attack matrix for clerics, armor class 7",
        "text": "A cleric of level 7 to 9 needs a score of 9 to hit armor class 7.",
        "query_must": {"contain_one_of": [["cleric"], ["armor class 7", "ac 7"]]},
    },
    {"id": "cleric", "title": "The Cleric", "text": "Clerics serve a god and heal the wounded."},
    {"id": "troll", "title": "Troll", "text": "A troll regrows its limbs unless it is burned."},
    {"id": "hill-giant", "title": "Hill Giant", "text": "A hill giant throws rocks and is stupid."},
    {"id": "mammoth", "title": "Mammoth", "text": "A mammoth is a huge woolly elephant."},
    {
        "id": "secret-troll",
        "title": "The Troll Queen",
        "clearance": 4,
        "text": "The troll queen under the bridge fears silver.",
    },
    {"id": "boat", "title": "Boats", "text": "A rowing boat carries four people over a river."},
]
CLERIC = "What does a 7th level cleric need to roll to hit armor class 6?"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with the chunks above in the collection `small`, and an empty collection."""
    folder = tmp_path_factory.mktemp("cli")
    source = write(folder / "chunks.jsonl", *CHUNKS)
    assert main(["index", source, "-c", "small", "--data-dir", str(folder / "ws")]) == 0
    with Workspace.open(folder / "ws") as opened:
        opened.store().create("empty", embedder="all-MiniLM-L6-v2")
    return folder / "ws"


@pytest.fixture
def small(cli: Cli, workspace: Path) -> Cli:
    """Runs a command on the collection `small`."""
    return Cli(cli.capsys, ["-c", "small", "--data-dir", str(workspace)])


# cut: no workspace, no model


COMMANDS = (
    "|app|collections|collections close|collections delete|collections export|collections open|cut|index|labels|"
    "labels export|labels import|labels list|labels mark|labels next|labels preferences|labels propose|labels undo|"
    "mcp|query|serve|settings|token|tune|workspace copy"
).split("|")


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command: str, cli: Cli, snapshot: SnapshotAssertion) -> None:
    assert cli(command, "--help") == snapshot


@pytest.mark.model
@pytest.mark.parametrize(
    "command",
    [
        "cut 0.1 0.2 0.5",
        "collections --json WS",
        "collections WS",
        "labels list -c small WS",
        "labels preferences -c small WS",
        "labels next troll -c small -n 1 WS",
        "query QUESTION -c small -p query-must WS",
        "query QUESTION -c small -p adaptive-gap --debug WS",
    ],
)
def test_output(command: str, workspace: Path, cli: Cli, snapshot: SnapshotAssertion) -> None:
    words = {"QUESTION": [CLERIC], "WS": ["--data-dir", str(workspace)]}
    shown = cli("", *(part for word in command.split() for part in words.get(word, [word])))
    shown = re.sub(r"[\d.]+ ms *", "N ms ", shown.replace(str(workspace), "WORKSPACE"))
    assert re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d|[\d.]+ MB of", "N", shown) == snapshot


def test_cut_prints_the_promised_document(cli: Cli) -> None:
    assert cli.json("cut 0.12 0.18 0.22 0.35 0.50") == {
        "kept": 4,
        "strategy": "gap",
        "cliff_after_rank": 4,
        "gap": 0.15,
        "gaps": [0.06, 0.04, 0.13, 0.15],
        "limit": None,
        "reason": "gap 0.150 ≥ 0.100 after hit 4",
    }


def test_cut_reaches_every_setting(cli: Cli) -> None:
    for args, kept, cliff in [
        ("0.6 0.65 0.7", 3, None),
        ("0.6927 0.8071 0.8692 0.8936 0.9173 --distance-offset 0.2", 3, None),
        ("0.1 0.2 0.5 0.6 --strategy fixed -k 3", 3, None),
        ("-0.3 -0.2 0.4", 2, 2),
    ]:
        made = cli.json(f"cut {args}")
        assert (made["kept"], made["cliff_after_rank"]) == (kept, cliff)


def test_every_command_is_found_by_its_name() -> None:
    load_commands()
    grown = typer.main.get_command(app)
    assert isinstance(grown, typer.core.TyperGroup)
    assert set(grown.commands) == set(MODULES)


def test_a_command_loads_nothing_of_others() -> None:
    heavy = {"torch", "chromadb", "pandas", "streamlit", "openai", "sqlalchemy"}
    calls = [["cut", "0.1", "0.2"], ["--help"]]
    code = (
        f"import sys; from ragfilter.cli.program import main; [main(call) for call in {calls}];"
        f"print(sorted({heavy} & set(sys.modules)))"
    )
    made = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert made.stdout.splitlines()[-1] == "[]"


def test_a_new_workspace_says_how_to_begin(tmp_path: Path, cli: Cli) -> None:
    where = ("--data-dir", str(tmp_path))
    begin = "ragfilter index demo --collection demo"
    assert cli("collections", *where) == ""
    assert begin in cli.err
    assert cli.json("collections", *where) == []
    assert begin in cli.refused("query anything", *where)


def test_markup_in_a_cell_means_nothing() -> None:
    cells = [("[red]a[/red] [link=x]", "\x1b[1mb"), ("é≥", "[/]")]
    assert output.table(("[b]x", "y"), cells) == (
        "[b]x                   y\n[red]a[/red] [link=x]  \x1b[1mb\né≥                     [/]\n"
    )


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_is_for_terminals_only(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    advance = output.progress("[b]texts[/b]")
    advance(1, 2)
    advance(2, 2)
    out, err = capsys.readouterr()
    assert (out, bool(err)) == ("", terminal)
    assert ("2/2 [b]texts[/b]" in re.sub(r"\x1b\[[0-9;?]*\w", "", err)) == terminal


# with the real model


@pytest.mark.model
def test_the_app_completes_a_demo_that_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    resources = SimpleNamespace(bench=SimpleNamespace(close=lambda: None))
    served = SimpleNamespace(open_resources=lambda: resources, main=lambda *_, **__: None)
    monkeypatch.setattr(serve, "import_module", lambda name: served)
    monkeypatch.setattr("ragfilter.ingest.bundled.demo_rows", lambda: CHUNKS)
    monkeypatch.setenv("RAGFILTER_WORKSPACE", "")
    command = ["app", "--port", "8598", "--data-dir", str(tmp_path)]

    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    told = []
    for broken in (True, False, False):
        with monkeypatch.context() as patched:
            if broken:
                patched.setattr("ragfilter.stores.chroma.ChromaCollection.write", interrupted)
            assert main(command) == 130
        out, err = capsys.readouterr()
        told.append(("demo: 8 chunks" in out, "Run the same command again" in err))
    assert told == [(False, True), (True, False), (False, False)]


@pytest.mark.model
def test_missing_and_empty_collections(small: Cli, snapshot: SnapshotAssertion) -> None:
    for words in ("query x -c smal", "query x -c empty", "query '  '"):
        collection = "" if "-c" in words else " -c small"
        where = Cli(small.capsys, small.where[2:])
        assert where.refused(words + collection) == snapshot


@pytest.mark.model
def test_bytes_that_are_no_text_never_reach_the_json(small: Cli) -> None:
    assert small.json("query", os.fsdecode(b"troll \xff"))["query"] == "troll \ufffd"


@pytest.mark.model
def test_query_json_has_the_promised_shape(small: Cli) -> None:
    made = small.json("query --profile query-must", CLERIC)
    assert {k: made[k] for k in ("query", "collection", "space", "status", "profile")} == {
        "query": CLERIC,
        "collection": "small",
        "space": "l2",
        "status": "ok",
        "profile": "query-must",
    }
    assert made["kept"][0] == "cleric-6"
    assert len(made["kept"]) == 7
    hits = {hit["id"]: hit for hit in made["hits"]}
    assert [hit["rank"] for hit in made["hits"]] == [1, 2, 3, 4, 5, 6, 7, 8]
    dropped = hits["cleric-7"]
    assert (dropped["outcome"], dropped["layer"]) == ("dropped", "query_must")
    assert "armor class 7" in dropped["reason"]
    first = hits["cleric-6"]
    assert first["similarity"] == pytest.approx(1 - first["distance"] / 2)
    assert (first["title"], first["page"], first["gap"]) == (CHUNKS[0]["title"], 4, None)
    assert set(first) >= set("rank id title distance similarity rerank_score outcome layer reason value limit".split())
    layers = {layer["layer"]: layer for layer in made["layers"]}
    assert set(layers["query_must"]) >= {"layer", "enabled", "n_in", "n_out", "ms"}
    assert (layers["query_must"]["n_in"], layers["query_must"]["n_out"]) == (8, 7)
    assert made["cutoff"] is None
    assert made["rounds"] == [{"round": 1, "retrieved": 8, "excluded": 1, "kept": 7}]
    assert made["context_tokens"] > 0


@pytest.mark.model
def test_standard_output_is_the_document_alone(workspace: Path) -> None:
    args = ["query", "hill giant vs troll", "-c", "small", "--json", "--debug", "-vv"]
    made = run(*args, "--data-dir", str(workspace))
    assert made.returncode == 0
    document = json.loads(made.stdout)
    assert {"hill-giant", "troll"} <= set(document["kept"])
    assert "mammoth" not in document["kept"]
    assert document["entities"] == ["hill giant", "troll"]
    assert made.stderr.count("Query: hill giant vs troll") == 1
    # The default profile has clearance on: not even the trace names what is hidden.
    assert "secret-troll" not in made.stdout + made.stderr
    assert document["hidden"] is None


@pytest.mark.model
def test_flags_and_values_reach_the_settings(small: Cli, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text('profile = "adaptive-gap"\n[cutoff]\njumps = 4\n', encoding="utf-8")
    made = small.json(
        f"query troll --config {file} -k 3 --gap-threshold 0.3 --distance-threshold 0.25 "
        "--set cutoff.min_results=1 --set cutoff.gap_threshold=0.9"
    )
    assert made["profile"] == "adaptive-gap"
    assert made["settings"]["retrieval"]["k"] == 3
    cutoff = made["settings"]["cutoff"]
    assert (cutoff["max_results"], cutoff["jumps"], cutoff["min_results"]) == (3, 4, 1)
    # A dedicated flag wins over --set.
    assert (cutoff["gap_threshold"], cutoff["distance_offset"]) == (0.3, 0.25)
    assert len(made["unfiltered"]) == 3
    quality = made["settings"]["quality"]
    assert (quality["min_top_k"], quality["max_top_k"]) == (3, 10)


@pytest.mark.model
def test_k_is_how_many_the_quality_layer_looks_at_first(small: Cli) -> None:
    """The seed's top_k overrides its MIN_TOP_K."""
    for k, first, last, kept in [(1, 1, 4, 1), (4, 4, 4, 4), (6, 6, 6, 6)]:
        values = "--set quality.min_top_k=2 --set quality.max_top_k=4 --set quality.score_threshold=0"
        made = small.json(f"query troll -p adaptive-retrieval -k {k} {values}")
        quality = made["settings"]["quality"]
        assert (quality["min_top_k"], quality["max_top_k"]) == (first, last)
        assert len(made["kept"]) == kept


@pytest.mark.model
def test_a_reranker_that_was_given_up_does_not_spoil_the_exit(copy_demo: Callable[[], Path]) -> None:
    """Its thread is still in torch when the interpreter exits, which would abort the process."""
    slow = ["quality.mode=always", "quality.max_top_k=200", "quality.reranker_timeout_ms=100"]
    values = [part for value in slow for part in ("--set", value)]
    args = ["query", CLERIC, "-p", "adaptive-retrieval", *values, "--json"]
    made = run(*args, "--data-dir", str(copy_demo()))
    assert (made.returncode, "no answer within 0.1 s" in made.stderr) == (0, True), made.stderr
    assert json.loads(made.stdout)["status"] == "ok"


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The arguments that query a collection of public and secret chunks in two departments."""
    folder = tmp_path_factory.mktemp("vault")
    source = write(
        folder / "vault.jsonl",
        {"id": "open", "text": "The vault is open."},
        {"id": "high", "text": "The vault is deep.", "clearance": 3},
        {"id": "ops", "text": "The vault is locked at night.", "department": "ops"},
        {"id": "hr", "text": "The vault is cleaned by day.", "department": "hr", "clearance": 3},
    )
    where = ["-c", "vault", "--data-dir", str(folder / "ws")]
    assert main(["index", source, *where]) == 0
    on = ["--set", "clearance.enabled=true", "--set", "cutoff.enabled=false"]
    return ["What is the vault like?", "-p", "adaptive-gap", *on, *where]


@pytest.mark.model
def test_who_asks_is_named_by_flags(vault: list[str], cli: Cli) -> None:
    for args, kept in [
        ("", "open"),
        ("--level 3", "high open"),
        ("--department ops", "open ops"),
        ("--level 3 --department ops --department hr", "high hr open ops"),
        ("--set clearance.enabled=false", "high hr open ops"),
        ("--set clearance.enabled=false --level 0", "open"),
        # Asked in whole characters.
        ("--department ops\udcff", "open"),
    ]:
        assert " ".join(sorted(cli.json("query", *vault, *args.split())["kept"])) == kept


@pytest.mark.model
def test_answer_is_extractive_without_a_model_and_cites_what_is_kept(small: Cli) -> None:
    made = small.json("query -p query-must --answer", CLERIC)
    answer = made["answer"]
    assert (answer["extractive"], answer["error"], answer["prompt"]) == (True, "", [])
    assert "cleric-6" in answer["citations"]
    assert set(answer["citations"]) <= set(made["kept"])
    assert "answer (extractive: " in small("query -p query-must --answer", CLERIC)


@pytest.mark.model
@pytest.mark.parametrize(
    "behave",
    [
        status(500, "down"),
        half_a_json,
        cut_off,
        says("<think>Roll 10 [1]."),
        says("Roll 10 [1].\n</think>"),
        events({"choices": [{"delta": {"content": "Roll [1]"}, "finish_reason": "MAX_TOKENS"}]}),
    ],
    ids=["down", "half a JSON", "cut", "an open thought", "a thought", "a limit"],
)
def test_instead_of_an_answer_that_failed_sentences_are_quoted(
    small: Cli, monkeypatch: pytest.MonkeyPatch, serve: Serve, behave: Behave
) -> None:
    asked = ("query -p query-must --answer", CLERIC)
    quoted = small.json(*asked)["answer"]
    monkeypatch.setenv("OPENAI_BASE_URL", serve(behave).url)
    monkeypatch.setenv("RAGFILTER_ANSWER_TIMEOUT_S", str(PATIENT_S))
    made = small.json(*asked, code=2)["answer"]
    for part in ("text", "citations", "unknown_citations", "model", "extractive", "doubt"):
        assert made[part] == quoted[part]
    assert made["text"]
    assert made["prompt"]
    assert made["error"] in small.err
    assert quoted["text"] in small(*asked, code=2)
    assert "The answer failed: " in small.err


@pytest.mark.model
@pytest.mark.parametrize("damage", [b"\x00", b"\xa5"], ids=["zeros", "noise"])
def test_a_damaged_page_of_the_database_keeps_nobody_from_searching(
    workspace: Path, tmp_path: Path, cli: Cli, damage: bytes
) -> None:
    shutil.copytree(workspace, tmp_path / "ws")
    with Workbench.open(read_deployment(data_dir=tmp_path / "ws")) as opened:
        edits.save(
            opened.collection("small"),
            opened.journal,
            chunk_id="boat",
            rule='{"contain":"boat"}',
            expected=None,
            who="me",
        )
    path = tmp_path / "ws" / "ragfilter.db"
    pages = path.read_bytes()
    # The first page stays: header and schema are sound.
    path.write_bytes(pages[:4096] + damage * (len(pages) - 4096))
    where = ("-c", "small", "--data-dir", str(tmp_path / "ws"))
    assert "cleric-6" in cli.json("query -p query-must", CLERIC, *where)["kept"]
    for words in ("rules cannot be edited or restored", "malformed", "from a backup"):
        assert words in cli.err


def test_a_terminal_is_shown_what_it_would_obey_and_a_file_gets_every_character() -> None:
    import pty

    text = "\x1b[31mred\x1b]0;title\x07 \u202eback\n\tnext"
    code = f"from ragfilter.cli.output import emit; emit({text!r})"
    ours, theirs = pty.openpty()
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=theirs, check=True)
    shown = os.read(ours, 10_000).decode()
    assert shown.splitlines() == ["�[31mred�]0;title� �back", "\tnext"]
    piped = subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    assert piped.stdout.decode() == text


# logs


def test_a_query_logs_one_line(small: Cli) -> None:
    asked = ("query -p query-must", CLERIC)
    made = small.json(*asked)
    assert small.err == ""

    def line(*more: str) -> str:
        small(*asked, "-v", *more)
        (line,) = [line for line in small.err.splitlines() if "query '" in line]
        return line

    reduction = 1 - made["count"] / made["retrieved"]
    figures = f"retrieved={made['retrieved']}, kept={made['count']}, reduction={reduction:.1%}, ms="
    assert figures in line()
    assert line().endswith("fallback=none")
    # No model is at this path, so the layer falls back to distances.
    missing = ["quality.enabled=true", "quality.reranker=cross_encoder", "quality.mode=always"]
    assert line(*(word for value in missing for word in ("--set", value))).endswith("=quality")
    # Without an LLM, the judge is not asked.
    out = small("query -p llm-filter -v", CLERIC)
    assert "not judged yet" in out
    for words in ("The judge needs an LLM: set OPENAI_API_KEY", "fallback=judge"):
        assert words in small.err
    assert "failed" not in out + small.err
    entry = logged(small, *asked)
    assert (entry["query"], entry["collection"], entry["level"]) == (CLERIC, "small", "info")
    assert (entry["retrieved"], entry["kept"]) == (made["retrieved"], made["count"])
    assert (entry["reduction"], entry["fallback"]) == (round(reduction, 4), [])


def logged(cli: Cli, *asked: str) -> dict[str, Any]:
    """The line that a query logs as JSON."""
    cli(*asked, "--log", "json")
    entries: list[dict[str, Any]] = [json.loads(line) for line in cli.err.splitlines()]
    return next(entry for entry in entries if "retrieved" in entry)


def test_a_log_of_a_user_does_not_count_what_they_may_not_see(small: Cli) -> None:
    counts = [logged(small, f"query troll --level {level}")["retrieved"] for level in (0, 4)]
    assert counts == [7, 8]


def test_a_foreign_variable_that_changes_a_setting_is_told(small: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIN_TOP_K", "5")
    made = small.json("query troll")
    assert "quality.min_top_k = 5 is set by the environment variable MIN_TOP_K" in small.err
    assert made["origins"]["quality.min_top_k"] == "environment variable MIN_TOP_K"


def test_the_price_of_a_rerankers_calls_is_told(small: Cli, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    def behave(handler: Handler, body: dict[str, Any]) -> None:
        rows = [{"index": n, "relevance_score": -n} for n in range(len(body["documents"]))]
        handler.reply(200, json.dumps({"results": rows}))

    asked = "query troll -p unfiltered --set quality.mode=always --set quality.reranker=http --set quality.enabled=true"
    asked += " --set quality.reranker_model=m --set quality.reranker_batch=3 --set quality.max_top_k=7"
    given = {"RERANK_URL": serve(behave).url, "PRICE_RERANK": "2", "CURRENCY": "EUR"}
    for name, value in given.items():
        monkeypatch.setenv(f"RAGFILTER_{name}", value)
    for more in ("", " --debug"):
        assert "\nreranker: 7 chunks, 3 calls, 0.0060 EUR\n" in small(asked + more)
    assert small.json(asked)["rerank_cost"] == pytest.approx(0.006)
    assert small.json("query troll")["rerank_cost"] == 0
