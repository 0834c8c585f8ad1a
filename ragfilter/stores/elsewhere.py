"""Which store has a collection: the workspace's own, or the foreign Chroma folder or server from
which it was opened."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from ragfilter.errors import CollectionMissing, InputError, StoreError
from ragfilter.protocols import Embedder
from ragfilter.stores import foreign
from ragfilter.stores.chroma.store import ChromaStore, CollectionInfo
from ragfilter.stores.foreign import SERVERS, ForeignCheck, Opening
from ragfilter.stores.workspace import Workspace
from ragfilter.text.urls import shown

log = logging.getLogger(__name__)


class Stores:
    """The stores of a workspace. Thread-safe. Raises InputError, StoreError."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._folders: dict[str, ChromaStore] = {}
        self._opening = threading.Lock()

    def opening(self, name: str) -> Opening:
        """How the collection `name` is opened."""
        return foreign.openings(self._workspace.path).get(name, Opening())

    def hint(self, name: str) -> str:
        """The embedding model that the collection `name` itself names; empty if it names none."""
        return foreign.hint(self.of(name), name)

    def embedder(self, name: str) -> str:
        """The embedding model with which the collection `name` was opened or made; empty if nothing
        says so, or if there is no such collection. One that the store has lost is known from our
        own copy."""
        opening = self.opening(name)
        try:
            return opening.embedder or self.at(opening.folder).collection(name).embedder
        except CollectionMissing:
            return self._copied_with(name)

    def of(self, name: str) -> ChromaStore:
        """The store that holds the collection `name`."""
        return self.at(self.opening(name).folder)

    def at(self, folder: str) -> ChromaStore:
        """The store in a Chroma folder or on a server; the workspace's own if `folder` is empty."""
        store = self._in(folder) if folder else self._workspace.store()
        # Checked each time, because another session may allow or forbid it.
        store.writable = lambda name: self.opening(name).writable
        return store

    def infos(self) -> tuple[CollectionInfo, ...]:
        """Every collection, by name. One whose folder is gone is logged and left out."""
        found = list(self._workspace.store().collections())
        for name, opening in foreign.openings(self._workspace.path).items():
            if opening.folder:
                try:
                    found.append(self.at(opening.folder).collection(name).info())
                except (InputError, StoreError) as error:
                    log.warning("the collection %s is left out: %s", name, error)
        return tuple(sorted(found, key=lambda info: info.name))

    def open(
        self, name: str, opening: Opening, embedder_called: Callable[[str], Embedder]
    ) -> tuple[ForeignCheck, ...]:
        """Register a foreign collection. Returns what works with it, and what needs more.

        Also raises ModelError. If it raises, nothing is registered.
        """
        folder = foreign.resolved(opening.folder) if opening.folder else ""
        if folder == str(self._workspace.chroma_dir):
            folder = ""
        store, own = self.at(folder), self._workspace.store()
        if folder and name in {info.name for info in own.collections()}:
            raise InputError(
                f"This workspace has a collection {name!r} already.",
                remedy="Rename that one first.",
            )
        other = foreign.openings(self._workspace.path).get(name)
        if other is not None and other.folder != folder:
            where = shown(other.folder) if other.folder.startswith(SERVERS) else other.folder
            raise InputError(
                f"A collection {name!r} from {where or 'this workspace'} is open.",
                remedy="Close that one first.",
            )
        if not folder and store.collection(name).info().ours:
            raise InputError(
                f"Collection {name!r} was made by ragfilter in this workspace.",
                remedy="Ask it as it is.",
            )
        model = opening.embedder or foreign.hint(store, name)
        if not model:
            raise InputError(
                f"Nothing says which embedding model made the vectors of {name!r}.",
                remedy="Specify it. Another model returns meaningless results, even if the "
                "dimensions match.",
            )
        found = foreign.check(store, name, embedder_called(model))
        foreign.keep(self._workspace.path, name, replace(opening, folder=folder, embedder=model))
        return found

    def forget(self, name: str) -> None:
        """Remove a foreign collection from the list; the collection itself is not changed. Raises
        InputError if it was not opened."""
        if name not in (opened := foreign.openings(self._workspace.path)):
            is_own = name in {info.name for info in self._workspace.store().collections()}
            listed = ", ".join(sorted(opened))
            raise InputError(
                f"Collection {name!r} was not opened from elsewhere."
                if is_own
                else f"There is no collection {name!r}.",
                remedy=f"Open from elsewhere: {listed}."
                if listed
                else "No collection is open from elsewhere.",
            )
        foreign.keep(self._workspace.path, name, None)

    def close(self) -> None:
        """Close the foreign stores."""
        for store in self._folders.values():
            store.close()
        self._folders.clear()

    def _copied_with(self, name: str) -> str:
        """The embedding model of our own copy of a collection; empty if there is none to be
        read."""
        # Imported here, since hardly anyone loses a collection.
        from ragfilter.stores import copies

        copy = None
        # Looked for among the copies, because a name from a link may be any path.
        if name in self._workspace.copied():
            with suppress(StoreError):
                copy = copies.read_summary(self._workspace.copy_path(name))
        return copy.embedder if copy else ""

    def _in(self, folder: str) -> ChromaStore:
        with self._opening:
            path = foreign.resolved(folder)
            if path not in self._folders:
                self._folders[path] = foreign.open_store(path)
            return self._folders[path]
