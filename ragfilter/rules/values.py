"""Numbers with the words that say what they count: in titles, and as terms of rules. Pure.

A title such as "Attack matrix for clerics - Opponent Armor Class 6" differs from its siblings' in a
value; "armor class" is what the 6 counts. Questions write it in many ways, which `spellings` makes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ragfilter.text.normalise import normalise

NUMBERS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen", "twenty",
)  # fmt: skip
MOST_WORDS = 2
"""Of the words before a number so many say what it counts."""
COMMON = frozenset((
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from", "has",
    "have", "how", "i", "if", "in", "is", "it", "my", "of", "on", "or", "so", "that", "the",
    "their", "them", "there", "they", "this", "to", "was", "what", "when", "where", "which", "who",
    "why", "will", "with", "you", "your",
))  # fmt: skip
"""Words of every question, which tell none from another."""

_TOKEN = re.compile(r"(?<![\w.])-?\d+(?!\w)|[^\W_]+(?:['-][^\W_]+)*|\S")
_NUMBER = re.compile(r"-?\d+$")


@dataclass(frozen=True, slots=True)
class Value:
    """A number and what it counts: ``("armor", "class")`` and ``-6``."""

    words: tuple[str, ...]
    number: int

    @property
    def named(self) -> str:
        return " ".join((*self.words, str(self.number)))


def tokens(text: str) -> tuple[str, ...]:
    """Words, numbers and signs of normalised `text`."""
    return tuple(_TOKEN.findall(normalise(text)))


def is_number(token: str) -> bool:
    return _NUMBER.match(token) is not None


def mask(text: str) -> tuple[str, ...]:
    """`text` with a ``#`` for every number: titles of one pattern have the same."""
    return tuple("#" if is_number(token) else token for token in tokens(text))


def values(text: str) -> tuple[Value, ...]:
    """The numbers of `text` that words say something about, in order. A range ("1-5") is none."""
    found = []
    parts = tokens(text)
    for at, token in enumerate(parts):
        if not is_number(token) or _in_range(parts, at):
            continue
        words: list[str] = []
        for word in reversed(parts[:at]):
            if len(words) == MOST_WORDS or not word[0].isalpha() or word in COMMON:
                break
            words.insert(0, word)
        if words:
            found.append(Value(tuple(words), int(token)))
    return tuple(found)


def numbers(number: int) -> tuple[str, ...]:
    """How a number is written: figures, and words up to twenty."""
    size = abs(number)
    word = (NUMBERS[size],) if size < len(NUMBERS) else ()
    if number >= 0:
        return (str(number), *word)
    return (
        str(number),
        *(f"{sign} {n}" for sign in ("minus", "negative") for n in (str(size), *word)),
    )


def acronym(words: Iterable[str]) -> str:
    """``ac`` for armor class; empty for a single word."""
    letters = [word[0] for word in words]
    return "".join(letters) if len(letters) > 1 else ""


def spellings(value: Value, contexts: Iterable[str]) -> tuple[str, ...]:
    """How questions write a value. `contexts` are the ways to say what it counts ("armor class",
    "ac"), an acronym among them also with dots and without a space."""
    short = acronym(value.words)
    made: list[str] = []
    for context in contexts:
        for number in numbers(value.number):
            made += [f"{context} {number}", f"{context} of {number}"]
        if context == short:
            dotted = "".join(f"{letter}." for letter in short)
            made += [f"{dotted} {value.number}", f"{dotted} of {value.number}"]
            made.append(f"{short}{value.number}")
    return tuple(dict.fromkeys(made))


def _in_range(parts: tuple[str, ...], at: int) -> bool:
    after = parts[at + 1] if at + 1 < len(parts) else ""
    before = parts[at - 1] if at else ""
    return is_number(after) or is_number(before) or after == "-" or before in ("-", "/")
