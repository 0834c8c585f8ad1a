"""All errors. Each says what happened and what to do about it.

RagfilterError
├── InputError            a file, flag or value from outside is unusable
│   ├── SettingsError     a setting is unknown or out of range
│   └── RuleError         a query_must rule is invalid; names the place
├── StoreError            the vector store refused or failed
│   ├── StoreUnavailable  no answer within the deadline
│   │   └── OutcomeUnknown   nor does it say whether a change was saved
│   ├── CollectionMissing
│   └── WorkspaceLocked   another process owns the workspace folder
├── ModelError            an embedding model or reranker cannot be loaded or run
├── ChatError             the chat endpoint failed; `kind` says how
├── ConflictError         somebody else changed the same chunk first
└── DependencyError       an optional package is missing or unsupported; also an ImportError
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from typing import Literal

_CREDENTIALS = re.compile(r"(?<=://)(?!/)\S*@")
"""Credentials between the scheme and the host of any address: no message shows them."""

_PLAINLY = {
    "Value error, ": "",
    "Input should be": "it must be",
    "String should": "it must",
    "Field required": "it is missing",
    "a valid integer": "a whole number",
    "a valid ": "a ",
}

Action = (
    Literal["", "index", "finish", "rebuild", "replace", "folder", "writable", "open", "close"]
    | Literal["runs", "baseline", "tune", "recalibrate", "label", "settings"]
)
"""A remedy that a front end can offer: index something, finish an indexing job, rebuild a collection from its copy,
replace it, name another workspace folder, allow changes to a foreign collection, open it with its model, close it, list
the saved runs, make a new baseline, tune settings, recalibrate them, import labels, or list the settings."""
ChatErrorKind = Literal["unreachable", "timeout", "auth", "rate_limit", "server", "protocol", "interrupted", "empty"]


def complaint(message: str) -> str:
    """Pydantic's message about a value, as the second half of a sentence."""
    message = message.partition(", unable to")[0].rstrip(".")
    for theirs, ours in _PLAINLY.items():
        message = message.replace(theirs, ours)
    return message


class RagfilterError(Exception):
    """Base of every error that ragfilter raises on purpose. `message` says in one sentence what is wrong, `remedy` what
    to do, in general terms. `action` lets a front end add its own advice, such as a command."""

    def __init__(self, message: str, *, remedy: str = "", action: Action = "") -> None:
        self.message = _CREDENTIALS.sub("", message)
        self.remedy = _CREDENTIALS.sub("", remedy)
        self.action = action
        super().__init__(f"{self.message} {self.remedy}".strip())

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle and copy by value, since the constructors take other arguments than `args`."""
        return _restored, (type(self), *self.args), self.__dict__


def _restored(kind: type[RagfilterError], *args: str) -> RagfilterError:
    error = kind.__new__(kind)
    super(RagfilterError, error).__init__(*args)
    return error


class InputError(RagfilterError):
    """A file, flag or value given from outside cannot be used."""


class SettingsError(InputError):
    """A setting is unknown, of the wrong type or out of its range."""


class RuleError(InputError):
    """A `query_must` rule is invalid. `place` names where, e.g. ``contain_one_of[1][0]``."""

    def __init__(self, message: str, *, place: str = "", remedy: str = "") -> None:
        self.place = place
        super().__init__(f"{place}: {message}" if place else message, remedy=remedy)


class StoreError(RagfilterError):
    """The vector store refused or failed."""


class StoreUnavailable(StoreError):
    """The vector store did not answer within the deadline."""


class OutcomeUnknown(StoreUnavailable):
    """The vector store did not say whether it saved a change."""


class CollectionMissing(StoreError):
    """The named collection does not exist."""


class WorkspaceLocked(StoreError):
    """Another process owns the workspace folder."""


class ModelError(RagfilterError):
    """An embedding model or reranker cannot be loaded or run."""


class ChatError(RagfilterError):
    """The chat endpoint failed. `retry_after` is in seconds, if the endpoint gave it."""

    def __init__(
        self, message: str, *, kind: ChatErrorKind, remedy: str = "", retry_after: float | None = None
    ) -> None:
        self.kind = kind
        self.retry_after = retry_after
        super().__init__(message, remedy=remedy)


class ConflictError(RagfilterError):
    """Somebody else changed the value to be replaced after it was read."""


class DependencyError(RagfilterError, ImportError):
    """An optional package is missing, or its version is not supported."""


@contextmanager
def extra(name: str) -> Iterator[None]:
    """A context for imports of packages that the extra `name` installs. Raises DependencyError if one is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise DependencyError(f"{error.name} is not installed.", remedy=_install(name)) from error


def check_installed(package: str, *, extra: str) -> None:
    """Raise DependencyError if `package` is missing. Imports nothing."""
    if find_spec(package) is None:
        raise DependencyError(f"{package} is not installed.", remedy=_install(extra))


def check_version(package: str, supported: str, *, extra: str) -> None:
    """Raise DependencyError unless the version of `package` is in the `supported` range, as in `pyproject.toml`.
    For code that relies on undocumented behaviour."""
    from packaging.specifiers import SpecifierSet

    installed = version(package)
    if installed not in SpecifierSet(supported, prereleases=True):
        raise DependencyError(f"{package} {installed} is not supported, only {supported}.", remedy=_install(extra))


def _install(name: str) -> str:
    return f"Run: pip install 'ragfilter[{name}]'"
