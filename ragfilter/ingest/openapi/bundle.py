"""Bundles API descriptions: parts from other files are copied in, and every `$ref` is absolute.

Source: OpenAPI 3.1, Reference Object; RFC 6901. A file that is not a description itself is a part of the descriptions
that refer to it, and replaces the reference, unless it is a schema that the description names in its components. A tree
may come from YAML with aliases, so it may be a graph with cycles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, reduce
from typing import Any
from urllib.parse import quote, unquote, urljoin

from ragfilter.errors import extra

with extra("ingest"):
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable

Trees = Mapping[str, dict[str, Any]]
_SCHEMA_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "schemas")
NAMED = frozenset((*_SCHEMA_MAPS, "content", "responses", "headers", "callbacks", "encoding", "parameters"))
"""Keys of maps whose own keys are names that an author chose, such as "example"."""
# Data, in which a "$ref" is not a reference. (Links lead from responses to possible next calls.)
DATA = frozenset(("example", "examples", "default", "const", "enum", "links"))
LONGEST_CHAIN = 20


class Descriptions:
    """API descriptions (source → tree). `read` returns the content of a part, None if missing."""

    def __init__(self, trees: Trees, read: Callable[[str], Any]) -> None:
        retrieve = cache(lambda file: Resource.opaque(read(unquote(file[1:]))))
        find = _finder(trees, Registry(retrieve=retrieve))  # type: ignore[call-arg]
        self.trees = {source: _Bundle(source, trees, find).whole() for source in trees}
        self.find = _finder(self.trees, Registry())

    def end(self, node: Any) -> Any:
        """Follow a node's references to the last available target, which may be the node itself."""
        for _ in range(LONGEST_CHAIN):
            if (target := self.find(ref_of(node))) is None:
                break
            node = target
        return node


def _finder(trees: Trees, registry: Registry[Any]) -> Callable[[str], Any]:
    """A function that resolves an absolute reference; None if its target is not available."""
    resources = ((uri(source), Resource.opaque(tree)) for source, tree in trees.items())
    resolver = registry.with_resources(resources).resolver()

    @cache
    def find(ref: str) -> Any:
        try:
            return resolver.lookup(ref.rstrip("/")).contents
        except (Unresolvable, LookupError, TypeError, ValueError):
            return None

    return find


class _Bundle:
    """Copies one description with its parts. `find` resolves references in the originals."""

    def __init__(self, source: str, trees: Trees, find: Callable[[str], Any]) -> None:
        self._source, self._tree, self._find = source, trees[source], find
        self._files = {uri(each) for each in trees}
        # The places of schemas of parts → their names in the components.
        self._names: dict[str, str] = {}
        self._copies: dict[tuple[int, bool], Any] = {}

    def whole(self) -> dict[str, Any]:
        place, node = uri(self._source), self._tree
        for key in ("components", "schemas"):
            place, node = self._end(below(place, key), as_dict(node).get(key))
        for name, schema in as_dict(node).items():
            there, _ = self._end(below(place, name), schema)
            if there and not self._known(there):
                self._names[there] = name
        whole: dict[str, Any] = self._copy(self._tree, uri(self._source))
        for there, name in self._names.items():
            whole["components"]["schemas"][name] = self._copy(self._find(there), there)
        return whole

    def _copy(self, node: Any, place: str, named: bool = False) -> Any:
        """Copy the node at this place, with the parts that it refers to."""
        if not isinstance(node, dict | list):
            return node
        if ref := ref_of(node):
            there, target = self._end(place, node)
            known = self._known(there)
            return self._copy(target, there) if there and not known else {**as_dict(node), "$ref": known or ref}
        key = id(node), named
        if key not in self._copies:
            copy = self._copies[key] = node.copy()
            for each, named_below in below_in(node, named):
                copy[each] = self._copy(node[each], place, named_below)
            mapping = as_dict(as_dict(as_dict(copy).get("discriminator")).get("mapping"))
            for each, value in mapping.items():
                # The mapping may name a schema instead of pointing to it.
                ends = (self._end(place, {"$ref": f"{at}{value}"})[0] for at in ("#/components/schemas/", ""))
                mapping[each] = next(filter(None, map(self._known, ends)), value)
        return self._copies[key]

    def _known(self, place: str) -> str:
        """The place in the descriptions of the node at `place`; empty if there is none."""
        if place in self._names:
            return uri(self._source, "components", "schemas", self._names[place])
        return place if place.partition("#")[0] in self._files else ""

    def _end(self, place: str, node: Any) -> tuple[str, Any]:
        """Where a node's references lead, at most into a description: the place (empty if not available) and node."""
        for _ in range(LONGEST_CHAIN):
            if not (ref := ref_of(node)):
                return place, node
            # Many parts write "#/components/…" and mean the description.
            places = (absolute(base, ref) for base in (place, uri(self._source)))
            place = next((each for each in places if self._find(each) is not None), "")
            node = self._find(place)
            if self._known(place):
                return place, node
        return "", None


def below_in(node: Any, named: bool) -> Iterator[tuple[Any, bool]]:
    """Yield the keys of a node, except data, and whether the value's keys are chosen names."""
    for key in node if isinstance(node, dict) else range(len(node)):
        if named or key not in DATA:
            yield key, not named and key in NAMED


def uri(source: str, *pointer: str) -> str:
    """The absolute reference to a file, or to a place in it."""
    return reduce(below, pointer, f"/{quote(source)}")


def below(place: str, key: str) -> str:
    """The absolute reference to the value of a key at a place."""
    token = key.replace("~", "~0").replace("/", "~1").replace("%", "%25")
    return f"{place}{'' if '#' in place else '#'}/{token}"


def absolute(place: str, ref: str) -> str:
    """The absolute form of a reference that is written at `place`."""
    name, _, fragment = ref.partition("#")
    # Some references have Windows separators.
    path = quote(unquote(name).replace("\\", "/"))
    return urljoin(place, f"{path}#{fragment.rstrip('/')}")


def ref_of(node: Any) -> str:
    """The `$ref` of a node, empty if it has none."""
    ref = node.get("$ref") if isinstance(node, dict) else None
    return ref if isinstance(ref, str) else ""


def as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
