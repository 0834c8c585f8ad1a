"""The effect of a rule change on questions: which chunks each gains and loses, and how good the
results are before and after.

Pools are gathered once, and a change is only replayed over them, so its effect is known before anything is saved. It is
measured on all kept chunks, since gained and lost chunks also move those after them. If a layer lacks something after
the change (such as a rerank score), it falls back. If a change leaves fewer hits in a pool than the settings need, a
new search would look further, so these questions are counted. Proposed rules are measured in the same way. A rule that
would lose relevant chunks then also accepts the rarest word of each such question.

Source: docs/design.md#rules."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean

from ragfilter.engine.gather import usable_count, wanted_count
from ragfilter.engine.pool import with_rules
from ragfilter.engine.replay import replay
from ragfilter.evaluate.labelled_queries import Qrels, relevant_of
from ragfilter.evaluate.metrics import Scores, precision_recall_f1
from ragfilter.evaluate.rule_matrix import RuleRow, build_matrix
from ragfilter.layers.visibility import effective_user
from ragfilter.model import Chunk, Pool, User
from ragfilter.rules.families import Family, Proposal, as_finding, find_families, propose
from ragfilter.rules.lint import Finding
from ragfilter.rules.match import CompiledRules, Scan, check
from ragfilter.rules.rule import AnyRule, Changes, Rule, RuleTexts, texts_of
from ragfilter.rules.values import telling, words_of
from ragfilter.settings.schema import Settings

Verdict = tuple[bool, bool, bool, bool]
"""Whether there is a rule, whether a question meets it, whether it can be read, and whether it holds."""


@dataclass(frozen=True)
class GatheredQuestions:
    """Labelled or asked questions with their pools and kept chunks, ready to measure changes. `verdicts` caches the
    rules' verdicts by question and rule. `short` are the questions that need a new search, because changes have left
    too few hits in their pools."""

    pools: Mapping[str, Pool]
    qrels: Qrels
    settings: Settings
    user: User
    kept: dict[str, tuple[str, ...]] = field(default_factory=dict)
    verdicts: dict[tuple[str, str | None], Verdict] = field(default_factory=dict, compare=False, repr=False)
    short: set[str] = field(default_factory=set)

    @cached_property
    def compiled(self) -> CompiledRules:
        """The rules of the pools, compiled and cached."""
        return CompiledRules(rule for rules in self.found_by.values() for rule in rules.values() if rule)

    @cached_property
    def found_by(self) -> Mapping[str, Mapping[str, str | None]]:
        """Chunk id → query id → the chunk's rule in that question's pool."""
        found_by: dict[str, dict[str, str | None]] = defaultdict(dict)
        for query_id, pool in self.pools.items():
            for hit in (*pool.hits, *pool.reachable):
                found_by[hit.id][query_id] = hit.chunk.rule
        return dict(found_by)

    def effect(self, changes: Changes) -> Effect:
        """The effect of `changes` on these questions."""
        texts = texts_of(changes)
        new_rules = CompiledRules(text for text in texts.values() if text)
        touched: dict[str, list[str]] = defaultdict(list)
        for chunk_id in changes:
            for query_id in self.found_by.get(chunk_id, ()):
                touched[query_id].append(chunk_id)
        rows: list[QueryEffect] = []
        before: list[Scores] = []
        after: list[Scores] = []
        short = set(self.short)
        for query_id, pool in self.pools.items():
            labels = self.qrels.get(query_id)
            relevant = relevant_of(labels or {})
            old = new = self.kept[query_id]
            changed_ids = touched.get(query_id)
            if changed_ids and self._decides_otherwise(query_id, changed_ids, texts, new_rules):
                new, clean = self._replay(with_rules(pool, texts), new_rules)
                if self._falls_short(query_id, clean):
                    short.add(query_id)
            gained = tuple(i for i in new if i not in old)
            lost = tuple(i for i in old if i not in new)
            was = now = None
            if labels is not None:
                was = precision_recall_f1(old, relevant)
                now = precision_recall_f1(new, relevant) if gained or lost else was
                before.append(was)
                after.append(now)
            if gained or lost:
                rows.append(QueryEffect(query_id, pool.query, gained, lost, relevant, was, now))
        rows.sort(key=lambda row: (-len(row.lost_relevant), _gain(row)))
        was, now = (Scores(*map(fmean, zip(*each, strict=True))) if each else None for each in (before, after))
        return Effect(len(self.pools), len(before), tuple(rows), was, now, len(short))

    def renew(self, chunks: Mapping[str, Chunk]) -> GatheredQuestions:
        """The same questions with the current rules of `chunks` (by id)."""
        changed = {
            i: chunks[i].rule
            for i, rules in self.found_by.items()
            if i in chunks and any(rule != chunks[i].rule for rule in rules.values())
        }
        touched = dict.fromkeys(query_id for i in changed for query_id in self.found_by[i])
        pools = {query_id: with_rules(self.pools[query_id], changed) for query_id in touched}
        renewed = replace(self, pools={**self.pools, **pools}, kept={**self.kept}, short={*self.short})
        for query_id, pool in pools.items():
            renewed.kept[query_id], clean = renewed._replay(pool)
            if self._falls_short(query_id, clean):
                renewed.short.add(query_id)
        return renewed

    def _replay(self, pool: Pool, *new_rules: CompiledRules) -> tuple[tuple[str, ...], int]:
        """The ids of the pool's hits that the filter keeps, in order, and how many hits pass the rules."""
        scan = self.compiled.scan(pool.query, *new_rules)
        result = replay(pool, self.settings, self.user, scan, explain=False)
        return tuple(hit.id for hit in result.kept), result.trace("query_must").n_out

    def _falls_short(self, query_id: str, clean: int) -> bool:
        """Whether a search would look further than this question's pool if it had only `clean` hits
        left. If it had too few before, the search had already found everything."""
        pool, needed = (self.pools[query_id], min(usable_count(self.settings), wanted_count(self.settings)))
        return not pool.exhaustive and clean < needed <= self._replay(pool)[1]

    def _verdicts(self, query: str, rules: Collection[str | None]) -> list[Verdict]:
        """The verdict of each of these rules, which occur in the pools."""
        if any((query, rule) not in self.verdicts for rule in rules):
            scan = self.compiled.scan(query)
            self.verdicts.update(((query, rule), _verdict(scan, rule)) for rule in rules)
        return [self.verdicts[query, rule] for rule in rules]

    def _decides_otherwise(
        self, query_id: str, chunk_ids: Sequence[str], texts: RuleTexts, new_rules: CompiledRules
    ) -> bool:
        """Whether the changed rules decide differently about a chunk that the question found: it has a rule, the rule
        can be read, the chunk passes, or the rule holds and may pin it. If not, the result stays the same."""
        query = self.pools[query_id].query
        before = self._verdicts(query, [self.found_by[i][query_id] for i in chunk_ids])
        after = new_rules.scan(query)
        return before != [_verdict(after, texts[i]) for i in chunk_ids]


def make_labelled(
    pools: Mapping[str, Pool], qrels: Qrels, settings: Settings, user: User | None = None
) -> GatheredQuestions:
    """Replay every pool once. Pure."""
    labelled = GatheredQuestions(pools, qrels, settings, effective_user(user, settings))
    labelled.kept.update((i, labelled._replay(pool)[0]) for i, pool in pools.items())
    return labelled


@dataclass(frozen=True, slots=True)
class QueryEffect:
    """A query whose kept chunks change. `before` and `after` are None if it has no labels."""

    id: str
    query: str
    gained: tuple[str, ...]
    lost: tuple[str, ...]
    relevant: frozenset[str]
    before: Scores | None
    after: Scores | None

    @property
    def lost_relevant(self) -> tuple[str, ...]:
        return tuple(i for i in self.lost if i in self.relevant)

    @property
    def gained_relevant(self) -> tuple[str, ...]:
        return tuple(i for i in self.gained if i in self.relevant)


@dataclass(frozen=True, slots=True)
class Effect:
    """`rows` are the queries that change; those that lose relevant chunks come first. `before` and `after` are means
    over all `labelled` queries, None without any. `short`: how many need a new search, which may find more to keep."""

    queries: int
    labelled: int
    rows: tuple[QueryEffect, ...]
    before: Scores | None
    after: Scores | None
    short: int = 0

    @property
    def loses_relevant(self) -> bool:
        """Whether a labelled query would lose a relevant chunk; saving then asks for confirmation."""
        return any(row.lost_relevant for row in self.rows)

    @property
    def losses(self) -> dict[str, tuple[str, ...]]:
        """The questions that lose a relevant chunk, by the chunk's id."""
        losses: dict[str, tuple[str, ...]] = {}
        for row in self.rows:
            for chunk_id in row.lost_relevant:
                losses[chunk_id] = (*losses.get(chunk_id, ()), row.query)
        return losses


def _verdict(scan: Scan, rule: str | None) -> Verdict:
    check = scan.check(rule)
    return bool(rule), check.passes, check.readable, check.holds


def _gain(row: QueryEffect) -> float:
    return row.after.f1 - row.before.f1 if row.before and row.after else 0.0


@dataclass(frozen=True, slots=True)
class SuggestedRules:
    """Families, a proposal for each of their members, and the joint effect of all proposals; None without labels."""

    families: tuple[Family, ...]
    proposals: tuple[Proposal, ...]
    effect: Effect | None = None

    @property
    def losses(self) -> Mapping[str, tuple[str, ...]]:
        """The questions that would lose a relevant chunk, by the chunk's id."""
        return self.effect.losses if self.effect else {}

    def finding(self, proposal: Proposal, chunk: Chunk) -> Finding:
        """The proposal as a finding about the current `chunk`, with its doubts."""
        lost = (f"would drop what “{query}” needs" for query in self.losses.get(chunk.id, ()))
        doubts = (*filter(None, (proposal.doubt,)), *lost)
        words = f"Ask for {proposal.value}, to tell it apart ({proposal.family})"
        return as_finding("family", chunk, proposal.rule, words, doubts)


def suggest(
    chunks: Iterable[Chunk], questions: Iterable[str] = (), labelled: GatheredQuestions | None = None
) -> SuggestedRules:
    """Propose rules for the families among `chunks` (with texts). `questions` were asked by users.
    With `labelled` questions, the proposals are also measured."""
    chunks = list(chunks)
    families = find_families(chunks)
    texts = list(questions)
    if labelled is not None:
        texts += [pool.query for pool in labelled.pools.values()]
    proposals = propose(families, [*texts, *(chunk.text for chunk in chunks)])
    proposed = {each.family for each in proposals}
    families = tuple(family for family in families if family.pattern in proposed)
    if labelled is None or not proposals:
        return SuggestedRules(families, proposals)
    proposals = _learned(proposals, labelled, chunks)
    return SuggestedRules(families, proposals, labelled.effect(_rules(proposals)))


def matrix_rows(proposed: Iterable[Chunk], labelled: GatheredQuestions | None) -> dict[AnyRule, RuleRow]:
    """The matrix rows of `proposed` chunks by rule; empty without labels. Several times as slow as an effect."""
    if labelled is None:
        return {}
    proposed = tuple(proposed)
    changes = {chunk.id: chunk.rule for chunk in proposed}
    pools = {i: with_rules(pool, changes) for i, pool in labelled.pools.items()}
    matrix = build_matrix(pools, labelled.qrels, proposed, labelled.settings, labelled.user)
    return {row.rule: row for row in matrix.rules}


def _learned(
    proposals: Sequence[Proposal], labelled: GatheredQuestions, chunks: Iterable[Chunk]
) -> tuple[Proposal, ...]:
    """Add to each proposal the rarest word of every question that it would lose, if the question
    meets all groups but one: "wizard" for magic-users. The word must occur in another text."""
    counts = Counter(word for chunk in chunks for word in set(telling(words_of(chunk.passage))))
    # Proposals without doubts can be accepted without the others, so chunks that the others drop
    # must not hide their losses.
    every, sure = _rules(proposals), _rules(each for each in proposals if not each.doubt)
    lost: dict[str, dict[str, None]] = defaultdict(dict)
    for changes in (every, sure):
        for chunk_id, queries in labelled.effect(changes).losses.items():
            lost[chunk_id] |= dict.fromkeys(queries)

    def learned(each: Proposal) -> Proposal:
        groups = list(each.rule.contain_one_of)
        in_passage = {*words_of(each.chunk.passage)}
        for query in lost[each.chunk.id]:
            missed = [i for i, group in enumerate(groups) if not check(Rule(contain_one_of=(group,)), query).passes]
            words = [word for word in telling(words_of(query)) if counts[word] and word not in in_passage]
            if words and len(missed) == 1 < len(groups):
                groups[missed[0]] = (*groups[missed[0]], min(words, key=lambda w: counts[w]))
        return replace(each, rule=Rule(contain_one_of=tuple(groups)))

    return tuple(learned(each) if each.chunk.id in lost and not each.doubt else each for each in proposals)


def _rules(proposals: Iterable[Proposal]) -> dict[str, Rule]:
    """The proposed rules by chunk id."""
    return {each.chunk.id: each.rule for each in proposals}
