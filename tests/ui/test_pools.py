"""When a pool falls short of the settings, and how sessions that share it may affect each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from ragfilter.basics.threads import SharedCache
from ragfilter.engine.gather import Backends
from ragfilter.engine.pipeline import PoolCompleter
from ragfilter.engine.replay import replay
from ragfilter.errors import ChatError, ModelError
from ragfilter.judge.call import JudgementCache
from ragfilter.model import UNRESTRICTED, Chunk, Hit, Pool, PoolResult
from ragfilter.protocols import Delta, Message, Reranker
from ragfilter.settings.schema import Quality, Settings
from ragfilter.ui.session.asking import complete_pool, falls_short, keep_pool, reach_of
from ragfilter.ui.session.state import AskedQuestion

FILES = "retrieval.source_pattern"


@pytest.mark.parametrize(
    ("before", "now", "complete", "short"),
    [
        ({}, {}, False, False),
        ({}, {"retrieval.pool_size": 300}, False, True),
        ({}, {"retrieval.pool_size": 300}, True, False),
        ({}, {"retrieval.pool_size": 100}, False, False),
        ({}, {FILES: "none.md"}, False, True),  # no hit of these files is there
        ({}, {FILES: "none.md"}, True, False),  # and none can be
        ({}, {FILES: "a.md"}, False, False),  # all that is wanted is there
        ({FILES: "a.md"}, {FILES: "b.md"}, True, True),
        ({FILES: "a.md"}, {}, False, True),
        ({FILES: "a.md"}, {FILES: "a.md"}, False, False),
    ],
)
def test_a_wider_pool_or_other_files(before: dict[str, Any], now: dict[str, Any], complete: bool, short: bool) -> None:
    asked_with = Settings().with_values({"retrieval.k": 2, "cutoff.max_results": 2} | before)
    hits = tuple(Hit(Chunk(f"c{rank}", source="a.md"), 0.01 * rank, rank) for rank in range(1, 61))
    pattern = asked_with.retrieval.source_pattern
    pool = Pool("q", "demo", "l2", hits, source_pattern=pattern, exhaustive=complete)
    settings = asked_with.with_values({FILES: ""} | now)
    put = AskedQuestion("q", "demo", "1", reach_of(asked_with, UNRESTRICTED))
    assert falls_short(put, replay(pool, settings), settings) is short


# -- sessions that share a pool --------------------------------------------------------------------

HITS = tuple(Hit(Chunk(i, f"about {i}", refs=("x",)), 0.1 * n, n) for n, i in enumerate("abc", 1))
POOL = Pool("why?", "demo", "l2", HITS)
ON = Settings().with_values({"judge.enabled": True, "cutoff.enabled": False})
NARROW = ON.with_values({"judge.max_chunks": 1, "judge.oversample": 1.0})
ASKED = AskedQuestion("why?", "demo", "1", reach_of(ON, UNRESTRICTED))


class Workbench:
    """A fake collection and judge, and what all sessions share."""

    name = "judge"

    def __init__(self) -> None:
        self.said: str | ChatError = "a -> KEEP"
        self.calls = 0
        self.broken = False
        self.pools: SharedCache[Pool] = SharedCache(4)
        self.judgements = JudgementCache()

    def backends(self, _: str) -> Backends:
        return Backends(self, self, self.reranker, self, self.judgements)  # type: ignore[arg-type]

    def stream(self, messages: Sequence[Message], **_: object) -> Iterator[Delta]:
        self.calls += 1
        if isinstance(self.said, ChatError):
            raise self.said
        yield Delta(self.said)

    def reranker(self, _: Quality) -> Reranker:
        return self

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        self.calls += 1
        if self.broken:
            raise ModelError("It is out.", remedy="Wait.")
        return [0.9] * len(texts)

    def catalogue(self) -> Mapping[str, Chunk]:
        return {"x": Chunk("x", loaded=False)}

    def chunks(self, ids: Sequence[str]) -> dict[str, Chunk]:
        return {i: Chunk(i, "whole") for i in ids}

    def embed(self, texts: Sequence[str]) -> Any:
        return [SimpleNamespace()]

    def nearest(self, _: object, n: int, *, ids: Sequence[str]) -> list[tuple[str, float]]:
        return [(i, 1.0) for i in ids]

    def press(self, pool: Pool, settings: Settings) -> Pool:
        """Press the button in a session that has drawn `pool`."""
        needs = replay(pool, settings).needs
        return keep_pool(ASKED, PoolCompleter(settings, self.backends(""), UNRESTRICTED).complete(pool, needs), self)  # type: ignore[arg-type]

    def now(self, settings: Settings) -> PoolResult:
        """What a session sees after a redraw."""
        pool = self.pools.get(ASKED)
        assert pool is not None
        return replay(pool, settings)


def kept(result: PoolResult) -> list[str]:
    assert result.needs == ()
    return [hit.id for hit in result.kept]


def test_a_verdict_that_was_paid_stays_whatever_another_session_asks() -> None:
    bench = Workbench()
    bench.said = "b -> EXPAND_1"
    bench.press(POOL, ON)
    # The other session had drawn its page before.
    bench.said = "a -> KEEP"
    bench.press(POOL, NARROW)
    assert kept(bench.now(NARROW)) == ["a"]
    assert kept(bench.now(ON)) == ["b", "x"]


def test_the_failure_of_one_session_hides_no_verdict() -> None:
    bench = Workbench()
    down = ChatError("It is down.", kind="unreachable")
    bench.said = down
    assert "It is down." in replay(bench.press(POOL, ON), ON).trace("judge").note
    bench.said = "b -> KEEP"
    bench.judgements = JudgementCache()
    bench.press(POOL, ON)
    assert kept(bench.now(ON)) == ["b"]
    bench.said = down
    bench.judgements = JudgementCache()
    bench.press(POOL, ON)
    bench.press(POOL, NARROW)
    assert kept(bench.now(ON)) == ["b"]
    assert "It is down." in bench.now(NARROW).trace("judge").note


def test_a_question_put_again_takes_what_the_llm_said_before_and_asks_nobody() -> None:
    bench = Workbench()
    bench.said = "b -> EXPAND_1"
    bench.press(POOL, ON)
    settled = complete_pool(
        AskedQuestion("why?", "demo", "2", reach_of(ON, UNRESTRICTED)), POOL, ON, UNRESTRICTED, bench
    )  # type: ignore[arg-type]
    assert kept(replay(settled, ON)) == ["b", "x"]
    assert [judgement.cached for judgement in settled.judgements] == [True]
    assert replay(complete_pool(ASKED, POOL, NARROW, UNRESTRICTED, bench), NARROW).needs  # type: ignore[arg-type]
    assert bench.calls == 1


# -- a reranking that failed -----------------------------------------------------------------------

SCORED = Settings().with_values({"quality.enabled": True, "quality.mode": "always"})


def test_a_question_put_anew_is_scored_again_though_it_failed_before() -> None:
    bench = Workbench()
    bench.broken = True
    failed = complete_pool(ASKED, POOL, SCORED, UNRESTRICTED, bench)  # type: ignore[arg-type]
    assert "It is out." in replay(failed, SCORED).trace("quality").note
    bench.broken = False
    complete_pool(ASKED, failed, SCORED, UNRESTRICTED, bench)  # type: ignore[arg-type]
    assert bench.calls == 2
    assert "reranked" in bench.now(SCORED).trace("quality").note
    # A session that had drawn the failure and asks something else now does not bring it back.
    bench.press(failed, ON)
    assert "reranked" in bench.now(SCORED).trace("quality").note
    assert bench.now(SCORED).pool.failures == ()
