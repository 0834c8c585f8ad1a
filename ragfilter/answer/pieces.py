"""Cuts a chunk's text into the pieces of which the context may leave some out. Pure.

A piece is a sentence, a heading, or what only makes sense as a whole: a table, a list or code, with
the line that leads to it ("Parameters:"). Rows that are written as sentences ("Level 3: 5. Level 4:
6.") are a table too. The pieces cover the text, so that their spans can be cut out of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

from ragfilter.answer.extractive import sentences, units

Kind = Literal["sentence", "heading", "block"]

_HEADING = re.compile(r"#{1,6}\s")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d+[.)])\s")
_FENCE = re.compile(r"\s*(```|~~~)")
_INDENTED = re.compile(r" {4}|\t")


class TextPiece(NamedTuple):
    """``text[start:end]``, with the white space that follows it."""

    start: int
    end: int
    kind: Kind


@lru_cache(maxsize=4096)
def pieces(text: str) -> tuple[TextPiece, ...]:
    """The pieces of a text, in order; the first begins at 0 and the last ends with the text."""
    found: list[TextPiece] = []
    for start, end, kind in _parts(text):
        last = found[-1] if found else None
        if last and kind == "block" and last.kind == "sentence" and _leads(text, last):
            found[-1] = TextPiece(last.start, end, "block")
        else:
            found.append(TextPiece(start if found else 0, end, kind))
    return tuple(found)


def _leads(text: str, piece: TextPiece) -> bool:
    """Whether a sentence says what the table, list or code after it is."""
    return text[piece.start : piece.end].rstrip().endswith(":")


def _parts(text: str) -> Iterator[TextPiece]:
    """The pieces before sentences are joined with the blocks that they lead to."""
    lines = text.splitlines(keepends=True)
    start = number = 0
    while number < len(lines):
        last, kind = _group(lines, number)
        while last < len(lines) and not lines[last].strip():
            last += 1
        end = start + sum(map(len, lines[number:last]))
        if kind is not None:
            yield TextPiece(start, end, kind)
        else:
            yield from _sentences(text, start, end)
        start, number = end, last


def _group(lines: list[str], first: int) -> tuple[int, Kind | None]:
    """Where the lines end that belong to `lines[first]`, and what they are; None for prose."""
    line, last = lines[first], first + 1
    if _HEADING.match(line):
        return last, "heading"
    if fence := _FENCE.match(line):
        while last < len(lines) and not lines[last].strip().startswith(fence[1]):
            last += 1
        return min(last + 1, len(lines)), "block"
    begins = _begins(line)
    if begins == "table":
        while last < len(lines) and _begins(lines[last]) == "table":
            last += 1
        return last, "block"
    if begins in ("list", "code"):
        # Blank lines are within it if it goes on after them.
        place = last
        while place < len(lines):
            now = lines[place]
            blank = not now.strip()
            own = _begins(now) == begins or (begins == "list" and now[:1].isspace())
            follows = begins == "list" and place == last and _begins(now) == ""
            if not (blank or own or follows) or _HEADING.match(now):
                break
            place += 1
            last = last if blank else place
        return last, "block"
    while last < len(lines) and lines[last].strip() and _begins(lines[last]) in ("", "code"):
        if _HEADING.match(lines[last]) or _FENCE.match(lines[last]):
            break
        last += 1
    return last, None


def _begins(line: str) -> str:
    stripped = line.strip()
    if stripped.startswith("|") and stripped.count("|") > 1:
        return "table"
    if _ITEM.match(line):
        return "list"
    return "code" if stripped and _INDENTED.match(line) else ""


def _sentences(text: str, start: int, end: int) -> Iterator[TextPiece]:
    """The sentences of a paragraph; rows in a row are one block."""
    begins: list[int] = []
    rows: list[bool] = []
    place = start
    for sentence in sentences(text[start:end]):
        place = text.index(sentence, place)
        begins.append(place)
        rows.append(any(unit.is_row for unit in units(sentence)))
        place += len(sentence)
    if not begins:
        yield TextPiece(start, end, "sentence")
        return
    begins[0] = start
    number = 0
    while number < len(begins):
        last = number + 1
        while rows[number] and last < len(begins) and rows[last]:
            last += 1
        to = begins[last] if last < len(begins) else end
        yield TextPiece(begins[number], to, "block" if rows[number] else "sentence")
        number = last
