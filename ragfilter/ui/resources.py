"""Resources that live as long as the server: the open workbench, cached pools, scores and answers, and the models that
use these caches.

None of them is in session state. All sessions share them, so the keys say what a value belongs to."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import streamlit as st

from ragfilter.basics.threads import SharedCache
from ragfilter.engine.gather import Backends
from ragfilter.errors import ModelError, StoreError
from ragfilter.evaluate import query_sets
from ragfilter.evaluate.labelled_queries import Labels
from ragfilter.indexing.embed_ahead import prepare_when_idle
from ragfilter.indexing.queue import Worker
from ragfilter.layers.quality import reranker_key
from ragfilter.model import Chunk, Pool, User
from ragfilter.models.pruners import SentencePruner
from ragfilter.protocols import Embedder, Progress, Reranker, Vectors, Vocabulary
from ragfilter.rules.overview import Checks
from ragfilter.settings.deployment import Deployment, read_deployment
from ragfilter.settings.schema import Quality
from ragfilter.stores.caches import VectorCache
from ragfilter.ui.jobs import JOB, Jobs
from ragfilter.workbench import Workbench

if TYPE_CHECKING:
    from ragfilter.answer.answer import Answer

V = TypeVar("V")
POOLS, SCORES, ANSWERS, VECTORS, CHUNKS, LABELS = 32, 20_000, 128, 20_000, 512, 4
TEXTS_AT_ONCE = 32
"""How many texts are embedded and cached together."""
WORKING = (JOB, "ScriptRunner.scriptThread")
"""The thread names of our jobs and of Streamlit's runs."""


@dataclass(frozen=True, slots=True, eq=False)
class CacheSpec(Generic[V]):
    """A cache of at most `size` values, declared by the module that uses it."""

    size: int


@dataclass(frozen=True, slots=True)
class Resources:
    """The workbench and the server's caches."""

    bench: Workbench
    sentences: VectorCache | None = None
    pools: SharedCache[Pool] = field(default_factory=lambda: SharedCache(POOLS))
    scores: SharedCache[float] = field(default_factory=lambda: SharedCache(SCORES))
    answers: SharedCache[Answer] = field(default_factory=lambda: SharedCache(ANSWERS))
    vectors: SharedCache[Vectors] = field(default_factory=lambda: SharedCache(VECTORS))
    chunks: SharedCache[Chunk] = field(default_factory=lambda: SharedCache(CHUNKS))
    labels: SharedCache[Labels | None] = field(default_factory=lambda: SharedCache(LABELS))
    jobs: Jobs = field(default_factory=Jobs)
    checks: Checks = field(default_factory=Checks)
    caches: dict[CacheSpec[Any], SharedCache[Any]] = field(default_factory=dict)

    def cache(self, spec: CacheSpec[V]) -> SharedCache[V]:
        """The cache that a module has declared."""
        return self.caches.setdefault(spec, SharedCache(spec.size))

    def whole_chunk(self, chunk: Chunk, collection: str, version: str) -> Chunk:
        """The chunk with its text, read once; itself if it is gone. Raises StoreError."""
        read = self.bench.collection(collection).chunks
        return self.chunks.of((collection, version, chunk.id), lambda: read([chunk.id]).get(chunk.id, chunk))

    def labels_for(self, collection: str, user: User) -> Labels | None:
        """The labels of the chunks that the user can see, from the workspace and the demo; None if
        there are none. Cached. Raises StoreError."""
        book, opened = self.bench.labels, self.bench.collection(collection).snapshot()
        # Rules make no difference.
        indexed = opened.content or opened.version
        key = (collection, indexed, book.version(collection, questions=True), user)
        return self.labels.of(key, lambda: query_sets.everything(book, collection, opened.entries(), user))

    def embedder(self, *, only_known: bool = False, progress: Progress | None = None) -> CachedEmbedder:
        """The model for sentences, which reuses stored and earlier vectors."""
        model = self.bench.embedder
        return CachedEmbedder(model, self.vectors, only_known, progress, self.sentences)

    def backends(self, collection: str) -> Backends:
        """The workbench's backends, with a reranker that caches its scores, and sentence vectors that are stored."""
        plain = replace(self.bench.backends(collection), pruner=SentencePruner(self.embedder()))
        make = plain.make_reranker
        if make is None:
            return plain

        def cached_reranker(quality: Quality) -> Reranker:
            return CachedReranker(make(quality), reranker_key(quality), self.scores)

        return replace(plain, make_reranker=cached_reranker)


def open_resources() -> Resources:
    """Open the resources for the deployment that the environment describes.

    Raises WorkspaceLocked, StoreError, ModelError, InputError."""
    deployment = read_deployment()
    key = deployment.openai_api_key.get_secret_value()
    return _open(deployment.model_dump_json(), hash(key), deployment)


@st.cache_resource(show_spinner=False)
def _open(deployment_json: str, key_hash: int, _deployment: Deployment) -> Resources:
    # torch reads this at its first import. It would otherwise use every core, and the browser needs
    # one to draw the page while an answer is being made.
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 2) - 1)))
    bench = Workbench.open(_deployment, kind="app")
    sentences = bench.workspace.vectors
    # Embeds the sentences of indexed chunks while nobody waits.
    # If the database is unavailable, no worker starts; code that needs it reports the error.
    with suppress(StoreError):
        Worker(bench, prepare_when_idle(bench, sentences, _somebody_waits)).start()
    return Resources(bench, sentences)


def _somebody_waits() -> bool:
    """Whether a page is being computed, or a job for one."""
    return any(thread.name in WORKING for thread in threading.enumerate())


@dataclass(frozen=True, slots=True)
class CachedReranker:
    """`inner`, with its scores cached in `cache`. Raises ModelError as `inner` does."""

    inner: Reranker
    name: str
    cache: SharedCache[float]

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        keys = [(self.name, query, blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()) for text in texts]
        known = {k: self.cache.get(k) for k in keys}
        missing = [(k, t) for k, t in zip(keys, texts, strict=True) if known[k] is None]
        if missing:
            fresh = self.inner.score(query, [text for _, text in missing])
            for (k, _), score in zip(missing, fresh, strict=True):
                known[k] = self.cache.put(k, score)
        return [value for k in keys if (value := known[k]) is not None]


@dataclass(frozen=True, slots=True)
class CachedEmbedder:
    """`inner`, with its vectors cached in `cache`.

    With `only_known` the model is never called: an unknown text raises ModelError. `progress` is told of every few
    texts. If it raises, the work ends, but embedded texts stay cached."""

    inner: Embedder
    cache: SharedCache[Vectors]
    only_known: bool = False
    progress: Progress | None = None
    stored: VectorCache | None = None
    """Vectors stored earlier."""

    @property
    def name(self) -> str:
        return self.inner.name

    def embed(self, texts: Sequence[str]) -> Vectors:
        known = {text: self.cache.get((self.name, text)) for text in texts}
        missing = [text for text, vector in known.items() if vector is None]
        if missing and self.stored is not None:
            for text, stored in self.stored.find(self.name, missing).items():
                known[text] = self.cache.put((self.name, text), stored)
            missing = [text for text in missing if known[text] is None]
        if missing and self.only_known:
            raise ModelError(f"{len(missing)} texts are not embedded yet.")
        for start in range(0, len(missing), TEXTS_AT_ONCE):
            part = missing[start : start + TEXTS_AT_ONCE]
            for text, vector in zip(part, self.inner.embed(part), strict=True):
                known[text] = self.cache.put((self.name, text), vector)
            if self.progress is not None:
                self.progress(start + len(part), len(missing))
        return np.stack([vector for text in texts if (vector := known[text]) is not None])

    def knows(self, word: str) -> bool:
        return not isinstance(self.inner, Vocabulary) or self.inner.knows(word)
