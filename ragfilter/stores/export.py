"""Exports a collection as JSON lines that index back exactly, with the edited rules.

Source: docs/design.md#formats. Clearance decides what is exported: a hidden chunk is left out, and
so is each reference to one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ragfilter.errors import StoreError
from ragfilter.model import UNRESTRICTED, Chunk, User
from ragfilter.rules.rule import value_of
from ragfilter.stores import copies
from ragfilter.stores.chroma.store import ChromaCollection
from ragfilter.stores.workspace import Workspace

PAGE = 1000


def export(
    workspace: Workspace, collection: ChromaCollection, user: User = UNRESTRICTED
) -> Iterator[str]:
    """Yield one line per chunk that `user` may see. Raises StoreError, also if the collection is
    incomplete, because the lines could not say that chunks are missing."""
    if collection.incomplete:
        raise StoreError(f"Nothing was exported. {collection.incomplete}")
    known = collection.entries()
    given = {
        row.chunk.id: row.clearance_as_given
        for row in copies.read_copy(workspace.copy_path(collection.name))
    }
    ids = [i for i, chunk in known.items() if user.sees(chunk)]
    shown = set(ids)
    for start in range(0, len(ids), PAGE):
        for i, chunk in collection.chunks(ids[start : start + PAGE]).items():
            refs = tuple(ref for ref in chunk.refs if ref in shown or ref not in known)
            yield line(replace(chunk, refs=refs), given.get(i))


def line(chunk: Chunk, clearance_as_given: str | None = None) -> str:
    """A chunk as a line of JSON, from which `to_record` makes the same chunk."""
    record: dict[str, Any] = {"id": chunk.id, "text": chunk.text, "source": chunk.source}
    record |= {
        name: value
        for name, value in (
            ("title", chunk.title),
            ("type", chunk.type),
            ("page", chunk.page),
            ("refs", list(chunk.refs)),
            ("department", chunk.department),
            ("query_must", value_of(chunk.rule)),
            ("metadata", dict(chunk.metadata)),
        )
        if value not in (None, "", [], {})
    }
    if chunk.clearance is None:
        # Text that is not a number hides the chunk again; empty text would make it public.
        record["clearance"] = clearance_as_given or " "
    elif chunk.clearance:
        record["clearance"] = chunk.clearance
    return json.dumps(record, ensure_ascii=False) + "\n"
