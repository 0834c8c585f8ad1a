"""OpenAPI 3: one chunk per operation and per schema, with references between them.

Source: docs/design.md#formats. `openapi.items` describes ids and kinds. References to files that
are loaded together, or lie in the folder of one loaded alone, are resolved. Others are left out and
reported. So are parts that cannot be read or are no operation, schema or response. Nothing else
fails.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from ragfilter.basics.files import read_text
from ragfilter.errors import InputError
from ragfilter.ingest.markdown import front_matter
from ragfilter.ingest.openapi.bundle import Descriptions, Trees
from ragfilter.ingest.openapi.items import Items, api_title, identify
from ragfilter.ingest.openapi.text import title_and_text
from ragfilter.ingest.records import PLAIN, ReadOptions, Record, nothing_in, to_record
from ragfilter.ingest.yaml import parse_yaml
from ragfilter.text.normalise import loads

log = logging.getLogger(__name__)

SUFFIXES = (".json", ".yaml", ".yml")
MAX_WARNINGS = 10
# A file that says it is a description, but cannot be parsed, is an error and not another file.
_SAYS_OPENAPI = re.compile(r"""(?:^|[{,])\s*["']?(?:openapi|swagger)["']?\s*:""", re.MULTILINE)


def load_openapi(path: Path, *, source: str, reading: ReadOptions = PLAIN) -> Iterator[Record]:
    """The records of one OpenAPI 3 file (.json, .yaml, .yml) and the parts of it in its folder.

    Raises InputError naming file and, where it is broken, line: not OpenAPI, OpenAPI 2, not JSON or
    YAML.
    """
    tree = _checked(parse(read_text(path, source), path.suffix, source), source)
    yield from records(
        {source: tree}, read=lambda name: _part(_beside(path.parent, name), name, reading)
    )


def load_together(paths: Mapping[str, Path], reading: ReadOptions) -> tuple[list[Record], set[str]]:
    """The records of the API descriptions among several files (source to path), which may refer to
    each other and to the rest, and the sources that were read for them, also those refused. Raises
    InputError like `load_openapi`."""
    trees: dict[str, Any] = {}
    known: set[str] = set()
    for source, path in paths.items():
        if path.suffix.lower() not in SUFFIXES:
            continue
        try:
            text = read_text(path, source)
            tree = parse(text, path.suffix, source) if _SAYS_OPENAPI.search(text) else None
            # A mapping under that name is a tool's configuration.
            version = tree.get("openapi", tree.get("swagger")) if isinstance(tree, dict) else None
            if isinstance(version, str | int | float):
                trees[source] = _checked(tree, source)
                known.add(source)
        except InputError as error:
            reading.refuse(error)
            known.add(source)

    def read(name: str) -> object:
        path = None if name in known else paths.get(name)
        known.add(name)
        return _part(path, name, reading)

    return records(trees, read=read, skip=reading.skip), known


def parse(text: str, suffix: str, source: str) -> object:
    """JSON or YAML as plain values. Raises InputError: `source` and the line."""
    is_json = suffix.lower() == ".json"
    # YAML may be JSON, which is read faster.
    if is_json or text.lstrip()[:1] == "{":
        try:
            return loads(text)
        except (ValueError, RecursionError) as error:
            if is_json:
                line = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
                raise InputError(
                    f"{source}{line}: this is not JSON ({error}).",
                    remedy="Correct the JSON; YAML needs a file name that ends in .yaml.",
                ) from None
    return parse_yaml(text, place=source)


def records(
    trees: Trees,
    *,
    read: Callable[[str], object] = lambda source: None,
    skip: Callable[[InputError], None] | None = None,
) -> list[Record]:
    """The records of parsed descriptions (source to tree), which are changed; the last record of
    each carries the warnings about it. `read` gives parts, and `skip` is told of descriptions
    without a record."""
    api = Descriptions(trees, read)
    items = Items(api)
    ids = identify(items.every, trees)
    statuses = items.statuses()
    found = {}
    for item, chunk_id in ids.items():
        leads, missing = items.leads(item)
        items.problems[item.source] += (
            f"{item.where}: the reference {ref[:200]} leads to nothing that was loaded"
            for ref in missing
        )
        name = api_title(item.source, trees[item.source])
        title, text = title_and_text(item, api, name=name, statuses=statuses.get(item, ()))
        refs = [ids[each] for each in leads]
        if item.kind in ("guide", "tag"):
            text, refs = items.unlinked(item, ids)
        raw = {"id": chunk_id, "title": title, "text": text, "type": item.kind, "refs": refs}
        found[item] = to_record(raw, place=item.where, source=item.source)
    last = {item.source: item for item in ids}
    for source, item in last.items():
        problems = items.problems[source]
        warnings = [f"{problem}; it is left out." for problem in problems[:MAX_WARNINGS]]
        if len(problems) > MAX_WARNINGS:
            warnings.append(f"{source}: {len(problems) - MAX_WARNINGS} more of that kind.")
        found[item] = found[item]._replace(warnings=(*found[item].warnings, *warnings))
    if skip is not None:
        for source in trees.keys() - last.keys():
            skip(nothing_in(source))
    return list(found.values())


def _part(path: Path | None, source: str, reading: ReadOptions) -> object:
    """What a file holds that is referred to: a text if it is Markdown, and None if there is none,
    or it is of another kind. One that cannot be read is reported and left out."""
    suffix = path.suffix.lower() if path is not None else ""
    is_text = suffix in (".md", ".markdown")
    if path is None or (suffix and suffix not in SUFFIXES and not is_text):
        return None
    try:
        text = read_text(path, source)
        return text[front_matter(text)[0] :] if is_text else parse(text, suffix, source)
    except InputError as error:
        (reading.skip or log.warning)(error)
        return None


def _beside(folder: Path, name: str) -> Path | None:
    """The file `name` in `folder` or below it, unless it is hidden or a link leads out."""
    path = folder / name
    try:
        is_inside = path.is_file() and path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError):  # Too long for a name, or no text.
        return None
    is_hidden = any(part.startswith(".") for part in PurePosixPath(name).parts)
    return path if is_inside and not is_hidden else None


def _checked(tree: object, source: str) -> dict[str, Any]:
    if not isinstance(tree, dict) or not {"openapi", "swagger"} & tree.keys():
        raise not_openapi(source)
    version = str(tree.get("openapi", tree.get("swagger")))
    if "openapi" not in tree or not re.match(r"3(\.|$)", version):
        raise InputError(
            f"{source}: OpenAPI version {version[:40]!r} cannot be read.",
            remedy="Convert it to OpenAPI 3.0 or 3.1, version 2 for example with swagger2openapi.",
        )
    return tree


def not_openapi(source: str) -> InputError:
    """What to say of a JSON or YAML file that describes no API."""
    return InputError(
        f"{source}: this is not an OpenAPI description (no openapi version at the top).",
        remedy="Use an OpenAPI 3 file, or turn the data into JSONL records.",
    )
