"""Resolves the references of API descriptions: each `$ref` is annotated with its target.

Source: OpenAPI 3.1, Reference Object; RFC 6901. A file that is not a description itself is a part of the descriptions
that refer to it, and replaces the reference, unless it is a schema that the description names in its components. A tree
may come from YAML with aliases, so it may be a graph with cycles."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote, unquote, urljoin
from uuid import uuid4

from ragfilter.errors import extra

with extra("ingest"):
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable

LONGEST_CHAIN, LONGEST_TITLE = 20, 200
# Keys of annotations, which no description has: see `Api.reference`. A node may also be annotated with its item.
TARGET, PART, PLACE, OWNER, ITEM = (f"x-{uuid4()}" for _ in range(5))
# Keys of maps whose own keys are names that an author chose, such as "example".
_SCHEMA_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "schemas", "mapping")
NAMED = frozenset((*_SCHEMA_MAPS, "content", "responses", "headers", "callbacks", "encoding", "parameters"))
# Data, in which a "$ref" is not a reference. (Links lead from responses to possible next calls.)
DATA = frozenset(("example", "examples", "default", "const", "enum", "links"))


class Api:
    """The API description `source` among descriptions (source → tree), with annotated references. `read` returns the
    content of a part, None if it is missing. `problems` are what was left out, and why."""

    def __init__(self, source: str, trees: Mapping[str, Any], read: Callable[[str], Any]) -> None:
        self.source, self.tree, self.problems = source, trees[source], list[str]()
        title = as_text(as_dict(self.tree.get("info")).get("title"))
        self.title = " ".join(title.split())[:LONGEST_TITLE] or PurePosixPath(source).stem
        self._home, self._files = f"/{quote(source)}", {f"/{quote(each)}" for each in trees}
        # Not kept in the registry, which the garbage collector cannot look into.
        retrieve = cache(lambda file: Resource.opaque(trees.get(name := unquote(file[1:])) or read(name)))
        self._resolver = Registry(retrieve=retrieve).resolver()  # type: ignore[call-arg]
        self._find = cache(self._lookup)
        waiting: list[tuple[Any, str]] = [(self.tree, self._home)]
        seen = set[int]()
        while waiting:
            node, place = waiting.pop()
            if not isinstance(node, dict | list) or id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, dict) and (ref := ref_of(node)):
                node |= self.reference(ref, place)
                waiting.append((node.get(PART), node.get(PLACE, "")))
            else:
                mapping = as_dict(as_dict(as_dict(node).get("discriminator")).get("mapping"))
                # It may name a schema instead of pointing to it.
                names = [value for value, schema in mapping.items() if re.fullmatch(r"[\w-]+", str(schema))]
                mapping |= {value: f"#/components/schemas/{mapping[value]}" for value in names}
                mapping |= {value: {"$ref": ref} for value, ref in mapping.items() if isinstance(ref, str)}
                waiting += [(child, place) for child in (node.values() if isinstance(node, dict) else node)]

    def absolute(self, ref: str, place: str = "") -> str:
        """The absolute form of a reference that is written at a place, or else in the description."""
        name, _, fragment = ref.partition("#")
        # Some references have Windows separators.
        path = quote(unquote(name).replace("\\", "/"))
        return urljoin(place or self._home, f"{path}#{fragment.rstrip('/')}")

    def reference(self, ref: str, place: str = "") -> dict[str, Any]:
        """A reference that is written at a place, or else in the description, annotated with its target there, or else
        its part and the part's place, and with the node that may be an item."""
        node = {"$ref": ref}
        for _ in range(LONGEST_CHAIN):
            # Many parts write "#/components/…" and mean the description.
            places = (self.absolute(ref, place), self.absolute(ref))
            place = next((each for each in places if self._find(each) is not None), "")
            target = self._find(place)
            file, _, pointer = place.partition("#")
            if file in self._files:
                # The pointers of items have three keys: components, section and name, or paths, path and method.
                owner = self._find(f"{file}#{'/'.join(pointer.split('/')[:4])}")
                return node | {TARGET: target, OWNER: owner}
            if not (ref := ref_of(target)):
                return node | ({} if target is None else {PART: target, PLACE: place, OWNER: target})
        return node

    def _lookup(self, place: str) -> Any:
        """The node at an absolute reference; None if nothing is there."""
        try:
            return self._resolver.lookup(place).contents
        except (Unresolvable, LookupError, TypeError, ValueError):
            return None


def leads(node: Any, seen: dict[int, Any], named: bool = False) -> Iterator[Any]:
    """Yield the items that a node refers to, and its references that lead nowhere. Their other targets, such as shared
    parameters, are searched. The keys of a `named` map are chosen by the author."""
    if not isinstance(node, dict | list) or id(node) in seen:
        return
    seen[id(node)] = node  # Kept alive, so that its id() is not reused.
    if isinstance(node, dict) and (ref := ref_of(node)):
        target, item = node.get(TARGET, node.get(PART)), item_of(node)
        yield from leads(target, seen) if target is not None and item is None else [item or ref]
        return
    for key in node if isinstance(node, dict) else range(len(node)):
        if named or not (key in DATA or str(key).startswith("x-")):
            yield from leads(node[key], seen, not named and key in NAMED)


def ref_of(node: Any) -> str:
    """The `$ref` of a node, empty if it has none."""
    ref = node.get("$ref") if isinstance(node, dict) else None
    return ref if isinstance(ref, str) else ""


def item_of(node: Any) -> Any:
    """The item that a reference leads to, or into; None if there is none."""
    owner = node.get(OWNER) if isinstance(node, dict) else None
    return owner.get(ITEM) if isinstance(owner, dict) else None


def end(node: Any) -> Any:
    """Follow a node's references to the last available target, which may be the node itself."""
    for _ in range(LONGEST_CHAIN):
        node = node.get(TARGET, node.get(PART, node)) if isinstance(node, dict) else node
    return node


def shown(node: Any) -> Any:
    """What a node shows: the part that it refers to, unless that is an item, or itself."""
    return node[PART] if isinstance(node, dict) and PART in node and item_of(node) is None else node


def as_dict(node: Any) -> dict[str, Any]:
    return found if isinstance(found := shown(node), dict) else {}


def as_list(node: Any) -> list[Any]:
    return found if isinstance(found := shown(node), list) else []


def as_text(node: Any) -> str:
    return found if isinstance(found := shown(node), str) else ""
