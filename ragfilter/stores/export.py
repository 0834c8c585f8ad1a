"""Exports a collection as JSON lines that index back exactly, with the edited rules.

Source: docs/design.md#formats. Clearance decides what is exported: a hidden chunk is left out, and
so is each reference to one, or to a chunk that does not exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from hashlib import blake2b
from json import dumps
from typing import TYPE_CHECKING

from ragfilter.errors import StoreError
from ragfilter.ingest.records import to_line
from ragfilter.model import UNRESTRICTED, User
from ragfilter.stores import copies
from ragfilter.stores.chunked import pages
from ragfilter.stores.workspace import Workspace

if TYPE_CHECKING:
    from ragfilter.stores.workspace import StoredCollection

PAGE = 1000


def export(
    workspace: Workspace, collection: StoredCollection, user: User = UNRESTRICTED
) -> Iterator[str]:
    """Yield one line per chunk that `user` may see. Raises StoreError, also if the collection is
    incomplete, because the lines could not say that chunks are missing."""
    if collection.incomplete:
        raise StoreError(f"Nothing was exported. {collection.incomplete}")
    known = collection.entries()
    given = as_given(workspace, collection.name)
    ids = [i for i, chunk in known.items() if user.sees(chunk)]
    shown = set(ids)
    for page in pages(ids, PAGE):
        for i, chunk in collection.chunks(page).items():
            refs = (
                chunk.refs if user.unrestricted else tuple(filter(shown.__contains__, chunk.refs))
            )
            yield to_line(replace(chunk, refs=refs), given.get(i))


def as_given(workspace: Workspace, name: str) -> dict[str, str | None]:
    """What the source of a collection said instead of a readable clearance, by chunk id."""
    if (database := workspace.pg()) is not None:
        return database.as_given(name)
    rows = copies.read_copy(workspace.copy_path(name))
    return {row.chunk.id: row.clearance_as_given for row in rows}


def content_of(workspace: Workspace, collection: StoredCollection, user: User) -> str:
    """The fingerprint of the indexed content that `user` may see, the same wherever the same files
    are indexed. A foreign collection only has a version, or the ids of its chunks."""
    if user.unrestricted:
        return collection.content or collection.version
    copy = workspace.summary(collection.name)
    known = copy.fingerprints if copy else {}
    seen = (i for i, chunk in collection.entries().items() if user.sees(chunk))
    return copies.content_fingerprint(collection.embedder, {i: known.get(i, "") for i in seen})


def version_seen(workspace: Workspace, collection: StoredCollection, user: User) -> str:
    """The version of the collection for `user`: it changes with every chunk and rule that they may
    see, and with no other."""
    if user.unrestricted:
        return collection.version
    chunks = collection.entries().items()
    rules = sorted((i, chunk.rule) for i, chunk in chunks if user.sees(chunk))
    seen = dumps([content_of(workspace, collection, user), rules])
    return blake2b(seen.encode(), digest_size=16).hexdigest()
