"""Places in API descriptions, and where a `$ref` in one leads.

Source: OpenAPI 3.1, Reference Object; RFC 6901. A file that is no description of its own is a part
of those that refer to it: its schemas become chunks of theirs, and everything else is read in the
place of the reference. A tree may come from YAML with aliases, so it may be a graph and hold
cycles.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import unquote

from ragfilter.basics.extras import extra

with extra("ingest"):
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable

Trees = Mapping[str, dict[str, Any]]
Kind = Literal["guide", "tag", "operation", "webhook", "schema", "response", "security"]
Spot = tuple[str, str, tuple[str, ...]]
LONGEST_CHAIN = 20


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
