"""The names that tell kin apart: families that count the same thing and have similar patterns.
Pure.

Words in the pattern of one family that are not in all others' are its names ("clerics, druids and
monks"), grouped by place if they cross in the others ("Price list 2022 EU - Boots").
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby

from ragfilter.rules.named import is_short
from ragfilter.rules.values import COMMON

ALIKE = 0.5
"""Kin share at least this fraction of the distinctive words of the pattern that has fewer."""
CONJUNCTIONS = frozenset(("and", "or"))
JOINED = CONJUNCTIONS | {",", "/", "&"}
"""The tokens between the names of one place: clerics, druids and monks."""


class Kind:
    """A family's pattern and what it counts."""

    def __init__(self, pattern: str, counted: set[tuple[str, ...]]) -> None:
        self.counted = counted
        self.tokens = pattern.split()

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(self.tokens)

    @cached_property
    def telling(self) -> frozenset[str]:
        """The distinctive words: no signs, no enumeration, no common words."""
        return frozenset(w for w in self.words if len(w) > 2 and w not in COMMON)

    def is_kin(self, other: Kind) -> bool:
        shared = len(self.telling & other.telling)
        fewer = min(len(self.telling), len(other.telling))
        return self is not other and bool(self.counted & other.counted) and shared >= ALIKE * fewer


def find_places(kinds: Sequence[Kind]) -> list[tuple[tuple[str, ...], ...]]:
    """The names of each family, place by place."""
    return [_places(own, [other for other in kinds if own.is_kin(other)]) for own in kinds]


def _places(own: Kind, kin: Sequence[Kind]) -> tuple[tuple[str, ...], ...]:
    """Names that the same kin have mean the same, wherever they are."""
    if not kin:
        return ()
    names = {word for word in own.telling if not all(word in other.words for other in kin)}
    names.update(word for word in own.tokens if is_short(word) and _is_alone(word, own, kin))
    held = {w: frozenset(at for at, other in enumerate(kin) if w in other.words) for w in names}
    told: dict[frozenset[int], list[str]] = defaultdict(list)
    for place in _runs(own.tokens, held):
        told[frozenset().union(*(held[word] for word in place))] += place
    return tuple(tuple(dict.fromkeys(place)) for place in told.values())


def _is_alone(word: str, own: Kind, kin: Sequence[Kind]) -> bool:
    """Whether some kin's pattern differs only in having something else in place of `word`."""
    at = own.tokens.index(word)
    around = [*own.tokens[:at], *own.tokens[at + 1 :]]
    return any(
        word not in other.words and [*other.tokens[:at], *other.tokens[at + 1 :]] == around
        for other in kin
    )


def _runs(pattern: Sequence[str], held: Mapping[str, frozenset[int]]) -> Iterator[list[str]]:
    """Runs of adjacent names in a pattern. A run is split between names that cross in the kin, i.e.
    each occurs in kin without the other, unless a list names both. `held` has the kin of each
    name."""
    for is_run, tokens_ in groupby(pattern, lambda token: token in held or token in JOINED):
        run = list(tokens_) if is_run else []
        listed = not CONJUNCTIONS.isdisjoint(run)
        place: list[str] = []
        for word in (token for token in run if token in held):
            if not listed and any(
                held[word] - held[other] and held[other] - held[word] for other in place
            ):
                yield place
                place = []
            place.append(word)
        if place:
            yield place
