"""What the collections of every store have in common: how they are called, listed and read, and
what an indexing did to one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from ragfilter.errors import InputError, StoreError
from ragfilter.model import Space
from ragfilter.protocols import Collection, Vectors

T = TypeVar("T")

NAME_RULE = (
    "Use 3 to 512 letters, digits, dots, hyphens or underscores, "
    "with a letter or digit at both ends."
)


@dataclass(frozen=True, slots=True)
class CollectionInfo:
    """A collection in a list. `embedder` is empty if it is not known; `incomplete` says why chunks
    are missing, and is empty if none are."""

    name: str
    count: int
    space: Space
    embedder: str
    ours: bool
    incomplete: str

    @property
    def complete(self) -> bool:
        return not self.incomplete


def check_name(name: str) -> None:
    """Raise InputError if `name` is none for a collection: Chroma would refuse it."""
    good = 3 <= len(name) <= 512 and all(c.isascii() and (c.isalnum() or c in "._-") for c in name)
    if not good or not (name[0].isalnum() and name[-1].isalnum()):
        raise InputError(f"{name!r} cannot be the name of a collection.", remedy=NAME_RULE)


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What an indexing did. `total` is the number of chunks in the collection afterwards,
    `embedded` the number of texts that the model embedded, and `not_in_source` the number of chunks
    that only an earlier run brought."""

    collection: str
    total: int
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    embedded: int = 0
    not_in_source: int = 0
    written: int = 0
    warnings: tuple[str, ...] = ()
    seconds: float = field(default=0.0, compare=False)


class ChunkedCollection(Collection):
    """A collection by its name, with rules and vectors by the ids of chunks. `nearest` takes a
    vector of shape (dimension,) or (1, dimension), and raises StoreError if it is not finite or
    has the wrong dimension."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    @abstractmethod
    def rules(self, ids: Sequence[str]) -> dict[str, str | None]:
        """The rule texts of these chunks; unknown ids are left out."""

    @abstractmethod
    def known_vectors(self, ids: Sequence[str]) -> Iterable[tuple[str, Vectors]]:
        """The vectors of these chunks by id; unknown ids are left out."""

    def rule(self, chunk_id: str) -> str | None:
        found = self.rules([chunk_id])
        self.check_known([chunk_id], found)
        return found[chunk_id]

    def vectors(self, ids: Sequence[str]) -> Vectors:
        """The vectors of these chunks, row by row. Raises StoreError if one is unknown."""
        found = dict(self.known_vectors(ids))
        self.check_known(ids, found)
        return np.array([found[i] for i in ids], dtype=np.float32)

    def check_known(self, ids: Iterable[str], known: Iterable[str]) -> None:
        """Raise StoreError if one of these chunks is not among those that are known."""
        there = set(known)
        for chunk_id in ids:
            if chunk_id not in there:
                raise StoreError(
                    f"Collection {self._name!r} has no chunk {chunk_id!r}.",
                    remedy="It may have been removed meanwhile; run the query again.",
                )


def pages(items: Sequence[T], size: int) -> Iterator[list[T]]:
    """`items` in lists of this size."""
    return (list(items[start : start + size]) for start in range(0, len(items), size))


def query_vector(vector: Vectors, dimension: int = 0) -> Vectors:
    """A question's vector, of shape (dimension,) or (1, dimension), as one of shape (dimension,).
    Raises StoreError if it is not finite, which a store would answer with arbitrary chunks, or has
    not the `dimension`, if that is known."""
    query = np.asarray(vector, dtype=np.float32)
    query = query[0] if query.ndim == 2 and query.shape[0] == 1 else query
    if query.ndim != 1 or not np.isfinite(query).all():
        raise StoreError(
            "The embedding model returned an invalid vector (NaN or infinity).",
            remedy="Rephrase the question, or check the embedding model.",
        )
    if dimension and len(query) != dimension:
        raise StoreError(
            f"The question's vector has {len(query)} dimensions, but chunks have {dimension}.",
            remedy="Check that the collection was indexed with the embedding model now in use.",
        )
    return query


def check_embedder(name: str, made_with: str, embedder: str) -> None:
    """Raise StoreError if `embedder` is not the model with which a collection was made, whose
    vectors would mean something else. Nothing is known where either is empty."""
    if embedder and made_with and embedder != made_with:
        raise StoreError(
            f"Collection {name!r} was indexed with {made_with}, not with {embedder}.",
            remedy=f"Use {made_with}, or replace the collection.",
            action="replace",
        )
