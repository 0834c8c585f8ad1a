"""`ragfilter rules suggest --llm` on a real workspace, with a real HTTP server as the LLM."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from commands import ROOT
from faults import FAULTS, KEY, Handler, Serve, Server, says
from rule_runs import GOOD, SUGGEST, Llm, Run, lines
from rule_runs import llm as llm
from rule_runs import run as run
from rule_runs import small as small
from waiting import PROCESS_S, SILENT_S

from ragfilter.cli.program import main
from ragfilter.stores.workspace_files import Workspace

MARKED = re.compile(r"[\d.]+ s\.")


def asked_about(server: Server) -> list[str]:
    """The titles that were sent, each once, in order."""
    prompts = (call["body"]["messages"][1]["content"] for call in server.asked)
    titles = (prompt.partition("<chunk>\ntitle: ")[2].partition("\n")[0] for prompt in prompts)
    return list(dict.fromkeys(titles))


# -- suggest ---------------------------------------------------------------------------------------

MATRICES = (*SUGGEST, "--where", "title=attack matrix*")


def test_drafts_of_a_selection(run: Run, llm: Llm, tmp_path: Path, snapshot: Any) -> None:
    server = llm(says(GOOD))
    out = tmp_path / "drafts.jsonl"
    printed = run(*MATRICES, "--out", str(out))
    assert MARKED.sub("N s.", run.err + printed.replace(str(out), "OUT")) == snapshot
    first = lines(out)[0]
    assert first.pop("ms") > 0
    assert first == snapshot
    assert [line["id"] for line in lines(out)] == ["cleric-6", "cleric-7", "cleric-8"]
    assert len(server.asked) == 3
    assert run.rule("cleric-7") is None
    assert run.json(*MATRICES, "--limit", "2")["selected"] == 2


def test_a_second_run_goes_on_and_tries_failures_again(run: Run, llm: Llm, tmp_path: Path) -> None:
    out = tmp_path / "drafts.jsonl"
    server = llm(says(GOOD, "no", "no", GOOD))
    run(*MATRICES, "--out", str(out))
    assert [bool(line["query_must"]) for line in lines(out)] == [True, False, True]
    assert len(server.asked) == 4
    server = llm(says(GOOD))
    printed = run(*MATRICES, "--out", str(out))
    assert "1 drafted" in printed
    assert "2 drafted before" in printed
    assert asked_about(server) == ["Attack matrix for clerics, AC 7"]
    assert [line["id"] for line in lines(out)] == ["cleric-6", "cleric-7", "cleric-8", "cleric-7"]
    server = llm(says(GOOD))
    run(*MATRICES, "--out", str(out))
    assert server.asked == []


OF_OTHER = b'{"collection": "other", "id": "x", "query_must": null}'


def test_another_file_is_not_written_to(run: Run, llm: Llm, tmp_path: Path) -> None:
    out = tmp_path / "notes.txt"
    out.write_bytes(OF_OTHER)
    server = llm(says(GOOD))
    run(*MATRICES, "--out", str(out), code=2)
    assert "collection 'other'" in run.err
    assert out.read_bytes() == OF_OTHER
    assert server.asked == []


@pytest.mark.parametrize(
    ("fault", "words", "tried"),
    [
        ("401", "refused the key", 1),
        ("429", "429", 1),
        ("500", "3 times in a row", 3),
        ("nothing", "3 times in a row", 3),
    ],
)
def test_a_failing_endpoint_ends_the_run(
    run: Run, llm: Llm, tmp_path: Path, fault: str, words: str, tried: int
) -> None:
    llm(FAULTS[fault])
    out = tmp_path / "drafts.jsonl"
    printed = run(*MATRICES, "--out", str(out), code=2)
    assert f"{tried} without a draft" in printed
    assert words in run.err
    assert KEY not in run.err + printed
    assert [bool(line["error"]) for line in lines(out)] == [True] * tried


HEEDING_INTERRUPTS = (
    "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "runpy.run_module('ragfilter', run_name='__main__')"
)
"""Tests that run in the background of a shell inherit an ignored Ctrl+C."""


def printed_until(
    number: signal.Signals, args: list[str], workspace: Path, server: Server, bare: dict[str, str]
) -> str:
    """The output of `suggest` when it gets the signal during its second draft."""
    environ = bare | {"OPENAI_BASE_URL": server.url, "OPENAI_MODEL": "tiny"}
    words = ["rules", *MATRICES, "-c", "small", "--data-dir", str(workspace), *args]
    command = [sys.executable, "-c", HEEDING_INTERRUPTS, *words]
    process = subprocess.Popen(
        command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        until = time.monotonic() + PROCESS_S
        while len(server.asked) < 2 and time.monotonic() < until:
            time.sleep(0.05)
        # The workspace is free while the model works.
        with Workspace.open(workspace):
            pass
        process.send_signal(number)
        printed, err = process.communicate(timeout=PROCESS_S)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, err.splitlines()[1:]) == (130, ["Stopped."])
    return printed


@pytest.fixture
def slow(serve: Serve) -> Server:
    """Answers once, and never again."""

    def answer(handler: Handler, body: dict[str, Any]) -> None:
        if len(handler.server.asked) == 2:
            handler.server.over.wait(SILENT_S)
        says(GOOD)(handler, body)

    return serve(answer)


def test_an_interruption_loses_nothing(run: Run, slow: Server, tmp_path: Path, bare_environ: dict[str, str]) -> None:
    out = tmp_path / "drafts.jsonl"
    printed = printed_until(signal.SIGINT, ["--out", str(out)], run.folder, slow, bare_environ)
    assert printed.startswith("1 drafted")
    assert [line["id"] for line in lines(out)] == ["cleric-6"]


def test_a_file_that_can_no_longer_be_written_loses_nothing(run: Run, llm: Llm, tmp_path: Path) -> None:
    out = tmp_path / "drafts.jsonl"

    def gone(handler: Handler, body: dict[str, Any]) -> None:
        if len(handler.server.asked) == 2:
            out.unlink()
            out.mkdir()
        says(GOOD)(handler, body)

    llm(gone)
    made = run.json(*MATRICES, "--out", str(out), code=2)
    assert [draft["id"] for draft in made["drafts"]] == ["cleric-6", "cleric-7"]
    (told,) = run.err.splitlines()[1:]
    assert told.startswith(f"ragfilter: {out} cannot be written: Is a directory.")


def test_bad_input_is_one_line(run: Run) -> None:
    for args, word in [
        (["--llm"], "No LLM endpoint is configured"),
        (["--families", "--llm"], "beside --families"),
        (["--families", "--where", "colour=red"], "fields are type, source"),
        (["--families", "--where", "state=draft"], "invalid, warning, note, valid, none"),
        (["--llm", "--out", "/dev/null/drafts.jsonl"], "/dev/null/drafts.jsonl"),
    ]:
        main(["rules", "suggest", "-c", "small", *args, "--data-dir", str(run.folder)])
        out, err = run.capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1), args
        assert word in err
