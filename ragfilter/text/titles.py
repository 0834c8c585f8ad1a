"""Titles in little room, and an id and a name for a question. The same text always has the same
id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b

from ragfilter.text.normalise import whole
from ragfilter.text.words import FUNCTION_WORDS

ELLIPSIS = "…"
NAMED_BY = 2
"""The words before a telling one that are kept with it: ``Armor Class 6``."""


def telling_titles(titles: Sequence[str], width: int) -> list[str]:
    """`titles` that stand beside each other, each in at most `width` characters.

    A long one keeps its beginning and end, as it would alone, if these tell it from the others.
    Otherwise it keeps the words that do: ``… CLERICS … Armor Class 6``. Where different titles
    would look the same, the later ones are numbered, if `width` has room for that.
    """
    return list(_telling(tuple(" ".join(title.split()) for title in titles), width))


def short_title(title: str, width: int) -> str:
    """A title that stands alone in at most `width` characters: its beginning and its end, at words
    if possible: ``I.A. ATTACK MATRIX … Armor Class 6``."""
    title = " ".join(title.split())
    if len(title) <= width:
        return title
    room = width - len(ELLIPSIS) - 2
    if room < 4:
        return title[: max(width - 1, 0)].rstrip() + ELLIPSIS if width > 0 else ""
    words = title.split()
    tail = _fitting(reversed(words), room // 2)
    tail_text = " ".join(reversed(tail)) or title[-(room // 2) :].lstrip()
    head = _fitting(words, room - len(tail_text))
    head_text = " ".join(head) or title[: room - len(tail_text)].rstrip()
    return f"{head_text} {ELLIPSIS} {tail_text}"


@lru_cache(maxsize=64)
def _telling(titles: tuple[str, ...], width: int) -> tuple[str, ...]:
    different = list(dict.fromkeys(titles))
    holders: dict[str, int] = {}
    for i, title in enumerate(different):
        for word in set(map(_key, title.split())):
            holders[word] = holders.get(word, 0) | 1 << i
    shown: dict[str, str] = {}
    taken: set[str] = set()
    for i, title in enumerate(different):
        fits = len(title) <= width
        short = title if fits else _shortened(title, i, len(different), holders, width)
        made, n = short, 1
        while made in taken:
            n += 1
            number = f" ({n})"
            if len(number) >= width:
                break
            made = short_title(short, width - len(number)) + number
        taken.add(made)
        shown[title] = made
    return tuple(shown[title] for title in titles)


def _shortened(title: str, i: int, n: int, holders: Mapping[str, int], width: int) -> str:
    """The title at place `i` of `n`. `holders` has a bit for each title that has a word."""
    words = title.split()
    chosen: list[int] = []
    alike = (1 << n) - 1 ^ 1 << i
    plain = short_title(title, width)
    if _told_by(plain.split(), alike, holders):
        return plain
    while alike:
        left = {at: (alike & holders[_key(word)]).bit_count() for at, word in enumerate(words)}
        best = min(left, key=lambda at: (left[at], not _content(words[at]), at))
        if left[best] == alike.bit_count() or len(_joined(words, [*chosen, best])) > width:
            break
        chosen.append(best)
        alike &= holders[_key(words[best])]
    if not chosen:
        return plain
    last = max(chosen)
    for more in (range(last - 1, max(last - NAMED_BY, 0) - 1, -1), range(len(words))):
        for at in more:
            if len(_joined(words, [*chosen, at])) > width:
                break
            chosen.append(at)
    return _joined(words, chosen)


def _told_by(words: Iterable[str], alike: int, holders: Mapping[str, int]) -> bool:
    """Whether each of the titles `alike` lacks one of `words`. Names and numbers count, since a
    heading such as ``I.A.`` tells readers nothing."""
    for word in words:
        if _content(word) or any(char.isdigit() for char in word):
            alike &= holders.get(_key(word), alike)
    return not alike


def _key(word: str) -> str:
    return word.strip(",;:.!?()[]\"'").casefold()


def _content(word: str) -> bool:
    key = _key(word)
    return len(key) > 3 and key.isalpha() and key not in FUNCTION_WORDS


def _joined(words: Sequence[str], chosen: Iterable[int]) -> str:
    """The chosen words in their order, with an ellipsis where others are left out."""
    parts: list[str] = []
    before = -1
    for at in sorted(set(chosen)):
        if at > before + 1 and not any(char.isalnum() for char in words[at]):
            continue
        if at > before + 1:
            if parts:
                parts[-1] = parts[-1].rstrip(",;:-–—") or parts[-1]
            parts.append(ELLIPSIS)
        parts.append(words[at])
        before = at
    if before < len(words) - 1:
        parts.append(ELLIPSIS)
    return " ".join(parts)


def _fitting(words: Iterable[str], room: int) -> list[str]:
    taken: list[str] = []
    for word in words:
        room -= len(word) + (1 if taken else 0)
        if room < 0:
            break
        taken.append(word)
    while taken and not any(char.isalnum() for char in taken[-1]):
        taken.pop()
    return taken


def query_id(text: str) -> str:
    """The id of a question, made from its text."""
    plain = whole(text).strip()
    return "q-" + blake2b(plain.encode("utf-8", "replace"), digest_size=5).hexdigest()


def query_name(given: str, text: str, width: int) -> str:
    """A question's name in a table: its id, or its text if the id was only made from that."""
    return short_title(text if given == query_id(text) else given, width)
