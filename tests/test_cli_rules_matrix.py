"""`ragfilter rules matrix` and the effect of an import, with the real embedding model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import write
from faults import KEY, Serve, says
from rule_runs import GOOD, OTHER, Run
from rule_runs import run as run
from rule_runs import small as small

from ragfilter.cli import options
from ragfilter.cli.program import main

pytestmark = pytest.mark.model

QUERIES = {"c": "cleric against armor class 6", "t": "how does a troll heal"}
QRELS = {"c": {"cleric-6": 1, "boat": 0}, "t": {"troll": 1, "cleric-6": 1}}


@pytest.fixture
def labels(tmp_path: Path) -> list[str]:
    rows = (f"{i}\t{c}\t{n}" for i, labels in QRELS.items() for c, n in labels.items())
    queries = write(tmp_path / "q.jsonl", *({"_id": i, "text": t} for i, t in QUERIES.items()))
    qrels = write(tmp_path / "qrels.tsv", *rows)
    return ["--queries", queries, "--qrels", qrels, "--profile", "query-must"]


@pytest.fixture
def own_labels(run: Run, labels: list[str]) -> list[str]:
    """The same labels, imported into the workspace as the set `mine`. Returns the other flags."""
    place = ["-c", "small", "--data-dir", str(run.folder), "--set-name", "mine"]
    assert main(["labels", "import", *labels[:4], *place]) == 0
    return [*labels[4:], "--set", "retrieval.k=6"]


def test_the_matrix_of_labelled_questions(run: Run, labels: list[str], own_labels: Any) -> None:
    made = run.json("matrix", *labels)
    assert (made["collection"], made["labelled"]["queries"]) == ("small", 2)
    good = next(row for row in made["labelled"]["rules"] if row["chunk_ids"] == ["cleric-6"])
    assert (good["rule"], good["queries"], good["blocks"], good["passes"]) == (GOOD, 2, 1, 1)
    # It blocks a chunk that is labelled relevant, so it comes first.
    assert good["conflicts"] == [["t", "cleric-6"]]
    assert good["delta_f1"] > 0
    assert made["labelled"]["rules"][0] == good
    for name in ("mine", "labelled"):
        own = run.json("matrix", "--queries", name, "--profile", "query-must")["labelled"]
        assert [row["delta_f1"] for row in own["rules"]] == [row["delta_f1"] for row in made["labelled"]["rules"]]
    for args, word in (("--queries yours", "no query set 'yours'"), ("", "--queries is missing")):
        run("matrix", *args.split(), code=2)
        assert word in run.err
    lines = run("matrix", *labels).splitlines()
    assert (lines[0], lines[-1]) == ("labelled", "2 rules over 2 questions")
    assert lines[2].split()[:6] == ["cleric-6", "2", "1", "1", "0", "1"]
    # The table says what a rule adds, JSON the opposite: the difference without it.
    assert lines[1].split("  ")[-3:] == ["adds to F1", "adds to recall", "fires"]
    assert lines[2].split()[7] == f"−{good['delta_f1']:.4f}"


def test_questions_without_labels(run: Run, tmp_path: Path) -> None:
    log = write(tmp_path / "log.txt", "trolls in the hills", "", "clerics and trolls")
    run("matrix", "--queries", "asked", code=2)
    assert "no query set 'asked' with questions" in run.err
    with options.open_for(run.folder, "test") as bench:
        bench.labels.remember("small", "trolls in the hills")
    for queries, n in (("asked", 1), (log, 2)):
        made = run.json("matrix", "--queries", queries)
        assert (made["history"]["queries"], "labelled" in made) == (n, False)
    row = next(r for r in made["history"]["rules"] if r["chunk_ids"] == ["cleric-6"])
    assert (row["blocks"], row["passes"], row["delta_f1"]) == (1, 1, None)


def test_a_draft_comes_with_its_row_and_its_losses(
    run: Run, labels: list[str], serve: Serve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server = serve(says('{"contain_one_of":[["armor"]]}'))
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_MODEL", "tiny")
    out = tmp_path / "drafts.jsonl"
    ask = ["suggest", "--llm", "--where", "id=boat", "--where", "id=troll", *labels]
    loses = f"labelled relevant, but would be dropped: {QUERIES['t']}"

    run(*ask, "--out", str(out))
    troll, boat = (json.loads(line) for line in out.read_text().splitlines())
    # "armor" is in one of the two questions; the other is labelled for the troll.
    assert (troll["matrix"]["blocks"], troll["matrix"]["passes"]) == (1, 1)
    assert troll["matrix"]["conflicts"] == [["t", "troll"]]
    assert loses in troll["remarks"]
    assert boat["matrix"]["conflicts"] == []
    assert loses not in boat["remarks"]
    assert run.json(*ask)["drafts"][0]["matrix"] == troll["matrix"]
    printed = run(*ask)
    assert "2 queries, blocks 1, passes 1, 1 conflict, without it F1 +" in printed
    assert f"doubt: {loses}" in printed


def test_a_dry_run_shows_what_an_import_does_to_labelled_queries(run: Run, labels: list[str], tmp_path: Path) -> None:
    lines = ({"id": "cleric-6", "query_must": None}, {"id": "troll", "query_must": GOOD})
    file = write(tmp_path / "rules.jsonl", *lines)
    labels = [*labels, "--set", "retrieval.k=6"]
    effect = run.json("import", file, "--dry-run", *labels)["effect"]
    assert (effect["queries"], effect["labelled"]) == (2, 2)
    first, second = effect["rows"]
    assert (first["id"], first["lost"], first["gained"]) == ("t", ["troll"], ["cleric-6"])
    assert {*first["lost"], *first["gained"]} <= {*first["relevant"]}
    assert (second["id"], second["gained"], second["lost"]) == ("c", ["troll"], [])
    printed = run("import", file, "--dry-run", *labels).splitlines()
    assert "t: loses relevant troll; gains cleric-6 (how does a troll heal)" in printed
    assert printed[-1].startswith("2 of 2 queries change: precision 0.2")
    assert run.rule("cleric-6") == GOOD


def test_a_change_is_tried_on_the_questions_that_were_asked(run: Run) -> None:
    change = ("bulk", "--where", "id=troll", "--set-rule", GOOD, "--dry-run", "--queries", "asked")
    run(*change, code=2)
    with options.open_for(run.folder, "test") as bench:
        for question in ("how does a troll heal", "a cleric against armor class 6"):
            bench.labels.remember("small", question)
    settings = ("--profile", "query-must", "--set", "retrieval.k=6")
    effect = run.json(*change, *settings)["effect"]
    assert (effect["queries"], effect["labelled"], effect["before"]) == (2, 0, None)
    first, second = effect["rows"]
    assert (first["lost"], second["gained"]) == (["troll"], ["troll"])
    # Labels count, and the questions without any stay.
    with options.open_for(run.folder, "test") as bench:
        bench.labels.label("small", first["query"], ["troll"], 2, who="test")
    effect = run.json(*change, *settings)["effect"]
    assert (effect["queries"], effect["labelled"]) == (2, 1)
    assert effect["rows"][0]["lost"] == effect["rows"][0]["relevant"] == ["troll"]


def test_an_import_that_loses_labelled_recall_asks_once_more(
    run: Run, labels: list[str], own_labels: list[str], tmp_path: Path
) -> None:
    line = {"id": "troll", "query_must": {"contain": "cleric"}}
    file = write(tmp_path / "rules.jsonl", line)
    # The workspace's own labels count if no others are named.
    for named in ([*labels, "--set", "retrieval.k=6"], own_labels):
        assert "loses relevant troll" in run("import", file, *named, code=1)
        assert "Nothing was saved" in run.err
    assert run.rule("troll") == OTHER
    run("import", file, *own_labels, "--yes")
    assert run.rule("troll") == '{"contain":"cleric"}'


def test_an_undo_or_redo_that_loses_labelled_recall_asks_once_more(run: Run, own_labels: list[str]) -> None:
    bad = '{"contain":"cleric"}'
    run("bulk", "--where", "id=troll", "--set-rule", bad, "--yes")
    run("bulk", "--where", "id=troll", "--set-rule", OTHER, *own_labels)
    for what, edit in (("undo", "2"), ("redo", "1")):
        for which in ((), ("troll",), ("--edit", edit)):
            assert "loses relevant troll" in run(what, *which, *own_labels, code=1)
            assert "Nothing was saved" in run.err
        refused = run.json(what, *own_labels, code=1)
        assert (refused["saved"], refused["edits"]) == (False, [])
        assert run.rule("troll") == OTHER
        run(what, *own_labels, "--yes")
        assert run.rule("troll") == bad
        # It only gains relevant chunks, so no confirmation is needed.
        assert "2 of 2 queries change" in run("undo", *own_labels)
        assert run.rule("troll") == OTHER
