"""Open and search a workspace from your own code."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING

from ragfilter.engine.pipeline import search_and_filter
from ragfilter.library.filter import Filter, check_asked
from ragfilter.library.result import Result, to_result
from ragfilter.model import User
from ragfilter.settings.deployment import read_deployment
from ragfilter.settings.schema import Settings
from ragfilter.workbench import Workbench

if TYPE_CHECKING:
    from ragfilter.stores.workspace_files import StoredCollection


class OpenWorkspace(Workbench):
    """An open workspace that maps names to collections."""

    __slots__ = ()

    def __getitem__(self, name: str) -> OpenCollection:
        """The collection called `name`. Raises StoreError."""
        return OpenCollection(self.collection(name), self)

    def __iter__(self) -> Iterator[str]:
        """The names of the collections. Raises StoreError."""
        return iter(info.name for info in self.collections())


@dataclass(frozen=True, slots=True)
class OpenCollection:
    """A collection of an open workspace."""

    collection: StoredCollection
    bench: Workbench

    def __repr__(self) -> str:
        return f"<Collection: {self.collection.name}>"

    def search(self, query: str, flt: Filter | Settings | Path | str = "full", *, user: User | None = None) -> Result:
        """Search for `query`, and filter the hits.

        `flt` is a filter, or settings for one. If it has no reranker or LLM of its own, the workspace's are used.
        Chunks hidden from `user` are left out, whatever the settings say. Without a user, only public chunks are
        visible if the clearance layer is on, otherwise all are. Raises InputError, StoreError, ModelError."""
        started_ns = time_ns()
        query = check_asked(query, user)
        flt = flt if isinstance(flt, Filter) else Filter(flt)
        of_filter = flt.backends(self.collection, self.bench.query_embedder(self.collection))
        backends = replace(
            of_filter,
            make_reranker=of_filter.make_reranker or self.bench.reranker,
            chat=of_filter.chat or self.bench.chat,
            judgements=of_filter.judgements if of_filter.chat else self.bench.judgements,
            pruner=of_filter.pruner or self.bench.pruner,
        )
        return to_result(search_and_filter(query, flt.settings, backends, user), started_ns)

    async def asearch(
        self, query: str, flt: Filter | Settings | Path | str = "full", *, user: User | None = None
    ) -> Result:
        """Like `search`, but in a thread, for an event loop."""
        return await asyncio.to_thread(self.search, query, flt, user=user)


def open_workspace(folder: str | Path = "workspace") -> OpenWorkspace:
    """Open a workspace with its store and models. `folder` is a folder or the address of a
    PostgreSQL database; the environment configures the rest.

    Use it in a `with`: ``with open_workspace("workspace") as ws: ws["demo"].search(query)``. Only one process can open
    a folder; many can share a database. Raises WorkspaceLocked, StoreError, SettingsError."""
    return OpenWorkspace.open(read_deployment(data_dir=folder))
