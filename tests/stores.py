"""Small collections in a real Chroma with our own vectors, so that no model is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ragfilter.engine.gather import Backends
from ragfilter.models.embedders import BundledEmbedder
from ragfilter.protocols import Vectors
from ragfilter.stores.chroma import ChromaStore

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
