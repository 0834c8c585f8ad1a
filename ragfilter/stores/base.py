"""What all stores share: names, lists and reading of collections, and reports of indexing. Also what Chroma and Qdrant
share: the attributes of a collection, such as its model, content and version, and whether its chunks are withheld."""

from __future__ import annotations

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Generic, Self, TypeVar
from uuid import uuid4

import numpy as np

from ragfilter.basics.threads import SharedCache
from ragfilter.errors import CollectionMissing, InputError, StoreError
from ragfilter.model import Chunk, Space
from ragfilter.protocols import Catalogue, Collection, Vectors, Where
from ragfilter.stores import metadata
from ragfilter.stores.copies import StoredRow, read_catalogue, write_catalogue

T = TypeVar("T")

COUNTS_KEPT = 1000
NAME_RULE = "Use 3 to 512 letters, digits, dots, hyphens or underscores, with a letter or digit at both ends."


@dataclass(frozen=True, slots=True)
class CollectionInfo:
    """A collection in a list. `embedder` is empty if unknown; `incomplete` says why chunks are missing, or is empty."""

    name: str
    count: int
    space: Space
    embedder: str
    ours: bool
    incomplete: str

    @property
    def complete(self) -> bool:
        return not self.incomplete


@dataclass(frozen=True, slots=True)
class Opening:
    """How to open a collection. `folder` is a path, the URL of a server, the address of a database, or empty for the
    workspace's own store. An empty `embedder` means the model that the collection itself names. Nothing in the
    collection is changed unless `writable` is set. `columns` (by field) and `metric` apply to a table."""

    folder: str = ""
    embedder: str = ""
    writable: bool = False
    columns: Mapping[str, str] = field(default_factory=dict)
    metric: str = ""


class Subset:
    """A view of a collection with only some of its chunks."""

    def __init__(self, whole: Collection, ids: Sequence[str]) -> None:
        self._whole, self._ids = whole, dict.fromkeys(ids)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._whole, name)

    def snapshot(self) -> Subset:
        return self

    def nearest(
        self, vector: Vectors, n: int, *, ids: Sequence[str] | None = None, where: Where | None = None
    ) -> list[tuple[str, float]]:
        among = list(self._ids) if ids is None else [i for i in ids if i in self._ids]
        return self._whole.nearest(vector, n, ids=among, where=where)

    def catalogue(self) -> Mapping[str, Chunk] | None:
        known = self._whole.catalogue()
        return known and {i: known[i] for i in self._ids if i in known}


def check_name(name: str) -> None:
    """Raise InputError if `name` cannot name a collection, since Chroma would refuse it."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{1,510}[A-Za-z0-9]", name):
        raise InputError(f"{name!r} cannot be the name of a collection.", remedy=NAME_RULE)


@dataclass(frozen=True, slots=True)
class IndexReport:
    """The result of an indexing run. `total` counts the chunks in the collection afterwards, `embedded` the texts that
    the model embedded, and `not_in_source` the chunks that are only from earlier runs."""

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
    """A named collection with rules and vectors by chunk id. `nearest` takes a vector of shape (dimension,) or (1,
    dimension), and raises StoreError if it is not finite or has the wrong dimension."""

    most_catalogued = inf

    def __init__(self, store: CollectionStore[Any], name: str, pinned: Any = None) -> None:
        self._store = store
        self._name = name
        self._pinned = pinned

    @property
    def name(self) -> str:
        return self._name

    @abstractmethod
    def known_chunks(self, ids: Sequence[str]) -> Iterable[Chunk]:
        """The complete chunks with these ids; unknown ids are left out."""

    @abstractmethod
    def known_vectors(self, ids: Sequence[str]) -> Iterable[tuple[str, Vectors]]:
        """The vectors of these chunks by id; unknown ids are left out."""

    @abstractmethod
    def _read_entries(self, ids: Sequence[str] | None) -> Iterable[tuple[str, Chunk]]:
        """The catalogue entries of the known ones among these chunks, or of all chunks."""

    @property
    @abstractmethod
    def embedder(self) -> str:
        """The embedding model that made the vectors; empty if it is unknown."""

    @property
    @abstractmethod
    def ours(self) -> bool:
        """Whether ragfilter made it."""

    def raw(self) -> Any:
        """The store's own object for the collection."""
        return self._pinned if self._pinned is not None else self._store.look_up(self._name)

    def snapshot(self) -> Self:
        """A copy pinned for one query, so that the collection is not looked up again."""
        return self if self._pinned is not None else type(self)(self._store, self._name, self.raw())

    def info(self) -> CollectionInfo:
        now = self.snapshot()
        return CollectionInfo(self._name, now.count(), now.space, now.embedder, now.ours, now.incomplete)

    def chunks(self, ids: Sequence[str]) -> dict[str, Chunk]:
        by_id = {chunk.id: chunk for chunk in self.known_chunks(ids)}
        return {i: by_id[i] for i in ids if i in by_id}

    def rule(self, chunk_id: str) -> str | None:
        rules = self.rules([chunk_id])
        self.check_known([chunk_id], rules)
        return rules[chunk_id]

    def vectors(self, ids: Sequence[str]) -> Vectors:
        """The vectors of these chunks as rows. Raises StoreError if one is unknown."""
        by_id = dict(self.known_vectors(ids))
        self.check_known(ids, by_id)
        return np.array([by_id[i] for i in ids], dtype=np.float32)

    def catalogue(self) -> Catalogue | None:
        """Every chunk by id without text; None if the collection is too large for that."""
        # Foreign collections always get one, because conditions on arbitrary metadata cannot be checked by the store.
        most = min(self._store.catalogue_limit, self.most_catalogued)
        return None if self.ours and self._count_of_version() > most else self.entries()

    def entries(self) -> Catalogue:
        """Every chunk by id without text, whatever their number; cached until the version changes."""
        version = self.version
        known_version, known = self._store.catalogues.get(self._name, ("", None))
        if known is not None and known_version == version:
            return known
        # Cached under the version before the read, so that a concurrent write causes another read.
        file = self._store.catalogue_file(self._name)
        entries = None if file is None else read_catalogue(file, version)
        if entries is None:
            entries = Catalogue(dict(self._read_entries(None)))
            if file is not None:
                write_catalogue(file, version, entries)
        self._store.catalogues[self._name] = (version, entries)
        return entries

    def rules(self, ids: Sequence[str]) -> dict[str, str | None]:
        """The rule texts of these chunks; unknown ids are left out."""
        return {i: entry.rule for i, entry in self._read_entries(ids)}

    def check_not_empty(self) -> None:
        """Raise CollectionMissing if it has no chunks."""
        if not self.count():
            message = f"The collection {self._name!r} is empty."
            if not self.ours:
                raise CollectionMissing(message, remedy="Fill it first.")
            raise CollectionMissing(message, remedy="Index chunks into it.", action="index")

    def check_writable(self) -> None:
        """Raise StoreError if it is foreign, and changes are not allowed."""
        if not self.ours and not self._store.opening(self._name).writable:
            message = f"Collection {self._name!r} was not made by ragfilter and is open read-only."
            raise StoreError(message, remedy="Allow changes to it on the Collections page.", action="writable")

    def check_known(self, ids: Iterable[str], known: Iterable[str]) -> None:
        """Raise StoreError if one of these chunks is not in `known`."""
        known_ids = set(known)
        for chunk_id in ids:
            if chunk_id not in known_ids:
                message = f"Collection {self._name!r} has no chunk {chunk_id!r}."
                raise StoreError(message, remedy="It may have been removed; run the query again.")

    def _count_of_version(self) -> int:
        """The number of chunks in this version of our own collection; counted once."""
        return self._store.counts.of((self._name, self.version), self.count)


C = TypeVar("C", bound=ChunkedCollection)


class CollectionStore(ABC, Generic[C]):
    """Collections by name, and their caches. Raises StoreError."""

    kind: type[C]

    def __init__(self) -> None:
        self.catalogue_limit = inf
        """Searches use no catalogue if one of our collections has more chunks than this."""
        self.opening: Callable[[str], Opening] = lambda name: Opening()
        """How to open a foreign collection."""
        self.catalogues: dict[Any, tuple[Any, Catalogue]] = {}
        """By collection, with the version to which they belong."""
        self.counts: SharedCache[int] = SharedCache(COUNTS_KEPT)

    @abstractmethod
    def names(self) -> list[str]:
        """The names of all collections."""

    @abstractmethod
    def look_up(self, name: str) -> Any:
        """The store's own object for a collection. Raises CollectionMissing."""

    def collections(self) -> tuple[CollectionInfo, ...]:
        """Every collection, by name."""
        infos = []
        for name in sorted(self.names()):
            # It may have been removed in the meantime.
            with suppress(CollectionMissing):
                infos.append(self.collection(name).info())
        return tuple(infos)

    def collection(self, name: str, *, embedder: str = "") -> C:
        """The collection called `name`. Raises CollectionMissing, and StoreError if `embedder` is not the model that
        made the collection, since their vectors are not comparable."""
        collection = self.kind(self, name)
        check_embedder(name, collection.embedder, embedder)
        return collection

    def catalogue_file(self, name: str) -> Path | None:
        """The file that stores a collection's catalogue while the store is closed, if any."""
        return None


def pages(items: Sequence[T], size: int) -> Iterator[list[T]]:
    """Split `items` into lists of this size."""
    return (list(items[start : start + size]) for start in range(0, len(items), size))


def query_vector(vector: Vectors, dimension: int = 0) -> Vectors:
    """Reshape a question's vector from (dimension,) or (1, dimension) to (dimension,). Raises StoreError if it is not
    finite, which stores answer with arbitrary chunks, or does not have the `dimension`, if that is known."""
    query = np.asarray(vector, dtype=np.float32)
    query = query[0] if query.ndim == 2 and query.shape[0] == 1 else query
    if query.ndim != 1 or not np.isfinite(query).all():
        message = "The embedding model returned an invalid vector (NaN or infinity)."
        raise StoreError(message, remedy="Rephrase the question, or check the embedding model.")
    if dimension and len(query) != dimension:
        message = f"The question's vector has {len(query)} dimensions, but chunks have {dimension}."
        raise StoreError(message, remedy="Check that the collection was indexed with the embedding model now in use.")
    return query


def check_embedder(name: str, made_with: str, embedder: str) -> None:
    """Raise StoreError if `embedder` is not the model that made a collection, since their vectors
    are not comparable. Does nothing if either name is empty, that is, unknown."""
    if embedder and made_with and embedder != made_with:
        message = f"Collection {name!r} was indexed with {made_with}, not with {embedder}."
        raise StoreError(message, remedy=f"Use {made_with}, or replace the collection.", action="replace")


INDEX_AGAIN = "Index the same source again, unless that is still running."
FOUND_AGAIN = "Rebuild the collection, or index the same source again: nothing is re-embedded."

FORMAT = "ragfilter:format"
EMBEDDER = "ragfilter:embedder"
CONTENT = "ragfilter:content"
WITHHELD = "ragfilter:withheld"
VERSION = "ragfilter:version"
"""The attributes of our own collections."""

CHUNKS_KEPT = 5_000


class VersionedCollection(ChunkedCollection):
    """One collection. Each call looks it up by name, so it survives re-indexing."""

    _store: VersionedStore[Any]

    @property
    @abstractmethod
    def attributes(self) -> Mapping[str, Any]:
        """Its attributes, including ones that other programs set."""

    @abstractmethod
    def write(self, batch: Sequence[StoredRow]) -> None:
        """Store chunks with their vectors. Replaces chunks with the same id, with all their metadata."""

    @abstractmethod
    def _read(self, ids: Sequence[str] | None) -> Iterator[tuple[str, metadata.Metadata | None]]:
        """The metadata of the known ones among these chunks, or of all chunks."""

    @abstractmethod
    def _put_rules(self, rules: Mapping[str, str | None]) -> None:
        """Replace the rules of existing chunks."""

    def _lost(self) -> frozenset[str]:
        """The ids that no query can find."""
        return frozenset()

    @property
    def embedder(self) -> str:
        return self._attribute(EMBEDDER)

    @property
    def ours(self) -> bool:
        return FORMAT in self.attributes

    @property
    def content(self) -> str:
        """The fingerprint of the indexed content; empty until indexing is complete."""
        return self._attribute(CONTENT)

    @property
    def version(self) -> str:
        return self._attribute(VERSION)

    @property
    def withheld(self) -> bool:
        """Whether it returns no chunks because their clearances are being changed."""
        return bool(self._attribute(WITHHELD))

    @property
    def incomplete(self) -> str:
        """Why a query may miss chunks, and what to do about it; empty if none are missing."""
        now = self.snapshot()
        if now.withheld:
            return f"{self._withheld()} {INDEX_AGAIN}"
        if now.ours and not now.content:
            reason = "it is being indexed, or its indexing was interrupted"
            return f"Collection {self._name!r} is incomplete: {reason}. {INDEX_AGAIN}"
        # Empty sources are never indexed.
        if now.ours and not now._count_of_version():
            return f"{self._emptied()} {FOUND_AGAIN}"
        lost = now._lost()
        if not lost:
            return ""
        count = now.count()
        reason = f"only {count - len(lost):,} of its {count:,} chunks can be found"
        remedy = FOUND_AGAIN if now.ours else "Create it again."
        return f"Collection {self._name!r} is damaged: {reason}. {remedy}"

    def check_not_empty(self) -> None:
        """Raise CollectionMissing if it has no chunks, and StoreError if it has lost them."""
        now = self.snapshot()
        if now.count():
            return
        if now.content:
            raise StoreError(self._emptied(), remedy=FOUND_AGAIN, action="rebuild")
        super().check_not_empty()

    def set_rules(self, rules: Mapping[str, str | None]) -> None:
        self.check_writable()
        with self._store.changing(self._name):
            # Refuse unknown chunks, since the store would silently ignore them.
            known = self.rules(list(rules))
            self.check_known(rules, known)
            before = self.version
            self._put_rules(rules)
            self.touch()
            self._renew_entries(list(rules), before)

    def touch(self) -> None:
        """Give the collection a new version, since its content may have changed."""
        self._store.set_attributes(self._name, {})

    def set_content(self, fingerprint: str) -> None:
        """Record the fingerprint of the content; "" marks the collection as incomplete. Once it is
        complete, withheld chunks are returned again."""
        done = {WITHHELD: ""} if fingerprint else {}
        self._store.set_attributes(self._name, {CONTENT: fingerprint, **done})

    def withhold(self) -> None:
        """Withhold all chunks until indexing is complete, because clearances are about to change.
        From now on, every read raises StoreError, in this and any other process."""
        self._store.set_attributes(self._name, {WITHHELD: "yes"})

    def raw(self) -> Any:
        if self._pinned is not None:
            return self._pinned
        looked_up = self._store.looked_up
        raw = looked_up.get(self._name) or self._store.look_up(self._name)
        if not self._store.shared:
            looked_up[self._name] = raw
        return raw

    def _readable(self) -> Any:
        now = self.snapshot()
        if now.withheld:
            raise StoreError(self._withheld(), remedy=INDEX_AGAIN, action="finish")
        return now.raw()

    def _attribute(self, key: str) -> str:
        return str(self.attributes.get(key, ""))

    def _withheld(self) -> str:
        return f"Collection {self._name!r} is closed to queries: a change of its clearances has not finished."

    def _emptied(self) -> str:
        return f"Collection {self._name!r} is damaged: its chunks are lost."

    def _renew_entries(self, ids: Sequence[str], before: str) -> None:
        # If nobody else writes, the new entries are enough; reading all takes a second or two for
        # 100,000 chunks. Only under the write lock, so that no other edit intervenes.
        version, known = self._store.catalogues.get(self._name, ("", Catalogue()))
        if self._store.shared or version != before:
            return
        entries = Catalogue({**known, **dict(self._read_entries(ids))})
        self._store.catalogues[self._name] = (self.version, entries)
        self._store.unwritten.add(self._name)

    def _read_entries(self, ids: Sequence[str] | None) -> Iterator[tuple[str, Chunk]]:
        ours = self.ours
        return ((i, metadata.to_entry(i, fields, ours=ours)) for i, fields in self._read(ids))


V = TypeVar("V", bound=VersionedCollection)


class VersionedStore(CollectionStore[V]):
    """Collections with attributes. Thread-safe within one process. Raises StoreError."""

    def __init__(self, *, where: str, shared: bool) -> None:
        """`where` names the store in messages. `shared`: other processes may write to it too."""
        super().__init__()
        self.where = where
        self.shared = shared
        self._changing = threading.RLock()
        self.chunks: SharedCache[Chunk] = SharedCache(CHUNKS_KEPT)
        """Complete chunks by collection version and id, since questions share many of them."""
        self.looked_up: dict[str, Any] = {}
        """The store's own objects since the last write, if nobody else writes. Each write starts a
        new dictionary, so that objects read before it are not used after it."""
        self.unwritten: set[str] = set()
        """Collections whose catalogue in memory is newer than its file."""
        self.replaced: set[str] = set()
        """The versions of collections that this process has replaced."""

    @contextmanager
    def changing(self, name: str) -> Iterator[None]:
        """A context for every write to the collection `name`, one at a time."""
        with self._changing:
            try:
                yield
            finally:
                self.looked_up = {}

    @abstractmethod
    def set_attributes(self, name: str, values: Mapping[str, str]) -> None:
        """Change the attributes of a collection, and give it a new version."""

    @abstractmethod
    def rename(self, name: str, new: str) -> None:
        """Rename a collection. Raises CollectionMissing."""

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def make(self, name: str, attributes: Mapping[str, Any]) -> None:
        """Make an empty collection."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a collection. Raises CollectionMissing."""

    def collections(self) -> tuple[CollectionInfo, ...]:
        """Every collection by name, looked up anew, since a caller's own code may change them."""
        self.looked_up = {}
        return super().collections()

    def outdated(self, version: str) -> bool:
        """Whether this process has changed a collection since this version. Does not query the store."""
        return not self.replaced.isdisjoint(filter(None, version.split(":")))

    def create(self, name: str, *, embedder: str, withheld: bool = False) -> V:
        """Create an empty collection, marked as ours and incomplete. Raises InputError for an invalid name."""
        check_name(name)
        attributes: dict[str, Any] = {FORMAT: 1, EMBEDDER: embedder, VERSION: new_version()}
        with self.changing(name):
            self.make(name, attributes | ({WITHHELD: "yes"} if withheld else {}))
        return self.kind(self, name)

    def check_ours(self, name: str) -> None:
        """Raise StoreError if a collection `name` exists that ragfilter did not make."""
        with suppress(CollectionMissing):
            if not self.collection(name).ours:
                message = f"Collection {name!r} was not made by ragfilter, so it is not changed."
                raise StoreError(message, remedy="Choose another name.")

    def recreate(self, name: str, *, embedder: str) -> V:
        """Replace the collection `name` with an empty one, which is withheld if the old one was. Raises StoreError if
        ragfilter did not make it: on a server, another may have appeared."""
        self.check_ours(name)
        withheld = False
        with suppress(CollectionMissing):
            withheld = self.collection(name).withheld
        self.delete(name)
        return self.create(name, embedder=embedder, withheld=withheld)

    def forget(self, name: str) -> None:
        """Clear the caches of a collection that no longer exists."""
        self.catalogues.pop(name, None)
        if (file := self.catalogue_file(name)) is not None:
            file.unlink(missing_ok=True)

    def delete(self, name: str) -> None:
        """Delete a collection if it exists."""
        with suppress(CollectionMissing), self.changing(name):
            self.replaced.add(self.kind(self, name).version.partition(":")[0])
            self.remove(name)
        self.forget(name)


def new_version() -> str:
    """Make a version that no collection has had before."""
    return uuid4().hex
