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
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import PurePosixPath
from typing import Any, Literal, TypeGuard
from urllib.parse import unquote

from ragfilter.ingest.markdown import sections
from ragfilter.ingest.openapi.bundle import Descriptions, absolute, as_dict, as_list, below_in, ref_of, uri
from ragfilter.ingest.passages import passages
from ragfilter.text.normalise import mend_characters

Kind = Literal["guide", "tag", "operation", "webhook", "schema", "response", "security"]
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
    """The items of descriptions with their ids. `problems` has, by description, what was left out, and why."""

    def __init__(self, api: Descriptions) -> None:
        self.api = api
        self.problems: dict[str, list[str]] = {source: [] for source in api.trees}
        self._at: dict[str, Item] = {}
        by_id: dict[str, Item] = {}
        for source, tree in api.trees.items():
            for item in self._items(source, tree):
                by_id[_new_id(item, _prefix(source, tree), by_id)] = item
                self._at[unquote(uri(source, *item.pointer))] = item
                if item.method:
                    self._at.setdefault(f"{unquote(uri(source))}#operation/{item.names[0]}", item)
        self.ids = {item: chunk_id for chunk_id, item in by_id.items()}

    def at(self, ref: str) -> Item | None:
        """The item that an absolute reference, or the link of a guide to an operation, points to, or into."""
        ref = unquote(ref)
        while "#/" in ref and ref not in self._at:
            ref = ref.rpartition("/")[0]
        return self._at.get(ref)

    def _items(self, source: str, tree: Mapping[str, Any]) -> Iterator[Item]:
        name = api_title(source, tree)
        prose = as_dict(tree.get("info")).get("description")
        parts = sections(prose) if isinstance(prose, str) else ()
        guides = [(part.headings, passage) for part in parts for passage in passages(part.text, code=part.code)]
        for number, (headings, passage) in enumerate(guides, start=1):
            spelled = f"guide/{_slug(headings[-1]) if headings else 'overview'}"
            place, title = ("info", "description", str(number)), " > ".join((name, *headings))
            yield Item("guide", source, place, (spelled,), {}, title=title, prose=passage)
        for number, tag in enumerate(as_list(tree.get("tags"))):
            tag_name, prose = as_dict(tag).get("name"), as_dict(tag).get("description")
            if _has_text(tag_name) and _has_text(prose):
                spelled, title = f"tags/{_slug(tag_name)}", f"{name} > {tag_name}"
                yield Item("tag", source, ("tags", str(number)), (spelled,), {}, title=title, prose=prose)
        for key in ("paths", "webhooks"):
            for path, node in self._parts(source, tree.get(key), key):
                yield from self._operations(source, key, path, node)
        components = dict(self._parts(source, tree.get("components"), "components"))
        for key, (kind, word) in SHARED.items():
            for name, node in self._parts(source, components.get(key), "components", key):
                if kind == "schema" or "$ref" not in node:
                    names = [name, f"{word}/{name}"] if kind == "schema" else [f"{word}/{name}"]
                    yield Item(kind, source, ("components", key, name), tuple(names), node)

    def _operations(self, source: str, key: str, path: str, path_item: Any) -> Iterator[Item]:
        node = self.api.end(path_item)
        if ref := ref_of(node):
            self.problems[source].append(f"{source}, {key} {path}: {ref} is not available")
        kind: Kind = "operation" if key == "paths" else "webhook"
        # The description's security is for calls to the API, not for the webhooks that it calls.
        general = self.api.trees[source].get("security") if key == "paths" else None
        for method in METHODS:
            operation = self.api.end(node.get(method))
            if not isinstance(operation, dict):
                continue
            names = [f"{method.upper()}{path}" if key == "paths" else f"webhooks/{path}"]
            if _has_text(operation_id := operation.get("operationId")):
                names.insert(0, operation_id)
            # An operation's parameters override those of its path with their names.
            both = map(self.api.end, [*as_list(node.get("parameters")), *as_list(operation.get("parameters"))])
            parameters = {(str(p.get("in")), str(p.get("name", ref_of(p)))): p for p in both if isinstance(p, dict)}
            yield Item(
                kind,
                source,
                (key, path, method),
                tuple(names),
                operation,
                path,
                method.upper(),
                [*parameters.values()],
                operation.get("security", general),
            )

    def _parts(self, source: str, node: Any, *place: str) -> Iterator[tuple[str, Any]]:
        """Yield the objects under a key, by name. Other types are left out and reported."""
        if node is not None and not isinstance(node, dict):
            self.problems[source].append(f"{source}, {' '.join(place)}: this is not an object")
        for name, part in as_dict(node).items():
            if isinstance(part, dict):
                yield name, part
            elif not name.startswith("x-"):
                self.problems[source].append(f"{source}, {' '.join((*place, name))}: this is not an object")

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
        mapped = as_dict(as_dict(as_dict(node).get("discriminator")).get("mapping")).values()
        # A mapped reference that is not absolute is a name.
        for ref in filter(None, [ref_of(node), *(ref for ref in mapped if str(ref).startswith("/"))]):
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
        good = [node for status, node in item.responses.items() if status.startswith("2")]
        bad = [node for status, node in item.responses.items() if not status.startswith("2")]
        schemes = dict.fromkeys(name for each in as_list(item.security) for name in as_dict(each))
        signs_in = [{"$ref": uri(item.source, "components", "securitySchemes", name)} for name in schemes]
        # A shared success response is a chunk, but its content is needed right away too.
        gets = [*good, *map(self.api.end, good)]
        return [item.node.get("requestBody"), *gets, *item.parameters, *signs_in, *bad, item.node]

    def statuses(self) -> dict[Item, list[str]]:
        """Shared response → the statuses with which operations use it, sorted."""
        used: dict[Item, set[str]] = {}
        for item in self.ids:
            for status, response in item.responses.items():
                if chunk := self.at(ref_of(response)):
                    used.setdefault(chunk, set()).add(status)
        return {item: sorted(each) for item, each in used.items()}

    def unlinked(self, item: Item) -> tuple[str, list[str]]:
        """The Markdown of a guide or tag with links to chunks replaced by their labels, and the ids of these chunks.
        Such a link is ``[label](#operation/<operationId>)`` or a reference such as
        ``[label](common.yaml#/components/schemas/Money)``; other links stay."""
        chunk_ids: dict[str, None] = {}

        def plain(match: re.Match[str]) -> str:
            chunk = self.at(absolute(uri(item.source), match[2]))
            if chunk is None:
                return match[0]
            chunk_ids[self.ids[chunk]] = None
            return match[1]

        return _LINK.sub(plain, item.prose), list(chunk_ids)


def _new_id(item: Item, prefix: str, used: Container[str]) -> str:
    last = f"{item.names[-1]}@{PurePosixPath(item.source).stem}"
    names = [f"{prefix}:{_tidy(name)}" for name in (*item.names, last)]
    numbered = (f"{names[-1]}-{number}" for number in count(2))
    return next(name for name in chain(names, numbered) if name not in used)


def api_title(source: str, tree: Mapping[str, Any]) -> str:
    """The title of the description, or its file name without one."""
    title = as_dict(tree.get("info")).get("title")
    return " ".join(title.split())[:LONGEST_NAME] if _has_text(title) else PurePosixPath(source).stem


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


def _has_text(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value.strip())


def _tidy(name: str) -> str:
    # Ids are written in lines and lists, so they must not contain white space.
    return re.sub(r"\s+", "_", mend_characters(name).strip())[:LONGEST_NAME] or "_"


def _slug(text: str) -> str:
    return re.sub(r"[^\w]+", "-", text.lower()).strip("-")[:60].strip("-")
