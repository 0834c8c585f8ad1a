"""Families of chunks that differ in a few values, and the rules that would tell them apart. Pure.

docs/design.md#families describes them. The titles of a family have one pattern, and its texts are
alike. Titles differ in up to three numbers that words say something about ("Opponent Armor Class
6", "Levels 4-6"), in two names that cross ("Ash drake, adult"), or in one name ("Price list -
Ropes"). If a title is missing or shared by several chunks, the beginning of the text is added.

Families that count the same thing and have similar patterns are kin. What is in the pattern of one
and not of all others are its names ("clerics, druids and monks"), place by place if they cross in
the others ("Price list 2022 EU - Boots"). Texts that are nearly the same may form a family whatever
their titles (see `ragfilter.rules.near`): they may differ in names and numbers together.

A proposal asks for one name from each place, if there is kin, and for the value, in the spellings
that the collection's texts and the questions use. If titles are phrases of words alone ("Adult Red
Dragon"), the words they share are names too, since "red" alone would hold for many other questions.
In a family found by its texts, a question meets the rule by any value that no sibling has, if one
of them tells a chunk from all its siblings.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, takewhile
from typing import NamedTuple

from ragfilter.model import Chunk
from ragfilter.rules.contexts import find_contexts, find_held, held_forms
from ragfilter.rules.named import MOST_TOKENS, Name, find_crossed, find_named, is_short, telling
from ragfilter.rules.near import find_near
from ragfilter.rules.plurals import forms, without_hyphens
from ragfilter.rules.rule import Rule, canonical
from ragfilter.rules.values import (
    COMMON,
    Number,
    Value,
    mask,
    parts,
    spellings,
    stands_alone,
    tokens,
    value_at,
)
from ragfilter.text.normalise import normalise

FEWEST = 3
"""So many chunks of one pattern make a family."""
ALIKE = 0.5
"""The share of a text's words that its family has in common, and of those of kin's patterns."""
NAME_ALONE = "it asks for a name alone, which questions about other things may hold too"
NO_NAME = "a question about the whole family would drop it"
SAME = "its rule is proposed for other chunks too, so it cannot tell them apart"
MOST_VALUES = 3
"""In more numbers no family differs."""
CONJUNCTIONS = frozenset(("and", "or"))
JOINED = CONJUNCTIONS | {",", "/", "&"}
"""The separators between the names of one place: clerics, druids and monks."""
MOST_LABEL = 1_000
"""Letters of a text in which its first line is looked for."""


@dataclass(frozen=True, slots=True)
class Member:
    """A chunk of a family and the values in which it differs. `label` is its title, and what its
    text begins with where the title is not its own; its values and the words around them, where
    the texts told."""

    chunk: Chunk
    label: str
    values: tuple[Value | Name, ...]

    @property
    def named(self) -> str:
        return ", ".join(value.named for value in self.values)


@dataclass(frozen=True, slots=True)
class Family:
    """`pattern` is the labels' (or the texts') with ``#`` for a number, or ``*`` for the name, in
    which they differ; `places` is what not all of its kin has: names that tell the same stand in
    one place."""

    pattern: str
    members: tuple[Member, ...]
    places: tuple[tuple[str, ...], ...] = ()
    of_texts: bool = False
    """Whether the texts alone tell that it is one."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for place in self.places for name in place)

    @property
    def is_counted(self) -> bool:
        """Whether its members differ in numbers, not in a name."""
        return all(isinstance(value, Value) for value in self.members[0].values)

    @property
    def title(self) -> str:
        """The pattern as the titles write it: ``Attack Matrix - Armor Class #``."""
        titles = [member.label.split() for member in self.members]
        sign = "#" if self.is_counted else "*"
        columns_stand = self.is_counted or self.of_texts
        several = len(self.members[0].values) > 1 and columns_stand
        if several and len({len(words) for words in titles}) == 1:
            columns = zip(*titles, strict=True)
            return " ".join(c[0] if len(set(c)) == 1 else sign for c in columns)
        head = _shared(titles)
        tail = _shared(words[len(head) :][::-1] for words in titles)
        return " ".join((*head, sign, *tail[::-1])) if head or tail else self.pattern


@dataclass(frozen=True, slots=True)
class Proposal:
    """A rule for one chunk, with the names and value that it asks for. `doubt` is what a person has
    to settle first, empty if nothing."""

    chunk: Chunk
    family: str
    rule: str
    names: tuple[str, ...]
    value: str
    doubt: str = ""


def find_families(chunks: Iterable[Chunk]) -> tuple[Family, ...]:
    """The families among `chunks` (whole), the largest first."""
    labels = _labels(tuple(chunks))
    patterns: dict[tuple[str, ...], list[tuple[Chunk, str]]] = defaultdict(list)
    for chunk, label in labels:
        masked = mask(label)
        if "#" in masked:
            patterns[masked].append((chunk, label))
    found = []
    for masked, alike in patterns.items():
        members = tuple(_members(alike)) if len(alike) >= FEWEST else ()
        if len(members) >= FEWEST and _resemble(member.chunk.text for member in members):
            found.append((masked, members))
    families = [Family(" ".join(masked), members) for masked, members in found]
    kinds = [_kind(family) for family in families]
    named = [
        Family(family.pattern, family.members, _places(kind, kinds))
        for family, kind in zip(families, kinds, strict=True)
    ]
    counted = {member.chunk.id for family in named for member in family.members}
    uncounted = [each for each in labels if each[0].id not in counted]
    for crossed, crossings in find_crossed([label for _, label in uncounted], FEWEST):
        members = tuple(Member(*uncounted[at], names) for at, names in crossings)
        if _resemble(member.chunk.text for member in members):
            named.append(Family(crossed, members))
            counted.update(member.chunk.id for member in members)
    uncounted = [each for each in uncounted if each[0].id not in counted]
    for pattern, siblings in find_named([label for _, label in uncounted], FEWEST):
        members = tuple(Member(*uncounted[at], (name,)) for at, name in siblings)
        if _resemble(member.chunk.text for member in members):
            named.append(Family(" ".join(pattern), members, _phrase(pattern)))
    known = {member.chunk.id for family in named for member in family.members}
    rest = [chunk for chunk, _ in labels if chunk.id not in known]
    for text, near in find_near([chunk.text for chunk in rest], FEWEST):
        members = tuple(Member(rest[each.at], each.label, each.values) for each in near)
        named.append(Family(text, members, of_texts=True))
    return tuple(sorted(named, key=lambda family: (-len(family.members), family.pattern)))


def propose(
    families: Sequence[Family],
    texts: Collection[str],
    synonyms: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Proposal, ...]:
    """A rule for every member. `texts` are the collection's and the questions asked: they say how
    a value is called, and which names have a plural. `synonyms` are further names for the first
    place of a family, by pattern."""
    every = [v for family in families for member in family.members for v in member.values]
    counted = {value.words for value in every if isinstance(value, Value)}
    contexts, placed = find_contexts(counted, texts)
    differing = {w for v in every if isinstance(v, Name) for w in (v.named, *v.words)}
    held = find_held({form for name in differing for form in forms(name)}, texts)
    made = []
    for family in families:
        first, *others = family.places or ((),)
        more = (synonyms or {}).get(family.pattern, ())
        places = [_called(place) for place in ((*first, *more), *others)] if first else []
        names = tuple(form for place in places for form in place)
        crossed = _crossed(family)
        any_tells = family.of_texts and _any_tells(family)
        held_by = Counter(value for member in family.members for value in {*member.values})
        for member in family.members:
            asked: list[tuple[str, ...]] = []
            own = [value for value in member.values if not any_tells or held_by[value] == 1]
            for value in own or member.values:
                if isinstance(value, Value):
                    called = contexts[value.words]
                    asked.append(spellings(value, called, ordered=value.words in placed))
                else:
                    # A word before a noun has no plural of its own: red dragons.
                    noun = not names or family.pattern.endswith("*")
                    for name in value.words if crossed else (value.named,):
                        asked.append(
                            held_forms(name, held, proper=_is_proper(name, member.chunk))
                            if noun
                            else without_hyphens(name)
                        )
            if any_tells:
                asked = [tuple(dict.fromkeys(term for group in asked for term in group))]
            if family.is_counted or len(member.values) > 1:
                doubt = NO_NAME if family.of_texts else ""
            else:
                doubt = NO_NAME if names else NAME_ALONE
            made.append(
                Proposal(
                    member.chunk,
                    family.pattern,
                    canonical(Rule(contain_one_of=(*places, *asked))),
                    names,
                    member.named,
                    doubt,
                )
            )
    copies = Counter(each.rule for each in made)
    return tuple(replace(each, doubt=SAME) if copies[each.rule] > 1 else each for each in made)


def _called(names: Iterable[str]) -> tuple[str, ...]:
    """Names in singular and plural; two letters have none."""
    every = (form for name in names for form in (forms(name) if len(name) > 2 else (name,)))
    return tuple(dict.fromkeys(every))


def _labels(chunks: Sequence[Chunk]) -> list[tuple[Chunk, str]]:
    """Each chunk with its title; with what its text begins with too, where the title is missing or
    not its own."""
    titles = Counter(chunk.title for chunk in chunks)
    return [
        (c, c.title if c.title and titles[c.title] == 1 else _joined(c.title, _begin(c.text)))
        for c in chunks
    ]


def _joined(title: str, begin: str) -> str:
    return f"{title} - {begin}" if title else begin


def _begin(text: str) -> str:
    """The first line of `text`, not more of it than a long title has."""
    line = next((line for line in text[:MOST_LABEL].splitlines() if line.strip()), "")
    return " ".join(line.split()[:MOST_TOKENS])


def _members(alike: Sequence[tuple[Chunk, str]]) -> Iterator[Member]:
    """Those of one pattern that differ in few numbers, and words say something about each."""
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
    """The words behind a number that the texts too write there, as they write "10 kg", and more of
    them than write the word before the number there."""
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
    """What tells something in a pattern of words alone: no sign sets the name apart from them."""
    words = [token for token in pattern if token != "*"]
    return (tuple(telling(words)),) if all(word[0].isalpha() for word in words) else ()


def _is_proper(name: str, chunk: Chunk) -> bool:
    """Whether a chunk's text writes a name with a capital within its sentences, where it does not
    repeat its title: Texas is no plural."""
    text = chunk.text.replace(chunk.title, "") if chunk.title else chunk.text
    found = re.findall(rf"(?<=[a-z,] ){re.escape(name)}\b", text, re.IGNORECASE)
    return bool(found) and not any(map(str.islower, found))


def _crossed(family: Family) -> bool:
    """Whether the names are of two words that each stand in several of them: adult black, adult
    red, young red. A question may have them in any order, and other words between them."""
    names = [member.values[0].words for member in family.members]
    columns = list(zip(*names, strict=False))
    alone = family.of_texts or len(family.members[0].values) == 1
    return (
        alone
        and all(len(words) == len(columns) == 2 for words in names)
        and all(len(set(column)) < len(column) for column in columns)
    )


def _any_tells(family: Family) -> bool:
    """Whether one place alone tells each member from all others. What else a text alone states is
    then what one asks for: the leave that employees in Germany have."""
    columns = zip(*(member.values for member in family.members), strict=True)
    return any(len(set(column)) == len(column) for column in columns)


def _shared(rows: Iterable[Sequence[str]]) -> list[str]:
    """What all rows begin with."""
    columns = zip(*rows, strict=False)
    return [column[0] for column in takewhile(lambda column: len(set(column)) == 1, columns)]


def _resemble(texts: Iterable[str]) -> bool:
    """Whether half of a text's words, numbers apart, stand in at least half of the texts, on
    average. Not in all of them: one odd text would break up a large family."""
    bags = [{t for t in tokens(text) if t[0].isalpha()} for text in texts]
    counts = Counter(word for bag in bags for word in bag)
    common = {word for word, n in counts.items() if n >= len(bags) / 2}
    return sum(len(bag & common) for bag in bags) >= ALIKE * sum(map(len, bags))


def _words(pattern: str) -> set[str]:
    """The words of a pattern that tell something: no signs, no enumeration, no common ones."""
    return {word for word in pattern.split() if len(word) > 2 and word not in COMMON}


def _counted(family: Family) -> set[tuple[str, ...]]:
    """What it counts; nothing, where a number needs no words, whatever stands before it."""
    every = {value for member in family.members for value in member.values}
    return {() if isinstance(v, Value) and stands_alone(str(v.number)) else v.words for v in every}


class _Kind(NamedTuple):
    """A family's pattern, word by word, which of these tell something, and what it counts."""

    pattern: Sequence[str]
    words: Collection[str]
    telling: set[str]
    counted: set[tuple[str, ...]]


def _kind(family: Family) -> _Kind:
    pattern = family.pattern.split()
    return _Kind(pattern, frozenset(pattern), _words(family.pattern), _counted(family))


def _places(own: _Kind, kinds: Sequence[_Kind]) -> tuple[tuple[str, ...], ...]:
    """Its names, place by place. Names that the same kin has mean the same, in any place."""
    kin = [
        other
        for other in kinds
        if other is not own
        and own.counted & other.counted
        and len(own.telling & other.telling) >= ALIKE * min(len(own.telling), len(other.telling))
    ]
    if not kin:
        return ()
    names = own.telling.difference(own.telling.intersection(*(other.words for other in kin)))
    names.update(word for word in own.pattern if is_short(word) and _is_alone(word, own, kin))
    held = {w: frozenset(at for at, other in enumerate(kin) if w in other.words) for w in names}
    told: dict[frozenset[int], list[str]] = defaultdict(list)
    for place in _runs(own.pattern, held):
        told[frozenset().union(*(held[word] for word in place))] += place
    return tuple(tuple(dict.fromkeys(place)) for place in told.values())


def _is_alone(word: str, own: _Kind, kin: Sequence[_Kind]) -> bool:
    """Whether the pattern of one of the kin has something else in its place, and there alone."""
    at = own.pattern.index(word)
    around = [*own.pattern[:at], *own.pattern[at + 1 :]]
    return any(
        word not in other.words and [*other.pattern[:at], *other.pattern[at + 1 :]] == around
        for other in kin
    )


def _runs(pattern: Sequence[str], held: Mapping[str, frozenset[int]]) -> Iterator[list[str]]:
    """Names that stand together in a pattern. Those that cross in the kin that `held` names them
    by, each without the other in some, do not, unless a list names both."""
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
