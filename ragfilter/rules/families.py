"""Families of chunks that differ in a few values. Pure.

docs/design.md#families describes them. The titles of a family share a pattern, and its texts are
alike. Titles differ in up to three numbers that words describe ("Opponent Armor Class 6", "Levels
4-6"), in two names that cross ("Ash drake, adult"), or in one name ("Price list - Ropes"). If a
title is missing or shared by several chunks, the beginning of the text is added.

Families that count the same thing and have similar patterns are kin (see `ragfilter.rules.kin`).
Texts that are nearly the same may form a family whatever their titles (`ragfilter.rules.near`):
they may differ in names and numbers together. Chunks that are close in meaning may form one if they
state the same kinds of values (`ragfilter.rules.close`).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from ragfilter.model import Chunk
from ragfilter.rules.close import VectorsOf, find_close
from ragfilter.rules.kin import Kind, find_places
from ragfilter.rules.named import MOST_TOKENS, Name, find_crossed, find_named, telling
from ragfilter.rules.near import Near, find_near
from ragfilter.rules.values import (
    Number,
    Value,
    mask,
    parts,
    stands_alone,
    tokens,
    value_at,
)
from ragfilter.text.normalise import normalise

Titled = tuple[Chunk, str]
"""A chunk with its label: see `Member`."""
FEWEST = 3
"""Minimum number of chunks in a family."""
ALIKE = 0.5
"""The fraction of a text's words that its family shares."""
MOST_VALUES = 3
"""Maximum number of numbers in which a family differs."""
MOST_LABEL = 1_000
"""Characters of a text in which its first line is looked for."""


@dataclass(frozen=True, slots=True)
class Member:
    """A chunk of a family, with the values in which it differs. `label` is its title, followed by
    the beginning of its text if the title is not unique. In a family found by texts, `label` is the
    values and the words around them."""

    chunk: Chunk
    label: str
    values: tuple[Value | Name, ...]

    @property
    def named(self) -> str:
        return ", ".join(value.named for value in self.values)


@dataclass(frozen=True, slots=True)
class Family:
    """The members of a family. `pattern` is that of their labels (or texts), with ``#`` for a
    number or ``*`` for the name in which they differ. `places` holds the names that not all of its
    kin have; names with the same role share a place."""

    pattern: str
    members: tuple[Member, ...]
    places: tuple[tuple[str, ...], ...] = ()
    of_texts: bool = False
    """Whether only the texts show that it is a family."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for place in self.places for name in place)

    @property
    def is_counted(self) -> bool:
        """Whether its members differ in numbers rather than in a name."""
        return all(isinstance(value, Value) for value in self.members[0].values)

    @property
    def title(self) -> str:
        """The pattern as written in the titles: ``Attack Matrix - Armor Class #``."""
        titles = [member.label.split() for member in self.members]
        sign = "#" if self.is_counted else "*"
        columns_stand = self.is_counted or self.of_texts
        several = len(self.members[0].values) > 1 and columns_stand
        if several and titles[0] and len({len(words) for words in titles}) == 1:
            columns = zip(*titles, strict=True)
            return " ".join(c[0] if len(set(c)) == 1 else sign for c in columns)
        head = _shared(titles)
        tail = _shared(words[len(head) :][::-1] for words in titles)
        return " ".join((*head, sign, *tail[::-1])) if head or tail else self.pattern


def find_families(
    chunks: Iterable[Chunk], vectors_of: VectorsOf | None = None
) -> tuple[Family, ...]:
    """Find families among `chunks` (whole), those by titles first and larger ones before smaller.
    With `vectors_of`, which returns the vectors of chunks by id, also find those that are only
    close in meaning."""
    families: list[Family] = []
    left = _labels(tuple(chunks))
    for find in (_by_numbers, _by_crossing_names, _by_names, _by_texts, _by_vectors(vectors_of)):
        families += find(left)
        taken = {member.chunk.id for family in families for member in family.members}
        left = [each for each in left if each[0].id not in taken]
    return tuple(sorted(families, key=lambda f: (f.of_texts, -len(f.members), f.pattern)))


def _by_numbers(labels: Sequence[Titled]) -> list[Family]:
    patterns: dict[tuple[str, ...], list[Titled]] = defaultdict(list)
    for chunk, label in labels:
        patterns[mask(label)].append((chunk, label))
    families = []
    for masked, alike in patterns.items():
        if "#" in masked and len(alike) >= FEWEST:
            members = tuple(_members(alike))
            if len(members) >= FEWEST and _resemble(members):
                families.append(Family(" ".join(masked), members))
    kinds = [_kind(family) for family in families]
    places = zip(families, find_places(kinds), strict=True)
    return [replace(family, places=found) for family, found in places]


def _by_crossing_names(labels: Sequence[Titled]) -> Iterator[Family]:
    for pattern, crossings in find_crossed([label for _, label in labels], FEWEST):
        members = tuple(Member(*labels[at], names) for at, names in crossings)
        if _resemble(members):
            yield Family(pattern, members)


def _by_names(labels: Sequence[Titled]) -> Iterator[Family]:
    for pattern, siblings in find_named([label for _, label in labels], FEWEST):
        members = tuple(Member(*labels[at], (name,)) for at, name in siblings)
        if _resemble(members):
            yield Family(" ".join(pattern), members, _phrase(pattern))


def _by_texts(labels: Sequence[Titled]) -> Iterator[Family]:
    return _told(labels, find_near([chunk.text for chunk, _ in labels], FEWEST))


def _by_vectors(vectors_of: VectorsOf | None) -> Callable[[Sequence[Titled]], Iterable[Family]]:
    if vectors_of is None:
        return lambda _: ()
    return lambda labels: _told(
        labels, find_close([chunk for chunk, _ in labels], vectors_of, FEWEST)
    )


def _told(
    labels: Sequence[Titled], groups: Iterable[tuple[str, Sequence[Near]]]
) -> Iterator[Family]:
    for pattern, group in groups:
        members = tuple(Member(labels[each.at][0], each.label, each.values) for each in group)
        yield Family(pattern, members, of_texts=True)


def _labels(chunks: Sequence[Chunk]) -> list[Titled]:
    """Each chunk with its title, plus the beginning of its text if the title is missing or not
    unique."""
    titles = Counter(chunk.title for chunk in chunks)
    return [
        (c, c.title if c.title and titles[c.title] == 1 else _joined(c.title, _begin(c.text)))
        for c in chunks
    ]


def _joined(title: str, begin: str) -> str:
    return f"{title} - {begin}" if title else begin


def _begin(text: str) -> str:
    """The first line of `text`, cut to the length of a long title."""
    line = next((line for line in text[:MOST_LABEL].splitlines() if line.strip()), "")
    return " ".join(line.split()[:MOST_TOKENS])


def _members(alike: Sequence[Titled]) -> Iterator[Member]:
    """The chunks of one pattern that differ in few numbers, each described by words."""
    every = [parts(label) for _, label in alike]
    places = [at for at, part in enumerate(every[0]) if isinstance(part, Number)]
    differ = [at for at in places if len({row[at] for row in every}) > 1]
    if not 1 <= len(differ) <= MOST_VALUES:
        return
    counts = Counter(tuple(row[at] for at in differ) for row in every)
    units = _units(every[0], differ, [chunk.text for chunk, _ in alike])
    for (chunk, label), row in zip(alike, every, strict=True):
        found = tuple(filter(None, (value_at(row, at, units=units) for at in differ)))
        if len(found) == len(differ) and counts[tuple(row[at] for at in differ)] == 1:
            yield Member(chunk, label, found)


def _units(row: Sequence[str | Number], differ: Sequence[int], texts: Sequence[str]) -> set[str]:
    """The words after a number that the texts also write there ("10 kg"), if more texts write them
    than write the word before the number."""
    every = [normalise(text) for text in texts]

    def written(pattern: str) -> int:
        return sum(re.search(pattern, text) is not None for text in every)

    found = set()
    for at in differ:
        before, after = (row[place] if 0 <= place < len(row) else "" for place in (at - 1, at + 1))
        if not isinstance(before, str) or not isinstance(after, str) or not after.isalpha():
            continue
        behind = written(rf"\d ?-?{re.escape(after)}\b")
        if behind >= len(every) / 2 and behind > written(rf"\b{re.escape(before)} (?:of )?-?\d"):
            found.add(after)
    return found


def _phrase(pattern: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The distinctive part of a pattern of words alone, in which no sign separates the name."""
    words = [token for token in pattern if token != "*"]
    return (tuple(telling(words)),) if all(word[0].isalpha() for word in words) else ()


def _shared(rows: Iterable[Sequence[str]]) -> list[str]:
    """The common beginning of all rows."""
    columns = zip(*rows, strict=False)
    return [column[0] for column in takewhile(lambda column: len(set(column)) == 1, columns)]


def _resemble(members: Iterable[Member]) -> bool:
    """Whether on average half of a text's words, without numbers, occur in at least half of the
    texts. Requiring all texts would let one odd text break up a large family."""
    bags = [{t for t in tokens(each.chunk.text) if t[0].isalpha()} for each in members]
    counts = Counter(word for bag in bags for word in bag)
    common = {word for word, n in counts.items() if n >= len(bags) / 2}
    return sum(len(bag & common) for bag in bags) >= ALIKE * sum(map(len, bags))


def _kind(family: Family) -> Kind:
    """The family's pattern, and what it counts; nothing if a number needs no words."""
    every = {value for member in family.members for value in member.values}
    alone = {v for v in every if isinstance(v, Value) and stands_alone(str(v.number))}
    return Kind(family.pattern, {() if value in alone else value.words for value in every})
