"""`ragfilter report` and `ragfilter labels preferences`, end to end on a small collection."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from test_cli_labels_and_runs import place as place
from test_cli_labels_and_runs import run as run

from ragfilter.stores.preferences import Answered, Preferences

pytestmark = pytest.mark.model


def test_a_query_is_reported_alone_and_against_a_profile(run: Any, tmp_path: Path) -> None:
    asked = ("report", "query", "what does a cat do", "-c", "small", "--set", "retrieval.k=2")
    code, out, _ = run(*asked, "--answer", "--out", str(tmp_path / "one.html"))
    assert (code, out) == (0, f"{tmp_path / 'one.html'}\n")
    one = (tmp_path / "one.html").read_text("utf-8")
    assert "<h1>what does a cat do</h1>" in one
    assert "<h3>without the filter</h3>" in one
    assert "A cat hunts mice at night." in one
    code, out, _ = run(*asked, "--against", "unfiltered")
    assert code == 0
    assert "One question under two settings: A is unfiltered, B is these settings" in out
    assert re.search(r"Only A keeps: \d", out)


def test_a_query_is_reported_against_a_file_saved_settings_and_a_run(
    run: Any, place: Path, tmp_path: Path
) -> None:
    one = tmp_path / "one.toml"
    one.write_text('profile = "unfiltered"\nretrieval.k = 1\n')
    (place / "ws" / "settings").mkdir(exist_ok=True)
    (place / "ws" / "settings" / "mine.toml").write_text(one.read_text())
    files = ["--queries", str(place / "queries.jsonl"), "--qrels", str(place / "qrels.tsv")]
    save = ["--save", "one", "--json"]
    code, out, _ = run("eval", "-c", "small", *files, "--config", str(one), *save)
    number = str(json.loads(out)["run"])
    asked = ("report", "query", "what does a cat do", "-c", "small", "-p", "unfiltered")
    for against, name in ((str(one), "one.toml"), ("mine", "mine.toml"), (number, f"run {number}")):
        code, out, _ = run(*asked, "--against", against)
        assert code == 0
        assert f"A is {name}, B is these settings" in out
        assert "Both keep: 1" in out
        assert "Only B keeps: 5" in out
    for against, why in (("unfilterd", "There is no profile 'unfilterd'."), ("99", "no run 99")):
        code, _, err = run(*asked, "--against", against)
        assert (code, why in err) == (2, True)


def test_runs_are_reported_alone_and_against_each_other(run: Any, place: Path) -> None:
    files = ["--queries", str(place / "queries.jsonl"), "--qrels", str(place / "qrels.tsv")]
    numbers = []
    for more in (["-p", "unfiltered"], ["-p", "adaptive-gap"]):
        code, out, _ = run("eval", "-c", "small", *files, *more, "--save", "one", "--json")
        assert code == 0
        numbers.append(str(json.loads(out)["run"]))
    code, out, _ = run("report", "run", numbers[1])
    assert code == 0
    assert "<h1>adaptive-gap on small</h1>" in out
    assert '<tr class="strong"><td>current settings</td>' in out
    code, out, _ = run("report", "compare", *numbers)
    assert code == 0
    assert f"<h1>run {numbers[1]} (B) against run {numbers[0]} (A)</h1>" in out
    assert "what does a cat do" in out
    code, _, err = run("report", "run", "99")
    assert (code, "There is no run 99." in err) == (2, True)


def test_a_report_that_cannot_be_written_says_so(run: Any, tmp_path: Path) -> None:
    asked = ("report", "query", "what does a cat do", "-c", "small")
    (tmp_path / "taken").write_text("a file, not a folder")
    code, _, err = run(*asked, "--out", str(tmp_path / "taken" / "one.html"))
    assert code == 2
    assert "Use another file with --out." in err


def test_preferences_are_listed(run: Any, place: Path) -> None:
    code, out, _ = run("labels", "preferences", "-c", "small")
    assert (code, "no votes yet" in out) == (0, True)
    book = Preferences(f"sqlite:///{place / 'ws' / 'ragfilter.db'}")
    left, right = (
        Answered("full", {}, ("cat-0",), "m"),
        Answered("unfiltered", {}, ("boat-0",), "m"),
    )
    book.vote("small", "bread", left, right, "first", who="ann")
    book.close()
    code, out, _ = run("labels", "preferences", "-c", "small", "--json")
    (vote,) = json.loads(out)
    assert (vote["query"], vote["who"], vote["choice"]) == ("bread", "ann", "first")
    assert vote["first"] == {
        "profile": "full", "settings": {}, "chunks": ["cat-0"], "model": "m",
    }  # fmt: skip
    code, out, _ = run("labels", "preferences", "-c", "small")
    assert re.search(r"^bread +full, 1 chunk +unfiltered, 1 chunk +the first is better", out, re.M)


def test_a_vote_on_what_is_hidden_is_left_out(run: Any, place: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.jsonl"
    secret.write_text('{"id": "plan", "text": "The plan of the vault.", "clearance": 2}\n')
    assert run("index", str(secret), "-c", "secret")[0] == 0
    book = Preferences(f"sqlite:///{place / 'ws' / 'ragfilter.db'}")
    sides = Answered("full", {}, ("plan",), "m"), Answered("unfiltered", {}, (), "m")
    book.vote("secret", "Where is the vault?", *sides, "first", who="ann")
    book.close()
    for who, votes in (("0", 0), ("1", 0), ("2", 1)):
        _, out, _ = run("labels", "preferences", "-c", "secret", "--level", who, "--json")
        assert len(json.loads(out)) == votes
