"""The undocumented parts of chromadb that we use, all in one place and only for tested releases.

docs/design.md#chroma has the facts about each.
"""

from __future__ import annotations

from pathlib import Path

from chromadb.api import ClientAPI
from chromadb.api.models.Collection import Collection
from chromadb.api.shared_system_client import SharedSystemClient
from httpx import Timeout

from ragfilter.basics.extras import check_version

check_version("chromadb", ">=1.5.2,<1.6", extra="chroma")


def forget_folder(folder: Path) -> None:
    """Remove a failed system for `folder`, which Chroma would return at the next opening."""
    SharedSystemClient._identifier_to_system.pop(str(folder), None)


def set_timeout(client: ClientAPI, seconds: float) -> None:
    """Limit every wait of an HTTP client, which otherwise waits forever."""
    client._server._session.timeout = Timeout(seconds)  # type: ignore[attr-defined]


def close(client: ClientAPI) -> None:
    """Close a client. Its interface does not declare `close`."""
    client.close()  # type: ignore[attr-defined]


def forget_embedding_function(collection: Collection) -> None:
    """Prevent a write from building the embedding function that the stored schema names."""
    collection._model.serialized_schema = None


def dimension(collection: Collection) -> int | None:
    """The length of the collection's vectors; None while it has none."""
    return collection._model.dimension


def is_closed(error: BaseException) -> bool:
    """Whether a call failed because the client was closed."""
    return isinstance(error, AttributeError) and error.name == "bindings"


def is_panic(error: BaseException) -> bool:
    """Whether Chroma's Rust core panicked, which is not an Exception."""
    return type(error).__name__ == "PanicException"
