"""`ragfilter tune` and `ragfilter gate`, end to end on a small collection."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from commands import Cli, write

from ragfilter.cli.program import main
from ragfilter.settings.config import load

# Each fits models on every fold.
pytestmark = pytest.mark.slow

TOPICS = {
    "cat": ["The cat sleeps in the sun.", "A cat hunts mice at night.", "Cats purr when content."],
    "boat": ["A rowing boat crosses the river.", "The boat has a leak."],
    "bread": [
        "Bread is baked from flour.",
        "Rye bread keeps long.",
        "Fresh bread smells good.",
        "A baker kneads bread dough.",
    ],
    "moon": ["The moon is full tonight."],
}
ASKED = ("what does a {} do", "tell me about the {}", "{}", "facts: {}")
FIXED = "--set quality.enabled=false --set cutoff.strategy=fixed --set cutoff.max_results="


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a workspace `ws`, `queries.jsonl` and `qrels.tsv`."""
    folder = tmp_path_factory.mktemp("tuning")
    named = [(f"{topic}-{n}", text) for topic in TOPICS for n, text in enumerate(TOPICS[topic])]
    asked = [(f"{topic}-q{n}", form.format(topic)) for topic in TOPICS for n, form in enumerate(ASKED)]
    source = write(folder / "chunks.jsonl", *({"id": i, "text": text} for i, text in named))
    write(folder / "queries.jsonl", *({"_id": i, "text": text} for i, text in asked))
    write(
        folder / "qrels.tsv",
        *(f"{q}\t{i}\t1" for q, _ in asked for i, _ in named if q.partition("-")[0] == i.partition("-")[0]),
    )
    assert main(["index", source, "-c", "small", "--data-dir", str(folder / "ws")]) == 0
    return folder


@pytest.fixture
def cli(place: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs commands on the collection."""
    return Cli(capsys, ["-c", "small", "--data-dir", str(place / "ws")])


@pytest.fixture
def measured(cli: Cli, place: Path) -> Cli:
    """The same with its queries and labels."""
    files = ["--queries", str(place / "queries.jsonl"), "--qrels", str(place / "qrels.tsv")]
    return Cli(cli.capsys, [*cli.where, *files])


@pytest.fixture
def tuned(measured: Cli, place: Path) -> tuple[Any, Path]:
    """What `tune` printed, once, and the file that it wrote."""
    out, printed = place / "tuned.toml", place / "tuned.json"
    if not out.exists():
        printed.write_text(measured("tune --no-rerank --json --out", str(out)))
    return json.loads(printed.read_text()), out


def test_tune_prints_the_promised_document(tuned: tuple[Any, Path]) -> None:
    made, out = tuned
    assert (made["collection"], made["queries"], made["measure"], made["folds"]) == ("small", 16, "f1", 5)
    assert set(made["best_fixed_k"]) >= {"k", "f1", "ci"}
    assert set(made["gain_over_fixed_k"]) >= {"f1", "ci"}
    for one in (made["before"], made["after"], made["oracle"], *made["strategies"]):
        # None where too few questions differ.
        assert one["ci"] is None or one["ci"][0] <= one["f1"] <= one["ci"][1]
        assert (one["f1_most"] > one["f1"]) == (one["unlabelled"] > 0)
    assert made["oracle"]["f1"] >= made["best_fixed_k"]["f1"]
    gain = made["after"]["f1"] - made["best_fixed_k"]["f1"]
    assert made["gain_over_fixed_k"]["f1"] == pytest.approx(gain)
    names = {one["name"] for one in made["strategies"]}
    assert names >= {"calibrated", "car", "spike"}
    assert made["calibrated_over"].keys() == names - {"calibrated"}
    assert all(0 <= kept <= 1 for kept in made["recall_dial"].values())
    assert set(made["gain_over_before"]) == {"f1", "f2", "mean", "ci"}
    # The settings file is what was printed, and says where it is from.
    assert made["settings_file"] == str(out)
    text = out.read_text("utf-8")
    assert "# Tuned on 16 labelled queries, f1.\n# Collection small" in text
    assert "all-MiniLM-L6-v2" in text
    loaded, base = load(file=out, environ={}), load(profile="full", environ={})
    assert loaded.settings.changed_from(base.settings) == made["after"]["settings"]
    assert set(tomllib.loads(text)) <= {"profile", "cutoff", "quality"}


def test_values_are_measured_in_pairs(measured: Cli) -> None:
    command = "eval --profile adaptive-gap"
    pair = "--vary cutoff.max_results=2,8 --vary quality.min_top_k=1,60"
    made = measured.json(f"{command} {pair} --set quality.enabled=true")
    rows = {row["variant"]: row for row in made["rows"] if row["group"] == "settings"}
    # The last is above quality.max_top_k.
    assert [*rows] == [f"adaptive-gap cutoff.max_results={most} quality.min_top_k=1" for most in (2, 8)]
    assert "2 combinations left out" in made["notes"][0]


def test_one_strategy_is_chosen_whatever_the_others_are_worth(measured: Cli, cli: Cli, tmp_path: Path) -> None:
    """Users can then get a calibration, and with it the recall dial."""
    out = tmp_path / "learned.toml"
    chosen = f"tune --strategy calibrated --no-rerank --out {out}"
    made = measured.json(chosen)
    alone = {one["name"]: one["f1"] for one in made["strategies"]}
    assert made["after"]["settings"]["cutoff.strategy"] == "calibrated"
    assert made["after"]["f1"] == alone["calibrated"]
    learned = f"--config {out}"
    dial = "--set cutoff.target=recall --set cutoff.recall=0.8"
    assert "keep 80% of the relevant hits" in cli(f"query bread {learned} {dial}")
    # Measured with the labels it was learned from, its figures show nothing, and the commands say so.
    these, some = "learned from these same labels", "may have seen some of these questions"
    for others, told in (("", these), (" ".join(f"--only=cat-q{n}" for n in range(1, 4)), some)):
        for more in ("", "--vary cutoff.max_results=5"):
            measured(f"eval {learned} {others} {more}")
            assert told in measured.err
    made = measured.json(f"eval {learned} --save learned")
    assert any(these in note for note in made["notes"])
    measured(f"{chosen} {' '.join(f'--only=cat-q{n}' for n in range(4))}", code=2)
    assert "at least 10 labelled queries" in measured.err


def test_a_query_set_of_the_workspace_is_measured_by_its_name(measured: Cli, cli: Cli) -> None:
    measured("labels import --set-name mine")
    for command in ("eval --json", "gate --min recall=0.1"):
        assert cli(f"{command} --queries mine") == measured(command)
        assert "no query set 'yours'" in cli.refused(f"{command} --queries yours")
        assert "gone.jsonl" in cli.refused(f"{command} --queries gone.jsonl --qrels gone.tsv")


def test_what_cannot_be_done_is_one_line(measured: Cli, tmp_path: Path) -> None:
    for command, word in [
        ("tune --measure f9", "no measure 'f9'"),
        ("tune --strategy best", "cutoff.strategy"),
        ("tune --out /nowhere/at/all.toml --no-rerank", "cannot be written"),
        ("eval --vary cutoff.max_results=1 --vary cutoff.max_results=1", "--vary names a setting twice"),
        ("gate", "nothing to check"),
        ("gate --max-drop recall=0.1", "The baseline is missing"),
        ("gate --baseline FILE", "is not a baseline file"),
    ]:
        (tmp_path / "base.json").write_text("[1]")
        measured(command.replace("FILE", str(tmp_path / "base.json")), code=2)
        assert word in measured.err.splitlines()[-1]


# -- gate ------------------------------------------------------------------------------------------


def test_a_gate_holds_or_names_figure_and_queries(measured: Cli) -> None:
    made = measured.json("gate --min recall=0.1 --max kept=15")
    assert (made["passed"], made["queries"]) == (True, 16)
    assert [(one["figure"], one["at"]) for one in made["checks"]] == [("recall", "least"), ("kept", "most")]
    out = measured(f"gate {FIXED}1 --min recall=0.9 --min precision=0.1", code=1)
    assert "BROKEN  mean recall" in out
    assert "ok      mean precision" in out
    # One of four at most.
    assert "bread-q0: recall 0.250 < 0.900" in out
    assert "moon-q0" not in out


def test_a_gate_holds_the_filter_to_its_baseline(measured: Cli, tmp_path: Path) -> None:
    baseline, junit = tmp_path / "baseline.json", tmp_path / "junit.xml"
    gate = f"gate --baseline {baseline} {FIXED}"
    measured(f"{gate}4 --update-baseline")
    first = baseline.read_bytes()
    measured(f"{gate}4 --update-baseline")
    assert baseline.read_bytes() == first
    assert [(drop["figure"], drop["passed"]) for drop in measured.json(f"{gate}4")["drops"]] == [
        ("recall", True),
        ("f1", True),
    ]
    out = measured(f"{gate}1 --junit {junit}", code=1)
    assert "BROKEN  mean recall" in out
    assert "questions lost 0.5 or more" in out
    # Each question once, with all its reasons.
    assert re.search(r"^ +cat-q0: F1 −\d\.\d+, recall −\d\.\d+$", out, re.MULTILINE)
    assert out.count("cat-q0") == 1
    suite = ElementTree.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("3", "2")
    # A limit on one figure does not change the limits on others.
    drops = measured.json(f"{gate}1 --max-drop recall=0.9", code=1)["drops"]
    assert [(each["figure"], each["allowed"], bool(each["severe"])) for each in drops] == [
        ("recall", 0.9, True),
        ("f1", 0.02, True),
    ]
    # Figures that break a limit do not become a baseline.
    measured(f"{gate}1 --update-baseline --min recall=0.99", code=1)
    assert "because a limit is broken" in measured.err
    assert baseline.read_bytes() == first


def test_a_log_of_another_collection_is_not_compared(measured: Cli, cli: Cli, tmp_path: Path) -> None:
    baseline = tmp_path / "baseline.json"
    measured(f"gate --baseline {baseline} --update-baseline")
    lines = [
        {"kept": 90 + n, "fallback": [], "nearness": n / 100, "collection": name}
        for n in range(9)
        for name in ("small", "other")
    ]
    command = f"gate --baseline {baseline} --watch"
    both, one = (write(tmp_path / f"{n}.jsonl", *lines[n:]) for n in (0, 17))
    assert "0.jsonl, small: 9 questions" in cli(f"{command} {both}", code=1)
    assert "only to other" in cli.refused(f"{command} {one}")
    assert "of the collection 'small', not 'other'" in Cli(cli.capsys, ["-c", "other"]).refused(f"{command} {both}")


def test_a_gate_of_a_collection_that_is_indexed_again(place: Path, measured: Cli, tmp_path: Path) -> None:
    """A CI job indexes from scratch. Labelled chunks that are gone break the gate."""
    file, again = tmp_path / "baseline.json", {}
    measured(f"gate --baseline {file} --update-baseline")
    lines = (place / "chunks.jsonl").read_text("utf-8").splitlines()
    left = (line for line in lines if '"moon-0"' not in line and '"cat-0"' not in line)
    for name, source in (("same", lines), ("left", left)):
        (tmp_path / name).mkdir()
        where = ["-c", "small", "--data-dir", str(tmp_path / name / "ws")]
        assert main(["index", write(tmp_path / name / "chunks.jsonl", *source), *where]) == 0
        again[name] = Cli(measured.capsys, [*measured.where, *where])
    again["same"](f"gate --baseline {file}")
    assert "The baseline is of" not in again["same"].err
    gone = again["left"].json(f"gate --baseline {file}", code=1)["gone"]
    assert gone["queries"] == ["moon-q0", "moon-q1", "moon-q2", "moon-q3"]
    assert gone["relevant"]["cat-q0"] == 1


def test_recalibrating_refuses_what_it_cannot_show_to_be_no_worse(
    measured: Cli, tuned: tuple[Any, Path], tmp_path: Path
) -> None:
    """Sixteen questions: the interval is wide, and a margin of 1 allows anything."""
    out = tmp_path / "new.toml"
    command = f"recalibrate --no-rerank --from {tuned[1]} --out {out}"
    made = measured.json(f"{command} --margin 1")
    assert (made["guess"], made["no_worse"], made["settings_file"]) == (False, True, str(out))
    difference = made["after"]["f1"]["mean"] - made["before"]["f1"]["mean"]
    assert made["difference"]["f1"]["mean"] == pytest.approx(difference)
    assert set(made["before"]) == {"f1", "f2", "recall", "tokens"}
    assert (
        load(file=out, environ={}).settings.changed_from(load(file=tuned[1], environ={}).settings) == made["settings"]
    )
    out.unlink()
    ends = made["difference"]["f1"]["ends"]
    least = made["difference"]["f1"]["mean"] if ends is None else ends[0]
    measured(f"{command} --margin 0", code=0 if least >= 0 else 1)
    assert out.exists() == (least >= 0)


def test_without_labels_thresholds_are_carried_over(cli: Cli, place: Path, tmp_path: Path) -> None:
    asked = write(tmp_path / "asked.jsonl", *({"_id": str(i), "text": f"about {i}"} for i in range(3)))
    made = cli.json(f"recalibrate --queries {asked}")
    assert (made["guess"], made["queries"], made["settings"]) == (True, 3, {})
    assert "This is a guess" in cli(f"recalibrate --queries {asked}")
