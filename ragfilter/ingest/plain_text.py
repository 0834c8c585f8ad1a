"""Plain text: paragraphs packed into passages. Source: docs/design.md#formats."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ragfilter.basics.files import read_text
from ragfilter.ingest.passages import passages
from ragfilter.ingest.reading import PLAIN, Reading
from ragfilter.ingest.records import Record, to_record


def load_text(path: Path, *, source: str, reading: Reading = PLAIN) -> Iterator[Record]:
    """The passages of a text file, titled with its name and numbered from 1. Raises InputError."""
    cut = passages(read_text(path, source), reading.size, reading.overlap)
    for number, passage in enumerate(cut, start=1):
        raw = {"id": f"{source}#{number}", "title": path.stem, "text": passage, "type": "text"}
        yield to_record(raw, place=f"{source}, passage {number}", source=source)
