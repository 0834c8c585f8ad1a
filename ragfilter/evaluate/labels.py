"""Reads labelled queries from two BEIR files or a demo's own, and selects some of them."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from hashlib import blake2b
from importlib import import_module
from json import dumps
from pathlib import Path

from ragfilter.basics.files import kind
from ragfilter.errors import InputError
from ragfilter.evaluate.beir import Labels
from ragfilter.evaluate.metrics import relevant_of
from ragfilter.evaluate.query_files import read
from ragfilter.model import Chunk, User

DEMOS = ("demo", "adsapi")


def are_files(queries: str, qrels: str | None) -> bool:
    """Whether these name files or a demo, rather than a query set of a workspace."""
    path = Path(queries)
    is_path = path.name != queries or path.suffix in (".jsonl", ".csv", ".tsv", ".txt")
    return qrels is not None or queries in DEMOS or is_path or kind(path) == "file"


def load(queries: str, qrels: str | None) -> Labels:
    """Load the labels of two files. A demo collection's name, alone or for both, means its own
    labels.

    Raises InputError.
    """
    if queries in DEMOS and qrels in (None, queries):
        return of_demo(queries)
    for name in DEMOS:
        if name in (queries, qrels):
            raise InputError(
                f"Only one of queries and qrels is {name}.",
                remedy=f"Use {name} for both, or two files.",
            )
    if qrels is None:
        raise InputError(
            "The qrels are missing.",
            remedy="Pass the file with their labels, or a query set of the workspace.",
        )
    return read(Path(queries), Path(qrels))


def of_demo(name: str) -> Labels:
    """The labels that a demo collection brings along."""
    # Imported here: it reads OpenAPI, for which measuring one's own labels has no use.
    own = import_module(f"ragfilter.ingest.{name}")
    return Labels(own.queries(), own.qrels())


def pick(labels: Labels, *, only: Iterable[str] = (), leave_out: Iterable[str] = ()) -> Labels:
    """The queries in `only` (all if it is empty) except those in `leave_out`, with their labels.

    Raises InputError for an unknown id.
    """
    only, leave_out = frozenset(only), frozenset(leave_out)
    unknown = sorted((only | leave_out) - labels.queries.keys())
    if unknown:
        raise InputError(
            f"There is no query {unknown[0]!r}.", remedy="Look up the ids in the queries file."
        )
    texts = {
        i: text
        for i, text in labels.queries.items()
        if i not in leave_out and (not only or i in only)
    }
    return Labels(texts, {i: labels.qrels[i] for i in texts if i in labels.qrels})


def choose(labels: Labels, *, only: Iterable[str] = (), leave_out: Iterable[str] = ()) -> Labels:
    """The same as `pick`, but raises InputError if no query with a label is left."""
    chosen = pick(labels, only=only, leave_out=leave_out)
    if not chosen.qrels:
        raise InputError("No query with a label is left.", remedy="Leave out fewer queries.")
    chosen.check_relevant()
    return chosen


def missing(
    named: Iterable[str], ids: Container[str], *, collection: str = "", remedy: str = ""
) -> tuple[str, ...]:
    """The labelled chunk ids that are not among `ids`: the collection's, or those of a caller's
    hits. Each counts once. Raises InputError if there are labels and none of their ids exists."""
    named = dict.fromkeys(named)
    found = tuple(chunk for chunk in named if chunk not in ids)
    if named and len(found) == len(named):
        place = f"in the collection {collection!r}" if collection else "among the hits"
        whose = "this collection" if collection else "these results"
        raise InputError(
            f"None of the labelled ids, such as {found[0]!r}, is {place}.",
            remedy=remedy or f"Check that the labels belong to {whose}.",
        )
    return found


def visible(labels: Labels, catalogue: Mapping[str, Chunk], user: User) -> Labels:
    """The labels without those of chunks that no longer exist, which nothing can find, and of those
    that `user` may not see, since figures must not reveal them. Queries without any labels left are
    removed."""
    if user.unrestricted and not catalogue:
        # The store is too large to list its chunks.
        return labels
    qrels = {}
    for query_id, grades in labels.qrels.items():
        kept = {i: g for i, g in grades.items() if i in catalogue and user.sees(catalogue[i])}
        if kept:
            qrels[query_id] = kept
    return Labels(labels.queries, qrels)


def measurable(labels: Labels, catalogue: Mapping[str, Chunk], user: User) -> Labels:
    """The visible labels, without the queries that had relevant chunks and have none left: keeping
    nothing would look correct for them. Raises InputError if nothing relevant is left at all."""
    seen = visible(labels, catalogue, user)
    kept = {
        i: grades
        for i, grades in seen.qrels.items()
        if relevant_of(grades) or not relevant_of(labels.qrels[i])
    }
    there_was = any(map(relevant_of, labels.qrels.values()))
    if there_was and not any(map(relevant_of, kept.values())):
        raise InputError(
            "None of the chunks labelled as relevant is in the collection, as this user sees it.",
            remedy="Index those chunks, label others, or ask as a user who sees more.",
        )
    return Labels(labels.queries, kept)


def labels_version(labels: Labels) -> str:
    """A hash that changes with every labelled question and its labels."""
    asked = {i: labels.queries[i] for i in labels.qrels}
    text = dumps([asked, labels.qrels], sort_keys=True, ensure_ascii=True)
    return blake2b(text.encode(), digest_size=6).hexdigest()
