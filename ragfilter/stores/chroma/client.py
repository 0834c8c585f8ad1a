"""Opens Chroma clients and turns what they raise into our errors. Source: docs/design.md#chroma.

Chroma's HTTP client waits forever and raises `httpx` errors for a dead server. Here every wait has
a deadline. Telemetry is off, and Chroma's own embedding functions are never built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult

import chromadb
import httpx
from chromadb.api import ClientAPI
from chromadb.config import Settings as ChromaSettings
from chromadb.errors import (
    InvalidArgumentError,
    InvalidDimensionException,
    NotFoundError,
)

from ragfilter.basics.deadline import within
from ragfilter.errors import (
    CollectionMissing,
    InputError,
    RagfilterError,
    StoreError,
    StoreUnavailable,
)
from ragfilter.stores import disk
from ragfilter.stores.chroma import insides
from ragfilter.text.urls import basic_auth, shown, web_address

DAMAGED = "If the store was changed or damaged, restore the collection from its own copy."
UNREADABLE = "Move that folder away and restore each collection from its own copy."
MISFIT = "Check that the collection was indexed with the embedding model now in use."
NO_SERVER = "Check that the Chroma server runs and that the URL is right."

CLOSED = "Open the workspace again."

_UNWRITABLE = re.compile(
    "disk is full|no space|quota|too large|read-?only|permission denied|not permitted"
)
_ERRNO = re.compile(r"^\[Errno -?\d+\] ")


def open_folder(folder: Path) -> ClientAPI:
    """Open the embedded client on `folder`. One process only: the caller holds the workspace lock.

    Raises StoreError.
    """
    settings = ChromaSettings(anonymized_telemetry=False)
    try:
        return chromadb.PersistentClient(str(folder), settings=settings)
    except BaseException as error:
        insides.forget_folder(folder)
        if _is_interruption(error):
            raise
        what = f"The vector store in {folder} cannot be opened"
        raise _failure(what, error, str(folder), UNREADABLE) from error


@dataclass(frozen=True, slots=True)
class Server:
    """A Chroma server. User and password in the URL are sent as basic authentication and never
    shown. No single wait for the server takes longer than `timeout_s` seconds."""

    url: str = field(repr=False)
    timeout_s: float = 30.0


def open_server(server: Server) -> ClientAPI:
    """Open the client of a Chroma server.

    Raises InputError for an unusable URL, StoreUnavailable if nothing there answers like Chroma.
    """
    parts = _checked(server.url)
    url = shown(server.url)
    headers = dict(basic_auth(parts))
    settings = ChromaSettings(anonymized_telemetry=False)
    with guard(url):
        # This fails fast and frees its socket, which the client below, built in a thread, would
        # not.
        httpx.get(
            f"{url}/api/v2/heartbeat", timeout=server.timeout_s, headers=headers
        ).raise_for_status()
        # The whole URL as the host, so that Chroma keeps its path, which a proxy may need.
        client = within(
            server.timeout_s,
            lambda: chromadb.HttpClient(
                host=url,
                ssl=url.startswith("https://"),
                headers=headers,
                settings=settings,
            ),
        )
    insides.set_timeout(client, server.timeout_s)
    return client


@contextmanager
def guard(where: str) -> Iterator[None]:
    """Turn whatever Chroma raises inside the block into a StoreError. `where` names the store."""
    try:
        yield
    except RagfilterError:
        raise
    except (httpx.TimeoutException, TimeoutError) as error:
        raise StoreUnavailable(
            f"The Chroma server at {where} did not answer in time.", remedy=NO_SERVER
        ) from error
    except httpx.HTTPError as error:
        raise StoreUnavailable(
            f"The Chroma server at {where} cannot be reached: {_words(error)}.", remedy=NO_SERVER
        ) from error
    except NotFoundError as error:
        raise CollectionMissing(
            f"The collection is not in {where} (any more): {_words(error)}.",
            remedy="List the collections, or index it again.",
        ) from error
    except (InvalidArgumentError, InvalidDimensionException) as error:
        raise StoreError(f"Chroma refused: {_words(error)}.", remedy=MISFIT) from error
    except BaseException as error:
        if _is_interruption(error):
            raise
        if insides.is_closed(error):
            raise StoreError(f"The vector store in {where} was closed.", remedy=CLOSED) from error
        raise _failure("Chroma failed", error, where, DAMAGED) from error


def make_sure_of_room(folder: str) -> None:
    """Raise StoreError if the disk accepts no data."""
    reason = disk.refusal(Path(folder))
    if reason:
        raise StoreError(f"{folder} cannot be written: {reason}.", remedy=writable(folder))


def writable(where: str) -> str:
    """The remedy for a disk that is full or read-only."""
    return (
        f"Free up space on the disk of {where}, or make it writable. Nothing there is damaged: "
        "do not move it away."
    )


def _failure(what: str, error: BaseException, where: str, remedy: str) -> StoreError:
    """What failed and why. For a folder the disk is checked too, since Chroma rarely names it."""
    said = _words(error)
    if not _UNWRITABLE.search(said.lower()) and Path(where).is_dir():
        said = f"{said} ({reason})" if (reason := disk.refusal(Path(where))) else said
    if _UNWRITABLE.search(said.lower()):
        return StoreError(f"{what}: {said}.", remedy=writable(where))
    return StoreError(f"{what}: {said}.", remedy=remedy, action="rebuild")


def _checked(url: str) -> SplitResult:
    parts = web_address(url)
    try:
        httpx.URL(shown(url))
    except httpx.InvalidURL:
        parts = None
    if parts is None:
        # The URL is not repeated, because the invalid part may be a password.
        raise InputError(
            "The URL of the Chroma server cannot be read.",
            remedy="Write it like http://127.0.0.1:8000, or http://user:password@host:8000 with "
            "everything in the password but letters and digits percent-encoded.",
        )
    if parts.query or parts.fragment:
        raise InputError(
            "The URL of the Chroma server has a query or a fragment, which Chroma ignores.",
            remedy="Leave out what follows ? or #; a proxy may ask for user and password instead.",
        )
    return parts


def _is_interruption(error: BaseException) -> bool:
    # A panic of Chroma's Rust core is a failure of the store.
    return not isinstance(error, Exception) and not insides.is_panic(error)


def _words(error: BaseException) -> str:
    text = " ".join(str(error).split())[:300].rstrip(".")
    said = _ERRNO.sub("", text)
    if said != text:
        said = said[:1].lower() + said[1:]
    return said or type(error).__name__
