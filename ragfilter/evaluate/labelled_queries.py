"""Labelled queries: choosing among them, and what a user can see of them. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from json import dumps

from ragfilter.errors import InputError
from ragfilter.model import Chunk, User
from ragfilter.text.numbers import counted

Queries = Mapping[str, str]
Qrels = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Labels:
    """`queries`: query id → text; `qrels`: query id → chunk id → label."""

    queries: Queries
    qrels: Qrels

    def __repr__(self) -> str:
        n = sum(map(len, self.qrels.values()))
        return f"<Labels: {counted(len(self.queries), 'query')}, {counted(n, 'label')}>"

    @property
    def labelled(self) -> Queries:
        """The queries that have labels."""
        return {i: text for i, text in self.queries.items() if i in self.qrels}

    @property
    def answered(self) -> Queries:
        """The queries for which a chunk is labelled relevant."""
        relevant = {i for i, labels in self.qrels.items() if any(g > 0 for g in labels.values())}
        return {i: text for i, text in self.queries.items() if i in relevant}

    def grades_of(self, query: str) -> dict[str, int]:
        """The grades of a question's chunks, by id, whichever query it is."""
        same = [i for i, text in self.queries.items() if text.strip() == query.strip()]
        return {chunk_id: grade for i in same for chunk_id, grade in self.qrels.get(i, {}).items()}

    def check_relevant(self) -> None:
        """Raise InputError if nothing is labelled relevant, since no figure would mean anything."""
        if not self.answered:
            raise InputError(
                "No chunk is labelled as relevant, so there is nothing to measure.",
                remedy="Label at least one chunk as relevant, with 1 or more.",
            )


def relevant_of(labels: Mapping[str, int]) -> frozenset[str]:
    """The chunks that are labelled relevant."""
    return frozenset(i for i, label in labels.items() if label > 0)


def choose(labels: Labels, only: Iterable[str] = (), leave_out: Iterable[str] = ()) -> Labels:
    """The queries in `only` (all if it is empty) except those in `leave_out`, with their labels. Raises InputError for
    an unknown id, and if there are labels but no relevant one is left."""
    only, leave_out = frozenset(only) or labels.queries.keys(), frozenset(leave_out)
    if unknown := sorted((only | leave_out) - labels.queries.keys()):
        raise InputError(f"There is no query {unknown[0]!r}.", remedy="Look up the ids in the queries file.")
    texts = {i: text for i, text in labels.queries.items() if i in only - leave_out}
    chosen = Labels(texts, {i: labels.qrels[i] for i in texts if i in labels.qrels})
    if labels.qrels and not chosen.qrels:
        raise InputError("No query with a label is left.", remedy="Leave out fewer queries.")
    if labels.qrels:
        chosen.check_relevant()
    return chosen


def missing(named: Iterable[str], ids: Container[str], *, collection: str = "", remedy: str = "") -> tuple[str, ...]:
    """The distinct labelled chunk ids that are not among `ids`, which are the collection's or a
    caller's hits'. Raises InputError if there are labels and none of their ids exists."""
    named = dict.fromkeys(named)
    absent = tuple(chunk for chunk in named if chunk not in ids)
    if named and len(absent) == len(named):
        place = f"in the collection {collection!r}" if collection else "among the hits"
        whose = "this collection" if collection else "these results"
        raise InputError(
            f"None of the labelled ids, such as {absent[0]!r}, is {place}.",
            remedy=remedy or f"Check that the labels belong to {whose}.",
        )
    return absent


def visible(labels: Labels, catalogue: Mapping[str, Chunk], user: User) -> Labels:
    """The labels, except on chunks that no longer exist (nothing can find them) or that
    `user` cannot see (figures must not reveal them). Queries left without labels are dropped."""
    if user.unrestricted and not catalogue:
        # The store is too large to list its chunks.
        return labels
    qrels = {
        query_id: {i: grade for i, grade in grades.items() if i in catalogue and user.sees(catalogue[i])}
        for query_id, grades in labels.qrels.items()
    }
    return Labels(labels.queries, {i: grades for i, grades in qrels.items() if grades})


def measurable(labels: Labels, catalogue: Mapping[str, Chunk], user: User) -> Labels:
    """The visible labels, without queries that have lost all their relevant chunks: for these,
    keeping nothing would look correct. Raises InputError if nothing relevant is left at all."""
    left = visible(labels, catalogue, user)
    kept = {i: grades for i, grades in left.qrels.items() if relevant_of(grades) or not relevant_of(labels.qrels[i])}
    there_was = any(map(relevant_of, labels.qrels.values()))
    if there_was and not any(map(relevant_of, kept.values())):
        raise InputError(
            "None of the chunks labelled as relevant is in the collection, as this user sees it.",
            remedy="Index those chunks, label others, or ask as a user who sees more.",
        )
    return Labels(labels.queries, kept)


def labels_version(labels: Labels) -> str:
    """A hash that changes with every labelled question and its labels."""
    queries = {i: labels.queries[i] for i in labels.qrels}
    text = dumps([queries, labels.qrels], sort_keys=True, ensure_ascii=True)
    return blake2b(text.encode(), digest_size=6).hexdigest()
