"""Proposes rules that tell the members of families apart. Pure.

A proposal asks for each mark of the chunk's title: a value or a name, in the spellings that the
collection's texts and the questions use.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ragfilter.model import Chunk
from ragfilter.rules.contexts import find_contexts, find_held, held_forms
from ragfilter.rules.families import Family, Mark, find_families
from ragfilter.rules.findings import Finding
from ragfilter.rules.match import prepared
from ragfilter.rules.plurals import forms
from ragfilter.rules.rule import Rule, parse
from ragfilter.rules.values import Name, Value, spellings

NAME_ALONE = "a question that does not name it would drop it"

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
) -> tuple[Proposal, ...]:
    """Propose a rule for every member, unless a question that repeats its title would not meet it.
    `texts` are the collection's texts and the questions asked; they show what a value is called and
    which names have a plural."""
    marks = {m for family in families for member in family.members for m in member.marks}
    counted = {mark.words for mark in marks if isinstance(mark, Value)}
    names = {word for mark in marks if isinstance(mark, Name) for word in mark.words}
    contexts, ordered = find_contexts(counted, texts)
    held = find_held({form for name in names for form in forms(name)}, texts)

    def group(mark: Mark) -> Group:
        if isinstance(mark, Value):
            return spellings(mark, contexts[mark.words], ordered=mark.words in ordered)
        return tuple(dict.fromkeys(f for word in mark.words for f in held_forms(word, held)))

    proposals = []
    for family in families:
        doubt = "" if family.is_counted else NAME_ALONE
        for member in family.members:
            groups = tuple(map(group, member.marks))
            if _meets(member.chunk.title, groups):
                rule = Rule(contain_one_of=groups).text
                named = tuple(w for m in member.marks if isinstance(m, Name) for w in m.words)
                proposals.append(
                    Proposal(member.chunk, family.pattern, rule, named, member.named, doubt)
                )
    return tuple(proposals)


def find_proposals(chunks: Collection[Chunk], questions: Iterable[str] = ()) -> list[Finding]:
    """Rules that tell families among `chunks` (whole) apart, for those without a rule. `questions`
    are those asked."""
    families = {family.pattern: family for family in find_families(chunks)}
    texts = [*questions, *(chunk.text for chunk in chunks)]
    return [
        Finding(
            kind="family",
            chunk_ids=(each.chunk.id,),
            message=f"No rule tells it apart from {len(families[each.family].members) - 1} similar "
            f"chunks ({each.family}). Ask for {each.value}.",
            fix=parse(each.rule),
            sure=not each.doubt,
        )
        for each in propose([*families.values()], texts)
        if not each.chunk.rule
    ]


def as_finding(
    kind: str, chunk: Chunk, rule: str, words: str, doubts: Sequence[str] = ()
) -> Finding:
    """The finding that proposes `rule` for a chunk. It is sure if there is no doubt and the chunk
    has no rule to replace."""
    more = (*doubts, *(("replaces the rule that it has",) if chunk.rule else ()))
    message = "; ".join((words, *more))
    fix = parse(rule)
    return Finding(kind=kind, chunk_ids=(chunk.id,), message=f"{message}.", fix=fix, sure=not more)


def _meets(question: str, groups: Iterable[Group]) -> bool:
    """Whether the question has a term of every group, as the rule of these groups will ask."""
    text = prepared(question, "word")
    return all(any(prepared(term, "word") in text for term in group) for group in groups)
