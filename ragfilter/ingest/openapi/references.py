"""Which chunks the parts of an API description lead to.

Schemas that stand in parts are found on the way, and become chunks too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal
from urllib.parse import unquote

from ragfilter.ingest.openapi.items import (
    ApiPlace,
    Descriptions,
    Item,
    as_dict,
    as_list,
    items,
    parameters_of,
    ref_of,
    security_of,
    unused,
)

Role = Literal["", "names", "schema", "properties"]
"""What a node is: anything else, a map under names that an author chose, a schema, a map of
schemas."""
SCHEMA_MAPS = frozenset(
    ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
)
NAME_MAPS = frozenset(("content", "responses", "headers", "callbacks", "encoding")) | SCHEMA_MAPS
# Data, in which a "$ref" is no reference. (Links lead from answers to what may be called next.)
DATA = frozenset(("example", "examples", "default", "const", "enum", "links"))
_LINK = re.compile(r"\[([^\[\]\n]{1,200})\]\(([^()\s]{0,200}#[^()\s]{1,300})\)")


@dataclass(frozen=True, slots=True)
class Leads:
    """What an item leads to: chunks in order, and references that lead nowhere."""

    chunks: tuple[Item, ...]
    missing: tuple[str, ...]


def survey(descriptions: Descriptions, problems: Mapping[str, list[str]]) -> dict[Item, Leads]:
    """Every item of the descriptions, also of their parts, with what it leads to."""
    every: list[Item] = []
    for source in descriptions.trees:
        every += items(descriptions.root(source), problems[source])
    names: dict[str, set[str]] = {source: set() for source in descriptions.trees}
    for item in every:
        descriptions.chunks[item.source, item.source, item.pointer] = item
        if item.kind == "schema":
            names[item.source].add(item.names[0])
            if item.place.is_in_part:
                descriptions.chunks.setdefault(item.place.spot, item)

    def add(place: ApiPlace) -> Item:
        words = (*PurePosixPath(place.file).with_suffix("").parts, *place.pointer)
        longer = ["/".join(words[-n:]) for n in range(1, len(words) + 1)]
        name = unused(longer, names[place.source])
        pointer = ("components", "schemas", name)
        item = Item("schema", place.source, place, pointer, (name, f"schemas/{name}"))
        descriptions.chunks[place.spot] = item
        every.append(item)
        return item

    # The list grows meanwhile.
    return {item: _leads(item, add) for item in every}


def _leads(item: Item, add: Callable[[ApiPlace], Item]) -> Leads:
    """What an item leads to. What a reference reaches that is no chunk, such as a shared parameter,
    is walked through. `add` makes a chunk of a schema in a part."""
    chunks: dict[Item, None] = {}
    missing: dict[str, None] = {}
    seen: set[tuple[int, str, Role]] = set()
    role: Role = "schema" if item.kind == "schema" else ""
    waiting = [(place, role) for place in _starts(item)][::-1]
    while waiting:
        place, role = waiting.pop()
        spot = (id(place.node), place.file, role)
        if not isinstance(place.node, dict | list) or spot in seen:
            continue
        seen.add(spot)
        below: list[tuple[ApiPlace, Role]] = []
        if isinstance(place.node, list):
            below += [(_read(place.at(node), role), role) for node in place.node]
        else:
            is_named = role in ("names", "properties")
            for ref in () if is_named else _refs(place):
                target = place.find(ref)
                if target is None:
                    missing[ref] = None
                elif chunk := _chunk(target, role, add):
                    chunks[chunk] = None
                else:
                    below.append((target, role))
            for key, node in place.node.items():
                if not is_named and (key in DATA or key.startswith("x-")):
                    continue
                if isinstance(node, dict | list):
                    role_below = _role(role, key)
                    below.append((_read(place.at(node), role_below), role_below))
        waiting.extend(reversed(below))
    chunks.pop(item, None)
    return Leads(tuple(chunks), tuple(missing))


def _read(place: ApiPlace, role: Role) -> ApiPlace:
    """What is read at a place: a reference to a schema stays one."""
    return place if role == "schema" else place.end(parts_only=True)


def _role(role: Role, key: str) -> Role:
    """The role of what a node has under `key`."""
    if role in ("schema", "properties"):
        return "properties" if role == "schema" and key in SCHEMA_MAPS else "schema"
    if role == "names":
        return ""
    return "schema" if key == "schema" else "names" if key in NAME_MAPS else ""


def _chunk(target: ApiPlace, role: Role, add: Callable[[ApiPlace], Item]) -> Item | None:
    is_schema = role == "schema" and target.is_in_part
    target = target.end(parts_only=True) if is_schema else target
    if chunk := target.chunk():
        return chunk[0]
    # A text in a file of its own is no schema.
    return add(target) if is_schema and not isinstance(target.node, str) else None


def _refs(place: ApiPlace) -> Iterator[str]:
    if ref := ref_of(place.node):
        yield ref
    mapping = as_dict(place.node.get("discriminator")).get("mapping")
    for value in as_dict(mapping).values():
        if isinstance(value, str):
            # The mapping may name a schema instead of pointing to it.
            by_name = f"#/components/schemas/{value}"
            yield by_name if place.find(by_name) else value


def _starts(item: Item) -> list[ApiPlace]:
    """The parts of an item in the order in which its references count: what a caller sends, what
    it gets, how it signs in, what may go wrong."""
    if item.kind in ("guide", "tag"):
        return []
    if not item.method:
        return [item.place]
    responses = item.place.child("responses")
    each = {status: responses.child(status) for status in as_dict(responses.node)}
    good = [response for status, response in each.items() if status.startswith("2")]
    bad = [response for status, response in each.items() if not status.startswith("2")]
    described = ("requestBody", "parameters", "responses")
    rest = {key: node for key, node in item.node.items() if key not in described}
    options = as_list(security_of(item))
    names = dict.fromkeys(name for option in options for name in as_dict(option))
    schemes = [{"$ref": f"#/components/securitySchemes/{_escaped(name)}"} for name in names]
    return [
        item.place.child("requestBody"),
        *good,
        # A shared success response is a chunk; what it holds is needed at once all the same.
        *(response.end() for response in good),
        *parameters_of(item),
        *map(item.place.at, schemes),
        *bad,
        item.place.at(rest),
    ]


def _escaped(name: str) -> str:
    return name.replace("%", "%25").replace("~", "~0").replace("/", "~1")


def statuses(every: Iterable[Item]) -> dict[Item, list[str]]:
    """The statuses with which operations use the shared responses, sorted."""
    used: dict[Item, set[str]] = {}
    for item in every:
        responses = item.place.child("responses") if item.method else item.place.at({})
        for status in as_dict(responses.node):
            response = responses.child(status)
            target = response.find(ref) if (ref := ref_of(response.node)) else None
            if target is not None and (chunk := target.chunk()):
                used.setdefault(chunk[0], set()).add(status)
    return {item: sorted(each) for item, each in used.items()}


def unlinked(
    item: Item, ids: Mapping[Item, str], operations: Mapping[tuple[str, str], str]
) -> tuple[str, tuple[str, ...]]:
    """The Markdown of a guide or tag with its links to chunks as plain words, and their ids.

    A link is ``[label](#operation/<operationId>)`` or a reference such as
    ``[label](common.yaml#/components/schemas/Money)``; others stay as they are.
    """
    chunk_ids: dict[str, None] = {}

    def plain(match: re.Match[str]) -> str:
        label, target = match.groups()
        file, _, fragment = target.partition("#")
        if fragment.startswith("operation/"):
            place = item.place.find(f"{file}#")
            operation = unquote(fragment.removeprefix("operation/"))
            chunk_id = operations.get((place.source, operation)) if place else None
        else:
            place = item.place.find(target)
            chunk = place.chunk() if place else None
            chunk_id = ids[chunk[0]] if chunk else None
        if chunk_id is None:
            return match.group(0)
        chunk_ids[chunk_id] = None
        return label

    return _LINK.sub(plain, item.prose), tuple(chunk_ids)
