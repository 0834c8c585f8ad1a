"""The walk along references: breadth first, each once, within depth and limit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragfilter.judge.expansion import DEPTHS, walk
from ragfilter.model import Chunk

GRAPH = {
    "a": ("b", "c"),
    "b": ("d", "a"),
    "c": ("d", "gone"),
    "d": ("e", "d"),
    "e": ("f",),
    "f": ("g",),
    "g": ("h",),
    "h": (),
}
CHUNKS = {i: Chunk(i, refs=refs) for i, refs in GRAPH.items()}


def reached(depth: int, most: int = 50) -> list[tuple[str, int, str]]:
    found = walk(CHUNKS["a"], depth=depth, most=most, find=CHUNKS.get)
    return [(r.chunk.id, r.step, r.via) for r in found]


def test_steps_and_ways() -> None:
    one = [("b", 1, "a"), ("c", 1, "a")]
    three = [*one, ("d", 2, "b"), ("e", 3, "d")]
    assert reached(1) == one
    assert reached(3) == three
    assert reached(5) == [*three, ("f", 4, "e"), ("g", 5, "f")]


def test_the_limit_counts_chunks() -> None:
    assert [i for i, _, _ in reached(5, most=3)] == ["b", "c", "d"]
    assert reached(5, most=0) == []


def test_what_is_closed_is_not_walked_through() -> None:
    open_ones = {i: c for i, c in CHUNKS.items() if i != "d"}
    found = walk(CHUNKS["a"], depth=5, most=50, find=open_ones.get)
    assert [r.chunk.id for r in found] == ["b", "c"]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30),
    st.integers(0, 12),
)
def test_a_smaller_depth_is_the_beginning_of_a_larger(
    edges: list[tuple[int, int]], most: int
) -> None:
    """The preview of EXPAND_1 and EXPAND_3 is a prefix of one walk of EXPAND_5."""
    chunks = {
        str(n): Chunk(str(n), refs=tuple(dict.fromkeys(str(b) for a, b in edges if a == n)))
        for n in range(10)
    }
    walks = {d: list(walk(chunks["0"], depth=d, most=most, find=chunks.get)) for d in DEPTHS}
    for depth in DEPTHS:
        assert walks[depth] == [r for r in walks[5] if r.step <= depth]
        ids = [r.chunk.id for r in walks[depth]]
        assert len(ids) == len(set(ids)) <= most
        assert "0" not in ids
