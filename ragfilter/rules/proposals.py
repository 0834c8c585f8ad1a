"""Proposes rules that tell the members of families apart. Pure.

A proposal asks for one name from each place, if there is kin, and for the value, in the spellings
that the collection's texts and the questions use. If titles are phrases of words alone ("Adult Red
Dragon"), the words they share are names too, since "red" alone would hold for many other questions.
In a family found by texts or vectors, a question meets the rule by any value that no sibling has,
if every member has such a value.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ragfilter.model import Chunk
from ragfilter.rules.contexts import find_contexts, find_held, held_forms
from ragfilter.rules.families import Family, Member
from ragfilter.rules.match import prepared
from ragfilter.rules.named import Name
from ragfilter.rules.plurals import forms, without_hyphens
from ragfilter.rules.rule import Rule
from ragfilter.rules.values import Value, spellings

NAME_ALONE = "it requires only a name, which may also occur in unrelated questions"
NO_NAME = "a question about the whole family would drop it"
SAME = "its rule is proposed for other chunks too, so it cannot tell them apart"

Group = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A rule for one chunk, with the names and value that it asks for. `doubt` is what a person
    should settle first, empty if nothing."""

    chunk: Chunk
    family: str
    rule: str
    names: tuple[str, ...]
    value: str
    doubt: str = ""


def propose(
    families: Sequence[Family],
    texts: Collection[str],
    synonyms: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Proposal, ...]:
    """Propose a rule for every member, unless a question that repeats the title that the member has
    alone in its family would not meet it. `texts` are the collection's texts and the questions
    asked; they show what a value is called and which names have a plural. `synonyms` are further
    names for the first place of a family, by pattern."""
    spelling = _Spelling(families, texts)
    made = []
    for family in families:
        places = _places(family, (synonyms or {}).get(family.pattern, ()))
        names = tuple(form for place in places for form in place)
        titles = Counter(member.chunk.title for member in family.members)
        for member, groups in _asked(family, spelling):
            title = member.chunk.title
            if title and titles[title] == 1 and not _meets(title, (*places, *groups)):
                continue
            rule = Rule(contain_one_of=(*places, *groups)).text
            doubt = _doubt(family, member)
            made.append(Proposal(member.chunk, family.pattern, rule, names, member.named, doubt))
    copies = Counter(each.rule for each in made)
    return tuple(replace(each, doubt=SAME) if copies[each.rule] > 1 else each for each in made)


class _Spelling:
    """How texts and questions write the values of families."""

    def __init__(self, families: Sequence[Family], texts: Collection[str]) -> None:
        every = [v for family in families for member in family.members for v in member.values]
        counted = {value.words for value in every if isinstance(value, Value)}
        names = {w for v in every if isinstance(v, Name) for w in (v.named, *v.words)}
        self._contexts, self._placed = find_contexts(counted, texts)
        self._held = find_held({form for name in names for form in forms(name)}, texts)

    def of_value(self, value: Value) -> Group:
        called = self._contexts[value.words]
        return spellings(value, called, ordered=value.words in self._placed)

    def of_name(self, name: str, chunk: Chunk) -> Group:
        return held_forms(name, self._held, proper=_is_proper(name, chunk))


def _asked(family: Family, spelling: _Spelling) -> Iterator[tuple[Member, list[Group]]]:
    """Each member with the groups that ask for its values."""
    # A word before a noun has no plural of its own: red dragons.
    is_noun = not family.names or family.pattern.endswith("*")
    crossed = _crossed(family)
    held = Counter(value for member in family.members for value in {*member.values})
    # Any one value is enough: a question may ask for the leave in Germany, or for the 30 days of
    # leave.
    any_tells = family.of_texts and all(
        any(held[value] == 1 for value in member.values) for member in family.members
    )
    for member in family.members:
        groups: list[Group] = []
        for value in member.values:
            if any_tells and held[value] > 1:
                continue
            if isinstance(value, Value):
                groups.append(spelling.of_value(value))
                continue
            for name in value.words if crossed else (value.named,):
                of_name = spelling.of_name(name, member.chunk) if is_noun else without_hyphens(name)
                groups.append(of_name)
        if any_tells:
            groups = [tuple(dict.fromkeys(term for group in groups for term in group))]
        yield member, groups


def _meets(question: str, groups: Iterable[Group]) -> bool:
    """Whether the question has a term of every group, as the rule of these groups will ask."""
    text = prepared(question, "word")
    return all(any(prepared(term, "word") in text for term in group) for group in groups)


def _doubt(family: Family, member: Member) -> str:
    if family.of_texts:
        return NO_NAME if family.is_counted or len(member.values) > 1 else NAME_ALONE
    if family.is_counted or len(member.values) > 1:
        return ""
    return NO_NAME if family.places else NAME_ALONE


def _places(family: Family, synonyms: Iterable[str]) -> list[Group]:
    """The names of each place in singular and plural, with synonyms added to the first."""
    if not family.places:
        return []
    first, *others = family.places
    return [_called(place) for place in ((*first, *synonyms), *others)]


def _called(names: Iterable[str]) -> Group:
    """Names in singular and plural; names of two letters have no plural."""
    every = (form for name in names for form in (forms(name) if len(name) > 2 else (name,)))
    return tuple(dict.fromkeys(every))


def _is_proper(name: str, chunk: Chunk) -> bool:
    """Whether a chunk's text capitalises a name within sentences, not counting repetitions of its
    title: Texas is not a plural."""
    text = chunk.text.replace(chunk.title, "") if chunk.title else chunk.text
    found = re.findall(rf"(?<=[a-z,] ){re.escape(name)}\b", text, re.IGNORECASE)
    return bool(found) and not any(map(str.islower, found))


def _crossed(family: Family) -> bool:
    """Whether each name is two words and each word occurs in several names: adult black, adult red,
    young red. A question may have them in any order, with other words in between."""
    names = [member.values[0].words for member in family.members]
    columns = list(zip(*names, strict=False))
    return (
        not family.of_texts
        and len(family.members[0].values) == 1
        and all(len(words) == len(columns) == 2 for words in names)
        and all(len(set(column)) < len(column) for column in columns)
    )
