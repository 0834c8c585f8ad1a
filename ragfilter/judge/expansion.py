"""Follows a chunk's references: the walk of EXPAND_n. Pure.

Source: Intelligent Chunk Filtering; docs/design.md#judge. The walk is breadth first, to a depth,
with a maximum number of chunks per root, each once and without cycles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ragfilter.model import Chunk

DEPTHS = (1, 3, 5)

Finder = Callable[[str], Chunk | None]
"""Returns the chunk with an id, or None if it must not be brought in or walked through."""


class Library(Protocol):
    """The part of `protocols.Collection` needed to find what references lead to."""

    def chunks(self, ids: Sequence[str]) -> dict[str, Chunk]: ...

    def catalogue(self) -> Mapping[str, Chunk] | None: ...


@dataclass(frozen=True, slots=True)
class ReachedChunk:
    """A chunk that is `step` references away from the root; `via` is the chunk that names it."""

    chunk: Chunk
    step: int
    via: str


def finder(collection: Library) -> Finder:
    """Finds every chunk of a collection, without its text if there is a catalogue."""
    catalogue = collection.catalogue()
    if catalogue is not None:
        return catalogue.get
    return lambda chunk_id: collection.chunks([chunk_id]).get(chunk_id)


def walk(root: Chunk, *, depth: int, most: int, find: Finder) -> Iterator[ReachedChunk]:
    """What the references of `root` lead to within `depth` steps, at most `most` chunks. The result
    for a smaller depth is a prefix of it."""
    seen = {root.id}
    frontier = [root]
    for step in range(1, depth + 1):
        reached: list[Chunk] = []
        for parent in frontier:
            for ref in parent.refs:
                if ref in seen:
                    continue
                seen.add(ref)
                chunk = find(ref)
                if chunk is None:
                    continue
                if most <= 0:
                    return
                most -= 1
                reached.append(chunk)
                yield ReachedChunk(chunk, step, parent.id)
        frontier = reached
