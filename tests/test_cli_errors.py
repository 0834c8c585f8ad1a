"""Errors of the command line: one line, and the exit code."""

from __future__ import annotations

import io
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from commands import ROOT, Cli, run, write
from commands import cli as cli
from commands import restored_logging as restored_logging
from syrupy.assertion import SnapshotAssertion
from waiting import PROCESS_S

from ragfilter.cli.program import main


def test_a_text_is_shown_without_the_characters_that_its_encoding_lacks(cli: Cli) -> None:
    narrow = run("cut", "0.1", "0.2", "0.5", encoding="ascii", PYTHONIOENCODING="ascii:strict")
    assert narrow.returncode == 0
    assert narrow.stdout == cli("cut 0.1 0.2 0.5").encode("ascii", "replace").decode()


def test_help_and_json_fit_into_what_their_encoding_has(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def narrow(*args: str) -> list[str]:
        streams = [io.TextIOWrapper(io.BytesIO(), "ascii", write_through=True) for _ in range(2)]
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", streams[0])
            patch.setattr(sys, "stderr", streams[1])
            assert main([*args]) == 0
        return [stream.buffer.getvalue().decode() for stream in streams]  # type: ignore[attr-defined]

    source = write(tmp_path / "s.jsonl", {"id": "é≥😀", "text": "Ωmega \ud800 naïve"})
    where = ("--data-dir", str(tmp_path / "ws"))
    assert narrow("--help")[0] == cli("--help").encode("ascii", "replace").decode()
    assert json.loads(narrow("index", source, "-c", "wide", "--json", *where)[0])["total"] == 1
    asked, log = narrow("query", "Ω≥", "-c", "wide", "--json", "--log", "json", *where)
    assert json.loads(asked)["kept"] == ["é≥😀"]
    assert [json.loads(line)["query"] for line in log.splitlines() if "query" in line]
    # The content of a file is UTF-8, whatever the encoding.
    assert json.loads(narrow("collections", "export", "wide", *where)[0])["id"] == "é≥😀"


BIG = "9" * 20


@pytest.mark.parametrize(
    "words",
    [
        "cut 0.1 abc",
        "cut 0.1 nan",
        "cut 0.1 --skip-first false",
        "cut",
        "cut 0.1 --k 0",
        "cut 1e308 -1e308",
        "index demo --rebuild",
        "index --rebuild -c small --reset",
        "index --rebuild -c small --no-headings",
        "index --rebuild -c small --column a=b",
        "index demo.jsonl",
        "index --collection x-y",
        "query x --references",
        "query",
        "query x --colection y",
        "query x --profile best",
        "query x --set cutoff.gap",
        "query x --set cutoff.gap_treshold=1",
        "query x -k 0",
        "query x --gap-threshold wide",
        "query x --config /nowhere.toml",
        "query x --level high",
        "query x --level -1",
        "query x --log loud",
        "query x --set clearance.level=3",
        "query x --set cutoff.strategy=x",
        "query x --set clearance.department=hr",
        "query x --set clearance.enabled",
        "rules suggest --families --llm",
        "rules check --dry-run",
        "rules check --queries asked",
        f"rules history --limit {BIG}",
        f"rules history --edit=-{BIG}",
        f"rules undo --edit=-{BIG}",
        "gate --queries x --baseline b --update-baseline --max-drop f1=1",
        f"runs show -- -{BIG}",
        f"runs remove -- -{BIG}",
        f"runs show 1 --against=-{BIG}",
        "labels import --queries q.jsonl --by-llm",
        "eval --queries q.jsonl",
        "eval --queries demo --qrels q.tsv",
        "eval --queries demo --qrels demo --only zz",
        "nope",
    ],
    ids=lambda words: words[:60],
)
def test_bad_input_is_one_line(words: str, cli: Cli, snapshot: SnapshotAssertion) -> None:
    assert cli.refused(words) == snapshot


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a chunk in the collection `small`."""
    folder = tmp_path_factory.mktemp("errors")
    source = write(folder / "chunks.jsonl", {"id": "a", "text": "An owl."})
    assert main(["index", source, "-c", "small", "--data-dir", str(folder / "ws")]) == 0
    return folder / "ws"


@pytest.mark.parametrize("path", ["x" * 300, "x/" * 2500], ids=len)
@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ("index {} -c small", "Give demo, adsapi, or a file, folder or zip"),
        ("query owl --data-dir {}", "--data-dir or RAGFILTER_DATA_DIR"),
        ("rules export --out {} -c small", "Use another file with --out"),
        ("tune --queries demo --out {}/y -c small", "the folder does not exist. Use another"),
    ],
)
def test_a_path_without_end_is_told_in_a_short_line(
    words: str, remedy: str, path: str, workspace: Path, cli: Cli
) -> None:
    where = "" if "--data-dir" in words else f" --data-dir {workspace}"
    said = cli.refused(words.replace("{}", path) + where)
    assert remedy in said
    assert len(said) < 700


@pytest.mark.parametrize("where", [".lock", "copies/.small.lock"])
def test_a_lock_that_is_a_folder_is_told(tmp_path: Path, where: str, cli: Cli) -> None:
    (tmp_path / where).mkdir(parents=True)
    given = write(tmp_path / "x.jsonl", {"id": "a", "text": "t"})
    said = cli.refused("index -c small", given, "--data-dir", str(tmp_path))
    assert f"The lock {tmp_path / where} cannot be opened: Is a directory." in said


@pytest.mark.slow
def test_a_lock_of_another_user_is_told(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch(mode=0o000)
    made = run("query", "owl", "--data-dir", str(tmp_path), plain_user=True)
    assert made.returncode == 2
    assert f"The lock {tmp_path}/.lock cannot be opened: Permission denied." in made.stderr
    assert made.stderr.count("\n") == 1


def test_an_unexpected_failure_is_one_line_and_verbose_shows_where(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**_: object) -> None:
        raise ZeroDivisionError("a\nbug")

    monkeypatch.setattr("ragfilter.settings.config.load", broken)
    assert "Unexpected ZeroDivisionError: a bug. Run again with -v" in cli.refused("cut 0.1")
    cli("cut 0.1 -v", code=2)
    assert "in broken" in cli.err


def test_being_stopped_is_no_failure_of_ours(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ragfilter.settings.config.load", stopped)
    assert (cli("cut 0.1", code=130), cli.err) == ("", "Stopped.\n")


def test_a_reader_that_goes_away_is_no_error() -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "ragfilter", "settings"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.close()
    said = child.stderr.read()
    child.stderr.close()
    assert (child.wait(PROCESS_S), said) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_told() -> None:
    with Path("/dev/full").open("w") as full:
        made = subprocess.run(
            [sys.executable, "-m", "ragfilter", "settings"],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PROCESS_S,
        )
    assert made.returncode == 2
    assert made.stderr.startswith("ragfilter: Standard output cannot be written: No space left")


def test_a_port_in_use_is_refused_before_anything_is_indexed(cli: Cli, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"Port {port}" in cli.refused(f"app --port {port} --data-dir {tmp_path / 'ws'}")
    assert not (tmp_path / "ws").exists()
