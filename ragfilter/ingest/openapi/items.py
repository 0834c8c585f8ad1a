"""The parts of API descriptions that become chunks, their ids, and the chunks they refer to.

Source: docs/design.md#formats. A chunk is an operation, a webhook, a schema, a shared response, a
security scheme, a described tag, or a section of the description's own prose ("guide"). Shared
parameters, request bodies and headers are not chunks; they are described where they are used.

An id is ``<prefix>:<name>``. The prefix is `x-api-prefix` of `info`, otherwise the beginning of the title (short, since
ids are paid for in every prompt), otherwise the file name. The name is the operationId (or method and path) or the
schema's name; other kinds include their kind (``responses/NotFound``, ``security/oauth``, ``guide/rate-limits``). If a
name is taken, the later item gets a longer one; operations come before schemas, and files in the given order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import PurePosixPath
from typing import Any, Literal, TypeGuard, get_args
from urllib.parse import unquote

from ragfilter.ingest.markdown import sections
from ragfilter.ingest.openapi.bundle import Descriptions, absolute, as_dict, as_list, below_in, ref_of, uri
from ragfilter.ingest.passages import passages
from ragfilter.text.normalise import mend_characters

Kind = Literal["guide", "tag", "operation", "webhook", "schema", "response", "security"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""The kinds of items in the order in which they get their ids."""
SHARED: Mapping[str, tuple[Kind, str]] = {
    "schemas": ("schema", "schemas"),
    "responses": ("response", "responses"),
    "securitySchemes": ("security", "security"),
}
"""Components that become chunks: section → kind and the beginning of the ids."""
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
LONGEST_NAME, LONGEST_PREFIX = 200, 24
_LINK = re.compile(r"\[([^\[\]\n]{1,200})\]\(([^()\s]{0,200}#[^()\s]{1,300})\)")


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """A part of the description `source` that becomes a chunk. `names` are candidates for its id,
    best first. `parameters` and `security` belong to an operation, and include its path's
    and its description. `title` and `prose` belong to a guide or tag."""

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
        """The item's place in words."""
        return f"{self.source}, {' '.join(self.pointer)}"

    @property
    def responses(self) -> dict[str, Any]:
        """An operation's responses by status."""
        by_status = as_dict(self.node.get("responses")) if self.method else {}
        return {status: node for status, node in by_status.items() if not status.startswith("x-")}


class Items:
    """The items of descriptions and their places. `problems` has, by description, what was left out, and why."""

    def __init__(self, api: Descriptions) -> None:
        self.api = api
        self.problems: dict[str, list[str]] = {source: [] for source in api.trees}
        self.every = [item for source in api.trees for item in self._items(source)]
        operations = [item for item in reversed(self.every) if item.method]
        self._operation = {(uri(item.source), item.names[0]): item for item in operations}
        self._at = {unquote(uri(item.source, *item.pointer)): item for item in self.every}

    def at(self, ref: str) -> Item | None:
        """The item that an absolute reference points to, or into."""
        ref = unquote(ref)
        while ref and ref not in self._at:
            ref = ref.rpartition("/")[0]
        return self._at.get(ref)

    def _items(self, source: str) -> Iterator[Item]:
        tree = self.api.trees[source]
        name = api_title(source, tree)
        yield from _guides(source, tree)
        for number, tag in enumerate(as_list(tree.get("tags"))):
            tag_name, prose = as_dict(tag).get("name"), as_dict(tag).get("description")
            if _has_text(tag_name) and _has_text(prose):
                place, names = ("tags", str(number)), (f"tags/{_slug(tag_name)}",)
                yield Item("tag", source, place, names, tag, title=f"{name} > {tag_name}", prose=prose)
        for key in ("paths", "webhooks"):
            for path, node in self._parts(source, tree.get(key), key):
                yield from self._operations(source, key, path, node)
        for key, part in self._parts(source, tree.get("components"), "components"):
            kind, word = SHARED.get(key, ("schema", ""))
            for name, node in self._parts(source, part, "components", key) if word else ():
                if kind == "schema" or "$ref" not in node:
                    spelled = [f"{word}/{name}"] if kind != "schema" else [name, f"{word}/{name}"]
                    yield Item(kind, source, ("components", key, name), (*spelled,), node)

    def _operations(self, source: str, key: str, path: str, path_item: Any) -> Iterator[Item]:
        node = self.api.end(path_item)
        if ref := ref_of(node):
            self.problems[source].append(f"{source}, {key} {path}: {ref} is not available")
        kind: Kind = "operation" if key == "paths" else "webhook"
        # The description's security is for calls to the API, not for the webhooks that it calls.
        general = self.api.trees[source].get("security") if key == "paths" else None
        for method in filter(node.__contains__, METHODS):
            operation = self.api.end(node[method])
            if isinstance(operation, dict):
                operation_id, upper = operation.get("operationId"), method.upper()
                spelled = f"{upper}{path}" if key == "paths" else f"webhooks/{path}"
                yield Item(
                    kind,
                    source,
                    (key, path, method),
                    (operation_id, spelled) if _has_text(operation_id) else (spelled,),
                    operation,
                    path,
                    upper,
                    self._parameters(node, operation),
                    operation.get("security", general),
                )

    def _parts(self, source: str, node: Any, *place: str) -> Iterator[tuple[str, Any]]:
        """Yield the objects under a key, by name. Other types are left out and reported."""
        parts = {} if node is None else node
        if not isinstance(parts, dict):
            self.problems[source].append(f"{source}, {' '.join(place)}: this is not an object")
        for name, part in as_dict(parts).items():
            if isinstance(part, dict):
                yield name, part
            elif not name.startswith("x-"):
                self.problems[source].append(f"{source}, {' '.join((*place, name))}: this is not an object")

    def _parameters(self, *nodes: Mapping[str, Any]) -> list[Any]:
        """The parameters of a path item and its operation, which override those with its names."""
        parameters: dict[tuple[str, str], Any] = {}
        for parameter in (each for node in nodes for each in as_list(node.get("parameters"))):
            if isinstance(node := self.api.end(parameter), dict):
                parameters[str(node.get("in")), str(node.get("name", ref_of(node)))] = node
        return list(parameters.values())

    def leads(self, item: Item) -> tuple[list[Item], list[str]]:
        """The chunks that an item refers to, in order, and its references that cannot be found."""
        refs = dict.fromkeys(self._refs(self._starts(item), {}))
        chunks = dict.fromkeys(chunk for ref in refs if (chunk := self.at(ref)))
        chunks.pop(item, None)
        return list(chunks), [ref for ref in refs if self.api.find(ref) is None]

    def _refs(self, node: Any, seen: dict[int, Any], named: bool = False) -> Iterator[str]:
        """Yield a node's references that lead to chunks or nowhere. Targets such as shared parameters are searched."""
        if not isinstance(node, dict | list) or id(node) in seen:
            return
        seen[id(node)] = node  # Kept alive, so that its id() is not reused.
        kinds = as_dict(as_dict(as_dict(node).get("discriminator")).get("mapping")).values()
        # A mapped reference that is not absolute is a name.
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
        """The parts of an item in the order of importance of their references: what a caller sends
        and gets, how it signs in, and what may go wrong."""
        if not item.method:
            return [] if item.prose else [item.node]
        good = [node for status, node in item.responses.items() if status.startswith("2")]
        bad = [node for status, node in item.responses.items() if not status.startswith("2")]
        schemes = dict.fromkeys(name for each in as_list(item.security) for name in as_dict(each))
        keys = [uri(item.source, "components", "securitySchemes", name) for name in schemes]
        described = ("requestBody", "parameters", "responses")
        rest = {key: node for key, node in item.node.items() if key not in described}
        # A shared success response is a chunk, but its content is needed right away too.
        gets = [*good, *map(self.api.end, good)]
        signs_in = [{"$ref": key} for key in keys]
        return [item.node.get("requestBody"), *gets, *item.parameters, *signs_in, *bad, rest]

    def statuses(self) -> dict[Item, list[str]]:
        """Shared response → the statuses with which operations use it, sorted."""
        used: dict[Item, set[str]] = {}
        for item in self.every:
            for status, response in item.responses.items():
                if chunk := self.at(ref_of(response)):
                    used.setdefault(chunk, set()).add(status)
        return {item: sorted(each) for item, each in used.items()}

    def unlinked(self, item: Item, ids: Mapping[Item, str]) -> tuple[str, list[str]]:
        """The Markdown of a guide or tag with links to chunks replaced by their labels, and the ids of these chunks.
        Such a link is ``[label](#operation/<operationId>)`` or a reference such as
        ``[label](common.yaml#/components/schemas/Money)``; other links stay."""
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
    """A unique id for each item, in the order in which ids are assigned."""
    sources = list(trees)
    used_ids: set[str] = set()

    def new_id(item: Item) -> str:
        last = f"{item.names[-1]}@{PurePosixPath(item.source).stem}"
        prefix = _prefix(item.source, trees[item.source])
        names = [f"{prefix}:{_tidy(name)}" for name in (*item.names, last)]
        numbered = (f"{names[-1]}-{number}" for number in count(2))
        new = next(name for name in chain(names, numbered) if name not in used_ids)
        used_ids.add(new)
        return new

    ordered = sorted(items, key=lambda it: (sources.index(it.source), KINDS.index(it.kind)))
    return {item: new_id(item) for item in ordered}


def api_title(source: str, tree: Mapping[str, Any]) -> str:
    """The title of the description, or its file name without one."""
    title = as_dict(tree.get("info")).get("title")
    if _has_text(title):
        return " ".join(title.split())[:LONGEST_NAME]
    return PurePosixPath(source).stem


def _prefix(source: str, tree: Mapping[str, Any]) -> str:
    """The prefix of a description's ids, before the colon."""
    prefix = as_dict(tree.get("info")).get("x-api-prefix")
    if _has_text(prefix):
        return _tidy(prefix)
    words = _slug(api_title(source, tree)) or _slug(PurePosixPath(source).stem) or "api"
    # Cut at the end of a word if possible: "github-v3-rest-api" rather than "github-v3-rest-a".
    if len(words) <= LONGEST_PREFIX:
        return words
    return words[: LONGEST_PREFIX + 1].rpartition("-")[0] or words[:LONGEST_PREFIX]


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
    # Ids are written in lines and lists, so they must not contain white space.
    return re.sub(r"\s+", "_", mend_characters(name).strip())[:LONGEST_NAME] or "_"


def _slug(text: str) -> str:
    return re.sub(r"[^\w]+", "-", text.lower()).strip("-")[:60].strip("-")
