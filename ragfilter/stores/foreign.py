"""The stores of a workspace: its own, and those of the Chroma collections that ragfilter did not
make, with how each is opened and what is allowed.

Such a collection may be in the workspace's own store, or in a Chroma folder or on a Chroma server
elsewhere. Nothing is written to it unless changes were allowed.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ragfilter.basics.files import kind
from ragfilter.basics.text_files import TextFiles
from ragfilter.errors import CollectionMissing, InputError, StoreError
from ragfilter.protocols import Embedder
from ragfilter.stores.chroma import insides
from ragfilter.stores.chroma.connection import Server, guard
from ragfilter.stores.chroma.store import ChromaStore
from ragfilter.stores.info import CollectionInfo
from ragfilter.stores.workspace import Workspace
from ragfilter.text.numbers import chunks
from ragfilter.text.urls import UNSHOWN, shown, web_address

if TYPE_CHECKING:
    from ragfilter.stores.workspace import Store

log = logging.getLogger(__name__)

FILE = "foreign.json"
DATABASE = "chroma.sqlite3"
SERVERS = ("http://", "https://")
SERVER_S = 10.0
"""Timeout for a foreign server, in seconds."""
SAMPLE = 50
NEAR_ONE = 0.01
BUNDLED_BY_CHROMA = ("default", "onnx_mini_lm_l6_v2")
OVER_OPENAI = (
    "cloudflare_workers_ai", "cohere", "google_gemini", "google_generative_ai", "jina", "mistral",
    "morph", "ollama", "openai", "together_ai",
)  # fmt: skip
"""Chroma's functions whose models their makers also serve over the OpenAI protocol."""
UNSERVED = (
    "amazon_bedrock", "chroma-cloud-qwen", "google_palm", "google_vertex", "nomic", "open_clip",
    "perplexity", "voyageai",
)  # fmt: skip
"""Those whose models neither sentence-transformers nor the OpenAI protocol offers."""


@dataclass(frozen=True, slots=True)
class Opening:
    """How a collection is opened. `folder` is a path or the URL of a server, empty for the
    workspace's own store; `embedder` is empty to use what the collection itself names. Without
    `writable`, nothing in it is changed."""

    folder: str = ""
    embedder: str = ""
    writable: bool = False


@dataclass(frozen=True, slots=True)
class ForeignCheck:
    """One thing that works (`good`), or what it needs to work."""

    good: bool
    said: str


def openings(files: TextFiles) -> dict[str, Opening]:
    """How each foreign collection is opened, by name. Raises StoreError if the file is damaged."""
    try:
        given: Mapping[str, Any] = json.loads(files.read(FILE) or "{}")
        return {name: Opening(**values) for name, values in given.items()}
    except (InputError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise StoreError(
            f"{files.folder / FILE} cannot be read: {error}.",
            remedy="Move it away, then open the collections again.",
        ) from None


def keep(files: TextFiles, name: str, opening: Opening | None) -> None:
    """Store how a collection is opened; None removes it. Raises StoreError, InputError."""
    every = openings(files)
    every.pop(name, None)
    if opening is not None:
        every[name] = opening
    files.write(FILE, json.dumps({name: asdict(each) for name, each in every.items()}))


def resolved(folder: str) -> str:
    """`folder` as an absolute path, or the URL of a server unchanged. Raises InputError."""
    if folder.startswith(SERVERS):
        parts = web_address(folder)
        if parts is not None and (parts.username or parts.password):
            raise InputError(
                f"{shown(folder)} comes with a user or a password, which would be kept in a file.",
                remedy="Start ragfilter with RAGFILTER_CHROMA_URL instead.",
            )
        return folder.rstrip("/")
    try:
        return str(Path(folder).expanduser().resolve())
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"{folder} cannot be used: {error}.", remedy="Name a folder.") from None


def open_store(folder: str) -> ChromaStore:
    """Open the store in a foreign Chroma folder or on a foreign server. Raises InputError if there
    is none, StoreUnavailable."""
    if folder.startswith(SERVERS):
        return ChromaStore.server(Server(folder, timeout_s=SERVER_S))
    path = Path(resolved(folder))
    # Chroma would create a new store there.
    if kind(path / DATABASE) != "file":
        # What looks like an address without its scheme may contain a password.
        named = UNSHOWN if "@" in folder else folder
        raise InputError(
            f"{named} is no Chroma folder: there is no {DATABASE} in it.",
            remedy="Name the folder that was given to chromadb.PersistentClient, or the URL of a "
            "server, as http://127.0.0.1:8000.",
        )
    return ChromaStore.folder(path, shared=True)


def hint(store: Store, name: str) -> str:
    """The embedding model named in the collection's own configuration; empty if there is none that
    ragfilter can ask.

    Read as text, because building the function could run foreign code.
    """
    if not isinstance(store, ChromaStore):
        return store.collection(name).embedder
    function = store.collection(name).raw().configuration_json.get("embedding_function") or {}
    made_by = function.get("name")
    if made_by in BUNDLED_BY_CHROMA:
        return "all-MiniLM-L6-v2"
    # What it holds is up to the function.
    config = function.get("config")
    model = config.get("model_name", config.get("model")) if isinstance(config, dict) else ""
    if not isinstance(model, str) or not model or made_by in UNSERVED:
        return ""
    return f"openai:{model}" if made_by in OVER_OPENAI else model


def check(store: ChromaStore, name: str, embedder: Embedder) -> tuple[ForeignCheck, ...]:
    """What works with the collection `name` when it is queried with `embedder`, and what needs
    more.

    Raises ModelError, and StoreError if the model cannot have made its vectors.
    """
    collection = store.collection(name)
    raw = collection.raw()
    there, own = insides.dimension(raw), embedder.embed(["a"]).shape[1]
    if there is None:
        raise StoreError(f"Collection {name!r} is empty.", remedy="Open one that holds chunks.")
    if there != own:
        raise StoreError(
            f"The vectors of {name!r} have {there} dimensions, but {embedder.name} makes {own}.",
            remedy="Name the embedding model that made them.",
        )
    with guard(store.where):
        sample = raw.get(limit=SAMPLE, include=["embeddings"])["embeddings"]
    lengths = np.linalg.norm(np.asarray(cast(Any, sample), dtype=np.float32), axis=1)
    unit = bool((np.abs(lengths - 1) < NEAR_ONE).all())
    known = collection.entries()
    first = collection.chunks(list(known)[:SAMPLE])
    rules = sum(1 for chunk in known.values() if chunk.rule)
    hidden = sum(1 for c in known.values() if c.clearance != 0 or c.department)
    tests = (
        (
            unit or collection.space == "cosine",
            "distances compare, since the vectors have unit length or the space is cosine",
            "the vectors are not of unit length, but query vectors are, so the ranking may "
            "differ from the collection's own; this does not affect cosine space",
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
            rules > 0,
            f"{chunks(rules)} with a rule in the field query_must",
            "no chunk has a rule; allow changes to write some",
        ),
        (
            hidden > 0,
            f"{chunks(hidden)} not for everybody (fields clearance and department)",
            "no chunk has a clearance or department: everybody sees all",
        ),
    )
    size = f"{chunks(len(known))}, {there} dimensions, space {collection.space}"
    checks = (ForeignCheck(good, works if good else lacks) for good, works, lacks in tests)
    return (ForeignCheck(True, size), *checks)


class Stores:
    """The stores of a workspace. Thread-safe. Raises InputError, StoreError."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._folders: dict[str, ChromaStore] = {}
        self._opening = threading.Lock()

    def opening(self, name: str) -> Opening:
        """How the collection `name` is opened."""
        return openings(self._workspace.files).get(name, Opening())

    def hint(self, name: str) -> str:
        """The embedding model that the collection `name` itself names; empty if it names none."""
        return hint(self.of(name), name)

    def embedder(self, name: str) -> str:
        """The embedding model with which the collection `name` was opened or made; empty if nothing
        says so, or if there is no such collection. One that the store has lost is known from our
        own copy."""
        opening = self.opening(name)
        try:
            return opening.embedder or self.at(opening.folder).collection(name).embedder
        except CollectionMissing:
            return self._copied_with(name)

    def of(self, name: str) -> Store:
        """The store that holds the collection `name`."""
        return self.at(self.opening(name).folder)

    def at(self, folder: str) -> Store:
        """The store in a Chroma folder or on a server; the workspace's own if `folder` is empty."""
        store: Store = self._in(folder) if folder else self._workspace.store()
        # Checked each time, because another session may allow or forbid it.
        store.writable = lambda name: self.opening(name).writable
        return store

    def infos(self) -> tuple[CollectionInfo, ...]:
        """Every collection, by name. One whose folder is gone is logged and left out."""
        infos = list(self._workspace.store().collections())
        for name, opening in openings(self._workspace.files).items():
            if opening.folder:
                try:
                    infos.append(self.at(opening.folder).collection(name).info())
                except (InputError, StoreError) as error:
                    log.warning("the collection %s is left out: %s", name, error)
        return tuple(sorted(infos, key=lambda info: info.name))

    def open(
        self, name: str, opening: Opening, load_embedder: Callable[[str], Embedder]
    ) -> tuple[ForeignCheck, ...]:
        """Register a foreign collection. Returns what works with it, and what needs more.

        Also raises ModelError. If it raises, nothing is registered.
        """
        folder = resolved(opening.folder) if opening.folder else ""
        if folder == str(self._workspace.chroma_dir):
            folder = ""
        store, own = self.at(folder), self._workspace.store()
        if folder and name in {info.name for info in own.collections()}:
            raise InputError(
                f"This workspace has a collection {name!r} already.",
                remedy="Rename that one first.",
            )
        other = openings(self._workspace.files).get(name)
        if other is not None and other.folder != folder:
            where = shown(other.folder) if other.folder.startswith(SERVERS) else other.folder
            raise InputError(
                f"A collection {name!r} from {where or 'this workspace'} is open.",
                remedy="Close that one first.",
            )
        if not isinstance(store, ChromaStore) or (
            not folder and store.collection(name).info().ours
        ):
            raise InputError(
                f"Collection {name!r} was made by ragfilter in this workspace.",
                remedy="Ask it as it is.",
            )
        model = opening.embedder or hint(store, name)
        if not model:
            raise InputError(
                f"Nothing says which embedding model made the vectors of {name!r}.",
                remedy="Specify it. Another model returns meaningless results, even if the "
                "dimensions match.",
            )
        checks = check(store, name, load_embedder(model))
        keep(self._workspace.files, name, replace(opening, folder=folder, embedder=model))
        return checks

    def forget(self, name: str) -> None:
        """Remove a foreign collection from the list; the collection itself is not changed. Raises
        InputError if it was not opened."""
        if name not in (opened := openings(self._workspace.files)):
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
        keep(self._workspace.files, name, None)

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
            path = resolved(folder)
            if path not in self._folders:
                self._folders[path] = open_store(path)
            return self._folders[path]
