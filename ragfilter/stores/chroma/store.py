"""Chroma as a store of collections. Source: docs/design.md#chroma."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from chromadb.api import ClientAPI
from chromadb.api.models.Collection import Collection as RawCollection
from chromadb.errors import InternalError

from ragfilter.basics.shelf import Shelf
from ragfilter.errors import CollectionMissing, InputError, StoreError
from ragfilter.model import Chunk
from ragfilter.protocols import Catalogue
from ragfilter.stores.chroma import insides
from ragfilter.stores.chroma.catalogue_file import write_catalogue
from ragfilter.stores.chroma.client import (
    Server,
    guard,
    make_sure_of_room,
    open_folder,
    open_server,
)
from ragfilter.stores.chroma.collection import ChromaCollection
from ragfilter.stores.chroma.marks import (
    EMBEDDER,
    FORMAT,
    VERSION,
    WITHHELD,
    CollectionInfo,
    new_token,
)
from ragfilter.text.urls import shown

__all__ = ["ChromaCollection", "ChromaStore", "CollectionInfo", "check_name"]

# Wide pools need a wide search: on 30,000 vectors in 600 clusters, the recall of the nearest 200 is
# 0.80 with Chroma's default of 100 and 0.97 with this, for 4 ms more a query. Set when a collection
# is made, because a later change acts only after the store is opened again.
HNSW = {"space": "l2", "ef_search": 1000}

CHUNKS_KEPT = 5_000

NAME_RULE = (
    "Use 3 to 512 letters, digits, dots, hyphens or underscores, "
    "with a letter or digit at both ends."
)


class ChromaStore:
    """The collections of one Chroma client. Thread-safe within one process. Raises StoreError."""

    def __init__(self, client: ClientAPI, *, where: str, shared: bool) -> None:
        """`where` names the store in messages. `shared`: other processes may write to it too."""
        self._client = client
        self._opening = threading.Lock()
        self.where = where
        self.shared = shared
        self.writing = threading.RLock()
        self.catalogue_limit = inf
        """Searches use no catalogue for our own collections with more chunks than this."""
        self.catalogues: dict[str, tuple[str, Catalogue]] = {}
        self.chunks: Shelf[Chunk] = Shelf(CHUNKS_KEPT)
        """Whole chunks by version of their collection and id, since questions share many."""
        self.looked_up: dict[str, RawCollection] = {}
        """Chroma's own objects since the last write, if nobody else writes. Each write begins
        another dictionary, so that what was read before it is not found after it."""
        self.counts: dict[str, tuple[str, int]] = {}
        """How many chunks a version of a collection has."""
        self.unwritten: set[str] = set()
        """Collections whose catalogue in memory is newer than its file, because rules were
        edited."""
        self.replaced: set[str] = set()
        """The versions of collections that this process has replaced."""
        self.lost: dict[UUID, frozenset[str]] = {}
        self.writable: Callable[[str], bool] = lambda name: False
        """Whether a foreign collection may be changed."""
        self._failed: set[str] = set()

    @classmethod
    def folder(cls, folder: Path, *, shared: bool = False) -> ChromaStore:
        """The embedded store in `folder`. The caller holds the workspace lock, or the store is
        `shared` with its owner."""
        return cls(open_folder(folder), where=str(folder), shared=shared)

    @classmethod
    def server(cls, server: Server) -> ChromaStore:
        """The store of a Chroma server. Raises InputError, StoreUnavailable."""
        return cls(open_server(server), where=shown(server.url), shared=True)

    @property
    def client(self) -> ClientAPI:
        with self._opening:
            return self._client

    def collections(self) -> tuple[CollectionInfo, ...]:
        """Every collection, by name, as they are now: a caller's own code may have changed them."""
        self.looked_up = {}
        with guard(self.where):
            names = sorted(raw.name for raw in self.client.list_collections())
        found = []
        for name in names:
            # It may have been removed since.
            with suppress(CollectionMissing):
                found.append(self.collection(name).info())
        return tuple(found)

    def collection(self, name: str, *, embedder: str = "") -> ChromaCollection:
        """The collection called `name`.

        Raises CollectionMissing, and StoreError if `embedder` is not the model with which the
        collection was made, whose vectors would mean something else.
        """
        collection = ChromaCollection(self, name)
        made_with = collection.embedder
        if embedder and made_with and embedder != made_with:
            raise StoreError(
                f"Collection {name!r} was indexed with {made_with}, not with {embedder}.",
                remedy=f"Query it with {made_with}, or replace the collection.",
                action="replace",
            )
        return collection

    def outdated(self, version: str) -> bool:
        """Whether this process has changed a collection since it had this version. Does not ask the
        store."""
        return not self.replaced.isdisjoint(filter(None, version.split(":")))

    def create(self, name: str, *, embedder: str, withheld: bool = False) -> ChromaCollection:
        """Create an empty collection of our own, marked as incomplete. Raises InputError for an
        invalid name."""
        check_name(name)
        metadata: dict[str, str | int] = {FORMAT: 1, EMBEDDER: embedder, VERSION: new_token()}
        if withheld:
            metadata[WITHHELD] = "yes"
        with self.changing(name):
            self.client.create_collection(
                name,
                configuration={"hnsw": cast(Any, dict(HNSW))},
                metadata=metadata,
                embedding_function=None,
            )
        return ChromaCollection(self, name)

    def check_ours(self, name: str) -> None:
        """Raise StoreError if there is a collection `name` that ragfilter did not make."""
        with suppress(CollectionMissing):
            if not self.collection(name).ours:
                raise StoreError(
                    f"Collection {name!r} was not made by ragfilter and stays as it is.",
                    remedy="Choose another name.",
                )

    def renew(self, name: str, *, embedder: str) -> ChromaCollection:
        """Replace the collection `name` with an empty one, which is withheld if the old one was.

        Raises StoreError if ragfilter did not make it: on a server it may have appeared since.
        """
        self.check_ours(name)
        withheld = False
        with suppress(CollectionMissing):
            withheld = self.collection(name).withheld
        self.delete(name)
        return self.create(name, embedder=embedder, withheld=withheld)

    def rename(self, name: str, new: str) -> None:
        """Rename a collection. Raises CollectionMissing."""
        raw = self.collection(name).raw()
        with self.changing(name):
            raw.modify(name=new)
        self.forget(name)

    def forget(self, name: str) -> None:
        """Clear the caches of a collection that no longer exists."""
        self.catalogues.pop(name, None)
        if (file := self.catalogue_file(name)) is not None:
            file.unlink(missing_ok=True)

    def delete(self, name: str) -> None:
        """Remove a collection, if it exists."""
        with suppress(CollectionMissing), self.changing(name):
            raw = self.client.get_collection(name, embedding_function=None)
            self.client.delete_collection(name)
            self.replaced.add(str(raw.id))
        self.forget(name)

    @contextmanager
    def changing(self, name: str) -> Iterator[None]:
        """Wrap every write to the collection `name` in Chroma in this; one at a time."""
        with self.writing:
            self.settle()
            try:
                with guard(self.where):
                    yield
            except StoreError as error:
                if isinstance(error.__cause__, InternalError) and not self.shared:
                    self._failed.add(name)
                raise
            finally:
                self.looked_up = {}

    def settle(self) -> None:
        """Reopen the folder if a write failed, as on a full disk.

        Such a write may be in Chroma's log, which is applied when the folder is opened, and only
        then do reads return the truth. The next write of the old client may also wait forever.
        Raises StoreError if there is still no room; searches then continue with the old client.
        """
        with self.writing:
            if not self._failed:
                return
            make_sure_of_room(self.where)
            with self._opening:
                insides.close(self._client)
                self._client = open_folder(Path(self.where))
            self.catalogues.clear()
            self.looked_up = {}
            names, self._failed = self._failed, set()
            for name in names:
                with suppress(CollectionMissing):
                    self.collection(name).renew()

    def catalogue_file(self, name: str) -> Path | None:
        """The file that stores a collection's catalogue between openings; None if others write to
        the store too."""
        return None if self.shared else Path(self.where).with_name("catalogues") / f"{name}.parquet"

    def close(self) -> None:
        """Close the client. Catalogues changed by edits are written for the next opening."""
        try:
            for name in self.unwritten & self.catalogues.keys():
                if (file := self.catalogue_file(name)) is not None:
                    write_catalogue(file, *self.catalogues[name])
        finally:
            insides.close(self.client)


def check_name(name: str) -> None:
    """Raise InputError if Chroma would refuse `name` for a collection."""
    good = 3 <= len(name) <= 512 and all(c.isascii() and (c.isalnum() or c in "._-") for c in name)
    if not good or not (name[0].isalnum() and name[-1].isalnum()):
        raise InputError(f"{name!r} cannot be the name of a collection.", remedy=NAME_RULE)
