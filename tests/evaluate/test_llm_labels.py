"""Labels: which chunk is offered next, what an LLM is asked, and how well it agrees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from line import Line

from ragfilter.engine.gather import Backends, gather
from ragfilter.engine.replay import replay
from ragfilter.evaluate.labelling import BESIDE, FIRST, SAMPLED, agreement, requests, to_label
from ragfilter.model import Chunk, Hit, Pool
from ragfilter.results.rows import ChunkRow, rows
from ragfilter.settings.config import load


class Unasked:
    """A chat model of which only the name is used."""

    name = "unasked"

    def stream(self, *args: Any, **given: Any) -> Any:
        raise AssertionError("nobody was to be asked")


def test_the_pool_may_be_deeper_than_any_prompt() -> None:
    """Half of the nearest are hidden, so more hits are gathered than `retrieval.k` allows."""
    line = Line()
    line.all = {str(i): replace(line.all["0"], id=str(i), clearance=i % 2 * 9) for i in range(500)}
    backends = Backends(line, line, None, Unasked())  # type: ignore[arg-type]
    settings = load(profile="full", environ={}).settings
    assert len(gather("0", settings, backends, wide=True).hits) > 200
    (request,) = requests(["0"], [], settings, backends, depth=5)
    assert [i for ready in request.prompts for i in ready.asked] == ["0", "2", "4", "6", "8"]


def test_cohens_kappa() -> None:
    for human, llm, expected in [
        ({"q": {"a": 1, "b": 0}}, {"q": {"a": 2, "b": 0}}, (2, 2, 1.0)),
        ({"q": {"a": 1, "b": 0}}, {"q": {"a": 0, "b": 1}}, (2, 0, -1.0)),
        # Observed 3 of 4; by chance 0.5 × 0.25 + 0.5 × 0.75 = 0.5.
        ({"q": dict.fromkeys("ab", 1) | dict.fromkeys("cd", 0)}, {"q": {"a": 1, "b": 0, "c": 0, "d": 0}}, (4, 3, 0.5)),
        ({"q": {"a": 1}}, {"q": {"a": 1}}, (1, 1, None)),
        ({"q": {"a": 1}}, {"p": {"a": 1}}, (0, 0, None)),
    ]:
        made = agreement(human, llm)
        assert (made.pairs, made.agreed) == expected[:2]
        assert made.kappa == (None if expected[2] is None else pytest.approx(expected[2]))


GAP = load(profile="adaptive-gap", environ={}).settings
IDS = [f"c{i}" for i in range(1, 101)]


def listed(*extra: str) -> list[ChunkRow]:
    """A hundred hits with a cliff after the third. Those in `extra` are kept too, and one that is
    not among the hits was brought in by an expansion."""
    distances = [0.1 + 0.001 * i + (0.4 if i > 3 else 0.0) for i in range(1, 101)]
    hits = (Hit(Chunk(i), d, n) for n, (i, d) in enumerate(zip(IDS, distances, strict=True), 1))
    found = list(rows(replay(Pool("q", "c", "l2", tuple(hits)), GAP)))
    brought = [found[0]._replace(id=i, rank=0) for i in extra if i not in IDS]
    return [row._replace(place=9) if row.id in extra else row for row in (*found, *brought)]


def test_top_ranks_come_first_then_what_is_beside_the_cut_then_a_sample() -> None:
    order = to_label(listed("c95", "brought"), IDS[:60], "q", blind=False)
    assert order[:10] == ["c1", "c2", "c3", "c4", "c5", "c6", "brought", "c95", "c7", "c8"]
    assert len({*order}) == len(order) == FIRST + BESIDE + SAMPLED
    # By the order at the cut, not by rank.
    turned = to_label(listed(), [*IDS[6:50], "c3", "c2", "c1"], "q", blind=False)
    assert turned[6:8] == ["c50", "c49"]


def test_blind_offers_the_same_in_an_order_that_rank_does_not_decide() -> None:
    plain = to_label(listed(), [], "q", blind=False)
    order = to_label(listed(), [], "q", blind=True)
    assert sorted(order) == sorted(plain)
    assert order != plain
    turned = [row._replace(rank=101 - row.rank) for row in listed()]
    both = [i for i in to_label(turned[::-1], [], "q", blind=True) if i in order]
    assert both == [i for i in order if i in both]
    assert to_label(listed(), [], "another", blind=True)[:3] != order[:3]
