"""A list of hits as a collection, for filters without a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragfilter.model import Chunk, Hit, Space
from ragfilter.protocols import Vectors, Where


@dataclass(frozen=True, slots=True)
class HitCollection:
    """`protocols.Collection` over hits, in ascending distance to the one query they were found for:
    any vector passed is taken for that query's."""

    hits: tuple[Hit, ...]
    space: Space
    name: str = ""
    version: str = ""
    incomplete: str = ""

    def count(self) -> int:
        return len(self.hits)

    def nearest(
        self,
        vector: Vectors,
        n: int,
        *,
        ids: Sequence[str] | None = None,
        where: Where | None = None,
    ) -> list[tuple[str, float]]:
        among = None if ids is None else set(ids)
        found = [(h.id, h.distance) for h in self.hits if among is None or h.id in among]
        return found[: max(n, 0)]

    def chunks(self, ids: Sequence[str]) -> dict[str, Chunk]:
        catalogue = self.catalogue()
        return {i: catalogue[i] for i in ids if i in catalogue}

    def catalogue(self) -> Mapping[str, Chunk]:
        return {hit.id: hit.chunk for hit in self.hits}
