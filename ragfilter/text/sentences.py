"""Splits a text into sentences and table rows, and a Markdown text into pieces that cover it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Literal, NamedTuple

_ABBREVIATIONS = frozenset(("approx", "ca", "cf", "dr", "e.g", "eg", "esp", "i.e", "ie", "mr", "mrs", "ms", "st", "vs"))
_BEFORE_NUMBERS = frozenset(("ch", "fig", "figs", "no", "nos", "p", "pp", "sec", "vol"))
_END = re.compile(r"(?<![.!?])[.!?]+[\"'”’)\]]*(?=\s+[\"'“‘(\[]?[A-Z0-9À-ÖØ-Þ])|(?<=\s)[.!?](?=\s+[^\d\s])|[。！？]+")
LABEL = re.compile(
    r"^\W*(?:[a-z][\w'/-]*\s+){0,3}?(?P<what>[a-z][\w'/-]*):?\s+"
    r"(?P<low>\d+)(?:\s*(?:-|–|to)\s*(?P<high>\d+)|(?P<open>\s*\+|\s+(?:and|or)\s+"
    r"(?:above|more|up|higher|over)))?\s*[:|,]",
    re.IGNORECASE,
)
_PAIR = re.compile(r"^[^:;]{1,60}:\s*\S")
_LIST_ITEM = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence, or a whole row of a table."""

    text: str
    is_row: bool = False


def passages_of(title: str, text: str) -> list[str]:
    """The sentences and rows that can answer a question, each with the title: what to embed for extractive answers."""
    return [titled(title, unit) for unit in units(text) if tells(unit)]


def units(text: str) -> list[Unit]:
    """The sentences and table rows of `text`, in order. No word is lost."""
    return [unit for block in _blocks(text.splitlines()) for unit in block]


def sentences(text: str) -> list[str]:
    """The sentences of one paragraph. Abbreviations, initials and decimals do not end a sentence."""
    ends: list[str] = []
    start = 0
    for match in _END.finditer(text):
        before, after = text[start : match.start()], text[match.end() : match.end() + 2]
        if match.group()[0] == "." and _is_abbreviation(before, after):
            continue
        ends.append(text[start : match.end()].strip())
        start = match.end()
    rest = text[start:].strip()
    return [*ends, rest] if rest else ends


def tells(unit: Unit) -> bool:
    """Whether the unit can answer a question. "One appears." is too short to."""
    return unit.is_row or unit.text.count(" ") > 1


def titled(title: str, unit: Unit) -> str:
    """The unit under its title. Alone ("It regenerates."), it rarely says what it is about."""
    return f"{title.rstrip(' :')}: {unit.text}" if title else unit.text


def _blocks(lines: list[str]) -> Iterator[list[Unit]]:
    """The blocks of a text: single Markdown table rows and list items, and joined paragraphs."""
    paragraph: list[str] = []
    header: list[str] = []
    for place, line in enumerate([*lines, ""]):
        stripped = line.strip()
        is_row = stripped.startswith("|") and stripped.count("|") > 1
        if paragraph and (is_row or not stripped or _LIST_ITEM.match(line)):
            yield [unit for each in sentences(" ".join(paragraph)) for unit in _rows(each)]
            paragraph = []
        if not is_row:
            header = []
            if stripped:
                paragraph.append(stripped)
        elif place + 1 < len(lines) and _is_rule(lines[place + 1]):
            header = _cells(line)
        elif not _is_rule(line):
            yield [Unit(_row(header, _cells(line)), is_row=True)]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _is_rule(line: str) -> bool:
    return "|" in line and all(re.fullmatch(r":?-+:?", cell) for cell in _cells(line))


def _row(header: list[str], cells: list[str]) -> str:
    """Write a row: "Level 7-9: Score 10" for the header "Level, Score" and the cells "7-9, 10"."""
    names = header + [""] * (len(cells) - len(header))
    first, *rest = (f"{n} {c}".strip() for n, c in zip(names, cells, strict=False))
    return f"{first}: {', '.join(rest)}" if rest else first


def _rows(sentence: str) -> list[Unit]:
    """The rows of a sentence if it is a table on one line, otherwise the sentence itself."""
    parts = [part.strip() for part in sentence.split(";") if part.strip()]
    labelled = sum(bool(LABEL.match(part)) for part in parts)
    if labelled >= 2 or sum(bool(_PAIR.match(part)) for part in parts) >= 3:
        return [Unit(part.rstrip("."), is_row=True) for part in parts]
    return [Unit(sentence, is_row=bool(LABEL.match(sentence)))]


def _is_abbreviation(before: str, after: str) -> bool:
    word = before.rsplit(None, 1)[-1] if before.strip() else ""
    bare = word.lstrip("(\"'“‘[").lower()
    if before.strip() == word and bare.isdigit():
        return True  # "1." that begins a list item
    if bare in _BEFORE_NUMBERS:
        return after.strip().isdigit()
    return bare in _ABBREVIATIONS or bool(re.fullmatch(r"[a-z](?:\.[a-z])*", bare))


Kind = Literal["sentence", "heading", "block"]
_BLANK = r"(?:^[^\S\n]*\n)*"
_HEADING = r"\#{1,6}(?=\s)"
_FENCE = r"[^\S\n]*(?:```|~~~)"
_ROW = r"[^\S\n]*\|.*\|"
_ITEM = r"[^\S\n]*(?:[-*+•]|\d+[.)])\s"
_INDENTED = r"(?:[ ]{4}|\t)(?=.*\S)"
_PLAIN = rf"^(?!{_HEADING}|{_FENCE}|{_ROW}|{_ITEM})(?=.*\S).+\n?"
_PARTS = re.compile(
    rf"""
    (?:
        (?P<heading>^{_HEADING}.*\n?)
        | ^[^\S\n]*(?P<fence>```|~~~)(?s:.*?)(?:^[^\S\n]*(?P=fence).*\n?|\Z)
        | (?:^{_ROW}.*\n?)+
        | ^{_ITEM}.*\n? (?:{_BLANK}^(?!{_HEADING})(?:{_ITEM}|[^\S\n]+(?=\S)).*\n? | {_PLAIN})*
        | ^{_INDENTED}.*\n? (?:{_BLANK}^{_INDENTED}.*\n?)*
        | (?P<prose>(?:{_PLAIN})+)
    )
    (?:^[^\S\n]*\n|^[^\S\n]+\Z)*
    """,
    re.VERBOSE | re.MULTILINE,
)


class TextPiece(NamedTuple):
    """A piece ``text[start:end]``, including the white space after it."""

    start: int
    end: int
    kind: Kind


@lru_cache(maxsize=4096)
def pieces(text: str) -> tuple[TextPiece, ...]:
    """The pieces of a text, in order; the first begins at 0 and the last ends with the text."""
    joined: list[TextPiece] = []
    for start, end, kind in _parts(text):
        last = joined[-1] if joined else None
        # A sentence may introduce the table, list or code after it.
        if last and kind == "block" and last.kind == "sentence" and text[last.start : last.end].rstrip().endswith(":"):
            joined[-1] = TextPiece(last.start, end, "block")
        else:
            joined.append(TextPiece(start if joined else 0, end, kind))
    return tuple(joined) or ((TextPiece(0, len(text), "sentence"),) if text else ())


def _parts(text: str) -> Iterator[TextPiece]:
    """The pieces before sentences are joined to the blocks that they introduce."""
    for match in _PARTS.finditer(text):
        if match["prose"]:
            yield from _sentence_pieces(text, *match.span())
        else:
            yield TextPiece(*match.span(), "heading" if match["heading"] else "block")


def _sentence_pieces(text: str, start: int, end: int) -> Iterator[TextPiece]:
    """The sentences of a paragraph; consecutive rows are one block."""
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
    spans = zip([start, *begins[1:]], [*begins[1:], end], rows, strict=True)
    for is_row, group in groupby(spans, key=itemgetter(2)):
        if is_row:
            block = list(group)
            yield TextPiece(block[0][0], block[-1][1], "block")
        else:
            yield from (TextPiece(a, b, "sentence") for a, b, _ in group)
