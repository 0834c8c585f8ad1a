"""One chunk explained: what every layer decided, and what would change the outcome."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ragfilter.engine.whatif import changes, wording
from ragfilter.model import PoolResult
from ragfilter.report.explain import explain


def why_text(result: PoolResult, chunk_id: str) -> str:
    """Every layer's decision and the smallest changes, as lines of text. Raises InputError."""
    kept = any(hit.id == chunk_id for hit in result.kept)
    verb = "drop it" if kept else "bring it back"
    lines = [explain(result, chunk_id), f"What would {verb}:"]
    found = [(each.words, each.came, each.went) for each in changes(result, chunk_id)]
    asked = wording(result, chunk_id)
    if asked is not None:
        found.append((f"Add to the question: {', '.join(asked.terms)}", asked.came, asked.went))
    for words, came, went in found:
        others = [f"+ {', '.join(came)}"] if came else []
        others += [f"− {', '.join(went)}"] if went else []
        lines.append(f"  {words}" + (f"  ({'; '.join(others)})" if others else ""))
    return "\n".join(lines if found else [*lines, "  no single change"]) + "\n"


def why_document(result: PoolResult, chunk_id: str) -> dict[str, Any]:
    """The same as plain values. Raises InputError."""
    asked = wording(result, chunk_id)
    return {
        "id": chunk_id,
        "incomplete": result.pool.incomplete,
        "kept": any(hit.id == chunk_id for hit in result.kept),
        "explanation": explain(result, chunk_id),
        "changes": [asdict(each) | {"words": each.words} for each in changes(result, chunk_id)],
        "question": None if asked is None else asdict(asked),
    }
