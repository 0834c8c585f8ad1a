"""The effect of a rule change on questions: which of them gain and lose which chunks, and how good
the results are before and after.

Source: docs/design.md#rules. Pools are gathered once, and a change is only replayed over them. So
its effect is known before anything is saved. If a layer lacks something after the change (such as
the rerank score of a chunk that was not scored), it falls back as usual.

A change that lets chunks in or keeps them out moves the chunks after them. So the effect is
measured on the whole kept list, and not only on the changed chunk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ragfilter.engine.replay import replay, with_rules
from ragfilter.evaluate.beir import Qrels
from ragfilter.evaluate.metrics import Scores, mean_of, precision_recall_f1, relevant_of
from ragfilter.model import PUBLIC, Chunk, Pool, User
from ragfilter.rules.match import RuleBook, Scan
from ragfilter.settings.schema import Settings

Changes = Mapping[str, str | None]
"""Chunk id to rule text, None for no rule."""
FEW = 100
"""Up to this many changed rules are compiled one by one, if a book does not know them."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """Labelled questions with their pools, and what each keeps, ready to measure changes."""

    pools: Mapping[str, Pool]
    qrels: Qrels
    settings: Settings
    user: User
    kept: Mapping[str, tuple[str, ...]]
    book: RuleBook = field(compare=False)

    def effect(self, changes: Changes) -> Effect:
        """The effect of `changes` on these questions."""
        return measure_effect(
            self.pools,
            self.qrels,
            self.settings,
            changes,
            self.user,
            kept=self.kept,
            book=self.book,
        )

    def renew(self, chunks: Mapping[str, Chunk]) -> Labelled:
        """The same questions with the current rules of `chunks` (by id)."""
        hits = (hit for pool in self.pools.values() for hit in (*pool.hits, *pool.reachable))
        known = ((hit.chunk, chunks[hit.id].rule) for hit in hits if hit.id in chunks)
        return self.with_changes({was.id: rule for was, rule in known if rule != was.rule})

    def with_changes(self, changes: Changes) -> Labelled:
        """The same questions with other rules on some chunks."""
        changed = {
            i: with_rules(pool, changes)
            for i, pool in self.pools.items()
            if any(hit.id in changes for hit in (*pool.hits, *pool.reachable))
        }
        pools = {**self.pools, **changed}
        book = self.book if len(changes) <= FEW else _book(pools)
        kept = {i: kept_ids(pool, self.settings, self.user, book) for i, pool in changed.items()}
        return replace(self, pools=pools, kept={**self.kept, **kept}, book=book)


def make_labelled(
    pools: Mapping[str, Pool], qrels: Qrels, settings: Settings, user: User = PUBLIC
) -> Labelled:
    """Replay every pool once. Pure."""
    book = _book(pools)
    kept = {i: kept_ids(pool, settings, user, book) for i, pool in pools.items()}
    return Labelled(pools, qrels, settings, user, kept, book)


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
    """`rows` are the queries that change, those that lose relevant chunks first. `before` and
    `after` are means over all `labelled` queries, None if there are none."""

    queries: int
    labelled: int
    rows: tuple[QueryEffect, ...]
    before: Scores | None
    after: Scores | None

    @property
    def loses_relevant(self) -> bool:
        """Whether a labelled query would lose a relevant chunk; saving then asks for
        confirmation."""
        return any(row.lost_relevant for row in self.rows)


def measure_effect(
    pools: Mapping[str, Pool],
    qrels: Qrels,
    settings: Settings,
    changes: Changes,
    user: User = PUBLIC,
    *,
    kept: Mapping[str, tuple[str, ...]] | None = None,
    book: RuleBook | None = None,
) -> Effect:
    """The effect of `changes` on the queries of `pools` (by id), as `user` sees them. Pure.

    `kept` is what each query keeps before and `book` holds the rules of the pools, for callers that
    measure many changes.
    """
    if book is None:
        book = _book(pools)
    new_rules = RuleBook(rule for rule in changes.values() if rule)
    rows: list[QueryEffect] = []
    before: list[Scores] = []
    after: list[Scores] = []
    for query_id, pool in pools.items():
        labels = qrels.get(query_id)
        relevant = relevant_of(labels or {})
        old = kept_ids(pool, settings, user, book) if kept is None else kept[query_id]
        new = old
        if _decides_otherwise(pool, changes, book, new_rules):
            new = kept_ids(with_rules(pool, changes), settings, user, book)
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
    return Effect(len(pools), len(before), tuple(rows), mean_of(before), mean_of(after))


def document(effect: Effect) -> dict[str, Any]:
    """The effect as plain values."""
    return {
        "queries": effect.queries,
        "labelled": effect.labelled,
        "loses_relevant": effect.loses_relevant,
        "before": asdict(effect.before) if effect.before else None,
        "after": asdict(effect.after) if effect.after else None,
        "changed": [
            {
                "id": row.id,
                "query": row.query,
                "gained": list(row.gained),
                "lost": list(row.lost),
                "lost_relevant": list(row.lost_relevant),
                "gained_relevant": list(row.gained_relevant),
                "before": asdict(row.before) if row.before else None,
                "after": asdict(row.after) if row.after else None,
            }
            for row in effect.rows
        ],
    }


def kept_ids(pool: Pool, settings: Settings, user: User, book: RuleBook) -> tuple[str, ...]:
    """The ids that the filter keeps of the pool, in order."""
    return tuple(hit.id for hit in replay(pool, settings, user, book.scan(pool.query)).kept)


def _book(pools: Mapping[str, Pool]) -> RuleBook:
    """The rules of the pools, compiled and cached."""
    hits = (hit for pool in pools.values() for hit in (*pool.hits, *pool.reachable))
    return RuleBook(hit.chunk.rule for hit in hits if hit.chunk.rule)


def _decides_otherwise(pool: Pool, changes: Changes, old: RuleBook, new: RuleBook) -> bool:
    """Whether the changed rules affect any chunk in the pool: whether it has a rule, whether that
    can be read, whether it passes, and whether it holds and may pin the chunk. Otherwise the result
    stays the same and need not be replayed."""
    hits = [hit for hit in (*pool.hits, *pool.reachable) if hit.id in changes]
    if not hits:
        return False
    before, after = old.scan(pool.query), new.scan(pool.query)
    return any(_verdict(before, hit.chunk.rule) != _verdict(after, changes[hit.id]) for hit in hits)


def _verdict(scan: Scan, rule: str | None) -> tuple[bool, bool, bool, bool]:
    check = scan.check(rule)
    return bool(rule), check.passes, check.readable, check.holds


def _gain(row: QueryEffect) -> float:
    return row.after.f1 - row.before.f1 if row.before and row.after else 0.0
