"""`ragfilter compare` and `ragfilter experiment`, with a real LLM endpoint and without one.

The collection and the embedder are fakes, so that no model is loaded.
"""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from faults import Behave, Handler, Serve
from waiting import PATIENT_MS

from ragfilter.cli import main, parts
from ragfilter.engine.search import Backends
from ragfilter.errors import StoreUnavailable
from ragfilter.judge.call import Judgements
from ragfilter.model import Chunk, Space
from ragfilter.models.chat import OpenAIChat
from ragfilter.protocols import ChatModel, Vectors

LABELS = {"first": ("0", "1"), "second": ("10", "9", "11")}
TEXTS = {"first": "0", "second": "10", "unlabelled": "20"}


class Line:
    """Chunks on a line: the vector of query "n" is n, and chunk m is |n − m| / 100 away from it."""

    name = "line"
    space: Space = "l2"
    version = "1"

    def __init__(self) -> None:
        self.all = {str(i): Chunk(str(i), f"no. {i}", source=f"{i % 2}.md") for i in range(30)}

    def embed(self, texts: Sequence[str], progress: object = None) -> Vectors:
        return np.array([[float(text)] for text in texts], dtype=np.float32)

    def count(self) -> int:
        return len(self.all)

    def nearest(
        self, vector: Vectors, n: int, *, ids: object = None, where: Any = None
    ) -> list[tuple[str, float]]:
        at = float(vector[0])
        wanted = None if where is None else where.sources
        there = [i for i, chunk in self.all.items() if wanted is None or chunk.source in wanted]
        pairs = [(i, abs(int(i) - at) / 100) for i in there]
        return sorted(pairs, key=lambda pair: (pair[1], int(pair[0])))[:n]

    def chunks(self, ids: Sequence[str]) -> dict[str, Chunk]:
        return {i: self.all[i] for i in ids if i in self.all}

    def catalogue(self) -> dict[str, Chunk]:
        return self.all


class Workbench:
    def __init__(self, chat: ChatModel | None, line: Line) -> None:
        self.chat = chat
        self.line = line

    def backends(self, name: str) -> Backends:
        assert name == "small"
        return Backends(self.line, self.line, None, self.chat, Judgements())

    def collection(self, _: str) -> Any:
        return SimpleNamespace(check_not_empty=lambda: None)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Two labelled queries and one without labels, as flags."""
    queries, qrels = tmp_path / "queries.jsonl", tmp_path / "qrels.tsv"
    lines = [json.dumps({"_id": i, "text": text}) for i, text in TEXTS.items()]
    queries.write_text("\n".join(lines), encoding="utf-8")
    rows = [f"{i}\t{chunk}\t1" for i, chunks in LABELS.items() for chunk in chunks]
    qrels.write_text("\n".join(["query-id\tcorpus-id\tscore", *rows]), encoding="utf-8")
    return ["-c", "small", "--queries", str(queries), "--qrels", str(qrels)]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Makes the commands open a workbench with this LLM in the workspace `tmp_path`."""
    monkeypatch.setenv("RAGFILTER_DATA_DIR", str(tmp_path))

    def with_chat(chat: ChatModel | None, line: Line | None = None) -> None:
        @contextmanager
        def opened(data_dir: object, kind: str) -> Iterator[Workbench]:
            yield Workbench(chat, line or Line())

        monkeypatch.setattr(parts, "open_for", opened)

    return with_chat


@pytest.fixture(autouse=True)
def _logging() -> Iterator[None]:
    """Undo what a command does to logging."""
    root, ours = logging.getLogger(), logging.getLogger("ragfilter")
    before = root.handlers[:], root.level, ours.level
    yield
    root.handlers[:], root.level, ours.level = before[0], before[1], before[2]


def labelled(handler: Handler, body: dict[str, Any]) -> None:
    """Keeps the labelled chunks; with the strict prompt only the first of them; with the terse
    prompt it fails."""
    system, user = (message["content"] for message in body["messages"])
    query = re.findall(r"^Query: (.*)$", user, re.MULTILINE)[0]
    relevant = LABELS[next(i for i, text in TEXTS.items() if text == query)]
    if "cannot do without" in system:
        relevant = relevant[:1]
    if system.startswith("Which chunks"):
        handler.reply(500, '{"error": {"message": "out of memory"}}')
        return
    handler.start()
    handler.piece("\n".join(f"{i} -> KEEP" for i in relevant))
    handler.piece(None, "stop")
    handler.event({"choices": [], "usage": {"prompt_tokens": 300, "completion_tokens": 20}})
    handler.event("[DONE]")


def llm(serve: Serve, behave: Behave = labelled) -> OpenAIChat:
    return OpenAIChat(model="tiny", base_url=serve(behave).url)


def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


PATIENT = ["--set", f"judge.timeout_ms={PATIENT_MS}"]
FOUR = [*PATIENT, "--set", "judge.max_chunks=4", "--set", "retrieval.k=4"]


def test_an_experiment_measures_every_prompt(
    bench: Any, serve: Serve, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    bench(llm(serve))
    command = ["experiment", *files, *FOUR, "--variants", "default, strict,terse"]
    assert main([*command, "--json"]) == 0
    made = printed(capsys)
    assert (made["collection"], made["queries"], made["complete"]) == ("small", 2, True)
    none, default, strict, terse = made["sides"]
    assert [s["side"] for s in made["sides"]] == ["no judge", "default", "strict", "terse"]
    assert none["precision"] == pytest.approx((2 / 4 + 3 / 4) / 2)
    assert (default["precision"], default["recall"], default["noise_reduction"]) == (1, 1, 1)
    assert strict["recall"] == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert (none["llm_tokens"], default["llm_tokens"], terse["fallbacks"]) == (0, 320, 2)
    assert (default["fallbacks"], terse["kept"]) == (0, 4)
    assert len(made["per_query"]) == 8
    assert "out of memory" in made["per_query"][3]["error"]

    assert main(command) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("small: means over 2 queries\n")
    lines = {line.split("  ")[0]: line.split() for line in shown.splitlines() if line}
    assert lines["side"][:4] == ["side", "kept", "P", "R"]
    assert lines["default"][1:6] == ["2.5", "1.000", "1.000", "1.000", "1.000"]
    assert lines["default"][6] == "100.0%"
    assert lines["terse"][-1] == "2"
    assert "fallback: The endpoint failed (HTTP 500): out of memory" in shown


def test_without_variants_every_prompt_is_tried(
    bench: Any, serve: Serve, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    bench(llm(serve))
    assert main(["experiment", *files, *PATIENT, "--only", "first", "--json"]) == 0
    made = printed(capsys)
    assert [s["side"] for s in made["sides"]] == ["no judge", "default", "strict", "terse"]
    assert made["queries"] == 1


OWN = """
version = "1"
about = "mine."
instructions = "KEEP, EXPAND_1, EXPAND_3, EXPAND_5 or DISCARD, in my words."
"""


@pytest.mark.parametrize("named", [False, True])
def test_a_prompt_of_ones_own_is_measured(
    bench: Any, serve: Serve, files: list[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], named: bool,
) -> None:  # fmt: skip
    folder = tmp_path / ("elsewhere" if named else "prompts")
    folder.mkdir()
    (folder / "mine.toml").write_text(OWN, encoding="utf-8")
    (folder / "bad.toml").write_text("version = 1", encoding="utf-8")
    if named:
        monkeypatch.setenv("RAGFILTER_JUDGE_PROMPTS", str(folder))
    server = serve(labelled)
    bench(OpenAIChat(model="tiny", base_url=server.url))
    command = ["experiment", *files, *PATIENT, "--only", "first", "--json"]
    assert main([*command, "--variants", "mine"]) == 0
    out, err = capsys.readouterr()
    assert [side["side"] for side in json.loads(out)["sides"]] == ["no judge", "mine"]
    (asked,) = server.asked
    assert asked["body"]["messages"][0]["content"].startswith("KEEP, EXPAND_1, EXPAND_3, EXPAND_5")
    assert "in my words" in asked["body"]["messages"][0]["content"]
    assert err.count(f"{folder / 'bad.toml'}: version: it must be a string.") == 1
    # Without --variants, all of them are used.
    assert main(command) == 0
    assert [side["side"] for side in printed(capsys)["sides"]] == [
        "no judge", "default", "strict", "terse", "mine",
    ]  # fmt: skip
    assert main([*command, "--variants", "bad"]) == 2
    assert "Use one of default, strict, terse, mine." in capsys.readouterr().err


def test_profiles_and_settings_are_compared_with_a_plain_search(
    bench: Any, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    bench(None)
    command = ["compare", *files, "-p", "adaptive-gap", "-p", "query-must", "--json"]
    assert main([*command, "--set", "retrieval.k=4", "--limit", "1"]) == 0
    made = printed(capsys)
    assert [s["side"] for s in made["sides"]] == ["unfiltered, k 4", "adaptive-gap", "query-must"]
    assert [s["kept"] for s in made["sides"]] == [4, 5, 4]
    assert [row["id"] for row in made["per_query"]] == ["first"] * 3
    assert [(each["a"], each["b"]) for each in made["pairs"]] == [
        ("unfiltered, k 4", "adaptive-gap"), ("unfiltered, k 4", "query-must"),
        ("adaptive-gap", "query-must"),
    ]  # fmt: skip
    f1 = {row["side"]: row["f1"] for row in made["per_query"]}
    for each in made["pairs"]:
        gain = f1[each["b"]] - f1[each["a"]]
        assert each["gain"]["f1"] == pytest.approx(gain)
        assert (each["wins"], each["losses"]) == (int(gain > 0), int(gain < 0))
    assert made["per_query"][2]["ids"] == ["0", "1", "2", "3"]
    turned = ["compare", *files, "-p", "query-must", "-p", "adaptive-gap", "--json"]
    assert main([*turned, "--set", "retrieval.k=4", "--limit", "1"]) == 0
    unfiltered, first, second = (side | {"ms": 0} for side in made["sides"])
    again = [side | {"ms": 0} for side in printed(capsys)["sides"]]
    assert again == [unfiltered, second, first]

    vary = ["--vary", "cutoff.max_results=1", "--vary", "", "--vary",
            "cutoff.max_results=3 retrieval.source_pattern='1.md'"]  # fmt: skip
    assert main(["compare", *files, "-p", "adaptive-gap", *vary, "--json"]) == 0
    made = printed(capsys)
    assert [s["side"] for s in made["sides"]] == [
        "unfiltered, k 5",
        "adaptive-gap cutoff.max_results=1",
        "adaptive-gap",
        "adaptive-gap cutoff.max_results=3 retrieval.source_pattern='1.md'",
    ]
    assert [row["ids"] for row in made["per_query"][:4]] == [
        ["0", "1", "2", "3", "4"], ["0"], ["0", "1", "2", "3", "4"], ["1", "3", "5"],
    ]  # fmt: skip


def test_with_and_without_the_judge(
    bench: Any, serve: Serve, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    bench(llm(serve))
    assert main(["compare", *files, "-p", "llm-filter", *FOUR]) == 0
    shown = capsys.readouterr().out
    assert "llm-filter against unfiltered, k 4, F1 over 2 queries: 2 better, 0 worse" in shown
    assert re.search(r"\(paired permutation test\)\n  \+0\.\d+  \S", shown)
    assert re.search(r"^unfiltered, k 4 +4\.0 +0\.625 +1\.000", shown, re.MULTILINE)
    assert re.search(
        r"^llm-filter +2\.5 +1\.000 +1\.000 +1\.000 +1\.000 +100\.0%", shown, re.MULTILINE
    )


def test_without_labels_there_is_the_rest(
    bench: Any, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    bench(None)
    assert main(["compare", *files[:4], "--set", "retrieval.k=4", "--json"]) == 0
    made = printed(capsys)
    assert {row["id"] for row in made["per_query"]} == set(TEXTS)
    assert made["sides"][0]["precision"] is None
    assert made["pairs"] == []
    assert made["sides"][0]["kept"] == 4
    assert main(["compare", *files[:4], "--except", "first", "--only", "first"]) == 0
    assert "means over 0 queries" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["eval", "compare"])
def test_a_query_without_a_relevant_chunk_in_the_collection_is_left_out(
    command: str, bench: Any, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    bench(None)
    Path(files[5]).write_text("first\t0\t1\nsecond\t10\t0\nsecond\tx\t1\n", "utf-8")
    assert main([command, *files, "-p", "adaptive-gap", "--json"]) == 0
    assert "Only 1 question has a chunk labelled relevant" in (told := capsys.readouterr().err)
    assert (
        "1 of 2 labelled queries, such as 'second': none of their relevant chunks is in the "
        "collection line, as this user sees it, so they are left out" in told
    )
    Path(files[5]).write_text("second\t10\t0\nsecond\tx\t1\n", "utf-8")
    assert main([command, *files, "-p", "adaptive-gap", "--json"]) == 2
    assert "None of the chunks labelled as relevant is in" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["eval", "compare"])
@pytest.mark.parametrize(
    ("chunks", "code", "missing", "said"),
    [
        ("0 x", 0, ["x"],
         "WARNING 1 of 2 labelled ids is not in the collection line, such as 'x': their "
         "labels are left out. Index those chunks, or label others\n"),
        ("0 x y", 0, ["x", "y"],
         "WARNING 2 of 3 labelled ids are not in the collection line, such as 'x': their "
         "labels are left out. Index those chunks, or label others\n"),
        ("0 1", 0, [], ""),
        ("x", 2, None, "ragfilter: None of the labelled ids, such as 'x', is in the collection "
        "'line'. Check that the labels belong to this collection.\n"),
    ],
)  # fmt: skip
def test_labels_that_name_unknown_chunks_are_told(
    command: str, chunks: str, code: int, missing: list[str] | None, said: str,
    bench: Any, files: list[str], capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    bench(None)
    rows = "".join(f"first\t{chunk}\t1\n" for chunk in chunks.split())
    Path(files[5]).write_text(rows, encoding="utf-8")
    assert main([command, *files, "-p", "adaptive-gap", "--json"]) == code
    out, err = capsys.readouterr()
    # Both also say that one query is not much.
    assert (
        "".join(line for line in err.splitlines(True) if "too few for reliable" not in line) == said
    )
    assert ("Only 1 question has a chunk labelled relevant" in err) == (code == 0)
    assert (json.loads(out)["unknown_labels"] if out else None) == missing


def ctrl_c() -> None:
    raise KeyboardInterrupt


def sigterm() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(5)


def store_lost() -> None:
    raise StoreUnavailable("The store is gone.", remedy="Start it.")


class Stopping:
    """An LLM during whose third call `end` stops the run."""

    name = "stopping"

    def __init__(self, end: Callable[[], None]) -> None:
        self.end = end
        self.calls = 0

    def stream(self, *_: object, **__: object) -> Iterator[Any]:
        self.calls += 1
        if self.calls == 3:
            self.end()
        raise ValueError("no answer")
        yield


class Losing(Line):
    """A collection that is lost during the fifth measurement."""

    searches = 0

    def nearest(self, *args: Any, **kwargs: Any) -> list[tuple[str, float]]:
        self.searches += 1
        if self.searches == 6:
            store_lost()
        return super().nearest(*args, **kwargs)


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize("end", [ctrl_c, sigterm, None], ids=["Ctrl+C", "SIGTERM", "store"])
def test_stopped_it_prints_what_is_finished(
    bench: Any, files: list[str], capsys: pytest.CaptureFixture[str],
    end: Callable[[], None] | None, as_json: bool,
) -> None:  # fmt: skip
    bench(Stopping(end or list), Line() if end else Losing())
    command = ["experiment", *files, "--variants", "default,strict"]
    assert main([*command, *(["--json"] if as_json else [])]) == (130 if end else 2)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    out, err = capsys.readouterr()
    assert err.endswith("Stopped.\n" if end else "ragfilter: The store is gone. Start it.\n")
    if as_json:
        made = json.loads(out)
        assert made["complete"] is False
        assert [s["queries"] for s in made["sides"]] == [1, 1, 1]
        assert len(made["per_query"]) == 4
    else:
        assert "means over 1 query; stopped after 4 of 6 measurements" in out


def test_stopped_at_once_it_has_nothing_to_print(
    bench: Any, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    bench(None)
    command = ["compare", *files, "-p", "adaptive-gap", "--json"]
    assert main([*command, "--set", "retrieval.source_pattern=nowhere"]) == 2
    out, err = capsys.readouterr()
    warning, refusal = err.splitlines()
    assert (out, "too few for reliable" in warning) == ("", True)
    assert refusal.startswith("ragfilter: ")


def test_progress_goes_to_standard_error(
    bench: Any, files: list[str], capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    bench(None)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main(["compare", *files, "-p", "adaptive-gap", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["complete"]
    assert "4 of 4 measurements" in err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["experiment", "FILES"], "The judge needs an LLM, and none is configured. "
         "Set OPENAI_API_KEY, or OPENAI_BASE_URL"),
        (["compare", "FILES", "-p", "llm-filter"], "The judge needs an LLM"),
        (["experiment", "FILES", "--variants", "default,srict"],
         "judge.prompt = 'srict' (from --variants) is not allowed. Use one of default, strict"),
        (["compare", "FILES", "-p", "best"], "There is no profile 'best'."),
        (["compare", "FILES", "--vary", "cutoff.max_results"], "--vary cutoff.max_results: there"),
        (["compare", "FILES", "--vary", "a='b"], "--vary a='b: No closing quotation."),
        (["compare", "FILES", "--only", "zz"], "There is no query 'zz'."),
        (["experiment", "-c", "small", "--queries", "QUERIES"], "The qrels are missing."),
        (["compare", "-c", "small", "--queries", "QUERIES", "--only", "zz"], "There is no query"),
        (["compare", "-c", "small", "--queries", "/nowhere"], "/nowhere cannot be read"),
        (["compare", "-c", "small"], "Missing option '--queries'"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(
    bench: Any, files: list[str], capsys: pytest.CaptureFixture[str], args: list[str], said: str
) -> None:
    bench(None)
    given = [part for arg in args for part in (files if arg == "FILES" else [arg])]
    given = [files[3] if arg == "QUERIES" else arg for arg in given]
    assert main(given) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"ragfilter: {said}")
