"""References of API descriptions: where a `$ref` points, and which chunks a part leads to.

Source: OpenAPI 3.1, Reference Object; RFC 6901 (JSON pointer: ~1 is /, ~0 is ~, and in a URL
percent escapes). A tree may come from YAML with aliases, so it may be a graph and hold cycles:
nothing here recurses, and no node is visited twice.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

Trees = Mapping[str, dict[str, Any]]
Pointer = tuple[str, ...]
Spot = tuple[str, Pointer]
"""A place in a description: source and pointer."""

LONGEST_CHAIN = 20
# Below these keys are names that an author chose, not keywords.
NAME_MAPS = frozenset(
    (
        "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "content",
        "responses", "headers", "callbacks", "encoding",
    )
)  # fmt: skip
# Data, in which a "$ref" is no reference. (Links lead from answers to what may be called next.)
DATA = frozenset(("example", "examples", "default", "const", "enum", "links"))
EXPECTED: Mapping[str, type] = {
    **dict.fromkeys(("properties", "patternProperties", "content", "responses"), dict),
    **dict.fromkeys(("parameters", "allOf", "oneOf", "anyOf"), list),
}
_LINK = re.compile(r"\[([^\[\]\n]{1,200})\]\(([^()\s]{0,200}#[^()\s]{1,300})\)")


@dataclass(frozen=True, slots=True)
class ResolvedRef:
    source: str
    pointer: Pointer
    node: Any


@dataclass(frozen=True, slots=True)
class Leads:
    """What a part leads to: chunk ids in order, references that lead nowhere, and keywords that
    hold a value of the wrong kind."""

    ids: tuple[str, ...]
    missing: tuple[str, ...]
    wrong: tuple[str, ...]


def file_of(ref: str, source: str) -> str:
    """The file that `ref`, written in `source`, leads to, also with Windows' separators; empty for
    a URL."""
    file = ref.partition("#")[0]
    if not file or "://" in file:
        return "" if file else source
    relative = unquote(file).replace("\\", "/")
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), relative))


def find(trees: Trees, ref: str, source: str) -> ResolvedRef | None:
    """What `ref`, written in `source`, points to; None if that is not in `trees`."""
    source, fragment = file_of(ref, source), ref.partition("#")[2]
    if source not in trees or (fragment and not fragment.startswith("/")):
        return None
    pointer = tuple(
        token.replace("~1", "/").replace("~0", "~")
        for token in unquote(fragment.rstrip("/")).split("/")[1:]
    )
    node: Any = trees[source]
    for token in pointer:
        if isinstance(node, dict) and token in node:
            node = node[token]
        elif isinstance(node, list) and token.isdecimal() and int(token[:9]) < len(node):
            node = node[int(token[:9])]
        else:
            return None
    return ResolvedRef(source, pointer, node)


def follow(trees: Trees, node: Any, source: str) -> tuple[Any, str]:
    """The node behind a chain of references and where it stands; the last one that is there."""
    for _ in range(LONGEST_CHAIN):
        found = find(trees, ref, source) if (ref := ref_of(node)) else None
        if found is None:
            break
        node, source = found.node, found.source
    return node, source


def ref_of(node: Any) -> str:
    """The `$ref` of a node, empty if it has none."""
    ref = node.get("$ref") if isinstance(node, dict) else None
    return ref if isinstance(ref, str) else ""


def ref_name(ref: str) -> str:
    """The last part of a reference as a reader would say it."""
    last = re.split(r"[/#]", ref.rstrip("/#"))[-1]
    return unquote(last).replace("~1", "/").replace("~0", "~")


def enclosing(ids: Mapping[Spot, str], source: str, pointer: Pointer) -> str | None:
    """The id of the chunk that a place belongs to."""
    for end in range(len(pointer), 1, -1):
        chunk_id = ids.get((source, pointer[:end]))
        if chunk_id is not None:
            return chunk_id
    return None


def leads(
    trees: Trees, ids: Mapping[Spot, str], parts: Iterable[tuple[Any, str]], *, own_id: str
) -> Leads:
    """The chunks that `parts` (node, source) refer to, in order, without `own_id`.

    What a reference reaches that is no chunk, such as a shared parameter, is walked through.
    """
    chunk_ids: dict[str, None] = {}
    missing: dict[str, None] = {}
    wrong: dict[str, None] = {}
    seen: set[tuple[int, bool]] = set()
    waiting = [(node, source, False) for node, source in parts][::-1]
    while waiting:
        node, source, names = waiting.pop()
        if not isinstance(node, dict | list) or (id(node), names) in seen:
            continue
        seen.add((id(node), names))
        if isinstance(node, list):
            waiting.extend((child, source, False) for child in reversed(node))
            continue
        below: list[tuple[Any, str, bool]] = []
        for ref in () if names else _refs(node, trees, source):
            found = find(trees, ref, source)
            if found is None:
                missing[ref] = None
            elif chunk_id := enclosing(ids, found.source, found.pointer):
                chunk_ids[chunk_id] = None
            else:
                below.append((found.node, found.source, False))
        for key, child in node.items():
            if not names and (key in DATA or key.startswith("x-")):
                continue
            expected = EXPECTED.get(key, object)
            if not names and child is not None and not isinstance(child, expected):
                wrong[key] = None
            below.append((child, source, not names and key in NAME_MAPS))
        waiting.extend(reversed(below))
    chunk_ids.pop(own_id, None)
    return Leads(tuple(chunk_ids), tuple(missing), tuple(wrong))


def _refs(node: dict[str, Any], trees: Trees, source: str) -> list[str]:
    refs = [ref_of(node)] if ref_of(node) else []
    discriminator = node.get("discriminator")
    mapping = discriminator.get("mapping") if isinstance(discriminator, dict) else None
    for value in mapping.values() if isinstance(mapping, dict) else ():
        if isinstance(value, str):
            # The mapping may name a schema instead of pointing to it.
            by_name = f"#/components/schemas/{value}"
            refs.append(by_name if find(trees, by_name, source) else value)
    return refs


def links(
    text: str, trees: Trees, ids: Mapping[Spot, str], operations: Mapping[tuple[str, str], str],
    source: str,
) -> tuple[str, tuple[str, ...]]:  # fmt: skip
    """Markdown text with its links to chunks as plain words, and the ids of those chunks.

    A link is ``[label](#operation/<operationId>)`` or a reference such as
    ``[label](common.yaml#/components/schemas/Money)``; others stay as they are. `operations` maps
    source and operationId to the chunk.
    """
    found_ids: dict[str, None] = {}

    def plain(match: re.Match[str]) -> str:
        label, target = match.groups()
        file, _, fragment = target.partition("#")
        if fragment.startswith("operation/"):
            there = find(trees, f"{file}#", source)
            operation = unquote(fragment.removeprefix("operation/"))
            chunk_id = operations.get((there.source, operation)) if there else None
        else:
            there = find(trees, target, source)
            chunk_id = enclosing(ids, there.source, there.pointer) if there else None
        if chunk_id is None:
            return match.group(0)
        found_ids[chunk_id] = None
        return label

    return _LINK.sub(plain, text), tuple(found_ids)
