"""Finds what texts and questions call the thing that a title counts (armour class, AC, 7th level),
and which forms of a name they use. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from difflib import SequenceMatcher
from itertools import islice

from ragfilter.rules.plurals import forms, without_hyphens
from ragfilter.rules.values import ORDINALS, acronym
from ragfilter.text.normalise import normalise

Words = tuple[str, ...]
NEAR = 0.8
"""Minimum similarity (difflib's ratio) of another spelling of the same context."""
NEAR_WORD = 0.9
"""The same for a context of one word, which must also begin alike: "colour", but not "flavor"."""
MOST_TEXTS = 20_000
"""Maximum number of texts in which contexts are looked up."""

_WORD = re.compile(r"[^\W_]+")
_BEFORE_NUMBER = re.compile(r"([^\W\d_]+(?: [^\W\d_]+)?)(?: of| ?[:=|*]+)? -?\d")
_PLACED = re.compile(rf"\b(?:\d+(?:st|nd|rd|th)|{'|'.join(ORDINALS[1:])})[ -]([^\W\d_]+)")


def find_contexts(
    counted: Iterable[Words], texts: Iterable[str]
) -> tuple[dict[Words, tuple[str, ...]], set[Words]]:
    """What the texts call each counted thing: the words of the titles, an acronym, or another
    spelling. Also returns which of them are used with an ordinal: 7th level, of ``("level",)``."""
    counted = tuple(counted)
    seen: Counter[str] = Counter()
    places: set[str] = set()
    placed: set[Words] = set()
    for text in islice(texts, MOST_TEXTS):
        text = normalise(text)
        for phrase in _BEFORE_NUMBER.findall(text):
            seen[phrase] += 1
            seen[phrase.split()[-1]] += " " in phrase
        places.update(_PLACED.findall(text))
    for words in counted:
        if len(words) == 1 and places.intersection(forms(words[0])):
            placed.add(words)
    return {words: _called(words, seen) for words in counted}, placed


def find_held(names: Iterable[str], texts: Iterable[str]) -> set[str]:
    """Those of `names` whose last word occurs in the texts: "fire beetles" if one has "beetles"."""
    last = {name: _WORD.findall(name)[-1] for name in names}
    wanted = set(last.values())
    held_words: set[str] = set()
    for text in islice(texts, MOST_TEXTS):
        if held_words == wanted:
            break
        held_words |= wanted.intersection(_WORD.findall(normalise(text)))
    return {name for name, word in last.items() if word in held_words}


def held_forms(name: str, held: Collection[str]) -> tuple[str, ...]:
    """The forms of a name: as written, in the singular, and in a plural that is among the `held`. A
    name of two letters has no other form: "uses" is not US."""
    own = without_hyphens(name)
    if len(name) < 3:
        return own
    return tuple(f for f in forms(name) if f in own or len(f) < len(name) or f in held)


def _called(words: Words, seen: Counter[str]) -> tuple[str, ...]:
    if not words:
        return ()
    full, short = " ".join(words), acronym(words)
    least = NEAR if len(words) > 1 else NEAR_WORD
    near = [
        other
        for other in seen
        if other != full
        and _begins_alike(words, other.split())
        and SequenceMatcher(None, full, other, autojunk=False).ratio() >= least
    ]
    usual = (short,) if short and seen[short] else ()
    return (full, *sorted(near), *usual)


def _begins_alike(words: Words, others: Sequence[str]) -> bool:
    """Whether one of as many words is the same, or a single word has the same first letter."""
    if len(words) != len(others):
        return False
    pairs = zip(words, others, strict=True)
    return any(a == b if len(words) > 1 else a[0] == b[0] for a, b in pairs)
