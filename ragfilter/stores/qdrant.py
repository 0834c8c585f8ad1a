"""Qdrant as a store of collections: a server, or a folder that the client itself searches.

Each chunk is a point. Its payload is the chunk's flat metadata with id and text. The point's id is derived from the
chunk's, since Qdrant accepts no text ids. Vectors have unit length. Distances are squared, as in all stores. Qdrant
checks clearance, departments and files, and its results are checked again, because an invalid level or a list may meet
its conditions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import chain, groupby
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_OID, uuid5

from ragfilter.errors import CollectionMissing, RagfilterError, StoreError, StoreUnavailable, extra
from ragfilter.model import Chunk, Space, by_distance
from ragfilter.protocols import Vectors, Where
from ragfilter.stores import metadata
from ragfilter.stores.base import (
    CONTENT,
    FORMAT,
    VERSION,
    VersionedCollection,
    VersionedStore,
    new_version,
    pages,
    query_vector,
)
from ragfilter.text.urls import shown

with extra("qdrant"):
    from qdrant_client import QdrantClient, models
    from qdrant_client.http.exceptions import ResponseHandlingException

if TYPE_CHECKING:
    from ragfilter.stores.copies import StoredRow

PAGE = 1_000
MISSING = re.compile(r"Collection .*(?:doesn't exist|not found)")
"""The message of a server and of the client that a collection does not exist."""
SEARCHED = models.SearchParams(hnsw_ef=1000)
"""The same search width as for Chroma. A client that searches itself compares all vectors."""
INDEXED = {
    "clearance": models.PayloadSchemaType.INTEGER,
    "department": models.PayloadSchemaType.KEYWORD,
    "source": models.PayloadSchemaType.KEYWORD,
}


@dataclass(frozen=True, slots=True)
class QdrantPlace:
    """The URL of a server with its API key, or a folder. No single wait exceeds `timeout_s` seconds."""

    place: str = field(repr=False)
    key: str = field(default="", repr=False)
    timeout_s: float = 10.0

    @property
    def shared(self) -> bool:
        """Whether other processes can use it too."""
        return "://" in self.place

    def open(self) -> QdrantStore:
        """Open the store there. Raises InputError, StoreError."""
        return QdrantStore(self)


class QdrantCollection(VersionedCollection):
    """One collection of Qdrant."""

    _store: QdrantStore

    space: Space = "l2"

    @property
    def attributes(self) -> Mapping[str, Any]:
        return self.raw().config.metadata or {}

    @property
    def dimension(self) -> int:
        """The length of the vectors; 0 until there are some."""
        vectors = self.raw().config.params.vectors
        return vectors.size if isinstance(vectors, models.VectorParams) else 0

    def count(self) -> int:
        with self._store.asking() as client:
            return client.count(self._name).count

    def nearest(
        self, vector: Vectors, n: int, *, ids: Sequence[str] | None = None, where: Where | None = None
    ) -> list[tuple[str, float]]:
        self._readable()
        query = query_vector(vector, self.dimension)
        size = n = min(n, self.count()) if n > PAGE else n
        if n < 1:
            return []
        where = where or Where()
        admits = metadata.admission(where)
        while True:
            with self._store.asking() as client:
                points = client.query_points(
                    self._name,
                    query=query,
                    limit=size,
                    query_filter=_condition(ids, where),
                    with_payload=["id", "clearance", "department", "source"],
                    search_params=SEARCHED if self._store.shared else None,
                ).points
            payloads = [(point.payload or {}, point.score**2) for point in points]
            hits = [(p["id"], d) for p, d in payloads if admits(metadata.to_entry(p["id"], p, ours=True))]
            if len(hits) >= n or len(points) < size:
                return sorted(hits, key=by_distance)[:n]
            size *= 2

    def known_chunks(self, ids: Sequence[str]) -> Iterator[Chunk]:
        return (metadata.to_chunk(i, p, p.pop("text"), ours=True) for i, p in self._read(ids, text=True))

    def known_vectors(self, ids: Sequence[str]) -> Iterator[tuple[str, Vectors]]:
        self._readable()
        for page in pages(ids, PAGE):
            with self._store.asking() as client:
                points: Any = client.retrieve(self._name, _points(page), ["id"], True)
            yield from ((point.payload["id"], point.vector) for point in points)

    def write(self, batch: Sequence[StoredRow]) -> None:
        started = time_ns()
        points = [
            models.PointStruct(
                id=_point(row.chunk.id),
                vector=row.vector.tolist(),
                payload={
                    "id": row.chunk.id,
                    "text": row.chunk.text,
                    "source": "",
                    "place": started + at,
                    **metadata.to_metadata(row.chunk, clearance_as_given=row.clearance_as_given),
                },
            )
            for at, row in enumerate(batch)
        ]
        with self._store.changing(self._name), self._store.asking() as client:
            if not self.dimension:
                self._store.make(self._name, self.attributes, len(batch[0].vector))
            client.upload_points(self._name, points, batch_size=PAGE, wait=True)
            self.touch()

    def _read(self, ids: Sequence[str] | None, *, text: bool = False) -> Iterator[tuple[str, Any]]:
        """The payloads of the known ones among these chunks, or of all, in the order written."""
        self._readable()
        selector = models.PayloadSelectorExclude(exclude=[] if text else ["text"])
        if ids is None:
            pages_of_points: Iterable[list[Any]] = self._store.scroll(self._name, selector)
        else:
            with self._store.asking() as client:
                pages_of_points = [client.retrieve(self._name, _points(page), selector) for page in pages(ids, PAGE)]
        payloads = [point.payload for point in chain.from_iterable(pages_of_points)]
        for payload in sorted(payloads, key=lambda payload: payload.pop("place")):
            yield payload.pop("id"), payload

    def _put_rules(self, rules: Mapping[str, str | None]) -> None:
        by_rule = sorted(rules, key=lambda i: rules[i] or "")
        changes = [
            models.SetPayloadOperation(
                set_payload=models.SetPayload(payload={metadata.RULE_KEY: rule or None}, points=_points(list(ids)))
            )
            for rule, ids in groupby(by_rule, key=lambda i: rules[i] or "")
        ]
        with self._store.asking() as client:
            client.batch_update_points(self._name, changes)


class QdrantStore(VersionedStore[QdrantCollection]):
    """The collections in one Qdrant that ragfilter made; others are not listed."""

    kind = QdrantCollection

    def __init__(self, place: QdrantPlace) -> None:
        """Open the store. Raises InputError, StoreError, StoreUnavailable."""
        where = shown(place.place) if place.shared else str(Path(place.place).expanduser())
        super().__init__(where=where, shared=place.shared)
        # Only one thread at a time can use the client that searches itself.
        self._alone = nullcontext() if place.shared else self._changing
        with _guard(where):
            if place.shared:
                key, seconds = place.key or None, round(place.timeout_s)
                self._client = QdrantClient(url=place.place, api_key=key, timeout=seconds, check_compatibility=False)
            else:
                self._client = QdrantClient(path=where, force_disable_check_same_thread=True)

    @contextmanager
    def asking(self) -> Iterator[QdrantClient]:
        """A context for every call of the client. Raises StoreError."""
        with self._alone, _guard(self.where):
            yield self._client

    def names(self) -> list[str]:
        with self.asking() as client:
            names = [each.name for each in client.get_collections().collections]
            return [name for name in names if FORMAT in (client.get_collection(name).config.metadata or {})]

    def look_up(self, name: str) -> models.CollectionInfo:
        with self.asking() as client:
            return client.get_collection(name)

    def set_attributes(self, name: str, values: Mapping[str, str]) -> None:
        with self.changing(name), self.asking() as client:
            before = self.kind(self, name).version
            client.update_collection(name, metadata={**values, VERSION: new_version()})
            self.replaced.add(before)

    def rename(self, name: str, new: str) -> None:
        """Rename a collection by copying its points. Raises CollectionMissing."""
        old = self.collection(name).snapshot()
        with self.changing(name), self.asking() as client:
            # The new collection is marked incomplete until the end.
            self.make(new, {**old.attributes, CONTENT: ""}, old.dimension)
            for page in self.scroll(name, True, vectors=True):
                fields = {"id", "vector", "payload"}
                client.upsert(new, [models.PointStruct(**p.model_dump(include=fields)) for p in page])
            self.set_attributes(new, {CONTENT: old.content})
        self.delete(name)

    def close(self) -> None:
        self._client.close()

    def scroll(self, name: str, payload: Any, *, vectors: bool = False) -> Iterator[list[Any]]:
        """All points of a collection, page by page."""
        offset = None
        while True:
            with self.asking() as client:
                page, offset = client.scroll(
                    name, limit=PAGE, offset=offset, with_payload=payload, with_vectors=vectors
                )
            yield page
            if offset is None:
                return

    def make(self, name: str, attributes: Mapping[str, Any], dimension: int = 0) -> None:
        """Make an empty collection, replacing any of that name, since the dimension of vectors cannot be changed."""
        vectors = models.VectorParams(size=dimension, distance=models.Distance.EUCLID)
        with self.asking() as client:
            client.delete_collection(name)
            client.create_collection(name, vectors if dimension else {}, metadata=dict(attributes))
            for key, kind in INDEXED.items() if self.shared else ():
                client.create_payload_index(name, key, kind)

    def remove(self, name: str) -> None:
        with self.asking() as client:
            client.delete_collection(name)


def _point(chunk_id: str) -> str:
    return str(uuid5(NAMESPACE_OID, chunk_id))


def _points(ids: Sequence[str]) -> list[Any]:
    return [_point(i) for i in ids]


def _condition(ids: Sequence[str] | None, where: Where) -> models.Filter:
    """The filter for Qdrant. A payload without a key meets no condition on that key."""
    parts: list[Any] = []
    if ids is not None:
        parts.append(models.HasIdCondition(has_id=_points(ids)))
    user, is_ = where.user, models.FieldCondition
    if user is not None and not user.unrestricted:
        parts.append(is_(key="clearance", range=models.Range(gte=0, lte=user.level)))
        parts.append(is_(key="department", match=models.MatchAny(any=["", *user.departments])))
    if where.sources is not None:
        parts.append(is_(key="source", match=models.MatchAny(any=list(where.sources))))
    return models.Filter(must=parts)


@contextmanager
def _guard(where: str) -> Iterator[None]:
    """Turn any error of Qdrant inside the block into a StoreError."""
    try:
        yield
    except RagfilterError:
        raise
    except ResponseHandlingException as error:
        message = f"The Qdrant server at {where} cannot be reached: {error}."
        raise StoreUnavailable(message, remedy="Check that it runs and that the URL is right.") from error
    except Exception as error:
        # Other servers at the address do not send this message.
        if MISSING.search(str(error)):
            message = f"The collection is not in {where} (any more)."
            raise CollectionMissing(message, remedy="List the collections, or index it again.") from error
        reason = " ".join(str(error).split())[:300].rstrip(".")
        remedy = f"Check the address, permissions and disk of {where}, and its API key."
        raise StoreError(f"Qdrant failed: {reason}.", remedy=remedy) from error
