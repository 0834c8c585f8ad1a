"""OpenAPI 3: one chunk per operation and per schema, with references between them.

Source: docs/design.md#formats. `openapi.items` describes ids and kinds. References to files that
are loaded together, or lie in the folder of one loaded alone, are resolved. Others are left out and
reported. So are parts that cannot be read, and everything with the wrong type. Nothing else fails.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragfilter.errors import InputError
from ragfilter.ingest.openapi import files
from ragfilter.ingest.openapi.bundle import bundled, gather
from ragfilter.ingest.openapi.items import Item, api_title, identify, items
from ragfilter.ingest.openapi.refs import (
    Leads,
    Spot,
    Trees,
    enclosing,
    find,
    follow,
    leads,
    links,
    ref_of,
)
from ragfilter.ingest.openapi.text import parameters_of, security_of, title_and_text
from ragfilter.ingest.openapi.types import as_dict, as_list
from ragfilter.ingest.reading import PLAIN, ReadOptions, nothing_in
from ragfilter.ingest.records import Record, to_record
from ragfilter.protocols import Progress

log = logging.getLogger(__name__)

MOST_TOLD = 10


@dataclass(frozen=True, slots=True)
class ApiPart:
    """A chunk as a plain record, where it stands, and what about it was left out."""

    raw: dict[str, object]
    source: str
    place: str
    wrong: tuple[str, ...] = ()


def load_openapi(
    path: Path, *, source: str, reading: ReadOptions = PLAIN, progress: Progress | None = None
) -> Iterator[Record]:
    """The records of one OpenAPI 3 file (.json, .yaml, .yml) and the parts of it in its folder.

    `progress` counts the characters read. Raises InputError naming file and, where it is broken,
    line: not OpenAPI, OpenAPI 2, not JSON or YAML.
    """
    trees = {source: files.read_tree(path, source=source, progress=progress)}
    parts_of = gather(trees, lambda s: _part(files.beside(path.parent, s), s, reading, progress))
    yield from records(_bundled(trees, parts_of))


def load_together(
    paths: Mapping[str, Path], reading: ReadOptions, progress: Progress | None
) -> tuple[Iterator[Record], set[str]]:
    """The records of the API descriptions among several files (source to path), which may refer to
    each other and to the rest, and the sources that were read for them, also those refused. Raises
    InputError like `load_openapi`."""
    trees: dict[str, Any] = {}
    broken: set[str] = set()
    asked: set[str] = set()
    for source, path in paths.items():
        if path.suffix.lower() not in files.SUFFIXES:
            continue
        try:
            tree = files.read_tree_if_any(path, source=source, progress=progress)
        except InputError as error:
            reading.refuse(error)
            broken.add(source)
        else:
            trees |= {source: tree} if tree is not None else {}

    def read(source: str) -> object:
        asked.add(source)
        return _part(None if source in broken else paths.get(source), source, reading, progress)

    trees = _bundled(trees, gather(trees, read))
    return records(trees, reading.skip), {*trees, *broken, *asked}


def _bundled(trees: dict[str, Any], parts_of: dict[str, Any]) -> dict[str, Any]:
    return {s: bundled(s, trees, parts_of) for s in trees} if parts_of else trees


def _part(
    path: Path | None, source: str, reading: ReadOptions, progress: Progress | None
) -> object:
    """What a part holds; None if there is none. One that cannot be read is told and left out."""
    if path is None:
        return None
    try:
        return files.read_part(path, source=source, progress=progress)
    except InputError as error:
        (reading.skip or log.warning)(error)
        return None


def records(trees: Trees, skip: Callable[[InputError], None] | None = None) -> Iterator[Record]:
    """The records of parsed descriptions (source to tree); the last record of each description
    carries the warnings about it. `skip` is told of those without a record."""
    problems: dict[str, list[str]] = {source: [] for source in trees}
    found = parts(trees, problems)
    part = next(found, None)
    told: dict[str, list[str]] = {}
    silent = dict.fromkeys(trees)
    while part is not None:
        after = next(found, None)
        record = to_record(part.raw, place=part.place, source=part.source)
        told.setdefault(part.source, []).extend(f"{part.place}: {what}" for what in part.wrong)
        if after is None or after.source != part.source:
            warnings = [*problems[part.source], *told.pop(part.source)]
            record = record._replace(warnings=record.warnings + _summary(part.source, warnings))
        silent.pop(part.source, None)
        yield record
        part = after
    if skip is not None:
        for source in silent:
            skip(nothing_in(source))


def parts(trees: Trees, problems: Mapping[str, list[str]]) -> Iterator[ApiPart]:
    """Every chunk of parsed descriptions, description by description; `problems` (by source)
    collects what could not become one."""
    found = [item for source in trees for item in items(trees, source, problems[source])]
    ids = identify(found, trees)
    operations = _operation_ids(found, ids)
    statuses = _statuses(found, trees, ids)
    reported: set[tuple[str, str]] = set()
    for item in found:
        chunk_id = ids[item.source, item.pointer]
        led = leads(trees, ids, _walked(item, trees), own_id=chunk_id)
        title, text = title_and_text(
            item,
            trees,
            api=api_title(trees[item.source], item.source),
            statuses=sorted(statuses.get(chunk_id, ())),
        )
        refs = led.ids
        if item.kind in ("guide", "tag"):
            text, refs = links(text, trees, ids, operations, item.source)
        raw: dict[str, object] = {
            "id": chunk_id, "title": title, "text": text, "type": item.kind,
            "source": item.source, "refs": list(refs),
        }  # fmt: skip
        yield ApiPart(raw, item.source, item.place, wrong=_complaints(item, led, reported))


def _walked(item: Item, trees: Trees) -> list[tuple[Any, str]]:
    """The parts of an item in the order in which its references count: what a caller sends, what
    it gets, how it signs in, what may go wrong."""
    node, base = item.node, item.base
    if item.kind in ("guide", "tag"):
        return []
    if item.kind not in ("operation", "webhook"):
        return [(node, base)]
    responses = as_dict(node.get("responses"))
    good = {status: r for status, r in responses.items() if status.startswith("2")}
    # A shared success response is a chunk; what it holds is needed at once all the same.
    behind = [follow(trees, response, base) for response in good.values()]
    rest = {k: v for k, v in node.items() if k not in ("requestBody", "parameters", "responses")}
    return [
        (node.get("requestBody"), base),
        *((response, base) for response in good.values()),
        *behind,
        *parameters_of(item, trees),
        *_schemes(item, trees),
        *((response, base) for status, response in responses.items() if status not in good),
        (rest, base),
    ]


def _schemes(item: Item, trees: Trees) -> list[tuple[Any, str]]:
    options = as_list(security_of(item, trees))
    names = dict.fromkeys(name for option in options for name in as_dict(option))
    pointer = "#/components/securitySchemes/"
    return [({"$ref": pointer + _escaped(name)}, item.base) for name in names]


def _escaped(name: str) -> str:
    return name.replace("%", "%25").replace("~", "~0").replace("/", "~1")


def _statuses(found: list[Item], trees: Trees, ids: Mapping[Spot, str]) -> dict[str, set[str]]:
    """The statuses with which operations use the shared responses, by the response's chunk."""
    used: dict[str, set[str]] = {}
    for item in found:
        responses = as_dict(as_dict(item.node).get("responses")) if item.method else {}
        for status, response in responses.items():
            ref = ref_of(response)
            there = find(trees, ref, item.base) if ref else None
            chunk_id = enclosing(ids, there.source, there.pointer) if there else None
            if chunk_id is not None:
                used.setdefault(chunk_id, set()).add(status)
    return used


def _operation_ids(found: list[Item], ids: Mapping[Spot, str]) -> dict[tuple[str, str], str]:
    names: dict[tuple[str, str], str] = {}
    for item in found:
        if item.kind in ("operation", "webhook"):
            names.setdefault((item.source, item.names[0]), ids[item.source, item.pointer])
    return names


def _complaints(item: Item, led: Leads, reported: set[tuple[str, str]]) -> tuple[str, ...]:
    told = [f"{key} has the wrong type" for key in led.wrong]
    for ref in led.missing:
        if (item.source, ref) not in reported:
            reported.add((item.source, ref))
            told.append(f"the reference {ref[:200]} leads to nothing that was loaded")
    return tuple(told)


def _summary(source: str, warnings: list[str]) -> tuple[str, ...]:
    told = tuple(f"{warning}; it is left out." for warning in warnings[:MOST_TOLD])
    more = len(warnings) - len(told)
    return (*told, f"{source}: {more} more of that kind.") if more > 0 else told
