"""The labelled queries of a set that a workspace knows by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragfilter.errors import InputError
from ragfilter.evaluate.beir import Labels
from ragfilter.evaluate.labels import DEMOS
from ragfilter.evaluate.labels import load as load_files
from ragfilter.stores.labels import ASKED, settle

if TYPE_CHECKING:
    from ragfilter.stores.labels import LabelBook


def sets(book: LabelBook, collection: str) -> dict[str, int]:
    """How many questions every set of the collection has, by name; a demo's own set comes first.
    Raises StoreError."""
    own = {collection: len(DEMOS[collection][0]())} if collection in DEMOS else {}
    return own | book.sets(collection)


def load(book: LabelBook, collection: str, name: str, *, llm: bool = False) -> Labels:
    """The questions of a set with their labels. A demo's own labels count where nobody has said
    otherwise. `llm`: where no human has labelled, an LLM's label counts.

    Raises InputError where there is no such set, or none of its questions has a label, and
    StoreError.
    """
    shipped = Labels({}, {})
    queries = book.queries(collection, name)
    if not queries and name == collection and collection in DEMOS:
        shipped = load_files(name, None)
        queries = dict(shipped.queries)
    if not queries:
        known = ", ".join(n for n, count in sets(book, collection).items() if count)
        raise InputError(
            f"The collection {collection!r} has no query set {name!r} with questions.",
            remedy=f"There are: {known}."
            if known
            else "Ask questions on the page and label "
            "their chunks, or import a set with `ragfilter labels import`.",
        )
    marked = settle(book.standing(collection), llm=llm)
    qrels = {}
    for query_id, text in queries.items():
        found = {**shipped.qrels.get(query_id, {}), **marked.get(text.strip(), {})}
        if found:
            qrels[query_id] = found
    if not qrels:
        raise InputError(
            f"No question of the set {name!r} has a label.",
            remedy="Mark chunks as relevant on Inspect, or import labels with `ragfilter labels "
            "import`." + (" Asked questions get labels there too." if name == ASKED else ""),
        )
    return Labels(queries, qrels)
