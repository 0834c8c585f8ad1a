"""Makes text comparable and storable.

`normalise` returns the form that word mode compares: it unifies case, width, dashes, quotes and white space, drops
invisible characters, and separates adjacent scripts. Case and width follow Unicode's caseless compatibility matching
(Unicode Standard, section 3.13, D146). Source: docs/design.md#contradictions ("plain substring match").

`mend_characters` turns text from outside into whole characters, so that it can be stored and sent as UTF-8. JSON,
command lines and streams can contain halves of characters (surrogates). It joins two halves that belong together and
replaces a lone one with U+FFFD. All incoming text passes through it, so that no other code needs to care."""

from __future__ import annotations

import json
import re
import unicodedata
from functools import lru_cache
from itertools import groupby
from typing import Any


class _Table(dict[int, int | None]):
    """A translation table that fills itself on demand, so that the import need not scan Unicode."""

    def __missing__(self, code: int) -> int | None:
        category = unicodedata.category(chr(code))
        # Every dash in Unicode, and the signs that people type for a minus.
        if category == "Pd" or code in (0x2212, 0x2043, 0x02D7):
            self[code] = 0x2D
        # Format characters are invisible but would split a word: soft hyphen, zero-width spaces and joiners, direction
        # marks, byte-order mark. So would the selectors that turn a heart into an emoji.
        elif category == "Cf" or 0xFE00 <= code <= 0xFE0F:
            self[code] = None
        else:
            self[code] = code
        return self[code]


# Phones, keyboards and transcriptions write one sign in many ways, even as an accent, a prime or a modifier letter.
QUOTES: dict[int, int | None] = dict.fromkeys(map(ord, "‘’‚‛`´′‵ʹʻʼʽˈ׳＇"), ord("'"))
QUOTES |= dict.fromkeys(map(ord, "“”„‟″‶ˮ״＂"), ord('"'))
"""Every apostrophe as ``'``, and every quotation mark as ``"``."""
_TABLE = _Table(QUOTES)
_ASCII_WORDS = re.compile("([0-9a-z]+)")
# A separator that normalising turns into a space, so that no normalised text contains it.
_EDGE = "\x1f"
_MARKS = re.compile(r"[^\w\s]{31,}")


def normalise(text: str) -> str:
    """Convert `text` to the form that word mode compares: no invisible characters, NFKC, case
    folded, ``-`` for every dash and minus, ``'`` for every apostrophe, ``"`` for every quotation
    mark, a space between words of two scripts, single spaces, and stripped ends."""
    if text.isascii():
        return " ".join(text.lower().replace("`", "'").split())
    text = _MARKS.sub(_shorten, mend_characters(text).translate(_TABLE))
    text = unicodedata.normalize("NFD", text).casefold()
    text = unicodedata.normalize("NFKC", text).casefold()
    text = unicodedata.normalize("NFKC", text)
    return " ".join(" ".join(by_script(text.translate(_TABLE))).split())


def by_script(text: str) -> list[str]:
    """Split `text` where a word of another script begins: "aws|の料金". `normalise` puts a space there, so this alone
    decides on such token edges. A digit, like a mark on a letter, belongs to the letters next to it ("ac6", "7й"),
    unless their script has no spaces or is Hangul, in which particles are attached to names."""
    if _ONE_SCRIPT.issuperset(map(script, set(text))):
        return [text]
    starts, before = [0], ""
    for place, char in enumerate(text):
        kind = script(char)
        if kind == "MARK":
            continue
        if before and kind and before != kind:
            other = {before, kind} - {"DIGIT"}
            if len(other) == 2 or not other.isdisjoint(_APART_FROM_DIGITS):
                starts.append(place)
        before = kind
    return [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]


UNSPACED = frozenset(("CJK", "THAI", "LAO", "KHMER", "MYANMAR"))
"""Scripts that are written without spaces between words."""
_ONE_SCRIPT = frozenset(("LATIN", "DIGIT", "MARK", ""))
_APART_FROM_DIGITS = UNSPACED | {"HANGUL"}
# Units and terms mix Greek and Latin ("μm", "kΩ", "β-carotene"), and Japanese mixes its scripts.
_SCRIPTS = {"GREEK": "LATIN", "MODIFIER": "DIGIT"} | dict.fromkeys(
    ("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "IDEOGRAPHIC", "BOPOMOFO"), "CJK"
)


@lru_cache(maxsize=8192)
def script(char: str) -> str:
    """The script of a letter, by its Unicode name; "DIGIT" or "MARK"; "" outside of words."""
    char = unicodedata.normalize("NFKC", char.translate(QUOTES))[0]
    if not in_word(char):
        return ""
    category = unicodedata.category(char)
    if category[0] == "M":
        return "MARK"
    name = "DIGIT" if category == "Nd" else unicodedata.name(char, "").partition(" ")[0]
    return _SCRIPTS.get(name, name)


def _shorten(run: re.Match[str]) -> str:
    """Keep at most 30 combining marks in a row, as in Unicode's stream-safe format: Python orders
    them in quadratic time, so a megabyte of them would take a quarter of an hour."""
    kept: list[str] = []
    marks = 0
    for char in run.group():
        marks = marks + 1 if unicodedata.combining(char) else 0
        if marks <= 30:
            kept.append(char)
    return "".join(kept)


def mark_words(text: str) -> str:
    """Put a mark on both sides of every run of letters, digits and combining marks in normalised `text`. A term occurs
    in a text between token edges exactly where the marked term occurs in the marked text."""
    if text.isascii():
        return _EDGE.join(_ASCII_WORDS.split(text))
    runs = ((word, "".join(run)) for word, run in groupby(text, in_word))
    return "".join(f"{_EDGE}{run}{_EDGE}" if word else run for word, run in runs)


def in_word(char: str) -> bool:
    """Whether `char` belongs to a word: a letter, a digit or a combining mark."""
    return char.isalnum() or unicodedata.category(char)[0] == "M"


_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_HALVES = re.compile("[\ud800-\udfff]")


def mend_characters(text: str) -> str:
    """Join pairs of surrogates in `text` and replace lone ones; other text stays as it is."""
    if text.isascii() or not _HALVES.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def ends_in_half(text: str) -> bool:
    """Whether `text` ends with the first half of a character, whose second half may follow."""
    return "\ud800" <= text[-1:] <= "\udbff"


def in_one_line(text: str) -> str:
    """Escape line ends and other control characters in `text` as in code: ``\\n``."""
    return _CONTROLS.sub(lambda match: repr(match[0])[1:-1], text)


def loads(text: str) -> Any:
    """Parse JSON, with all its strings in whole characters. Raises ValueError and RecursionError, like `json.loads`."""
    value = json.loads(text)
    # Only an escape can add a half that the text itself does not contain.
    if "\\u" not in text and not _HALVES.search(text):
        return value
    return json.loads(mend_characters(json.dumps(value, ensure_ascii=False)))


def loads_or_none(text: str) -> Any:
    """Parse JSON as `loads` does; None if `text` is not JSON."""
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return None
