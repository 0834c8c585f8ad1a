"""JSON lines: one record a line. Source: docs/design.md#formats."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from ragfilter.errors import InputError
from ragfilter.ingest.files import read_lines
from ragfilter.ingest.records import Record, to_record


def load_jsonl(path: Path, *, source: str) -> Iterator[Record]:
    """The records of a JSONL file; empty lines are passed over. Raises InputError."""
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        place = f"{source}, line {number}"
        try:
            raw = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"{place}: this is not JSON ({error}).",
                remedy='Write one JSON object per line, such as {"id": "a", "text": "..."}.',
            ) from None
        if not isinstance(raw, dict):
            raise InputError(
                f"{place}: this is not a JSON object.",
                remedy='Write one JSON object per line, such as {"id": "a", "text": "..."}.',
            )
        yield to_record(raw, place=place, source=source)
