"""A chunk as flat metadata of Chroma or Qdrant and back, and conditions checked in memory.

Source: docs/design.md#clearance (it fails closed), docs/design.md#contradictions (`query_must` as JSON text) and
docs/design.md#chroma (which refuses None, nested values and empty lists, and where `$in` never matches a missing key).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ragfilter.model import Chunk, readable_level
from ragfilter.protocols import Where
from ragfilter.text.normalise import loads_or_none, mend_characters

Metadata = Mapping[str, Any]
FlatMetadata = dict[str, str | int | float | bool]

RULE_KEY = "query_must"
OWN_KEY = "metadata"
"""The source's own fields, as JSON text."""
# An update based on these removes fields that the new chunk no longer has.
NO_METADATA: Mapping[str, None] = dict.fromkeys(("title", "type", "source", "page", "refs", RULE_KEY, OWN_KEY))

OURS = frozenset(("clearance", "department", *NO_METADATA))


def to_metadata(chunk: Chunk, *, clearance_as_given: object = None) -> FlatMetadata:
    """The metadata of `chunk` for our own collections. Clearance and department are always present (0 and "" for none),
    because a missing key matches no condition. An unreadable clearance is stored as text (`clearance_as_given`, if
    known). Text matches no number, so the store's own condition hides the chunk too."""
    clearance_text = "" if clearance_as_given is None else mend_characters(str(clearance_as_given))
    metadata: FlatMetadata = {
        "clearance": clearance_text if chunk.clearance is None else chunk.clearance,
        # In the form in which it is read, since conditions compare stored values.
        "department": mend_characters(chunk.department or "").strip(),
    }
    for key, text in (("title", chunk.title), ("type", chunk.type), ("source", chunk.source)):
        if text:
            metadata[key] = mend_characters(text)
    if chunk.page is not None:
        metadata["page"] = chunk.page
    if chunk.refs:
        metadata["refs"] = mend_characters(json.dumps(list(chunk.refs), ensure_ascii=False))
    if chunk.rule:
        metadata[RULE_KEY] = mend_characters(chunk.rule)
    if chunk.metadata:
        metadata[OWN_KEY] = mend_characters(json.dumps(dict(chunk.metadata), ensure_ascii=False))
    return metadata


def to_chunk(chunk_id: str, metadata: Metadata | None, text: str | None, *, ours: bool = False) -> Chunk:
    """The complete chunk of a stored row, with defaults for missing metadata."""
    row = metadata or {}
    return replace(
        to_entry(chunk_id, row, ours=ours),
        text=mend_characters(text or ""),
        page=_page(row.get("page")),
        loaded=True,
        metadata=_own_fields(row),
    )


def to_entry(chunk_id: str, metadata: Metadata | None, *, ours: bool = False) -> Chunk:
    """The chunk as a catalogue entry: without text, `loaded` False. In `ours`, a missing clearance
    or department is damage and hides the chunk; elsewhere it means no restriction."""
    row = metadata or {}
    department, readable = _department(row.get("department"))
    if ours and not ("clearance" in row and "department" in row):
        readable = False
    return Chunk(
        id=chunk_id,
        title=_text(row.get("title")),
        type=_text(row.get("type")),
        source=_text(row.get("source")),
        refs=references(row.get("refs")),
        clearance=readable_level(row.get("clearance", 0)) if readable else None,
        department=department,
        rule=_rule(row.get(RULE_KEY)),
        loaded=False,
    )


def _own_fields(row: Metadata) -> dict[str, Any]:
    """The source's own fields; in a foreign collection, every key that is not ours."""
    fields = {key: value for key, value in row.items() if key not in OURS}
    return fields | own_fields(row[OWN_KEY]) if OWN_KEY in row else fields


def own_fields(value: object) -> dict[str, Any]:
    """The source's own fields in their JSON; what is not a JSON object becomes a field itself."""
    if value == "{}":  # Decoding it would take a third of the time to read a chunk.
        return {}
    fields = loads_or_none(str(value))
    return fields if isinstance(fields, dict) else {OWN_KEY: value}


def references(value: object) -> tuple[str, ...]:
    """The distinct chunk ids in a JSON list, a list, or one plain id, in order."""
    if isinstance(value, str):
        listed = loads_or_none(value)
        value = listed if isinstance(listed, list) else [value.strip()]
    items = value if isinstance(value, list) else []
    return tuple(dict.fromkeys(str(item) for item in items if item not in (None, "")))


def _department(value: object) -> tuple[str | None, bool]:
    # A list or object is not a single department, so it is unknown who can see the chunk: hide it.
    readable = value is None or isinstance(value, str | int | float)
    return (_text(value).strip() or None if readable else None), readable


def _page(value: object) -> int | None:
    text = str(value).strip().removesuffix(".0")
    digits = text.isascii() and text.isdigit() and not isinstance(value, bool)
    return int(text[:18]) if digits else value if type(value) is int else None


def _rule(value: object) -> str | None:
    # Even if it is invalid: the rules module reports what is wrong.
    if value is None or value == "":
        return None
    return mend_characters(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _text(value: object) -> str:
    return "" if value is None else mend_characters(str(value))


def admission(where: Where) -> Callable[[Chunk], bool]:
    """`where` as a predicate that checks chunks in memory."""
    sources = None if where.sources is None else frozenset(where.sources)

    def admits(chunk: Chunk) -> bool:
        if sources is not None and chunk.source not in sources:
            return False
        return where.user is None or where.user.sees(chunk)

    return admits
