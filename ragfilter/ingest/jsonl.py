"""JSON lines: one record per line. Source: docs/design.md#formats."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from ragfilter.basics.files import read_lines
from ragfilter.errors import InputError
from ragfilter.ingest.reading import PLAIN, ReadOptions
from ragfilter.ingest.records import Record, to_record

REMEDY = 'Write one JSON object per line, such as {"id": "a", "text": "..."}.'


def load_jsonl(path: Path, *, source: str, reading: ReadOptions = PLAIN) -> Iterator[Record]:
    """The records of a JSONL file; empty lines are passed over. Raises InputError."""
    for number, line in enumerate(read_lines(path, source), start=1):
        if not line.strip():
            continue
        try:
            record = _record(line, f"{source}, line {number}", source)
        except InputError as error:
            reading.refuse(error)
        else:
            yield record


def _record(line: str, place: str, source: str) -> Record:
    try:
        raw = json.loads(line)
    except json.JSONDecodeError as error:
        why = f"{error.msg} at column {error.colno}"
        raise InputError(f"{place}: this is not JSON ({why}).", remedy=REMEDY) from None
    except RecursionError:
        raise InputError(
            f"{place}: this JSON is nested too deeply.", remedy="Nest it less deeply."
        ) from None
    except ValueError:
        raise InputError(
            f"{place}: a number in it has too many digits.", remedy="Write it in quotes."
        ) from None
    if not isinstance(raw, dict):
        raise InputError(f"{place}: this is not a JSON object.", remedy=REMEDY)
    return to_record(raw, place=place, source=source)
