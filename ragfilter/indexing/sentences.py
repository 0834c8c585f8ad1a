"""Vectors of the sentences of indexed chunks, from which extractive answers are chosen. They are
computed before any question: at the end of `ragfilter index`, or while the app is idle.

Source: docs/design.md#parts. They are stored in ``sentences.db`` in the workspace's folder, or in
its database. They are optional: a missing sentence is embedded when an answer needs it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from hashlib import blake2b
from time import monotonic

import numpy as np

from ragfilter.answer.extractive import passages_of
from ragfilter.basics import database
from ragfilter.errors import RagfilterError, extra
from ragfilter.models.embedders import OPENAI
from ragfilter.protocols import Vectors
from ragfilter.stores.base import pages
from ragfilter.stores.workspace import Workspace
from ragfilter.workbench import Workbench

with extra("chroma"):
    import sqlalchemy as sa

log = logging.getLogger(__name__)

FILE = "sentences.db"
AT_ONCE = 500
"""Keys per query; SQLite allows 999 values."""
PART = 16
"""Sentences per batch while questions may arrive: a question waits for one batch at most."""
LARGE_PART = 256
"""Sentences per batch while no question can arrive, which takes half the time."""
QUIET_S = 1.0
"""How long the app must have been idle."""
MAX_SENTENCES = 50_000
"""Maximum number of sentences in a collection; in a larger one, answers embed what they need."""

_vectors = sa.Table(
    "sentence_vectors",
    sa.MetaData(),
    sa.Column("key", sa.LargeBinary, primary_key=True),
    sa.Column("collection", sa.Text, primary_key=True),
    sa.Column("vector", sa.LargeBinary, nullable=False),
)
_completed = sa.Table(
    "sentences_completed",
    sa.MetaData(),
    sa.Column("collection", sa.Text, primary_key=True),
    sa.Column("mark", sa.Text, nullable=False),
)


PUT = sa.text(
    "INSERT INTO sentence_vectors (key, collection, vector) VALUES (:key, :collection, :vector) "
    "ON CONFLICT (key, collection) DO UPDATE SET vector = excluded.vector"
)


class Sentences(database.OptionalBook):
    """The sentence vectors of a workspace. Safe across threads and processes."""

    what = "sentences"
    called = "The file of sentences"
    tables = (_vectors, _completed)

    def __init__(self, workspace: Workspace) -> None:
        super().__init__(workspace.address or f"sqlite:///{workspace.path / FILE}")
        self._marks: dict[str, str] = {}

    def find(self, model: str, texts: Sequence[str]) -> dict[str, Vectors]:
        """The stored vectors (float32, unit length) of `texts` by `model`, by text; texts without one are left out."""
        by_key = {_key(model, text): text for text in texts}

        def read(connection: sa.Connection) -> dict[str, Vectors]:
            vectors: dict[str, Vectors] = {}
            for keys in pages(list(by_key), AT_ONCE):
                query = sa.select(_vectors.c.key, _vectors.c.vector)
                rows = connection.execute(query.where(_vectors.c.key.in_(keys)))
                vectors |= {by_key[key]: np.frombuffer(blob, np.float32) for key, blob in rows}
            return vectors

        return self._attempt(read, {})

    def put(self, collection: str, model: str, texts: Sequence[str], vectors: Vectors) -> None:
        """Store the vectors of a collection's sentences, shape (len(texts), dimension)."""
        rows = [
            {"key": _key(model, text), "collection": collection, "vector": vector.tobytes()}
            for text, vector in zip(texts, vectors, strict=True)
        ]
        self._attempt(lambda connection: connection.execute(PUT, rows) and None, None)

    def completed(self) -> dict[str, str]:
        """The collections whose sentences are all stored: name → mark of the content."""

        def read(connection: sa.Connection) -> dict[str, str]:
            return dict(map(tuple, connection.execute(sa.select(_completed))))

        stored: dict[str, str] = self._attempt(read, {})
        return stored | self._marks

    def mark_complete(self, collection: str, mark: str, model: str, texts: Collection[str]) -> None:
        """Record that `texts` are all the sentences of a collection, and remove its others."""
        wanted = {_key(model, text) for text in texts}
        # Kept in memory even if it cannot be written, so that nothing is embedded repeatedly.
        self._marks[collection] = mark

        def write(connection: sa.Connection) -> None:
            mine = _vectors.c.collection == collection
            there = connection.execute(sa.select(_vectors.c.key).where(mine)).scalars()
            for keys in pages([key for key in there if key not in wanted], AT_ONCE):
                connection.execute(_vectors.delete().where(mine & _vectors.c.key.in_(keys)))
            connection.execute(_completed.delete().where(_completed.c.collection == collection))
            connection.execute(_completed.insert().values(collection=collection, mark=mark))

        self._attempt(write, None)

    def forget(self, collection: str) -> None:
        """Remove all sentences of a collection."""
        self._marks.pop(collection, None)

        def write(connection: sa.Connection) -> None:
            for table in self.tables:
                connection.execute(table.delete().where(table.c.collection == collection))

        self._attempt(write, None)


def _key(model: str, text: str) -> bytes:
    return blake2b(f"{model}\0{text}".encode("utf-8", "replace"), digest_size=16).digest()


def prepare(bench: Workbench, sentences: Sentences, part: int = LARGE_PART) -> Iterator[tuple[int, int]]:
    """Embed the missing sentences of the workspace's own collections in batches of `part`. Yields
    (done, total) for the current collection after each batch."""
    model, workspace = bench.embedder, bench.workspace
    if model.name.startswith(OPENAI):
        return
    completed = sentences.completed()
    marks = {name: f"{model.name} {mark}" for name, mark in workspace.contents.marks().items()}
    for gone in completed.keys() - marks.keys():
        sentences.forget(gone)
    for name in (name for name, mark in marks.items() if completed.get(name) != mark):
        every: list[str] = []
        try:
            texts = [text for chunk in workspace.contents.texts(name) for text in passages_of(chunk.title, chunk.text)]
            every = list(dict.fromkeys(texts)) if len(texts) <= MAX_SENTENCES else []
            known = sentences.find(model.name, every)
            # Sorted, so that a batch has texts of similar length.
            waiting = sorted((text for text in every if text not in known), key=len)
            for start in range(0, len(waiting), part):
                some = waiting[start : start + part]
                sentences.put(name, model.name, some, model.embed(some))
                yield start + len(some), len(waiting)
        except RagfilterError as error:
            # The collection is marked as complete below, so this is not tried repeatedly.
            log.warning("cannot embed the sentences of %s ahead: %s", name, error)
        sentences.mark_complete(name, marks[name], model.name, every)


def prepare_when_idle(bench: Workbench, sentences: Sentences, is_busy: Callable[[], bool]) -> Callable[[], bool]:
    """A function that embeds the next batch of sentences, unless `is_busy()` is true or was within
    `QUIET_S`. It returns whether it embedded any."""
    parts: Iterator[tuple[int, int]] = iter(())
    quiet_from = 0.0

    def step() -> bool:
        nonlocal parts, quiet_from
        if is_busy():
            quiet_from = monotonic() + QUIET_S
        if monotonic() < quiet_from:
            return False
        if next(parts, None) is None:
            parts = prepare(bench, sentences, PART)
            return next(parts, None) is not None
        return True

    return step
