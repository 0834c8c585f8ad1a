"""`ragfilter tune` and `ragfilter gate`, end to end on a small collection."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from ragfilter.cli import main
from ragfilter.engine.retrieve import run
from ragfilter.settings.config import load
from ragfilter.settings.deployment import Deployment
from ragfilter.workbench import Workbench

# Each fits models on every fold.
pytestmark = pytest.mark.slow

TOPICS = {
    "cat": ["The cat sleeps in the sun.", "A cat hunts mice at night.", "Cats purr when content."],
    "boat": ["A rowing boat crosses the river.", "The boat has a leak."],
    "bread": ["Bread is baked from flour.", "Rye bread keeps long.", "Fresh bread smells good.",
              "A baker kneads bread dough."],
    "moon": ["The moon is full tonight."],
}  # fmt: skip
ASKED = ("what does a {} do", "tell me about the {}", "{}", "facts: {}")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a workspace `ws`, `queries.jsonl` and `qrels.tsv`."""
    folder = tmp_path_factory.mktemp("tuning")
    chunks = [
        {"id": f"{topic}-{n}", "text": text}
        for topic, texts in TOPICS.items()
        for n, text in enumerate(texts)
    ]
    queries = [
        {"_id": f"{topic}-q{n}", "text": form.format(topic)}
        for topic in TOPICS
        for n, form in enumerate(ASKED)
    ]
    for name, records in (("chunks", chunks), ("queries", queries)):
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text(lines, "utf-8")
    labels = [
        f"{topic}-q{n}\t{topic}-{i}\t1"
        for topic, texts in TOPICS.items()
        for n in range(len(ASKED))
        for i in range(len(texts))
    ]
    (folder / "qrels.tsv").write_text("\n".join(labels) + "\n", "utf-8")
    args = ["index", str(folder / "chunks.jsonl"), "-c", "small", "--data-dir", str(folder / "ws")]
    assert main(args) == 0
    return folder


@pytest.fixture
def args(place: Path) -> list[str]:
    return [
        "-c", "small", "--queries", str(place / "queries.jsonl"),
        "--qrels", str(place / "qrels.tsv"), "--data-dir", str(place / "ws"),
    ]  # fmt: skip


@pytest.fixture
def tuned(
    place: Path, args: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[Any, Path]:
    out = tmp_path / "tuned.toml"
    capsys.readouterr()
    assert main(["tune", *args, "--no-rerank", "--out", str(out), "--json"]) == 0
    return json.loads(capsys.readouterr().out), out


def test_tune_prints_the_promised_document(tuned: tuple[Any, Path]) -> None:
    made, out = tuned
    assert (made["collection"], made["queries"], made["measure"], made["folds"]) == (
        "small", 16, "f1", 5,
    )  # fmt: skip
    assert set(made["best_fixed_k"]) >= {"k", "f1", "ci"}
    assert set(made["gain_over_fixed_k"]) >= {"f1", "ci"}
    for one in (made["before"], made["after"], made["oracle"], *made["strategies"]):
        # None where too few questions differ.
        assert one["ci"] is None or one["ci"][0] <= one["f1"] <= one["ci"][1]
        assert (one["f1_most"] > one["f1"]) == (one["unlabelled"] > 0)
    assert made["oracle"]["f1"] >= made["best_fixed_k"]["f1"]
    assert {"name", "f1", "ci", "mean_kept"} <= set(made["strategies"][0])
    gain = made["after"]["f1"] - made["best_fixed_k"]["f1"]
    assert made["gain_over_fixed_k"]["f1"] == pytest.approx(gain)
    assert made["settings_file"] == str(out)


def test_values_are_measured_over_a_range_and_in_pairs(
    args: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["eval", *args, "--profile", "adaptive-gap", "--json"]
    pair = ["--vary", "cutoff.max_results=2,8", "--vary", "quality.min_top_k=1,60"]
    capsys.readouterr()
    assert main([*command, *pair, "--set", "quality.enabled=true"]) == 0
    made = json.loads(capsys.readouterr().out)
    rows = {row["name"]: row for row in made["rows"] if row["group"] == "settings"}
    # The last is above quality.max_top_k.
    assert [*rows] == [
        f"adaptive-gap cutoff.max_results={most} quality.min_top_k=1" for most in (2, 8)
    ]
    assert "2 combinations left out" in made["notes"][0]
    front = sorted((row["tokens"]["mean"], row["recall"]["mean"])
                   for row in rows.values() if row["front"])  # fmt: skip
    assert front == sorted(set(front), key=lambda point: point[1])
    assert max(row["recall"]["mean"] for row in rows.values()) == front[-1][1]
    # Over the whole range of a setting, with what `eval` says of the current value.
    assert main([*command, "--vary", "cutoff.gap_threshold"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert len(rows) > 20
    assert main(command) == 0
    f1 = json.loads(capsys.readouterr().out)["filtered"]["f1"]
    assert rows["adaptive-gap cutoff.gap_threshold=0.1"]["f1"]["mean"] == pytest.approx(f1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["cutoff.jumps"], "is not a numeric setting in effect here"),
        (["cutoff.max_results=1"] * 2, "--vary takes one or two different settings"),
        (["cutoff.max_results=many"], "cutoff.max_results = 'many' (from --vary)"),
        (["cutoff.nothing=1"], "cutoff.nothing"),
    ],
)
def test_what_cannot_be_varied_is_one_line(
    given: list[str], message: str, args: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    options = [word for each in given for word in ("--vary", each)]
    assert main(["eval", *args, "--profile", "adaptive-gap", *options]) == 2
    assert message in capsys.readouterr().err


def test_the_settings_file_is_what_was_printed_and_says_where_it_is_from(
    tuned: tuple[Any, Path],
) -> None:
    made, out = tuned
    assert "# Tuned on the collection small: 16 labelled queries" in out.read_text("utf-8")
    assert "all-MiniLM-L6-v2" in out.read_text("utf-8")
    loaded = load(file=out, environ={})
    assert loaded.profile == "full"
    base = load(profile="full", environ={}).settings
    assert loaded.settings.changed_from(base) == made["after"]["settings"]
    assert set(tomllib.loads(out.read_text("utf-8"))) <= {"profile", "cutoff", "quality"}


def test_what_was_learned_is_beside_the_others_and_applied_from_its_file(
    tuned: tuple[Any, Path], place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, _ = tuned
    assert {one["name"] for one in made["strategies"]} >= {"calibrated", "car", "spike"}
    assert made["calibrated_over"].keys() == {
        one["name"] for one in made["strategies"] if one["name"] != "calibrated"
    }
    assert all(0 <= kept <= 1 for kept in made["recall_dial"].values())
    assert set(made["gain_over_before"]) == {"f1", "f2", "mean", "ci"}
    file = tmp_path / "learned.toml"
    file.write_text(
        '[cutoff]\nstrategy = "calibrated"\nmax_results = 5\n[cutoff.calibration]\n'
        'collection = "small"\nembedder = "all-MiniLM-L6-v2"\nspace = "l2"\nreranker = ""\n'
        'labels = "x"\nqueries = 16\nrelevant = 40\ndate = 2026-11-22\ndepth = 5\n'
        "intercept = 0.0\n[cutoff.calibration.weights]\nway = -9.0\n",
        "utf-8",
    )
    common = ["-c", "small", "--data-dir", str(place / "ws"), "--config", str(file)]
    assert main(["query", "bread", *common, "--json"]) == 0
    hits = json.loads(capsys.readouterr().out)["hits"]
    cut = [hit["reason"] for hit in hits if hit["layer"] == "cutoff"]
    assert any("probability" in reason for reason in cut)
    file.write_text(file.read_text("utf-8").replace("all-MiniLM-L6-v2", "another"), "utf-8")
    assert main(["query", "bread", *common]) == 2
    err = capsys.readouterr().err
    assert "learned on small with the embedding model another, not all-MiniLM-L6-v2" in err
    assert "ragfilter tune" in err


def test_calibrated_without_hits_or_learning_is_one_line(
    args: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cut", "0.1", "0.2", "--strategy", "calibrated"]) == 2
    assert "not only their distances" in capsys.readouterr().err
    where = [args[0], args[1], *args[-2:]]
    assert main(["query", "bread", *where, "--set", "cutoff.strategy=calibrated"]) == 2
    assert "nothing has been learned yet" in capsys.readouterr().err


def test_tokens_at_a_recall(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", *args, "--no-rerank", "--measure", "tokens@0.6"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(
        line.startswith("Tuned settings beat")
        or "shown to beat" in line
        or line.startswith("The recall of 0.6 is not reached")
        for line in lines
    )
    rows = [re.split(r"  +", line) for line in lines]
    rows = [row for row in rows if len(row) == 8 and row[0]]
    assert len(rows) == 14
    # name, tokens, interval, precision, recall …
    assert all(("(under 0.6)" in row[4]) == (float(row[4].split()[0]) < 0.6) for row in rows)


def test_one_strategy_is_chosen_whatever_the_others_are_worth(
    args: list[str], place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So that users can get a calibration, and with it the recall dial."""
    out = tmp_path / "learned.toml"
    chosen = ["--strategy", "calibrated", "--no-rerank", "--out", str(out)]
    assert main(["tune", *args, *chosen, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    alone = {one["name"]: one["f1"] for one in made["strategies"]}
    assert made["after"]["settings"]["cutoff.strategy"] == "calibrated"
    assert made["after"]["f1"] == alone["calibrated"]
    common = ["-c", "small", "--data-dir", str(place / "ws"), "--config", str(out)]
    dial = ["--set", "cutoff.target=recall", "--set", "cutoff.recall=0.8"]
    assert main(["query", "bread", *common, *dial]) == 0
    assert "which keep 80% of the relevant hits" in capsys.readouterr().out
    # Measured with the labels it was learned from, its figures show nothing, and the commands say
    # so.
    learned = ["--config", str(out)]
    these, some = "learned from these same labels", "may have seen some of these questions"
    for others, told in (([], these), (["--except=cat-q0"], some)):
        for more in ([], ["--vary", "cutoff.max_results=5"]):
            capsys.readouterr()
            assert main(["eval", *args, *learned, *others, *more]) == 0
            assert told in capsys.readouterr().err
    assert main(["eval", *args, *learned, "--save", "learned", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert any("learned from these same labels" in note for note in made["notes"])
    run = str(made["run"])
    page = tmp_path / "run.html"
    assert main(["report", "run", run, "--out", str(page), *args[-2:]]) == 0
    said = page.read_text("utf-8")
    assert "learned from these same labels" in said
    assert "the best fixed k (cross-validated)" not in said
    assert main(["tune", *args, *chosen, *(f"--only=cat-q{n}" for n in range(4))]) == 2
    assert "at least 10 labelled queries" in capsys.readouterr().err.splitlines()[-1]


def test_a_setting_of_another_strategy_changes_nothing_and_that_is_told(
    args: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    where = [args[0], args[1], *args[-2:]]
    assert main(["query", "bread", *where, "--set", "cutoff.target=recall"]) == 0
    err = capsys.readouterr().err
    assert "cutoff.target changes nothing" in err
    assert "it belongs to calibrated" in err


def test_a_query_set_of_the_workspace_is_measured_by_its_name(
    args: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    where = [*args[:2], *args[-2:]]
    assert main(["labels", "import", *args, "--set-name", "mine"]) == 0
    capsys.readouterr()
    for command in (
        ["eval", "--json"], ["gate", "--min", "recall=0.1"], ["eval", "--limit", "2", "--json"],
        ["tune", "--no-rerank"],
    ):  # fmt: skip
        assert main([*command, *where, "--queries", "mine"]) == 0
        from_set = capsys.readouterr().out
        assert main([*command, *args]) == 0
        assert from_set == capsys.readouterr().out
        assert main([*command, *where, "--queries", "yours"]) == 2
        assert "has no query set 'yours'" in capsys.readouterr().err
        assert main([*command, *where, "--queries", "gone.jsonl", "--qrels", "gone.tsv"]) == 2
        assert "gone.jsonl" in capsys.readouterr().err


def test_a_gate_names_a_question_without_an_id_by_its_words(
    args: list[str], place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = [*args[:2], *args[-2:]]
    asked = tmp_path / "asked.txt"
    texts = [json.loads(line)["text"] for line in Path(args[3]).read_text().splitlines()]
    asked.write_text("\n".join(texts), encoding="utf-8")
    # Labels belong to the text, so other questions with the same text have them too.
    assert main(["labels", "import", *args, "--set-name", "named"]) == 0
    assert main(["labels", "import", *where, "--queries", str(asked), "--set-name", "bare"]) == 0
    capsys.readouterr()
    limits = ["--set", "cutoff.strategy=fixed", "--set", "cutoff.max_results=1", "--min"]
    junit = tmp_path / "gate.xml"
    gate = ["gate", *where, "--queries", "bare", *limits, "recall=0.9", "--junit", str(junit)]
    assert main(gate) == 1
    out = capsys.readouterr().out
    assert any(f"{text}: recall 0.250 < 0.900" in out for text in texts)
    assert "q-" not in out + junit.read_text(encoding="utf-8").replace("bread-q", "")


def test_query_keeps_what_the_tuned_settings_keep(
    tuned: tuple[Any, Path], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out = tuned
    common = ["-c", "small", "--data-dir", str(place / "ws"), "--config", str(out), "--json"]
    assert main(["query", "tell me about the bread", *common]) == 0
    kept = json.loads(capsys.readouterr().out)["kept"]
    with Workbench.open(Deployment(data_dir=place / "ws")) as bench:
        settings = load(file=out, environ={}).settings
        result = run("tell me about the bread", settings, bench.backends("small"))
    assert kept == [hit.id for hit in result.kept]


def test_figures_on_labels_that_tuning_saw_say_so_in_json(
    tuned: tuple[Any, Path], args: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (
        ["eval"],
        ["gate", "--min", "f1=0"],
        ["eval", "--vary", "cutoff.max_results=5"],
    ):
        assert main([*command, *args, "--config", str(tuned[1]), "--json"]) == 0
        (note, *_) = json.loads(capsys.readouterr().out)["notes"]
        assert "these same labels, so the figures here say nothing about new questions" in note
        assert main([*command, *args, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["notes"] == []


def test_tune_for_people_warns_of_few_labels(
    args: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tune", *args]) == 0
    out, err = capsys.readouterr()
    assert "Best fixed k (" in out
    assert "relative, alone" in out
    assert "95% interval" in out
    assert "beat the best fixed k" in out
    assert "Only 16 questions have a chunk labelled relevant" in err
    plain = ", as in a plain search: no distance changes it"
    assert plain not in out
    assert main(["tune", *args, "--no-rerank", "--strategy", "fixed"]) == 0
    assert plain in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--measure", "f9"], "There is no measure 'f9'"),
        (["--profile", "llm-filter"], "The judge is on"),
        (["--only", "cat-q1"], "at least two labelled queries"),
        (["--strategy", "best"], "cutoff.strategy"),
        (["--out", "/nowhere/at/all.toml", "--no-rerank"], "cannot be written"),
    ],
)
def test_what_cannot_be_tuned_is_one_line(
    args: list[str], more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tune", *args, *more]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err.splitlines()[-1]


def test_a_gate_that_holds(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    limits = ["--min", "recall=0.1", "--max", "kept=15"]
    assert main(["gate", *args, *limits, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["passed"], made["queries"]) == (True, 16)
    assert [(one["figure"], one["at"]) for one in made["checks"]] == [
        ("recall", "least"), ("kept", "most"),
    ]  # fmt: skip


def test_a_gate_that_breaks_names_figure_and_queries(
    args: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    fixed = ["--set", "cutoff.strategy=fixed", "--set", "cutoff.max_results=1"]
    fixed += ["--set", "quality.enabled=false"]
    assert main(["gate", *args, *fixed, "--min", "recall=0.9", "--min", "precision=0.1"]) == 1
    out = capsys.readouterr().out
    assert "BROKEN  mean recall" in out
    assert "ok      mean precision" in out
    # One of four at most.
    assert "bread-q0: recall 0.250 < 0.900" in out
    assert "moon-q0" not in out


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ([], "nothing to check"),
        (["--min", "beauty=1"], "--min beauty=1 is not a limit on a known figure"),
    ],
)
def test_a_gate_without_limits_is_no_gate(
    args: list[str], limits: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gate", *args, *limits]) == 2
    assert message in capsys.readouterr().err


def test_a_gate_holds_the_filter_to_its_baseline(
    args: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    baseline, junit = tmp_path / "baseline.json", tmp_path / "junit.xml"
    files = ["--baseline", str(baseline)]
    good = ["--set", "cutoff.strategy=fixed", "--set", "cutoff.max_results=4"]
    good += ["--set", "quality.enabled=false"]
    assert main(["gate", *args, *good, *files, "--update-baseline"]) == 0
    first = baseline.read_bytes()
    assert main(["gate", *args, *good, *files, "--update-baseline"]) == 0
    assert baseline.read_bytes() == first
    capsys.readouterr()
    assert main(["gate", *args, *good, *files, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert [(drop["figure"], drop["passed"]) for drop in made["drops"]] == [
        ("recall", True), ("f1", True),
    ]  # fmt: skip
    worse = [text.replace("max_results=4", "max_results=1") for text in good]
    assert main(["gate", *args, *worse, *files, "--junit", str(junit)]) == 1
    out = capsys.readouterr().out
    assert "BROKEN  mean recall" in out
    assert "questions lost 0.5 or more" in out
    # Each question once, with all its reasons.
    assert re.search(r"^ +cat-q0: F1 −\d\.\d+, recall −\d\.\d+$", out, re.MULTILINE)
    assert out.count("cat-q0") == 1
    suite = ElementTree.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("3", "2")
    capsys.readouterr()
    # A limit of one figure leaves those of the others as they are.
    assert main(["gate", *args, *worse, *files, "--max-drop", "recall=0.9", "--json"]) == 1
    drops = json.loads(capsys.readouterr().out)["drops"]
    assert [(each["figure"], each["allowed"], bool(each["severe"])) for each in drops] == [
        ("recall", 0.9, True), ("f1", 0.02, True),
    ]  # fmt: skip
    # What breaks a limit is no baseline.
    update = ["--update-baseline", "--min", "recall=0.99"]
    assert main(["gate", *args, *worse, *files, *update]) == 1
    assert "because a limit is broken" in capsys.readouterr().err
    assert baseline.read_bytes() == first


def test_a_stale_baseline_is_told(
    args: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "baseline.json"
    assert main(["gate", *args, "--baseline", str(file), "--update-baseline"]) == 0
    tree = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps(tree | {"labels_version": "x", "model": "y"}), "utf-8")
    capsys.readouterr()
    assert main(["gate", *args, "--baseline", str(file)]) == 0
    err = capsys.readouterr().err
    assert "The baseline is of other labels" in err
    assert "The baseline is of another embedding model" in err
    assert "another distance metric" not in err
    assert main(["gate", *args, "--baseline", str(file), "--json"]) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert [note.split(";")[0] for note in notes] == [
        f"The baseline is of {what}. Renew it if that is intended."
        for what in ("other labels", "another embedding model")
    ]
    assert main(["gate", *args, "--baseline", str(file), "--only", "cat-q1"]) == 0
    assert "15 of 16 questions in the baseline were not measured" in capsys.readouterr().err
    del tree["queries"]["cat-q1"]
    file.write_text(json.dumps(tree), "utf-8")
    assert main(["gate", *args, "--baseline", str(file)]) == 0
    assert "the baseline lacks them: 1 of 16 questions, such as 'cat-q1'" in capsys.readouterr().err


def test_a_gate_fails_if_labelled_chunks_disappear(
    place: Path, args: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, junit, other = tmp_path / "baseline.json", tmp_path / "gate.xml", str(tmp_path / "ws")
    assert main(["gate", *args, "--baseline", str(file), "--update-baseline"]) == 0
    left = [
        line
        for line in (place / "chunks.jsonl").read_text("utf-8").splitlines()
        if '"moon-0"' not in line and '"cat-0"' not in line
    ]
    (tmp_path / "left.jsonl").write_text("\n".join(left), "utf-8")
    assert main(["index", str(tmp_path / "left.jsonl"), "-c", "small", "--data-dir", other]) == 0
    capsys.readouterr()
    gate = ["gate", *args[:-1], other, "--baseline", str(file), "--junit", str(junit)]
    assert main(gate) == 1
    out = capsys.readouterr().out
    assert "BROKEN  missing since the baseline: 4 questions, 4 relevant chunks" in out
    assert "moon-q0: not measured" in out
    assert "cat-q0: 1 fewer relevant" in out
    assert ElementTree.parse(junit).getroot().get("failures") == "1"
    assert main([*gate, "--json"]) == 1
    gone = json.loads(capsys.readouterr().out)["gone"]
    assert gone["queries"] == ["moon-q0", "moon-q1", "moon-q2", "moon-q3"]
    assert gone["relevant"][0] == {"id": "cat-q0", "fewer": 1}


def test_a_baseline_is_of_the_same_collection_wherever_the_same_file_is_indexed(
    place: Path, args: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A CI job indexes from scratch."""
    file, other = tmp_path / "baseline.json", str(tmp_path / "ws")
    assert main(["gate", *args, "--baseline", str(file), "--update-baseline"]) == 0
    source = str(place / "chunks.jsonl")
    assert main(["index", source, "-c", "small", "--data-dir", other]) == 0
    capsys.readouterr()
    assert main(["gate", *args[:-1], other, "--baseline", str(file)]) == 0
    assert "The baseline is of" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "content", "message"),
    [
        (["--max-drop", "recall=0.1"], None, "The baseline is missing"),
        (["--update-baseline"], None, "The baseline is missing"),
        (
            ["--max-drop", "kept=1", "--baseline", "FILE"],
            "{}",
            "one of: precision, recall, f1",
        ),
        (["--baseline", "FILE"], "[1]", "is not a baseline file. Create a new one"),
        (["--baseline", "FILE"], None, "cannot be read"),
    ],
)
def test_a_baseline_that_cannot_be_used_is_one_line(
    options: list[str],
    content: str | None,
    message: str,
    args: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "baseline.json"
    if content is not None:
        file.write_text(content, "utf-8")
    given = [str(file) if option == "FILE" else option for option in options]
    assert main(["gate", *args, *given]) == 2
    assert message in capsys.readouterr().err
