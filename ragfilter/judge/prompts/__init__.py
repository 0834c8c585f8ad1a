"""The judge's prompt variants: one TOML file each, known by being in this folder.

Source: Intelligent Chunk Filtering, "Experimental Tuning Process"; docs/design.md#judge-prompts. A
file holds

    version        text; raise it with every change of the words
    about          one line for those who choose
    instructions   what the judge is told; names every action
    fields         optional: which lines of a chunk are shown, of FIELDS; all where it is missing
    most_tokens    optional: at which length a chunk is shortened

How an answer must look, and that chunk text is data, is told by `ragfilter.judge.call` in every
variant: the parser and the guards depend on it. Files are read once a process.
"""

from __future__ import annotations

import logging
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ragfilter.errors import InputError

log = logging.getLogger(__name__)

FOLDER = Path(__file__).parent
DEFAULT = "default"
ACTIONS = ("KEEP", "EXPAND_1", "EXPAND_3", "EXPAND_5", "DISCARD")
FIELDS = ("title", "type", "file", "references", "score")
LEAST_TOKENS = 20
_KEYS = frozenset(("version", "about", "instructions", "fields", "most_tokens"))
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to ask. `most_tokens` is None where a chunk may take its share of the budget."""

    name: str
    version: str
    about: str
    instructions: str
    fields: tuple[str, ...] = FIELDS
    most_tokens: int | None = None


def names() -> tuple[str, ...]:
    """The variants that can be chosen, `DEFAULT` first."""
    return tuple(_shipped())


def variant(name: str) -> Variant:
    """The variant called `name`. Raises InputError."""
    try:
        return _shipped()[name]
    except KeyError:
        raise InputError(
            f"There is no prompt {name!r}.", remedy=f"Use one of {', '.join(names())}."
        ) from None


def described() -> dict[str, str]:
    """What every variant is for, by name, `DEFAULT` first."""
    return {name: one.about for name, one in _shipped().items()}


@lru_cache(maxsize=1)
def _shipped() -> Mapping[str, Variant]:
    return read_folder(FOLDER)


def read_folder(folder: Path) -> Mapping[str, Variant]:
    """Every variant of a folder, `DEFAULT` first. A file that is wrong is told and left out: one
    bad experiment must not stop everything else."""
    found: dict[str, Variant] = {}
    for path in sorted(folder.glob("*.toml"), key=lambda path: (path.stem != DEFAULT, path.stem)):
        try:
            found[path.stem] = read(path)
        except InputError as error:
            log.warning("a judge prompt is left out: %s", error)
    return MappingProxyType(found)


def read(path: Path) -> Variant:
    """The variant in one file. Raises InputError that names the file and what is wrong."""
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}.", remedy="Write valid TOML.") from None
    wrong = _wrong(path.stem, tree)
    if wrong:
        raise InputError(f"{path}: {wrong}.", remedy="See the other files in that folder.")
    return Variant(
        name=path.stem,
        version=tree["version"].strip(),
        about=tree["about"].strip(),
        instructions=tree["instructions"].strip(),
        fields=tuple(tree.get("fields", FIELDS)),
        most_tokens=tree.get("most_tokens"),
    )


def _wrong(name: str, tree: Mapping[str, Any]) -> str:
    """What is wrong with a file, empty where nothing is."""
    if not _NAME.fullmatch(name):
        return "its name may hold small letters, digits, '-' and '_' only"
    unknown = sorted(tree.keys() - _KEYS)
    if unknown:
        return f"there is no {unknown[0]!r}, only {', '.join(sorted(_KEYS))}"
    for key in ("version", "about", "instructions"):
        if not isinstance(tree.get(key), str) or not tree[key].strip():
            return f"{key} must be text"
    if not re.fullmatch(r"[\w.]+", tree["version"].strip()):
        return "version may hold letters, digits and dots only"
    missing = [action for action in ACTIONS if action not in tree["instructions"]]
    if missing:
        return f"instructions do not name the action {missing[0]}"
    fields = tree.get("fields", [])
    if not isinstance(fields, list) or not all(field in FIELDS for field in fields):
        return f"fields must be a list of {', '.join(FIELDS)}"
    most = tree.get("most_tokens", LEAST_TOKENS)
    if isinstance(most, bool) or not isinstance(most, int) or most < LEAST_TOKENS:
        return f"most_tokens must be a whole number of at least {LEAST_TOKENS}"
    return ""
