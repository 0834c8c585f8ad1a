"""Prompt templates for drafting rules, one TOML file per content category.

Source: Filtering, "Layer 1: Metadata Generation" and its problem categories.

A new category is a new file. Its name is the category, and its keys are

version            must change whenever the text changes
recognise.title    regular expressions (case-insensitive), one of which must match
recognise.type     the same for the chunk's type; if both are given, both must match
prompt.holds       what the rule should contain, in words for the model
example.title      a chunk's title
example.rule       the rule for it, as JSON text

Files are tried in alphabetical order, and the first that fits is used. A file without patterns fits every chunk and is
tried last. The files of a custom folder are tried before the packaged ones and replace those with the same name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from ragfilter.basics.files import SUFFIX, TomlTable, check_table, parse_toml, read_text, toml_paths
from ragfilter.errors import InputError, RuleError
from ragfilter.model import Chunk
from ragfilter.rules.rule import Rule, parse
from ragfilter.text.normalise import normalise

FOLDER = Path(__file__).parent


def _read_rule(text: Any) -> Rule:
    try:
        return parse(str(text))
    except RuleError as error:
        raise ValueError(f"this is not a rule: {error}") from None


Patterns = list[re.Pattern[str]]


class _Recognise(TomlTable):
    title: Patterns = Field(default_factory=list)
    type: Patterns = Field(default_factory=list)


class _Prompt(TomlTable):
    holds: str


class _Example(TomlTable):
    title: str
    rule: Annotated[Rule, BeforeValidator(_read_rule)]


class Template(TomlTable):
    """A content category, as described in its file."""

    category: str
    number: int = Field(alias="version")
    recognise: _Recognise = _Recognise()
    prompt: _Prompt
    example: _Example

    @property
    def version(self) -> str:
        """``<category>-<number>``."""
        return f"{self.category}-{self.number}"

    def fits(self, chunk: Chunk) -> bool:
        """Whether `chunk` is of this category."""
        return _any(self.recognise.title, chunk.title) and _any(self.recognise.type, chunk.type)


def packaged() -> tuple[Template, ...]:
    """The packaged templates, in the order in which they are tried."""
    return _read_folder(FOLDER)


def with_folder(folder: Path) -> tuple[Template, ...]:
    """The templates in `folder`, then the packaged ones with other names. Templates that fit every
    chunk come last. Raises InputError naming the file if it is unreadable or not a template."""
    in_folder = _read_folder(folder)
    names = {template.category for template in in_folder}
    every = [*in_folder, *(template for template in packaged() if template.category not in names)]
    return tuple(sorted(every, key=_is_general))


def recognise(chunk: Chunk, templates: Sequence[Template]) -> Template:
    """The first template that fits the chunk. Raises InputError if none does."""
    for template in templates:
        if template.fits(chunk):
            return template
    raise InputError(
        f"No template fits the chunk {chunk.id!r}.", remedy="Add one without patterns: it fits every chunk."
    )


def read(text: str, *, name: str) -> Template:
    """Parse a template from TOML text; `name` is the file's name. Raises InputError naming file and key."""
    remedy = "Use general.toml, which comes with ragfilter, as an example."
    table = parse_toml(text, name) | {"category": Path(name).name.removesuffix(SUFFIX)}
    return check_table(table, Template, name, remedy=remedy)


def _any(patterns: Patterns, text: str) -> bool:
    text = normalise(text)
    return not patterns or any(re.search(p.pattern, text, re.IGNORECASE) for p in patterns)


def _read_folder(folder: Path) -> tuple[Template, ...]:
    templates = (read(read_text(path), name=str(path)) for path in toml_paths(folder))
    return tuple(sorted(templates, key=_is_general))


def _is_general(template: Template) -> bool:
    return not (template.recognise.title or template.recognise.type)
