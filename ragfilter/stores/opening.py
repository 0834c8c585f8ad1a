"""Opens the store of each collection in a workspace: its own store, or a foreign collection's.

A foreign collection, which ragfilter did not make, can be in the workspace's own store, in another Chroma folder, on a
Chroma server, or a table with vectors in PostgreSQL. A file says how to open each, and whether changes are allowed;
otherwise nothing is written to it."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import urlsplit

import numpy as np

from ragfilter.basics.files import TextFiles, kind
from ragfilter.errors import CollectionMissing, InputError, StoreError
from ragfilter.protocols import Embedder
from ragfilter.settings.deployment import is_address
from ragfilter.stores.base import CollectionInfo, Opening
from ragfilter.stores.chroma import ChromaCollection, ChromaStore, Server
from ragfilter.stores.workspace_files import Workspace
from ragfilter.text.numbers import chunk_count
from ragfilter.text.urls import UNSHOWN, shown, web_address

if TYPE_CHECKING:
    from ragfilter.stores.postgres.foreign import TableStore
    from ragfilter.stores.workspace_files import Store, StoredCollection

    AnyStore: TypeAlias = Store | TableStore

log = logging.getLogger(__name__)

FILE = "foreign.json"
DATABASE = "chroma.sqlite3"
SERVERS = ("http://", "https://")
OWN_DATABASE = "postgresql://"
"""The workspace's database or, if the workspace is a folder, the environment's (``PGHOST`` …)."""
SERVER_S = 10.0
"""Timeout for a foreign server, in seconds."""
KNOWN_S = 1.0
"""How long the list is cached. Where a database or a Chroma server is shared, other processes change it, too."""
SAMPLE = 50
NEAR_ONE = 0.01
BUNDLED_BY_CHROMA = ("default", "onnx_mini_lm_l6_v2")
OVER_OPENAI = ("cohere", "google_gemini", "jina", "mistral", "ollama", "openai", "together_ai")
"""Chroma's embedding functions with models that vendors also serve over the OpenAI protocol."""
HERE = ("huggingface", "sentence_transformer")
"""Chroma's embedding functions with models that sentence-transformers loads."""


@dataclass(frozen=True, slots=True)
class ForeignCheck:
    """A check of a collection: what works (`good`), or what is needed to make it work."""

    good: bool
    words: str


def openings(files: TextFiles) -> dict[str, Opening]:
    """How to open each foreign collection, by name. Raises StoreError if the file is damaged."""
    try:
        saved: Mapping[str, Any] = json.loads(files.read(FILE) or "{}")
        return {name: Opening(**values) for name, values in saved.items()}
    except (InputError, ValueError, TypeError, AttributeError, RecursionError) as error:
        message = f"{files.folder / FILE} cannot be read: {error}."
        raise StoreError(message, remedy="Move it away, then open the collections again.") from None


def resolve_location(folder: str) -> str:
    """`folder` as an absolute path, or the URL of a server or database unchanged. Raises InputError."""
    if is_address(folder) or folder.startswith(SERVERS):
        parts = web_address(folder)
        secret = parts is not None and bool(parts.username or parts.password)
        if is_address(folder):
            # An unreadable URL is not repeated.
            secret = shown(folder) == UNSHOWN or bool(urlsplit(folder).password)
        if secret or "password=" in folder:
            message = f"{shown(folder)} contains a user or password, which would be stored in a file."
            remedy = "Put it into ~/.pgpass or PGPASSWORD, or start ragfilter with RAGFILTER_CHROMA_URL."
            raise InputError(message, remedy=remedy)
        return folder.rstrip("/") if folder.startswith(SERVERS) else folder
    try:
        return str(Path(folder).expanduser().resolve())
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"{folder} cannot be used: {error}.", remedy="Name a folder.") from None


def open_store(folder: str, workspace: str) -> ChromaStore | TableStore:
    """Open the store in a foreign Chroma folder, on a foreign server or in a database; `workspace` is the
    address of the workspace. Raises InputError if there is no store, StoreUnavailable."""
    if is_address(folder):
        from ragfilter.stores.postgres.foreign import TableStore

        return TableStore(workspace if folder == OWN_DATABASE and workspace else folder)
    if folder.startswith(SERVERS):
        return Server(folder, timeout_s=SERVER_S).open()
    # Otherwise Chroma would create a new store there.
    if kind(Path(folder) / DATABASE) != "file":
        # A path that looks like an address without a scheme may contain a password.
        shown_place = UNSHOWN if "@" in folder else folder
        raise InputError(
            f"{shown_place} is not a Chroma folder: there is no {DATABASE} in it.",
            remedy="Name the folder that chromadb.PersistentClient opened, a server's URL such as "
            "http://127.0.0.1:8000, or postgresql://user@host/database.",
        )
    return ChromaStore.folder(Path(folder), shared=True)


def embedder_hint(collection: StoredCollection) -> str:
    """The embedding model named in the collection's own configuration; empty if ragfilter can use none. Reads it as
    text, because building the embedding function could run foreign code."""
    if not isinstance(collection, ChromaCollection):
        return collection.embedder
    function = collection.raw().configuration_json.get("embedding_function") or {}
    made_by = function.get("name")
    if made_by in BUNDLED_BY_CHROMA:
        return "all-MiniLM-L6-v2"
    # Its content depends on the embedding function.
    config = function.get("config")
    model = config.get("model_name", config.get("model")) if isinstance(config, dict) else ""
    if not isinstance(model, str) or not model:
        return ""
    if made_by in HERE:
        return model
    return f"openai:{model}" if made_by in OVER_OPENAI else ""


def check(collection: StoredCollection, embedder: Embedder) -> tuple[ForeignCheck, ...]:
    """Check what works with a collection if it is queried with `embedder`, and what needs more. Raises ModelError, and
    StoreError if the model cannot have made its vectors."""
    name, known = collection.name, collection.entries()
    if not known:
        raise StoreError(f"Collection {name!r} is empty.", remedy="Open one that has chunks.")
    ids = list(known)[:SAMPLE]
    first, sample = collection.chunks(ids), collection.vectors(ids)
    vector_size, model_size = sample.shape[1], embedder.embed(["a"]).shape[1]
    if vector_size != model_size:
        message = f"The vectors of {name!r} have {vector_size} dimensions, but {embedder.name} makes {model_size}."
        raise StoreError(message, remedy="Name the embedding model that made them.")
    unit = bool((np.abs(np.linalg.norm(sample, axis=1) - 1) < NEAR_ONE).all())
    hidden = sum(1 for c in known.values() if c.clearance != 0 or c.department)
    tests = (
        (
            unit or collection.space == "cosine",
            "distances compare, since the vectors have unit length or the space is cosine",
            "the vectors are not of unit length, so the ranking may differ from the collection's own",
        ),
        (
            all(chunk.text for chunk in first.values()),
            "texts are stored with the vectors",
            "some chunks have no document: they are found, but there is nothing to read",
        ),
        (
            any(chunk.title for chunk in first.values()),
            "titles are in the metadata",
            "no metadata field is called title: chunks are shown by id",
        ),
        (
            hidden > 0,
            f"{chunk_count(hidden)} not for everybody (fields clearance and department)",
            "no chunk has a clearance or department: everybody sees all",
        ),
    )
    size = f"{chunk_count(len(known))}, {vector_size} dimensions, space {collection.space}"
    checks = (ForeignCheck(good, works if good else lacks) for good, works, lacks in tests)
    return (ForeignCheck(True, size), *checks)


class Stores:
    """The stores of a workspace. Thread-safe. Raises InputError, StoreError."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._folders: dict[str, ChromaStore | TableStore] = {}
        self._opening = threading.Lock()
        self._known: tuple[float, dict[str, Opening]] = (-inf, {})
        self._reading = threading.Lock()

    def opening(self, name: str) -> Opening:
        """How to open the collection `name`."""
        return self._openings().get(name, Opening())

    def embedder(self, name: str) -> str:
        """The embedding model with which the collection `name` was opened or made; empty if it is unknown or if there
        is no such collection. If the store has lost the collection, it is the model recorded in our own copy."""
        opening = self.opening(name)
        try:
            return opening.embedder or self.at(opening.folder).collection(name).embedder
        except CollectionMissing:
            # Searched among the copies, because a name from a link may be any path.
            with suppress(StoreError):
                return self._workspace.contents.summary(name).embedder if name in self._workspace.copied() else ""
            return ""

    def of(self, name: str) -> AnyStore:
        """The store that holds the collection `name`."""
        return self.at(self.opening(name).folder)

    def at(self, folder: str) -> AnyStore:
        """The store in a Chroma folder, on a server or in a database; the workspace's own if `folder` is empty."""
        if folder:
            path = resolve_location(folder)
            with self._opening:
                if path not in self._folders:
                    self._folders[path] = open_store(path, self._workspace.address)
                store: AnyStore = self._folders[path]
        else:
            store = self._workspace.store()
        # Asked each time, since another session may allow or forbid changes.
        store.opening = self.opening
        return store

    def infos(self) -> tuple[CollectionInfo, ...]:
        """Every collection, by name. Logs and leaves out collections whose folder is gone."""
        infos = list(self._workspace.store().collections())
        for name, opening in self._openings().items():
            if opening.folder:
                try:
                    infos.append(self.at(opening.folder).collection(name).info())
                except (InputError, StoreError) as error:
                    log.warning("the collection %s is left out: %s", name, error)
        return tuple(sorted(infos, key=lambda info: info.name))

    def open(self, name: str, opening: Opening, load_embedder: Callable[[str], Embedder]) -> tuple[ForeignCheck, ...]:
        """Register a foreign collection. Returns what works with it, and what needs more. Also raises ModelError. After
        an error, nothing is registered."""
        folder = resolve_location(opening.folder) if opening.folder else ""
        if folder == str(self._workspace.chroma_dir):
            folder = ""
        names = {info.name for info in self._workspace.store().collections()}
        if not folder and self._workspace.address and name not in names:
            folder = OWN_DATABASE
        store = self.at(folder)
        other = self._openings().get(name)
        if (folder and name in names) or (other is not None and other.folder != folder):
            message = f"There is another collection {name!r} in this workspace."
            raise InputError(message, remedy="Rename or close that one first.")
        collection = cast("TableStore", store).open(name, opening) if is_address(folder) else store.collection(name)
        if collection.ours and not folder:
            raise InputError(f"Collection {name!r} was made by ragfilter in this workspace.", remedy="Use it directly.")
        model = opening.embedder or embedder_hint(collection)
        if not model:
            message = f"Nothing says which embedding model made the vectors of {name!r}."
            remedy = "Specify it. Another model returns meaningless results, even if the dimensions match."
            raise InputError(message, remedy=remedy)
        checks = check(collection, load_embedder(model))
        self._keep(name, replace(opening, folder=folder, embedder=model))
        return checks

    def forget(self, name: str) -> None:
        """Remove a foreign collection from the list; it stays as it is. Raises InputError if it was not opened."""
        if name not in (opened := self._openings()):
            message = f"Collection {name!r} was not opened from elsewhere."
            raise InputError(message, remedy=f"Opened from elsewhere: {', '.join(sorted(opened)) or 'none'}.")
        self._keep(name, None)

    def close(self) -> None:
        """Close the foreign stores."""
        for store in self._folders.values():
            store.close()
        self._folders.clear()

    def _openings(self) -> dict[str, Opening]:
        """How to open each; read at most once a second."""
        with self._reading:
            if monotonic() - self._known[0] > KNOWN_S:
                self._known = monotonic(), openings(self._workspace.files)
            return self._known[1]

    def _keep(self, name: str, opening: Opening | None) -> None:
        """Store how to open a collection; None removes the entry."""
        with self._reading:
            every = {each: how for each, how in openings(self._workspace.files).items() if each != name}
            every |= {} if opening is None else {name: opening}
            self._workspace.files.write(FILE, json.dumps({each: asdict(how) for each, how in every.items()}))
            self._known = monotonic(), every
