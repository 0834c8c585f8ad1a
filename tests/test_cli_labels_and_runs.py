"""`ragfilter labels`, `runs` and `report`, end to end on a small collection."""

from __future__ import annotations

import json
import re
import shlex
from html import unescape
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from commands import Cli, write
from faults import Handler, Serve
from syrupy.assertion import SnapshotAssertion

from ragfilter.cli.program import main
from ragfilter.evaluate import query_files
from ragfilter.settings.deployment import Deployment
from ragfilter.stores.preferences import PairSide, PreferenceBook
from ragfilter.workbench import Workbench

# Indexes a collection, and evaluates it.
pytestmark = [pytest.mark.slow, pytest.mark.model]

CHUNKS = {
    "cat-0": "The cat sleeps in the sun.",
    "cat-1": "A cat hunts mice at night.",
    "boat-0": "A rowing boat crosses the river.",
    "boat-1": "The boat has a leak.",
    "bread-0": "Bread is baked from flour.",
    "moon-0": "The moon is full tonight.",
}
EVERYTHING = "--set clearance.enabled=false"
QUERIES = {"q1": "what does a cat do", "q2": "tell me about the boat", "q3": "bread"}
QRELS = {"q1": {"cat-0": 1, "cat-1": 2}, "q2": {"boat-0": 1, "boat-1": 1}, "q3": {"bread-0": 1}}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels")
    source = write(folder / "c.jsonl", *({"id": i, "text": text} for i, text in CHUNKS.items()))
    write(folder / "queries.jsonl", *({"_id": i, "text": text} for i, text in QUERIES.items()))
    rows = (f"{q}\t{c}\t{grade}" for q, labels in QRELS.items() for c, grade in labels.items())
    write(folder / "qrels.tsv", *rows)
    assert main(["index", source, "-c", "small", "--data-dir", str(folder / "ws")]) == 0
    return folder


@pytest.fixture
def run(place: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command in the workspace."""
    return Cli(capsys, ["--data-dir", str(place / "ws")])


@pytest.fixture
def cli(run: Cli) -> Cli:
    """Runs a command on the collection."""
    return Cli(run.capsys, ["-c", "small", *run.where])


@pytest.fixture
def files(place: Path) -> str:
    return f"--queries {place / 'queries.jsonl'} --qrels {place / 'qrels.tsv'}"


# -- labels ----------------------------------------------------------------------------------------


def test_labels_come_in_are_listed_and_go_out_as_they_were(
    cli: Cli, files: str, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    out = cli(f"labels import {files} --set-name mine")
    assert out == snapshot
    made = cli.json("labels list")
    assert made["sets"] == {"mine": 3, "labelled": 3, "asked": 0}
    assert len(made["labels"]) == 5
    assert {(each["who"], each["made_by"]) for each in made["labels"]} == {("qrels.tsv", "human")}
    for form, name in (("", "qrels.tsv"), ("--trec", "qrels.txt")):
        cli(f"labels export {tmp_path / name} --set-name mine {form}")
        again = query_files.read_labels(tmp_path / name / "queries.jsonl", tmp_path / name / name)
        assert (again.queries, again.qrels) == (QUERIES, QRELS)


def test_spans_without_a_definite_chunk_are_kept_and_told(run: Cli, tmp_path: Path) -> None:
    twice = "The cat sleeps in the warm sun"
    texts = [f"{twice} here.", "A boat has a small leak.", f"{twice} there."]
    source = write(tmp_path / "c.jsonl", *({"id": f"a{n}", "text": t, "source": "a"} for n, t in enumerate(texts)))
    run(f"index {source} -c twice")
    cli = Cli(run.capsys, ["-c", "twice", *run.where])
    quotes = {"ambiguous": twice, "mapped": texts[1], "gone": "Nobody sings in this castle."}
    rows = {name: {"question": f"{name}?", "source": "a", "quote": quote} for name, quote in quotes.items()}
    file = write(tmp_path / "one.jsonl", rows["ambiguous"])
    assert "0% (0 of 1; 1 ambiguous)" in cli(f"labels import --spans {file}", code=2)
    assert "several chunks may be meant" in cli.err
    write(tmp_path / "one.jsonl", rows["gone"])
    assert "None of the quotes, such as 'Nobody sings" in cli.refused(f"labels import --spans {file}")
    file = write(tmp_path / "spans.jsonl", *rows.values())
    assert "33% (1 of 3; 1 ambiguous; 1 gone)" in cli(f"labels import --spans {file}")
    out = tmp_path / "out"
    for values, left_out, names in (("", "Left out: 1 label", quotes.keys() - {"gone"}), (EVERYTHING, "", {*quotes})):
        cli(f"labels export {out} --spans {values}")
        lines = [json.loads(line) for line in (out / "spans.jsonl").read_text("utf-8").splitlines()]
        assert {(line["question"], line["quote"]) for line in lines} == {(f"{name}?", quotes[name]) for name in names}
        assert left_out in cli.err
        assert bool(cli.err) is bool(left_out)
    for option, removed in (("", 0), ("--drop-gone --dry-run", 0), ("--drop-gone", 1), ("--drop-gone", 0)):
        assert cli.json(f"labels map {option}")["removed"] == removed
    assert {each["query"] for each in cli.json("labels list")["labels"]} == {"mapped?"}
    assert "2 ambiguous)" in cli("labels map")


def test_another_set_of_the_same_name_is_replaced_only_if_told_to(cli: Cli, tmp_path: Path) -> None:
    asked = write(tmp_path / "own.txt", "who bakes?")
    for _ in range(2):
        cli(f"labels import --queries {asked}")
    write(tmp_path / "own.txt", "who rows?")
    assert "'own' exists" in cli.refused(f"labels import --queries {asked}")
    cli(f"labels import --queries {asked} --replace")


def test_an_llms_labels_are_told_apart_and_their_agreement_is_stated(
    cli: Cli, files: str, place: Path, tmp_path: Path
) -> None:
    cli(f"labels import {files} --set-name mine")
    llm = write(tmp_path / "llm.tsv", "q1\tcat-0\t1", "q1\tcat-1\t0", "q2\tmoon-0\t1")
    asked = f"--queries {place / 'queries.jsonl'}"
    cli(f"labels import {asked} --set-name mine --qrels {llm} --by-llm")
    made = cli.json("labels list")
    assert (made["llm"]["pairs"], made["llm"]["agreed"], made["conflicts"]) == (2, 1, [])
    assert "LLM and people agree on 1 of 2 pairs" in cli("labels list")
    out = tmp_path / "out"
    cli(f"labels export {out} --set-name mine --with-llm")
    head = "query-id\tcorpus-id\tscore\n"
    assert (out / "qrels-llm.tsv").read_text("utf-8") == f"{head}q2\tmoon-0\t1\n"
    assert "moon-0" not in (out / "qrels.tsv").read_text("utf-8")
    new = "eval --queries mine --save one"
    mixed, people = (cli.json(command)["run"]["plan"] for command in (f"{new} --with-llm", new))
    assert (mixed["query_set"], people["query_set"]) == ("mine, with LLM labels", "mine")
    assert mixed["labels_version"] != people["labels_version"]
    # Commands that measure and tune can count them as well, and say so.
    for command in ("eval", "gate --min f1=0"):
        own = f"{command} --queries mine -p adaptive-gap"
        people = cli.json(own)
        assert "agree" not in cli.err
        mixed = cli.json(f"{own} --with-llm")
        assert mixed != people
        assert "LLM and people agree on 1 of 2" in cli.err
        assert (mixed["with_llm"], people["with_llm"]) == (True, False)
    assert "needs a query set" in cli.refused(f"{own} --with-llm --qrels {llm}")


def test_an_llm_proposes_labels_after_its_cost_is_said(
    cli: Cli, files: str, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli(f"labels import {files} --set-name asked-of-it")
    propose = "labels propose --set-name asked-of-it --depth 3"
    assert "needs an LLM" in cli.refused(propose)
    llm = serve(grade)
    monkeypatch.setenv("OPENAI_BASE_URL", llm.url)
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    monkeypatch.setenv("OPENAI_MODEL", "grader")
    monkeypatch.setenv("RAGFILTER_PRICE_PROMPT", "1")
    assert ("--yes" in cli(propose), llm.asked) == (True, [])
    assert "3 questions, 9 chunks: 3 calls, about " in cli.err
    made = cli.json(f"{propose} --yes")
    # Each of the three questions finds its labelled chunks among the first three; every answer leaves out one chunk.
    assert (made["labels"], made["failed"], len(llm.asked)) == (6, 0, 3)
    assert made["cost"] > 0
    assert "score" not in llm.asked[0]["body"]["messages"][-1]["content"]
    theirs = [each for each in cli.json("labels list")["labels"] if each["who"] == "grader"]
    assert {each["made_by"] for each in theirs} == {"llm"}
    for each in theirs:
        query_id = next(i for i, text in QUERIES.items() if text == each["query"])
        assert each["grade"] == (2 if each["chunk_id"] in QRELS[query_id] else 0)
    # Only the chunks that it left out are asked about again.
    again = cli.json(propose)
    assert (again["chunks"], again["calls"]) == (3, 3)


def grade(handler: Handler, body: dict[str, Any]) -> None:
    """A labeller that knows the labels, and leaves out the last chunk."""
    prompt = body["messages"][-1]["content"]
    query = re.findall(r"^Query: (.*)$", prompt, re.MULTILINE)[0]
    relevant = QRELS[next(i for i, text in QUERIES.items() if text == query)]
    asked = re.findall(r"^id: (.*)$", prompt, re.MULTILINE)
    lines = [f"{i} -> {'KEEP' if i in relevant else 'DISCARD'}" for i in asked[:-1]]
    handler.start()
    handler.piece("\n".join(lines))
    handler.piece(None, "stop")
    handler.event("[DONE]")


def test_a_question_is_labelled_in_a_terminal_and_undone(cli: Cli, snapshot: SnapshotAssertion) -> None:
    asked = "who sails the river?"
    first = cli.json("labels next -n 3", asked)
    every = first["left"]
    assert (every >= len(CHUNKS), len(first["next"])) == (True, 3)
    one, other, _ = (each["id"] for each in first["next"])
    assert cli("labels mark -g 1", asked, one, other) == snapshot
    cli("labels mark -g 0", asked, one)
    assert cli.json("labels next", asked)["left"] == every - 2
    blind = cli.json("labels next --blind -n 3", asked)["next"]
    assert [sorted(each) for each in blind] == [["id", "text", "title"]] * 3
    assert f"{every - 2} chunks left to label" in cli("labels next", asked)
    # For the pair that was labelled twice, the first label counts again.
    assert cli("labels undo") == f"taken back: {one} = 0 for {asked!r}\n"
    assert cli.json("labels next", asked)["left"] == every - 2
    assert cli("labels undo --last 2").count("taken back") == 2
    assert cli.json("labels next", asked)["left"] == every
    assert "no chunk 'cat-9' in small" in cli.refused("labels mark", asked, "cat-9")


# -- votes -----------------------------------------------------------------------------------------


def prefer(place: Path, collection: str, query: str, *kept: str) -> PairSide:
    """Prefer the answer from these chunks."""
    book = PreferenceBook(f"sqlite:///{place / 'ws' / 'ragfilter.db'}")
    first, second = PairSide("full", {}, kept, "m"), PairSide("unfiltered", {}, (), "m")
    book.record(collection, query, first, second, "first", who="ann")
    book.close()
    return first


def test_preferences_are_listed(cli: Cli, place: Path) -> None:
    assert "no votes yet" in cli("labels preferences")
    first = prefer(place, "small", "bread", "cat-0")
    (listed,) = cli.json("labels preferences")
    assert (listed["query"], listed["who"], listed["choice"]) == ("bread", "ann", "first")
    assert PairSide(**listed["first"] | {"chunks": tuple(listed["first"]["chunks"])}) == first
    out = cli("labels preferences")
    assert re.search(r"^bread +full, 1 chunk +unfiltered, 0 chunks +the first is better", out, re.M)


# -- runs ------------------------------------------------------------------------------------------


def test_a_run_is_made_listed_shown_compared_and_removed(
    run: Cli, cli: Cli, files: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    common = f"eval {files} --profile adaptive-gap"
    first = cli.json(f"{common} --save one")
    plan = first["run"]["plan"]
    assert (plan["queries"], first["run"]["done"], plan["profile"]) == (3, 3, "adaptive-gap")
    names = [row["variant"] for row in first["rows"]]
    assert names[:3] == ["current settings", "unfiltered", "best fixed k"]
    assert names[-1] == "oracle"
    for row in first["rows"]:
        for figure in ("precision", "recall", "f1", "f2", "ndcg"):
            assert 0 <= row[figure] <= 1
            assert row[f"{figure}_low"] is None  # Three questions are too few.
        # Nothing is decided, so nothing is timed.
        assert (row["ms"] is None) == (row["variant"] in {"unfiltered", "best fixed k", "oracle"})
    assert [(each["id"], each["query"]) for each in first["per_query"]] == [*QUERIES.items()]
    own = fmean(each["f1"] for each in first["per_query"])
    assert own == pytest.approx(first["rows"][0]["f1"])
    other = "--set cutoff.strategy=fixed --set cutoff.max_results=1 --set cutoff.min_results=1"
    second = cli.json(f"{common} {other} --save two")
    assert second["run"]["plan"]["changes"]["cutoff.strategy"] == "fixed"
    a, b = first["run"]["id"], second["run"]["id"]
    assert [each["id"] for each in cli.json("runs list")][:2] == [b, a]
    made = run.json(f"runs show {b} --against {a}")
    pairs = made["paired"]
    assert pairs["wins"] + pairs["losses"] + pairs["ties"] == pairs["queries"] == 3
    gain = second["rows"][0]["f1"] - first["rows"][0]["f1"]
    assert pairs["gain"]["mean"] == pytest.approx(gain)
    run(f"runs remove {a}")
    assert "ragfilter runs list" in run.refused(f"runs show {a}")


def test_questions_of_traces_become_a_query_set_with_what_was_retrieved(cli: Cli, tmp_path: Path) -> None:
    documents = [{"document.id": "cat-1"}, {"document.content": CHUNKS["boat-0"]}, {"document.id": "gone"}]
    span = {"input.value": "a cat in a boat", "retrieval.documents": documents}
    traces = write(tmp_path / "traced.jsonl", {"attributes": span})
    told = cli("runs import", traces)
    assert told == "small: query set traced with 1 query, 2 recorded hits\n"
    assert "1 hit not in the collection" in cli.err
    assert cli.json("labels list")["sets"]["traced"] == 1
    assert "--replace" in cli.refused(
        "runs import", write(tmp_path / "traced.jsonl", {"attributes": {**span, "input.value": "x"}})
    )


def test_a_run_whose_set_is_gone_can_be_read(
    run: Cli, cli: Cli, files: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli(f"labels import {files} --set-name leaving")
    made = cli.json("eval --queries leaving --save leaving")
    assert (made["run"]["plan"]["query_set"], made["run"]["done"]) == ("leaving", 3)
    assert "no query set 'yours'" in cli.refused("eval --queries yours --save x")
    with Workbench.open(Deployment(data_dir=place / "ws")) as bench:
        bench.labels.remove_set("small", "leaving")
    (note,) = run.json(f"runs show {made['run']['id']}")["notes"]
    assert "has no query set 'leaving'" in note
    assert "not known whether questions or labels have changed" in note


def test_a_run_tells_what_changed_since_and_between(
    run: Cli, cli: Cli, files: str, place: Path, tmp_path: Path
) -> None:
    cli(f"labels import {files} --set-name moving")
    new = "eval --queries moving --save moving"
    first = cli.json(new)
    assert first["notes"] == []
    assert "Only 3 questions have a chunk labelled relevant" in cli.err
    more = write(tmp_path / "more.tsv", "q1\tmoon-0\t1")
    asked = place / "queries.jsonl"
    cli(f"labels import --queries {asked} --qrels {more} --set-name moving")
    number = first["run"]["id"]
    labels, collection = "labels have changed since then", "The collection has changed since then"
    assert labels in run(f"runs show {number}")
    second = cli.json(new)
    out = cli("index", write(tmp_path / "new.jsonl", {"id": "sun-0", "text": "The sun sets."}))
    assert "no longer in the source, which --reset removes" in out
    (note,) = run.json(f"runs show {second['run']['id']}")["notes"]
    assert collection in note
    compared = run(f"runs show {second['run']['id']} --against {number}")
    assert "different questions or labels" in compared


# -- report ----------------------------------------------------------------------------------------


def test_a_query_is_reported_alone_and_against_a_profile(cli: Cli, tmp_path: Path) -> None:
    asked, out = "what does a cat do", tmp_path / "one.html"
    assert cli("report query --set retrieval.k=2 --answer --out", str(out), asked) == f"{out}\n"
    page = out.read_text("utf-8")
    for part in (f"<h1>{asked}</h1>", "<h3>without the filter</h3>", "A cat hunts mice at night."):
        assert part in page
    page = cli("report query --set retrieval.k=2 --against unfiltered", asked)
    assert "A is unfiltered, B is these settings" in page
    assert re.search(r"Only A keeps: \d", page)
    write(tmp_path / "taken", "a file, not a folder")
    taken = str(tmp_path / "taken" / "one.html")
    assert "--out" in cli.refused("report query", asked, "--out", taken)


def test_a_query_is_reported_against_a_file_saved_settings_and_a_run(
    cli: Cli, files: str, place: Path, tmp_path: Path
) -> None:
    one = tmp_path / "one.toml"
    one.write_text('profile = "unfiltered"\nretrieval.k = 1\n')
    (place / "ws" / "settings").mkdir(exist_ok=True)
    (place / "ws" / "settings" / "mine.toml").write_text(one.read_text())
    number = str(cli.json(f"eval {files} --config {one} --save one")["run"]["id"])
    asked = ("report query -p unfiltered", "what does a cat do", "--against")
    for against, name in ((str(one), "one.toml"), ("mine", "mine.toml"), (number, f"run {number}")):
        page = cli(*asked, against)
        for part in (f"A is {name}, B is these settings", "Both keep: 1", "Only B keeps: "):
            assert part in page
    for against, why in (("unfilterd", "no profile 'unfilterd'"), ("99", "no run 99")):
        assert why in cli.refused(*asked, against)


def test_runs_are_reported_alone_and_against_each_other(run: Cli, cli: Cli, files: str, tmp_path: Path) -> None:
    made = cli.json(f"eval {files} -p unfiltered -p adaptive-gap --save one")["runs"]
    a, b = (each["run"]["id"] for each in made)
    page = run(f"report run {b}")
    assert "<h1>adaptive-gap on small</h1>" in page
    assert '<tr class="strong"><td>current settings</td>' in page
    compared = run(f"report compare {a} {b}")
    assert f"<h1>run {b} (B) against run {a} (A)</h1>" in compared
    assert "what does a cat do" in compared
    assert "no run 99" in run.refused("report run 99")
    # It names the command that repeats it.
    [line] = re.findall(r"<pre>(ragfilter eval .*)</pre>", page)
    settings = tmp_path / "ragfilter.toml"
    settings.write_text('profile = "adaptive-gap"\n', "utf-8")
    words = [str(settings) if w == settings.name else w for w in shlex.split(unescape(line))[1:]]
    again = json.loads(run("", *words, "--json"))
    assert again["rows"][0]["f1"] == run.json(f"runs show {b}")["rows"][0]["f1"]
