"""OpenAPI 3: one chunk per operation and per schema, with references between them.

Source: docs/design.md#formats. `openapi.items` describes ids and kinds. References to files in the same folder or below
it are resolved. Other references, unreadable parts, and parts that are not operations, schemas or responses are left
out and reported. Nothing else fails."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from json import JSONDecodeError
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Any

from ragfilter.basics.files import kind, parse_yaml, read_text
from ragfilter.errors import InputError
from ragfilter.ingest.openapi.items import read_items
from ragfilter.ingest.openapi.text import title_and_text
from ragfilter.ingest.records import ReadOptions, Record, to_record
from ragfilter.text.normalise import loads
from ragfilter.text.numbers import first_warnings

log = logging.getLogger(__name__)

SUFFIXES = (".json", ".yaml", ".yml")
TEXTS = (".md", ".markdown")
"""Suffixes of text files that a `$ref` can insert as a description."""
MAX_WARNINGS = 10
# A file that claims to be an API description but cannot be parsed is an error, not another format.
_SAYS_OPENAPI = re.compile(r"""(?:^|[{,])\s*["']?(?:openapi|swagger)["']?\s*:""", re.MULTILINE)


def load_openapi(folder: Path, names: Iterable[str], reading: ReadOptions) -> tuple[list[Record], set[str]]:
    """Read the API descriptions among these files of a folder, which may refer to each other and to the rest of it.
    Returns records and the names of all files read, even refused ones. Raises InputError with file and line."""
    trees: dict[str, Any] = {}
    known: set[str] = set()
    for name in names:
        if not name.lower().endswith(SUFFIXES):
            continue
        try:
            text = read_text(folder / name, name)
            tree = parse(text, Path(name).suffix, name) if _SAYS_OPENAPI.search(text) else None
            version = tree.get("openapi", tree.get("swagger")) if isinstance(tree, dict) else None
            # If `openapi` is a mapping, this is a tool's configuration.
            if isinstance(version, str | int | float):
                known.add(name)
                if not re.match(r"3(\.|$)", str(version)):
                    message = f"{name}: OpenAPI version {str(version)[:40]!r} cannot be read."
                    raise InputError(message, remedy="Convert it to OpenAPI 3; for version 2, use swagger2openapi.")
                trees[name] = tree
        except InputError as error:
            known.add(name)
            reading.refuse(error)

    def read(name: str) -> object:
        """The content of a part; None if it is missing, hidden or unreadable."""
        path, hidden = folder / name, any(part.startswith(".") for part in PurePosixPath(name).parts)
        suffix = path.suffix.lower()
        usable = not hidden and suffix in ("", *TEXTS, *SUFFIXES) and kind(path) == "file"
        if not usable or not path.resolve().is_relative_to(folder.resolve()):
            return None
        known.add(name)
        try:
            text = read_text(path, name)
            return text if suffix in TEXTS else parse(text, suffix, name)
        except InputError as error:
            (reading.skip or log.warning)(error)
            return None

    return records(trees, read), known


def parse(text: str, suffix: str, source: str, *, only_syntax: bool = False) -> object:
    """Parse JSON or YAML into plain values, or check the syntax. Raises InputError with `source` and line."""
    as_json = suffix.lower() == ".json"
    # YAML may be JSON, which parses faster. YAML says how deep JSON may be nested.
    if as_json or text.lstrip()[:1] == "{":
        try:
            return loads(text)
        except (ValueError, RecursionError) as error:
            if as_json and isinstance(error, JSONDecodeError):
                place = f"{source}, line {error.lineno}, column {error.colno}"
                raise InputError(f"{place}: this is not JSON ({error.msg}).", remedy="Correct it there.") from None
    return parse_yaml(text, place=source, only_syntax=only_syntax)


def records(trees: Mapping[str, Any], read: Callable[[str], object] = lambda source: None) -> list[Record]:
    """The records of parsed descriptions (source → tree), which are annotated. `read` reads parts. The last record of
    each description has its warnings."""
    found: list[Record] = []
    for api, items in groupby(read_items(trees, read), key=attrgetter("api")):
        for item in items:
            title, text = title_and_text(item)
            refs = [ref.id for ref in item.refs]
            raw = {"id": item.id, "title": title, "text": text, "type": item.kind, "refs": refs}
            found.append(to_record(raw, place=item.where, source=api.source))
        warnings = first_warnings([f"{problem}; it is left out." for problem in api.problems], MAX_WARNINGS)
        found[-1] = found[-1]._replace(warnings=(*found[-1].warnings, *warnings))
    return found
