"""The search by words in addition to vectors: what it finds, for whom, and its scores."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from stores import OneVector

from ragfilter.engine.gather import Backends, gather
from ragfilter.engine.pipeline import search_and_filter
from ragfilter.engine.replay import replay
from ragfilter.model import UNRESTRICTED, Chunk, Pool, User
from ragfilter.protocols import Vectors
from ragfilter.results.document import document
from ragfilter.settings.schema import Settings
from ragfilter.testing import MemoryCollection

N = 150
RARE = "A quokka smiles."
"""The text of only the last chunk, which is also the farthest from every question."""
EMBEDDER = OneVector({}, np.ones(1, dtype=np.float32))
QUERY = "Which quokka smiles at a wombat?"
WORDS = {"retrieval.lexical": True, "cutoff.enabled": False}


class Line(MemoryCollection):
    """Chunks of which each is farther than the one before."""

    def distances(self, vector: Vectors) -> dict[str, float]:
        return {i: 0.2 + int(i[1:]) / 1000 for i in self.all}


def chunks(hidden: int = 0, **own: str) -> list[Chunk]:
    """Visible chunks, and `hidden` ones whose words would make the rare one common."""
    texts = {f"c{i:03d}": f"A wombat sleeps, part {i}." for i in range(1, N)} | {f"c{N}": RARE}
    secret = [Chunk(f"s{i}", RARE * 3, clearance=4) for i in range(200, 200 + hidden)]
    return [*(Chunk(i, text, **own) for i, text in texts.items()), *secret]


def pool(collection: MemoryCollection, user: User | None = None, **values: Any) -> Pool:
    settings = Settings().with_values(WORDS | {"retrieval.pool_size": 100} | values)
    return gather(QUERY, settings, Backends(collection, EMBEDDER), user, wide=False)


def test_what_only_words_find_joins_the_pool_with_its_distance_and_ranks() -> None:
    found = {hit.id: hit for hit in pool(Line(chunks())).hits}
    rare = found[f"c{N}"]
    assert (rare.found_by, rare.distance) == ("lexical", pytest.approx(0.35))
    assert (rare.scores["lexical"].rank, rare.scores["lexical"].metric) == (1, "rank")
    assert rare.scores["fused"].value == pytest.approx(1 / 61)
    assert rare.chunk.text == RARE
    first = found["c001"].scores
    assert (first["lexical"].rank, first["fused"].rank) == (2, 1)
    assert first["fused"].value == pytest.approx(1 / 61 + 1 / 62)


def test_words_are_searched_where_they_are_wanted() -> None:
    for values, expected in [
        ({"retrieval.lexical": False}, False),
        ({"retrieval.source_pattern": "b.json"}, False),
        ({"retrieval.source_pattern": "a.json"}, True),
    ]:
        other = [Chunk("d1", "A wombat.", source="b.json")]
        gathered = pool(Line([*chunks(source="a.json"), *other]), **values)
        assert (f"c{N}" in {hit.id for hit in gathered.hits}) is expected


def test_the_cutoff_can_cut_by_the_fused_order() -> None:
    settings = Settings().with_values(
        WORDS | {"cutoff.enabled": True, "cutoff.score": "fused", "cutoff.max_results": 2}
    )
    result = search_and_filter(QUERY, settings, Backends(Line(chunks()), EMBEDDER))
    assert [hit.id for hit in result.kept] == ["c001", "c002"]
    settings = settings.with_values({"cutoff.score": "lexical"})
    result = search_and_filter(QUERY, settings, Backends(Line(chunks()), EMBEDDER))
    assert [hit.id for hit in result.kept] == [f"c{N}", "c001"]
    assert document(result)["hits"][0]["scores"]["lexical"]["rank"] == 2


def test_hidden_chunks_change_no_score() -> None:
    for user in [User(), User(1)]:
        alone = pool(Line(chunks()), user)
        beside = pool(Line(chunks(hidden=30)), user)
        assert [(h.id, h.scores) for h in beside.hits if user.sees(h.chunk)] == [(h.id, h.scores) for h in alone.hits]
        everything = {h.id: h.scores for h in pool(Line(chunks(hidden=30)), UNRESTRICTED).hits}
        assert everything["c001"] != alone.hits[0].scores, user


def test_scores_hold_for_the_user_they_were_made_for() -> None:
    for user, lexical, expected in [(User(4), True, True), (User(), True, False), (User(4), False, False)]:
        gathered = pool(Line(chunks(hidden=3)), User(4))
        settings = Settings().with_values(WORDS | {"retrieval.lexical": lexical})
        hits = {hit.id: hit for hit in replay(gathered, settings, user).hits}
        assert (f"c{N}" in hits, bool(hits["c001"].scores)) == (expected, expected)


def test_bm25s_logs_at_the_level_of_the_application() -> None:
    pool(Line(chunks()[:2]))
    assert not logging.getLogger("bm25s").isEnabledFor(logging.DEBUG)


def test_a_question_without_words_finds_nothing_by_them() -> None:
    settings = Settings().with_values(WORDS | {"cutoff.enabled": True, "cutoff.score": "lexical"})
    result = search_and_filter("Who is it?", settings, Backends(Line(chunks()), EMBEDDER))
    assert result.trace("cutoff").note.endswith("no hit has a score named lexical")
