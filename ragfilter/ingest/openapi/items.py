"""The parts of an API description that become chunks, and the id of each.

Source: docs/design.md#formats. A chunk is an operation, a webhook, a schema, a shared response, a
security scheme, a described tag, or a section of the description's own prose ("guide"). Shared
parameters, request bodies and headers are no chunks: they are told where they are used.

An id is ``<prefix>:<name>``. The prefix is `x-api-prefix` of `info`, else the beginning of the
title (ids are paid for in every prompt), else the file name. The name is the operationId (else
method and path) or the schema's name; other kinds carry their kind (``responses/NotFound``,
``security/oauth``, ``guide/rate-limits``). If a name is taken, the later one gets a longer name:
operations come before schemas, wherever they stand in the file, and files in the order given.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from pathlib import PurePosixPath
from typing import Any, get_args

from ragfilter.ingest.markdown import sections
from ragfilter.ingest.openapi.places import ApiPlace, Descriptions, Item, Kind, as_list, ref_of
from ragfilter.ingest.passages import passages
from ragfilter.text.normalise import whole

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
COMPONENTS: dict[str, Kind] = {
    "schemas": "schema", "responses": "response", "securitySchemes": "security"
}  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
"""In the order in which they get their ids."""
LONGEST_NAME = 200
LONGEST_PREFIX = 24


def items(root: ApiPlace, problems: list[str]) -> Iterator[Item]:
    """The parts of one description; `problems` collects what was left out and why."""
    yield from _guides(root)
    yield from _tags(root, problems)
    yield from _operations(root, "paths", problems)
    yield from _operations(root, "webhooks", problems)
    components = _mapping(root, "components", problems)
    for key, kind in COMPONENTS.items():
        named = _mapping(components, key, problems)
        for name in named.node:
            place, pointer = named.child(name), ("components", key, name)
            word = "security" if kind == "security" else key
            names = (name, f"schemas/{name}") if kind == "schema" else (f"{word}/{name}",)
            if not isinstance(place.node, dict | bool if kind == "schema" else dict):
                problems.append(f"{root.source}, components {key} {name}: this is no {kind}")
            elif kind == "schema" or "$ref" not in place.node:
                yield Item(kind, root.source, place, pointer, names)


def identify(items: Iterable[Item], descriptions: Descriptions) -> dict[Item, str]:
    """A unique id for each item, in the order in which they get one."""
    sources = list(descriptions.trees)
    prefixes = {source: _prefix(descriptions.root(source)) for source in sources}
    taken: set[str] = set()

    def new_id(item: Item) -> str:
        names = [_tidy(name) for name in item.names]
        names.append(f"{names[-1]}@{PurePosixPath(item.source).stem}")
        return unused([f"{prefixes[item.source]}:{name}" for name in names], taken)

    ordered = sorted(items, key=lambda it: (sources.index(it.source), KINDS.index(it.kind)))
    return {item: new_id(item) for item in ordered}


def unused(names: Sequence[str], taken: set[str]) -> str:
    """The first name that is not taken, else the last one with a number. It is taken then."""
    numbered = (f"{names[-1]}-{number}" for number in count(2))
    name = next(name for name in chain(names, numbered) if name not in taken)
    taken.add(name)
    return name


def _prefix(root: ApiPlace) -> str:
    """The part before the colon of a description's ids."""
    given = root.child("info").child("x-api-prefix").node
    if isinstance(given, str) and given.strip():
        return _tidy(given.strip())
    words = _slug(api_title(root)) or _slug(PurePosixPath(root.source).stem) or "api"
    # At a word's end where there is one: "github-v3-rest-api" rather than "github-v3-rest-a".
    short = words[: LONGEST_PREFIX + 1].rpartition("-")[0] if len(words) > LONGEST_PREFIX else words
    return short or words[:LONGEST_PREFIX]


def api_title(root: ApiPlace) -> str:
    """The description's own name, else its file's."""
    title = root.child("info").child("title").node
    if isinstance(title, str) and title.strip():
        return " ".join(title.split())[:LONGEST_NAME]
    return PurePosixPath(root.source).stem


def _guides(root: ApiPlace) -> Iterator[Item]:
    description = root.child("info").child("description").node
    passed = sections(description) if isinstance(description, str) else ()
    numbers = count(1)
    for headings, _, body, code in passed:
        for passage in passages(body, code=code):
            slug = _slug(headings[-1]) if headings else "overview"
            yield Item(
                "guide", root.source, root.at({}), ("info", "description", str(next(numbers))),
                (f"guide/{slug}",), title=" > ".join((api_title(root), *headings)), prose=passage,
            )  # fmt: skip


def _tags(root: ApiPlace, problems: list[str]) -> Iterator[Item]:
    tags = root.child("tags")
    if not isinstance(tags.node, list | None):
        problems.append(f"{root.source}, tags: this is no list")
    for number, node in enumerate(as_list(tags.node)):
        tag = tags.at(node).end(parts_only=True)
        name, prose = (tag.child(key).node for key in ("name", "description"))
        if not isinstance(name, str):
            problems.append(f"{root.source}, tags {number}: this is no tag")
        elif isinstance(prose, str) and prose.strip():
            yield Item(
                "tag", root.source, tag, ("tags", str(number)), (f"tags/{_slug(name)}",),
                title=f"{api_title(root)} > {name}", prose=prose,
            )  # fmt: skip


def _operations(root: ApiPlace, key: str, problems: list[str]) -> Iterator[Item]:
    paths = _mapping(root, key, problems)
    for path in paths.node:
        if path.startswith("x-"):
            continue
        place, where = paths.child(path).end(), f"{root.source}, {key} {path}"
        if not isinstance(place.node, dict):
            problems.append(f"{where}: this is no path item")
            continue
        if "$ref" in place.node:
            problems.append(f"{where}: {place.node['$ref']} is not at hand")
        shared = [place.at(node) for node in as_list(place.child("parameters").node)]
        for method in METHODS:
            if method not in place.node:
                continue
            operation = place.child(method).end()
            if not isinstance(operation.node, dict):
                problems.append(f"{where} {method}: this is no operation")
                continue
            given = operation.node.get("operationId")
            own = (given,) if isinstance(given, str) and given.strip() else ()
            spelled = f"{method.upper()}{path}" if key == "paths" else f"webhooks/{path}"
            yield Item(
                "operation" if key == "paths" else "webhook", root.source, operation,
                (key, path, method), (*own, spelled), path=path, method=method.upper(),
                shared=shared,
            )  # fmt: skip


def parameters_of(item: Item) -> list[ApiPlace]:
    """The operation's parameters, and its path's that it does not replace."""
    parameters: dict[tuple[str, str], ApiPlace] = {}
    own = item.place.child("parameters")
    for given in (*item.shared, *map(own.at, as_list(own.node))):
        place = given.end()
        if isinstance(place.node, dict):
            name = place.node.get("name", ref_of(place.node))
            parameters[str(place.node.get("in")), str(name)] = place
    return list(parameters.values())


def security_of(item: Item) -> Any:
    """What an operation needs to be called: its own word, else its description's. The latter
    is about calls to the API, so it does not hold for the webhooks that the API calls."""
    root = item.place.within.root(item.place.source)
    general = root.child("security").node if item.kind == "operation" else None
    return item.place.child("security").node if "security" in item.node else general


def _mapping(place: ApiPlace, key: str, problems: list[str]) -> ApiPlace:
    """The mapping under `key`; an empty one if there is none."""
    mapping = place.child(key)
    if not isinstance(mapping.node, dict | None):
        problems.append(f"{place.source}, {key}: this is no object")
    return mapping if isinstance(mapping.node, dict) else mapping.at({})


def _tidy(name: str) -> str:
    # Ids are written in lines and lists, so they hold no white space.
    name = re.sub(r"\s+", "_", whole(name).strip()) or "_"
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[: LONGEST_NAME - 9]}~{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _slug(text: str) -> str:
    return re.sub(r"[^\w]+", "-", text.lower()).strip("-")[:60].strip("-")
