"""Vectors of the sentences of indexed chunks, from which extractive answers are chosen. They are
embedded ahead of any question: at the end of `ragfilter index`, or while nobody waits for the app.

Source: docs/design.md#parts. They are in ``sentences.db`` of the workspace's folder, or in its
database. Nothing depends on them: a sentence that is missing is embedded when an answer needs it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from time import monotonic

import numpy as np

from ragfilter.answer.extractive import passages
from ragfilter.basics import database
from ragfilter.errors import RagfilterError, extra
from ragfilter.models.embedder import OPENAI
from ragfilter.protocols import Progress, Vectors
from ragfilter.stores import copies
from ragfilter.stores.base import pages
from ragfilter.stores.workspace import Workspace
from ragfilter.workbench import Workbench

with extra("chroma"):
    import sqlalchemy as sa

log = logging.getLogger(__name__)

FILE = "sentences.db"
AT_ONCE = 500
"""Keys in one query; SQLite allows 999 values."""
PART = 16
"""Sentences at once: as long as a question that is asked meanwhile may have to wait."""
LARGE_PART = 256
"""Sentences at once if nobody can ask meanwhile, which takes half the time."""
QUIET_S = 1.0
"""How long nobody must have waited for anything."""
MAX_SENTENCES = 50_000
"""Sentences of one collection; a larger one's are embedded when an answer needs them."""

_vectors = sa.Table(
    "sentence_vectors", sa.MetaData(), sa.Column("key", sa.LargeBinary, primary_key=True),
    sa.Column("collection", sa.Text, primary_key=True),
    sa.Column("vector", sa.LargeBinary, nullable=False),
)  # fmt: skip
_completed = sa.Table(
    "sentences_completed", sa.MetaData(), sa.Column("collection", sa.Text, primary_key=True),
    sa.Column("mark", sa.Text, nullable=False),
)  # fmt: skip


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

    def find(self, model: str, texts: Sequence[str]) -> dict[str, Vectors]:
        """The vectors (float32, unit length) that `model` made of `texts`, as far as they are
        stored, by text."""
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
        """Store the vectors of sentences of a collection, shape (len(texts), dimension)."""
        rows = [
            {"key": _key(model, text), "collection": collection, "vector": vector.tobytes()}
            for text, vector in zip(texts, vectors, strict=True)
        ]
        self._attempt(lambda connection: connection.execute(PUT, rows) and None, None)

    def completed(self) -> dict[str, str]:
        """The collections whose sentences are all stored, each with the mark of its content."""

        def read(connection: sa.Connection) -> dict[str, str]:
            return dict(map(tuple, connection.execute(sa.select(_completed))))

        return self._attempt(read, {})

    def mark_complete(self, collection: str, mark: str, model: str, texts: Collection[str]) -> None:
        """Note that `texts` are all the sentences of a collection, and remove its others."""
        wanted = {_key(model, text) for text in texts}

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

        def write(connection: sa.Connection) -> None:
            for table in self.tables:
                connection.execute(table.delete().where(table.c.collection == collection))

        self._attempt(write, None)


def _key(model: str, text: str) -> bytes:
    return blake2b(f"{model}\0{text}".encode("utf-8", "replace"), digest_size=16).digest()


class Preparation:
    """The sentences of the workspace's own collections that are still to be embedded. `is_busy`
    says whether somebody waits for something. `part` sentences are embedded together."""

    def __init__(
        self, bench: Workbench, sentences: Sentences, is_busy: Callable[[], bool], part: int = PART
    ) -> None:
        self._bench = bench
        self._sentences = sentences
        self._is_busy = is_busy
        self._part = part
        self._busy_until = -QUIET_S
        self._completed: dict[str, str] | None = None
        self._collection = self._mark = ""
        self._all: list[str] = []
        self.total = 0
        self._waiting: list[str] = []

    @property
    def waiting(self) -> int:
        """How many sentences of the present collection are still to be embedded."""
        return len(self._waiting)

    def step(self) -> bool:
        """Embed the next few sentences, unless somebody waits. Returns whether it did."""
        model = self._bench.embedder
        if model.name.startswith(OPENAI) or self._must_wait():
            return False
        try:
            if not self._waiting and not self._begun():
                return False
            part, self._waiting = self._waiting[: self._part], self._waiting[self._part :]
            if part:
                self._sentences.put(self._collection, model.name, part, model.embed(part))
            if not self._waiting:
                self._sentences.mark_complete(self._collection, self._mark, model.name, self._all)
        except RagfilterError as error:
            log.warning("the sentences of %s are not prepared: %s", self._collection, error)
            self._waiting = []
        return True

    def _must_wait(self) -> bool:
        now = monotonic()
        if self._is_busy():
            self._busy_until = now
        return now - self._busy_until < QUIET_S

    def _begun(self) -> bool:
        """Whether there is a collection whose content has changed, which is then the present
        one."""
        if self._completed is None:
            self._completed = self._sentences.completed()
        workspace, model = self._bench.workspace, self._bench.embedder.name
        database = workspace.pg()
        if database is not None:
            marks = {name: f"{model} {mark}" for name, mark in database.contents().items()}
        else:
            marks = dict(_copied(workspace, model))
        for gone in self._completed.keys() - marks.keys():
            self._sentences.forget(gone)
            del self._completed[gone]
        for name, mark in marks.items():
            if self._completed.get(name) == mark:
                continue
            # Also if the copy turns out to be damaged: it is not read again and again.
            self._collection, self._mark, self._completed[name] = name, mark, mark
            chunks = (
                copies.read_texts(workspace.copy_path(name))
                if database is None
                else database.texts(name)
            )
            texts = [text for chunk in chunks for text in passages(chunk)]
            self._all = list(dict.fromkeys(texts)) if len(texts) <= MAX_SENTENCES else []
            known = self._sentences.find(model, self._all)
            # Those of one length are computed together.
            self._waiting = sorted((text for text in self._all if text not in known), key=len)
            self.total = len(self._waiting)
            return True
        return False


def prepare(bench: Workbench, progress: Progress) -> None:
    """Embed all sentences that are still to be embedded, and report how many are done."""
    ahead = Preparation(bench, Sentences(bench.workspace), lambda: False, LARGE_PART)
    while ahead.step():
        progress(ahead.total - ahead.waiting, ahead.total)


def _copied(workspace: Workspace, model: str) -> Iterator[tuple[str, str]]:
    """The collections that have a copy, each with the mark of its content."""
    for name in workspace.copied():
        with suppress(OSError):
            at = workspace.copy_path(name).stat()
            yield name, f"{model} {at.st_mtime_ns} {at.st_size}"
