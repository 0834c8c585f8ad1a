"""Texts that are nearly the same and differ in a few names and numbers, with any titles. Pure.

Similar texts are found by MinHash sketches of their word pairs (Broder; in bands: Leskovec,
Rajaraman and Ullman, "Mining of Massive Datasets", chapter 3), and compared with the first of them.
If the parts between what they share are only names of one word or two, and numbers described by
words, these are their values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import combinations, pairwise
from zlib import crc32

import numpy as np
import numpy.typing as npt

from ragfilter.rules.named import MOST_TOKENS, Name, telling
from ragfilter.rules.values import LINE_END, Number, Value, parts, stands_alone, value_at

BANDS, ROWS = 32, 3
"""Texts are compared if they agree in all rows of a band of their sketches. That holds for nearly
all texts that share half of their pairs, and for one in thirty that share a tenth."""
SHARED = 0.3
"""Minimum fraction of their sketches in which near texts agree."""
MOST_TRIED = 20
"""A text that was compared this often with similar ones, and belongs to none, is skipped."""
FOLLOWED = 0.25
"""If a smaller fraction of the near texts differ only in values, those are a coincidence."""
SAME = 0.8
"""The fraction of two texts' words that both have, in the same order."""
MOST_DIFFER = 4
"""Maximum number of places in which a family differs, unless names are among them."""
MOST_TOLD = 12
"""Maximum number of places if names are among them."""
READ = 2 / 3
"""Minimum fraction of those places that have a value."""
MOST_GAP = 4
"""Maximum number of words between what two texts share."""
MOST_READ = 1200
"""Maximum number of texts whose words are held during comparison."""
MOST_PARTS = 600
"""Maximum number of words read of a text."""

Parts = tuple[str | Number, ...]


@dataclass(frozen=True, slots=True)
class Near:
    """A text's position in the sequence, its values, and the words around them."""

    at: int
    values: tuple[Value | Name, ...]
    label: str


@dataclass(frozen=True, slots=True)
class _Laid:
    """A text aligned with the first one: where it has the words of that one."""

    at: int
    every: Parts
    places: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class _Cell:
    value: Value | Name
    start: int
    end: int


def find_near(texts: Sequence[str], fewest: int) -> Iterator[tuple[str, list[Near]]]:
    """Groups of near texts, each with its pattern. A text is in one group only."""

    # Cached, because a text is compared with many similar ones.
    @lru_cache(maxsize=MOST_READ)
    def read(at: int) -> Parts:
        return parts(texts[at])

    like = _Like(len(texts), (_pairs(parts(text)) for text in texts))
    # Identical texts cannot be told apart.
    copies = Counter(texts)
    free = np.array([copies[text] == 1 for text in texts], dtype=bool) & like.sketched
    tried = np.zeros(len(texts), dtype=int)
    for at in range(len(texts)):
        others = like.of(at, free) if free[at] else []
        if len(others) + 1 < fewest:
            continue
        pattern, group = _compare([(i, read(i)) for i in (at, *others)])
        if len(group) >= fewest:
            free[[each.at for each in group]] = False
            yield pattern, sorted(group, key=lambda each: each.at)
        tried[others] += 1
        free &= tried < MOST_TRIED


def _pairs(every: Parts) -> list[int]:
    """A hash of each pair of words."""
    words = ["#" if isinstance(part, Number) else part for part in every[:MOST_PARTS]]
    # Unlike `hash`, this gives the same value in every process.
    return list({crc32(f"{a} {b}".encode()) for a, b in pairwise(words)})


class _Like:
    """Which texts share most of their word pairs, found by sketches."""

    def __init__(self, n: int, texts: Iterable[list[int]]) -> None:
        chance = np.random.default_rng(0)
        self._factors = chance.integers(1, 2**64, size=BANDS * ROWS, dtype=np.uint64)
        self._sketches = np.zeros((n, BANDS * ROWS), dtype=np.uint32)
        self.sketched = np.zeros(n, dtype=bool)
        for at, pairs in enumerate(texts):
            if pairs:
                self.sketched[at] = True
                mixed = np.array(pairs, dtype=np.uint64)[:, None] * self._factors >> np.uint64(32)
                self._sketches[at] = mixed.min(axis=0)
        self._bands = [self._sorted(start) for start in range(0, BANDS * ROWS, ROWS)]

    def of(self, at: int, among: npt.NDArray[np.bool_]) -> list[int]:
        """The texts similar to this one, without itself."""
        bands = [order[starts[at] : ends[at]] for order, starts, ends in self._bands]
        others = np.unique(np.concatenate(bands))
        others = others[among[others] & (others != at)]
        agree = (self._sketches[others] == self._sketches[at]).mean(axis=1)
        near: list[int] = others[agree >= SHARED].tolist()
        return near

    def _sorted(self, start: int) -> tuple[npt.NDArray[np.intp], ...]:
        """The texts sorted by their values in a band, and for each the range of texts with the same
        values."""
        rows = self._sketches[:, start : start + ROWS].astype(np.uint64)
        band = rows @ self._factors[:ROWS]
        order = np.argsort(band, kind="stable")
        found = band[order]
        return order, np.searchsorted(found, band), np.searchsorted(found, band, side="right")


def _compare(texts: Sequence[tuple[int, Parts]]) -> tuple[str, list[Near]]:
    """The pattern of the first of `texts`, and those that differ from it only in values."""
    lead = texts[0][1]
    first = _Laid(*texts[0], {at: at for at in range(len(lead))})
    near = [first]
    for at, every in texts[1:]:
        places = _places(lead, every)
        if places is not None:
            near.append(_Laid(at, every, places))
    # Texts that differ in a few values, or in many of which one is a name.
    for read in (_columns, _named_columns):
        laid = [other for other in near if read([first, other]) is not None]
        columns = read(laid) if len(laid) >= max(2, FOLLOWED * len(near)) else None
        if columns:
            return _told(lead, laid, columns)
    return "", []


def _told(
    lead: Parts, laid: Sequence[_Laid], columns: Sequence[Sequence[_Cell]]
) -> tuple[str, list[Near]]:
    """The pattern of the first text, and the texts whose values no other text has."""
    rows = list(zip(*columns, strict=True))
    found = [_values(row) for row in rows]
    if len({len(values) for values in found}) > 1:
        return "", []
    counts = Counter(found)
    pattern = list(map(_written, lead))
    for cell in rows[0][::-1]:
        pattern[cell.start : cell.end] = ["#" if isinstance(cell.value, Value) else "*"]
    return _joined(pattern), [
        Near(each.at, values, _label(each.every, row[0].start, row[-1].end))
        for each, values, row in zip(laid, found, rows, strict=True)
        if counts[values] == 1
    ]


def _columns(laid: Sequence[_Laid]) -> list[list[_Cell]] | None:
    """The values at the places where texts differ, place by place; None if one is not a value, or
    if there are too many places."""
    columns = _cells(laid)
    return columns if all(columns) and len(columns) <= MOST_DIFFER else None


def _named_columns(laid: Sequence[_Laid]) -> list[list[_Cell]] | None:
    """The same for texts that differ in much else: the fewest places that tell them apart, or come
    closest to it. None if no name is among them, or if too many places have no value."""
    every = _cells(laid)
    columns = sorted(filter(None, every), key=lambda column: isinstance(column[0].value, Value))
    if not READ * len(every) <= len(columns) <= MOST_TOLD:
        return None
    sets = [few for n in (1, 2, 3) for few in combinations(columns, n)]
    best = max(
        sets,
        key=lambda few: len({_values(row) for row in zip(*few, strict=True)}),
        default=(),
    )
    if every and not any(isinstance(column[0].value, Name) for column in best):
        return None
    # If one place tells texts apart, questions may still ask by others.
    more = MOST_DIFFER - 1 if len(best) == 1 else 0
    others = [column for column in columns if all(column is not each for each in best)]
    return sorted([*best, *others[:more]], key=lambda column: column[0].start)


def _cells(laid: Sequence[_Laid]) -> list[list[_Cell]]:
    """The values at each place where texts differ; empty where a text has something else."""
    lead = laid[0].every
    common = sorted(set.intersection(*(set(each.places) for each in laid)))
    columns = []
    for left, right in pairwise((-1, *common, len(lead))):
        spans = [
            (
                each.every,
                each.places[left] + 1 if left >= 0 else 0,
                each.places[right] if right < len(lead) else len(each.every),
            )
            for each in laid
        ]
        if len({every[start:end] for every, start, end in spans}) == 1:
            continue
        cells = [
            _Cell(value, start, end)
            for every, start, end in spans
            if (value := _value(every, start, end)) is not None
        ]
        alike = len(cells) == len(laid) and len({type(cell.value) for cell in cells}) == 1
        columns.append(cells if alike else [])
    return columns


def _values(row: Sequence[_Cell]) -> tuple[Value | Name, ...]:
    """A name that occurs in several places of a text is one value."""
    return tuple(dict.fromkeys(cell.value for cell in row))


def _places(lead: Parts, every: Parts) -> dict[int, int] | None:
    """Where `every` has the words of `lead`; None if it is not near."""
    if max(len(lead), len(every)) > MOST_PARTS:
        return None
    # Near texts begin and end alike, and only the part in between is slow to compare.
    shorter = min(len(lead), len(every))
    head = next((i for i in range(shorter) if lead[i] != every[i]), shorter)
    rest = shorter - head
    tail = next((i for i in range(rest) if lead[-1 - i] != every[-1 - i]), rest)
    middle, other = (side[head : len(side) - tail] for side in (lead, every))
    blocks = SequenceMatcher(None, middle, other, autojunk=False).get_matching_blocks()
    places = {i: i for i in range(head)}
    places |= {head + b.a + i: head + b.b + i for b in blocks for i in range(b.size)}
    places |= {len(lead) - i: len(every) - i for i in range(1, tail + 1)}
    return places if len(places) >= SAME * max(len(lead), len(every)) else None


def _value(every: Parts, start: int, end: int) -> Value | Name | None:
    """The number or name at this place; None if there is something else."""
    between = every[start:end]
    if len(between) == 1 and isinstance(between[0], Number):
        # In a sentence, the word after a number says what it counts, if it needs one: 30 days.
        after = () if stands_alone(between[0].written) else every[end : end + 1]
        return value_at(every, start, units={w for w in after if isinstance(w, str)})
    if len(between) > MOST_GAP or any(isinstance(part, Number) for part in between):
        return None
    words = tuple(telling([part for part in between if isinstance(part, str)]))
    return Name(words) if 1 <= len(words) <= 2 else None


def _label(every: Parts, start: int, end: int) -> str:
    begin = max(0, start - MOST_TOKENS // 4)
    return _joined(map(_written, every[begin : min(end + 2, begin + MOST_TOKENS)]))


def _joined(words: Iterable[str]) -> str:
    return " ".join(word for word in words if word != LINE_END)


def _written(part: str | Number) -> str:
    return part.written if isinstance(part, Number) else part
