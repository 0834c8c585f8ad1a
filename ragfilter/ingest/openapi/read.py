"""OpenAPI 3: one chunk per operation and per schema, with references between them.

Source: docs/design.md#formats. `openapi.items` describes ids and kinds. References to files in the same folder or below
it are resolved. Other references, unreadable parts, and parts that are not operations, schemas or responses are left
out and reported. Nothing else fails."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from json import JSONDecodeError
from pathlib import Path, PurePosixPath
from typing import Any

from ragfilter.basics.files import kind, parse_yaml, read_text
from ragfilter.errors import InputError
from ragfilter.ingest.openapi.bundle import Descriptions, Trees
from ragfilter.ingest.openapi.items import Items, api_title
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
        if name in known or hidden or kind(path) != "file" or not path.resolve().is_relative_to(folder.resolve()):
            return None
        known.add(name)
        suffix = path.suffix.lower()
        try:
            if suffix in TEXTS:
                return read_text(path, name)
            return parse(read_text(path, name), suffix, name) if suffix in ("", *SUFFIXES) else None
        except InputError as error:
            (reading.skip or log.warning)(error)
        return None

    return records(trees, read), known


def parse(text: str, suffix: str, source: str, *, only_syntax: bool = False) -> object:
    """Parse JSON or YAML into plain values, or check the syntax. Raises InputError with `source` and line."""
    # YAML may be JSON, which parses faster.
    as_json, problem = suffix.lower() == ".json", None
    if as_json or text.lstrip()[:1] == "{":
        try:
            return loads(text)
        except (ValueError, RecursionError) as error:
            problem = error
    try:
        return parse_yaml(text, place=source, only_syntax=only_syntax)
    except InputError:
        if not (as_json and isinstance(problem, JSONDecodeError)):
            raise
        # YAML's place and words would mislead.
        place = f"{source}, line {problem.lineno}, column {problem.colno}"
        raise InputError(f"{place}: this is not JSON ({problem.msg}).", remedy="Correct it there.") from None


def records(trees: Trees, read: Callable[[str], object] = lambda source: None) -> list[Record]:
    """The records of parsed descriptions (source → tree); the last of each has its warnings. `read` reads parts."""
    items = Items(api := Descriptions(trees, read))
    statuses = items.statuses()
    found: dict[str, list[Record]] = {source: [] for source in trees}
    for item, chunk_id in items.ids.items():
        leads, missing = items.leads(item)
        items.problems[item.source] += (
            f"{item.where}: the reference {ref[:200]} points to nothing that was loaded" for ref in missing
        )
        name = api_title(item.source, trees[item.source])
        title, text = title_and_text(item, api, name=name, statuses=statuses.get(item, ()))
        refs = [items.ids[each] for each in leads]
        if item.prose:
            text, refs = items.unlinked(item)
        raw = {"id": chunk_id, "title": title, "text": text, "type": item.kind, "refs": refs}
        found[item.source].append(to_record(raw, place=item.where, source=item.source))
    for source, problems in items.problems.items():
        warnings = first_warnings([f"{problem}; it is left out." for problem in problems], MAX_WARNINGS)
        if own := found[source]:
            own[-1] = own[-1]._replace(warnings=(*own[-1].warnings, *warnings))
    return [record for each in found.values() for record in each]
