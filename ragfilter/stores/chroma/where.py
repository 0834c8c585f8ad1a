"""`Where` as Chroma's own filter over the metadata of our collections, or checked in memory.

Source: docs/design.md#clearance (it fails closed) and docs/design.md#chroma (a missing key matches
no `$in`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ragfilter.model import Chunk
from ragfilter.protocols import Where

FEW_SOURCES = 20
"""Up to this many files are named in the store's own condition; more are resolved to ids."""


def can_push(where: Where) -> bool:
    """Whether Chroma can check the condition itself, in a collection of ours."""
    # A chunk without a source lacks this key, so no condition on it would match.
    sources = where.sources
    return sources is None or (0 < len(sources) <= FEW_SOURCES and "" not in sources)


def condition(where: Where) -> dict[str, Any] | None:
    """`where` as Chroma's own filter; None if it admits everything."""
    parts: list[dict[str, Any]] = []
    if where.user is not None and not where.user.unrestricted:
        parts += [
            {"clearance": {"$gte": 0}},
            {"clearance": {"$lte": where.user.level}},
            {"department": {"$in": sorted({"", *where.user.departments})}},
        ]
    if where.sources is not None:
        parts.append({"source": {"$in": list(where.sources)}})
    if len(parts) < 2:
        return parts[0] if parts else None
    return {"$and": parts}


def admission(where: Where) -> Callable[[Chunk], bool]:
    """The same condition in memory, as a function that says whether it admits a chunk."""
    sources = None if where.sources is None else frozenset(where.sources)

    def admits(chunk: Chunk) -> bool:
        if sources is not None and chunk.source not in sources:
            return False
        return where.user is None or where.user.sees(chunk)

    return admits
