"""Descriptions that are split into files, each as one tree.

A file that is no description of its own is a part of those that refer to it. Its schemas become
schemas of the description, and everything else takes the place of the reference, as tools that
bundle descriptions do it. References to other descriptions stay. Nothing here recurses, and a node
is copied once for each place, so a tree may be a graph and hold cycles.
"""

from __future__ import annotations

import posixpath
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain, count
from pathlib import PurePosixPath
from typing import Any, Literal

from ragfilter.ingest.openapi.refs import (
    DATA,
    LONGEST_CHAIN,
    NAME_MAPS,
    ResolvedRef,
    Spot,
    file_of,
    find,
    ref_of,
)
from ragfilter.ingest.openapi.types import as_dict

Place = Literal["", "names", "components", "schemas", "schema", "properties"]
"""What a node is: anything else, a map under an author's names, `components`, its map of schemas, a
schema, or a map of schemas."""
SCHEMA_MAPS = frozenset(
    ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
)


def gather(trees: dict[str, Any], read: Callable[[str], Any]) -> dict[str, Any]:
    """What the files hold that these descriptions refer to, directly or through others. `read`
    gives what a file holds, and None if it is not there."""
    parts: dict[str, Any] = {}
    missing: set[str] = set()
    waiting = deque(trees.items())
    while waiting:
        source, tree = waiting.popleft()
        for ref in _refs_in(tree):
            file = file_of(ref, source)
            if file not in trees and file not in parts and file not in missing:
                part = read(file)
                if part is None:
                    missing.add(file)
                else:
                    parts[file] = part
                    waiting.append((file, part))
    return parts


def bundled(source: str, trees: dict[str, Any], parts: dict[str, Any]) -> dict[str, Any]:
    """The description `source` with the parts that it refers to."""
    return _Bundle(source, trees, parts).tree()


def _refs_in(tree: Any) -> Iterator[str]:
    seen: set[int] = set()
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict | list) and id(node) not in seen:
            seen.add(id(node))
            waiting.extend(node.values() if isinstance(node, dict) else node)
            mapping = as_dict(as_dict(as_dict(node).get("discriminator")).get("mapping"))
            yield from (ref for ref in (ref_of(node), *mapping.values()) if isinstance(ref, str))


class _Bundle:
    """One tree while it is copied; `schemas` are the names of those that stand in parts."""

    def __init__(self, source: str, trees: dict[str, Any], parts: dict[str, Any]) -> None:
        self.source = source
        self.parts = parts
        self.trees = trees | parts
        self.schemas: dict[Spot, str] = {}
        self.names: set[str] = set()
        self.added: dict[str, Any] = {}
        self.copies: dict[tuple[int, str, Place], Any] = {}
        self.waiting: deque[tuple[Any, Any, str, Place]] = deque()

    def tree(self) -> dict[str, Any]:
        root = ResolvedRef(self.source, (), self.trees[self.source])
        own = self._below(self._below(root, "components"), "schemas")
        for name in as_dict(own.node):
            self.names.add(name)
            self.schemas[own.source, (*own.pointer, name)] = name
            there = self._below(own, name)
            self.schemas.setdefault((there.source, there.pointer), name)
        tree: dict[str, Any] = self._copy(root.node, self.source, "")
        while self.waiting:
            self._fill(*self.waiting.popleft())
        if self.added:
            components = tree.setdefault("components", {})
            if isinstance(components, dict) and isinstance(components.get("schemas", {}), dict):
                components["schemas"] = components.get("schemas", {}) | self.added
        return tree

    def _below(self, found: ResolvedRef, key: str) -> ResolvedRef:
        below = ResolvedRef(found.source, (*found.pointer, key), as_dict(found.node).get(key))
        return self._end(below)

    def _end(self, found: ResolvedRef) -> ResolvedRef:
        """What stands behind a chain of references into parts."""
        for _ in range(LONGEST_CHAIN):
            there = self._find(ref, found.source) if (ref := ref_of(found.node)) else None
            if there is None or there.source not in self.parts:
                break
            found = there
        return found

    def _find(self, ref: str, source: str) -> ResolvedRef | None:
        # Many a part writes "#/components/…" and means the description.
        return find(self.trees, ref, source) or (
            find(self.trees, ref, self.source) if ref.startswith("#") else None
        )

    def _copy(self, node: Any, source: str, place: Place) -> Any:
        end = self._end(ResolvedRef(source, (), node))
        if place != "schema" or isinstance(end.node, str):
            node, source = end.node, end.source
        if not isinstance(node, dict | list):
            return node
        key = (id(node), source, place)
        if key not in self.copies:
            self.copies[key] = {} if isinstance(node, dict) else []
            self.waiting.append((node, self.copies[key], source, place))
        return self.copies[key]

    def _fill(self, node: Any, copy: Any, source: str, place: Place) -> None:
        if isinstance(node, list):
            copy.extend(self._copy(child, source, place) for child in node)
            return
        is_named = place in ("names", "schemas", "properties")
        for key, child in node.items():
            if not is_named and (key in DATA or key.startswith("x-")):
                copy[key] = child
            elif key == "$ref" and isinstance(child, str):
                copy[key] = self._ref(child, source, is_schema=place == "schema")
            elif key == "discriminator" and not is_named:
                mapping = as_dict(as_dict(child).get("mapping"))
                led = {
                    # It may name a schema instead of pointing to it.
                    name: self._ref(value, source, is_schema=True)
                    if isinstance(value, str) and self._find(value, source)
                    else value
                    for name, value in mapping.items()
                }
                copy[key] = child | {"mapping": led} if mapping else child
            elif place == "schemas":
                # Its name is its own, wherever it stands.
                end = self._end(ResolvedRef(source, (), child))
                copy[key] = self._copy(end.node, end.source, "schema")
            else:
                copy[key] = self._copy(child, source, _place(place, key))

    def _schema(self, found: ResolvedRef) -> str:
        """A reference to the schema under the name that it has in the description."""
        for end in range(len(found.pointer), -1, -1):
            if name := self.schemas.get((found.source, found.pointer[:end])):
                return "#/components/schemas/" + "/".join(
                    token.replace("%", "%25").replace("~", "~0").replace("/", "~1")
                    for token in (name, *found.pointer[end:])
                )
        words = (*PurePosixPath(found.source).with_suffix("").parts, *found.pointer)
        names = ["/".join(words[-n:]) for n in range(1, len(words) + 1)]
        numbered = (f"{names[-1]}-{n}" for n in count(2))
        name = next(name for name in chain(names, numbered) if name not in self.names)
        self.names.add(name)
        self.schemas[found.source, found.pointer] = name
        self.added[name] = self._copy(found.node, found.source, "schema")
        return self._schema(found)

    def _ref(self, ref: str, source: str, *, is_schema: bool) -> str:
        """A reference as the description would write it."""
        there = self._find(ref, source)
        if there and there.source in self.parts and is_schema:
            return self._schema(self._end(there))
        if source == self.source or "://" in ref:
            return ref
        file = there.source if there else file_of(ref, source)
        fragment = ref.partition("#")[2]
        if file == self.source:
            return f"#{fragment}"
        return f"{posixpath.relpath(file, posixpath.dirname(self.source) or '.')}#{fragment}"


def _place(place: Place, key: str) -> Place:
    if place in ("schema", "properties"):
        return "properties" if place == "schema" and key in SCHEMA_MAPS else "schema"
    if place == "components":
        return "schemas" if key == "schemas" else "names"
    if place == "names":
        return ""
    if key in ("components", "schema"):
        return "components" if key == "components" else "schema"
    return "names" if key in NAME_MAPS or key in ("paths", "webhooks") else ""
