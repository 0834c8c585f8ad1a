"""Small collections in a real Chroma with our own vectors, so that no model is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from ragfilter.engine.gather import Backends
from ragfilter.model import Chunk
from ragfilter.models.embedders import BundledEmbedder
from ragfilter.protocols import Vectors, Where
from ragfilter.stores.chroma import ChromaCollection, ChromaStore

N = 60
DIMENSION = 8


class OneVector:
    """A fake embedder with a given query vector, so that no model is needed."""

    name = "given"

    def __init__(self, vectors: Mapping[str, Vectors], default: Vectors) -> None:
        self.vectors = vectors
        self.default = default

    def embed(self, texts: Sequence[str]) -> Vectors:
        return np.stack([self.vectors.get(text, self.default) for text in texts])


class Large:
    """A collection that is too large for a catalogue, so that the store itself withholds hidden chunks."""

    def __init__(self, collection: Any) -> None:
        self._collection = collection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._collection, name)

    def snapshot(self) -> Large:
        return self

    def catalogue(self) -> None:
        return None


def large(backends: Backends) -> Backends:
    """The same backends with a large collection."""
    return replace(backends, collection=Large(backends.collection))


class Remembering(BundledEmbedder):
    """The bundled model, called once for every text."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[str, Vectors] = {}

    def embed(self, texts: Sequence[str]) -> Vectors:
        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        if new:
            self.known.update(zip(new, super().embed(new), strict=True))
        return np.stack([self.known[text] for text in texts])


def qdrant(*given: str) -> Any:
    """The address of a Qdrant, whose client takes long to import."""
    from ragfilter.stores.qdrant import QdrantPlace

    return QdrantPlace(*given)


def read_once(patch: pytest.MonkeyPatch) -> None:
    """Query Chroma once for every combination of vector, number, ids and condition, read each chunk once, and open the
    store once, while nothing is written."""
    patch.setattr(ChromaCollection, "raw", cache(ChromaCollection.raw))
    real, known = ChromaCollection.nearest, dict[object, list[tuple[str, float]]]()
    chunks_of, chunks = ChromaCollection.chunks, dict[str, Chunk]()

    def nearest(
        self: ChromaCollection, vector: Vectors, n: int, *, ids: Sequence[str] | None = None, where: Where | None = None
    ) -> list[tuple[str, float]]:
        key = (vector.tobytes(), n, None if ids is None else tuple(ids), where)
        if key not in known:
            known[key] = real(self, vector, n, ids=ids, where=where)
        return [*known[key]]

    def read(self: ChromaCollection, ids: Sequence[str]) -> dict[str, Chunk]:
        if missing := [i for i in ids if i not in chunks]:
            chunks.update(chunks_of(self, missing))
        return {i: chunks[i] for i in ids if i in chunks}

    patch.setattr(ChromaCollection, "nearest", nearest)
    patch.setattr(ChromaCollection, "chunks", read)


def unit(rng: np.random.Generator, n: int) -> Vectors:
    vectors = rng.normal(size=(n, DIMENSION)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def filled(store: ChromaStore, rules: Sequence[str | None], seed: int) -> tuple[Any, Vectors]:
    """A raw collection with its ids in the metadata too, as the literal loop needs."""
    rng = np.random.default_rng(seed)
    store.delete("loop")
    raw = store.client.create_collection("loop", configuration={"hnsw": {"space": "l2"}}, embedding_function=None)
    metadatas = [{"id": f"c{i}", **({"query_must": rule} if rule else {})} for i, rule in enumerate(rules)]
    raw.add(
        ids=[f"c{i}" for i in range(len(rules))],
        embeddings=unit(rng, len(rules)),
        documents=[f"text {i}" for i in range(len(rules))],
        metadatas=metadatas,
    )
    return raw, unit(rng, 1)[0]
