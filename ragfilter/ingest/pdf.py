"""PDF: the text of each page in passages, with its page number. Source: docs/design.md#formats."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from ragfilter.basics.extras import extra
from ragfilter.errors import InputError
from ragfilter.ingest.passages import passages
from ragfilter.ingest.reading import PLAIN, Reading
from ragfilter.ingest.records import Record, to_record


def load_pdf(path: Path, *, source: str, reading: Reading = PLAIN) -> Iterator[Record]:
    """The passages of a PDF file, page by page; a passage lies on one page. Raises InputError:
    broken, locked with a password, or without text."""
    empty = True
    for page, text in enumerate(_pages(path, source), start=1):
        for number, passage in enumerate(passages(text, reading.size, reading.overlap), start=1):
            empty = False
            raw = {
                "id": f"{source}#page-{page}" + (f"-{number}" if number > 1 else ""),
                "title": f"{path.stem}, page {page}",
                "text": passage,
                "type": "page",
                "page": page,
            }
            yield to_record(raw, place=f"{source}, page {page}", source=source)
    if empty:
        raise InputError(
            f"{source}: no page of this PDF holds text.",
            remedy="If it was scanned, recognise its text first, for example with ocrmypdf.",
        )


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
