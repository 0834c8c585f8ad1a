"""Reads TOML files that people write: settings, prompts, templates. Errors name file and place."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from ragfilter.basics.files import read_text
from ragfilter.errors import InputError, complaint

SUFFIX = ".toml"


class TomlTable(BaseModel):
    """What a file, or a section of one, may hold. Texts must not be empty."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, str_min_length=1, str_strip_whitespace=True
    )


T = TypeVar("T", bound=TomlTable)


def paths(folder: Path) -> tuple[Path, ...]:
    """The TOML files of a folder, in the order of their names. Raises InputError."""
    try:
        found = [path for path in folder.iterdir() if path.suffix == SUFFIX]
    except OSError as error:
        raise InputError(
            f"{folder} cannot be read: {error.strerror or error}.",
            remedy=f"Name a folder of {SUFFIX} files.",
        ) from None
    return tuple(sorted(found, key=lambda path: path.stem))


def read(path: Path) -> dict[str, Any]:
    """What a file holds. Raises InputError: it cannot be read, or is not UTF-8 or not TOML."""
    return parse(read_text(path), str(path))


def parse(text: str, name: str) -> dict[str, Any]:
    """What TOML text holds; `name` is its file's in messages. Raises InputError."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        why = "it is nested too deeply"
    except tomllib.TOMLDecodeError as error:
        why = str(error)
    except ValueError:
        why = "a number in it has too many digits"
    raise InputError(
        f"{name} is not valid TOML: {why}.", remedy="Check its quotes, brackets and numbers."
    )


def check(tree: Mapping[str, Any], kind: type[T], name: str, *, remedy: str) -> T:
    """`tree` as a table of this kind; `name` is its file's in messages. Raises InputError naming
    the key and what is wrong with it."""
    try:
        return kind.model_validate(tree)
    except ValidationError as error:
        # A misspelt key is the reason why another one is missing.
        first = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
        place = ".".join(map(str, first["loc"]))
        unknown = first["type"] == "extra_forbidden"
        why = "there is no such key" if unknown else complaint(first["msg"])
        raise InputError(f"{name}: {place}: {why}.", remedy=remedy) from None
