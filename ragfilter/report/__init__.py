"""A result for people and programs: rows, table, CSV, JSON document, summary, debug trace. Source: docs/design.md#json
and docs/design.md#page."""

from __future__ import annotations

from ragfilter.report.document import document as document
from ragfilter.report.document import trace_text as trace_text
from ragfilter.report.rows import COLUMNS as COLUMNS
from ragfilter.report.rows import ChunkRow as ChunkRow
from ragfilter.report.rows import csv as csv
from ragfilter.report.rows import frame as frame
from ragfilter.report.rows import kept_first as kept_first
from ragfilter.report.rows import references as references
from ragfilter.report.rows import rows as rows
from ragfilter.report.rows import visible_ids as visible_ids
from ragfilter.report.summary import Summary as Summary
from ragfilter.report.summary import first_words as first_words
from ragfilter.report.summary import headline as headline
from ragfilter.report.summary import summary as summary
from ragfilter.report.verdicts import judge_stats as judge_stats
from ragfilter.report.verdicts import remarks as remarks
from ragfilter.report.verdicts import verdict_rows as verdict_rows
