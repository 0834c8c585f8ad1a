"""Bundles API descriptions: parts from other files are copied in, and every `$ref` is absolute.

Source: OpenAPI 3.1, Reference Object; RFC 6901. A file that is not a description itself is a part of the descriptions
that refer to it, and replaces the reference, unless it is a schema that the description names in its components. A tree
may come from YAML with aliases, so it may be a graph with cycles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
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

    def __init__(self, trees: Trees, read: Callable[[str], Any] = lambda source: None) -> None:
        retrieve = cache(lambda file: Resource.opaque(read(unquote(file[1:]))))
        finder = _finder(trees, Registry(retrieve=retrieve))  # type: ignore[call-arg]
        self.trees = {source: _Bundle(source, trees, finder).whole() for source in trees}
        self.find = _finder(self.trees, Registry())
        """Resolves an absolute reference; None if its target is not available."""

    def end(self, node: Any) -> Any:
        """Follow a node's references to the last available target, which may be the node itself."""
        for _ in range(LONGEST_CHAIN):
            if (target := self.find(ref_of(node))) is None:
                break
            node = target
        return node


def _finder(trees: Trees, registry: Registry[Any]) -> Callable[[str], Any]:
    resources = ((uri(source), Resource.opaque(tree)) for source, tree in trees.items())
    resolver = registry.with_resources(resources).resolver()

    def find(ref: str) -> Any:
        try:
            return resolver.lookup(ref.rstrip("/")).contents if ref[:1] == "/" else None
        except (Unresolvable, LookupError, TypeError, ValueError):
            return None

    return find


class _Bundle:
    """Copies one description with its parts. `find` resolves references in the originals."""

    def __init__(self, source: str, trees: Trees, find: Callable[[str], Any]) -> None:
        self._source, self._tree, self._find = source, trees[source], find
        self._files = {uri(each) for each in trees}
        self._names: dict[str, str] = {}
        """References to the schemas of parts: place in the part → place in the components."""
        self._copies: dict[tuple[int, str, bool], Any] = {}

    def whole(self) -> dict[str, Any]:
        place, components = self._follow(uri(self._source), self._tree.get("components"))
        place, schemas = self._follow(place, as_dict(components).get("schemas"))
        elsewhere = {}
        for name, node in as_dict(schemas).items():
            at, target = self._follow(f"{place}{'' if '#' in place else '#'}/{escaped(name)}", node)
            if _file(at) not in self._files:
                self._names.setdefault(at, uri(self._source, "components", "schemas", name))
                elsewhere[name] = target, at
        whole: dict[str, Any] = self._copy(self._tree, uri(self._source))
        for name, part in elsewhere.items():
            whole["components"]["schemas"][name] = self._copy(*part)
        return whole

    def _copy(self, node: Any, place: str, named: bool = False) -> Any:
        """Copy the node at this place, with the parts that it refers to."""
        if not isinstance(node, dict | list):
            return node
        if not named and ref_of(node):
            there, target = self._end(place, ref_of(node))
            known = self._known(there)
            if there and not known:
                return self._copy(target, there)
            return {**as_dict(node), "$ref": known or ref_of(node)}
        key = id(node), _file(place), named
        if key not in self._copies:
            copy = self._copies[key] = node.copy()
            for each, named_below in below_in(node, named):
                copy[each] = self._copy(node[each], place, named_below)
            mapping = as_dict(as_dict(as_dict(copy).get("discriminator")).get("mapping"))
            for each, value in mapping.items():
                # The mapping may name a schema instead of pointing to it.
                ends = [self._end(place, f"{at}{value}")[0] for at in ("#/components/schemas/", "")]
                mapping[each] = next(filter(None, map(self._known, ends)), value)
        return self._copies[key]

    def _known(self, place: str) -> str:
        """The place in the descriptions of the node at `place`; empty if there is none."""
        return self._names.get(place, place if _file(place) in self._files else "")

    def _follow(self, place: str, node: Any) -> tuple[str, Any]:
        """The place and node that `node` refers to, or its own if it refers to none."""
        end = self._end(place, ref_of(node))
        return end if end[0] else (place, node)

    def _end(self, place: str, ref: str) -> tuple[str, Any]:
        """Follow a reference at a place to its end, or until it reaches a description. Returns the
        absolute reference (empty if not available) and the node there."""
        for _ in range(LONGEST_CHAIN):
            # Many parts write "#/components/…" and mean the description.
            places = (absolute(base, ref) for base in (place, uri(self._source)) if ref)
            place = next((each for each in places if self._find(each) is not None), "")
            node = self._find(place)
            ref = ref_of(node)
            if not place or not ref or _file(place) in self._files:
                return place, node
        return "", None


def below_in(node: Any, named: bool) -> Iterator[tuple[Any, bool]]:
    """Yield the keys of a node, except data, and whether the value's keys are chosen names."""
    for key in node if isinstance(node, dict) else range(len(node)):
        if named or key not in DATA:
            yield key, not named and key in NAMED


def _file(place: str) -> str:
    return place.partition("#")[0]


def uri(source: str, *pointer: str) -> str:
    """The absolute reference to a file, or to a place in it."""
    return f"/{quote(source)}" + (f"#/{'/'.join(map(escaped, pointer))}" if pointer else "")


def absolute(place: str, ref: str) -> str:
    """The absolute form of a reference that is written at `place`."""
    name, _, fragment = ref.partition("#")
    # Some references have Windows separators.
    path = urljoin(_file(place), quote(unquote(name).replace("\\", "/")))
    return f"{path}#{fragment.rstrip('/')}".rstrip("#")


def escaped(key: str) -> str:
    """A key as written in a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1").replace("%", "%25")


def unescaped(token: str) -> str:
    """The key in the tree of a token of a JSON pointer."""
    return unquote(token).replace("~1", "/").replace("~0", "~")


def ref_of(node: Any) -> str:
    """The `$ref` of a node, empty if it has none."""
    ref = node.get("$ref") if isinstance(node, dict) else None
    return ref if isinstance(ref, str) else ""


def as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
