"""Chroma as a store of collections, each behind two protocols: `Collection` and `RuleStore`.

Source: docs/design.md#distances, docs/design.md#clearance and docs/design.md#chroma, which also lists the undocumented
parts that are used, in tested releases only. Our own collections have unit vectors in the `l2` space (squared distance,
0..4) and `ragfilter:` keys in the collection's metadata. Other collections can be read too. Nothing is assumed about
their metadata, so conditions on them are checked in memory.

Chroma's HTTP client waits forever and raises `httpx` errors for a dead server. Here, every wait has a deadline.
Telemetry is off, and Chroma's own embedding functions are never built."""

from __future__ import annotations

import re
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, cast
from urllib.parse import SplitResult
from uuid import UUID

import numpy as np

from ragfilter.basics.threads import within
from ragfilter.errors import (
    CollectionMissing,
    InputError,
    RagfilterError,
    StoreError,
    StoreUnavailable,
    check_version,
    extra,
)
from ragfilter.model import Chunk, Space, by_distance
from ragfilter.protocols import Catalogue, Vectors, Where
from ragfilter.stores import metadata
from ragfilter.stores.base import VERSION, VersionedCollection, VersionedStore, new_version, pages, query_vector
from ragfilter.stores.copies import StoredRow, write_catalogue
from ragfilter.text.urls import basic_auth, shown, web_address

with extra("chroma"):
    import chromadb
    import httpx
    import packaging as packaging
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection as RawCollection
    from chromadb.api.shared_system_client import SharedSystemClient
    from chromadb.config import Settings as ChromaSettings
    from chromadb.errors import InternalError, InvalidArgumentError, InvalidDimensionException, NotFoundError

check_version("chromadb", ">=1.5.2,<1.6", extra="chroma")


DAMAGED = "If the store was changed or damaged, restore the collection from its own copy."
UNREADABLE = "Move that folder away and restore each collection from its own copy."
MISFIT = "Check that the collection was indexed with the embedding model now in use."
NO_SERVER = "Check that the Chroma server runs and that the URL is right."

CLOSED = "Open the workspace again."

ROOM = 1 << 20
"""Number of bytes to write as a test of the disk."""

_UNWRITABLE = re.compile("disk is full|no space|quota|too large|read-?only|permission denied|not permitted")
_ERRNO = re.compile(r"^\[Errno -?\d+\] ")


def open_folder(folder: Path) -> ClientAPI:
    """Open the embedded client on `folder`. The caller must hold the workspace lock. Raises StoreError."""
    settings = ChromaSettings(anonymized_telemetry=False)
    try:
        return chromadb.PersistentClient(str(folder), settings=settings)
    except BaseException as error:
        # Otherwise Chroma would return the failed system the next time.
        SharedSystemClient._identifier_to_system.pop(str(folder), None)
        if _is_interruption(error):
            raise
        what = f"The vector store in {folder} cannot be opened"
        raise _failure(what, error, str(folder), UNREADABLE) from error


@contextmanager
def guard(where: str) -> Iterator[None]:
    """Turn any error of Chroma inside the block into a StoreError. `where` names the store."""
    try:
        yield
    except RagfilterError:
        raise
    except (httpx.TimeoutException, TimeoutError) as error:
        raise StoreUnavailable(f"The Chroma server at {where} did not answer in time.", remedy=NO_SERVER) from error
    except httpx.HTTPError as error:
        message = f"The Chroma server at {where} cannot be reached: {_words(error)}."
        raise StoreUnavailable(message, remedy=NO_SERVER) from error
    except NotFoundError as error:
        message = f"The collection is not in {where} (any more): {_words(error)}."
        raise CollectionMissing(message, remedy="List the collections, or index it again.") from error
    except (InvalidArgumentError, InvalidDimensionException) as error:
        raise StoreError(f"Chroma refused: {_words(error)}.", remedy=MISFIT) from error
    except BaseException as error:
        if _is_interruption(error):
            raise
        if isinstance(error, AttributeError) and error.name == "bindings":
            raise StoreError(f"The vector store in {where} was closed.", remedy=CLOSED) from error
        raise _failure("Chroma failed", error, where, DAMAGED) from error


def unwritable(what: str, where: str) -> StoreError:
    return StoreError(
        f"{what}.",
        remedy=f"Free up space on the disk of {where}, or make it writable. Nothing there is "
        "damaged: do not move it away.",
    )


def _failure(what: str, error: BaseException, where: str, remedy: str) -> StoreError:
    """Make the error. For a folder, also check the disk, since Chroma rarely names that cause."""
    words = _words(error)
    if not _UNWRITABLE.search(words.lower()) and (reason := disk_refusal(Path(where))):
        words = f"{words} ({reason})"
    if _UNWRITABLE.search(words.lower()):
        return unwritable(f"{what}: {words}", where)
    return StoreError(f"{what}: {words}.", remedy=remedy, action="rebuild")


def disk_refusal(folder: Path) -> str:
    """The system's message if a file of one megabyte cannot be written in `folder`; "" if it can.
    Most of Chroma's errors do not say that a disk is full or read-only."""
    try:
        if folder.is_dir():
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(bytes(ROOM))
                file.flush()
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""


def _checked(url: str) -> SplitResult:
    parts = web_address(url)
    try:
        httpx.URL(shown(url))
    except httpx.InvalidURL:
        parts = None
    if parts is None:
        # The message does not repeat the URL, since the invalid part may be a password.
        raise InputError(
            "The URL of the Chroma server cannot be read.",
            remedy="Write it like http://127.0.0.1:8000 or http://user:password@host:8000. In the "
            "password, percent-encode everything but letters and digits.",
        )
    return parts


def _is_interruption(error: BaseException) -> bool:
    # A panic in Chroma's Rust core is a BaseException, but also a failure of the store.
    return not isinstance(error, Exception) and type(error).__name__ != "PanicException"


def _words(error: BaseException) -> str:
    text = " ".join(str(error).split())[:300].rstrip(".")
    if words := _ERRNO.sub("", text):
        return words if words == text else words[:1].lower() + words[1:]
    return type(error).__name__


# On 30,000 vectors in 600 clusters, the recall of the nearest 200 is 0.80 with Chroma's default of 100 and 0.97 with
# this, for 4 ms more per query. Set on creation, because a later change takes effect only after reopening.
HNSW = {"space": "l2", "ef_search": 1000}
PAYLOAD_PAGE = 5_000
IDS_PAGE = 50_000
ALL_CHECKED = 10_000
"""Up to this size of a collection, every chunk is looked up to find lost ones."""
SAMPLE, SAMPLES = 250, 4
"""How many chunks of a larger collection are looked up, and in how many places."""
WRITE_BATCH = 5_000
FEW_SOURCES = 20
"""Maximum number of files in the store's own condition; more are resolved to ids."""


def _can_push(where: Where) -> bool:
    """Whether Chroma can check the condition itself, in our own collections."""
    # A chunk without a source lacks this key, so no condition on it matches.
    sources = where.sources
    return sources is None or (0 < len(sources) <= FEW_SOURCES and "" not in sources)


def _condition(where: Where) -> dict[str, Any] | None:
    """`where` as Chroma's own filter; None if it admits everything."""
    parts: list[dict[str, Any]] = []
    if where.user is not None and not where.user.unrestricted:
        parts += [
            {"clearance": {"$gte": 0}},
            {"clearance": {"$lte": where.user.level}},
            {"department": {"$in": sorted({"", *where.user.departments})}},
        ]
    if where.sources is not None:
        parts.append({"source": {"$in": list(where.sources)}})
    if len(parts) < 2:
        return parts[0] if parts else None
    return {"$and": parts}


class ChromaCollection(VersionedCollection):
    """One collection of Chroma."""

    _store: ChromaStore

    @property
    def attributes(self) -> Mapping[str, Any]:
        return self.raw().metadata or {}

    @property
    def version(self) -> str:
        raw = self.raw()
        token = f"{raw.id}:{(raw.metadata or {}).get(VERSION, '')}"
        # Others can write to a foreign collection at any time; this detects at least additions and removals.
        return token if self.ours else f"{token}:{self.count()}"

    @property
    def space(self) -> Space:
        # `raw.configuration` would build the stored embedding function, which may be foreign code.
        configuration = self.raw().configuration_json
        index = configuration.get("hnsw") or configuration.get("spann") or {}
        return cast(Space, index.get("space", "l2"))

    def count(self) -> int:
        with guard(self._store.where):
            return int(self.raw().count())

    def nearest(
        self, vector: Vectors, n: int, *, ids: Sequence[str] | None = None, where: Where | None = None
    ) -> list[tuple[str, float]]:
        query = query_vector(vector)
        raw = self._readable()
        if n > PAYLOAD_PAGE:
            n = min(n, self.count())
        if n < 1:
            return []
        # Chroma refuses a condition or a list of ids that includes a chunk missing from its index.
        lost = self._lost()
        pushed = None
        if where is not None and ids is None and self.ours and _can_push(where) and not lost:
            pushed = _condition(where)
        elif where is not None or ids is not None:
            known: Mapping[str, Chunk] | None
            known = self.entries() if ids is None else self.catalogue()
            if known is None:
                known = dict(self._read_entries(ids))
            admits = metadata.admission(where or Where())
            candidate_ids = known if ids is None else dict.fromkeys(ids)
            ids = [i for i in candidate_ids if i in known and i not in lost and admits(known[i])]
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
            # A number that is not a valid level may meet Chroma's condition.
            admits = metadata.admission(where)
            seen = self.catalogue() or self.chunks([i for i, _ in hits])
            hits = [(i, distance) for i, distance in hits if i in seen and admits(seen[i])]
        return sorted(hits, key=by_distance)[:n]

    def known_chunks(self, ids: Sequence[str]) -> Iterator[Chunk]:
        self._readable()
        ours = self.ours
        version, read = self.version if ours else "", self._store.chunks
        earlier = {i: chunk for i in ids if (chunk := read.get((version, i)))} if ours else {}
        yield from earlier.values()
        for i, text, fields in self._get([i for i in ids if i not in earlier], "documents", "metadatas"):
            chunk = metadata.to_chunk(i, fields, text, ours=ours)
            yield read.put((version, i), chunk) if ours else chunk

    def known_vectors(self, ids: Sequence[str]) -> Iterator[tuple[str, Vectors]]:
        return cast(Iterator[tuple[str, Vectors]], self._get(ids, "embeddings"))

    def rules(self, ids: Sequence[str]) -> dict[str, str | None]:
        self._store.reopen_after_failure()
        return super().rules(ids)

    def write(self, batch: Sequence[StoredRow]) -> None:
        for page in pages(batch, WRITE_BATCH):
            metadatas = [
                {**metadata.NO_METADATA, **metadata.to_metadata(row.chunk, clearance_as_given=row.clearance_as_given)}
                for row in page
            ]
            with self._store.changing(self._name):
                self.raw().upsert(
                    ids=[row.chunk.id for row in page],
                    embeddings=np.stack([row.vector for row in page]),
                    documents=[row.chunk.text for row in page],
                    metadatas=cast(Any, metadatas),
                )
                self.touch()

    def _lost(self) -> frozenset[str]:
        """Look up once. If the folder of an index is gone, Chroma silently starts a new index."""
        raw = self.raw()
        if raw.id not in self._store.lost:
            self._store.lost[raw.id] = frozenset(self._read_lost(raw))
        return self._store.lost[raw.id]

    def _read_lost(self, raw: RawCollection) -> set[str]:
        probe: Any = np.eye(1, raw._model.dimension or 1, dtype=np.float32)
        with guard(self._store.where):
            # Lost chunks are older than found ones, so a sample of a large collection is enough.
            count = raw.count()
            size, step = (SAMPLE, count // SAMPLES) if count > ALL_CHECKED else (None, ALL_CHECKED)
            pages = (raw.get(include=[], limit=size, offset=start)["ids"] for start in range(0, count, step))
            try:
                if ids := list(chain.from_iterable(pages)):
                    raw.query(query_embeddings=probe, n_results=1, ids=ids, include=[])
            except InternalError:
                ids = raw.get(include=[])["ids"]
                found_ids = raw.query(query_embeddings=probe, n_results=len(ids), include=[])["ids"]
                return set(ids).difference(found_ids[0])
        return set()

    def _put_rules(self, rules: Mapping[str, str | None]) -> None:
        raw = self.raw()
        for page in pages(list(rules), WRITE_BATCH):
            metadatas: Any = [{metadata.RULE_KEY: rules[i] or None} for i in page]
            raw.update(ids=page, metadatas=metadatas)

    def _read(self, ids: Sequence[str] | None) -> Iterator[tuple[str, metadata.Metadata | None]]:
        if ids is not None:
            yield from cast(Iterator[Any], self._get(ids, "metadatas"))
            return
        raw = self._readable()
        for offset in range(0, self.count() + 1, PAYLOAD_PAGE):
            with guard(self._store.where):
                page = raw.get(limit=PAYLOAD_PAGE, offset=offset, include=["metadatas"])
            yield from zip(page["ids"], cast(Any, page["metadatas"]), strict=True)

    def _get(self, ids: Sequence[str], *fields: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the id of each known chunk, followed by these fields."""
        raw = self._readable()
        for page in pages(list(dict.fromkeys(ids)), PAYLOAD_PAGE):
            with guard(self._store.where):
                got: Any = raw.get(ids=page, include=list(fields))
            yield from zip(got["ids"], *(got[each] for each in fields), strict=True)


class ChromaStore(VersionedStore[ChromaCollection]):
    """The collections of one Chroma client, which is reopened after a failed write."""

    kind = ChromaCollection

    def __init__(self, client: ClientAPI, *, where: str, shared: bool) -> None:
        super().__init__(where=where, shared=shared)
        self._client = client
        self._opening = threading.Lock()
        self._failed: set[str] = set()
        self.lost: dict[UUID, frozenset[str]] = {}

    @classmethod
    def folder(cls, folder: Path, *, shared: bool = False) -> ChromaStore:
        """The embedded store in `folder`. The caller must hold the workspace lock, unless it is `shared`."""
        return cls(open_folder(folder), where=str(folder), shared=shared)

    @property
    def client(self) -> ClientAPI:
        with self._opening:
            return self._client

    def look_up(self, name: str) -> RawCollection:
        """Chroma's own object for a collection. Raises CollectionMissing."""
        with guard(self.where):
            raw = self.client.get_collection(name, embedding_function=None)
        # A write would build the embedding function that the stored schema names.
        raw._model.serialized_schema = None
        return raw

    def set_attributes(self, name: str, values: Mapping[str, str]) -> None:
        """Change the metadata of a collection, and give it a new version."""
        with self.changing(name):
            # A new object, since a running query relies on the attributes that it has read.
            raw = self.look_up(name)
            # Chroma refuses a change that names the space, even if it is the same.
            attributes = {k: v for k, v in (raw.metadata or {}).items() if not k.startswith("hnsw:")}
            raw.modify(metadata={**attributes, **values, VERSION: new_version()})
            self.replaced.add(str(attributes.get(VERSION, "")))

    @contextmanager
    def changing(self, name: str) -> Iterator[None]:
        with super().changing(name):
            self.reopen_after_failure()
            try:
                with guard(self.where):
                    yield
            except StoreError as error:
                if isinstance(error.__cause__, InternalError) and not self.shared:
                    self._failed.add(name)
                raise

    def reopen_after_failure(self) -> None:
        """Reopen the folder if a write failed, for example on a full disk. Such a write may be in Chroma's log, which
        is only applied when the folder is opened; until then, reads are wrong. The old client's next write may also
        wait forever. Raises StoreError if there is still no room; searches then continue with the old client."""
        with self._changing:
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
                    self.set_attributes(name, {})

    def catalogue_file(self, name: str) -> Path | None:
        """The file; None if others also write to the store."""
        return None if self.shared else Path(self.where).with_name("catalogues") / f"{name}.parquet"

    def close(self) -> None:
        """Close the client, and write catalogues changed by edits for the next time."""
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

    def make(self, name: str, attributes: Mapping[str, Any]) -> None:
        configuration: Any = {"hnsw": dict(HNSW)}
        self.client.create_collection(
            name, configuration=configuration, metadata=dict(attributes), embedding_function=None
        )

    def remove(self, name: str) -> None:
        self.client.delete_collection(name)


@dataclass(frozen=True, slots=True)
class Server:
    """A Chroma server. User and password in the URL are sent as basic authentication and never
    shown. No single wait for the server exceeds `timeout_s` seconds."""

    url: str = field(repr=False)
    timeout_s: float = 30.0
    shared: ClassVar[bool] = True

    def open(self) -> ChromaStore:
        """Open the store. Raises InputError for an unusable URL, and StoreUnavailable if no Chroma server answers."""
        headers, url = dict(basic_auth(_checked(self.url))), shown(self.url)
        settings, ssl = ChromaSettings(anonymized_telemetry=False), url.startswith("https://")
        with guard(url):
            # This fails fast and frees its socket, unlike the client below, which is built in a thread.
            httpx.get(f"{url}/api/v2/heartbeat", timeout=self.timeout_s, headers=headers).raise_for_status()
            # Pass the whole URL as the host, so that Chroma keeps its path, which a proxy may need.
            client = within(
                self.timeout_s, lambda: chromadb.HttpClient(host=url, ssl=ssl, headers=headers, settings=settings)
            )
        # Without this, it would wait forever.
        client._server._session.timeout = httpx.Timeout(self.timeout_s)  # type: ignore[attr-defined]
        return ChromaStore(client, where=url, shared=True)
