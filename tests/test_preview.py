"""The forecast of a call of the judge, and that the call then matches it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from referring import CHUNKS

from ragfilter.engine.gather import Backends, gather
from ragfilter.engine.pipeline import PoolCompleter, search_and_filter
from ragfilter.engine.replay import replay
from ragfilter.judge.call import JudgementCache
from ragfilter.layers.references import DEPTHS, preview_expansion, walk
from ragfilter.model import Chunk, User
from ragfilter.protocols import Delta, Message, Prices, Vectors
from ragfilter.results.verdicts import forecast
from ragfilter.settings.config import load
from ragfilter.settings.schema import Settings
from ragfilter.testing import MemoryCollection


class World(MemoryCollection):
    """A fake collection, embedder and judge; counts the store's payload calls."""

    name = "world"

    def __init__(self, *chunks: Chunk, said: str = "") -> None:
        super().__init__(chunks)
        self.said = said
        self.fetched: list[str] = []
        self.messages: list[Sequence[Message]] = []

    def distances(self, vector: Vectors) -> dict[str, float]:
        return {i: 0.01 * number for number, i in enumerate(self.all)}

    def chunks(self, ids: Sequence[str]) -> dict[str, Chunk]:
        self.fetched += ids
        return super().chunks(ids)

    def embed(self, texts: Sequence[str]) -> Vectors:
        return np.ones((len(texts), 2), dtype=np.float32)

    def stream(self, messages: Sequence[Message], **_: object) -> Iterator[Delta]:
        self.messages.append(messages)
        yield Delta(self.said)

    def backends(self, judgements: JudgementCache | None = None) -> Backends:
        return Backends(self, self, None, self, judgements)


LLM = load(profile="llm-filter", environ={}).settings


def ids(preview: Mapping[int, Any]) -> dict[int, list[str]]:
    return {depth: [reached.chunk.id for reached in there] for depth, there in preview.items()}


def test_what_each_depth_would_bring() -> None:
    world = World(*CHUNKS)
    preview = preview_expansion("root", world, LLM)
    assert ids(preview) == {
        1: ["a", "b"],
        3: ["a", "b", "c", "secret", "ruled", "d", "deep"],
        5: ["a", "b", "c", "secret", "ruled", "d", "deep", "e", "f"],
    }
    way = {r.chunk.id: (r.step, r.via) for r in preview[5]}
    assert (way["a"], way["secret"], way["f"]) == ((1, "root"), (2, "b"), (5, "e"))
    assert preview[1][0].chunk == CHUNKS[1]
    # Texts of chunks brought in are fetched once, and nothing else.
    assert sorted(world.fetched) == sorted(ids(preview)[5])


def test_a_user_is_shown_what_they_would_get() -> None:
    on = LLM.with_values({"clearance.enabled": True})
    preview = preview_expansion("root", World(*CHUNKS), on, User(1))
    assert ids(preview)[3] == ["a", "b", "c", "ruled", "d"]
    assert preview[1][1].chunk.refs == ("root",)
    cleared = preview_expansion("root", World(*CHUNKS), on, User(2))
    assert ids(cleared) == ids(preview_expansion("root", World(*CHUNKS), LLM))
    hidden = preview_expansion("secret", World(*CHUNKS), on, User(1))
    assert ids(hidden) == {1: [], 3: [], 5: []}
    assert preview_expansion("root", World(*CHUNKS), on) == preview


@pytest.mark.parametrize("depth", [1, 3, 5])
@pytest.mark.parametrize("level", [None, 0, 2])
@pytest.mark.parametrize("query", ["troll", "cleric"])
def test_the_expansion_brings_what_was_previewed(depth: int, level: int | None, query: str) -> None:
    settings = LLM.with_values(
        {
            "judge.max_chunks": 1,
            "judge.oversample": 1.0,
            "query_must.enabled": True,
            "clearance.enabled": level is not None,
        }
    )
    world = World(*CHUNKS, said=f"root -> EXPAND_{depth}")
    user = User(level or 0)
    previewed = ids(preview_expansion("root", world, settings, user, query=query))[depth]
    result = search_and_filter(query, settings, world.backends(), user)
    assert [hit.id for hit in result.kept] == ["root", *previewed]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30), st.integers(0, 12))
def test_a_smaller_depth_is_the_beginning_of_a_larger(edges: list[tuple[int, int]], most: int) -> None:
    """The preview of EXPAND_1 and EXPAND_3 is a prefix of one walk of EXPAND_5."""
    chunks = {str(n): Chunk(str(n), refs=tuple(dict.fromkeys(str(b) for a, b in edges if a == n))) for n in range(10)}
    walks = {d: list(walk(chunks["0"], depth=d, most=most, find=chunks.get)) for d in DEPTHS}
    for depth in DEPTHS:
        assert walks[depth] == [r for r in walks[5] if r.step <= depth]
        ids = [r.chunk.id for r in walks[depth]]
        assert len(ids) == len(set(ids)) <= most
        assert "0" not in ids


# -- the forecast ----------------------------------------------------------------------------------


def waiting(world: World, settings: Settings = LLM) -> Any:
    return replay(gather("why?", settings, world.backends()), settings)


def test_the_forecast_is_of_the_very_prompt_that_is_sent() -> None:
    world = World(*CHUNKS, said="root -> KEEP")
    result = waiting(world)
    made = forecast(result, prices=Prices(prompt=2.0, completion=10.0, currency="EUR"))
    assert made is not None
    assert made.currency == "EUR"
    assert (made.asked, made.left_out, made.at_most_ms) == (11, 0, 5000)
    pool = PoolCompleter(LLM, world.backends()).complete(result.pool, result.needs)
    (judgement,) = pool.judgements
    # The fake counts no tokens, so both are the same estimate of the same text.
    assert judgement.prompt_tokens == made.prompt_tokens
    assert judgement.prompt_version == made.prompt_version
    assert made.cost == pytest.approx((made.prompt_tokens * 2 + made.completion_tokens * 10) / 1e6)
    assert 11 * 8 < made.completion_tokens < 11 * 25
    assert forecast(replay(pool, LLM)) is None


def test_what_finds_no_room_is_told_before() -> None:
    world = World(*(Chunk(f"c{n}", "word " * 300) for n in range(30)))
    made = forecast(waiting(world))
    assert made is not None
    assert (made.asked, made.left_out, made.shortened) == (30, 0, 30)
    assert made.prompt_tokens <= 2000
    less = forecast(waiting(world, LLM.with_values({"judge.max_prompt_tokens": 500})))
    assert less is not None
    assert less.asked + less.left_out == 30
    assert less.left_out > 0
    assert (made.cost, made.usual_ms, made.remembered) == (None, None, False)


def test_what_is_remembered_costs_nothing_and_tells_the_usual_time() -> None:
    world, judgements = World(*CHUNKS, said="root -> KEEP"), JudgementCache()
    result = waiting(world)
    before = forecast(result, model="world", judgements=judgements)
    assert before is not None
    assert (before.remembered, before.usual_ms) == (False, None)
    PoolCompleter(LLM, world.backends(judgements)).complete(result.pool, result.needs)
    after = forecast(result, model="world", judgements=judgements)
    assert after is not None
    assert after.remembered
    assert after.usual_ms is not None
    other = forecast(result, model="another", judgements=judgements)
    assert other is not None
    assert (other.remembered, other.usual_ms) == (False, None)
