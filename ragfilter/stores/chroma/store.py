"""Chroma as a store of collections. Source: docs/design.md#chroma."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from ragfilter.errors import CollectionMissing, StoreError
from ragfilter.stores.chroma.collection import (
    EMBEDDER,
    FORMAT,
    WITHHELD,
    ChromaCollection,
)
from ragfilter.stores.chroma.connection import (
    VERSION,
    Connection,
    Server,
    guard,
    new_version,
    open_folder,
    open_server,
)
from ragfilter.stores.chunked import check_embedder
from ragfilter.stores.info import CollectionInfo, check_name
from ragfilter.text.urls import shown

__all__ = ["ChromaCollection", "ChromaStore", "CollectionInfo", "check_name"]

# Wide pools need a wide search: on 30,000 vectors in 600 clusters, the recall of the nearest 200 is
# 0.80 with Chroma's default of 100 and 0.97 with this, for 4 ms more a query. Set when a collection
# is made, because a later change acts only after the store is opened again.
HNSW = {"space": "l2", "ef_search": 1000}


class ChromaStore(Connection):
    """The collections of one Chroma client. Thread-safe within one process. Raises StoreError."""

    @classmethod
    def folder(cls, folder: Path, *, shared: bool = False) -> ChromaStore:
        """The embedded store in `folder`. The caller holds the workspace lock, or the store is
        `shared` with its owner."""
        return cls(open_folder(folder), where=str(folder), shared=shared)

    @classmethod
    def server(cls, server: Server) -> ChromaStore:
        """The store of a Chroma server. Raises InputError, StoreUnavailable."""
        return cls(open_server(server), where=shown(server.url), shared=True)

    def collections(self) -> tuple[CollectionInfo, ...]:
        """Every collection, by name, as they are now: a caller's own code may have changed them."""
        self.looked_up = {}
        with guard(self.where):
            names = sorted(raw.name for raw in self.client.list_collections())
        infos = []
        for name in names:
            # It may have been removed since.
            with suppress(CollectionMissing):
                infos.append(self.collection(name).info())
        return tuple(infos)

    def collection(self, name: str, *, embedder: str = "") -> ChromaCollection:
        """The collection called `name`.

        Raises CollectionMissing, and StoreError if `embedder` is not the model with which the
        collection was made, whose vectors would mean something else.
        """
        collection = ChromaCollection(self, name)
        made_with = collection.embedder
        check_embedder(name, made_with, embedder)
        return collection

    def outdated(self, version: str) -> bool:
        """Whether this process has changed a collection since it had this version. Does not ask the
        store."""
        return not self.replaced.isdisjoint(filter(None, version.split(":")))

    def create(self, name: str, *, embedder: str, withheld: bool = False) -> ChromaCollection:
        """Create an empty collection of our own, marked as incomplete. Raises InputError for an
        invalid name."""
        check_name(name)
        metadata: dict[str, str | int] = {FORMAT: 1, EMBEDDER: embedder, VERSION: new_version()}
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
