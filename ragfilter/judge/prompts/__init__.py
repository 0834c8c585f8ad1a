"""The judge's prompt variants: each is a TOML file in a folder.

Source: Intelligent Chunk Filtering, "Experimental Tuning Process"; docs/design.md#judge-prompts. A file has

    version        text; increase it whenever the wording changes
    about          one line that helps users choose
    instructions   the instructions for the judge; names every action
    fields         optional: the lines of a chunk to show, from FIELDS; default: all
    most_tokens    optional: the length to which a chunk is shortened

Users' own files add to the packaged ones, and replace those with the same name. They are in `prompts/` in the
workspace, or in the folder that RAGFILTER_JUDGE_PROMPTS names, which is also read without a workspace. A process has
only one such folder, from the workspace opened last, because settings are checked wherever they are made. Files are
read once per opened workspace."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field

from ragfilter.basics.files import TomlTable, check_table, read_toml, toml_paths
from ragfilter.errors import InputError

log = logging.getLogger(__name__)

FOLDER = Path(__file__).parent
VARIABLE = "RAGFILTER_JUDGE_PROMPTS"
DEFAULT = "default"
Line = Literal["title", "type", "file", "references", "score"]
ACTIONS = ("KEEP", "EXPAND_1", "EXPAND_3", "EXPAND_5", "DISCARD")
FIELDS: tuple[Line, ...] = get_args(Line)
MIN_TOKENS = 20

_own: Path | None = None


def _name_actions(text: str) -> str:
    for action in ACTIONS:
        if action not in text:
            raise ValueError(f"the action {action} is not named")
    return text


class PromptVariant(TomlTable):
    """A prompt variant. `most_tokens` is None if a chunk can use its share of the budget."""

    name: str
    version: str = Field(pattern=r"^[\w.]+$")
    about: str
    instructions: str
    fields: tuple[Line, ...] = Field(default=FIELDS, strict=False)
    most_tokens: int | None = Field(default=None, ge=MIN_TOKENS)


class _File(PromptVariant):
    """A variant as read from a file, whose instructions must name every action."""

    instructions: Annotated[str, AfterValidator(_name_actions)]


def use_folder(folder: Path | None) -> None:
    """Add the prompts in `folder` to the packaged ones in this process; None uses RAGFILTER_JUDGE_PROMPTS, if set."""
    global _own
    _own = _whole(folder) if folder else None
    # The files may have been edited.
    _read.cache_clear()


def variant(name: str) -> PromptVariant:
    """The variant called `name`. Raises InputError."""
    try:
        return variants()[name]
    except KeyError:
        raise InputError(f"There is no prompt {name!r}.", remedy=f"Use one of {', '.join(variants())}.") from None


def described() -> dict[str, str]:
    """The purpose of every variant, by name, `DEFAULT` first."""
    return {name: one.about for name, one in variants().items()}


def variants() -> Mapping[str, PromptVariant]:
    """The available variants by name, `DEFAULT` first."""
    own_folder = os.environ.get(VARIABLE)
    return _read(FOLDER, _own or (_whole(Path(own_folder)) if own_folder else None))


def _whole(folder: Path) -> Path:
    # Unlike the methods of Path, these accept any name without an error.
    return Path(os.path.realpath(os.path.expanduser(folder)))  # noqa: PTH111


@lru_cache(maxsize=1)
def _read(packaged: Path, folder: Path | None) -> Mapping[str, PromptVariant]:
    return MappingProxyType(read_folder(packaged) | (read_folder(folder) if folder else {}))


def read_folder(folder: Path) -> dict[str, PromptVariant]:
    """Every variant in a folder, `DEFAULT` first. Logs unreadable files: one bad experiment must not stop all else."""
    variants: dict[str, PromptVariant] = {}
    try:
        paths = toml_paths(folder)
    except InputError as error:
        log.warning("no judge prompts are read: %s", error)
        return variants
    for path in sorted(paths, key=lambda path: path.stem != DEFAULT):
        try:
            variants[path.stem] = read(path)
        except InputError as error:
            log.warning("a judge prompt is left out: %s", error)
    return variants


def read(path: Path) -> PromptVariant:
    """Read the variant in one file. Raises InputError with the file's name and error."""
    tree = read_toml(path)
    remedy = "Use default.toml, which comes with ragfilter, as an example."
    return check_table(tree | {"name": path.stem}, _File, str(path), remedy=remedy)
