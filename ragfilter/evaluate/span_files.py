"""Labels as spans of their sources: JSON lines with `question`, `source`, and `start` and `end` or
`quote`, as public chunking benchmarks have them; also `grade` (2 without one) and `page`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragfilter.basics.files import read_text
from ragfilter.errors import InputError
from ragfilter.text.normalise import whole

if TYPE_CHECKING:
    from ragfilter.stores.labels import Label, Quoted

Span = tuple[str, int, "Quoted"]
"""A question, a grade and what it judges."""
RELEVANT = 2


def read_spans(path: Path, sources: Path | None = None) -> list[Span]:
    """The spans of a file. `sources` is the folder of the texts that `start` and `end` count in,
    in characters from 0; a quote needs none. Raises InputError that names file and line."""
    spans = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if line.strip():
            spans.append(_span(line, f"{path}, line {number}", sources))
    if not spans:
        raise InputError(f"{path} holds no labels.", remedy="Name another file.")
    return spans


def _span(line: str, where: str, sources: Path | None) -> Span:
    from ragfilter.stores.labels import Quoted

    try:
        given: dict[str, Any] = json.loads(line)
        question, source = whole(given["question"]).strip(), whole(given.get("source", ""))
        start, end = int(given.get("start", -1)), int(given.get("end", -1))
        page, grade = int(given.get("page", -1)), int(given.get("grade", RELEVANT))
        quote = whole(given.get("quote", ""))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise InputError(
            f"{where}: this is not a label of a span.",
            remedy='Write {"question": "…", "source": "…", "quote": "…"}, or start and end.',
        ) from None
    if not quote and sources is not None and 0 <= start < end:
        quote = read_text(sources / source)[start:end]
    if not quote.strip() or not question:
        raise InputError(
            f"{where}: the quote or the question is missing.",
            remedy="Add quote, or start and end with --sources FOLDER.",
        )
    return question, grade, Quoted(quote, source, page, start, end)


def span_lines(labels: Mapping[int, Label], places: Mapping[int, Quoted]) -> Iterator[str]:
    """The labels that have a place as lines of a file, each quote of a question once."""
    seen = set()
    for label_id, label in labels.items():
        place = places.get(label_id)
        if place is None or (label.query, place.source, place.quote) in seen:
            continue
        seen.add((label.query, place.source, place.quote))
        known = {name: value for name in ("page", "start", "end")
                 if (value := getattr(place, name)) >= 0}  # fmt: skip
        row = {"question": label.query, "source": place.source, "quote": place.quote,
               "grade": label.grade, **known}  # fmt: skip
        yield json.dumps(row, ensure_ascii=False) + "\n"
