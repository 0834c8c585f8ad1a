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
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import PurePosixPath
from typing import Any, Literal
from urllib.parse import unquote

from ragfilter.ingest.markdown import sections
from ragfilter.ingest.openapi.resolver import ITEM, Api, as_dict, as_list, as_text, end, item_of, leads, ref_of, shown
from ragfilter.ingest.passages import passages
from ragfilter.text.normalise import mend_characters

Kind = Literal["guide", "tag", "operation", "webhook", "schema", "response", "security"]
SHARED: Mapping[str, Kind] = {"schemas": "schema", "responses": "response", "securitySchemes": "security"}
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
LONGEST_ID, LONGEST_PREFIX = 225, 24
_LINK = re.compile(r"\[([^\[\]\n]{1,200})\]\(([^()\s]{0,200}#[^()\s]{1,300})\)")


@dataclass(slots=True, eq=False)
class Item:
    """A part of a description that becomes a chunk. `names` are candidates for its id, best first. The node of an
    operation includes its path's parameters and its description's security, that of a guide or tag has `title` and
    `description`. `refs` are the items that it refers to, `statuses` those of operations that use a response."""

    kind: Kind
    api: Api
    pointer: tuple[str, ...]
    names: tuple[str, ...]
    node: dict[str, Any]
    id: str = ""
    where: str = ""
    refs: tuple[Item, ...] = ()
    statuses: set[str] = field(default_factory=set)


def read_items(trees: Mapping[str, Any], read: Callable[[str], Any]) -> list[Item]:
    """The items of descriptions with their ids and references."""
    by_id, by_link = dict[str, Item](), dict[str, Item]()
    for api in [Api(source, trees, read) for source in trees]:
        for item in [*_items(api)]:
            item.id, item.where = _new_id(item, by_id), f"{api.source}, {' '.join(item.pointer)}"
            by_id[item.id] = item
            by_link.setdefault(f"/{api.source}#operation/{item.names[0]}", item)
            # A part is the first item that it is the content of.
            item.node.setdefault(ITEM, item)
    for item in by_id.values():
        if item.kind in ("guide", "tag"):
            _unlink(item, by_link)
        else:
            _refer(item)
    return [*by_id.values()]


def _refer(item: Item) -> None:
    """Find an item's references, the most important first: what a caller sends and gets, how it signs in, and so on."""
    node, responses = item.node, as_dict(item.node.get("responses"))
    good = [response for status, response in responses.items() if status.startswith("2")]
    schemes = dict.fromkeys(name for way in as_list(node.get("security")) for name in as_dict(way))
    signs_in = [item.api.reference(f"#/components/securitySchemes/{name}") for name in schemes]
    # A shared success response is a chunk, but its content is needed right away too.
    starts = [node.get("requestBody"), *good, *map(end, good), node.get("parameters"), *signs_in, *responses.values()]
    refs = dict.fromkeys(leads([*starts, node], {}))
    item.refs = tuple(ref for ref in refs if isinstance(ref, Item) and ref is not item)
    missing = (ref[:200] for ref in refs if isinstance(ref, str))
    item.api.problems += (f"{item.where}: the reference {ref} points to nothing that was loaded" for ref in missing)
    for status, response in responses.items():
        if shared := item_of(response):
            shared.statuses.add(status)


def _unlink(item: Item, by_link: Mapping[str, Item]) -> None:
    """Replace links to items by their labels in the Markdown of a guide or tag. Such a link is
    ``[label](#operation/<operationId>)`` or ``[label](common.yaml#/components/schemas/Money)``."""
    prose, found = item.node["description"], dict[Item, None]()
    for match in _LINK.finditer(prose):
        place = item.api.absolute(match[2])
        if target := by_link.get(unquote(place)) or item_of(item.api.reference(match[2])):
            item.node["description"] = item.node["description"].replace(match[0], match[1])
            found[target] = None
    item.refs = tuple(found)


def _items(api: Api) -> Iterator[Item]:
    parts = sections(as_text(as_dict(api.tree.get("info")).get("description")))
    guides = [(part.headings, passage) for part in parts for passage in passages(part.text, code=part.code)]
    for number, (headings, passage) in enumerate(guides, start=1):
        names = (f"guide/{_slug(headings[-1]) if headings else 'overview'}",)
        node = {"title": " > ".join((api.title, *headings)), "description": passage}
        yield Item("guide", api, ("info", "description", str(number)), names, node)
    for number, tag in enumerate(as_list(api.tree.get("tags"))):
        name, prose = (as_text(as_dict(tag).get(key)) for key in ("name", "description"))
        if name.strip() and prose.strip():
            node = {"title": f"{api.title} > {name}", "description": prose}
            yield Item("tag", api, ("tags", str(number)), (f"tags/{_slug(name)}",), node)
    for key in ("paths", "webhooks"):
        for path, path_item in _parts(api, api.tree.get(key), key):
            yield from _operations(api, key, path, end(path_item))
    components = dict(_parts(api, api.tree.get("components"), "components"))
    for key, kind in SHARED.items():
        for name, component in _parts(api, components.get(key), "components", key):
            node = shown(component)
            if kind == "schema" or not ref_of(node):
                longer = f"{key.removesuffix('Schemes')}/{name}"
                own = (name, longer) if kind == "schema" else (longer,)
                item = Item(kind, api, ("components", key, name), own, node)
                component.setdefault(ITEM, item)
                yield item


def _operations(api: Api, key: str, path: str, path_item: Any) -> Iterator[Item]:
    if ref := ref_of(path_item):
        api.problems.append(f"{api.source}, {key} {path}: {ref} is not available")
    # The description's security is for calls to the API, not for the webhooks that it calls.
    general = {"security": api.tree.get("security")} if key == "paths" else {}
    for method in METHODS:
        if isinstance(operation := end(path_item.get(method)), dict):
            names = [f"{method.upper()}{path}" if key == "paths" else f"webhooks/{path}"]
            if operation_id := as_text(operation.get("operationId")).strip():
                names.insert(0, operation_id)
            # An operation's parameters override those of its path with their names.
            both = map(end, [*as_list(path_item.get("parameters")), *as_list(operation.get("parameters"))])
            parameters = {(str(p.get("in")), str(p.get("name", ref_of(p)))): p for p in both if isinstance(p, dict)}
            responses = {s: r for s, r in as_dict(end(operation.get("responses"))).items() if not s.startswith("x-")}
            node = general | operation | {"parameters": [*parameters.values()], "responses": responses}
            item = Item("operation" if key == "paths" else "webhook", api, (key, path, method), tuple(names), node)
            operation.setdefault(ITEM, item)
            yield item


def _parts(api: Api, node: Any, *pointer: str) -> Iterator[tuple[str, Any]]:
    """Yield the objects under a key, by name. Other types are left out and reported."""
    if node is not None and not isinstance(shown(node), dict):
        api.problems.append(f"{api.source}, {' '.join(pointer)}: this is not an object")
    for name, part in as_dict(node).items():
        if isinstance(end(part), dict):
            yield name, part
        elif not name.startswith("x-"):
            api.problems.append(f"{api.source}, {' '.join((*pointer, name))}: this is not an object")


def _new_id(item: Item, used: Container[str]) -> str:
    names = [*item.names, f"{item.names[-1]}@{PurePosixPath(item.api.source).stem}"]
    # Ids are written in lines and lists, so they must not contain white space.
    ids = ["_".join(mend_characters(f"{_prefix(item.api)}:{name}").split())[:LONGEST_ID] for name in names]
    numbered = (f"{ids[-1]}-{number}" for number in count(2))
    return next(each for each in chain(ids, numbered) if each not in used)


def _prefix(api: Api) -> str:
    """The prefix of a description's ids, before the colon."""
    if prefix := as_text(as_dict(api.tree.get("info")).get("x-api-prefix")).strip():
        return prefix
    words = _slug(api.title) or _slug(PurePosixPath(api.source).stem) or "api"
    # Cut at the end of a word if possible: "github-v3-rest-api" rather than "github-v3-rest-a".
    cut = words[: LONGEST_PREFIX + 1].rpartition("-")[0] or words[:LONGEST_PREFIX]
    return words if len(words) <= LONGEST_PREFIX else cut


def _slug(text: str) -> str:
    return re.sub(r"[^\w]+", "-", text.lower()).strip("-")[:60].strip("-")
