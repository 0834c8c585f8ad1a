"""A query set of three labelled questions of the demo, which is measured in a moment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ragfilter.ingest import demo
from ragfilter.stores.labels import LabelBook

FEW = 3


@pytest.fixture(scope="module")
def app(serve_app: Callable[..., str], copy_demo: Callable[[], Path]) -> str:
    """A server on a demo whose query set few has three labelled questions."""
    workspace = copy_demo()
    add_few(workspace)
    return serve_app(RAGFILTER_DATA_DIR=str(workspace))


def add_few(workspace: Path) -> None:
    """Add the query set few to a workspace with the demo."""
    ids = [i for i in demo.queries() if i in demo.qrels()][-FEW:]
    queries = {i: demo.queries()[i] for i in ids}
    labels = [(text, chunk, grade) for i, text in queries.items()
              for chunk, grade in demo.qrels()[i].items()]  # fmt: skip
    book = LabelBook(f"sqlite:///{workspace / 'ragfilter.db'}")
    book.put_set("demo", "few", queries)
    book.add("demo", labels, who="ann")
    book.close()
