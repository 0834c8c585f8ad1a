"""Makes text comparable in word mode: case, width, dashes, white space, invisible characters.

Source: docs/design.md#contradictions ("plain substring match"). Case and width follow Unicode's
caseless compatibility matching (Unicode Standard, section 3.13, D146).
"""

from __future__ import annotations

import re
import unicodedata
from itertools import groupby

from ragfilter.text.characters import whole


class _Table(dict[int, int | None]):
    """A translation table that fills itself, so that importing it does not walk all of Unicode."""

    def __missing__(self, code: int) -> int | None:
        category = unicodedata.category(chr(code))
        # Everything Unicode calls a dash, and the signs people type for a minus.
        if category == "Pd" or code in (0x2212, 0x2043, 0x02D7):
            self[code] = 0x2D
        # Format characters take no room on the page but would split a word: soft hyphen,
        # zero-width spaces and joiners, direction marks, byte-order mark.
        elif category == "Cf":
            self[code] = None
        else:
            self[code] = code
        return self[code]


_TABLE = _Table()
_ASCII_WORDS = re.compile("([0-9a-z]+)")
# A separator that normalising turns into a space, so that no normalised text holds it.
_EDGE = "\x1f"
_MARKS = re.compile(r"[^\w\s]{31,}")


def normalise(text: str) -> str:
    """`text` as word mode compares it: no invisible characters, NFKC, case folded, every dash and
    minus ``-``, runs of white space one space, ends stripped."""
    if text.isascii():
        return " ".join(text.lower().split())
    text = _MARKS.sub(_shorten, whole(text).translate(_TABLE))
    text = unicodedata.normalize("NFD", text).casefold()
    text = unicodedata.normalize("NFKC", text).casefold()
    text = unicodedata.normalize("NFKC", text)
    return " ".join(text.translate(_TABLE).split())


def _shorten(run: re.Match[str]) -> str:
    """At most 30 combining marks in a row, as Unicode's stream-safe format has it: Python orders
    them in quadratic time, so a megabyte of them would take a quarter of an hour."""
    kept: list[str] = []
    marks = 0
    for char in run.group():
        marks = marks + 1 if unicodedata.combining(char) else 0
        if marks <= 30:
            kept.append(char)
    return "".join(kept)


def mark_words(text: str) -> str:
    """Normalised `text` with a mark on both sides of every run of letters, digits and the marks
    that belong to them. A term occurs in a text between token edges exactly where the marked term
    occurs in the marked text."""
    if text.isascii():
        return _EDGE.join(_ASCII_WORDS.split(text))
    runs = ((word, "".join(run)) for word, run in groupby(text, in_word))
    return "".join(f"{_EDGE}{run}{_EDGE}" if word else run for word, run in runs)


def in_word(char: str) -> bool:
    """Whether `char` belongs to a word: letters, digits, and the marks on them."""
    return char.isalnum() or unicodedata.category(char)[0] == "M"
