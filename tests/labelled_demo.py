"""Questions of the demo as a query set of their own, which is measured in a moment."""

from __future__ import annotations

from collections.abc import Sequence

from ragfilter.ingest import bundled
from ragfilter.stores.label_book import LabelBook


def put_labelled(book: LabelBook, name: str, ids: Sequence[str]) -> None:
    """Store these questions as a query set of the demo, with their labels, unless it is there."""
    queries = {i: bundled.queries("demo")[i] for i in ids}
    if name not in book.sets("demo"):
        book.put_set("demo", name, queries)
        labels = [
            (text, chunk, grade) for i, text in queries.items() for chunk, grade in bundled.qrels("demo")[i].items()
        ]
        book.add("demo", labels, who="ann")
