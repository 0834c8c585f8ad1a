"""The text of a chunk with what the prune layer struck, each with what it contributes."""

from __future__ import annotations

from ragfilter.model import PoolResult, Pruning
from ragfilter.ui.look import html


def pruning(result: PoolResult) -> Pruning | None:
    """What was pruned; None if the layer is off, or nothing was struck."""
    detail = result.trace("prune").detail
    parts = detail.pieces.values() if isinstance(detail, Pruning) else ()
    struck = any(part.struck for each in parts for part in each)
    return detail if isinstance(detail, Pruning) and struck else None


def struck_text(result: PoolResult, chunk_id: str, whole: str) -> str:
    """The text as HTML; empty if nothing of it was struck."""
    detail = pruning(result)
    parts = detail.pieces.get(chunk_id, ()) if detail else ()
    if detail is None or not any(part.struck for part in parts):
        return ""
    shown = []
    for part in parts:
        said = html.text(whole[part.start : part.end])
        why = f"{part.value:.3f} &lt; {detail.limit:.3f}"
        shown.append(f"<s>{said}</s><small> {why} </small>" if part.struck else said)
    return f'<div class="rf-pruned" data-passage>{"".join(shown)}</div>'
