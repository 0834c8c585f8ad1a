"""CSV: a header that names the fields, then one record per row. Source: docs/design.md#formats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from ragfilter.basics.files import CSV_REMEDY, by_column, read_text, rows
from ragfilter.ingest.records import PLAIN, ReadOptions, Record, refuse, to_record

MISSING = "Name a column that the file has, or index the file apart from the others."
NEEDED = {"text", "id", "clearance", "department"}
"""Fields whose chosen column must exist. Without the last two, secret chunks would become public."""
NOTHING = {"page": {"NaN", "nan", "NA"}, "clearance": {"NaN", "nan"}, "department": {"NaN"}}
"""How tables write a missing value. A clearance of NA is unreadable, so it hides its chunk; a department can be NA."""
SAMPLE = 50
"""Number of rows from which the length of a column's cells is estimated."""


def load_csv(path: Path, *, source: str, reading: ReadOptions = PLAIN) -> Iterator[Record]:
    """Yield the records of a CSV file. The first rows tell the delimiter. A field is missing if its cell is empty
    or in `NOTHING`. Raises InputError with file and line."""
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
        with reading.refusing():
            row = by_column(cells, names, place)
            raw = {name: cell for name, cell in row.items() if cell.strip() not in NOTHING.get(name, ())}
            if numbered:
                raw["id"] = f"{source}#{number}"
            yield to_record(raw, place=place, source=source)


def columns(path: Path) -> dict[str, int]:
    """The columns of a CSV file, each with the total characters in its first cells; {} if empty. Raises InputError."""
    every = (cells for _, cells in rows(read_text(path, path.name), path.name))
    header = [cell.strip() for cell in next(every, [])]
    lengths = dict.fromkeys(filter(None, header), 0)
    for cells in islice(every, SAMPLE):
        for name, cell in zip(header, cells, strict=False):
            if name:
                lengths[name] += len(cell)
    return lengths


def _named(header: list[str], columns: Mapping[str, str], place: str) -> list[str]:
    """The header with chosen columns renamed to their fields. Others with a field's name become the source's own."""
    fields = {column: field for field, column in columns.items() if column}
    for column, field in fields.items():
        if field in NEEDED and column not in header:
            refuse(place, f"the header has no column {column!r}", MISSING)
    renamed = {*columns, *(["_id"] if "id" in columns else [])}
    return [fields.get(name, f"column {name}" if name in renamed else name) for name in header]


def _check(names: list[str], place: str, *, numbered: bool) -> None:
    filled = [name for name in names if name]
    twice = next((name for name, n in Counter(filled).items() if n > 1), None)
    if twice is not None:
        refuse(place, f"the header names the field {twice!r} twice", CSV_REMEDY)
    if "text" not in names or not (numbered or {"id", "_id"} & set(names)):
        refuse(place, "the header does not name id and text", CSV_REMEDY)
