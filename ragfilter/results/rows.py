"""Every hit of a result as one row: for tables, CSV and other lists of hits. Pure. Source: docs/design.md#page.

With the clearance layer on, everything here shows only what the result's user can see. Hidden chunks are left out as if
they were not in the store: ranks, gaps and counts describe the visible ones. `as_operator=True` shows all chunks with
their real ranks."""

from __future__ import annotations

import csv as csv_module
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ragfilter.basics.files import harmless
from ragfilter.engine.replay import replay_as_user
from ragfilter.errors import extra
from ragfilter.layers.layer import EPSILON
from ragfilter.layers.quality import scores_are_current
from ragfilter.layers.registry import LAYERS
from ragfilter.layers.visibility import without_hidden_refs
from ragfilter.model import UNRESTRICTED, Decision, Hit, Outcome, PoolResult, similarity
from ragfilter.settings.schema import Confidence

if TYPE_CHECKING:
    import pandas as pd

TELLING: tuple[Outcome, ...] = ("pinned", "expanded", "fallback")
"""Outcomes that are shown for a kept hit if any layer gave one; the first match wins."""
EXPLAIN = sorted(LAYERS, key=lambda layer: layer.explains)[::-1]
"""Layers sorted by how well their decision explains a kept hit; ties: the later layer first."""


class ChunkRow(NamedTuple):
    """One hit as a row of a table. `rank` is the 1-based rank by distance (0: brought in by an expansion), `place` the
    1-based place among the kept hits (None: dropped). `gap` is the distance minus the previous rank's. If the
    store gives no distances, `distance` is the rank, `gap` and `similarity` are None, and `confidence` is empty.
    `layer`, `reason`, `value` and `limit` come from the deciding decision."""

    rank: int
    place: int | None
    id: str
    title: str
    type: str
    source: str
    page: int | None
    distance: float
    similarity: float | None
    gap: float | None
    rerank_score: float | None
    outcome: Outcome
    layer: str
    reason: str
    value: float | None
    limit: float | None
    confidence: str
    found_by: str
    setting: str = ""
    """The path of the setting that decided, if one did."""

    @property
    def kept(self) -> bool:
        return self.place is not None


COLUMNS: tuple[str, ...] = ChunkRow._fields[:-1]
"""The fields of a row that tables and files have: all but the last."""
_INTEGERS = ("rank", "place", "page")
_FLOATS = ("distance", "similarity", "gap", "rerank_score", "value", "limit")
_TEXTS = tuple(name for name in COLUMNS if name not in (*_INTEGERS, *_FLOATS))


def visible_ids(result: PoolResult, *, as_operator: bool = False) -> frozenset[str]:
    """The ids of the hits that may be named: those that the user sees, or all for an operator."""
    return frozenset(hit.id for hit in result.hits if as_operator or result.user.sees(hit.chunk))


def rows(result: PoolResult, *, as_operator: bool = False) -> tuple[ChunkRow, ...]:
    """One row per visible hit, by rank; chunks brought in by an expansion come last."""
    result = result if as_operator else replay_as_user(result)
    places = {hit.id: place for place, hit in enumerate(result.kept, start=1)}
    every = [decision for trace in result.traces for decision in trace.decisions]
    drops = {decision.chunk_id: decision for decision in every if decision.outcome == "dropped"}
    own: dict[str, list[Decision]] = {i: [] for i in places}
    for decision in every:
        if decision.chunk_id in own:
            own[decision.chunk_id].append(decision)
    rows: list[ChunkRow] = []
    space, settings = result.pool.space, result.settings.confidence
    scored = space != "rank"
    reranked = scores_are_current(result.pool, result.settings.quality)
    before: float | None = None
    for hit in sorted(result.hits, key=lambda hit: (hit.rank == 0, hit.rank, hit.distance)):
        distance, chunk = hit.distance, hit.chunk
        gap = None if before is None or hit.rank == 0 else distance - before
        before = distance
        place = places.get(chunk.id)
        decided = drops.get(chunk.id) if place is None else deciding(own[chunk.id])
        decision = decided or Decision(chunk.id, "context", "kept" if place else "dropped", "no layer checked it")
        rows.append(
            # By position, since a row with named fields takes three times as long.
            ChunkRow(
                hit.rank,
                place,
                *(chunk.id, chunk.name, chunk.type, chunk.source, chunk.page),
                distance,
                similarity(distance, space) if scored else None,
                gap if scored else None,
                hit.rerank_score if reranked else None,
                *(decision.outcome, decision.layer, decision.reason, decision.value, decision.limit),
                confidence(distance, gap, settings) if scored else "",
                hit.found_by,
                decision.setting,
            )
        )
    return tuple(rows)


def kept_first(rows: Iterable[ChunkRow]) -> tuple[ChunkRow, ...]:
    """The kept rows in their order, then the others by rank."""
    last = float("inf")
    return tuple(sorted(rows, key=lambda row: last if row.place is None else row.place))


def frame(rows: Iterable[ChunkRow]) -> pd.DataFrame:
    """A table with `COLUMNS` in order; even an empty table has their types."""
    with extra("eval"):
        import pandas as pd

    table = pd.DataFrame([row[:-1] for row in rows], columns=[*COLUMNS])
    types: dict[str, Any] = dict.fromkeys(_INTEGERS, "Int64")
    types |= dict.fromkeys(_FLOATS, "float64") | dict.fromkeys(_TEXTS, "str")
    return table.astype(types)


def references(result: PoolResult, *, as_operator: bool = False) -> dict[str, tuple[str, ...]]:
    """The references of every hit, by id; for a user, only those that they may know."""
    result = result if as_operator else replay_as_user(result)
    visible = without_hidden_refs(result.pool, UNRESTRICTED if as_operator else result.user)
    return {hit.id: visible(hit.chunk).refs for hit in result.hits}


def csv(rows: Iterable[ChunkRow], refs: Mapping[str, Sequence[str]] | None = None) -> str:
    """The rows as CSV with a header. With `refs` (by id), the last column has each row's references, separated by
    spaces. A text cell that a spreadsheet would run as a formula gets a leading apostrophe; numbers stay numbers."""
    text = io.StringIO()
    writer = csv_module.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS if refs is None else (*COLUMNS, "refs"))
    for row in rows:
        cells = [_cell(name, value) for name, value in zip(COLUMNS, row[:-1], strict=True)]
        if refs is not None:
            cells.append(harmless(" ".join(refs.get(row.id, ()))))
        writer.writerow(cells)
    return text.getvalue()


def _cell(name: str, value: Any) -> Any:
    if name in _TEXTS:
        return harmless(value)
    return float(value) if name in _FLOATS and value is not None else value


def rerank_score(result: PoolResult, hit: Hit) -> float | None:
    """The hit's score from the current reranker; None if it has none."""
    return hit.rerank_score if scores_are_current(result.pool, result.settings.quality) else None


def deciding(decisions: Sequence[Decision]) -> Decision | None:
    """The decision that explains a kept hit, among all decisions about it in layer order: the first that pinned it,
    brought it in or fell back, and otherwise the decision of the first layer in `EXPLAIN`."""
    for outcome in TELLING:
        for decision in decisions:
            if decision.outcome == outcome:
                return decision
    keeps = {d.layer: d for d in decisions if d.outcome == "kept"}
    return next((keeps[layer.name] for layer in EXPLAIN if layer.name in keeps), None)


Level = Literal["high", "medium", "low"]


def confidence(distance: float, gap_before: float | None, settings: Confidence) -> Level:
    """high below `high_below`, medium up to `medium_below`, low beyond it or after a gap of `large_gap` or more.
    `gap_before` is the gap to the previous hit, None for the first."""
    if gap_before is not None and gap_before >= settings.large_gap - EPSILON:
        return "low"
    if distance < settings.high_below - EPSILON:
        return "high"
    if distance <= settings.medium_below + EPSILON:
        return "medium"
    return "low"


Keeper = Literal["a", "both", "b"]


@dataclass(frozen=True, slots=True)
class Pairing:
    """A chunk that at least one of two results keeps, with its row in each, None if it was not found there."""

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


def contrast(a: PoolResult, b: PoolResult) -> tuple[Pairing, ...]:
    """Every chunk kept by a or b: a's in order, then those that only b keeps, in b's order."""
    of_a, of_b = ({row.id: row for row in rows(result)} for result in (a, b))
    kept_by_a, kept_by_b = ([row for row in kept_first(side.values()) if row.kept] for side in (of_a, of_b))
    pairings = [Pairing(row.id, row.title, row, of_b.get(row.id)) for row in kept_by_a]
    pairings += [Pairing(row.id, row.title, of_a.get(row.id), row) for row in kept_by_b if not _kept(of_a.get(row.id))]
    return tuple(pairings)


def reason(row: ChunkRow | None) -> str:
    """Why a side keeps or drops a chunk, in its own words."""
    if row is None:
        return "not found by this search"
    return f"{row.outcome} by {row.layer}: {row.reason}"


def _kept(row: ChunkRow | None) -> bool:
    return row is not None and row.kept
