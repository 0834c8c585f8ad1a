"""`ragfilter rules …` on a real workspace, with a real HTTP server as the LLM. No embedding model
is loaded: the chunks are stored with made-up vectors."""

from __future__ import annotations

import json
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from commands import write
from faults import FAULTS, KEY, Behave, Handler, Serve, Server, says
from rule_runs import CHUNKS, GOOD, OTHER, SPREAD, Run
from rule_runs import run as run
from rule_runs import small as small
from syrupy.assertion import SnapshotAssertion
from waiting import PATIENT_S, PROCESS_S, SILENT_S

from ragfilter.cli import main
from ragfilter.cli.access import open_for
from ragfilter.cli.rules import suggest
from ragfilter.errors import InputError
from ragfilter.library.workspace import open_workspace
from ragfilter.protocols import Delta
from ragfilter.rules import drafting as runs
from ragfilter.stores.workspace import Workspace

ROOT = Path(__file__).resolve().parents[1]
MARKED = re.compile(r"[\d.]+ s\.")
Llm = Callable[[Behave], Server]


@pytest.fixture
def llm(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> Llm:
    """Starts a server and makes it the configured LLM."""

    def start(behave: Behave) -> Server:
        server = serve(behave)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_MODEL", "tiny")
        return server

    return start


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def asked_about(server: Server) -> list[str]:
    """The titles that were sent, each once, in order."""
    prompts = (call["body"]["messages"][1]["content"] for call in server.asked)
    titles = (prompt.partition("<chunk>\ntitle: ")[2].partition("\n")[0] for prompt in prompts)
    return list(dict.fromkeys(titles))


# -- suggest ---------------------------------------------------------------------------------------

ALL = ("--set", "clearance.enabled=false")
SUGGEST = ("suggest", "--llm")
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


def test_a_secret_is_not_sent_for_a_user_who_may_not_see_it(run: Run, llm: Llm) -> None:
    server = llm(says(GOOD))
    run(*SUGGEST, "--where", "type=special")
    assert "left out" not in run.err
    assert len(server.asked) == 3
    assert not any("Secret" in title for title in asked_about(server))
    assert "doppelganger" not in json.dumps(server.asked)


def test_drafts_are_printed_where_no_file_is_named(run: Run, llm: Llm, snapshot: Any) -> None:
    llm(says("no", GOOD, "no"))
    printed = run(*SUGGEST, "--where", "id=cleric-7", "--where", "id=boat")
    assert MARKED.sub("N s.", printed) == snapshot
    document = run.json(*SUGGEST, "--where", "id=boat")
    assert document.pop("seconds") >= 0
    assert document["drafts"][0].pop("ms") >= 0
    assert document == snapshot


def test_chunks_without_a_draft_are_named_with_the_reason(
    run: Run, llm: Llm, tmp_path: Path, snapshot: Any
) -> None:
    llm(says(GOOD, "no", "no", '{"contains": "x"}'))
    printed = run(*MATRICES, "--out", str(tmp_path / "my drafts.jsonl"))
    assert MARKED.sub("N s.", printed).replace(str(tmp_path), "") == snapshot


def test_the_cost_where_prices_are_set(run: Run, llm: Llm, monkeypatch: pytest.MonkeyPatch) -> None:
    llm(says(GOOD))
    monkeypatch.setenv("RAGFILTER_PRICE_PROMPT", "1000")
    monkeypatch.setenv("RAGFILTER_PRICE_COMPLETION", "2000")
    # 21 tokens at 0.001 and 9 at 0.002 each.
    assert "9 answer tokens, cost 0.0390, " in run(*MATRICES)
    assert run.json(*MATRICES)["cost"] == pytest.approx(0.039)
    monkeypatch.setenv("RAGFILTER_CURRENCY", "EUR")
    assert ", cost 0.0390 EUR, " in run(*MATRICES)
    assert run.json(*MATRICES)["currency"] == "EUR"


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


DRAFT_6 = b'{"collection": "small", "id": "cleric-6", "query_must": {"contain_one_of": [["ac"]]}}'
DRAFT_7 = b'{"collection": "small", "id": "cleric-7", "query_must": {"contain_one_of": [["ac"]]}}'
OF_OTHER = b'{"collection": "other", "id": "x", "query_must": null}'


@pytest.mark.parametrize(
    ("before", "after", "done"),
    [
        (b"", b"", set()),
        (DRAFT_6 + b"\n", DRAFT_6 + b"\n", {"cleric-6"}),
        # An editor has removed the last newline.
        (DRAFT_6, DRAFT_6 + b"\n", {"cleric-6"}),
        (DRAFT_6 + b"\n" + DRAFT_7, DRAFT_6 + b"\n" + DRAFT_7 + b"\n", {"cleric-6", "cleric-7"}),
        # Cut off during writing, at any position, including within a character.
        (DRAFT_6 + b"\n" + DRAFT_7[:-1], DRAFT_6 + b"\n", {"cleric-6"}),
        (DRAFT_6 + b"\n{", DRAFT_6 + b"\n", {"cleric-6"}),
        (DRAFT_6 + b'\n{"collection": "\xc3', DRAFT_6 + b"\n", {"cleric-6"}),
    ],
)
def test_the_last_line_is_completed_or_removed(
    tmp_path: Path, before: bytes, after: bytes, done: set[str]
) -> None:
    out = tmp_path / "drafts.jsonl"
    out.write_bytes(before)
    assert suggest.drafted_before(out, "small") == done
    assert out.read_bytes() == after


def test_another_file_is_not_written_to(run: Run, llm: Llm, tmp_path: Path) -> None:
    out = tmp_path / "notes.txt"
    out.write_bytes(OF_OTHER)
    server = llm(says(GOOD))
    run(*MATRICES, "--out", str(out), code=2)
    assert "collection 'other'" in run.err
    assert out.read_bytes() == OF_OTHER
    assert server.asked == []


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"hello\n", "line 1 is not a draft"),
        (b"my only copy of the notes", "line 1 is not a draft"),
        (b'{"a":1}\n{"b":2}', "line 1 is not a draft"),
        (OF_OTHER, "collection 'other'"),
        (DRAFT_6 + b"\n" + OF_OTHER, "line 2 is a draft for the collection 'other'"),
        (DRAFT_6 + b'\n{"b":2}', "line 2 is not a draft"),
        (DRAFT_6 + b"\nask Ann about this", "line 2 is not a draft"),
        # A last line that may be cut off, but after a line that is not a draft, or after none.
        (DRAFT_6[:-1], "line 1 is not a draft"),
        (b"hello\n" + DRAFT_6[:-1], "line 1 is not a draft"),
        (OF_OTHER + b"\n" + DRAFT_6[:-1], "collection 'other'"),
        (DRAFT_6 + b"\n\n" + DRAFT_7[:-1], "line 2 is not a draft"),
    ],
)
def test_the_last_line_of_another_file_stays(tmp_path: Path, content: bytes, why: str) -> None:
    out = tmp_path / "notes.txt"
    out.write_bytes(content)
    with pytest.raises(InputError, match=why):
        suggest.drafted_before(out, "small")
    assert out.read_bytes() == content


@pytest.mark.parametrize(
    ("fault", "words", "tried"),
    [
        ("401", "refused the key", 1),
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


def test_failures_now_and_then_do_not_end_the_run(run: Run, llm: Llm, tmp_path: Path) -> None:
    def flaky(handler: Handler, body: dict[str, Any]) -> None:
        if len(handler.server.asked) % 3:
            handler.reply(500, "{}")
        else:
            says(GOOD)(handler, body)

    llm(flaky)
    out = tmp_path / "drafts.jsonl"
    run(*SUGGEST, *ALL, "--where", "id=*c*", "--out", str(out))
    assert [bool(line["query_must"]) for line in lines(out)] == [False, True, False, True]


def test_a_rate_limit_is_waited_for(serve: Serve) -> None:
    def limited(handler: Handler, body: dict[str, Any]) -> None:
        if len(handler.server.asked) in (1, 2):
            headers = {"Retry_After": "900"} if len(handler.server.asked) == 1 else {}
            handler.reply(429, "{}", **headers)
        else:
            says(GOOD)(handler, body)

    from ragfilter.models.chat import OpenAIChat

    waits: list[float] = []
    chat = OpenAIChat(model="tiny", base_url=serve(limited).url)
    (draft,) = runs.drafts(
        [CHUNKS[0]], chat, timeout_s=PATIENT_S, templates=None, wait=waits.append
    )
    assert draft.text == GOOD
    assert waits == [runs.MOST_WAIT_S, runs.WAIT_S]


def test_a_rate_limit_without_end_is_a_failure() -> None:
    from ragfilter.errors import ChatError

    class Limited:
        name = "limited"

        def stream(self, *args: Any, **kwargs: Any) -> Iterator[Delta]:
            raise ChatError("Too fast.", kind="rate_limit", retry_after=1.0)

    waits: list[float] = []
    found = runs.drafts(
        [CHUNKS[0]], Limited(), timeout_s=PATIENT_S, templates=None, wait=waits.append
    )
    assert next(found).failed == "rate_limit"
    assert waits == [1.0] * runs.MOST_WAITS


def test_own_templates(run: Run, llm: Llm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "boats.toml").write_text(
        "version = 1\nrecognise.title = ['^boats$']\nprompt.holds = 'The kind of boat.'\n"
        "example.title = 'Rafts'\nexample.rule = '{\"contain\": \"raft\"}'\n"
    )
    llm(says('{"contain": "boat"}'))
    monkeypatch.setenv("RAGFILTER_RULE_TEMPLATES", str(tmp_path))
    (draft,) = run.json(*SUGGEST, "--where", "id=boat")["drafts"]
    assert draft["prompt_version"] == "suggest-1 boats-1"


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
    command = [
        sys.executable, "-c", HEEDING_INTERRUPTS, "rules", *MATRICES, "-c", "small",
        "--data-dir", str(workspace), *args,
    ]  # fmt: skip
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_loses_nothing(
    number: signal.Signals, run: Run, slow: Server, tmp_path: Path, bare_environ: dict[str, str],
) -> None:  # fmt: skip
    out = tmp_path / "drafts.jsonl"
    printed = printed_until(number, ["--out", str(out)], run.folder, slow, bare_environ)
    assert printed.startswith("1 drafted")
    assert [line["id"] for line in lines(out)] == ["cleric-6"]


def test_an_interrupted_document_holds_what_was_drafted(
    run: Run, slow: Server, bare_environ: dict[str, str]
) -> None:
    made = json.loads(printed_until(signal.SIGINT, ["--json"], run.folder, slow, bare_environ))
    assert (made["selected"], made["drafted"]) == (3, 1)
    assert [draft["id"] for draft in made["drafts"]] == ["cleric-6"]


@pytest.mark.parametrize("as_json", [False, True])
def test_a_file_that_can_no_longer_be_written_loses_nothing(
    run: Run, llm: Llm, tmp_path: Path, as_json: bool
) -> None:
    out = tmp_path / "drafts.jsonl"

    def gone(handler: Handler, body: dict[str, Any]) -> None:
        if len(handler.server.asked) == 2:
            out.unlink()
            out.mkdir()
        says(GOOD)(handler, body)

    llm(gone)
    args = [*MATRICES, "--out", str(out)]
    if as_json:
        made = run.json(*args, code=2)
        assert [draft["id"] for draft in made["drafts"]] == ["cleric-6", "cleric-7"]
    else:
        printed = run(*args, code=2).splitlines()
        assert printed[0].startswith("2/3  cleric-7  Attack matrix for clerics, AC 7")
        assert printed[1] == f"  {GOOD}"
        assert printed[2].startswith("2 drafted")
    (told,) = run.err.splitlines()[1:]
    assert told.startswith(f"ragfilter: The drafts cannot be written to {out}: Is a directory.")


@pytest.mark.parametrize(
    ("args", "word"),
    [
        ([], "--llm"),
        (["--llm"], "make local-llm"),
        (["--families", "--llm"], "beside --families"),
        (["--families", "--where", "colour=red"], "fields are type, source"),
        (["--families", "--where", "type"], "is not a condition"),
        (["--families", "--where", "rule=maybe"], "any, none"),
        (["--families", "--where", "state=draft"], "invalid, warning, none, note"),
        (["--families", "--where", "text= "], "names no words"),
        (["--families", "--limit", "0"], "--limit"),
        (["--llm", "--out", "/nowhere/drafts.jsonl"], "/nowhere/drafts.jsonl"),
        (["--families", "-c", "empty"], "'empty' is empty"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_line(run: Run, args: list[str], word: str) -> None:
    main(["rules", "suggest", "-c", "small", *args, "--data-dir", str(run.folder)])
    out, err = run.capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert word in err


# -- check -----------------------------------------------------------------------------------------


def fixed(run: Run, *args: str) -> dict[str, str | None]:
    return {each["id"]: each["after"] for each in run.json("check", "--apply", *args)["fixed"]}


def test_findings_and_their_exit_codes(run: Run, snapshot: Any) -> None:
    assert run("check") == snapshot
    run.store({"cleric-7": SPREAD})
    assert run("check") == snapshot
    run("check", "--strict", code=1)
    assert run("check", "--strict", "--where", "id=troll").endswith("0 warnings, 0 notes\n")
    run.store({"boat": '{"contain_on_of": []}'})
    assert run("check", code=1) == snapshot
    assert run("check", "--kind", "spread").startswith("warning: cleric-7 ")
    assert run.json("check", "--where", "type=item", code=1) == snapshot
    assert run.json("check", "--where", "type=monster")["errors"] == 0
    run("check", "--kind", "TYPO", code=2)
    assert "--kind 'TYPO' is not a kind. Use one of unreadable, " in run.err


def test_rules_are_proposed_for_families_and_applied(run: Run, snapshot: Any) -> None:
    run.store({"cleric-6": None})
    assert run("check", "--kind", "family") == snapshot
    # What a user may not see is no member of a family.
    assert "secret" not in run("check", "--kind", "family", "--apply", "--dry-run")
    assert list(fixed(run, "--kind", "family")) == ["cleric-6", "cleric-7", "cleric-8"]
    assert '"ac 7"' in (run.rule("cleric-7") or "")
    assert run.json("check", "--kind", "family")["findings"] == []


def test_a_rule_that_asks_for_nothing_is_removed(run: Run) -> None:
    run.store({"boat": "{}"})
    assert "  better: no rule\n" in run("check")
    assert fixed(run) == {"boat": None}
    assert run.rule("boat") is None


def test_check_knows_the_questions_that_were_asked(run: Run) -> None:
    run.store({"boat": '{"contain_all_of":["boat","fleet"]}'})
    assert run("check").endswith("0 warnings, 0 notes\n")
    with open_workspace(run.folder) as bench:
        for number in range(20):
            bench.labels.remember("small", f"Which fleet has ship {number}?")
    assert run("check").startswith("warning: boat contain_all_of[1]: “fleet” is in nearly every")
    # What such a word is for is not certain.
    assert fixed(run) == {}
    assert fixed(run, "--kind", "everywhere") == {"boat": '{"contain_all_of":["boat"]}'}


def test_check_learns_nothing_from_questions_labelled_on_hidden_chunks(run: Run) -> None:
    run.store({"boat": '{"contain_all_of":["boat","fleet"]}'})
    with open_workspace(run.folder) as bench:
        asked = (f"Which fleet has ship {number}?" for number in range(20))
        bench.labels.add("small", [(question, "secret", 1) for question in asked], who="ann")
    for level, warnings in (((), 0), (("--level", "4"), 1)):
        assert run.json("check", *level)["warnings"] == warnings
        assert run.json("list", "--where", "state=warning", *level)["found"] == warnings


def test_check_of_a_file_needs_no_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    snapshot: Any,
) -> None:  # fmt: skip
    monkeypatch.setenv("RAGFILTER_DATA_DIR", str(tmp_path / "none"))
    failed = {"id": "b", "query_must": None, "error": "the LLM gave no answer"}
    drafted = {"id": "b", "query_must": {"contain": "b"}}
    for name, code, records in (
        ("rules", 1, ({"id": "a", "title": "Clerics, druids and monks",
                       "query_must": json.loads(SPREAD)},
                      {"id": "b", "query_must": "{"}, {"id": "c"})),
        ("doubtful", 0, ({"id": "a", "query_must": json.loads(SPREAD)},)),
        ("broken", 1, ('{"id": "a", "x": NaN}', drafted, "no JSON",
                       {"id": "b", "query_must": {"contain": "c"}})),
        ("resumed", 0, (failed, drafted, {"id": "b"}, failed)),
    ):  # fmt: skip
        file = write(tmp_path / f"{name}.jsonl", *records)
        assert main(["rules", "check", "--rules", file]) == code
        assert capsys.readouterr().out.replace(str(tmp_path), "") == snapshot(name=name)
    doubtful = str(tmp_path / "doubtful.jsonl")
    assert main(["rules", "check", "--rules", doubtful, "--strict"]) == 1
    assert main(["rules", "check", "--rules", doubtful, "--apply"]) == 2
    assert "--apply has no effect beside --rules." in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


# -- export and import -----------------------------------------------------------------------------

THREE = [{"id": i, "query_must": json.loads(GOOD)} for i in ("cleric-7", "troll", "boat")]


def test_export_and_import_again(run: Run, tmp_path: Path, snapshot: Any) -> None:
    out = tmp_path / "rules.jsonl"
    assert run("export", "--out", str(out)) == f"small: 2 rules written to {out}\n"
    assert run("export") == out.read_text(encoding="utf-8") == snapshot
    assert run("import", str(out)).startswith("small: 0 rules saved, 2 unchanged")
    run.store({"troll": None})
    assert run("import", str(out)).startswith("small: 1 rule saved, 1 unchanged")
    assert run.rule("troll") == OTHER


def test_a_secret_is_not_exported_for_a_user_who_may_not_see_it(run: Run) -> None:
    run.store({"secret": GOOD})
    for args, is_exported in ((ALL, True), ((), False), (("--level", "4"), True)):
        assert ("secret" in run("export", *args)) is is_exported
        assert run.err == ""


def test_an_import_touches_nothing_that_the_user_may_not_see(run: Run, tmp_path: Path) -> None:
    run.store({"secret": GOOD})
    seen = tmp_path / "seen.jsonl"
    run("export", "--out", str(seen))
    assert run.json("import", str(seen), "--prune")["pruned"] == 0
    assert run.err == ""
    secret = write(tmp_path / "secret.jsonl", {"id": "secret", "query_must": {"contain": "x"}})
    absent = write(tmp_path / "absent.jsonl", {"id": "absent", "query_must": {"contain": "x"}})
    refused = [run.json("import", file, code=1)["refused"] for file in (secret, absent)]
    assert refused[0][0] == refused[1][0] | {"chunk_id": "secret"}
    assert run.rule("secret") == GOOD
    assert run.json("import", str(seen), "--prune", *ALL)["pruned"] == 1


def test_only_a_file_that_lacks_no_rule_counts_as_an_export(run: Run, tmp_path: Path) -> None:
    hidden = write(tmp_path / "in.jsonl", {"id": "secret", "query_must": {"contain": "x"}})
    run("import", hidden, *ALL)
    for n, (args, changed) in enumerate([((), {"secret": None}), (ALL, {})]):
        run("export", "--out", str(tmp_path / f"{n}.jsonl"), *args)
        with open_for(run.folder, "test") as bench:
            assert bench.journal.edited_since_export("small") == changed


def test_an_earlier_file_brings_back_what_it_held_and_nothing_else(
    run: Run, tmp_path: Path, snapshot: Any
) -> None:
    out = tmp_path / "rules.jsonl"
    run("export", "--out", str(out))
    for chunk_id in ("boat", "cleric-7", "troll"):
        new = write(tmp_path / "new.jsonl", {"id": chunk_id, "query_must": {"contain": "x"}})
        run("import", new)
    assert run("import", str(out), "--prune", "--dry-run") == snapshot
    assert run.rule("boat") == '{"contain":"x"}'
    imported = run.json("import", str(out), "--prune")
    assert (imported["pruned"], len(imported["saved"]), imported["unchanged"]) == (2, 3, 1)
    assert run.rules("cleric-6", "cleric-7", "troll", "boat") == [GOOD, None, OTHER, None]
    # One step, undone in one go.
    run("undo")
    assert run.rules("cleric-7", "troll", "boat") == ['{"contain":"x"}'] * 3
    assert run.json("import", str(out))["pruned"] == 0


def test_nothing_is_pruned_that_a_line_may_name(run: Run, tmp_path: Path) -> None:
    named = write(tmp_path / "named.jsonl", {"id": "troll", "query_must": 7}, {"id": "cleric-6"})
    assert run.json("import", named, "--prune", code=1)["pruned"] == 0
    broken = write(tmp_path / "broken.jsonl", {"id": "cleric-6", "query_must": {}}, '{"id": "tro')
    run("import", broken, "--prune", code=2)
    assert f"Line 2 of {broken} does not say which chunk it is about" in run.err
    assert run.rules("cleric-6", "troll") == [GOOD, OTHER]


def test_import_names_what_it_refuses_and_saves_the_rest(
    run: Run, tmp_path: Path, snapshot: Any
) -> None:
    file = write(
        tmp_path / "in.jsonl",
        {"id": "cleric-7", "query_must": {"contain_one_of": [["cleric"]]}},
        {"_id": "cleric-8", "query_must": '{"contain": "cleric"}'},
        {"id": "boat", "query_must": {"contain_one_of": [[]]}},
        {"id": "ghost", "query_must": {"contain": "ghost"}},
        "not json",
        {"query_must": {}},
        {"id": "secret"},
        {"id": "secret", "query_must": None, "error": "The endpoint failed."},
        {"id": "troll", "query_must": None},
        {"id": "cleric-6", "query_must": json.loads(GOOD)},
    )
    assert run("import", file, code=1) == snapshot
    assert run.rules("cleric-7", "cleric-8", "troll", "boat") == [
        '{"contain_one_of":[["cleric"]]}', '{"contain":"cleric"}', None, None,
    ]  # fmt: skip
    assert run("undo", "troll").endswith(f"the rule of troll is {OTHER}\n")
    assert run.rule("troll") == OTHER


def test_a_bad_line_is_named_though_its_chunk_comes_again(
    run: Run, tmp_path: Path, snapshot: Any
) -> None:
    file = write(
        tmp_path / "in.jsonl",
        {"id": "boat", "query_must": {"contain_one_of": [[]]}},
        '{"id": "boat", "id": "troll", "query_must": {"contain": "x"}}',
        {"id": "boat", "query_must": {"contain": "first"}},
        {"id": "boat", "query_must": {"contain": "boat"}},
    )
    assert run("import", file, code=1) == snapshot
    assert run.rule("boat") == '{"contain":"first"}'


def test_an_undo_is_tried_first_and_leaves_out_what_was_changed_since(
    run: Run, tmp_path: Path, snapshot: Any
) -> None:
    run("import", write(tmp_path / "in.jsonl", *THREE))
    run("bulk", "--where", "id=troll", "--set-rule", '{"contain":"troll"}')
    run("undo", "--edit", "1", code=2)
    assert run.err == snapshot
    tried = ("undo", "--edit", "1", "--rest", "--dry-run")
    assert run(*tried) == snapshot
    assert run.json(*tried)["changes"] == {"cleric-7": None, "boat": None}
    assert run.rule("boat") == GOOD
    assert len(run.json("undo", "--edit", "1", "--rest")["edits"]) == 2
    assert run.rules("cleric-7", "troll", "boat") == [None, '{"contain":"troll"}', None]


def break_database(folder: Path, when: str) -> closing[sqlite3.Connection]:
    """Lets the journal's database fail."""
    database = sqlite3.connect(folder / "ragfilter.db")
    fails = "begin select abs(-9223372036854775808); end"
    database.execute(f"create trigger fails before {when} {fails}")
    return closing(database)


def test_an_import_that_fails_changes_nothing(run: Run, tmp_path: Path) -> None:
    run("history")
    with break_database(run.folder, "insert on rule_edits when new.chunk_id = 'troll'"):
        assert run("import", write(tmp_path / "in.jsonl", *THREE), code=2) == ""
    told = "(integer overflow). Nothing was saved."
    assert told in run.err
    assert run.rules("cleric-7", "troll", "boat") == [None, OTHER, None]
    assert run.json("history") == []


def test_an_import_that_cannot_be_closed_is_finished_at_the_next_start(
    run: Run, tmp_path: Path
) -> None:
    run("history")
    with break_database(run.folder, "update on rule_edits") as database:
        assert run("import", write(tmp_path / "in.jsonl", THREE[2]), code=2) == ""
        assert "finished or rolled back at the next start" in run.err
        database.execute("drop trigger fails")
    (edit,) = run.json("history")
    assert (edit["state"], run.rule("boat")) == ("done", GOOD)


def test_a_dry_run_saves_nothing(run: Run, tmp_path: Path, snapshot: Any) -> None:
    file = write(tmp_path / "in.jsonl", {"id": "cleric-6", "query_must": None}, *THREE[:2])
    assert run("import", file, "--dry-run") == snapshot
    imported = run.json("import", file, "--dry-run")
    assert [c["kind"] for c in imported["would_save"]] == ["removed", "new", "changed"]
    assert run.rule("cleric-6") == GOOD
    assert run.json("history") == []


def test_a_draft_with_doubts_gives_way_to_a_later_line(run: Run, llm: Llm, tmp_path: Path) -> None:
    llm(says(SPREAD, SPREAD, GOOD))
    out = tmp_path / "drafts.jsonl"
    printed = run(*SUGGEST, "--where", "id=cleric-7", "--out", str(out))
    assert "1 with doubts" in printed
    assert "held back until the remarks are removed.\n" in printed
    draft = lines(out)[0]
    assert "put them in one group" in draft["remarks"][0]
    with out.open("a", encoding="utf-8") as file:
        file.write(json.dumps(draft | {"query_must": json.loads(GOOD), "remarks": []}) + "\n")
    assert run("import", str(out)).startswith("small: 1 rule saved, 0 unchanged")
    assert run.rule("cleric-7") == GOOD


def test_a_line_that_comes_again_with_doubts_stays_accepted(run: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "in.jsonl", THREE[2], THREE[2] | {"remarks": ["one group"]})
    assert run("import", file).startswith("small: 1 rule saved, 0 unchanged")
    assert run.rule("boat") == GOOD


def test_a_draft_with_doubts_is_held_back_until_they_are_accepted(
    run: Run, tmp_path: Path, snapshot: Any
) -> None:
    file = write(
        tmp_path / "in.jsonl",
        {"id": "cleric-6", "query_must": json.loads(GOOD), "remarks": ["stored already"]},
        {"id": "cleric-7", "query_must": json.loads(SPREAD), "remarks": ["one group", "too few"]},
        {"id": "boat", "query_must": {"contain": "boat"}, "remarks": []},
        {"id": "troll", "query_must": None, "remarks": ["no matter: it is removed"]},
    )
    assert run("import", file, "--dry-run", code=1) == snapshot
    assert run("import", file, code=1) == snapshot
    assert run.rules("cleric-7", "boat") == [None, '{"contain":"boat"}']
    (held,) = run.json("import", file, code=1)["held_back"]
    assert (held["chunk_id"], held["doubts"]) == ("cleric-7", ["one group", "too few"])
    assert run("import", file, "--with-doubts") == snapshot
    assert run.rule("cleric-7") == SPREAD


def test_import_of_a_file_that_is_none(run: Run, tmp_path: Path) -> None:
    run("import", str(tmp_path / "missing.jsonl"), code=2)
    assert "missing.jsonl cannot be read: No such file" in run.err
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    run("import", str(tmp_path / "bytes"), code=2)
    assert "it is not UTF-16 text" in run.err


# -- history, undo, redo ---------------------------------------------------------------------------


def test_history_undo_and_redo(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    assert run("history") == ""
    assert run.err == snapshot
    for kind in ("undo", "redo"):
        run(kind, code=2)
        assert f"There is nothing to {kind}." in run.err
    monkeypatch.setenv("RAGFILTER_USER", "ada")
    run("import", write(tmp_path / "in.jsonl", THREE[2]))
    assert run("undo") == snapshot
    assert run.rule("boat") is None
    (redone,) = run.json("redo", "boat")["edits"]
    assert redone["kind"] == "redo"
    assert run.rule("boat") == GOOD
    head, *rows = run("history").splitlines()
    assert head.split() == ["edit", "when", "who", "kind", "state", "chunk", "rule"]
    assert [row.split()[3:6] for row in rows] == [
        ["ada", kind, "done"] for kind in ("redo", "undo", "edit")
    ]
    edits = run.json("history", "boat", "--limit", "1")
    assert [(edit["kind"], edit["after"]) for edit in edits] == [("redo", GOOD)]
    assert run.json("history", "troll") == []
