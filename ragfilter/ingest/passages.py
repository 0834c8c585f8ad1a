"""Plain text, split into passages that the embedding model can read completely. Source: docs/design.md#formats."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ragfilter.basics.files import read_text
from ragfilter.ingest.records import LONGEST, PLAIN, ReadOptions, Record, to_record

_GAP = re.compile(r"\n\s*\n")

Lines = Sequence[tuple[int, int]]
"""Ranges (start, end) of 0-based lines, in order; `end` is exclusive."""


class _Span(NamedTuple):
    start: int
    end: int
    is_code: bool


def load_text(path: Path, *, source: str, reading: ReadOptions = PLAIN) -> Iterator[Record]:
    """Yield a text file's passages, titled with its name and numbered from 1. Raises InputError."""
    yield from text_records(read_text(path, source), (), path, source, reading)


def text_records(text: str, code: Lines, path: Path, source: str, reading: ReadOptions) -> Iterator[Record]:
    """Yield the passages of a text; the lines in `code` are code."""
    for number, passage in enumerate(passages(text, reading.size, reading.overlap, code), start=1):
        raw = {"id": f"{source}#{number}", "title": path.stem, "text": passage, "type": "text"}
        yield to_record(raw, place=f"{source}, passage {number}", source=source)


def passages(text: str, longest: int = LONGEST, overlap: int = 0, code: Lines = ()) -> list[str]:
    """Pack paragraphs into passages of at most `longest` characters, in order.

    A longer paragraph is split after a sentence, otherwise between words, otherwise anywhere. Lines of `code` are kept
    as they are, and split only between lines, unless a line is too long. Only white space between passages is lost.
    With `overlap`, each passage begins with the last words of the passage before it, up to this many characters."""
    room = longest - overlap - 1 if overlap else longest
    packed: list[_Span] = []
    for piece in _pieces(text, code, room):
        if not text[piece.start : piece.end].strip():
            continue
        if packed and piece.end - packed[-1].start <= room:
            packed[-1] = packed[-1]._replace(end=piece.end)
        else:
            packed.append(piece)
    cut = [text[span.start : span.end] for span in packed]
    for n in range(len(cut) - 1, 0, -1):
        if tail := _tail(cut[n - 1], overlap):
            cut[n] = tail + ("\n" if packed[n].is_code else " ") + cut[n]
    return cut


def _tail(passage: str, overlap: int) -> str:
    """The last whole words of at most `overlap` characters; all of a shorter passage."""
    if len(passage) <= overlap:
        return passage
    begin = re.search(r"\s\S", passage[-overlap - 1 :])
    return passage[-overlap - 1 :][begin.start() :].strip() if begin else ""


def _pieces(text: str, code: Lines, longest: int) -> Iterator[_Span]:
    """Yield paragraphs and code, split if they are too long."""
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    at = 0
    for lines in (*code, (len(starts), len(starts))):
        begin, end = (starts[line] if line < len(starts) else len(text) for line in lines)
        for gap in _GAP.finditer(text, at, begin):
            yield from _prose(text, at, gap.start(), longest)
            at = gap.end()
        yield from _prose(text, at, begin, longest)
        yield from _code(text, begin, end, longest)
        at = end


def _prose(text: str, start: int, end: int, longest: int) -> Iterator[_Span]:
    end = start + len(text[start:end].rstrip())
    start = end - len(text[start:end].lstrip())
    while end - start > longest:
        head = text[start : start + longest + 1]
        ends = [m.end() for m in re.finditer(r"[.!?](?=\s)|\n", head[:longest])]
        space = max(head.rfind(" "), head.rfind("\t"))
        # A sentence end in the first half would leave a stub, so split between words instead.
        cut = ends[-1] if ends and ends[-1] > longest // 2 else space if space > 0 else longest
        yield _Span(start, start + len(head[:cut].rstrip()), is_code=False)
        start += cut
        while text[start : start + 1].isspace():
            start += 1
    if start < end:
        yield _Span(start, end, is_code=False)


def _code(text: str, start: int, end: int, longest: int) -> Iterator[_Span]:
    part = None
    for line in re.finditer(r"[^\n]+", text[start:end]):
        first, after = start + line.start(), start + line.end()
        if not line[0].strip():
            continue
        if part is not None and after - part.start <= longest:
            part = part._replace(end=after)
            continue
        if part is not None:
            yield part
        # A line that is too long by itself is split after a space, otherwise anywhere.
        while after - first > longest:
            space = text.rfind(" ", first, first + longest) + 1
            cut = space if text[first:space].strip() else first + longest
            yield _Span(first, cut, is_code=True)
            first = cut
        part = _Span(first, after, is_code=True)
    if part is not None:
        yield part
