"""Chroma as a store of collections, each behind two protocols: `Collection` and `RuleStore`.

Source: docs/design.md#distances, docs/design.md#clearance and docs/design.md#chroma. Our own
collections have unit vectors in the `l2` space (squared distance, 0..4) and `ragfilter:` keys in
the collection's metadata. Other collections can be read too. Nothing is assumed about their
metadata, so conditions are checked in memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast
from uuid import UUID

import numpy as np

from ragfilter.errors import CollectionMissing, StoreError, extra
from ragfilter.model import Chunk, Space
from ragfilter.protocols import Catalogue, Vectors, Where
from ragfilter.stores import metadata as rows
from ragfilter.stores.base import pages, query_vector
from ragfilter.stores.chroma.connection import (
    disk_refusal,
    guard,
    open_folder,
    open_server,
    unwritable,
)
from ragfilter.stores.copies import write_catalogue
from ragfilter.stores.marked import VERSION, MarkedCollection, MarkedStore, new_version
from ragfilter.text.urls import shown

with extra("chroma"):
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection as RawCollection
    from chromadb.errors import InternalError

if TYPE_CHECKING:
    from ragfilter.stores.copies import StoredRow

# Wide pools need a wide search: on 30,000 vectors in 600 clusters, the recall of the nearest 200 is
# 0.80 with Chroma's default of 100 and 0.97 with this, for 4 ms more a query. Set when a collection
# is made, because a later change acts only after the store is opened again.
HNSW = {"space": "l2", "ef_search": 1000}
PAYLOAD_PAGE = 5_000
IDS_PAGE = 50_000
ALL_CHECKED = 10_000
"""The largest collection of which every chunk is looked up, to see if it is lost."""
SAMPLE, SAMPLES = 250, 4
"""How many chunks are looked up of a larger one, and in how many places."""
WRITE_BATCH = 5_000


class ChromaCollection(MarkedCollection):
    """One collection of Chroma."""

    _store: ChromaStore

    @property
    def marks(self) -> Mapping[str, Any]:
        return self.raw().metadata or {}

    @property
    def version(self) -> str:
        raw = self.raw()
        token = f"{raw.id}:{(raw.metadata or {}).get(VERSION, '')}"
        # Others may write to a foreign collection at any time; at least additions and removals
        # show.
        return token if self.ours else f"{token}:{self.count()}"

    @property
    def space(self) -> Space:
        # Not `raw.configuration`: that builds the stored embedding function, which may be foreign
        # code.
        configuration = self.raw().configuration_json
        index = configuration.get("hnsw") or configuration.get("spann") or {}
        return cast(Space, index.get("space", "l2"))

    def count(self) -> int:
        with guard(self._store.where):
            return int(self.raw().count())

    def nearest(
        self,
        vector: Vectors,
        n: int,
        *,
        ids: Sequence[str] | None = None,
        where: Where | None = None,
    ) -> list[tuple[str, float]]:
        query = query_vector(vector)
        raw = self._readable()
        if n > PAYLOAD_PAGE:
            n = min(n, self.count())
        if n < 1:
            return []
        # Chroma refuses a condition, or a list of ids, that includes a chunk missing from its
        # index.
        lost = self._lost()
        pushed = None
        if where is not None and ids is None and self.ours and rows.can_push(where) and not lost:
            pushed = rows.condition(where)
        elif where is not None or ids is not None:
            known: Mapping[str, Chunk] | None
            known = self.entries() if ids is None else self.catalogue()
            if known is None:
                known = dict(self._read_entries(ids))
            admits = rows.admission(where or Where())
            asked = known if ids is None else dict.fromkeys(ids)
            ids = [i for i in asked if i in known and i not in lost and admits(known[i])]
            if isinstance(known, Catalogue) and len(ids) == len(known):
                ids = None
        hits: list[tuple[str, float]] = []
        for page in [None] if ids is None else pages(ids, IDS_PAGE):
            size = n if page is None else min(n, len(page))
            with guard(self._store.where):
                reply = raw.query(
                    query_embeddings=cast(Any, [query]),
                    n_results=size,
                    ids=page,
                    where=cast(Any, pushed),
                    include=["distances"],
                )
            distances = cast(Any, reply["distances"])
            hits.extend(zip(reply["ids"][0], map(float, distances[0]), strict=True))
        if pushed is not None and where is not None:
            # A number that is no level may meet Chroma's condition.
            admits = rows.admission(where)
            seen = self.catalogue() or self.chunks([i for i, _ in hits])
            hits = [(i, distance) for i, distance in hits if i in seen and admits(seen[i])]
        return sorted(hits, key=lambda hit: (hit[1], hit[0]))[:n]

    def chunks(self, ids: Sequence[str]) -> dict[str, Chunk]:
        self._readable()
        ours = self.ours
        version, read = self.version if ours else "", self._store.chunks
        known_chunks = {i: read.get((version, i)) for i in ids} if ours else {}
        missing = [i for i in ids if known_chunks.get(i) is None]
        for i, text, metadata in self._get(missing, "documents", "metadatas"):
            known_chunks[i] = chunk = rows.to_chunk(i, metadata, text, ours=ours)
            if ours:
                read.put((version, i), chunk)
        return {i: known for i in ids if (known := known_chunks.get(i)) is not None}

    def known_vectors(self, ids: Sequence[str]) -> Iterator[tuple[str, Vectors]]:
        return cast(Iterator[tuple[str, Vectors]], self._get(ids, "embeddings"))

    def rules(self, ids: Sequence[str]) -> dict[str, str | None]:
        self._store.reopen_after_failure()
        return super().rules(ids)

    def write(self, batch: Sequence[StoredRow]) -> None:
        for page in pages(batch, WRITE_BATCH):
            ids = [row.chunk.id for row in page]
            with self._store.changing(self._name):
                raw = self.raw()
                present = set(raw.get(ids=ids, include=[])["ids"])
                # Chroma's `add` of a present id and `update` of an absent one silently do nothing.
                self._put(raw.add, [row for row in page if row.chunk.id not in present], {})
                self._put(
                    raw.update, [row for row in page if row.chunk.id in present], rows.NO_METADATA
                )
                self.renew()

    def _lost(self) -> frozenset[str]:
        """Looked up once. If the folder of an index is gone, Chroma silently starts a new index."""
        raw = self.raw()
        if raw.id not in self._store.lost:
            self._store.lost[raw.id] = frozenset(self._read_lost(raw))
        return self._store.lost[raw.id]

    def _read_lost(self, raw: RawCollection) -> set[str]:
        probe: Any = np.eye(1, raw._model.dimension or 1, dtype=np.float32)
        with guard(self._store.where):
            # Lost chunks are older than found ones, so some of a large collection are enough.
            count = raw.count()
            size, step = (SAMPLE, count // SAMPLES) if count > ALL_CHECKED else (None, ALL_CHECKED)
            pages = (
                raw.get(include=[], limit=size, offset=start)["ids"]
                for start in range(0, count, step)
            )
            try:
                if ids := list(chain.from_iterable(pages)):
                    raw.query(query_embeddings=probe, n_results=1, ids=ids, include=[])
            except InternalError:
                ids = raw.get(include=[])["ids"]
                found_ids = raw.query(query_embeddings=probe, n_results=len(ids), include=[])["ids"]
                return set(ids).difference(found_ids[0])
        return set()

    def _put(
        self, put: Callable[..., None], page: Sequence[StoredRow], cleared: Mapping[str, None]
    ) -> None:
        if not page:
            return
        metadatas = [
            {**cleared, **rows.to_metadata(row.chunk, clearance_as_given=row.clearance_as_given)}
            for row in page
        ]
        put(
            ids=[row.chunk.id for row in page],
            embeddings=np.stack([row.vector for row in page]),
            documents=[row.chunk.text for row in page],
            metadatas=metadatas,
        )

    def _put_rules(self, rules: Mapping[str, str | None]) -> None:
        raw = self.raw()
        for page in pages(list(rules), WRITE_BATCH):
            metadatas: Any = [{rows.RULE_KEY: rules[i] or None} for i in page]
            raw.update(ids=page, metadatas=metadatas)

    def _read(self, ids: Sequence[str] | None) -> Iterator[tuple[str, rows.Metadata | None]]:
        if ids is not None:
            yield from cast(Iterator[Any], self._get(ids, "metadatas"))
            return
        raw = self._readable()
        for offset in range(0, self.count() + 1, PAYLOAD_PAGE):
            with guard(self._store.where):
                page = raw.get(limit=PAYLOAD_PAGE, offset=offset, include=["metadatas"])
            yield from zip(page["ids"], cast(Any, page["metadatas"]), strict=True)

    def _get(self, ids: Sequence[str], *fields: Any) -> Iterator[tuple[Any, ...]]:
        """The id of each chunk that is known, followed by these fields of it."""
        raw = self._readable()
        for page in pages(list(dict.fromkeys(ids)), PAYLOAD_PAGE):
            with guard(self._store.where):
                got: Any = raw.get(ids=page, include=list(fields))
            yield from zip(got["ids"], *(got[each] for each in fields), strict=True)


class ChromaStore(MarkedStore[ChromaCollection]):
    """The collections of one Chroma client, which is opened anew after a failed write."""

    kind = ChromaCollection

    def __init__(self, client: ClientAPI, *, where: str, shared: bool) -> None:
        super().__init__(where=where, shared=shared)
        self._client = client
        self._opening = threading.Lock()
        self._writing = threading.RLock()
        self._failed: set[str] = set()
        self.lost: dict[UUID, frozenset[str]] = {}

    @classmethod
    def folder(cls, folder: Path, *, shared: bool = False) -> ChromaStore:
        """The embedded store in `folder`. The caller holds the workspace lock, or the store is
        `shared` with its owner."""
        return cls(open_folder(folder), where=str(folder), shared=shared)

    @property
    def client(self) -> ClientAPI:
        with self._opening:
            return self._client

    def look_up(self, name: str) -> RawCollection:
        """Chroma's own object of a collection. Raises CollectionMissing."""
        with guard(self.where):
            raw = self.client.get_collection(name, embedding_function=None)
        # A write would build the embedding function that the stored schema names.
        raw._model.serialized_schema = None
        return raw

    def mark(self, name: str, values: Mapping[str, str]) -> None:
        """Change the metadata of a collection, with a new version."""
        with self.changing(name):
            # An object of its own, since a query that runs now relies on the marks that it read.
            raw = self.look_up(name)
            # Chroma refuses a change that names the space, even if it is the same one.
            kept = {k: v for k, v in (raw.metadata or {}).items() if not k.startswith("hnsw:")}
            raw.modify(metadata={**kept, **values, VERSION: new_version()})
            self.replaced.add(str(kept.get(VERSION, "")))

    @contextmanager
    def changing(self, name: str) -> Iterator[None]:
        """Wrap every write to the collection `name` in Chroma in this; one at a time."""
        with self._writing:
            self.reopen_after_failure()
            try:
                with guard(self.where):
                    yield
            except StoreError as error:
                if isinstance(error.__cause__, InternalError) and not self.shared:
                    self._failed.add(name)
                raise
            finally:
                self.looked_up = {}

    def reopen_after_failure(self) -> None:
        """Reopen the folder if a write failed, as on a full disk.

        Such a write may be in Chroma's log, which is applied when the folder is opened, and only
        then do reads return the truth. The next write of the old client may also wait forever.
        Raises StoreError if there is still no room; searches then continue with the old client.
        """
        with self._writing:
            if not self._failed:
                return
            if reason := disk_refusal(Path(self.where)):
                raise unwritable(f"{self.where} cannot be written: {reason}", self.where)
            with self._opening:
                self._client.close()  # type: ignore[attr-defined]
                self._client = open_folder(Path(self.where))
            self.catalogues.clear()
            self.looked_up = {}
            names, self._failed = self._failed, set()
            for name in names:
                with suppress(CollectionMissing):
                    self.mark(name, {})

    def catalogue_file(self, name: str) -> Path | None:
        """None if others write to the store too."""
        return None if self.shared else Path(self.where).with_name("catalogues") / f"{name}.parquet"

    def close(self) -> None:
        """Close the client. Catalogues changed by edits are written for the next opening."""
        try:
            for name in self.unwritten & self.catalogues.keys():
                if (file := self.catalogue_file(name)) is not None:
                    write_catalogue(file, *self.catalogues[name])
        finally:
            self.client.close()  # type: ignore[attr-defined]

    def names(self) -> list[str]:
        with guard(self.where):
            return [raw.name for raw in self.client.list_collections()]

    def rename(self, name: str, new: str) -> None:
        """Rename a collection. Raises CollectionMissing."""
        raw = self.collection(name).raw()
        with self.changing(name):
            raw.modify(name=new)
        self.forget(name)

    def _make(self, name: str, marks: dict[str, Any]) -> None:
        self.client.create_collection(
            name,
            configuration={"hnsw": cast(Any, dict(HNSW))},
            metadata=marks,
            embedding_function=None,
        )

    def _remove(self, name: str) -> str:
        raw = self.client.get_collection(name, embedding_function=None)
        self.client.delete_collection(name)
        return str(raw.id)


@dataclass(frozen=True, slots=True)
class Server:
    """A Chroma server. User and password in the URL are sent as basic authentication and never
    shown. No single wait for the server takes longer than `timeout_s` seconds."""

    url: str = field(repr=False)
    timeout_s: float = 30.0
    shared: ClassVar[bool] = True

    def open(self) -> ChromaStore:
        """The store there. Raises InputError, StoreUnavailable."""
        client = open_server(self.url, self.timeout_s)
        return ChromaStore(client, where=shown(self.url), shared=True)
