"""Finds titles with the same pattern that differ in a name ("Price list - Lanterns", "Price list -
Ropes"). Pure.

A name is one word or two. The rest of the title must contain a distinctive word too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ragfilter.rules.values import COMMON, mask, tokens

MOST_TOKENS = 24
"""A longer title is a sentence, and its siblings differ in more than a name."""


@dataclass(frozen=True, slots=True)
class Name:
    """What a chunk's title has in the place where its siblings' titles differ."""

    words: tuple[str, ...]

    @property
    def named(self) -> str:
        return " ".join(self.words)


def find_named(
    labels: Sequence[str], fewest: int
) -> Iterator[tuple[tuple[str, ...], list[tuple[int, Name]]]]:
    """Patterns with ``*`` for the name, and for each the places in `labels` with their names,
    largest first. A label belongs to one pattern only."""
    titles = [tokens(label) for label in labels]
    # Grouped by the pattern's hash first, because most patterns have one chunk and there may be
    # many titles.
    counts = Counter(hash(pattern) for title in titles for pattern, _ in _patterns(title))
    groups: dict[tuple[str, ...], dict[Name, list[int]]] = defaultdict(lambda: defaultdict(list))
    for at, title in enumerate(titles):
        for pattern, name in _patterns(title):
            if counts[hash(pattern)] >= fewest:
                groups[pattern][name].append(at)
    taken: set[int] = set()
    # Of two patterns for the same chunks, the one with the shorter name is more specific.
    most = sorted(groups.items(), key=lambda group: (-len(group[1]), -len(group[0]), group[0]))
    for pattern, by_name in most:
        alone = {name: ids[0] for name, ids in by_name.items() if len(ids) == 1}
        free = {name: at for name, at in alone.items() if at not in taken}
        if len(free) >= fewest:
            taken.update(free.values())
            yield pattern, [(at, name) for name, at in free.items()]


def telling(words: Collection[str]) -> list[str]:
    """The distinctive words: no signs, no numbers, no common words."""
    return [word for word in words if _is_long(word) and word[0].isalpha() and word not in COMMON]


def is_short(word: str) -> bool:
    """Whether `word` is two letters that may be a name, such as EU or US. Numerals are not."""
    is_pair = len(word) == 2 and word.isascii() and word.isalpha()
    return is_pair and word not in COMMON and mask(word) == (word,)


def _is_name(words: Sequence[str]) -> bool:
    return len(telling(words)) == len(words) or (len(words) == 1 and is_short(words[0]))


def _is_long(word: str) -> bool:
    """Whether `word` is long enough to be distinctive: more than two letters, or in a script
    without an alphabet."""
    return len(word) > 2 or (len(word) == 2 and not word.isascii())


def _patterns(title: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Name]]:
    if len(title) > MOST_TOKENS:
        return
    for start in range(len(title)):
        for end in (start + 1, start + 2):
            name, rest = title[start:end], (*title[:start], *title[end:])
            if end <= len(title) and _is_name(name) and telling(rest):
                yield (*title[:start], "*", *title[end:]), Name(name)
