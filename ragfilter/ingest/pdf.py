"""PDF: the text of each page in passages, with its page number. Source: docs/design.md#formats."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from ragfilter.basics.extras import extra
from ragfilter.errors import InputError
from ragfilter.ingest.passages import passages
from ragfilter.ingest.reading import PLAIN, ReadOptions
from ragfilter.ingest.records import Record, to_record

SCANNED = "If they were scanned, recognise their text first, for example with ocrmypdf"


def load_pdf(path: Path, *, source: str, reading: ReadOptions = PLAIN) -> Iterator[Record]:
    """The passages of a PDF file, page by page; a passage lies on one page. The last record
    warns of pages without text. Raises InputError: broken, locked with a password, or without
    text."""
    record: Record | None = None
    without: list[int] = []
    try:
        for page, text in enumerate(_pages(path, source), start=1):
            found = passages(text, reading.size, reading.overlap)
            if not found:
                without.append(page)
            for number, passage in enumerate(found, start=1):
                if record is not None:
                    yield record
                raw = {
                    "id": f"{source}#page-{page}" + (f"-{number}" if number > 1 else ""),
                    "title": f"{path.stem}, page {page}",
                    "text": passage,
                    "type": "page",
                    "page": page,
                }
                record = to_record(raw, place=f"{source}, page {page}", source=source)
    except InputError:
        if record is not None:
            yield record
        raise
    if record is None:
        raise InputError(f"{source}: the pages of this PDF hold no text.", remedy=f"{SCANNED}.")
    if without:
        pages = "pages" if len(without) > 1 else "page"
        told = f"{source}: no text on {pages} {_ranges(without)}. {SCANNED}."
        record = record._replace(warnings=(*record.warnings, told))
    yield record


def _ranges(numbers: list[int]) -> str:
    """``2-3, 7``."""
    grouped = groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])
    runs = [[number for _, number in run] for _, run in grouped]
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def _pages(path: Path, source: str) -> Iterator[str]:
    # Imported here: nothing else needs it.
    with extra("ingest"):
        import pypdf
    # It reports every oddity of a file, page by page.
    logging.getLogger("pypdf").setLevel(logging.ERROR)
    number = 0
    try:
        with path.open("rb") as file:
            reader = pypdf.PdfReader(file)
            if reader.is_encrypted and not reader.decrypt(""):
                raise InputError(
                    f"{source}: this PDF is locked with a password.",
                    remedy="Save a copy without the password.",
                )
            for number, page in enumerate(reader.pages, start=1):  # noqa: B007
                yield page.extract_text()
    except InputError:
        raise
    # What a damaged file brings a parser to is open-ended.
    except Exception as error:
        where = f", page {number}" if number else ""
        said = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(
            f"{source}{where}: this PDF cannot be read ({said}).", remedy="Save it as PDF again."
        ) from None
