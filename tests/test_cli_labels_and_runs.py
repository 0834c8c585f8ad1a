"""`ragfilter labels` and `ragfilter runs`, end to end on a small collection."""

from __future__ import annotations

import json
import re
import shlex
from html import unescape
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from faults import Handler, Serve

from ragfilter.cli import main
from ragfilter.errors import StoreError
from ragfilter.evaluate import query_files
from ragfilter.evaluate.caveats import TOO_FEW
from ragfilter.settings.deployment import Deployment
from ragfilter.text.numbers import signed
from ragfilter.workbench import Workbench

# Indexes a collection, and evaluates it.
pytestmark = pytest.mark.slow

CHUNKS = {
    "cat-0": "The cat sleeps in the sun.", "cat-1": "A cat hunts mice at night.",
    "boat-0": "A rowing boat crosses the river.", "boat-1": "The boat has a leak.",
    "bread-0": "Bread is baked from flour.", "moon-0": "The moon is full tonight.",
}  # fmt: skip
QUERIES = {"q1": "what does a cat do", "q2": "tell me about the boat", "q3": "bread"}
QRELS = {"q1": {"cat-0": 1, "cat-1": 2}, "q2": {"boat-0": 1, "boat-1": 1}, "q3": {"bread-0": 1}}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labels")
    lines = [json.dumps({"id": i, "text": text}) for i, text in CHUNKS.items()]
    (folder / "chunks.jsonl").write_text("\n".join(lines), "utf-8")
    asked = [json.dumps({"_id": i, "text": text}) for i, text in QUERIES.items()]
    (folder / "queries.jsonl").write_text("\n".join(asked), "utf-8")
    rows = [f"{q}\t{c}\t{grade}" for q, labels in QRELS.items() for c, grade in labels.items()]
    (folder / "qrels.tsv").write_text("\n".join(rows) + "\n", "utf-8")
    args = ["index", str(folder / "chunks.jsonl"), "-c", "small", "--data-dir", str(folder / "ws")]
    assert main(args) == 0
    return folder


@pytest.fixture
def run(place: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command in the workspace. Returns its exit code and both outputs."""

    def run(*args: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([*args, "--data-dir", str(place / "ws")])
        return code, *capsys.readouterr()

    return run


def test_labels_come_in_are_listed_and_go_out_as_they_were(
    run: Any, place: Path, tmp_path: Path
) -> None:
    files = ["--queries", str(place / "queries.jsonl"), "--qrels", str(place / "qrels.tsv")]
    code, out, _ = run("labels", "import", *files, "-c", "small", "--set-name", "mine")
    assert (code, out) == (0, "small: query set mine with 3 queries, 5 labels\n")
    code, out, _ = run("labels", "list", "-c", "small", "--json")
    made = json.loads(out)
    assert made["sets"] == {"mine": 3, "labelled": 3, "asked": 0}
    assert len(made["labels"]) == 5
    assert {(each["who"], each["made_by"]) for each in made["labels"]} == {("qrels.tsv", "human")}

    for form, name in (((), "qrels.tsv"), (("--trec",), "qrels.txt")):
        folder = tmp_path / name
        assert (
            run("labels", "export", str(folder), "-c", "small", "--set-name", "mine", *form)[0] == 0
        )
        again = query_files.read(folder / "queries.jsonl", folder / name)
        assert (again.queries, again.qrels) == (QUERIES, QRELS)


def test_a_set_without_labels_is_exported(run: Any, place: Path, tmp_path: Path) -> None:
    with Workbench.open(Deployment(data_dir=place / "ws")) as bench:
        bench.labels.remember("small", "who rows at night?")
    code, _, err = run("labels", "export", str(tmp_path), "-c", "small", "--set-name", "asked")
    assert (code, err) == (0, "")
    assert '"text": "who rows at night?"' in (tmp_path / "queries.jsonl").read_text("utf-8")
    assert (tmp_path / "qrels.tsv").read_text("utf-8") == "query-id\tcorpus-id\tscore\n"
    files = ["--queries", str(tmp_path / "queries.jsonl"), "--qrels", str(tmp_path / "qrels.tsv")]
    code, out, _ = run("labels", "import", *files, "-c", "small", "--set-name", "again")
    assert (code, "with 1 query, 0 labels" in out) == (0, True)
    assert run("labels", "remove", "again", "-c", "small")[0] == 0
    run("labels", "history", "off", "-c", "small")
    run("labels", "history", "on", "-c", "small")


def test_another_set_of_the_same_name_is_replaced_only_if_told_to(run: Any, tmp_path: Path) -> None:
    asked = tmp_path / "own.txt"
    asked.write_text("who bakes?\n", "utf-8")
    new = ["labels", "import", "--queries", str(asked), "-c", "small"]
    assert run(*new)[0] == run(*new)[0] == 0
    asked.write_text("who rows?\n", "utf-8")
    code, _, err = run(*new)
    assert (code, "The query set 'own' exists and has other questions" in err) == (2, True)
    assert run(*new, "--replace")[0] == 0
    assert run("labels", "remove", "own", "-c", "small")[0] == 0


def test_stored_labels_tell_nobody_about_hidden_chunks(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunks = [
        {"id": "cat", "text": "The cat sleeps."},
        {"id": "vault", "text": "The vault is below the stairs.", "clearance": 3},
    ]
    questions = [{"_id": "q1", "text": "what sleeps?"}, {"_id": "q2", "text": "where is it?"}]
    for name, rows in (("chunks.jsonl", chunks), ("questions.jsonl", questions)):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    qrels = tmp_path / "qrels.tsv"
    qrels.write_text("q1\tcat\t1\nq2\tvault\t1\n", "utf-8")
    assert run("index", str(tmp_path / "chunks.jsonl"), "-c", "secrets")[0] == 0
    queries = ["--queries", str(tmp_path / "questions.jsonl")]
    code, _, err = run("labels", "import", *queries, "--qrels", str(qrels), "-c", "secrets")
    assert code == 0, err
    seeing = ["-c", "secrets", "--set", "clearance.enabled=true", "--level"]
    for level, labelled in (("0", 1), ("3", 2)):
        sets = json.loads(run("labels", "list", *seeing, level, "--json")[1])["sets"]
        assert sets["labelled"] == labelled
        measured = ["eval", "--queries", "labelled", "-p", "adaptive-gap", "--json"]
        code, out, err = run(*measured, *seeing, level)
        assert (code, json.loads(out)["unknown_labels"]) == (0, [])
        assert not re.search("vault|q2|left out", err)
    # An LLM would only be asked about questions that the user knows of.
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    for level, chunks_left in (("0", 1), ("3", 4)):
        made = json.loads(run("labels", "propose", *seeing, level, "--json")[1])
        assert made["chunks"] == chunks_left
    # Their own files are theirs, and a label that cannot be used is told.
    own = ["eval", *queries, "--qrels", str(qrels), "-p", "adaptive-gap"]
    assert "such as 'vault'" in run(*own, *seeing, "0")[2]


def test_a_set_is_renamed_and_removed_and_its_labels_stay(run: Any, place: Path) -> None:
    files = ["--queries", str(place / "queries.jsonl"), "--qrels", str(place / "qrels.tsv")]
    for name in ("first", "taken"):
        run("labels", "import", *files, "-c", "small", "--set-name", name)

    def listed() -> Any:
        return json.loads(run("labels", "list", "-c", "small", "--json")[1])

    before = len(listed()["labels"])
    assert run("labels", "rename", "first", "taken", "-c", "small")[0] == 2
    code, out, _ = run("labels", "rename", "first", "second", "-c", "small")
    assert (code, out) == (0, "small: query set first is now second\n")
    assert "first" not in listed()["sets"]
    assert listed()["sets"]["second"] == 3
    assert run("labels", "remove", "second", "-c", "small")[0] == 0
    assert "second" not in listed()["sets"]
    assert len(listed()["labels"]) == before
    for name in ("labelled", "second"):
        code, _, err = run("labels", "remove", name, "-c", "small")
        assert (code, "no query set" in err) == (2, True)


def test_the_history_is_switched(run: Any, place: Path) -> None:
    def told(*switch: str) -> Any:
        return json.loads(run("labels", "history", *switch, "-c", "small", "--json")[1])

    assert told()["keeps"] is True
    with Workbench.open(Deployment(data_dir=place / "ws")) as bench:
        bench.labels.remember("small", "who bakes?")
    assert told() == {"collection": "small", "keeps": True, "asked": 1}
    assert told("off") == {"collection": "small", "keeps": False, "asked": 0}
    assert run("labels", "history", "-c", "small")[1] == "small: asked questions are not kept\n"
    assert told("on")["keeps"] is True


def test_an_llms_labels_are_told_apart_and_their_agreement_is_stated(
    run: Any, place: Path, tmp_path: Path
) -> None:
    files = ["--queries", str(place / "queries.jsonl"), "-c", "small", "--set-name", "mine"]
    run("labels", "import", *files, "--qrels", str(place / "qrels.tsv"))
    (tmp_path / "llm.tsv").write_text("q1\tcat-0\t1\nq1\tcat-1\t0\nq2\tmoon-0\t1\n", "utf-8")
    assert run("labels", "import", *files, "--qrels", str(tmp_path / "llm.tsv"), "--by-llm")[0] == 0
    made = json.loads(run("labels", "list", "-c", "small", "--json")[1])
    assert made["llm"]["pairs"] == 2
    assert made["llm"]["agreed"] == 1
    assert made["conflicts"] == []
    assert "LLM and people agree on 1 of 2 pairs" in run("labels", "list", "-c", "small")[1]
    out = tmp_path / "out"
    run("labels", "export", str(out), "-c", "small", "--set-name", "mine", "--with-llm")
    head = "query-id\tcorpus-id\tscore\n"
    assert (out / "qrels-llm.tsv").read_text("utf-8") == f"{head}q2\tmoon-0\t1\n"
    assert "moon-0" not in (out / "qrels.tsv").read_text("utf-8")
    new = ["eval", "-c", "small", "--queries", "mine", "--save", "one", "--json"]
    mixed, people = json.loads(run(*new, "--with-llm")[1]), json.loads(run(*new)[1])
    assert (mixed["query_set"], people["query_set"]) == ("mine, with LLM labels", "mine")
    assert mixed["labels_version"] != people["labels_version"]
    assert (mixed["with_llm"], people["with_llm"]) == (True, False)
    # Commands that measure and tune can count them as well, and say so.
    for command in (["eval"], ["gate", "--min", "f1=0"], ["eval", "--against", "full"], ["tune"]):
        own = [*command, "-c", "small", "--queries", "mine", "--json", "-p", "adaptive-gap"]
        (code, mixed, told), (_, people, untold) = run(*own, "--with-llm"), run(*own)
        assert code == 0
        assert mixed != people
        assert ("LLM and people agree on 1 of 2" in told, "agree" in untold) == (True, False)
        if command[0] == "gate":
            said = [json.loads(each)["with_llm"] for each in (mixed, people)]
            assert said == [True, False]
    code, _, err = run(*own, "--with-llm", "--qrels", str(tmp_path / "llm.tsv"))
    assert (code, "--with-llm needs a query set of the workspace" in err) == (2, True)


def test_questions_come_from_csv_and_lines_too(run: Any, tmp_path: Path) -> None:
    (tmp_path / "bakery.csv").write_text("question,id\nwho bakes?,b1\nwho rows?,\n", "utf-8")
    (tmp_path / "lines.txt").write_text("who bakes?\n\nwho rows?\n", "utf-8")
    for name in ("bakery.csv", "lines.txt"):
        code, out, _ = run("labels", "import", "--queries", str(tmp_path / name), "-c", "small")
        assert code == 0
        assert "with 2 queries, 0 labels" in out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name\nx\n", "has no column with questions"),
        ("id,text\na,one\na,two\n", "line 3: the id 'a' appears twice"),
        ("text\n", "contains no questions"),
    ],
)
def test_a_csv_that_cannot_be_read_is_one_line(
    run: Any, tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "bad.csv").write_text(content, "utf-8")
    code, out, err = run("labels", "import", "--queries", str(tmp_path / "bad.csv"), "-c", "small")
    assert (code, out) == (2, "")
    assert message in err


def test_labels_of_another_collection_are_refused(run: Any, place: Path, tmp_path: Path) -> None:
    (tmp_path / "other.tsv").write_text("q1\tdog-9\t1\n", "utf-8")
    files = ["--queries", str(place / "queries.jsonl"), "--qrels", str(tmp_path / "other.tsv")]
    code, _, err = run("labels", "import", *files, "-c", "small")
    assert code == 2
    assert "None of the labelled ids, such as 'dog-9', is in the collection 'small'" in err


def saved(run: Any, queries: str) -> Any:
    """The run over a stored set, as a document."""
    return json.loads(
        run("eval", "-c", "small", "--queries", queries, "--save", queries, "--json")[1]
    )


def test_a_run_is_made_listed_shown_compared_and_removed(
    run: Any, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ["--queries", str(place / "queries.jsonl"), "--qrels", str(place / "qrels.tsv")]
    common = [*files, "-c", "small", "--profile", "adaptive-gap"]
    first = json.loads(run("eval", *common, "--save", "one", "--json")[1])
    assert (first["queries"], first["done"], first["profile"]) == (3, 3, "adaptive-gap")
    names = [row["name"] for row in first["rows"]]
    assert names[:3] == ["current settings", "unfiltered", "best fixed k"]
    assert names[-1] == "oracle"
    for row in first["rows"]:
        for figure in ("precision", "recall", "f1", "f2", "ndcg"):
            assert 0 <= row[figure]["mean"] <= 1
            assert row[figure]["ci"] is None  # Three questions are too few.
        # Nothing is decided, so nothing is timed.
        assert (row["ms"] is None) == (row["name"] in {"unfiltered", "best fixed k", "oracle"})
    assert [(each["id"], each["query"]) for each in first["per_query"]] == [*QUERIES.items()]
    own = fmean(each["f1"] for each in first["per_query"])
    assert own == pytest.approx(first["rows"][0]["f1"]["mean"])
    other = ["--set", "cutoff.strategy=fixed", "--set", "cutoff.max_results=1",
             "--set", "cutoff.min_results=1"]  # fmt: skip
    second = json.loads(run("eval", *common, *other, "--save", "two", "--json")[1])
    assert second["settings"]["cutoff.strategy"] == "fixed"
    most = max(second["per_query"], key=lambda each: each["lost"])
    shown = run("runs", "show", str(second["run"]))[1]
    below = shown.partition("Queries that lose most relevant chunks")[2]
    line = rf"^{most['id']} +{most['lost']} "
    assert most["lost"] > 0
    assert re.search(line, below, re.MULTILINE)
    listed = json.loads(run("runs", "list", "-c", "small", "--json")[1])
    assert [each["run"] for each in listed][:2] == [second["run"], first["run"]]
    numbers = str(first["run"]), str(second["run"])
    compared = "runs", "show", numbers[1], "--against", numbers[0]
    made = json.loads(run(*compared, "--json")[1])
    assert made["wins"] + made["losses"] + made["ties"] == made["queries"] == 3
    by_name = {row["name"]: row for row in first["rows"]}, {r["name"]: r for r in second["rows"]}
    gain = (
        by_name[1]["current settings"]["f1"]["mean"] - by_name[0]["current settings"]["f1"]["mean"]
    )
    assert made["gain"]["f1"] == pytest.approx(gain)
    assert made["b"]["f1"] - made["a"]["f1"] == pytest.approx(gain)
    assert made["gain"]["ci"] is None
    assert not any("changed" in note or "different" in note for note in made["notes"])
    text = run(*compared)[1]
    assert f"run {numbers[1]} (B) against run {numbers[0]} (A)" in text
    assert "paired permutation test" in text
    text = run("runs", "show", numbers[0])[1]
    over = first["gain_over_fixed_k"]
    assert f"F1 {signed(over['f1'])}, {TOO_FEW}." in text
    assert over["ci"] is None
    assert "What each layer contributes" in text
    assert re.search(r"^The current settings are .* the best fixed k", text, re.MULTILINE)
    assert re.search(r"^oracle .* – ", text, re.MULTILINE)
    assert "cost of 1,000" not in text
    wanted = rf"^current settings .*{TOO_FEW}.*{TOO_FEW}"
    assert not re.search(wanted, text, re.MULTILINE)
    wide = run("runs", "show", numbers[0], "--intervals")[1]
    assert re.search(wanted, wide, re.MULTILINE)
    show = ("runs", "show", numbers[0], "--only")
    best = json.loads(run(*show, "highlights", "--json")[1])["per_query"]
    assert best == sorted(first["per_query"], key=lambda each: -each["gain"])
    line = rf"^{best[0]['id']} .* {re.escape(signed(best[0]['gain']))} "
    assert re.search(line, run(*show, "changed")[1], re.MULTILINE)
    assert run(*show, "failures")[1] == "No query is among the failures.\n"
    monkeypatch.setenv("RAGFILTER_PRICE_PROMPT", "2")
    assert " cost of 1,000" in run("runs", "show", numbers[0])[1]
    for row in json.loads(run("runs", "show", numbers[0], "--json")[1])["rows"]:
        assert row["cost"]["mean"] == pytest.approx(row["tokens"]["mean"] * 2 / 1000)
    assert run("runs", "remove", numbers[0])[0] == 0
    code, _, err = run("runs", "show", numbers[0])
    assert code == 2
    assert "See `ragfilter runs list`" in err


def test_a_run_whose_set_or_collection_is_gone_can_be_read(
    run: Any, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ["--queries", str(place / "queries.jsonl"), "--qrels", str(place / "qrels.tsv")]
    run("labels", "import", *files, "-c", "small", "--set-name", "leaving")
    made = saved(run, "leaving")
    show = ["runs", "show", str(made["run"]), "--json"]
    run("labels", "rename", "leaving", "left", "-c", "small")
    (note,) = json.loads(run(*show)[1])["notes"]
    assert "has no query set 'leaving'" in note
    assert "It is not known whether questions or labels have changed since then." in note

    def down(*given: Any) -> None:
        raise StoreError("The server does not answer.", remedy="Start it.")

    monkeypatch.setattr(Workbench, "collection", down)
    code, out, _ = run(*show)
    shown = json.loads(out)
    assert (code, shown["rows"]) == (0, made["rows"])
    said = "Changes since then are unknown: The server does not answer. Start it."
    assert shown["notes"] == [said]


def test_the_report_of_a_run_over_files_names_the_command_that_repeats_it(
    run: Any, place: Path, tmp_path: Path
) -> None:
    files = ["--queries", str(place / "queries.jsonl"), "--qrels", str(place / "qrels.tsv")]
    made = json.loads(run("eval", "-c", "small", *files, "--save", "files", "--json")[1])
    page = run("report", "run", str(made["run"]))[1]
    [line] = re.findall(r"<pre>(ragfilter eval .*)</pre>", page)
    settings = tmp_path / "ragfilter.toml"
    settings.write_text("", "utf-8")
    words = [str(settings) if w == settings.name else w for w in shlex.split(unescape(line))[1:]]
    code, out, _ = run(*words, "--json")
    again = json.loads(out)
    assert (code, again["rows"][0]["f1"]) == (0, made["rows"][0]["f1"])


def test_a_run_over_a_stored_set(run: Any, place: Path) -> None:
    files = ["--queries", str(place / "queries.jsonl"), "--qrels", str(place / "qrels.tsv")]
    run("labels", "import", *files, "-c", "small", "--set-name", "mine")
    made = saved(run, "mine")
    assert (made["query_set"], made["done"]) == ("mine", 3)
    code, _, err = run("eval", "-c", "small", "--queries", "yours", "--save", "x")
    assert code == 2
    assert "has no query set 'yours' with questions. There are: " in err


def test_an_llm_proposes_labels_after_its_cost_is_said(
    run: Any, place: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = ["-c", "small", "--set-name", "asked-of-it"]
    files = ["--queries", str(place / "queries.jsonl"), "--qrels", str(place / "qrels.tsv")]
    run("labels", "import", *files, *fresh)
    propose = ["labels", "propose", *fresh, "--depth", "3"]
    code, _, err = run(*propose)
    assert code == 2
    assert "Proposing labels needs an LLM" in err
    llm = serve(grade)
    monkeypatch.setenv("OPENAI_BASE_URL", llm.url)
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    monkeypatch.setenv("OPENAI_MODEL", "grader")
    monkeypatch.setenv("RAGFILTER_PRICE_PROMPT", "1")
    code, out, err = run(*propose)
    assert (code, out, llm.asked) == (0, "The LLM was not called. Add --yes to call it.\n", [])
    assert "3 questions, 9 chunks: 3 calls, about " in err
    made = json.loads(run(*propose, "--yes", "--json")[1])
    # Each of the three questions finds its labelled chunks among the first three; every answer
    # leaves out one chunk.
    assert (made["labels"], made["failed"], len(llm.asked)) == (6, 0, 3)
    assert made["cost"] > 0
    sent = llm.asked[0]["body"]["messages"][-1]["content"]
    assert "score" not in sent
    listed = json.loads(run("labels", "list", "-c", "small", "--json")[1])["labels"]
    theirs = [each for each in listed if each["who"] == "grader"]
    assert {each["made_by"] for each in theirs} == {"llm"}
    for each in theirs:
        query_id = next(i for i, text in QUERIES.items() if text == each["query"])
        assert each["grade"] == (2 if each["chunk"] in QRELS[query_id] else 0)
    # What it left out is asked again, and nothing else.
    again = json.loads(run(*propose, "--json")[1])
    assert (again["chunks"], again["calls"]) == (3, 3)


def test_an_llm_that_fails_is_left_alone_after_three_calls(
    run: Any, place: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = serve(lambda handler, body: handler.reply(500, "{}"))
    monkeypatch.setenv("OPENAI_BASE_URL", llm.url)
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    run("labels", "import", "--queries", str(place / "queries.jsonl"), "-c", "small")
    args = ["labels", "propose", "-c", "small", "--set-name", "queries", "--yes"]
    code, out, err = run(*args)
    assert code == 2
    assert "0 labels, 3 calls failed" in out
    assert "The LLM failed 3 times in a row" in err


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


def test_a_run_tells_what_changed_since_and_between(
    run: Any, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_name = ["-c", "small", "--set-name", "moving"]
    files = ["--queries", str(place / "queries.jsonl"), "--qrels", str(place / "qrels.tsv")]
    run("labels", "import", *files, *set_name)
    new = ["eval", "-c", "small", "--queries", "moving", "--save", "moving"]
    code, out, err = run(*new, "--json")
    first = json.loads(out)
    assert (code, first["notes"]) == (0, [])
    assert "Only 3 questions have a chunk labelled relevant: too few for reliable figures" in err
    (tmp_path / "more.tsv").write_text("q1\tmoon-0\t1\n", "utf-8")
    more = ["--queries", str(place / "queries.jsonl"), "--qrels", str(tmp_path / "more.tsv")]
    run("labels", "import", *more, *set_name)
    number = str(first["run"])
    told = run("runs", "show", number)[1]
    assert "labels have changed since then: measure again" in told
    second = json.loads(run(*new, "--json")[1])
    (tmp_path / "new.jsonl").write_text('{"id": "sun-0", "text": "The sun sets."}\n', "utf-8")
    assert run("index", str(tmp_path / "new.jsonl"), "-c", "small")[0] == 0
    (note,) = json.loads(run("runs", "show", str(second["run"]), "--json")[1])["notes"]
    assert note == "The collection has changed since then: measure again."
    third = json.loads(run(*new, "--json")[1])
    for before, after, said in (
        (first, second, "different questions or labels"),
        (second, third, "The collection changed between the two runs"),
    ):
        pair = str(before["run"]), str(after["run"])
        assert said in run("runs", "show", pair[1], "--against", pair[0])[1]
        assert said in run("report", "compare", *pair)[1]
    pair = number, str(third["run"])
    compared = "runs", "show", pair[1], "--against", number
    for said, lines in (
        ("Questions or labels have changed since then", run("report", "run", number)[1]),
        ("The collection has changed since then", run("report", "run", number)[1]),
        ("A: questions or labels have changed since then", run("report", "compare", *pair)[1]),
        (
            "A: questions or labels have changed since then",
            run(*compared)[1],
        ),
    ):
        assert said in lines
    assert "B: " not in run(*compared)[1]


def test_a_question_is_labelled_in_a_terminal_and_undone(run: Any) -> None:
    asked, where = "who sails the river?", ("-c", "small")
    nearest = ("labels", "next", asked, *where, "-n", "3", "--json")
    code, out, _ = run(*nearest)
    first = json.loads(out)
    every = first["left"]
    assert (code, every >= len(CHUNKS), len(first["next"])) == (0, True, 3)
    one, other, _ = (each["id"] for each in first["next"])

    assert run("labels", "mark", asked, one, other, "-g", "1", *where)[1] == (
        "small: 2 chunks labelled 1\n"
    )
    run("labels", "mark", asked, one, "-g", "0", *where)
    assert json.loads(run(*nearest)[1])["left"] == every - 2
    blind = json.loads(run(*nearest, "--blind")[1])["next"]
    assert [sorted(each) for each in blind] == [["id", "text", "title"]] * 3
    assert f"{every - 2} chunks left to label" in run("labels", "next", asked, *where)[1]

    # Of the pair that was labelled twice, the first label counts again.
    assert run("labels", "undo", *where)[1] == f"taken back: {one} = 0 for {asked!r}\n"
    assert json.loads(run(*nearest)[1])["left"] == every - 2
    assert run("labels", "undo", "--last", "2", *where)[1].count("taken back") == 2
    assert json.loads(run(*nearest)[1])["left"] == every

    code, _, err = run("labels", "mark", asked, "cat-9", *where)
    assert (code, "There is no chunk 'cat-9' in small" in err) == (2, True)
