"""Plain text: paragraphs packed into passages. Source: docs/design.md#formats."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ragfilter.basics.files import read_text
from ragfilter.ingest.passages import Lines, passages
from ragfilter.ingest.reading import PLAIN, ReadOptions
from ragfilter.ingest.records import Record, to_record


def load_text(path: Path, *, source: str, reading: ReadOptions = PLAIN) -> Iterator[Record]:
    """The passages of a text file, titled with its name and numbered from 1. Raises InputError."""
    yield from text_records(read_text(path, source), (), path, source, reading)


def text_records(
    text: str, code: Lines, path: Path, source: str, reading: ReadOptions
) -> Iterator[Record]:
    """The passages of a text, of which some lines are code."""
    for number, passage in enumerate(passages(text, reading.size, reading.overlap, code), start=1):
        raw = {"id": f"{source}#{number}", "title": path.stem, "text": passage, "type": "text"}
        yield to_record(raw, place=f"{source}, passage {number}", source=source)
