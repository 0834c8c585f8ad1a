"""A result for people and programs: rows, table, CSV, JSON document, summary, debug trace. Source: docs/design.md#json
and docs/design.md#page."""

from __future__ import annotations

from ragfilter.results.document import document as document
from ragfilter.results.document import trace_text as trace_text
from ragfilter.results.rows import COLUMNS as COLUMNS
from ragfilter.results.rows import ChunkRow as ChunkRow
from ragfilter.results.rows import csv as csv
from ragfilter.results.rows import frame as frame
from ragfilter.results.rows import kept_first as kept_first
from ragfilter.results.rows import references as references
from ragfilter.results.rows import rows as rows
from ragfilter.results.rows import visible_ids as visible_ids
from ragfilter.results.summary import Summary as Summary
from ragfilter.results.summary import first_words as first_words
from ragfilter.results.summary import headline as headline
from ragfilter.results.summary import summary as summary
from ragfilter.results.verdicts import judge_stats as judge_stats
from ragfilter.results.verdicts import remarks as remarks
from ragfilter.results.verdicts import verdict_rows as verdict_rows
