"""Access to the service: every request is first checked for its token, host name and body size.
Every error has the same JSON shape: its kind, what is wrong, what to do.

A TOML file holds hashed tokens, one for each user:

[[token]] name = "ada" sha256 = "…" level = 2 departments = ["ops"]"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from http.client import responses
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragfilter.basics.files import TomlTable, check_table, read_toml
from ragfilter.errors import CollectionMissing, ConflictError, DependencyError, InputError, RagfilterError
from ragfilter.model import MAX_LEVEL, PUBLIC, User
from ragfilter.text.normalise import mend_characters
from ragfilter.text.urls import host_name

log = logging.getLogger(__name__)

REMEDY = "Write each [[token]] as `ragfilter token NAME` prints it."


@dataclass(frozen=True, slots=True)
class Caller:
    """The holder of a token. `collections` lists those that it can search; None means all.
    `metrics`: it can read the metrics of all callers."""

    user: User = PUBLIC
    collections: frozenset[str] | None = None
    metrics: bool = False

    def check(self, collection: str) -> None:
        """Raise Refused for a collection that it cannot search, whether or not that exists."""
        if self.collections is not None and collection not in self.collections:
            raise Refused(403, "This token cannot search that collection.", remedy="Name one of its collections.")


class TokenEntry(TomlTable):
    """A token in the file."""

    name: str
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    level: Annotated[int, Field(ge=0, le=MAX_LEVEL)] = 0
    departments: list[str] = Field(default=[])
    collections: list[str] | None = None
    metrics: bool = False

    @property
    def caller(self) -> Caller:
        """Its holder."""
        collections = None if self.collections is None else frozenset(self.collections)
        return Caller(User(self.level, self.departments), collections, self.metrics)


class TokenFile(TomlTable):
    """A file of tokens."""

    token: Annotated[list[TokenEntry], Field(min_length=1)]


def token_hash(token: str) -> str:
    """The hash of a token in the file. Tokens are random, so a plain hash is safe."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def read_tokens(path: Path) -> Mapping[str, Caller]:
    """Read the callers, by the hashes of their tokens. Raises InputError."""
    entries = check_table(read_toml(path), TokenFile, str(path), remedy=REMEDY).token
    for what in ("name", "sha256"):
        double, times = Counter(getattr(entry, what) for entry in entries).most_common(1)[0]
        if times > 1:
            raise InputError(f"{path}: two tokens have the {what} {double}.", remedy=REMEDY)
    return {entry.sha256: entry.caller for entry in entries}


OPEN = ("/docs", "/healthz", "/openapi.json", "/readyz")
ASSETS = "/swagger/"
"""A path that everybody can read, since it reveals nothing about chunks."""
MAX_BYTES = 2 * 1024 * 1024
TOO_LARGE = "The body has more than 2 MiB."
READING_S = 30.0
"""Time limit for a body to arrive."""


@dataclass(frozen=True, slots=True)
class TokenGate:
    """ASGI middleware around `app`. It sets ``request.state.caller``.

    `tokens` are the callers by the hashes of their tokens. Without tokens, everybody is `anyone`, and only requests to
    `hosts` are answered, because another site could make its own name resolve to this machine (DNS rebinding). `count`
    is called with the address and status of every answer."""

    app: ASGIApp
    tokens: Mapping[str, Caller]
    anyone: Caller
    hosts: frozenset[str]
    count: Callable[[str, int], None]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.count(scope["path"], message["status"])
                message["headers"] = [*message["headers"], (b"x-content-type-options", b"nosniff")]
            await send(message)

        headers = Headers(scope=scope)
        try:
            caller = self._caller(headers, scope["path"])
            length = headers.get("content-length", "0")
            if length.isdecimal() and int(length[:20]) > MAX_BYTES:
                raise Refused(413, TOO_LARGE, remedy="Send less at once.")
        except Refused as refused:
            await error_response(refused, scope["path"])(scope, receive, counted)
            return
        scope.setdefault("state", {})["caller"] = caller
        await self.app(scope, _limited(receive), counted)

    def _caller(self, headers: Headers, path: str) -> Caller:
        if not self.tokens:
            if host_name(headers.get("host", "")) not in self.hosts:
                remedy = "Use 127.0.0.1, or add the name to RAGFILTER_ALLOWED_HOSTS."
                raise Refused(400, "This host name is not allowed.", remedy=remedy)
            return self.anyone
        if path in OPEN or path.startswith(ASSETS):
            return self.anyone
        scheme, _, token = headers.get("authorization", "").partition(" ")
        caller = self.tokens.get(token_hash(token.strip())) if scheme.lower() == "bearer" else None
        if caller is None:
            remedy = "Send the header `Authorization: Bearer TOKEN`."
            raise Refused(401, "The token is missing or unknown.", remedy=remedy)
        return caller


def _limited(receive: Receive) -> Receive:
    """Wrap `receive` to refuse a body that is too large or too slow."""
    size, done = 0, False
    until = asyncio.get_running_loop().time() + READING_S

    async def limited() -> Message:
        nonlocal size, done
        if done:
            return await receive()
        try:
            async with asyncio.timeout_at(until):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408, "The body did not arrive in time.") from None
        size += len(message.get("body", b""))
        done = not message.get("more_body", False)
        if size > MAX_BYTES:
            raise HTTPException(413, TOO_LARGE)
        return message

    return limited


DIFY = "/retrieval"
"""The address whose errors also have the fields that Dify documents."""
CODES = {400: 1001, 401: 1002, 403: 1002, 404: 2001}
"""Dify's codes: unreadable header, no permission, no such knowledge base."""
STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (CollectionMissing, 404),
    (InputError, 422),
    (ConflictError, 409),
    (DependencyError, 501),
    (RagfilterError, 503),
    (Exception, 500),
)
"""The HTTP status of each kind of error."""
MAX_CHARS = 1000
DOCUMENTED = (400, 401, 403, 404, 408, 413, 422, 429, 503, 504)
LATER = "Its log says why. Try again later."


class Problem(BaseModel):
    """An error from any address."""

    error: str = Field(description="Its kind.", examples=["SettingsError"])
    message: str = Field(description="What is wrong.")
    remedy: str = Field(description="What to do about it.")


class Refused(RagfilterError):
    """The service refuses a request; `status` is the HTTP status."""

    def __init__(self, status: int, message: str, *, remedy: str = "") -> None:
        self.status = status
        super().__init__(message, remedy=remedy)


def error_response(error: Exception, path: str) -> JSONResponse:
    """Make the answer to a failed request for `path`. Details that only the operator should know are logged instead."""
    if isinstance(error, HTTPException):
        error = Refused(error.status_code, str(error.detail), remedy="See /docs.")
    status, kind = next(status for each, status in STATUSES if isinstance(error, each)), type(error).__name__
    if isinstance(error, Refused):
        status, kind = error.status, responses.get(error.status, "Gone").replace(" ", "")
    elif not isinstance(error, RagfilterError):
        log.error("%s failed", path, exc_info=error)
        kind, error = "Unexpected", RagfilterError("An unexpected error happened.", remedy=LATER)
    elif status > 500:
        # Without its cause, which may contain the question.
        log.warning("%s: %s", path, error)
        error = RagfilterError("The service cannot answer this now.", remedy=LATER)
    message, remedy = mend_characters(error.message[:MAX_CHARS]), error.remedy[:MAX_CHARS]
    content: dict[str, object] = {"error": kind, "message": message, "remedy": remedy}
    if path == DIFY:
        content |= {"error_code": CODES.get(status, status), "error_msg": f"{message} {remedy}"}
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    if status in (429, 503):
        headers["Retry-After"] = "1"
    return JSONResponse(content, status, headers)
