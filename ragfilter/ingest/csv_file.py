"""CSV: a header that names the fields, then one record per row. Source: docs/design.md#formats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from ragfilter.basics.files import CSV_REMEDY, check_cells, read_text, rows
from ragfilter.errors import InputError
from ragfilter.ingest.records import PLAIN, ReadOptions, Record, refuse, to_record

MISSING = "Name a column that the file has, or index the file apart from the others."
NEEDED = {"text", "id", "clearance", "department"}
"""The fields whose column no file may lack. Without the last two, what is secret elsewhere would be
public."""
NOTHING = {"page": {"NaN", "nan", "NA"}, "clearance": {"NaN", "nan"}, "department": {"NaN"}}
"""What tables write for a value that is missing. A clearance that says NA hides its chunk, as does
any other that cannot be read; a department may be called so."""
SAMPLE = 50
"""Rows that tell how long a column's cells are."""


def load_csv(path: Path, *, source: str, reading: ReadOptions = PLAIN) -> Iterator[Record]:
    """The records of a CSV file, separated as its header is.

    An empty cell is a field that is not there, and so is one of `NOTHING`. Raises InputError: file
    and line.
    """
    names: list[str] = []
    numbered = False
    for number, (line, cells) in enumerate(rows(read_text(path, source), source)):
        place = f"{source}, line {line}"
        if not names:
            header = [cell.strip() for cell in cells]
            names = _named(header, reading.columns, place) if reading.columns else header
            numbered = bool(reading.columns) and not {"id", "_id"} & set(names)
            _check(names, place, numbered=numbered)
            continue
        try:
            check_cells(cells, names, place)
            raw = {
                k: v
                for k, v in zip(names, cells, strict=False)
                if k and v.strip() not in {"", *NOTHING.get(k, ())}
            }
            if numbered:
                raw["id"] = f"{source}#{number}"
            record = to_record(raw, place=place, source=source)
        except InputError as error:
            reading.refuse(error)
        else:
            yield record


def columns(path: Path) -> dict[str, int]:
    """The names in a CSV file's header, each with the characters of its first cells together;
    none of an empty file. Raises InputError."""
    every = (cells for _, cells in rows(read_text(path, path.name), path.name))
    header = [cell.strip() for cell in next(every, [])]
    lengths = dict.fromkeys(filter(None, header), 0)
    for cells in islice(every, SAMPLE):
        for name, cell in zip(header, cells, strict=False):
            if name:
                lengths[name] += len(cell)
    return lengths


def _named(header: list[str], columns: Mapping[str, str], place: str) -> list[str]:
    """The header with the chosen columns under the names of their fields. Another column of such a
    name is the source's own."""
    fields = {column: field for field, column in columns.items() if column}
    for column, field in fields.items():
        if field in NEEDED and column not in header:
            refuse(place, f"the header has no column {column!r}", MISSING)
    own = {*columns, *(["_id"] if "id" in columns else [])}
    return [fields.get(name, f"column {name}" if name in own else name) for name in header]


def _check(names: list[str], place: str, *, numbered: bool) -> None:
    named = [name for name in names if name]
    twice = next((name for name, n in Counter(named).items() if n > 1), None)
    if twice is not None:
        refuse(place, f"the header names the field {twice!r} twice", CSV_REMEDY)
    if "text" not in names or not (numbered or {"id", "_id"} & set(names)):
        refuse(place, "the header does not name id and text", CSV_REMEDY)
