"""Titles of one pattern that differ in a name: "Price list - Lanterns", "Price list - Ropes". Pure.

A name is one word or two. What is left of the title must tell something too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ragfilter.rules.values import COMMON, tokens

MOST_TOKENS = 24
"""A longer title is a sentence, and its siblings' differ in more."""


@dataclass(frozen=True, slots=True)
class Name:
    """What a chunk's title says in the place in which those of its siblings differ."""

    words: tuple[str, ...]

    @property
    def named(self) -> str:
        return " ".join(self.words)


def find_named(
    labels: Sequence[str], fewest: int
) -> Iterator[tuple[tuple[str, ...], list[tuple[int, Name]]]]:
    """Patterns with ``*`` for the name, and the places in `labels` of each with their names, the
    most first; a label is in one alone."""
    titles = [tokens(label) for label in labels]
    # By a pattern's hash first: most patterns have one chunk, and there are many a title.
    counts = Counter(hash(pattern) for title in titles for pattern, _ in _patterns(title))
    groups: dict[tuple[str, ...], dict[Name, list[int]]] = defaultdict(lambda: defaultdict(list))
    for at, title in enumerate(titles):
        for pattern, name in _patterns(title):
            if counts[hash(pattern)] >= fewest:
                groups[pattern][name].append(at)
    taken: set[int] = set()
    # Of two patterns for the same chunks the one with the shorter name says more.
    most = sorted(groups.items(), key=lambda group: (-len(group[1]), -len(group[0]), group[0]))
    for pattern, by_name in most:
        alone = {name: ids[0] for name, ids in by_name.items() if len(ids) == 1}
        free = {name: at for name, at in alone.items() if at not in taken}
        if len(free) >= fewest:
            taken.update(free.values())
            yield pattern, [(at, name) for name, at in free.items()]


def telling(words: Collection[str]) -> list[str]:
    """The words that tell something: no signs, no numbers, no common ones."""
    return [word for word in words if _is_long(word) and word[0].isalpha() and word not in COMMON]


def _is_long(word: str) -> bool:
    """Two letters say little, but in a script without an alphabet."""
    return len(word) > 2 or (len(word) == 2 and not word.isascii())


def _patterns(title: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Name]]:
    if len(title) > MOST_TOKENS:
        return
    for start in range(len(title)):
        for end in (start + 1, start + 2):
            name, rest = title[start:end], (*title[:start], *title[end:])
            if end <= len(title) and len(telling(name)) == len(name) and telling(rest):
                yield (*title[:start], "*", *title[end:]), Name(name)
