"""A fake collection and embedder with distances that are easy to calculate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ragfilter.model import Chunk, Space
from ragfilter.protocols import Vectors


class Line:
    """Chunks on a line: the vector of query "n" is n, and chunk m is |n − m| / 10 away from it. Of
    two equally distant ones the smaller number comes first."""

    name = "line"
    space: Space = "l2"
    version = "1"

    def __init__(self) -> None:
        self.all = {str(i): Chunk(str(i), f"number {i}") for i in range(30)}
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str], progress: object = None) -> Vectors:
        self.embedded += texts
        return np.array([[float(text)] for text in texts], dtype=np.float32)

    def count(self) -> int:
        return len(self.all)

    def nearest(
        self, vector: Vectors, n: int, *, ids: object = None, where: object = None
    ) -> list[tuple[str, float]]:
        at = float(vector[0])
        pairs = [(i, abs(int(i) - at) / 10) for i in self.all]
        return sorted(pairs, key=lambda pair: (pair[1], pair[0]))[:n]

    def chunks(self, ids: Sequence[str]) -> dict[str, Chunk]:
        return {i: self.all[i] for i in ids if i in self.all}

    def catalogue(self) -> dict[str, Chunk]:
        return self.all
