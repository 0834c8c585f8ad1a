"""A connection to Chroma: the client, and our own errors for whatever it raises. Source:
docs/design.md#chroma, also for each undocumented part that is used, for tested releases only.

Chroma's HTTP client waits forever and raises `httpx` errors for a dead server. Here every wait has
a deadline. Telemetry is off, and Chroma's own embedding functions are never built.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import SplitResult

from ragfilter.basics.threads import within
from ragfilter.errors import (
    CollectionMissing,
    InputError,
    RagfilterError,
    StoreError,
    StoreUnavailable,
    check_version,
    extra,
)
from ragfilter.text.urls import basic_auth, shown, web_address

with extra("chroma"):
    import chromadb
    import httpx
    import packaging as packaging
    from chromadb.api import ClientAPI
    from chromadb.api.shared_system_client import SharedSystemClient
    from chromadb.config import Settings as ChromaSettings
    from chromadb.errors import (
        InvalidArgumentError,
        InvalidDimensionException,
        NotFoundError,
    )

check_version("chromadb", ">=1.5.2,<1.6", extra="chroma")


DAMAGED = "If the store was changed or damaged, restore the collection from its own copy."
UNREADABLE = "Move that folder away and restore each collection from its own copy."
MISFIT = "Check that the collection was indexed with the embedding model now in use."
NO_SERVER = "Check that the Chroma server runs and that the URL is right."

CLOSED = "Open the workspace again."

ROOM = 1 << 20
"""Bytes that a disk must accept."""

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
        # Chroma would return the failed system at the next opening.
        SharedSystemClient._identifier_to_system.pop(str(folder), None)
        if _is_interruption(error):
            raise
        what = f"The vector store in {folder} cannot be opened"
        raise _failure(what, error, str(folder), UNREADABLE) from error


def open_server(address: str, timeout_s: float) -> ClientAPI:
    """Open the client of the Chroma server at a URL.

    Raises InputError for an unusable URL, StoreUnavailable if nothing there answers like Chroma.
    """
    parts = _checked(address)
    url = shown(address)
    headers = dict(basic_auth(parts))
    settings = ChromaSettings(anonymized_telemetry=False)
    with guard(url):
        # This fails fast and frees its socket, which the client below, built in a thread, would
        # not.
        httpx.get(f"{url}/api/v2/heartbeat", timeout=timeout_s, headers=headers).raise_for_status()
        # The whole URL as the host, so that Chroma keeps its path, which a proxy may need.
        client = within(
            timeout_s,
            lambda: chromadb.HttpClient(
                host=url,
                ssl=url.startswith("https://"),
                headers=headers,
                settings=settings,
            ),
        )
    # Otherwise it would wait forever.
    client._server._session.timeout = httpx.Timeout(timeout_s)  # type: ignore[attr-defined]
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
        if isinstance(error, AttributeError) and error.name == "bindings":
            raise StoreError(f"The vector store in {where} was closed.", remedy=CLOSED) from error
        raise _failure("Chroma failed", error, where, DAMAGED) from error


def unwritable(what: str, where: str) -> StoreError:
    return StoreError(
        f"{what}.",
        remedy=f"Free up space on the disk of {where}, or make it writable. Nothing there is "
        "damaged: do not move it away.",
    )


def _failure(what: str, error: BaseException, where: str, remedy: str) -> StoreError:
    """What failed and why. For a folder the disk is checked too, since Chroma rarely names it."""
    words = _words(error)
    if not _UNWRITABLE.search(words.lower()) and (reason := disk_refusal(Path(where))):
        words = f"{words} ({reason})"
    if _UNWRITABLE.search(words.lower()):
        return unwritable(f"{what}: {words}", where)
    return StoreError(f"{what}: {words}.", remedy=remedy, action="rebuild")


def disk_refusal(folder: Path) -> str:
    """Why a file of one megabyte cannot be written in `folder`, in the system's words; "" if it
    can. Most errors of Chroma do not say that a disk is full or read-only."""
    try:
        if folder.is_dir():
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(bytes(ROOM))
                file.flush()
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""


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
    return parts


def _is_interruption(error: BaseException) -> bool:
    # A panic of Chroma's Rust core is no Exception, but a failure of the store.
    return not isinstance(error, Exception) and type(error).__name__ != "PanicException"


def _words(error: BaseException) -> str:
    text = " ".join(str(error).split())[:300].rstrip(".")
    if words := _ERRNO.sub("", text):
        return words if words == text else words[:1].lower() + words[1:]
    return type(error).__name__
