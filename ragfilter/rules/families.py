"""Families of chunks that differ in a few values, and the rules that would tell them apart. Pure.

A family is a set of chunks whose titles have one pattern and differ in a number that words say
something about ("Opponent Armor Class 6"), or else in a name ("Price list - Ropes"), and whose
texts resemble each other. Families that count
the same and whose patterns resemble each other are kin; what stands in the pattern of one and not
of the others are its names ("clerics, druids and monks").

A proposal asks for one of the names, where there is kin, and for the value, in the spellings that
the collection's texts and the questions use. Where titles are phrases of words alone ("Adult Red
Dragon"), the words they share are names too: "red" alone would hold for much else.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile

from ragfilter.model import Chunk
from ragfilter.rules.named import Name, find_named, telling
from ragfilter.rules.rule import Rule, canonical
from ragfilter.rules.values import (
    COMMON,
    Value,
    acronym,
    is_number,
    mask,
    spellings,
    tokens,
    values,
)
from ragfilter.text.normalise import normalise

FEWEST = 3
"""So many chunks of one pattern make a family."""
ALIKE = 0.5
"""The share of a text's words that its family has in common, and of those of kin's patterns."""
NEAR = 0.8
"""From this likeness on (difflib's ratio) another context is a spelling of the same."""
NAME_ALONE = "it asks for a name alone, which questions about other things may hold too"
NO_NAME = "a question about the whole family would drop it"
MOST_TEXTS = 20_000
"""Contexts are looked up in so many texts at most."""

_BEFORE_NUMBER = re.compile(r"([^\W\d_]+(?: [^\W\d_]+)?)(?: of)? -?\d")
_VES = re.compile(r"(?<=[lr])f$|(?<=[eo]a)f$|(?<=thie)f$|(?<=i)fe$")
"""Wolf, dwarf, leaf, thief and knife."""
_PLURALS = (("ves", "f"), ("ies", "y"), ("men", "man"), ("s", ""))


@dataclass(frozen=True, slots=True)
class Member:
    """A chunk of a family and the value in which it differs."""

    chunk: Chunk
    value: Value | Name


@dataclass(frozen=True, slots=True)
class Family:
    """`pattern` is the titles' with ``#`` for the number, or ``*`` for the name, in which they
    differ; `names` is what its kin does not have."""

    pattern: str
    members: tuple[Member, ...]
    names: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The pattern as the titles write it: ``Attack Matrix - Armor Class #``."""
        titles = [member.chunk.title.split() for member in self.members]
        head = _shared(titles)
        tail = _shared(words[len(head) :][::-1] for words in titles)
        sign = "#" if isinstance(self.members[0].value, Value) else "*"
        return " ".join((*head, sign, *tail[::-1])) if head or tail else self.pattern


@dataclass(frozen=True, slots=True)
class Proposal:
    """A rule for one chunk, with the names and value that it asks for. `doubt` is what a person has
    to settle first, empty where nothing."""

    chunk: Chunk
    family: str
    rule: str
    names: tuple[str, ...]
    value: str
    doubt: str = ""


def find_families(chunks: Iterable[Chunk]) -> tuple[Family, ...]:
    """The families among `chunks` (whole), the largest first."""
    chunks = tuple(chunks)
    patterns: dict[tuple[str, ...], list[Chunk]] = defaultdict(list)
    for chunk in chunks:
        masked = mask(chunk.title)
        if "#" in masked:
            patterns[masked].append(chunk)
    found = []
    for masked, alike in patterns.items():
        members = tuple(_members(alike))
        if len(members) >= FEWEST and _resemble(member.chunk.text for member in members):
            found.append((masked, members))
    families = [Family(" ".join(masked), members) for masked, members in found]
    named = [
        Family(family.pattern, family.members, _names(family, families)) for family in families
    ]
    counted = {member.chunk.id for family in named for member in family.members}
    for pattern, siblings in find_named([c for c in chunks if c.id not in counted], FEWEST):
        if _resemble(chunk.text for chunk, _ in siblings):
            members = tuple(Member(chunk, name) for chunk, name in siblings)
            named.append(Family(" ".join(pattern), members, _phrase(pattern)))
    return tuple(sorted(named, key=lambda family: (-len(family.members), family.pattern)))


def propose(
    families: Sequence[Family],
    texts: Iterable[str],
    synonyms: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Proposal, ...]:
    """A rule for every member. `texts` are the collection's and the questions asked: they say how
    a value is called. `synonyms` are further names, by pattern."""
    every = (member.value for family in families for member in family.members)
    counted = {value.words for value in every if isinstance(value, Value)}
    contexts = _contexts(counted, texts)
    made = []
    for family in families:
        names = tuple(
            dict.fromkeys(
                form
                for name in (*family.names, *(synonyms or {}).get(family.pattern, ()))
                for form in forms(name)
            )
        )
        crossed = _crossed(family)
        for member in family.members:
            asked: tuple[tuple[str, ...], ...]
            if isinstance(member.value, Value):
                asked, doubt = (spellings(member.value, contexts[member.value.words]),), ""
            else:
                parts = member.value.words if crossed else (member.value.named,)
                # What stands before a noun has no plural of its own: red dragons.
                written = _hyphens if names and not family.pattern.endswith("*") else forms
                asked, doubt = tuple(map(written, parts)), NO_NAME if names else NAME_ALONE
            made.append(
                Proposal(
                    member.chunk,
                    family.pattern,
                    canonical(Rule(contain_one_of=(names, *asked) if names else asked)),
                    names,
                    member.value.named,
                    doubt,
                )
            )
    return tuple(made)


def forms(name: str) -> tuple[str, ...]:
    """A name in singular and plural, with and without a hyphen: clerics, cleric."""
    single = name
    for plural, singular in _PLURALS:
        if name.endswith(plural) and len(name) - len(plural) >= 2:
            single = name[: -len(plural)] + singular
            break
    return _hyphens(single, name if name != single else plural_of(name))


def _hyphens(*names: str) -> tuple[str, ...]:
    """The names, and each without its hyphens."""
    return tuple(dict.fromkeys((*names, *(name.replace("-", " ") for name in names))))


def plural_of(name: str) -> str:
    """The regular plural of a name."""
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return f"{name[:-1]}ies"
    if name.endswith("man"):
        return f"{name[:-3]}men"
    if _VES.search(name):
        return _VES.sub("ves", name)
    return f"{name}es" if name.endswith(("s", "x", "ch", "sh")) else f"{name}s"


def _members(alike: Sequence[Chunk]) -> Iterator[Member]:
    """Those of one pattern that differ in exactly one number that words say something about."""
    named = [values(chunk.title) for chunk in alike]
    every = [[t for t in tokens(chunk.title) if is_number(t)] for chunk in alike]
    differ = [i for i in range(len(every[0])) if len({row[i] for row in every}) > 1]
    if len(differ) != 1:
        return
    counts = Counter(row[differ[0]] for row in every)
    for chunk, found, row in zip(alike, named, every, strict=True):
        number = row[differ[0]]
        fitting = [value for value in found if str(value.number) == number]
        if len(fitting) == 1 and counts[number] == 1:
            yield Member(chunk, fitting[0])


def _phrase(pattern: Sequence[str]) -> tuple[str, ...]:
    """What tells something in a pattern of words alone: no sign sets the name apart from them."""
    words = [token for token in pattern if token != "*"]
    return tuple(telling(words)) if all(word[0].isalpha() for word in words) else ()


def _crossed(family: Family) -> bool:
    """Whether the names are of two words that each stand in several of them: adult black, adult
    red, young red. A question may have them in any order, and other words between them."""
    names = [member.value.words for member in family.members]
    columns = list(zip(*names, strict=False))
    return all(len(words) == len(columns) == 2 for words in names) and all(
        len(set(column)) < len(column) for column in columns
    )


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


def _names(family: Family, families: Sequence[Family]) -> tuple[str, ...]:
    own = _words(family.pattern)
    words = {member.value.words for member in family.members}
    kin = [
        others
        for other in families
        if other is not family
        and words & {member.value.words for member in other.members}
        and len(own & (others := _words(other.pattern))) >= ALIKE * min(len(own), len(others))
    ]
    if not kin:
        return ()
    shared = own.intersection(*kin)
    return tuple(word for word in dict.fromkeys(family.pattern.split()) if word in own - shared)


def _contexts(
    counted: Iterable[tuple[str, ...]], texts: Iterable[str]
) -> dict[tuple[str, ...], tuple[str, ...]]:
    """How the texts call what is counted: as the titles do, by its acronym, or in another
    spelling."""
    seen: Counter[str] = Counter()
    for _, text in zip(range(MOST_TEXTS), texts, strict=False):
        for found in _BEFORE_NUMBER.findall(normalise(text)):
            seen[found] += 1
            seen[found.split()[-1]] += " " in found
    made = {}
    for words in counted:
        full, short = " ".join(words), acronym(words)
        near = [
            other
            for other in seen
            if other != full
            and len(other.split()) == len(words)
            and SequenceMatcher(None, full, other, autojunk=False).ratio() >= NEAR
            and any(a == b for a, b in zip(words, other.split(), strict=True))
        ]
        usual = (short,) if short and seen[short] else ()
        made[words] = (full, *(sorted(near) if len(words) > 1 else ()), *usual)
    return made
