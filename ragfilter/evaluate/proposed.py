"""Checks proposed rules against labelled questions: what each proposal does, and what it would
lose. Nothing is stored.

A proposal that would lose relevant chunks is weakened: it then asks only for what most of these
questions have. A labelled question that keeps its chunk settles the doubt that questions might
not name it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ragfilter.engine.replay import with_rules
from ragfilter.evaluate.effect import Changes, Effect, LabelledQuestions
from ragfilter.evaluate.metrics import relevant_of
from ragfilter.evaluate.rule_matrix import RuleRow, build_matrix
from ragfilter.model import Chunk
from ragfilter.rules.families import Family, find_families
from ragfilter.rules.match import RuleBook
from ragfilter.rules.proposals import NAME_ALONE, Proposal, propose
from ragfilter.rules.rule import Rule, parse
from ragfilter.rules.values import telling, tokens


@dataclass(frozen=True, slots=True)
class Evidence:
    """The effect of proposed rules, and the questions whose relevant chunk a proposal would drop
    (by chunk id). Empty without labels."""

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
) -> Suggested:
    """Propose rules for the families among `chunks` (whole). `questions` are those asked. With
    `labelled` questions the proposals are also measured."""
    chunks = list(chunks)
    families = find_families(chunks)
    asked = list(questions)
    if labelled is not None:
        asked += [pool.query for pool in labelled.pools.values()]
    proposals = propose(families, [*asked, *(chunk.text for chunk in chunks)])
    proposed = {each.family for each in proposals}
    families = tuple(family for family in families if family.pattern in proposed)
    if labelled is None or not proposals:
        return Suggested(families, proposals, Evidence())
    proposals = _learned(proposals, labelled, chunks)
    evidence = weigh((replace(each.chunk, rule=each.rule) for each in proposals), labelled)
    return Suggested(families, _settled(proposals, labelled), evidence)


def weigh(proposed: Iterable[Chunk], labelled: LabelledQuestions) -> Evidence:
    """The effect of the rules that `proposed` chunks carry, all of them together."""
    changes = {chunk.id: chunk.rule for chunk in proposed}
    effect = labelled.effect(changes)
    return Evidence(_losses(effect, changes), effect)


def matrix_rows(
    proposed: Iterable[Chunk], labelled: LabelledQuestions | None
) -> dict[str, RuleRow]:
    """The row of the matrix for each rule that `proposed` chunks carry, by rule text; none without
    labels. Takes several times as long as `weigh`."""
    if labelled is None:
        return {}
    proposed = tuple(proposed)
    changes = {chunk.id: chunk.rule for chunk in proposed}
    pools = {i: with_rules(pool, changes) for i, pool in labelled.pools.items()}
    matrix = build_matrix(pools, labelled.qrels, proposed, labelled.settings, labelled.user)
    return {row.rule: row for row in matrix.rules}


def _losses(effect: Effect, changes: Changes) -> dict[str, tuple[str, ...]]:
    """The labelled questions that would lose each changed chunk."""
    losses: dict[str, tuple[str, ...]] = {}
    for row in effect.rows:
        for chunk_id in row.lost_relevant:
            if chunk_id in changes:
                losses[chunk_id] = (*losses.get(chunk_id, ()), row.query)
    return losses


def _learned(
    proposals: Sequence[Proposal], labelled: LabelledQuestions, chunks: Iterable[Chunk]
) -> tuple[Proposal, ...]:
    """The proposals with the rarest word of each question they would lose, if the question meets
    all groups but one: "wizard", where the rule asks for magic-users. Another text must use it."""
    counts = Counter(word for chunk in chunks for word in set(telling(tokens(chunk.passage))))
    # Proposals without doubts can be accepted without the others, so what the others drop must not
    # hide their losses.
    every = {each.chunk.id: each.rule for each in proposals}
    sure = {each.chunk.id: each.rule for each in proposals if not each.doubt}
    lost: dict[str, dict[str, None]] = defaultdict(dict)
    for changes in (every, sure):
        for chunk_id, queries in _losses(labelled.effect(changes), changes).items():
            lost[chunk_id] |= dict.fromkeys(queries)

    def learned(each: Proposal) -> Proposal:
        groups = list(parse(each.rule).contain_one_of)
        own = {*tokens(each.chunk.passage)}
        for query in lost[each.chunk.id]:
            missed = [i for i, group in enumerate(groups) if not _meets(group, query)]
            words = [word for word in telling(tokens(query)) if counts[word] and word not in own]
            if words and len(missed) == 1 < len(groups):
                groups[missed[0]] = (*groups[missed[0]], min(words, key=lambda w: counts[w]))
        return replace(each, rule=Rule(contain_one_of=tuple(groups)).text)

    return tuple(
        learned(each) if each.chunk.id in lost and not each.doubt else each for each in proposals
    )


def _meets(group: tuple[str, ...], question: str) -> bool:
    rule = Rule(contain_one_of=(group,)).text
    return RuleBook([rule]).scan(question).passes(rule)


def _settled(proposals: Sequence[Proposal], labelled: LabelledQuestions) -> tuple[Proposal, ...]:
    """The proposals without the doubt that labelled questions for their chunks settle."""
    book = RuleBook(each.rule for each in proposals)
    asked: dict[str, list[str]] = defaultdict(list)
    for query_id, pool in labelled.pools.items():
        retrieved = {hit.id for hit in pool.hits} & relevant_of(labelled.qrels.get(query_id, {}))
        for chunk_id in retrieved:
            asked[chunk_id].append(pool.query)
    return tuple(
        replace(each, doubt="")
        if each.doubt == NAME_ALONE
        and (queries := asked.get(each.chunk.id))
        and all(book.scan(query).passes(each.rule) for query in queries)
        else each
        for each in proposals
    )
