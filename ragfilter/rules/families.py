"""Families of chunks that their titles tell apart. Pure.

docs/design.md#families describes the two kinds. Titles may count the same thing ("Opponent Armor
Class 6", "Opponent Armor Class 7") above texts that are alike. Or texts may state the same two
kinds of values ("Armor Class 17", "Hit Points 135") below short titles ("Aboleth", "Red Dragon").

Chunks with the same title belong together.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ragfilter.model import Chunk
from ragfilter.rules.values import (
    Name,
    Value,
    is_short,
    parts,
    telling,
    tokens,
    value_at,
    values,
)

FEWEST = 3
"""Minimum number of titles in a family."""
ALIKE = 0.5
"""The fraction of a text's words that its family shares, if titles are told apart by numbers."""
SHARED = 0.9
"""What this fraction of a family's titles has in common tells none of them apart."""
MOST_MARKS = 4
"""A title with more distinctive words is a sentence, and questions do not repeat it."""
LONGEST_TITLE = 24
"""A title with more tokens is a sentence, which differs from others in more than a name."""
KINDS = 2
"""Number of kinds of values that the texts of a family share."""
CONJUNCTIONS = frozenset(("and", "or", "&", "/"))
JOINED = CONJUNCTIONS | {","}
"""Tokens between the names of a list: clerics, druids and monks."""


Mark = Value | Name
"""A number with what it counts, or a distinctive word. A name has several words if the title lists
them: clerics, druids and monks."""


@dataclass(frozen=True, slots=True)
class Member:
    """A chunk of a family, with the marks that tell its title from the others."""

    chunk: Chunk
    marks: tuple[Mark, ...]

    @property
    def named(self) -> str:
        return " ".join(mark.named for mark in self.marks)


@dataclass(frozen=True, slots=True)
class Family:
    """The members of a family. `pattern` says what their titles or texts count: ``armor class #``.
    It is unique."""

    pattern: str
    members: tuple[Member, ...]
    is_counted: bool
    """Whether numbers in the titles tell the members apart."""


def find_families(chunks: Iterable[Chunk]) -> tuple[Family, ...]:
    """Find families among `chunks` (whole), those with numbers in their titles first and larger
    ones before smaller."""
    entries: dict[str, list[Chunk]] = defaultdict(list)
    for chunk in chunks:
        entries[chunk.title].append(chunk)
    entries.pop("", None)
    counted = [*_by_title(entries)]
    taken = {member.chunk.title for family in counted for member in family.members}
    others = {title: some for title, some in entries.items() if title not in taken}
    families = [*counted, *_by_text(others)]
    return tuple(sorted(families, key=lambda f: (not f.is_counted, -len(f.members), f.pattern)))


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


def _by_title(entries: Mapping[str, Sequence[Chunk]]) -> Iterator[Family]:
    groups: dict[tuple[tuple[str, ...], ...], list[str]] = defaultdict(list)
    for title in entries:
        if kinds := tuple(value.words for value in values(title)):
            groups[kinds].append(title)
    for kinds, titles in groups.items():
        marks = _marks(titles)
        counted = [t for t in titles if any(isinstance(mark, Value) for mark in marks[t])]
        if len(counted) >= FEWEST and _resemble([entries[title][0].text for title in counted]):
            pattern = ", ".join(" ".join((*words, "#")) for words in kinds)
            yield Family(pattern, tuple(_members(counted, marks, entries)), is_counted=True)


def _by_text(entries: Mapping[str, Sequence[Chunk]]) -> Iterator[Family]:
    """Group titles by the two kinds of values in their texts that most others state too."""
    stated = {
        title: {v.words for chunk in some for v in values(chunk.text) if v.words}
        for title, some in entries.items()
    }
    held = Counter(kind for kinds in stated.values() for kind in kinds)
    groups: dict[tuple[tuple[str, ...], ...], list[str]] = defaultdict(list)
    for title, own in stated.items():
        usual = sorted((k for k in own if held[k] >= FEWEST), key=lambda k: (-held[k], k))
        if len(usual) >= KINDS:
            groups[tuple(usual[:KINDS])].append(title)
    for kinds, titles in groups.items():
        marks = {t: some for t, some in _marks(titles).items() if len(some) <= MOST_MARKS}
        named = [title for title in titles if marks.get(title)]
        if len(named) >= FEWEST:
            pattern = ", ".join(" ".join((*words, "#")) for words in kinds)
            yield Family(pattern, tuple(_members(named, marks, entries)), is_counted=False)


def _members(
    titles: Iterable[str],
    marks: Mapping[str, tuple[Mark, ...]],
    entries: Mapping[str, Sequence[Chunk]],
) -> Iterator[Member]:
    for title in titles:
        yield from (Member(chunk, marks[title]) for chunk in entries[title])


def _marks(titles: Sequence[str]) -> dict[str, tuple[Mark, ...]]:
    """What each title has that nearly all others have not."""
    every = {title: tuple(_read(title)) for title in titles}
    counts = Counter(mark for marks in every.values() for mark in set(marks))
    most = SHARED * len(titles)
    return {
        title: tuple(dict.fromkeys(mark for mark in marks if counts[mark] < most))
        for title, marks in every.items()
    }


def _read(title: str) -> Iterator[Mark]:
    """The values and names of a title, in order."""
    every = parts(title)
    names: list[str] = []
    joined = False
    for at, part in enumerate(every):
        if isinstance(part, str) and part in JOINED:
            joined = part in CONJUNCTIONS or not CONJUNCTIONS.isdisjoint(every[at:])
            continue
        name = part if isinstance(part, str) and (telling([part]) or is_short(part)) else ""
        if names and not (name and joined):
            yield Name(tuple(names))
            names = []
        if name:
            names.append(name)
        elif (value := value_at(every, at)) is not None:
            yield value
        joined = False
    if names:
        yield Name(tuple(names))


def _patterns(title: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Name]]:
    if len(title) > LONGEST_TITLE:
        return
    for start in range(len(title)):
        for end in (start + 1, start + 2):
            name, rest = title[start:end], (*title[:start], *title[end:])
            if end <= len(title) and _is_name(name) and telling(rest):
                yield (*title[:start], "*", *title[end:]), Name(name)


def _is_name(words: Sequence[str]) -> bool:
    return len(telling(words)) == len(words) or (len(words) == 1 and is_short(words[0]))


def _resemble(texts: Iterable[str]) -> bool:
    """Whether on average half of a text's words, without numbers, occur in at least half of the
    texts. Requiring all texts would let one odd text break up a large family."""
    bags = [{t for t in tokens(text) if t[0].isalpha()} for text in texts]
    counts = Counter(word for bag in bags for word in bag)
    common = {word for word, n in counts.items() if n >= len(bags) / 2}
    return sum(len(bag & common) for bag in bags) >= ALIKE * sum(map(len, bags))
