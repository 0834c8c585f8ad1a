"""API descriptions with their parts read into them, and every `$ref` in them absolute.

Source: OpenAPI 3.1, Reference Object; RFC 6901. A file that is no description of its own is a part
of those that refer to it: its schemas become schemas of the first of them, under `PARTS`, and
everything else takes the place of the reference. A tree may come from YAML with aliases, so it may
be a graph and hold cycles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import chain, count
from typing import Any, Literal
from urllib.parse import quote, unquote, urljoin

from ragfilter.errors import extra

with extra("ingest"):
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable

Trees = Mapping[str, dict[str, Any]]
Role = Literal["", "names", "schema", "properties"]
"""What a node is: anything else, a map under names that an author chose, a schema, a map of
schemas."""
PARTS = "x-parts"
SCHEMA_MAPS = frozenset(
    ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
)
NAME_MAPS = ("content", "responses", "headers", "callbacks", "encoding", "parameters")
ROLES: Mapping[str, Role] = {
    **dict.fromkeys((*SCHEMA_MAPS, *NAME_MAPS), "names"),
    "schema": "schema",
    "schemas": "properties",
}
# Data, in which a "$ref" is no reference. (Links lead from answers to what may be called next.)
DATA = frozenset(("example", "examples", "default", "const", "enum", "links"))
LONGEST_CHAIN = 20


class Descriptions:
    """API descriptions (source to tree). The trees are changed. `read` gives what a part holds
    (None if there is none)."""

    def __init__(self, trees: Trees, read: Callable[[str], Any] = lambda source: None) -> None:
        self.trees = trees
        self._files = {uri(source) for source in trees}
        retrieve = cache(lambda file: Resource.opaque(read(unquote(file[1:]))))
        resources = ((uri(source), Resource.opaque(tree)) for source, tree in trees.items())
        registry: Registry[Any] = Registry(retrieve=retrieve)  # type: ignore[call-arg]
        self._resolver = registry.with_resources(resources).resolver()
        self._references: dict[str, str] = {}
        self._moved: dict[int, str] = {}
        self._waiting: list[tuple[Any, str, Role]] = []
        for source in trees:
            self._bundle(source)

    def find(self, ref: str) -> Any:
        """What an absolute reference leads to; None if that is not at hand."""
        try:
            return self._resolver.lookup(ref.rstrip("/")).contents if ref[:1] == "/" else None
        except (Unresolvable, LookupError, TypeError, ValueError):
            return None

    def end(self, node: Any) -> Any:
        """What a node refers to in the end: itself, if that is not at hand."""
        for _ in range(LONGEST_CHAIN):
            if (target := self.find(ref_of(node))) is None:
                break
            node = target
        return node

    def _bundle(self, source: str) -> None:
        tree = self.trees[source]
        tree[PARTS] = {}
        # The schemas that the description names keep these names, wherever they stand.
        components, place = self._settle(tree, "components", "", uri(source), source)
        schemas, place = self._settle(components, "schemas", "", place, source)
        for name in as_dict(schemas):
            _, where = self._settle(schemas, name, "", place, source)
            if where.partition("#")[0] not in self._files:
                self._references.setdefault(where, uri(source, "components", "schemas", name))
        self._waiting.append((tree, uri(source), ""))
        seen: set[int] = set()
        while self._waiting:
            node, place, role = self._waiting.pop()
            if not isinstance(node, dict | list) or id(node) in seen:
                continue
            seen.add(id(node))
            self._settle_mapping(node, place, source)
            below = [
                (*self._settle(node, key, role_below, place, source), role_below)
                for key, role_below in below_in(node, role)
            ]
            self._waiting.extend(reversed(below))

    def _settle(
        self, parent: Any, key: Any, role: Role, place: str, source: str
    ) -> tuple[Any, str]:
        """What a node has under `key`, and where it stands: a reference made absolute, or what it
        leads to in a part, which takes its place."""
        node: Any = parent[key] if isinstance(key, int) else as_dict(parent).get(key)
        ref, target = self._end(place, source, ref_of(node))
        if not ref:
            own = f"{place}{'' if '#' in place else '#'}/{escaped(str(key))}"
            return node, self._moved.get(id(node), own)
        file = ref.partition("#")[0]
        if file in self._files or (role == "schema" and isinstance(target, dict | bool)):
            node["$ref"] = self._absolute(ref, target, source)
            if file == uri(source):
                self._waiting.append(([target], ref, role))
            return node, place
        parent[key] = target
        if isinstance(target, dict | list):
            self._moved[id(target)] = ref
        return target, ref

    def _settle_mapping(self, node: Any, place: str, source: str) -> None:
        mapping = as_dict(as_dict(as_dict(node).get("discriminator")).get("mapping"))
        for key, given in mapping.items():
            # The mapping may name a schema instead of pointing to it.
            names = (f"#/components/schemas/{given}", given) if isinstance(given, str) else ()
            ends = (self._end(place, source, name) for name in names)
            mapping[key] = next((self._absolute(*end, source) for end in ends if end[0]), given)

    def _absolute(self, ref: str, target: Any, source: str) -> str:
        """The reference to a place in a description, or to a schema in a part, which is added."""
        file, _, fragment = ref.partition("#")
        if file not in self._files and ref not in self._references:
            words = unquote(file[1:].rpartition(".")[0] or file[1:]).split("/")
            words += map(unescaped, fragment.split("/")[1:])
            added = self.trees[source][PARTS]
            taken = {*as_dict(as_dict(self.trees[source].get("components")).get("schemas")), *added}
            name = unused(["/".join(words[-n:]) for n in range(1, len(words) + 1)], taken)
            added[name] = target
            self._references[ref] = uri(source, PARTS, name)
            self._waiting.append((target, ref, "schema"))
        return self._references.get(ref, ref)

    def _end(self, place: str, source: str, ref: str) -> tuple[str, Any]:
        """Where a reference at a place leads in the end, or first in a description: the absolute
        reference, empty if that is not at hand, and the node there."""
        found, node = "", None
        for _ in range(LONGEST_CHAIN):
            # Many a part writes "#/components/…" and means the description.
            places = (absolute(base, ref) for base in (place, uri(source)) if ref)
            place = next((each for each in places if self.find(each) is not None), "")
            if not place:
                break
            node = self.find(place)
            found = place = self._moved.get(id(node), place)
            ref = "" if place.partition("#")[0] in self._files else ref_of(node)
        return found, node


def below_in(node: Any, role: Role) -> Iterator[tuple[Any, Role]]:
    """The keys of a node, data aside, and the role of what stands there."""
    if isinstance(node, list):
        yield from ((n, "" if role == "names" else role) for n in range(len(node)))
        return
    for key in list(node):
        if role == "names":
            yield key, ""
        elif role == "properties":
            yield key, "schema"
        elif key not in DATA and not key.startswith("x-"):
            if role == "schema":
                yield key, "properties" if key in SCHEMA_MAPS else "schema"
            else:
                yield key, ROLES.get(key, "")


def uri(source: str, *pointer: str) -> str:
    """The absolute reference to a file, or to a place in it."""
    return f"/{quote(source)}" + (f"#/{'/'.join(map(escaped, pointer))}" if pointer else "")


def absolute(place: str, ref: str) -> str:
    """A reference that is written at a place, as an absolute one."""
    name, _, fragment = ref.partition("#")
    # Windows' separators are written too.
    path = urljoin(place.partition("#")[0], quote(unquote(name).replace("\\", "/")))
    return f"{path}#{fragment.rstrip('/')}".rstrip("#")


def escaped(key: str) -> str:
    """A key as JSON pointers write it."""
    return key.replace("~", "~0").replace("/", "~1").replace("%", "%25")


def unescaped(token: str) -> str:
    """A key of a JSON pointer as it stands in the tree."""
    return unquote(token).replace("~1", "/").replace("~0", "~")


def unused(names: list[str], taken: set[str]) -> str:
    """The first name that is not taken, else the last one with a number. It is taken then."""
    numbered = (f"{names[-1]}-{number}" for number in count(2))
    name = next(name for name in chain(names, numbered) if name not in taken)
    taken.add(name)
    return name


def ref_of(node: Any) -> str:
    """The `$ref` of a node, empty if it has none."""
    ref = node.get("$ref") if isinstance(node, dict) else None
    return ref if isinstance(ref, str) else ""


def as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
