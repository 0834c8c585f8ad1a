"""Who may ask the service: a TOML file of hashed tokens, each of which is a user.

[[token]]
name = "ada"
sha256 = "…"
level = 2
departments = ["ops"]
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ragfilter.basics.files import TomlTable, check_table, read_toml
from ragfilter.errors import InputError
from ragfilter.model import MAX_LEVEL, PUBLIC, User
from ragfilter.service.problems import Refused

REMEDY = "Write each [[token]] as `ragfilter token NAME` prints it."


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a token stands for. `collections` are those that it may search, None for all. `metrics`
    says whether it may read what all callers together did."""

    name: str = ""
    user: User = PUBLIC
    collections: frozenset[str] | None = None
    metrics: bool = False

    def as_user(self, level: int | None, departments: Sequence[str] | None) -> User:
        """The user that a request names, who may see no more than the token's own. Raises
        Refused."""
        own = self.user
        asked = User(
            own.level if level is None else level,
            own.departments if departments is None else departments,
        )
        if asked.level > own.level or not set(asked.departments) <= set(own.departments):
            raise Refused(
                403,
                "This token may not ask as that user.",
                remedy="Leave out the user.",
            )
        return asked

    def check(self, collection: str) -> None:
        """Raises Refused for a collection that it may not search, whether or not there is one."""
        if self.collections is not None and collection not in self.collections:
            raise Refused(
                403,
                "This token may not search that collection.",
                remedy="Name one of its own collections.",
            )


class TokenEntry(TomlTable):
    """A token of the file."""

    name: str
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    level: Annotated[int, Field(ge=0, le=MAX_LEVEL)] = 0
    departments: list[str] = Field(default=[])
    collections: list[str] | None = None
    metrics: bool = False


class TokenFile(TomlTable):
    """A file of tokens."""

    token: Annotated[list[TokenEntry], Field(min_length=1)]


def hashed(token: str) -> str:
    """What the file holds of a token. It is drawn at random, so a plain hash cannot be guessed."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def new_token() -> str:
    """A token that nobody can guess."""
    return secrets.token_urlsafe(32)


def read_tokens(path: Path) -> Mapping[str, Caller]:
    """The callers by the hashes of their tokens. Raises InputError."""
    entries = check_table(read_toml(path), TokenFile, str(path), remedy=REMEDY).token
    for what in ("name", "sha256"):
        found = [getattr(entry, what) for entry in entries]
        double = next((value for value in found if found.count(value) > 1), None)
        if double is not None:
            raise InputError(f"{path}: two tokens have the {what} {double}.", remedy=REMEDY)
    return {
        entry.sha256: Caller(
            entry.name,
            User(entry.level, entry.departments),
            None if entry.collections is None else frozenset(entry.collections),
            entry.metrics,
        )
        for entry in entries
    }
