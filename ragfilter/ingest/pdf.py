"""PDF: the text of each page as passages with page number. Source: docs/design.md#formats."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from ragfilter.errors import InputError, extra
from ragfilter.ingest.passages import passages
from ragfilter.ingest.records import PLAIN, ReadOptions, Record, to_record

LITTLE, MUCH = 20, 100
"""Characters other than white space. A page with fewer than `LITTLE` was probably scanned if another has `MUCH`."""
SCANNED = "If they were scanned, recognise their text first, for example with ocrmypdf"


def load_pdf(path: Path, *, source: str, reading: ReadOptions = PLAIN) -> Iterator[Record]:
    """Yield the passages of a PDF file, page by page; no passage crosses pages. The last record has warnings about
    pages with little or no text. Raises InputError if the file is damaged, locked with a password, or without text."""
    records: list[Record] = []
    sizes: dict[int, int] = {}
    try:
        for page, text in enumerate(_pages(path, source), start=1):
            sizes[page] = len("".join(text.split()))
            parts = passages(text, reading.size, reading.overlap)
            for number, passage in enumerate(parts, start=1):
                raw = {
                    "id": f"{source}#page-{page}" + (f"-{number}" if number > 1 else ""),
                    "title": f"{path.stem}, page {page}",
                    "text": passage,
                    "type": "page",
                    "page": page,
                }
                records.append(to_record(raw, place=f"{source}, page {page}", source=source))
    except InputError:
        yield from records
        raise
    if not records:
        raise InputError(f"{source}: the pages of this PDF have no text.", remedy=f"{SCANNED}.")
    rich = max(sizes.values()) >= MUCH
    sparse = [page for page, size in sizes.items() if size < (LITTLE if rich else 1)]
    warnings = [f"{source}: little or no text on {_ranges(sparse)}. {SCANNED}."] if sparse else []
    yield from records[:-1]
    yield records[-1]._replace(warnings=(*records[-1].warnings, *warnings))


def _ranges(numbers: list[int]) -> str:
    """``pages 2-3, 7``."""
    grouped = groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])
    runs = [[number for _, number in run] for _, run in grouped]
    pages = "pages" if len(numbers) > 1 else "page"
    ranges = [f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs]
    return f"{pages} {', '.join(ranges)}"


def _pages(path: Path, source: str) -> Iterator[str]:
    # Imported here: nothing else needs it.
    with extra("ingest"):
        import pypdf
    # pypdf logs every oddity of a file, page by page.
    logging.getLogger("pypdf").setLevel(logging.ERROR)
    number = 0
    try:
        with path.open("rb") as file:
            reader = pypdf.PdfReader(file)
            if reader.is_encrypted and not reader.decrypt(""):
                message = f"{source}: this PDF is locked with a password."
                raise InputError(message, remedy="Save a copy without the password.")
            for number, page in enumerate(reader.pages, start=1):  # noqa: B007
                yield page.extract_text()
    except InputError:
        raise
    # A damaged file can make the parser raise anything.
    except Exception as error:
        where = f", page {number}" if number else ""
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        message = f"{source}{where}: this PDF cannot be read ({reason})."
        raise InputError(message, remedy="Save it as PDF again.") from None
