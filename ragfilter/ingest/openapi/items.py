"""The parts of API descriptions that become chunks, the id of each, and the chunks it leads to.

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

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import PurePosixPath
from typing import Any, Literal, TypeGuard, get_args
from urllib.parse import unquote

from ragfilter.ingest.markdown import sections
from ragfilter.ingest.openapi.bundle import (
    Descriptions,
    absolute,
    as_dict,
    as_list,
    below_in,
    ref_of,
    uri,
)
from ragfilter.ingest.passages import passages
from ragfilter.text.normalise import whole

Kind = Literal["guide", "tag", "operation", "webhook", "schema", "response", "security"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""In the order in which they get their ids."""
SHARED: Mapping[str, tuple[Kind, str]] = {
    "schemas": ("schema", "schemas"),
    "responses": ("response", "responses"),
    "securitySchemes": ("security", "security"),
}
"""Of components that become chunks: their kind, and how their ids begin."""
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
LONGEST_NAME, LONGEST_PREFIX = 200, 24
_LINK = re.compile(r"\[([^\[\]\n]{1,200})\]\(([^()\s]{0,200}#[^()\s]{1,300})\)")


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """What becomes a chunk of the description `source`. `names` are candidates for its id, best
    first. `parameters` and `security` apply to an operation, including its path's and its
    description's. `title` and `prose` belong to a guide."""

    kind: Kind
    source: str
    pointer: tuple[str, ...]
    names: tuple[str, ...]
    node: Any
    path: str = ""
    method: str = ""
    parameters: Sequence[Any] = ()
    security: Any = None
    title: str = ""
    prose: str = ""

    @property
    def where(self) -> str:
        """The place in words."""
        return f"{self.source}, {' '.join(self.pointer)}"

    @property
    def responses(self) -> dict[str, Any]:
        """An operation's responses by status."""
        given = as_dict(self.node.get("responses")) if self.method else {}
        return {status: node for status, node in given.items() if not status.startswith("x-")}


class Items:
    """The items of descriptions and where they stand. `problems` says what was left out of each
    description, and why."""

    def __init__(self, api: Descriptions) -> None:
        self.api = api
        self.problems: dict[str, list[str]] = {source: [] for source in api.trees}
        self.every = [item for source in api.trees for item in self._items(source)]
        operations = [item for item in reversed(self.every) if item.method]
        self._operation = {(uri(item.source), item.names[0]): item for item in operations}
        self._at = {unquote(uri(item.source, *item.pointer)): item for item in self.every}

    def at(self, ref: str) -> Item | None:
        """The item that an absolute reference leads to or into."""
        ref = unquote(ref)
        while ref and ref not in self._at:
            ref = ref.rpartition("/")[0]
        return self._at.get(ref)

    def _items(self, source: str) -> Iterator[Item]:
        tree = self.api.trees[source]
        name = api_title(source, tree)
        yield from _guides(source, tree)
        for number, tag in enumerate(as_list(tree.get("tags"))):
            own, prose = as_dict(tag).get("name"), as_dict(tag).get("description")
            if _has_text(own) and _has_text(prose):
                place, names = ("tags", str(number)), (f"tags/{_slug(own)}",)
                yield Item("tag", source, place, names, tag, title=f"{name} > {own}", prose=prose)
        for key in ("paths", "webhooks"):
            for path, node in self._parts(source, tree.get(key), key):
                yield from self._operations(source, key, path, node)
        for key, named in self._parts(source, tree.get("components"), "components"):
            kind, word = SHARED.get(key, ("schema", ""))
            for name, node in self._parts(source, named, "components", key) if word else ():
                if kind == "schema" or "$ref" not in node:
                    spelled = [f"{word}/{name}"] if kind != "schema" else [name, f"{word}/{name}"]
                    yield Item(kind, source, ("components", key, name), (*spelled,), node)

    def _operations(self, source: str, key: str, path: str, given: Any) -> Iterator[Item]:
        node = self.api.end(given)
        if ref := ref_of(node):
            self.problems[source].append(f"{source}, {key} {path}: {ref} is not available")
        kind: Kind = "operation" if key == "paths" else "webhook"
        # What the description says is about calls to the API, not for the webhooks that it calls.
        general = self.api.trees[source].get("security") if key == "paths" else None
        for method in filter(node.__contains__, METHODS):
            operation = self.api.end(node[method])
            if isinstance(operation, dict):
                own, upper = operation.get("operationId"), method.upper()
                spelled = f"{upper}{path}" if key == "paths" else f"webhooks/{path}"
                yield Item(
                    kind, source, (key, path, method),
                    (own, spelled) if _has_text(own) else (spelled,), operation, path, upper,
                    self._parameters(node, operation), operation.get("security", general),
                )  # fmt: skip

    def _parts(self, source: str, node: Any, *place: str) -> Iterator[tuple[str, Any]]:
        """The objects under a key, by name. What is of another type is left out and told."""
        parts = {} if node is None else node
        if not isinstance(parts, dict):
            self.problems[source].append(f"{source}, {' '.join(place)}: this is not an object")
        for name, part in as_dict(parts).items():
            if isinstance(part, dict):
                yield name, part
            elif not name.startswith("x-"):
                self.problems[source].append(
                    f"{source}, {' '.join((*place, name))}: this is not an object"
                )

    def _parameters(self, *nodes: Mapping[str, Any]) -> list[Any]:
        """The parameters of a path item and its operation, which may replace some."""
        parameters: dict[tuple[str, str], Any] = {}
        for given in (each for node in nodes for each in as_list(node.get("parameters"))):
            if isinstance(node := self.api.end(given), dict):
                parameters[str(node.get("in")), str(node.get("name", ref_of(node)))] = node
        return list(parameters.values())

    def leads(self, item: Item) -> tuple[list[Item], list[str]]:
        """What an item leads to: chunks in order, and references that lead nowhere."""
        refs = dict.fromkeys(self._refs(self._starts(item), {}))
        chunks = dict.fromkeys(chunk for ref in refs if (chunk := self.at(ref)))
        chunks.pop(item, None)
        return list(chunks), [ref for ref in refs if self.api.find(ref) is None]

    def _refs(self, node: Any, seen: dict[int, Any], named: bool = False) -> Iterator[str]:
        """The references in a node that lead to chunks or nowhere. What another one reaches, such
        as a shared parameter, is walked through."""
        if not isinstance(node, dict | list) or id(node) in seen:
            return
        seen[id(node)] = node  # Kept, since nodes are told apart by where they are in memory.
        kinds = as_dict(as_dict(as_dict(node).get("discriminator")).get("mapping")).values()
        # A kind whose reference is not absolute is a name.
        refs = [ref_of(node), *(ref for ref in kinds if str(ref).startswith("/"))]
        for ref in filter(None, refs) if not named else ():
            target = self.api.find(ref)
            if target is None or self.at(ref):
                yield ref
            else:
                yield from self._refs(target, seen)
        for key, named_below in below_in(node, named):
            if named or not str(key).startswith("x-"):
                yield from self._refs(node[key], seen, named_below)

    def _starts(self, item: Item) -> list[Any]:
        """The parts of an item in the order in which its references count: what a caller sends,
        what it gets, how it signs in, what may go wrong."""
        if not item.method:
            return [] if item.prose else [item.node]
        good = [node for status, node in item.responses.items() if status.startswith("2")]
        bad = [node for status, node in item.responses.items() if not status.startswith("2")]
        schemes = dict.fromkeys(name for each in as_list(item.security) for name in as_dict(each))
        keys = [uri(item.source, "components", "securitySchemes", name) for name in schemes]
        described = ("requestBody", "parameters", "responses")
        rest = {key: node for key, node in item.node.items() if key not in described}
        # A shared success response is a chunk; what it holds is needed at once all the same.
        gets = [*good, *map(self.api.end, good)]
        signs_in = [{"$ref": key} for key in keys]
        return [item.node.get("requestBody"), *gets, *item.parameters, *signs_in, *bad, rest]

    def statuses(self) -> dict[Item, list[str]]:
        """The statuses with which operations use the shared responses, sorted."""
        used: dict[Item, set[str]] = {}
        for item in self.every:
            for status, response in item.responses.items():
                if chunk := self.at(ref_of(response)):
                    used.setdefault(chunk, set()).add(status)
        return {item: sorted(each) for item, each in used.items()}

    def unlinked(self, item: Item, ids: Mapping[Item, str]) -> tuple[str, list[str]]:
        """The Markdown of a guide or tag with its links to chunks as plain words, and their ids.

        A link is ``[label](#operation/<operationId>)`` or a reference such as
        ``[label](common.yaml#/components/schemas/Money)``; others stay as they are.
        """
        chunk_ids: dict[str, None] = {}

        def plain(match: re.Match[str]) -> str:
            label, target = match.groups()
            ref = absolute(uri(item.source), target)
            file, _, operation = ref.partition("#operation/")
            chunk = self._operation.get((file, unquote(operation))) or self.at(ref)
            if chunk is not None:
                chunk_ids[ids[chunk]] = None
            return match[0] if chunk is None else label

        return _LINK.sub(plain, item.prose), list(chunk_ids)


def identify(items: Iterable[Item], trees: Mapping[str, dict[str, Any]]) -> dict[Item, str]:
    """A unique id for each item, in the order in which they get one."""
    sources = list(trees)
    taken: set[str] = set()

    def new_id(item: Item) -> str:
        last = f"{item.names[-1]}@{PurePosixPath(item.source).stem}"
        prefix = _prefix(item.source, trees[item.source])
        names = [f"{prefix}:{_tidy(name)}" for name in (*item.names, last)]
        numbered = (f"{names[-1]}-{number}" for number in count(2))
        new = next(name for name in chain(names, numbered) if name not in taken)
        taken.add(new)
        return new

    ordered = sorted(items, key=lambda it: (sources.index(it.source), KINDS.index(it.kind)))
    return {item: new_id(item) for item in ordered}


def api_title(source: str, tree: Mapping[str, Any]) -> str:
    """The description's own name, else its file's."""
    title = as_dict(tree.get("info")).get("title")
    if _has_text(title):
        return " ".join(title.split())[:LONGEST_NAME]
    return PurePosixPath(source).stem


def _prefix(source: str, tree: Mapping[str, Any]) -> str:
    """The part before the colon of a description's ids."""
    given = as_dict(tree.get("info")).get("x-api-prefix")
    if _has_text(given):
        return _tidy(given)
    words = _slug(api_title(source, tree)) or _slug(PurePosixPath(source).stem) or "api"
    # At a word's end where there is one: "github-v3-rest-api" rather than "github-v3-rest-a".
    return (
        words
        if len(words) <= LONGEST_PREFIX
        else (words[: LONGEST_PREFIX + 1].rpartition("-")[0] or words[:LONGEST_PREFIX])
    )


def _guides(source: str, tree: Mapping[str, Any]) -> Iterator[Item]:
    description = as_dict(tree.get("info")).get("description")
    name, number = api_title(source, tree), 0
    for headings, _, body, code in sections(description) if isinstance(description, str) else ():
        for passage in passages(body, code=code):
            names = (f"guide/{_slug(headings[-1]) if headings else 'overview'}",)
            place = ("info", "description", str(number := number + 1))
            title = " > ".join((name, *headings))
            yield Item("guide", source, place, names, {}, title=title, prose=passage)


def _has_text(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value.strip())


def _tidy(name: str) -> str:
    # Ids are written in lines and lists, so they hold no white space.
    return re.sub(r"\s+", "_", whole(name).strip())[:LONGEST_NAME] or "_"


def _slug(text: str) -> str:
    return re.sub(r"[^\w]+", "-", text.lower()).strip("-")[:60].strip("-")
