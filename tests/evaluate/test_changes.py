"""The effect of a change of settings on each query, calculated by hand."""

from __future__ import annotations

from ragfilter.evaluate.sweep import changes
from ragfilter.model import Chunk, Hit, Pool
from ragfilter.settings.schema import Settings


def pool(*distances: float) -> Pool:
    hits = tuple(Hit(Chunk(f"c{i}"), d, i + 1) for i, d in enumerate(distances))
    return Pool("q", "c", "l2", hits)


FIXED = Settings().with_values({"cutoff.strategy": "fixed", "cutoff.max_results": 4})


def test_only_queries_that_change_are_listed_those_that_lose_first() -> None:
    pools = {"same": pool(0.1, 0.2), "wins": pool(0.1, 0.2, 0.3, 0.4), "loses": pool(0.1, 0.2, 0.3)}
    qrels = {"same": {"c0": 1}, "wins": {"c0": 1, "c1": 1}, "loses": {"c2": 1, "c0": 1, "c1": 1}}
    two = FIXED.with_values({"cutoff.max_results": 2})
    # F1 of two out of three: P 1, R 2/3. Of four with two: P 1/2, R 1.
    made = changes(pools, qrels, FIXED, two)
    assert made.drop(columns="gain").values.tolist() == [["loses", 3, 2, 1, 0], ["wins", 4, 2, 0, 0]]
    assert made["gain"].round(6).tolist() == [round(0.8 - 1, 6), round(1 - 2 / 3, 6)]
    assert changes(pools, qrels, two, FIXED).values.tolist()[0] == ["wins", 2, 4, 0, 0, 2 / 3 - 1]
