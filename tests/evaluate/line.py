"""A fake collection and embedder with distances that are easy to calculate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ragfilter.model import Chunk
from ragfilter.protocols import Vectors
from ragfilter.testing import MemoryCollection


class Line(MemoryCollection):
    """Chunks on a line: the vector of query "n" is n, and chunk m is |n − m| / 10 away from it. If
    two distances are equal, the smaller number comes first."""

    name = "line"

    def __init__(self) -> None:
        super().__init__(Chunk(str(i), f"number {i}") for i in range(30))
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.embedded += texts
        return np.array([[float(text)] for text in texts], dtype=np.float32)

    def distances(self, vector: Vectors) -> dict[str, float]:
        return {i: abs(int(i) - float(vector[0])) / 10 for i in self.all}
