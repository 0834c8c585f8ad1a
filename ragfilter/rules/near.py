"""Texts nearly the same that differ in a few names and numbers, whatever their titles. Pure.

Texts that share enough of a sketch, the smallest hashes of their pairs of words, are laid beside
the first of them. Where all that stands between what they share are names of one word or two, and
numbers that a word says something about, these are their values.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from heapq import nsmallest
from itertools import pairwise
from zlib import crc32

from ragfilter.rules.named import MOST_TOKENS, Name, telling
from ragfilter.rules.values import Number, Value, parts, stands_alone, value_at

SKETCH = 16
"""Hashes by which texts find each other."""
SHARED = 0.4
"""The share of a sketch that near texts have in common at least."""
SAME = 0.8
"""The share of two texts' words that stand in both, in the same order."""
MOST_DIFFER = 4
"""In more places no family differs."""
MOST_GAP = 4
"""Words between what two texts share."""
MOST_HELD = 300
"""What stands in more texts than this is boilerplate, by which no text looks for its like."""
MOST_PARTS = 600
"""Words of a text that are read."""

Parts = tuple[str | Number, ...]


@dataclass(frozen=True, slots=True)
class Near:
    """A text's place in the sequence, its values, and its words around them."""

    at: int
    values: tuple[Value | Name, ...]
    label: str


@dataclass(frozen=True, slots=True)
class _Laid:
    """A text beside the first: where it has the words of that one."""

    at: int
    every: Parts
    places: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class _Cell:
    value: Value | Name
    start: int
    end: int


def find_near(texts: Sequence[str], fewest: int) -> Iterator[tuple[str, list[Near]]]:
    """Groups of near texts, each with its pattern; a text is in one alone."""

    # A text is compared with one after another of its like.
    @lru_cache(maxsize=4 * MOST_HELD)
    def read(at: int) -> Parts:
        return parts(texts[at])

    sketches = [_sketch(parts(text)) for text in texts]
    holding: dict[int, list[int]] = defaultdict(list)
    for at, sketch in enumerate(sketches):
        for each in sketch:
            holding[each].append(at)
    taken: set[int] = set()
    for at, sketch in enumerate(sketches):
        if at in taken:
            continue
        lists = (found for each in sketch if len(found := holding[each]) <= MOST_HELD)
        shared = Counter(other for found in lists for other in found if other not in taken)
        near = [other for other, n in shared.items() if n >= SHARED * len(sketch)]
        if len(near) >= fewest:
            others = [other for other in sorted(near) if other != at]
            pattern, group = _compare([(i, read(i)) for i in (at, *others)])
            if len(group) >= fewest:
                taken.update(each.at for each in group)
                yield pattern, group


def _sketch(every: Parts) -> list[int]:
    words = ["#" if isinstance(part, Number) else part for part in every[:MOST_PARTS]]
    # Unlike `hash`, this is the same in every process.
    return nsmallest(SKETCH, {crc32(f"{a} {b}".encode()) for a, b in pairwise(words)})


def _compare(texts: Sequence[tuple[int, Parts]]) -> tuple[str, list[Near]]:
    """The pattern of the first of `texts`, and those that differ from it in values alone."""
    lead = texts[0][1]
    first = _Laid(*texts[0], {at: at for at in range(len(lead))})
    laid = [first]
    for at, every in texts[1:]:
        places = _places(lead, every)
        other = None if places is None else _Laid(at, every, places)
        if other is not None and _columns([first, other]) is not None:
            laid.append(other)
    columns = _columns(laid)
    if not columns:
        return "", []
    rows = list(zip(*columns, strict=True))
    # A name that stands in several places of a text is one value.
    found = [tuple(dict.fromkeys(cell.value for cell in row)) for row in rows]
    if len({len(values) for values in found}) > 1:
        return "", []
    counts = Counter(found)
    pattern = list(map(_written, lead))
    for cell in rows[0][::-1]:
        pattern[cell.start : cell.end] = ["#" if isinstance(cell.value, Value) else "*"]
    return " ".join(pattern), [
        Near(each.at, values, _label(each.every, row[0].start, row[-1].end))
        for each, values, row in zip(laid, found, rows, strict=True)
        if counts[values] == 1
    ]


def _columns(laid: Sequence[_Laid]) -> list[list[_Cell]] | None:
    """What stands in the places in which texts differ, place by place; None where that is no value,
    or in too many of them."""
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
        values = [_value(*span) for span in spans]
        column = [
            _Cell(value, start, end)
            for value, (_, start, end) in zip(values, spans, strict=True)
            if value is not None
        ]
        if len(column) < len(laid) or len(set(map(type, values))) > 1:
            return None
        columns.append(column)
    return columns if len(columns) <= MOST_DIFFER else None


def _places(lead: Parts, every: Parts) -> dict[int, int] | None:
    """Where `every` has the words of `lead`; None where it is not near it."""
    if max(len(lead), len(every)) > MOST_PARTS:
        return None
    # Near texts begin and end alike: only what is between takes long to compare.
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
    """The number or name that stands there; None where something else does."""
    between = every[start:end]
    if len(between) == 1 and isinstance(between[0], Number):
        # In a sentence the word behind a number says what it counts, where it needs one: 30 days.
        after = () if stands_alone(between[0].written) else every[end : end + 1]
        return value_at(every, start, units={w for w in after if isinstance(w, str)})
    if len(between) > MOST_GAP or any(isinstance(part, Number) for part in between):
        return None
    words = tuple(telling([part for part in between if isinstance(part, str)]))
    return Name(words) if 1 <= len(words) <= 2 else None


def _label(every: Parts, start: int, end: int) -> str:
    begin = max(0, start - MOST_TOKENS // 4)
    shown = every[begin : min(end + 2, begin + MOST_TOKENS)]
    return " ".join(map(_written, shown))


def _written(part: str | Number) -> str:
    return part.written if isinstance(part, Number) else part
