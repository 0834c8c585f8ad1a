"""Which chunks are offered for labelling, and in which order."""

from __future__ import annotations

import pytest

from ragfilter.engine.replay import replay
from ragfilter.evaluate.labelling import QUEUE, next_to_label
from ragfilter.model import Chunk, Hit, Pool
from ragfilter.report import ChunkRow, rows
from ragfilter.settings.config import load

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


@pytest.mark.parametrize("cut", [[], IDS[:60]])
def test_what_is_kept_far_down_is_offered_beside_the_cut(cut: list[str]) -> None:
    order = next_to_label(listed("c95", "brought"), cut, mixed_by=None)
    assert order[:4] == ["brought", "c4", "c95", "c5"]
    assert sorted(order) == sorted([*IDS[:QUEUE], "c95", "brought"])


def test_without_anything_far_down_it_goes_from_the_cut_outwards() -> None:
    assert next_to_label(listed(), [], mixed_by=None)[:5] == ["c3", "c4", "c2", "c5", "c1"]
    assert next_to_label(listed(), ["c9", "c3", "c2"], mixed_by=None)[:4] == [
        "c1",
        "c4",
        "c2",
        "c5",
    ]


def test_blind_offers_the_same_in_an_order_that_rank_does_not_decide() -> None:
    given = listed("c95", "brought")
    order = next_to_label(given, [], mixed_by="q")
    assert sorted(order) == sorted(next_to_label(given, [], mixed_by=None))
    # Neither what is kept nor where it is changes the order of the others.
    few = listed()[:QUEUE]
    plain = [i for i in order if i in IDS[:QUEUE]]
    assert next_to_label(few, [], mixed_by="q") == plain
    turned = [row._replace(rank=101 - row.rank, place=None) for row in few]
    assert next_to_label(turned[::-1], [], mixed_by="q") == plain
    assert next_to_label(few, [], mixed_by="another") != plain
