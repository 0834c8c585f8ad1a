"""Every error of the service in one JSON shape: its kind, what is wrong, and what to do."""

from __future__ import annotations

import logging

from pydantic import BaseModel, Field
from starlette.responses import JSONResponse

from ragfilter.errors import (
    CollectionMissing,
    ConflictError,
    DependencyError,
    InputError,
    RagfilterError,
)
from ragfilter.text.normalise import whole

log = logging.getLogger(__name__)

DIFY = "/retrieval"
"""The address whose errors also have the fields that Dify documents."""
CODES = {400: 1001, 401: 1002, 403: 1002, 404: 2001}
"""Its codes: a header that cannot be read, no permission, no such knowledge base."""
MAX_CHARS = 1000
KINDS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    408: "SlowRequest",
    413: "TooLarge",
    422: "InputError",
    429: "Busy",
    504: "TimedOut",
}
DOCUMENTED = (400, 401, 403, 404, 408, 413, 422, 429, 503, 504)
UNREADY = ("The service cannot answer this now.", "Its log says why. Try again later.")


class Problem(BaseModel):
    """An error of any address."""

    error: str = Field(description="Its kind.", examples=["SettingsError"])
    message: str = Field(description="What is wrong.")
    remedy: str = Field(description="What to do about it.")


class Refused(RagfilterError):
    """The service does not carry a request out; `status` is the HTTP status."""

    def __init__(self, status: int, message: str, *, remedy: str = "") -> None:
        self.status = status
        super().__init__(message, remedy=remedy)


def explain(error: Exception, path: str) -> JSONResponse:
    """The answer to a request that failed. What only the operator may know is logged instead."""
    if isinstance(error, Refused):
        return answer(error.status, error.message, error.remedy, path)
    status = 404 if isinstance(error, CollectionMissing) else 409
    if isinstance(error, InputError):
        status = 422
    if isinstance(error, InputError | CollectionMissing | ConflictError):
        return answer(status, error.message, error.remedy, path, kind=type(error).__name__)
    if isinstance(error, RagfilterError):
        log.warning("%s: %s", path, error)
        status = 501 if isinstance(error, DependencyError) else 503
        return answer(status, *UNREADY, path, kind=type(error).__name__)
    log.error("%s failed", path, exc_info=error)
    return answer(500, "An unexpected error happened.", UNREADY[1], path, kind="Unexpected")


def answer(status: int, message: str, remedy: str, path: str, *, kind: str = "") -> JSONResponse:
    """An error as the answer to a request for `path`."""
    said = Problem(
        error=kind or KINDS.get(status, "HttpError"),
        message=whole(message[:MAX_CHARS]),
        remedy=remedy[:MAX_CHARS],
    )
    content: dict[str, object] = said.model_dump()
    if path == DIFY:
        content |= {"error_code": CODES.get(status, status), "error_msg": f"{message} {remedy}"}
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    if status in (429, 503):
        headers["Retry-After"] = "1"
    return JSONResponse(content, status, headers)
