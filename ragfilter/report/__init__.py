"""A result for people and programs: rows, table, CSV, JSON document, summary, debug trace.

Everything here is pure. Sources: docs/design.md#json and docs/design.md#page.
"""

from __future__ import annotations

from ragfilter.report.document import document
from ragfilter.report.judged import (
    VerdictRow,
    judge_document,
    judge_stats,
    remarks,
    verdict_rows,
    waits_for_judge,
)
from ragfilter.report.rows import (
    COLUMNS,
    ChunkRow,
    csv,
    frame,
    kept_first,
    references,
    rows,
    seen,
    visible,
)
from ragfilter.report.summary import (
    LayerSummary,
    Summary,
    first,
    headline,
    in_prompt,
    layer_line,
    max_security_level,
    summary,
    tokens,
)
from ragfilter.report.trace import trace_text

__all__ = [
    "COLUMNS",
    "ChunkRow",
    "LayerSummary",
    "Summary",
    "VerdictRow",
    "csv",
    "document",
    "first",
    "frame",
    "headline",
    "in_prompt",
    "judge_document",
    "judge_stats",
    "kept_first",
    "layer_line",
    "max_security_level",
    "references",
    "remarks",
    "rows",
    "seen",
    "summary",
    "tokens",
    "trace_text",
    "verdict_rows",
    "visible",
    "waits_for_judge",
]
