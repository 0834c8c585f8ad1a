"""The parts of an API description that become chunks, and the id of each.

Source: docs/design.md#formats. A chunk is an operation, a webhook, a schema, a shared response, a
security scheme, a described tag, or a section of the description's own prose ("guide"). Shared
parameters, request bodies and headers are no chunks: they are told where they are used, and the
references in them belong to the user.

An id is ``<prefix>:<name>``. The prefix is `x-api-prefix` of `info`, else the beginning of the
title (ids are paid for in every prompt), else the file name. The name is the operationId (else
method and path) or the schema's name; other kinds carry their kind (``responses/NotFound``,
``security/oauth``, ``guide/rate-limits``). If a name is taken, the later one gets a longer name:
operations come before schemas, wherever they stand in the file, and files in the order given.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import PurePosixPath
from typing import Any, Literal

from ragfilter.ingest.markdown import sections
from ragfilter.ingest.openapi.refs import Pointer, Spot, Trees, follow
from ragfilter.ingest.openapi.types import as_dict, as_list
from ragfilter.ingest.passages import passages
from ragfilter.text.characters import whole

Kind = Literal["guide", "tag", "operation", "webhook", "schema", "response", "security"]
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
COMPONENTS: tuple[tuple[str, Kind], ...] = (
    ("schemas", "schema"),
    ("responses", "response"),
    ("securitySchemes", "security"),
)
LONGEST_NAME = 200
LONGEST_PREFIX = 24


@dataclass(frozen=True, slots=True)
class Item:
    """One part. `names` are its candidates for an id, best first; references in `node` are relative
    to the file `base`. `shared` are the parameters of the path, each with the file that it stands
    in, `title` and `prose` a guide's."""

    kind: Kind
    source: str
    pointer: Pointer
    names: tuple[str, ...]
    node: Any
    base: str
    path: str = ""
    method: str = ""
    shared: Sequence[tuple[Any, str]] = ()
    title: str = ""
    prose: str = ""

    @property
    def place(self) -> str:
        return f"{self.source}, {' '.join(self.pointer)}"


def items(trees: Trees, source: str, problems: list[str]) -> Iterator[Item]:
    """The parts of one description; `problems` collects what was left out and why."""
    tree = trees[source]
    yield from _guides(tree, source)
    yield from _tags(tree, source, problems)
    yield from _operations(trees, source, "paths", problems)
    yield from _operations(trees, source, "webhooks", problems)
    components = _mapping(tree, "components", source, problems)
    for key, kind in COMPONENTS:
        for name, node in _mapping(components, key, source, problems).items():
            if kind == "schema":
                names: tuple[str, ...] = (name, f"schemas/{name}")
                usable = isinstance(node, dict | bool)
            else:
                names = (f"{'security' if kind == 'security' else key}/{name}",)
                usable = isinstance(node, dict)
                if usable and "$ref" in node:
                    continue
            if usable:
                yield Item(kind, source, ("components", key, name), names, node, source)
            else:
                problems.append(f"{source}, components {key} {name}: this is no {kind}")


def identify(found: Sequence[Item], trees: Trees) -> dict[Spot, str]:
    """A unique id for each item, in the order given."""
    ids: dict[Spot, str] = {}
    taken: set[str] = set()
    prefixes = {source: prefix(tree, source) for source, tree in trees.items()}
    for item in found:
        stem = PurePosixPath(item.source).stem
        names = [_tidy(name) for name in item.names]
        names += [f"{names[-1]}@{stem}"]
        candidates = (f"{prefixes[item.source]}:{name}" for name in _then_numbered(names))
        chunk_id = next(candidate for candidate in candidates if candidate not in taken)
        taken.add(chunk_id)
        ids[item.source, item.pointer] = chunk_id
    return ids


def prefix(tree: dict[str, Any], source: str) -> str:
    """The part before the colon of a description's ids."""
    given = as_dict(tree.get("info")).get("x-api-prefix")
    if isinstance(given, str) and given.strip():
        return _tidy(given.strip())
    words = _slug(api_title(tree, source)) or _slug(PurePosixPath(source).stem) or "api"
    # At a word's end where there is one: "github-v3-rest-api" rather than "github-v3-rest-a".
    short = words[: LONGEST_PREFIX + 1].rpartition("-")[0] if len(words) > LONGEST_PREFIX else words
    return short or words[:LONGEST_PREFIX]


def api_title(tree: dict[str, Any], source: str) -> str:
    """The description's own name, else that of its file."""
    title = as_dict(tree.get("info")).get("title")
    if isinstance(title, str) and title.strip():
        return " ".join(title.split())[:LONGEST_NAME]
    return PurePosixPath(source).stem


def _guides(tree: dict[str, Any], source: str) -> Iterator[Item]:
    description = as_dict(tree.get("info")).get("description")
    if not isinstance(description, str):
        return
    name = api_title(tree, source)
    number = 0
    for headings, _, body, code in sections(description):
        for passage in passages(body, code=code):
            number += 1
            slug = _slug(headings[-1]) if headings else "overview"
            title = " > ".join((name, *headings))
            yield Item(
                "guide", source, ("info", "description", str(number)), (f"guide/{slug}",), {},
                source, title=title, prose=passage,
            )  # fmt: skip


def _tags(tree: dict[str, Any], source: str, problems: list[str]) -> Iterator[Item]:
    tags = tree.get("tags")
    if tags is not None and not isinstance(tags, list):
        problems.append(f"{source}, tags: this is no list")
        return
    for number, tag in enumerate(tags or ()):
        if not isinstance(tag, dict) or not isinstance(tag.get("name"), str):
            problems.append(f"{source}, tags {number}: this is no tag")
        elif isinstance(tag.get("description"), str) and tag["description"].strip():
            yield Item(
                "tag", source, ("tags", str(number)), (f"tags/{_slug(tag['name'])}",), tag,
                source, title=f"{api_title(tree, source)} > {tag['name']}",
                prose=tag["description"],
            )  # fmt: skip


def _operations(trees: Trees, source: str, key: str, problems: list[str]) -> Iterator[Item]:
    for path, node in _mapping(trees[source], key, source, problems).items():
        if path.startswith("x-"):
            continue
        path_item, base = follow(trees, node, source)
        if not isinstance(path_item, dict):
            problems.append(f"{source}, {key} {path}: this is no path item")
            continue
        if "$ref" in path_item:
            problems.append(f"{source}, {key} {path}: {path_item['$ref']} is not at hand")
        for method in METHODS:
            if method not in path_item:
                continue
            operation, there = follow(trees, path_item[method], base)
            if not isinstance(operation, dict):
                problems.append(f"{source}, {key} {path} {method}: this is no operation")
                continue
            if "$ref" in operation:
                missing = f"{operation['$ref']} is not at hand"
                problems.append(f"{source}, {key} {path} {method}: {missing}")
                operation = {name: value for name, value in operation.items() if name != "$ref"}
            own_name = operation.get("operationId")
            spelled = f"{method.upper()}{path}" if key == "paths" else f"webhooks/{path}"
            own = (own_name,) if isinstance(own_name, str) and own_name.strip() else ()
            yield Item(
                "operation" if key == "paths" else "webhook",
                source,
                (key, path, method),
                (*own, spelled),
                operation,
                there,
                path=path,
                method=method.upper(),
                shared=[(node, base) for node in as_list(path_item.get("parameters"))],
            )


def _mapping(node: Any, key: str, source: str, problems: list[str]) -> dict[str, Any]:
    value = node.get(key)
    if value is None or isinstance(value, dict):
        return value or {}
    problems.append(f"{source}, {key}: this is no object")
    return {}


def _then_numbered(names: Sequence[str]) -> Iterator[str]:
    yield from names
    yield from (f"{names[-1]}-{number}" for number in count(2))


def _tidy(name: str) -> str:
    # Ids are written in lines and lists, so they hold no white space.
    name = re.sub(r"\s+", "_", whole(name).strip()) or "_"
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[: LONGEST_NAME - 9]}~{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _slug(text: str) -> str:
    return re.sub(r"[^\w]+", "-", text.lower()).strip("-")[:60].strip("-")
