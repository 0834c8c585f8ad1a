"""CSV: a header that names the fields, one record a row. Source: docs/design.md#formats."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from ragfilter.errors import InputError
from ragfilter.ingest.files import read_text
from ragfilter.ingest.records import Record, to_record

REMEDY = "Begin the file with a header such as id,title,text; quote cells that hold the separator."
LARGEST_CELL = 64 * 1024 * 1024


def load_csv(path: Path, *, source: str) -> Iterator[Record]:
    """The records of a CSV file, separated by comma, semicolon or tab, whichever the header has.

    An empty cell is a field that is not there. Raises InputError: file and line.
    """
    text = read_text(path)
    if not text.strip():
        return
    # The standard limit of 128 KiB a cell is for the whole process; it is only ever raised here.
    csv.field_size_limit(max(csv.field_size_limit(), LARGEST_CELL))
    header = text.lstrip("\n").split("\n", 1)[0]
    separator = max(",;\t", key=header.count)
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    names: list[str] = []
    try:
        for cells in rows:
            place = f"{source}, line {rows.line_num}"
            if not any(cell.strip() for cell in cells):
                continue
            if not names:
                names = _header(cells, place)
                continue
            if len(cells) > len(names):
                raise InputError(
                    f"{place}: {len(cells)} cells, but the header names {len(names)}.",
                    remedy=REMEDY,
                )
            raw = {k: v for k, v in zip(names, cells, strict=False) if k and v.strip()}
            yield to_record(raw, place=place, source=source)
    except csv.Error as error:
        raise InputError(f"{source}, line {rows.line_num}: {error}.", remedy=REMEDY) from None


def _header(cells: list[str], place: str) -> list[str]:
    names = [cell.strip() for cell in cells]
    named = [name for name in names if name]
    if len(set(named)) < len(named):
        raise InputError(f"{place}: the header names a field twice.", remedy=REMEDY)
    if "text" not in names or not {"id", "_id"} & set(names):
        raise InputError(f"{place}: the header does not name id and text.", remedy=REMEDY)
    return names
