"""Two results of one query side by side: what only one of them keeps, and why the other did not.
Pure.

Both are shown as their user sees them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from ragfilter.model import PoolResult
from ragfilter.report.rows import ChunkRow, rows

Keeper = Literal["a", "both", "b"]


@dataclass(frozen=True, slots=True)
class Pairing:
    """A chunk that at least one of two results keeps, with its row in each. None: that result's
    search did not find it."""

    id: str
    title: str
    a: ChunkRow | None
    b: ChunkRow | None

    @property
    def keeper(self) -> Keeper:
        """Which of the two results keeps it."""
        if not _kept(self.a):
            return "b"
        return "both" if _kept(self.b) else "a"


@dataclass(frozen=True, slots=True)
class Contrast:
    """Every chunk kept by a or b: a's in order, then what only b keeps in b's order."""

    pairings: tuple[Pairing, ...]

    def only(self, keeper: Keeper) -> tuple[Pairing, ...]:
        """The chunks that only this side keeps, or that both do."""
        return tuple(each for each in self.pairings if each.keeper == keeper)


def contrast(a: PoolResult, b: PoolResult) -> Contrast:
    """Compare what two results keep."""
    mine, theirs = _by_id(a), _by_id(b)
    pairings = [Pairing(i, row.title, row, theirs.get(i)) for i, row in _ordered(mine)]
    pairings += [
        Pairing(i, row.title, mine.get(i), row)
        for i, row in _ordered(theirs)
        if not _kept(mine.get(i))
    ]
    return Contrast(tuple(pairings))


def reason(row: ChunkRow | None) -> str:
    """Why a side keeps or drops a chunk, in its own words."""
    if row is None:
        return "not found by this search"
    return f"{row.outcome} by {row.layer}: {row.reason}"


def _by_id(result: PoolResult) -> dict[str, ChunkRow]:
    return {row.id: row for row in rows(result)}


def _ordered(rows_of: dict[str, ChunkRow]) -> Iterator[tuple[str, ChunkRow]]:
    kept = [(row.place, i, row) for i, row in rows_of.items() if row.place is not None]
    for _, i, row in sorted(kept, key=lambda each: each[0]):
        yield i, row


def _kept(row: ChunkRow | None) -> bool:
    return row is not None and row.kept
