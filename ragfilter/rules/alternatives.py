"""Find alternatives that were spread over several groups, so that every one must be met.

Source: docs/design.md#contradictions. Filtering's own attack matrix lists cleric, druid and monk as
three groups, so no query about a cleric alone can meet it; they belong in one group.

Three signs count as evidence:

spelled  two groups or more, or terms of `contain_all_of`, hold spellings of one term: "armor class
         6" and "ac 6", "cleric" and "clerics"
listed   the chunk's title lists things ("clerics, druids and monks", "magic-users/illusionists"),
         and two groups or more, or terms of `contain_all_of`, name different things of that list;
         a comma between two things may set one apart instead ("goblins, in winter"), and what ends
         in a number is none of a list ("goblins and armor class 3")
single   three groups or more, or terms of `contain_all_of`, each name one thing by a single word
         and its plural, without digits, and the title does not have all of them in one phrase
         ("Adult Black Dragon"), which is then what a question must name

The second sign needs three groups, because two plain words, such as a climate and a terrain, are
more often meant together. Three may be too, so it is not sure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ragfilter.rules.rule import Rule
from ragfilter.rules.values import acronym, parts, singular_of, values
from ragfilter.text.normalise import normalise

Words = tuple[str, ...]

_CLAUSES = re.compile(r" - |[:;()\[\]]|\. ")
_COMMAS = re.compile(r"\s*,\s*and\s+|\s*,\s*or\s+|\s*[,/&+]\s*|\s+and\s+|\s+or\s+")
_JOINED = re.compile(r"[/&+]|\b(?:and|or)\b")
_OF = re.compile(r" of (?=-?\d)")
_NUMBER = re.compile(r"\d\W*$")
_WORDS = re.compile(r"[^\W_]+(?:[-'][^\W_]+)*")


@dataclass(frozen=True, slots=True)
class Spread:
    """Alternatives that a query must all name: the first term of each, the place of the first one,
    and the rule with them in one group. Not `sure` if only their form suggests it."""

    names: tuple[str, ...]
    place: str
    merged: Rule
    sure: bool


def spread(rule: Rule, title: str = "") -> Spread | None:
    """Find what looks like alternatives that every query must name; None if there are none."""
    groups = rule.contain_one_of
    places, sure = _places(groups, title)
    if places:
        names = tuple(groups[i][0] for i in places)
        merged = rule.with_parts(contain_one_of=_merge(groups, places))
        return Spread(names, f"contain_one_of[{places[0]}]", merged, sure=sure)
    terms = rule.contain_all_of
    places, sure = _places([(term,) for term in terms], title)
    if not places:
        return None
    names = tuple(terms[i] for i in places)
    left = tuple(term for i, term in enumerate(terms) if i not in places)
    merged = rule.with_parts(contain_one_of=(*groups, names), contain_all_of=left)
    return Spread(names, f"contain_all_of[{places[0]}]", merged, sure=sure)


def _places(groups: Sequence[tuple[str, ...]], title: str) -> tuple[tuple[int, ...], bool]:
    """Which groups are alternatives, and whether that is sure."""
    for first, group in enumerate(groups):
        alike = [i for i, other in enumerate(groups) if i > first and _spelled(group, other)]
        if alike:
            every = {_meaning(term) for i in (first, *alike) for term in groups[i]}
            return (first, *alike), all(_same(a, b) for a in every for b in every)
    listed = _listed(groups, title)
    return (listed, True) if listed else (_single(groups, title), False)


def _spelled(group: Sequence[str], other: Sequence[str]) -> bool:
    """Whether a term of one group is another spelling of a term of the other."""
    return {*map(normalise, group)}.isdisjoint(map(normalise, other)) and any(
        _same(_meaning(a), _meaning(b)) for a in group for b in other
    )


def _meaning(term: str) -> tuple[Words, str]:
    """The words of a term in the singular, and its number, if it is a value like "ac 6"."""
    written = _OF.sub(" ", normalise(term))
    value = next(iter(values(written)), None)
    if value is None or len(parts(written)) != len(value.words) + 1 or value.last is not None:
        return _stems(term), ""
    return tuple(map(singular_of, value.words)), str(value.number)


def _same(one: tuple[Words, str], other: tuple[Words, str]) -> bool:
    (words, number), (others, another) = one, other
    if number != another:
        return False
    return words == others or (
        bool(number) and (words == (acronym(others),) or others == (acronym(words),))
    )


def _merge(groups: Sequence[tuple[str, ...]], places: Sequence[int]) -> tuple[tuple[str, ...], ...]:
    """`groups` with those of `found` merged into one, in place of the first of them."""
    together = tuple(dict.fromkeys(term for i in places for term in groups[i]))
    return tuple(
        together if i == places[0] else group
        for i, group in enumerate(groups)
        if i == places[0] or i not in places
    )


def _listed(groups: Sequence[tuple[str, ...]], title: str) -> tuple[int, ...]:
    for things in _lists(title):
        named = {
            i: {
                place
                for place, thing in enumerate(things)
                if any(_names(_stems(term), thing, place, len(things)) for term in group)
            }
            for i, group in enumerate(groups)
        }
        touched = tuple(i for i, places in named.items() if places)
        if any(named[i].isdisjoint(named[j]) for i in touched for j in touched):
            return touched
    return ()


def _single(groups: Sequence[tuple[str, ...]], title: str) -> tuple[int, ...]:
    plain = tuple(i for i, group in enumerate(groups) if _one_word(group))
    words = {word for i in plain for word in _stems(groups[i][0])}
    return plain if len(words) >= 3 and not any(map(words.issubset, _phrases(title))) else ()


def _phrases(title: str) -> list[Words]:
    """The parts of the title that no sign of a list or clause divides."""
    clauses = _CLAUSES.split(normalise(title))
    return [_stems(thing) for clause in clauses for thing in _COMMAS.split(clause)]


def _one_word(group: Sequence[str]) -> bool:
    stems = {_stems(term) for term in group}
    stem = next(iter(stems))
    return len(stems) == 1 and len(stem) == 1 and not any(char.isdigit() for char in stem[0])


def _lists(title: str) -> list[list[Words]]:
    lists = []
    for clause in _CLAUSES.split(normalise(title)):
        things = [_stems(thing) for thing in _COMMAS.split(clause) if not _NUMBER.search(thing)]
        things = [thing for thing in things if thing]
        if len(things) >= (2 if _JOINED.search(clause) else 3):
            lists.append(things)
    return lists


def _names(term: Words, thing: Words, place: int, count: int) -> bool:
    """Whether `term` is the listed thing. The first thing may have words before it that are not
    part of the list ("attack matrix for clerics, …"), the last one words after it."""
    at_start = thing[: len(term)] == term
    at_end = thing[-len(term) :] == term
    return bool(term) and ((at_end and place < count - 1) or (at_start and place > 0))


def _stems(text: str) -> Words:
    return tuple(singular_of(word) for word in _WORDS.findall(normalise(text)))
