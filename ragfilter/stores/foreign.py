"""Chroma collections that ragfilter did not make: how each is opened, and what is allowed.

Such a collection may be in the workspace's own store, or in a Chroma folder or on a Chroma server
elsewhere. Nothing is written to it unless changes were allowed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from ragfilter.basics.files import kind, write_text
from ragfilter.errors import InputError, StoreError
from ragfilter.protocols import Embedder
from ragfilter.stores.chroma import insides
from ragfilter.stores.chroma.client import Server, guard
from ragfilter.stores.chroma.store import ChromaStore
from ragfilter.text.numbers import chunks
from ragfilter.text.urls import UNSHOWN, shown, web_address

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


def openings(workspace: Path) -> dict[str, Opening]:
    """How each foreign collection is opened, by name. Raises StoreError if the file is damaged."""
    path = workspace / FILE
    try:
        given: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return {name: Opening(**values) for name, values in given.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise StoreError(
            f"{path} cannot be read: {error}.",
            remedy="Move it away, then open the collections again.",
        ) from None


def keep(workspace: Path, name: str, opening: Opening | None) -> None:
    """Store how a collection is opened; None removes it. Raises StoreError, InputError."""
    every = openings(workspace)
    every.pop(name, None)
    if opening is not None:
        every[name] = opening
    text = json.dumps({name: asdict(each) for name, each in every.items()})
    write_text(workspace / FILE, text, remedy="Free up disk space.")


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


def hint(store: ChromaStore, name: str) -> str:
    """The embedding model named in the collection's own configuration; empty if there is none that
    ragfilter can ask.

    Read as text, because building the function could run foreign code.
    """
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
            f"The vectors of {name!r} have {there} dimensions, those of {embedder.name} {own}.",
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
    told = (
        (
            unit or collection.space == "cosine",
            "distances compare, since the vectors have unit length or the space is cosine",
            "the vectors are not of unit length, but those of queries are, so the ranking may "
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
    found = (ForeignCheck(good, works if good else lacks) for good, works, lacks in told)
    return (ForeignCheck(True, size), *found)
