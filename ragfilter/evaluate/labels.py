"""Which labelled queries to measure: two BEIR files or the demo's own, and a choice among them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ragfilter.corpora import demo
from ragfilter.errors import InputError
from ragfilter.evaluate.beir import Labels, read

DEMO = "demo"


def load(queries: str, qrels: str) -> Labels:
    """The labels of two files; both names ``demo`` mean the demo collection's own.

    Raises InputError.
    """
    if queries == DEMO and qrels == DEMO:
        return Labels(demo.queries(), demo.qrels())
    if DEMO in (queries, qrels):
        raise InputError(
            "Only one of --queries and --qrels is demo.", remedy="Give demo for both, or two files."
        )
    return read(Path(queries), Path(qrels))


def choose(labels: Labels, *, only: Iterable[str] = (), leave_out: Iterable[str] = ()) -> Labels:
    """The labels of some queries: of `only` (all where it is empty), less `leave_out`.

    Raises InputError: an unknown id, or no labelled query left.
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
    if not any(i in labels.qrels for i in texts):
        raise InputError("No query with a label is left.", remedy="Choose fewer --except.")
    return Labels(texts, {i: labels.qrels[i] for i in texts if i in labels.qrels})
