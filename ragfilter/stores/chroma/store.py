"""Chroma as a store of collections. Source: docs/design.md#chroma."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, cast

from ragfilter.stores.chroma.collection import ChromaCollection
from ragfilter.stores.chroma.connection import Connection, guard, open_folder, open_server
from ragfilter.text.urls import shown

# Wide pools need a wide search: on 30,000 vectors in 600 clusters, the recall of the nearest 200 is
# 0.80 with Chroma's default of 100 and 0.97 with this, for 4 ms more a query. Set when a collection
# is made, because a later change acts only after the store is opened again.
HNSW = {"space": "l2", "ef_search": 1000}


class ChromaStore(Connection[ChromaCollection]):
    """The collections of one Chroma client."""

    kind = ChromaCollection

    @classmethod
    def folder(cls, folder: Path, *, shared: bool = False) -> ChromaStore:
        """The embedded store in `folder`. The caller holds the workspace lock, or the store is
        `shared` with its owner."""
        return cls(open_folder(folder), where=str(folder), shared=shared)

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
