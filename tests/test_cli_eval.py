"""`ragfilter eval` over several settings, with a real LLM endpoint and without one.

The collection and the embedder are fakes, so that no model is loaded.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from commands import Cli, write
from faults import Behave, Handler, Serve
from waiting import PATIENT_MS

from ragfilter.cli import options
from ragfilter.engine.gather import Backends
from ragfilter.errors import StoreUnavailable
from ragfilter.judge.call import JudgementCache
from ragfilter.model import Chunk
from ragfilter.models.openai import OpenAIChat
from ragfilter.protocols import ChatModel, Vectors
from ragfilter.settings.deployment import Deployment
from ragfilter.testing import MemoryCollection

LABELS = {"first": ("0", "1"), "second": ("10", "9", "11")}
TEXTS = {"first": "0", "second": "10", "unlabelled": "20"}


class Line(MemoryCollection):
    """Chunks on a line: the vector of query "n" is n, and chunk m is |n − m| / 100 away from it."""

    name = "line"

    def __init__(self) -> None:
        super().__init__(Chunk(str(i), f"no. {i}", source=f"{i % 2}.md") for i in range(30))

    def embed(self, texts: Sequence[str]) -> Vectors:
        return np.array([[float(text)] for text in texts], dtype=np.float32)

    def distances(self, vector: Vectors) -> dict[str, float]:
        return {i: abs(int(i) - float(vector[0])) / 100 for i in self.all}


class Workbench:
    labels = prices = None
    deployment = Deployment(data_dir=Path())

    def __init__(self, chat: ChatModel | None, line: Line) -> None:
        self.chat = chat
        self.line = line

    def backends(self, name: str) -> Backends:
        assert name == "small"
        return Backends(self.line, self.line, None, self.chat, JudgementCache())

    def collection(self, _: str) -> Any:
        return SimpleNamespace(check_not_empty=lambda: None)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Cli:
    """Runs commands over two labelled queries and one without labels."""
    queries = write(tmp_path / "q.jsonl", *({"_id": i, "text": text} for i, text in TEXTS.items()))
    rows = [f"{i}\t{chunk}\t1" for i, chunks in LABELS.items() for chunk in chunks]
    qrels = write(tmp_path / "qrels.tsv", "query-id\tcorpus-id\tscore", *rows)
    return Cli(capsys, ["-c", "small", "--queries", queries, "--qrels", qrels])


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Makes the commands open a workbench with this LLM in the workspace `tmp_path`."""
    monkeypatch.setenv("RAGFILTER_DATA_DIR", str(tmp_path))

    def with_chat(chat: ChatModel | None = None, line: Line | None = None) -> None:
        @contextmanager
        def opened(data_dir: object, kind: str) -> Iterator[Workbench]:
            yield Workbench(chat, line or Line())

        monkeypatch.setattr(options, "open_for", opened)

    return with_chat


def labelled(handler: Handler, body: dict[str, Any]) -> None:
    """Keeps the labelled chunks; with the strict prompt only the first of them; with the terse prompt it fails."""
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


PATIENT = f"--set judge.timeout_ms={PATIENT_MS}"
FOUR = f"{PATIENT} --set judge.max_chunks=4 --set retrieval.k=4"


def rows(document: Any) -> dict[str, Any]:
    """The rows by name, without the best fixed k and the oracle."""
    bounds = ("best fixed k", "oracle")
    return {row["variant"]: row for row in document["rows"] if row["variant"] not in bounds}


def test_every_prompt_of_the_judge_is_measured(bench: Any, serve: Serve, cli: Cli) -> None:
    bench(llm(serve))
    made = cli.json(f"eval {FOUR} --prompts default,strict,terse")
    assert (made["collection"], made["queries"], made["complete"]) == ("small", 2, True)
    _, none, default, strict, terse = rows(made).values()
    assert [*rows(made)] == ["unfiltered, k 4", "no judge", "default", "strict", "terse"]
    assert none["precision"] == pytest.approx((2 / 4 + 3 / 4) / 2)
    assert (default["precision"], default["recall"]) == (1, 1)
    assert default["noise_reduction"] == 1
    assert strict["recall"] == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert (none["llm_tokens"], default["llm_tokens"], terse["fallbacks"]) == (0, 320, 2)
    assert (default["fallbacks"], terse["kept"]) == (0, 4)
    assert len(made["per_query"]) == 10
    assert "out of memory" in made["per_query"][4]["error"]


OWN = """
version = "1"
about = "mine."
instructions = "KEEP, EXPAND_1, EXPAND_3, EXPAND_5 or DISCARD, in my words."
"""


def test_a_prompt_of_ones_own_is_measured(bench: Any, serve: Serve, cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "mine.toml").write_text(OWN, encoding="utf-8")
    (folder / "bad.toml").write_text("version = 1", encoding="utf-8")
    server = serve(labelled)
    bench(OpenAIChat(model="tiny", base_url=server.url))
    command = f"eval {PATIENT} --only first --prompts"
    assert [*rows(cli.json(f"{command} mine"))][1:] == ["no judge", "mine"]
    assert cli.err.count(f"{folder / 'bad.toml'}: version: it must be a string.") == 1
    (asked,) = server.asked
    assert asked["body"]["messages"][0]["content"].startswith("KEEP, EXPAND_1, EXPAND_3, EXPAND_5")
    assert "in my words" in asked["body"]["messages"][0]["content"]
    made = cli.json(f"{command} all")
    assert [*rows(made)][1:] == ["no judge", "default", "strict", "terse", "mine"]
    assert made["queries"] == 1
    cli(f"{command} bad", code=2)
    assert "Use one of default, strict, terse, mine." in cli.err


def test_profiles_are_compared_with_a_plain_search_and_with_a_side(bench: Any, cli: Cli) -> None:
    bench()
    command = "eval --set retrieval.k=4 --only first"
    made = cli.json(f"{command} -p adaptive-gap -p query-must")
    assert [(name, row["kept"]) for name, row in rows(made).items()] == [
        ("unfiltered, k 4", 4),
        ("adaptive-gap", 5),
        ("query-must", 4),
    ]
    assert made["against"] == "unfiltered, k 4"
    assert [row["id"] for row in made["per_query"]] == ["first"] * 3
    assert made["per_query"][2]["ids"] == ["0", "1", "2", "3"]
    f1 = {row["variant"]: row["f1"] for row in made["per_query"]}
    for name, row in rows(made).items():
        gain = f1[name] - f1["unfiltered, k 4"]
        assert row["gain"] == pytest.approx(gain)
        assert (row["wins"], row["losses"]) == (int(gain > 0), int(gain < 0))
    made = cli.json(f"{command} -p query-must --against adaptive-gap")
    # --set applies to what is measured, not to what it is compared with.
    assert [*rows(made)][1:] == ["unfiltered, k 5", "A: adaptive-gap", "query-must"]
    assert made["against"] == "A: adaptive-gap"
    gain = f1["query-must"] - f1["adaptive-gap"]
    assert rows(made)["query-must"]["gain"] == pytest.approx(gain)


def test_values_of_a_setting_are_compared(bench: Any, cli: Cli) -> None:
    bench()
    vary = "--vary cutoff.max_results=1,3 --vary retrieval.source_pattern=,1.md --vary words.enabled=off"
    document = cli.json(f"eval -p adaptive-gap {vary}")
    kept = {row["variant"]: row["ids"] for row in document["per_query"] if row["id"] == "first"}
    assert kept == {
        "unfiltered, k 5": ["0", "1", "2", "3", "4"],
        "adaptive-gap cutoff.max_results=1 retrieval.source_pattern= words.enabled=off": ["0"],
        "adaptive-gap cutoff.max_results=1 retrieval.source_pattern=1.md words.enabled=off": ["1"],
        "adaptive-gap cutoff.max_results=3 retrieval.source_pattern= words.enabled=off": ["0", "1", "2"],
        "adaptive-gap cutoff.max_results=3 retrieval.source_pattern=1.md words.enabled=off": ["1", "3", "5"],
    }


def test_labels_that_name_unknown_chunks_are_told(bench: Any, cli: Cli) -> None:
    for labels, code, unknown, words in [
        ("first 0; first 1", 0, [], ""),
        ("first 0; first x", 0, ["x"], "lacks them: 1 of 2 labelled ids, such as 'x'"),
        ("first x", 2, [], "None of the labelled ids, such as 'x', is in the collection"),
        ("second 10 0; second x", 2, [], "None of the chunks labelled as relevant is in"),
    ]:
        bench()
        lines = (line.split() for line in labels.split("; "))
        write(Path(cli.where[5]), *("\t".join([*line, "1"][:3]) for line in lines))
        out = cli("eval -p adaptive-gap --json", code=code)
        assert words in cli.err
        assert ("Only 1 question has a chunk labelled relevant" in cli.err) == (code == 0)
        assert (json.loads(out)["unknown_labels"] if out else []) == unknown
        if not words:
            assert "left out" not in cli.err


def ctrl_c() -> None:
    raise KeyboardInterrupt


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
    """A collection that is lost during the second query."""

    searches = 0

    def nearest(self, *args: Any, **kwargs: Any) -> list[tuple[str, float]]:
        self.searches += 1
        if self.searches == 6:
            store_lost()
        return super().nearest(*args, **kwargs)


def test_stopped_it_prints_what_is_finished(bench: Any, cli: Cli) -> None:
    for end in [ctrl_c, None]:
        bench(Stopping(end or list), Line() if end else Losing())
        out = cli("eval --prompts default,strict --json", code=130 if end else 2)
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, end
        assert cli.err.endswith("Stopped.\n" if end else "ragfilter: The store is gone. Start it.\n")
        made = json.loads(out)
        assert (made["complete"], len(made["per_query"])) == (False, 4), end


def test_bad_input_is_one_line(bench: Any, cli: Cli) -> None:
    for words, said in [
        ("--prompts all", "The judge is on and needs an LLM, and none is configured."),
        ("--prompts default,srict", "judge.prompt = 'srict' (from --prompts) is not allowed."),
        ("--against best", "There is no profile 'best'."),
        ("--save x --against full", "--against has no effect beside --save."),
        ("--prompts all BARE", "The questions or the qrels are not in a file."),
        ("--against full NONE --queries /nowhere", "/nowhere cannot be read"),
        ("NONE", "Missing option '--queries'"),
    ]:
        bench()
        kept = 2 if "NONE" in words else 4 if "BARE" in words else 6
        command = f"eval {words.replace('BARE', '').replace('NONE', '')}"
        refusal = Cli(cli.capsys, cli.where[:kept])
        refusal(command, code=2)
        assert refusal.err.splitlines()[-1].startswith(f"ragfilter: {said}")
