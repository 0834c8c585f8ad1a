"""Finds titles with the same pattern that differ in a name ("Price list - Lanterns", "Price list -
Ropes"), or in two names that cross ("Ash drake, adult", "Ash drake, young", "Mire troll, adult").
Pure.

A name is one word or two. The rest of the title must contain a distinctive word too, unless names
cross.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ragfilter.rules.values import COMMON, mask, tokens

MOST_TOKENS = 24
"""A longer title is a sentence, and its siblings differ in more than a name."""


SHOWN_NAMES = 3


@dataclass(frozen=True, slots=True)
class Name:
    """What a chunk's title has in the place where its siblings' titles differ."""

    words: tuple[str, ...]

    @property
    def named(self) -> str:
        return " ".join(self.words)


Crossing = tuple[int, tuple[Name, Name]]
"""The index of a title, and its two names."""


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


def find_crossed(labels: Sequence[str], fewest: int) -> Iterator[tuple[str, list[Crossing]]]:
    """Patterns of two names with a sign between them, and for each the places in `labels` with
    their names. Each name occurs with at least two others."""
    found: dict[tuple[str, ...], list[Crossing]] = defaultdict(list)
    for at, label in enumerate(labels):
        title = tokens(label)
        halves = _halves(title) if len(title) <= MOST_TOKENS else None
        if halves is not None:
            left, signs, right = halves
            found[signs].append((at, (Name(left), Name(right))))
    for signs, every in found.items():
        copies = Counter(names for _, names in every)
        crossing = [each for each in every if copies[each[1]] == 1]
        before = 0
        while len(crossing) != before:
            before = len(crossing)
            sides = [Counter(names[side] for _, names in crossing) for side in (0, 1)]
            crossing = [each for each in crossing if all(sides[s][each[1][s]] > 1 for s in (0, 1))]
        for group in _connected(crossing):
            if len(group) >= fewest:
                shortened = _shortened(group)
                yield _pattern(signs, [names for _, names in shortened]), shortened


def _halves(title: tuple[str, ...]) -> tuple[tuple[str, ...], ...] | None:
    """Split a title that consists of a name, signs and a name."""
    closed = title[:-1] if title[-1:] in ((")",), ("]",)) else title
    at = [place for place, token in enumerate(closed) if not token[0].isalnum()]
    if not at or at != list(range(at[0], at[-1] + 1)):
        return None
    left, right = closed[: at[0]], closed[at[-1] + 1 :]
    are_names = all(1 <= len(side) <= 2 and _is_name(side) for side in (left, right))
    return (left, closed[at[0] : at[-1] + 1], right) if are_names else None


def _connected(crossing: Sequence[Crossing]) -> Iterator[list[Crossing]]:
    """The crossings in groups that share no name."""
    beside: dict[tuple[int, Name], list[Crossing]] = defaultdict(list)
    for each in crossing:
        for side in (0, 1):
            beside[side, each[1][side]].append(each)
    seen: set[int] = set()
    for first in crossing:
        group, todo = [], [first]
        while todo:
            each = todo.pop()
            if each[0] not in seen:
                seen.add(each[0])
                group.append(each)
                todo += (other for side in (0, 1) for other in beside[side, each[1][side]])
        if group:
            yield sorted(group, key=lambda each: each[0])


def _pattern(signs: Sequence[str], crossing: Sequence[tuple[Name, Name]]) -> str:
    """``* , adult/old/young``: the side with fewer names, with some of them listed, since another
    family may have the same signs."""
    sides = [sorted({names[side].named for names in crossing}) for side in (0, 1)]
    few = min((0, 1), key=lambda side: len(sides[side]))
    more = ["…"] if len(sides[few]) > SHOWN_NAMES else []
    named = "/".join([*sides[few][:SHOWN_NAMES], *more])
    return " ".join(("*", *signs, named) if few else (named, *signs, "*"))


def _shortened(group: Sequence[Crossing]) -> list[Crossing]:
    """The crossings without a word that all names of a side share, as in "temperate conditions",
    "tropical conditions"."""
    kept: list[tuple[int, ...]] = []
    for side in (0, 1):
        columns = list(zip(*{names[side].words for _, names in group}, strict=False))
        apart = tuple(place for place, words in enumerate(columns) if len(set(words)) > 1)
        alike = len({len(names[side].words) for _, names in group}) == 1
        kept.append(apart if alike else (0, 1))
    return [(at, (_only(left, kept[0]), _only(right, kept[1]))) for at, (left, right) in group]


def _only(name: Name, places: Sequence[int]) -> Name:
    return Name(tuple(word for place, word in enumerate(name.words) if place in places))


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
