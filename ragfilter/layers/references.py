"""Follows references between chunks, and previews the chunks that an expansion would bring in."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ragfilter.layers.visibility import effective_user, is_clean
from ragfilter.model import Chunk, User
from ragfilter.rules.match import Scan, compiled_rules
from ragfilter.settings.schema import Settings

DEPTHS = (1, 3, 5)
Finder = Callable[[str], Chunk | None]
"""Returns the chunk with an id, or None if expansion must not add or pass through it."""


class ChunkSource(Protocol):
    """The part of `protocols.Collection` needed to find what references lead to."""

    def chunks(self, ids: Sequence[str]) -> dict[str, Chunk]: ...

    def catalogue(self) -> Mapping[str, Chunk] | None: ...


@dataclass(frozen=True, slots=True)
class ReachedChunk:
    """A chunk that is `step` references away from the root; `via` is the chunk that names it."""

    chunk: Chunk
    step: int
    via: str


def finder(collection: ChunkSource) -> Finder:
    """A finder of all chunks of a collection, without texts if there is a catalogue."""
    catalogue = collection.catalogue()
    if catalogue is not None:
        return catalogue.get
    return lambda chunk_id: collection.chunks([chunk_id]).get(chunk_id)


def clean_finder(
    find: Finder, settings: Settings, scan: Scan, user: User | None, discarded: Container[str] = ()
) -> Finder:
    """Limit a finder to chunks that an expansion can add: clean ones, except those `discarded` by id."""

    def find_clean(chunk_id: str) -> Chunk | None:
        chunk = None if chunk_id in discarded else find(chunk_id)
        return chunk if chunk is not None and is_clean(chunk, settings, scan, user) else None

    return find_clean


def walk(root: Chunk, *, depth: int, most: int, find: Finder) -> Iterator[ReachedChunk]:
    """Yield up to `most` chunks that references of `root` reach within `depth` steps. More depth adds at the end."""
    seen = {root.id}
    frontier = [root]
    for step in range(1, depth + 1):
        reached: list[Chunk] = []
        for parent in frontier:
            for ref in parent.refs:
                if ref in seen:
                    continue
                seen.add(ref)
                chunk = find(ref)
                if chunk is None:
                    continue
                if most <= 0:
                    return
                most -= 1
                reached.append(chunk)
                yield ReachedChunk(chunk, step, parent.id)
        frontier = reached


def references_of(chunks: Iterable[Chunk], collection: ChunkSource) -> tuple[Chunk, ...]:
    """The distinct chunks that `chunks` refer to, without texts."""
    ids = dict.fromkeys([ref for chunk in chunks for ref in chunk.refs])
    existing = find_chunks(collection, ids)
    known = [existing[i] for i in ids if i in existing]
    # Most come from the catalogue, which has no texts.
    return tuple([replace(c, text="", loaded=False) if c.loaded else c for c in known])


def find_chunks(collection: ChunkSource, ids: Iterable[str]) -> Mapping[str, Chunk]:
    """A mapping with at least the existing ones of these chunks; it may be the whole catalogue."""
    catalogue = collection.catalogue()
    return collection.chunks(list(ids)) if catalogue is None else catalogue


def preview_expansion(
    chunk_id: str, collection: ChunkSource, settings: Settings, user: User | None = None, *, query: str = ""
) -> dict[int, tuple[ReachedChunk, ...]]:
    """The chunks that EXPAND_1, EXPAND_3 and EXPAND_5 of a chunk would bring in: depth → chunks, in
    order, with texts from the store. Calls no model.

    If `query` is given and query_must is on, chunks whose rule fails are left out, as in an expansion. Empty if the
    chunk is unknown or hidden from `user`. Raises StoreError."""
    user = effective_user(user, settings)
    if not query.strip():
        off = settings.query_must.model_copy(update={"enabled": False})
        settings = settings.model_copy(update={"query_must": off})
    find = finder(collection)
    permitted = clean_finder(find, settings, compiled_rules(()).scan(query), user)
    root = permitted(chunk_id)
    if root is None:
        return dict.fromkeys(DEPTHS, ())
    most = settings.judge.max_expansion
    reached = list(walk(root, depth=max(DEPTHS), most=most, find=permitted))
    whole = collection.chunks([each.chunk.id for each in reached])
    if not user.unrestricted:
        seen_refs = {i: [r for r in c.refs if (to := find(r)) and user.sees(to)] for i, c in whole.items()}
        whole = {i: replace(c, refs=tuple(seen_refs[i])) for i, c in whole.items()}
    chunks = [replace(r, chunk=whole[r.chunk.id]) for r in reached if r.chunk.id in whole]
    return {depth: tuple(r for r in chunks if r.step <= depth) for depth in DEPTHS}
