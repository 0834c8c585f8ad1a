"""Which chunks of a question to label next: those whose labels say most. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from ragfilter.report.rows import ChunkRow

QUEUE = 50
"""How far down the ranking chunks are offered."""


def next_to_label(
    rows: Sequence[ChunkRow], cut: Sequence[str], *, mixed_by: str | None
) -> list[str]:
    """The first `QUEUE` chunks and all kept ones, from the cut outwards, because labels near the
    cut say most. For blind labelling, the order depends only on the question (`mixed_by`). `cut`
    holds the ids in the order in which they reached the cut: words or a reranker may have changed
    it."""
    ranked = [row.id for row in rows if row.rank][:QUEUE]
    kept = [row.id for row in rows if row.kept]
    if mixed_by is not None:
        return sorted({*ranked, *kept}, key=lambda i: _mixed(mixed_by, i))
    here = {row.id for row in rows}
    ranked = list(dict.fromkeys([*(i for i in cut if i in here), *ranked]))[:QUEUE]
    last = max((place for place, i in enumerate(ranked) if i in kept), default=-1)
    # Chunks from an expansion and pinned chunks are also on the near side of the cut.
    beyond = [i for i in kept if i not in ranked]
    ranked[last + 1 : last + 1] = beyond
    last += len(beyond)
    order = sorted(range(len(ranked)), key=lambda place: abs(place - last - 0.5))
    return [ranked[place] for place in order]


def _mixed(query: str, chunk_id: str) -> bytes:
    return blake2b(f"{query}\n{chunk_id}".encode("utf-8", "replace")).digest()
