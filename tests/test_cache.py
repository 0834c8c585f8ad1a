"""The LLM cache outlives the process, is limited in size, matches exactly what was asked, and never
gets in the way."""

from __future__ import annotations

import json
import logging
import pickle
import re
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from faults import Handler, Serve, says, well
from waiting import PATIENT_MS, PROCESS_S

from ragfilter.answer.context import Context, pack
from ragfilter.answer.stream import UNFINISHED, Answer, Answers, Prices
from ragfilter.cli import main
from ragfilter.judge.call import JudgementCache
from ragfilter.library.workspace import open_workspace
from ragfilter.model import Chunk, Hit, Judgement, Verdict
from ragfilter.protocols import Usage
from ragfilter.settings.schema import Settings
from ragfilter.stores.cache import FOLDER, DiskCache

SAID = Judgement(
    ("a", "b"), (Verdict("a", "KEEP"), Verdict("b", "EXPAND", 3)), remarks=("odd",), model="m",
    prompt_version="default@1", prompt_key="k", prompt_tokens=9, ms=120.0, reply="a -> KEEP",
)  # fmt: skip


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Callable[..., DiskCache]]:
    """Reopens the same folder, as another process would."""
    opened: list[DiskCache] = []

    def open_it(limit_mb: float = 1.0) -> DiskCache:
        opened.append(DiskCache(tmp_path / FOLDER, limit_mb))
        return opened[-1]

    yield open_it
    for cache in opened:
        cache.close()


def database(kept: Callable[..., DiskCache]) -> sqlite3.Connection:
    """The database of the cache, as someone else would open it."""
    return sqlite3.connect(kept()._path / "cache.db", isolation_level=None)


def test_a_text_outlives_the_process(kept: Callable[..., DiskCache]) -> None:
    assert kept().size() == (0, 0)
    assert kept().get("a") is None
    kept().put("a", "über alles")
    kept().put("long", "\r\nüber alles" * 10_000)
    assert kept().get("a") == "über alles"
    assert kept().get("long") == "\r\nüber alles" * 10_000
    entries, size = kept().size()
    assert (entries, 130_000 < size < 200_000) == (2, True)
    kept().clear()
    assert kept().size()[0] == 0
    assert kept().get("a") is None


def test_the_texts_unused_for_longest_go_first(kept: Callable[..., DiskCache]) -> None:
    cache = kept(0.5)
    for n in range(60):
        cache.put(str(n), "x" * 8_000)
        assert cache.get("0")
    stays = [n for n in range(60) if cache.get(str(n))]
    entries, size = cache.size()
    assert size <= 500_000
    assert entries == len(stays) > 30
    assert stays[0] == 0
    assert stays[1:] == list(range(61 - entries, 60))
    cache.put("much", "x" * 500_000)
    assert cache.get("much") is None
    assert cache.size()[0] == entries
    # A lower limit holds from the next text on.
    smaller = kept(0.2)
    smaller.put("new", "x")
    assert smaller.size()[1] <= 200_000
    assert smaller.get("new") == "x"


def test_threads_and_processes_share_it(kept: Callable[..., DiskCache]) -> None:
    put = (
        "import sys; from pathlib import Path; from ragfilter.stores.cache import DiskCache\n"
        "cache = DiskCache(Path(sys.argv[1]), 1.0)\n"
        "for n in range(100): cache.put(f'theirs {n}', str(n))"
    )
    cache = kept()
    other = subprocess.Popen([sys.executable, "-c", put, str(cache._path)])

    def work(thread: int) -> bool:
        for n in range(100):
            cache.put(f"{thread} {n}", str(n))
        return all(cache.get(f"{thread} {n}") == str(n) for n in range(100))

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, range(4)))
    assert other.wait(PROCESS_S) == 0
    assert cache.size()[0] == 500


def test_no_text_is_kept_outside_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ELSEWHERE", "elsewhere")
    cache = DiskCache(tmp_path / "$ELSEWHERE" / FOLDER, 1.0)
    cache.put("a", "text")
    assert cache.get("a") is None
    assert "answers are not cached" in caplog.text
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    "state",
    ["damaged", "cut off", "file", "full", pytest.param("locked", marks=pytest.mark.slow)],
)
def test_a_folder_that_cannot_be_used_is_told_once_and_is_in_nobodys_way(
    kept: Callable[..., DiskCache], tmp_path: Path, state: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / FOLDER
    cache = kept()
    if state == "file":
        path.touch()
    else:
        cache.put("before", "text")
    before, other = resource.getrlimit(resource.RLIMIT_FSIZE), None
    try:
        if state in ("damaged", "cut off"):
            cache.close()
            whole = (path / "cache.db").read_bytes()
            broken = b"no database" * 1000 if state == "damaged" else whole[:8192]
            (path / "cache.db").write_bytes(broken)
        elif state == "locked":
            other = database(kept)
            other.execute("BEGIN IMMEDIATE")
        elif state == "full":
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
        with caplog.at_level(logging.WARNING):
            for _ in range(2):
                cache.put("new", "x" * 50_000)
                assert cache.get("new") is None
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        if other is not None:
            other.close()
    assert len([r for r in caplog.records if "answers are not cached" in r.message]) == 1
    if state in ("locked", "full"):
        # The old content is still there, and once there is room, more is added.
        assert cache.get("before") == "text"
    elif state != "file":
        cache.clear()
    if state != "file":
        cache.put("new", "x")
        assert cache.get("new") == "x"


class Harmful:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_nothing_that_someone_else_wrote_is_executed(
    kept: Callable[..., DiskCache], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made = tmp_path / "made"
    harmful = pickle.dumps(Harmful(made))
    pickle.loads(harmful)
    made.unlink()
    (tmp_path / "secret").write_text("hidden")
    rows: dict[str, tuple[int, str | None, object]] = {
        "pickled": (4, None, harmful),
        "pickled in a file": (4, "harmful.val", None),
        "file outside": (3, "../secret", None),
        "list": (4, None, pickle.dumps(["hidden"])),
        "bytes": (1, None, b"hidden"),
        "null": (1, None, None),
    }
    for key in rows:
        kept().put(key, "text")
    with closing(database(kept)) as other:
        (tmp_path / FOLDER / "harmful.val").write_bytes(harmful)
        for key, row in rows.items():
            other.execute(
                "UPDATE Cache SET mode = ?, filename = ?, value = ? WHERE key = ?", (*row, key)
            )
    cache = kept()
    for key in rows:
        assert cache.get(key) is None
        cache.put(key, "text")
        assert cache.get(key) == "text"
    assert not made.exists()
    assert (tmp_path / "secret").read_text() == "hidden"
    assert len([r for r in caplog.records if r.levelno >= logging.WARNING]) == 1


def test_a_text_that_cannot_be_written_is_in_nobodys_way(kept: Callable[..., DiskCache]) -> None:
    cache = kept()
    cache.put("a", "\ud800")
    cache.put("\ud800", "a")
    assert (cache.get("a"), cache.get("\ud800")) == (None, None)
    cache.put("a", "b")
    assert cache.get("a") == "b"


# -- the judge -------------------------------------------------------------------------------------


def test_a_judgement_outlives_the_process_without_its_raw_words(
    kept: Callable[..., DiskCache],
) -> None:
    JudgementCache(texts=kept(), endpoint="http://one").put(SAID)
    again = JudgementCache(texts=kept(), endpoint="http://one")
    assert ("m", "k") in again
    found = again.get("m", "k")
    assert found == SAID
    assert found is not None
    assert (found.cached, found.reply, found.ms) == (True, "", 120.0)
    for endpoint, model, key in (
        ("http://two", "m", "k"), ("http://one", "n", "k"), ("http://one", "m", "l"),
    ):  # fmt: skip
        assert JudgementCache(texts=kept(), endpoint=endpoint).get(model, key) is None


@pytest.mark.parametrize(
    "changed", [{"error": "It hangs."}, {"verdicts": ()}, {"asked": ("\ud800",)}]
)
def test_what_failed_or_cannot_be_written_is_not_kept(
    kept: Callable[..., DiskCache], changed: dict[str, Any]
) -> None:
    JudgementCache(texts=kept()).put(replace(SAID, **changed))
    assert kept().size()[0] == 0


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "{}",
        json.dumps({"asked": ["a"], "verdicts": [], "model": "m", "prompt_key": "k"}),
        json.dumps({"asked": ["a"], "model": "m", "prompt_key": "k",
                    "verdicts": [{"chunk_id": "hidden", "action": "KEEP"}]}),
        json.dumps({"asked": ["a"], "model": "m", "prompt_key": "other",
                    "verdicts": [{"chunk_id": "a", "action": "KEEP"}]}),
        json.dumps({"asked": ["a"], "model": "m", "prompt_key": "k",
                    "verdicts": [{"chunk_id": "a", "action": "SHOW"}]}),
    ],
)  # fmt: skip
def test_a_judgement_that_someone_else_wrote_decides_nothing(
    kept: Callable[..., DiskCache], text: str
) -> None:
    cache = kept()
    JudgementCache(texts=cache).put(SAID)
    with closing(database(kept)) as other:
        other.execute("UPDATE Cache SET value = ?", (text,))
    assert JudgementCache(texts=cache).get("m", "k") is None


# -- answers ---------------------------------------------------------------------------------------


def packed(*texts: str) -> Context:
    hits = [Hit(Chunk(f"c{n}", text), 0.5, n) for n, text in enumerate(texts, start=1)]
    return pack(hits, Settings())


def answered(kept: Callable[..., DiskCache], **changed: Any) -> Answer:
    from ragfilter.answer import stream as prompts

    asked = prompts.messages("why?", packed("one", "two"))
    made = Answer(
        "Because [2][9].", (2,), (9,), "m", prompt=asked, prompt_version=prompts.VERSION,
        usage=Usage(1000, 10), cost=0.1, ms=50.0,
    )  # fmt: skip
    made = replace(made, **changed)
    Answers(kept(), "http://one").put(made)
    return made


def test_an_answer_outlives_the_process(kept: Callable[..., DiskCache]) -> None:
    made = answered(kept)
    again = Answers(kept(), "http://one")
    found = again.get("why?", packed("one", "two"), "m", Prices(1.0, 2.0, "EUR"))
    # Today's prices: (1000 × 1 + 10 × 2) / 10⁶.
    assert found == replace(made, cost=0.00102, currency="EUR")
    assert found is not None
    assert (found.cached, found.ms) == (True, 50.0)
    assert again.get("how?", packed("one", "two"), "m") is None
    assert again.get("why?", packed("one", "two, hidden"), "m") is None
    assert again.get("why?", packed("one"), "m") is None
    assert again.get("why?", packed("one", "two"), "another") is None
    assert Answers(kept(), "http://two").get("why?", packed("one", "two"), "m") is None
    assert Answers().get("why?", packed("one", "two"), "m") is None


@pytest.mark.parametrize(
    "changed", [{"error": UNFINISHED}, {"text": " "}, {"prompt": ()}, {"text": "\ud800"}]
)
def test_only_whole_answers_of_a_model_are_kept(
    kept: Callable[..., DiskCache], changed: dict[str, Any]
) -> None:
    answered(kept, **changed)
    assert kept().size()[0] == 0


# -- the command line ------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_same_command_asks_once(
    copy_demo: Callable[[], Path],
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder, server = copy_demo(), serve(well)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hidden")
    where = ["--data-dir", str(folder)]

    def printed(*args: str) -> Any:
        capsys.readouterr()
        assert main([*args, *where, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    ask = ["query", "What is a beholder?", "--answer"]
    first, again = printed(*ask)["answer"], printed(*ask)["answer"]
    assert len(server.asked) == 1
    assert (first.pop("cached"), again.pop("cached")) == (False, True)
    assert first == again
    size = printed("cache")
    assert (size["entries"], size["limit_mb"]) == (1, 100.0)
    assert size["bytes"] > 0
    written = b"".join(file.read_bytes() for file in (folder / FOLDER).iterdir())
    assert b"answer-1:" in written
    assert b"sk-hidden" not in written
    assert b"beholder" not in written
    # Off: nothing is read, nothing written.
    monkeypatch.setenv("RAGFILTER_CACHE_MB", "0")
    assert printed(*ask)["answer"]["cached"] is False
    assert len(server.asked) == 2
    monkeypatch.delenv("RAGFILTER_CACHE_MB")
    # While another process owns the workspace.
    with open_workspace(folder):
        assert printed("cache", "--clear")["entries"] == 0
    assert printed(*ask)["answer"]["cached"] is False
    assert len(server.asked) == 3
    assert main(["cache", *where]) == 0
    assert "1 answer, 0.0 MB of at most 100 MB" in capsys.readouterr().out


@pytest.mark.slow
def test_an_edited_judge_prompt_gets_no_old_verdicts(
    copy_demo: Callable[[], Path],
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def keep(handler: Handler, body: dict[str, Any]) -> None:
        ids = re.findall(r"^id: (.*)$", body["messages"][-1]["content"], re.MULTILINE)
        says("\n".join(f"{i} -> KEEP" for i in ids))(handler, body)

    folder, server = copy_demo(), serve(keep)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    (folder / "prompts").mkdir()
    ask = ["query", "What is a beholder?", "-p", "llm-filter", "--set", "judge.prompt=mine"]
    ask += ["--set", f"judge.timeout_ms={PATIENT_MS}", "--data-dir", str(folder), "--json"]
    for words, asked in (("First", 1), ("First", 1), ("Then", 2), ("First", 2)):
        (folder / "prompts" / "mine.toml").write_text(
            "version = '1'\nabout = 'mine.'\n"
            f"instructions = '{words}: KEEP, EXPAND_1, EXPAND_3, EXPAND_5 or DISCARD.'\n"
        )
        capsys.readouterr()
        assert main(ask) == 0
        assert json.loads(capsys.readouterr().out)["judge"]["prompt_version"].startswith("mine@1-")
        assert len(server.asked) == asked
        assert server.asked[-1]["body"]["messages"][0]["content"].startswith(
            "Then: KEEP" if asked == 2 else "First: KEEP"
        )


def test_a_damaged_folder_is_told_with_the_remedy_and_cleared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--data-dir", str(tmp_path)]
    assert main(["cache", *where]) == 0
    assert "0 answers" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "cache.db").write_bytes(b"no database" * 1000)
    assert main(["cache", *where]) == 2
    assert "ragfilter cache --clear" in capsys.readouterr().err
    assert main(["cache", "--clear", *where]) == 0
    assert "cleared: 0 answers" in capsys.readouterr().out
