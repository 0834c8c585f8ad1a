"""Checks proposed rules against labelled questions: further names that these use, what each
proposal does, and what it would lose. Nothing is stored.

If a question is labelled for a chunk, and names its value but none of its family's names, it uses
another name for the family ("wizard" for magic-users). This is the word of the question that is
nearest in meaning to the known names. If a question calls the value something else ("plate mail and
shield" for armor class 2), its words are added, provided that another text of the collection uses
them too. A proposal that would still lose relevant chunks is weakened.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from ragfilter.engine.replay import with_rules
from ragfilter.evaluate.effect import Changes, Effect, LabelledQuestions
from ragfilter.evaluate.metrics import relevant_of
from ragfilter.evaluate.rule_matrix import RuleRow, build_matrix
from ragfilter.model import Chunk
from ragfilter.protocols import Embedder
from ragfilter.rules.close import VectorsOf
from ragfilter.rules.families import Family, find_families
from ragfilter.rules.match import RuleBook
from ragfilter.rules.plurals import forms
from ragfilter.rules.proposals import NAME_ALONE, NO_NAME, Proposal, propose
from ragfilter.rules.rule import Rule, parse
from ragfilter.rules.values import COMMON, NUMBERS, tokens
from ragfilter.text.normalise import normalise

Likeness = Callable[[Sequence[str], Sequence[str]], Sequence[float]]
"""Takes words and names, and returns the similarity of each word to its nearest name."""
LIKE = 0.5
"""A word less similar to every name is not another name; a person has to find that."""
MEASURED = (NAME_ALONE, NO_NAME)
"""Doubts about which questions would drop a chunk. Labelled questions that keep it answer them."""
LONGEST = 6
"""Maximum number of words in a phrase for a value."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The effect of proposed rules: each rule's row of the matrix (by rule text), and the questions
    whose relevant chunk a proposal would drop (by chunk id). Empty without labels."""

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
    labelled: LabelledQuestions | None = None,
    likeness: Likeness | None = None,
    vectors_of: VectorsOf | None = None,
) -> Suggested:
    """Propose rules for the families among `chunks` (whole). `questions` are those asked. With
    `labelled` questions the proposals are also measured, and with `likeness` they learn further
    names from them. With `vectors_of`, families are also found by their vectors."""
    chunks = list(chunks)
    families = find_families(chunks, vectors_of)
    asked = list(questions)
    if labelled is not None:
        asked += [pool.query for pool in labelled.pools.values()]
    own = {member.chunk.id: family for family in families for member in family.members}
    # Only the first of many texts are read, so the most informative come first: questions asked,
    # then the families' own texts.
    texts = asked + [chunk.text for chunk in sorted(chunks, key=lambda each: each.id not in own)]
    proposals = propose(families, texts)
    told_apart = {each.family for each in proposals}
    families = tuple(family for family in families if family.pattern in told_apart)
    if labelled is None or not proposals:
        return Suggested(families, proposals, Evidence())
    if likeness is not None:
        synonyms = _synonyms(families, proposals, labelled, likeness)
        proposals = propose(families, texts, synonyms)
    changes = {each.chunk.id: each.rule for each in proposals}
    # Proposals without doubts can be accepted without the others, so what the others drop must not
    # hide their losses.
    sure = {each.chunk.id: each.rule for each in proposals if not each.doubt}
    of_all, of_sure = (_losses(labelled.effect(some), some) for some in (changes, sure))
    titled = {i for i, family in own.items() if not family.of_texts}
    others = [normalise(chunk.text) for chunk in chunks if chunk.id not in titled]
    proposals = tuple(
        _weakened(_widened(each, lost, own[each.chunk.id], others), lost) if lost else each
        for each in proposals
        for i in (each.chunk.id,)
        for lost in (tuple(dict.fromkeys((*of_all.get(i, ()), *of_sure.get(i, ())))),)
    )
    evidence = weigh((replace(each.chunk, rule=each.rule) for each in proposals), labelled)
    book, kept_by = RuleBook(each.rule for each in proposals), defaultdict(list)
    for query_id, pool in labelled.pools.items():
        found = {hit.id for hit in pool.hits} & relevant_of(labelled.qrels.get(query_id, {}))
        for i in found:
            kept_by[i].append(pool.query)
    proposals = tuple(
        replace(each, doubt="")
        if each.doubt in MEASURED
        and kept_by[each.chunk.id]
        and all(book.scan(query).passes(each.rule) for query in kept_by[each.chunk.id])
        else each
        for each in proposals
    )
    return Suggested(families, proposals, evidence)


def weigh(proposed: Iterable[Chunk], labelled: LabelledQuestions) -> Evidence:
    """The effect of the rules that `proposed` chunks carry, all of them together."""
    proposed = tuple(proposed)
    changes = {chunk.id: chunk.rule for chunk in proposed}
    effect = labelled.effect(changes)
    pools = {i: with_rules(pool, changes) for i, pool in labelled.pools.items()}
    matrix = build_matrix(pools, labelled.qrels, proposed, labelled.settings, labelled.user)
    rows = {row.rule: row for row in matrix.rules}
    return Evidence(rows, _losses(effect, changes), effect)


def _losses(effect: Effect, changes: Changes) -> dict[str, tuple[str, ...]]:
    """The labelled questions that would lose each changed chunk."""
    losses: dict[str, tuple[str, ...]] = {}
    for row in effect.rows:
        for chunk_id in row.lost_relevant:
            if chunk_id in changes:
                losses[chunk_id] = (*losses.get(chunk_id, ()), row.query)
    return losses


def _widened(
    each: Proposal, lost: Sequence[str], family: Family, others: Sequence[str]
) -> Proposal:
    """The proposal with words of the questions it would lose, added to the only group that they do
    not meet. Words that occur in half of the family's texts are not distinctive."""
    rule = parse(each.rule)
    groups = list(rule.contain_one_of)
    bags = [{*tokens(member.chunk.passage)} for member in family.members]
    counts = Counter(word for bag in bags for word in bag)
    known = {word for word, n in counts.items() if n >= len(bags) / 2}
    for question in lost:
        missed = [i for i, group in enumerate(groups) if not _meets(group, question)]
        phrase = _phrase(question, known, others) if len(missed) == 1 else ""
        if phrase:
            groups[missed[0]] = (*groups[missed[0]], phrase)
    return replace(each, rule=rule.with_parts(contain_one_of=tuple(groups)).text)


def _phrase(question: str, known: Container[str], others: Sequence[str]) -> str:
    """A phrase of the question with words that are not `known`, which another text uses too: the
    one with the most such words, and of those the shortest; empty if there is none."""
    words = tokens(question)
    telling = [len(w) > 2 and w[0].isalpha() and w not in COMMON and w not in known for w in words]
    ends = [i for i, tells in enumerate(telling) if tells]
    spans = [(i, j + 1) for i in ends for j in ends if i < j < i + LONGEST]
    spans.sort(key=lambda span: (-sum(telling[slice(*span)]), span[1] - span[0], span))
    phrases = (" ".join(words[slice(*span)]) for span in spans)
    return next((phrase for phrase in phrases if any(_holds(t, phrase) for t in others)), "")


def _holds(text: str, phrase: str) -> bool:
    return phrase in text and re.search(rf"\b{re.escape(phrase)}\b", text) is not None


def _meets(group: tuple[str, ...], question: str) -> bool:
    rule = Rule(contain_one_of=(group,)).text
    return RuleBook([rule]).scan(question).passes(rule)


def _weakened(each: Proposal, lost: Sequence[str]) -> Proposal:
    """The proposal with only those groups that most of the questions it would lose meet, and as
    many of them as possible: it then asks for the value or for a name. Unchanged if they meet
    none."""
    groups = parse(each.rule).contain_one_of
    met = [{group for group in groups if _meets(group, question)} for question in lost]
    every = (few for n in range(len(groups)) for few in combinations(groups, n + 1))
    best = max(every, key=lambda few: (sum(met_by.issuperset(few) for met_by in met), len(few)))
    return replace(each, rule=Rule(contain_one_of=best).text)


def likeness_of(embedder: Embedder) -> Likeness:
    """Likeness by the cosine of embeddings."""

    def measure(words: Sequence[str], names: Sequence[str]) -> Sequence[float]:
        vectors = embedder.embed([*words, *names])
        found: list[float] = (vectors[: len(words)] @ vectors[len(words) :].T).max(axis=1).tolist()
        return found

    return measure


def _synonyms(
    families: Sequence[Family],
    proposals: Sequence[Proposal],
    labelled: LabelledQuestions,
    likeness: Likeness,
) -> dict[str, list[str]]:
    """Further names for the first place, by pattern."""
    by_id = {each.chunk.id: each for each in proposals}
    names = {family.pattern: family.places[0] for family in families if family.places}
    known = {form for family in families for name in family.names for form in forms(name)}
    counted = {
        word
        for family in families
        if not family.of_texts
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
    names, *values = parse(rule).contain_one_of
    return not _meets(names, question) and all(_meets(group, question) for group in values)
