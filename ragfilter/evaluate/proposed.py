"""Proposed rules held against labelled questions: further names that those use, what each proposal
does, and what it would lose. Nothing is stored.

A question that is labelled for a chunk, and names its value but none of its family's names, calls
the family by another name ("wizard" for magic-users). Of its words the one is taken that is nearest
in meaning to the names known. A proposal that would still lose what a question is labelled for asks
for less.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ragfilter.evaluate.effect import Changes, Effect, Labelled
from ragfilter.evaluate.metrics import relevant_of
from ragfilter.evaluate.rule_matrix import RuleRow, build_matrix
from ragfilter.model import Chunk
from ragfilter.protocols import Embedder
from ragfilter.rules.families import Family, Proposal, find_families, propose
from ragfilter.rules.match import RuleBook
from ragfilter.rules.plurals import forms
from ragfilter.rules.rule import Rule, canonical, parse
from ragfilter.rules.values import COMMON, NUMBERS, tokens

Likeness = Callable[[Sequence[str], Sequence[str]], Sequence[float]]
"""From words and names to how near in meaning each word is to its nearest name."""
LIKE = 0.5
"""Words that resemble no name as much are no other name: a person has to find it."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What proposed rules would do: each rule's row of the matrix (by rule text), and the labelled
    relevant chunks that a proposal would drop (chunk id to questions). Empty without labels."""

    rows: Mapping[str, RuleRow] = field(default_factory=dict)
    losses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    effect: Effect | None = None


@dataclass(frozen=True, slots=True)
class Suggested:
    """Families, and a proposal for each of their members."""

    families: tuple[Family, ...]
    proposals: tuple[Proposal, ...]
    evidence: Evidence


def suggest(
    chunks: Iterable[Chunk],
    questions: Iterable[str] = (),
    labelled: Labelled | None = None,
    likeness: Likeness | None = None,
) -> Suggested:
    """Rules for the families among `chunks` (whole). `questions` are those asked; with `labelled`
    ones the proposals are also measured, and with `likeness` learn further names from them."""
    chunks = list(chunks)
    families = find_families(chunks)
    asked = list(questions)
    if labelled is not None:
        asked += [pool.query for pool in labelled.pools.values()]
    texts = [chunk.text for chunk in chunks] + asked
    proposals = propose(families, texts)
    if labelled is None or not proposals:
        return Suggested(families, proposals, Evidence())
    if likeness is not None:
        synonyms = _synonyms(families, proposals, labelled, likeness)
        proposals = propose(families, texts, synonyms)
    changes = {each.chunk.id: each.rule for each in proposals}
    losses = _losses(labelled.effect(changes), changes)
    proposals = tuple(_weakened(each, losses.get(each.chunk.id, ())) for each in proposals)
    return Suggested(families, proposals, weigh(map(_with_rule, proposals), labelled))


def weigh(proposed: Iterable[Chunk], labelled: Labelled) -> Evidence:
    """What the rules that `proposed` chunks carry would do, all of them together."""
    proposed = tuple(proposed)
    changes = {chunk.id: chunk.rule for chunk in proposed}
    effect = labelled.effect(changes)
    pools = labelled.with_changes(changes).pools
    matrix = build_matrix(pools, labelled.qrels, proposed, labelled.settings, labelled.user)
    rows = {row.rule: row for row in matrix.rules}
    return Evidence(rows, _losses(effect, changes), effect)


def _losses(effect: Effect, changes: Changes) -> dict[str, tuple[str, ...]]:
    """The labelled questions that each changed chunk would be lost for."""
    losses: dict[str, tuple[str, ...]] = {}
    for row in effect.rows:
        for chunk_id in row.lost_relevant:
            if chunk_id in changes:
                losses[chunk_id] = (*losses.get(chunk_id, ()), row.query)
    return losses


def _weakened(each: Proposal, lost: Sequence[str]) -> Proposal:
    """The proposal with those groups alone that the questions it would lose meet: it then asks for
    the value or for a name. Where they meet none it stays, with its doubt."""
    groups = parse(each.rule).contain_one_of
    alone = [canonical(Rule(contain_one_of=(group,))) for group in groups]
    scans = [RuleBook(alone).scan(question) for question in lost]
    met = tuple(
        group
        for group, text in zip(groups, alone, strict=True)
        if all(scan.passes(text) for scan in scans)
    )
    return replace(each, rule=canonical(Rule(contain_one_of=met))) if met else each


def likeness_of(embedder: Embedder) -> Likeness:
    """Likeness by the cosine of embeddings."""

    def measure(words: Sequence[str], names: Sequence[str]) -> Sequence[float]:
        vectors = embedder.embed([*words, *names])
        found: list[float] = (vectors[: len(words)] @ vectors[len(words) :].T).max(axis=1).tolist()
        return found

    return measure


def _with_rule(each: Proposal) -> Chunk:
    return replace(each.chunk, rule=each.rule)


def _synonyms(
    families: Sequence[Family],
    proposals: Sequence[Proposal],
    labelled: Labelled,
    likeness: Likeness,
) -> dict[str, list[str]]:
    """Further names by pattern."""
    by_id = {each.chunk.id: each for each in proposals}
    names = {family.pattern: family.names for family in families}
    known = {form for every in names.values() for name in every for form in forms(name)}
    counted = {
        word
        for family in families
        for member in family.members
        for value in member.values
        for word in value.words
    }
    found: dict[str, list[str]] = defaultdict(list)
    for query_id, pool in labelled.pools.items():
        for chunk_id in relevant_of(labelled.qrels.get(query_id, {})):
            each = by_id.get(chunk_id)
            if each is None or not each.names or not _only_names_fail(each.rule, pool.query):
                continue
            words = [
                word
                for word in dict.fromkeys(tokens(pool.query))
                if len(word) > 2
                and word[0].isalpha()
                and not any(char.isdigit() for char in word)
                and word not in known
                and word not in counted
                and word not in COMMON
                and word not in NUMBERS
            ]
            if not words:
                continue
            scores = likeness(words, [forms(name)[0] for name in names[each.family]])
            best = max(range(len(words)), key=lambda i: scores[i])
            if scores[best] >= LIKE and words[best] not in found[each.family]:
                found[each.family].append(words[best])
    return found


def _only_names_fail(rule: str, question: str) -> bool:
    groups = parse(rule).contain_one_of
    alone = [canonical(Rule(contain_one_of=(group,))) for group in groups]
    scan = RuleBook(alone).scan(question)
    return not scan.passes(alone[0]) and all(scan.passes(text) for text in alone[1:])
