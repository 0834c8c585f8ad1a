"""What every rule does over many questions: how often it decides, and whether that helps or harms.

Source: docs/design.md#rules. The columns are those of labelling-function analysis in Snorkel, whose
functions are the rules here. Pools are gathered once; a rule is removed by replaying them.

queries      coverage: the questions for which the rule decides a chunk that was retrieved
blocks       retrieved chunks that the rule drops, over all questions; `passes`: that it lets stay
overlap      blocks that change nothing: another layer would have dropped the chunk anyway
conflicts    blocks of chunks that are labelled relevant
precision    of its blocks, how many are not labelled relevant
delta_f1     mean F1 without the rule less mean F1 with it; `delta_recall` alike. Above 0 it harms.

`ragfilter.evaluate.asked` defines what is *retrieved*.

A rule is a rule text: chunks with the same text share a row. A part of a rule (a group, a term)
decides a chunk if the rule without that part would decide otherwise, or no longer pin it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ragfilter.evaluate.asked import PreparedQuestion, ready
from ragfilter.evaluate.beir import Qrels
from ragfilter.evaluate.metrics import precision_recall_f1
from ragfilter.layers.clearance import viewer
from ragfilter.model import Chunk, Pool, User
from ragfilter.rules.match import RuleBook
from ragfilter.rules.rule import parse
from ragfilter.settings.schema import Settings

OFTEN = 2
"""Minimum number of questions for which a crowding chunk without a rule is irrelevant."""


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One rule, or its part at `place`. Figures that need labels are None without them.

    `conflicts` are (query id, chunk id).
    """

    rule: str
    chunk_ids: tuple[str, ...]
    place: str = ""
    queries: int = 0
    blocks: int = 0
    passes: int = 0
    overlap: int = 0
    conflicts: tuple[tuple[str, str], ...] = ()
    precision: float | None = None
    delta_f1: float | None = None
    delta_recall: float | None = None

    @property
    def fires(self) -> str:
        """``never``: it blocks nothing that was retrieved; ``always``: it lets nothing pass."""
        if not self.blocks:
            return "never"
        return "sometimes" if self.passes else "always"


@dataclass(frozen=True, slots=True)
class CrowdRow:
    """A chunk without a rule that is retrieved more often as irrelevant than as relevant; without a
    label it counts as irrelevant. `kept` is the number of questions that keep it all the same."""

    chunk_id: str
    retrieved: int
    irrelevant: int
    kept: int


@dataclass(frozen=True, slots=True)
class Matrix:
    """`rules` are sorted by harm, `crowding` by how often a chunk is wrongly kept. `waiting` is the
    number of questions for which a layer lacked something and fell back."""

    queries: int
    labelled: int
    rules: tuple[RuleRow, ...]
    crowding: tuple[CrowdRow, ...]
    waiting: int = 0

    def harm(self) -> dict[str, float]:
        """By chunk id, what its rule, or having none, costs a labelled question on average: the F1
        gained without the rule, plus the share of questions that lose the chunk or wrongly keep it.
        Chunks that do no harm are left out."""
        costs: dict[str, float] = defaultdict(float)
        for row in self.rules:
            for chunk_id in row.chunk_ids:
                costs[chunk_id] = max(row.delta_f1 or 0.0, 0.0)
            for _, chunk_id in row.conflicts:
                if chunk_id in costs:
                    costs[chunk_id] += 1 / self.labelled
        for crowd in self.crowding:
            costs[crowd.chunk_id] += crowd.kept / self.labelled
        return {chunk_id: cost for chunk_id, cost in costs.items() if cost}

    def of_unchanged(self, chunks: Mapping[str, Chunk]) -> Matrix:
        """The same figures, only for chunks that still have the measured rule, or none."""
        of_rule: dict[str, set[str]] = defaultdict(set)
        for chunk in chunks.values():
            of_rule[chunk.rule or ""].add(chunk.id)
        rules = (
            replace(row, chunk_ids=tuple(i for i in row.chunk_ids if i in of_rule[row.rule]))
            for row in self.rules
        )
        return replace(
            self,
            rules=tuple(row for row in rules if row.chunk_ids),
            crowding=tuple(row for row in self.crowding if row.chunk_id in of_rule[""]),
        )


@dataclass(slots=True)
class _Tally:
    """The counts of a row."""

    queries: int = 0
    blocks: int = 0
    passes: int = 0
    overlap: int = 0
    conflicts: list[tuple[str, str]] = field(default_factory=list)
    f1: float = 0.0
    recall: float = 0.0

    def add(
        self, asked: PreparedQuestion, freed: frozenset[str], passes: int, kept: Sequence[str]
    ) -> None:
        """Count a question: without the rule or part, `freed` would pass and `kept` would be
        kept."""
        self.queries += 1
        self.blocks += len(freed)
        self.passes += passes
        self.overlap += len(freed.difference(kept))
        self.conflicts += ((asked.id, i) for i in sorted(freed & asked.relevant))
        if asked.scores is not None and set(kept) != set(asked.kept):
            scores = precision_recall_f1(kept, asked.relevant)
            self.f1 += scores.f1 - asked.scores.f1
            self.recall += scores.recall - asked.scores.recall

    def row(self, rule: str, ids: Sequence[str], place: str, labelled: int) -> RuleRow:
        right = self.blocks - len(self.conflicts)
        return RuleRow(
            rule,
            tuple(ids),
            place,
            self.queries,
            self.blocks,
            self.passes,
            self.overlap,
            tuple(self.conflicts),
            precision=right / self.blocks if self.blocks and labelled else None,
            delta_f1=self.f1 / labelled if labelled else None,
            delta_recall=self.recall / labelled if labelled else None,
        )


def build_matrix(
    pools: Mapping[str, Pool],
    qrels: Qrels,
    chunks: Iterable[Chunk],
    settings: Settings,
    user: User | None = None,
) -> Matrix:
    """Build the matrix of the rules of `chunks` over the questions of `pools` (by id). Pure.

    Rules count even if `settings` switch them off. If only some questions have labels, pass only
    those; pass the rest separately with empty `qrels`. What `user` may not see is left out,
    including chunks.
    """
    viewed = viewer(user, settings)
    asked = ready(pools, qrels, settings, viewed)
    ids: dict[str, list[str]] = defaultdict(list)
    for chunk in chunks:
        if chunk.rule and viewed.sees(chunk):
            ids[chunk.rule].append(chunk.id)
    tallies: dict[str, _Tally] = {rule: _Tally() for rule in ids}
    for question in asked:
        of_rule: dict[str, list[str]] = defaultdict(list)
        for hit in question.seen:
            if hit.chunk.rule in tallies:
                of_rule[hit.chunk.rule].append(hit.id)
        for rule, found in of_rule.items():
            passes = question.scan.passes(rule)
            kept = question.kept
            if not passes:
                kept, _ = question.let_pass(found)
            elif question.settings.query_must.pin:
                kept, _ = question.with_rules(dict.fromkeys(question.ruled_by(rule)))
            freed = frozenset() if passes else frozenset(found)
            tallies[rule].add(question, freed, len(found) * passes, kept)
    labelled = sum(question.scores is not None for question in asked)
    rows = [tally.row(rule, ids[rule], "", labelled) for rule, tally in tallies.items()]
    return Matrix(
        len(asked),
        labelled,
        tuple(sorted(rows, key=_harm)),
        _crowding(asked),
        waiting=sum(question.waiting for question in asked),
    )


def build_parts(
    rule: str,
    pools: Mapping[str, Pool],
    qrels: Qrels,
    chunks: Iterable[Chunk],
    settings: Settings,
    user: User | None = None,
) -> tuple[RuleRow, ...]:
    """A row for every group and every term of `rule`, most harmful first. Pure.

    Raises RuleError if the rule cannot be read.
    """
    read = parse(rule)
    viewed = viewer(user, settings)
    ids = [chunk.id for chunk in chunks if chunk.rule == rule and viewed.sees(chunk)]
    labelled = sum(i in qrels for i in pools)
    met = {i: p for i, p in pools.items() if any(hit.chunk.rule == rule for hit in p.hits)}
    asked = ready(met, qrels, settings, viewed)
    rests = {place: read.without(place).text for place in read.removable}
    tallies = {place: _Tally() for place in rests}
    book = RuleBook(rests.values())
    for question in asked:
        found = frozenset(hit.id for hit in question.seen if hit.chunk.rule == rule)
        was, scan = question.scan.check(rule), book.scan(question.pool.query)
        for place, rest in rests.items():
            now = scan.check(rest)
            pins = now.holds != was.holds and question.settings.query_must.pin
            if now.passes == was.passes and not pins:
                continue
            every = question.ruled_by(rule)
            kept, _ = question.with_rules(dict.fromkeys(every, rest))
            # Chunks that were not retrieved count only if they are pinned now, and so kept.
            decided = found | every.intersection(kept)
            if decided:
                freed = frozenset() if was.passes else decided
                tallies[place].add(question, freed, len(decided) * was.passes, kept)
    rows = [tally.row(rule, ids, place, labelled) for place, tally in tallies.items()]
    return tuple(sorted(rows, key=_harm))


def document(matrix: Matrix) -> dict[str, Any]:
    """The matrix as plain values."""
    return {
        "queries": matrix.queries,
        "labelled": matrix.labelled,
        "waiting": matrix.waiting,
        "rules": [row_document(row) for row in matrix.rules],
        "crowding": [asdict(row) for row in matrix.crowding],
    }


def row_document(row: RuleRow) -> dict[str, Any]:
    """One row as plain values."""
    return asdict(row) | {"fires": row.fires}


def _crowding(asked: Iterable[PreparedQuestion]) -> tuple[CrowdRow, ...]:
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for question in asked:
        if question.scores is None:
            continue
        for hit in question.seen:
            if not hit.chunk.rule:
                irrelevant = hit.id not in question.relevant
                count = counts[hit.id]
                count[0] += 1
                count[1] += irrelevant
                count[2] += irrelevant and hit.id in question.kept
    rows = (CrowdRow(i, *count) for i, count in counts.items())
    crowding = [r for r in rows if r.irrelevant >= OFTEN and r.irrelevant > r.retrieved / 2]
    return tuple(sorted(crowding, key=lambda r: (-r.kept, -r.irrelevant, r.chunk_id)))


def _harm(row: RuleRow) -> tuple[float, int, float, float, int]:
    """Sort key by harm: relevant chunks that would be gained without the rule, then relevant chunks
    that it blocks, then the gain in F1; among the rest, the rules that do least."""
    return (
        -(row.delta_recall or 0.0),
        -len(row.conflicts),
        -(row.delta_f1 or 0.0),
        1.0 if row.precision is None else row.precision,
        row.blocks - row.overlap,
    )
