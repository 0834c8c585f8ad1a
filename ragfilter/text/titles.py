"""Titles in little room, and an id and a name for a question. The same text always has the same
id."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from ragfilter.text.normalise import whole

ELLIPSIS = "…"


def short_title(title: str, width: int) -> str:
    """`title` in at most `width` characters, shortened in the middle, at words if possible, so that
    its distinctive end stays: ``I.A. ATTACK MATRIX … Armor Class 6``."""
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
