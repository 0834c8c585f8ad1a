"""Places in API descriptions and where a `$ref` in one leads, the parts that become chunks, and the
id of each.

Source: OpenAPI 3.1, Reference Object; RFC 6901. A file that is no description of its own is a part
of those that refer to it: its schemas become chunks of theirs, and everything else is read in the
place of the reference. A tree may come from YAML with aliases, so it may be a graph and hold
cycles.

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
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import PurePosixPath
from typing import Any, Literal, get_args
from urllib.parse import unquote

from ragfilter.basics.extras import extra
from ragfilter.ingest.markdown import sections
from ragfilter.ingest.passages import passages
from ragfilter.text.normalise import whole

with extra("ingest"):
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable

Trees = Mapping[str, dict[str, Any]]
Kind = Literal["guide", "tag", "operation", "webhook", "schema", "response", "security"]
Spot = tuple[str, str, tuple[str, ...]]
LONGEST_CHAIN = 20
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
COMPONENTS: dict[str, Kind] = {
    "schemas": "schema", "responses": "response", "securitySchemes": "security"
}  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
"""In the order in which they get their ids."""
LONGEST_NAME = 200
LONGEST_PREFIX = 24


class Descriptions:
    """API descriptions (source to tree), their parts, which `read` gives when they are referred to
    (None if there is none), and the chunk that begins at each spot."""

    def __init__(self, trees: Trees, read: Callable[[str], Any] = lambda source: None) -> None:
        self.trees = trees
        self.parts: dict[str, Any] = {}
        self.chunks: dict[Spot, Item] = {}
        self._read = read
        resources = ((source, Resource.opaque(tree)) for source, tree in trees.items())
        self._registry: Registry[Any] = Registry().with_resources(resources)

    def root(self, source: str) -> ApiPlace:
        return ApiPlace(self, source, source, (), self.trees[source])

    def resolve(self, file: str, fragment: str) -> Any:
        """What a file has at a JSON pointer. Raises LookupError, TypeError or ValueError."""
        if file not in self.trees and file not in self.parts:
            part = self.parts[file] = self._read(file)
            if part is not None:
                self._registry = self._registry.with_resource(file, Resource.opaque(part))
        return self._registry.resolver(file).lookup(f"#{fragment}").contents


@dataclass(frozen=True, slots=True)
class ApiPlace:
    """A node, where it stands (file and pointer), and the description `source` that it is read
    for. References in the node are relative to the file."""

    within: Descriptions
    source: str
    file: str
    pointer: tuple[str, ...]
    node: Any

    @property
    def spot(self) -> Spot:
        return self.source, self.file, self.pointer

    @property
    def is_in_part(self) -> bool:
        return self.file not in self.within.trees

    def at(self, node: Any) -> ApiPlace:
        """Another node of the same file."""
        return ApiPlace(self.within, self.source, self.file, self.pointer, node)

    def child(self, key: str) -> ApiPlace:
        """What a mapping has under `key`, behind references into parts."""
        node = as_dict(self.node).get(key)
        pointer = (*self.pointer, key)
        return ApiPlace(self.within, self.source, self.file, pointer, node).end(parts_only=True)

    def find(self, ref: str) -> ApiPlace | None:
        """What `ref`, written here, points to; None if that is not at hand."""
        name, _, fragment = ref.partition("#")
        if "://" in name:
            return None
        # Windows' separators are written too.
        path = posixpath.join(posixpath.dirname(self.file), unquote(name).replace("\\", "/"))
        # Many a part writes "#/components/…" and means the description.
        for file in [posixpath.normpath(path)] if name else [self.file, self.source]:
            try:
                node = self.within.resolve(file, fragment.rstrip("/"))
            except (Unresolvable, LookupError, TypeError, ValueError):
                continue
            tokens = unquote(fragment.rstrip("/")).split("/")[1:]
            pointer = tuple(token.replace("~1", "/").replace("~0", "~") for token in tokens)
            source = file if file in self.within.trees else self.source
            return ApiPlace(self.within, source, file, pointer, node)
        return None

    def end(self, *, parts_only: bool = False) -> ApiPlace:
        """The last place of a chain of references; with `parts_only`, of those into parts."""
        place = self
        for _ in range(LONGEST_CHAIN):
            following = place.find(ref) if (ref := ref_of(place.node)) else None
            if following is None or (parts_only and not following.is_in_part):
                break
            place = following
        return place

    def chunk(self) -> tuple[Item, int] | None:
        """The chunk that the place belongs to, and how many tokens it lies below its beginning."""
        for below in range(len(self.pointer) + 1):
            pointer = self.pointer[: len(self.pointer) - below]
            if item := self.within.chunks.get((self.source, self.file, pointer)):
                return item, below
        return None

    def name(self, ref: str) -> str:
        """A reference written here as a reader would say it: the name of the schema, else its last
        part."""
        place = self.find(ref) if self.within.parts else None
        if place is not None and place.is_in_part and (chunk := place.end(parts_only=True).chunk()):
            item, below = chunk
            return place.pointer[-1] if below else item.names[0]
        last = re.split(r"[/#]", ref.rstrip("/#"))[-1]
        return unquote(last).replace("~1", "/").replace("~0", "~")


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """What becomes a chunk of the description `source`. `pointer` is where it stands in that, and
    `place` where its node is. `names` are candidates for its id, best first. `shared` are the
    parameters of an operation's path, `title` and `prose` are a guide's."""

    kind: Kind
    source: str
    place: ApiPlace
    pointer: tuple[str, ...]
    names: tuple[str, ...]
    path: str = ""
    method: str = ""
    shared: Sequence[ApiPlace] = ()
    title: str = ""
    prose: str = ""

    @property
    def node(self) -> Any:
        return self.place.node

    @property
    def where(self) -> str:
        """The place in words."""
        return f"{self.source}, {' '.join(self.pointer)}"


def ref_of(node: Any) -> str:
    """The `$ref` of a node, empty if it has none."""
    ref = node.get("$ref") if isinstance(node, dict) else None
    return ref if isinstance(ref, str) else ""


def as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


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
