"""The undocumented parts of chromadb that we use, all in one place and for tested releases only.

Facts about each: docs/design.md#chroma.
"""

from __future__ import annotations

from pathlib import Path

from chromadb.api import ClientAPI
from chromadb.api.models.Collection import Collection
from chromadb.api.shared_system_client import SharedSystemClient
from httpx import Timeout

from ragfilter.extras import check_version

check_version("chromadb", ">=1.5.2,<1.6", extra="chroma")


def forget_folder(folder: Path) -> None:
    """Drop what could not be started for `folder`: Chroma would hand it out at the next opening."""
    SharedSystemClient._identifier_to_system.pop(str(folder), None)


def set_timeout(client: ClientAPI, seconds: float) -> None:
    """Bound every wait of an HTTP client, which is built to wait for ever."""
    client._server._session.timeout = Timeout(seconds)  # type: ignore[attr-defined]


def close(client: ClientAPI) -> None:
    """Close a client; the interface does not name what every client has."""
    client.close()  # type: ignore[attr-defined]


def forget_embedding_function(collection: Collection) -> None:
    """Keep a write from building the embedding function that the stored schema names."""
    collection._model.serialized_schema = None


def dimension(collection: Collection) -> int | None:
    """The length of the collection's vectors; None while it has none."""
    return collection._model.dimension


def is_closed(error: BaseException) -> bool:
    """Whether a call failed because its client was closed."""
    return isinstance(error, AttributeError) and error.name == "bindings"


def is_panic(error: BaseException) -> bool:
    """Whether Chroma's Rust core panicked, which is not an Exception."""
    return type(error).__name__ == "PanicException"
