"""The walk along references: breadth first, each once, within depth and limit."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragfilter.layers.judge import DEPTHS, walk
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
