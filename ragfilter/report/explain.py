"""Why one chunk was kept or dropped: every layer's decision about it, as text. Pure."""

from __future__ import annotations

from ragfilter.errors import InputError
from ragfilter.model import PoolResult
from ragfilter.report.rows import rows, seen


def explain(result: PoolResult, chunk_id: str) -> str:
    """A headline and one line per layer, as the result's user may see it.

    Raises InputError for a chunk that is not among the hits and, with the same message, for one
    that the user may not see.
    """
    result = seen(result)
    row = next((row for row in rows(result) if row.id == chunk_id), None)
    if row is None:
        raise InputError(
            f"There is no chunk {chunk_id!r} among the hits.", remedy="Look up the ids in them."
        )
    place = f"kept, place {row.place}" if row.kept else f"dropped by {row.layer}"
    lines = [f"{row.title} ({row.id}): {place}; {row.reason}"]
    for trace in result.traces:
        for decision in trace.decisions:
            if decision.chunk_id == chunk_id:
                lines.append(f"  {trace.layer}: {decision.outcome}, {decision.reason}")
    return "\n".join(lines)
