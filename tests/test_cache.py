"""The LLM cache outlives the process, is limited in size, matches requests exactly, and its failures cause none."""

from __future__ import annotations

import json
import logging
import resource
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from faults import Serve, well

from ragfilter.answer.answer import UNFINISHED, Answer, AnswerCache
from ragfilter.answer.context_packing import Context, pack
from ragfilter.cli.program import main
from ragfilter.judge.call import JudgementCache
from ragfilter.model import Chunk, Hit, Judgement, Verdict
from ragfilter.protocols import Prices, Usage
from ragfilter.settings.schema import Settings
from ragfilter.stores.caches import TEXTS, ReplyCache

SAID = Judgement(
    ("a", "b"),
    (Verdict("a", "KEEP"), Verdict("b", "EXPAND", 3)),
    remarks=("odd",),
    model="m",
    prompt_version="default@1",
    prompt_key="k",
    prompt_tokens=9,
    ms=120.0,
    reply="a -> KEEP",
)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Callable[..., ReplyCache]]:
    """Reopens the same cache, as another process would."""
    opened: list[ReplyCache] = []

    def open_it(limit_mb: float = 1.0) -> ReplyCache:
        opened.append(ReplyCache(tmp_path, "", limit_mb))
        return opened[-1]

    yield open_it
    for cache in opened:
        cache.close()


def stored(folder: Path) -> int:
    """How many texts are in the file."""
    if not (folder / TEXTS).exists():
        return 0
    with closing(sqlite3.connect(folder / TEXTS)) as database:
        found: int = database.execute("SELECT count(*) FROM cached_texts").fetchone()[0]
        return found


def test_a_text_outlives_the_process(kept: Callable[..., ReplyCache]) -> None:
    assert kept().get("a") is None
    kept().put("a", "über alles")
    kept().put("long", "\r\nüber alles" * 10_000)
    assert kept().get("a") == "über alles"
    assert kept().get("long") == "\r\nüber alles" * 10_000


@pytest.mark.parametrize("state", ["damaged", "cut off", "folder", "full", "locked"])
def test_a_file_that_cannot_be_used_is_told_once_and_is_in_nobodys_way(
    kept: Callable[..., ReplyCache], tmp_path: Path, state: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / TEXTS
    cache = kept()
    if state == "folder":
        path.mkdir()
    else:
        cache.put("before", "text")
    before, other = resource.getrlimit(resource.RLIMIT_FSIZE), None
    try:
        if state in ("damaged", "cut off"):
            cache.close()
            whole = path.read_bytes()
            path.write_bytes(b"no database" * 1000 if state == "damaged" else whole[:8192])
        elif state == "locked":
            other = sqlite3.connect(path, isolation_level=None)
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
    assert len([r for r in caplog.records if "The cache of answers failed" in r.message]) == 1
    if state in ("locked", "full"):
        # The old content is still there, and once there is room, more is added.
        assert cache.get("before") == "text"
    elif state != "folder":
        cache.close()
        (tmp_path / TEXTS).unlink()
    if state != "folder":
        cache.put("new", "x")
        assert cache.get("new") == "x"


# -- the judge -------------------------------------------------------------------------------------


def test_a_judgement_outlives_the_process_without_its_raw_words(kept: Callable[..., ReplyCache]) -> None:
    JudgementCache(replies=kept(), endpoint="http://one").put(SAID)
    again = JudgementCache(replies=kept(), endpoint="http://one")
    assert ("m", "k") in again
    found = again.get("m", "k")
    assert found == SAID
    assert found is not None
    assert (found.cached, found.reply, found.ms) == (True, "", 120.0)
    for endpoint, model, key in (("http://two", "m", "k"), ("http://one", "n", "k"), ("http://one", "m", "l")):
        assert JudgementCache(replies=kept(), endpoint=endpoint).get(model, key) is None


@pytest.mark.parametrize("changed", [{"error": "It hangs."}, {"verdicts": ()}, {"asked": ("\ud800",)}])
def test_what_failed_or_cannot_be_written_is_not_kept(
    kept: Callable[..., ReplyCache], tmp_path: Path, changed: dict[str, Any]
) -> None:
    JudgementCache(replies=kept()).put(replace(SAID, **changed))
    assert stored(tmp_path) == 0


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "{}",
        json.dumps({"asked": ["a"], "verdicts": [], "model": "m", "prompt_key": "k"}),
        json.dumps(
            {"asked": ["a"], "model": "m", "prompt_key": "k", "verdicts": [{"chunk_id": "hidden", "action": "KEEP"}]}
        ),
        json.dumps(
            {"asked": ["a"], "model": "m", "prompt_key": "other", "verdicts": [{"chunk_id": "a", "action": "KEEP"}]}
        ),
        json.dumps(
            {"asked": ["a"], "model": "m", "prompt_key": "k", "verdicts": [{"chunk_id": "a", "action": "SHOW"}]}
        ),
    ],
)
def test_a_judgement_that_someone_else_wrote_decides_nothing(
    kept: Callable[..., ReplyCache], tmp_path: Path, text: str
) -> None:
    cache = kept()
    JudgementCache(replies=cache).put(SAID)
    with closing(sqlite3.connect(tmp_path / TEXTS)) as other, other:
        other.execute("UPDATE cached_texts SET text = ?", (text,))
    assert JudgementCache(replies=cache).get("m", "k") is None


# -- answers ---------------------------------------------------------------------------------------


def packed(*texts: str) -> Context:
    hits = [Hit(Chunk(f"c{n}", text), 0.5, n) for n, text in enumerate(texts, start=1)]
    return pack(hits, Settings())


def answered(kept: Callable[..., ReplyCache], **changed: Any) -> Answer:
    from ragfilter.answer import answer as prompts

    asked = prompts.messages("why?", packed("one", "two"))
    made = Answer(
        "Because [2][9].",
        (2,),
        (9,),
        "m",
        prompt=asked,
        prompt_version=prompts.VERSION,
        usage=Usage(1000, 10),
        cost=0.1,
        ms=50.0,
    )
    made = replace(made, **changed)
    AnswerCache(kept(), "http://one").put(made)
    return made


def test_an_answer_outlives_the_process(kept: Callable[..., ReplyCache]) -> None:
    made = answered(kept)
    again = AnswerCache(kept(), "http://one")
    found = again.get("why?", packed("one", "two"), "m", Prices(1.0, 2.0, "EUR"))
    # Today's prices: (1000 × 1 + 10 × 2) / 10⁶.
    assert found == replace(made, cost=0.00102, currency="EUR")
    assert found is not None
    assert (found.cached, found.ms) == (True, 50.0)
    assert again.get("how?", packed("one", "two"), "m") is None
    assert again.get("why?", packed("one", "two, hidden"), "m") is None
    assert again.get("why?", packed("one"), "m") is None
    assert again.get("why?", packed("one", "two"), "another") is None
    assert AnswerCache(kept(), "http://two").get("why?", packed("one", "two"), "m") is None
    assert AnswerCache().get("why?", packed("one", "two"), "m") is None


@pytest.mark.parametrize("changed", [{"error": UNFINISHED}, {"text": " "}, {"prompt": ()}, {"text": "\ud800"}])
def test_only_whole_answers_of_a_model_are_kept(
    kept: Callable[..., ReplyCache], tmp_path: Path, changed: dict[str, Any]
) -> None:
    answered(kept, **changed)
    assert stored(tmp_path) == 0


# -- the command line ------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_same_command_asks_once(
    copy_demo: Callable[[], Path], serve: Serve, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
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
    written = b"".join(file.read_bytes() for file in folder.glob(f"{TEXTS}*"))
    assert b"answer-1:" in written
    assert b"sk-hidden" not in written
    assert b"beholder" not in written
    # Off: nothing is read, nothing written.
    monkeypatch.setenv("RAGFILTER_CACHE_MB", "0")
    assert printed(*ask)["answer"]["cached"] is False
    assert len(server.asked) == 2
    monkeypatch.delenv("RAGFILTER_CACHE_MB")
