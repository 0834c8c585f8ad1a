"""Search a collection as one user (`Search`), in some files (`source_matcher`), also by words (`word_search`).

A search finds the same visible chunks as if the collection held only those. Without `push_down`, hidden chunks stay in
the list, for operators. If they crowd out visible chunks, the store is asked for more, so they change neither the
number of visible chunks found nor which ones. docs/design.md#replay and #file-filter.

A store can have its own search by words. Otherwise BM25 ranks only the texts that the user can see, because the
frequency of words in hidden chunks would reveal something about them."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import translate
from functools import lru_cache
from math import ceil, sqrt
from typing import Any

import numpy as np

from ragfilter.basics.threads import SharedCache
from ragfilter.errors import extra
from ragfilter.model import Chunk, Score, User, by_distance
from ragfilter.protocols import Catalogue, Collection, TextSearch, Vectors, Where
from ragfilter.text.shared_words import FUNCTION_WORDS, words_of

log = logging.getLogger(__name__)

Pairs = list[tuple[str, float]]

WIDER = 4
"""Retry with this many times as many results when hidden chunks crowd out visible ones. If there are still too few,
search all visible ids."""
DEVIATIONS = 2.5
"""How many standard deviations more hidden chunks than usual the first search allows for, since a second search costs
far more than the extra results."""
LEXICAL_DEPTH = 100
"""The number of hits of each search that are fused."""
RRF_K = 60


@dataclass(frozen=True, slots=True)
class Search:
    """Searches `collection` as `user`, only in these `files` (None: all).

    With `push_down`, the user's clearance is part of the store's own filter, and hidden chunks never leave the store.
    `known` holds chunks by id: the `catalogue` or, if there is none, what the searches found so far. `share` is the
    fraction of chunks that the user can see."""

    collection: Collection
    known: dict[str, Chunk]
    user: User
    files: tuple[str, ...] | None = None
    push_down: bool = False
    catalogue: Catalogue | None = None
    share: float = 1.0

    def is_visible(self, chunk_id: str) -> bool:
        """Whether the user can see the chunk. Chunks that are not known are hidden from a user."""
        if self.user.unrestricted:
            return True
        chunk = self.known.get(chunk_id)
        return chunk is not None and self.user.sees(chunk)

    def nearest(self, vector: Vectors, n: int) -> Pairs:
        """The `n` nearest chunks that the user can see and, unless `push_down`, the hidden ones
        among them; nearest first."""
        first = n
        if 0 < self.share < 1 and not self.push_down:
            # Each hit is visible with the probability `share`.
            first = ceil((n + DEVIATIONS * sqrt(n * (1 - self.share))) / self.share)
        pairs: Pairs = []
        for width in (min(first, WIDER * n), WIDER * n):
            pairs = self._remember(self.collection.nearest(vector, width, where=self._where()))
            places = [place for place, (i, _) in enumerate(pairs, start=1) if self.push_down or self.is_visible(i)]
            if len(places) >= min(n, len(pairs)):
                return pairs[: places[n - 1]] if len(places) >= n else pairs
        if self.catalogue is None:
            return pairs
        mine = self.among(vector, n, [i for i in self.known if self.is_visible(i)])
        pair_ids = {i for i, _ in pairs}
        both = [*pairs, *(pair for pair in mine if pair[0] not in pair_ids)]
        return both if self.collection.space == "rank" else sorted(both, key=by_distance)

    def among(self, vector: Vectors, n: int, ids: Sequence[str]) -> Pairs:
        """The `n` nearest of these ids."""
        return self.collection.nearest(vector, n, ids=ids, where=self._where())

    def by_rules(self, vector: Vectors, n: int, rules: tuple[str, ...]) -> Pairs:
        """The `n` nearest chunks that the user can see and that have no rule or one of these. The
        collection must support `DistinctRules`."""
        where = replace(self._where() or Where(), rules=rules)
        return self._remember(self.collection.nearest(vector, n, where=where))

    def _remember(self, pairs: Pairs) -> Pairs:
        if self.catalogue is None:
            self.known.update(self.collection.chunks([i for i, _ in pairs if i not in self.known]))
        return pairs

    def _where(self) -> Where | None:
        if self.push_down:
            return Where(self.user, self.files)
        return None if self.files is None else Where(sources=self.files)


_indexes: SharedCache[Any] = SharedCache(8)
"""BM25 of the texts, by collection, its version, and the ids that the user can see."""


def word_search(query: str, search: Search) -> Pairs:
    """Up to `LEXICAL_DEPTH` chunks that share words with the query and that the user can see: pairs
    (id, score), highest first, ties by id. Raises StoreError, DependencyError."""
    collection = search.collection
    if isinstance(collection, TextSearch):
        return collection.matching(query, LEXICAL_DEPTH, where=Where(search.user, search.files))
    if search.catalogue is None:
        log.warning("%s is too large to search by words", collection.name)
        return []
    ids = tuple(sorted(filter(search.is_visible, search.known)))
    words = [word for word in words_of(query) if word not in FUNCTION_WORDS]
    if not ids or not words:
        return []
    key = (collection.name, collection.version, ids)
    scores = _indexes.of(key, lambda: _index(ids, search)).get_scores(words)
    if search.files is not None:
        files = frozenset(search.files)
        scores = scores * [search.known[i].source in files for i in ids]
    best = np.argsort(-scores, kind="stable")[:LEXICAL_DEPTH]
    return [(ids[place], float(scores[place])) for place in best if scores[place] > 0]


def _index(ids: tuple[str, ...], search: Search) -> Any:
    with extra("chroma"):
        import bm25s

    # bm25s sets its logger to DEBUG.
    logging.getLogger("bm25s").setLevel(logging.NOTSET)
    chunks = search.collection.chunks(ids)
    index = bm25s.BM25()
    texts = [list(words_of(chunks[i].passage)) if i in chunks else [] for i in ids]
    index.index(texts, show_progress=False)
    return index


def fuse(dense: Sequence[str], lexical: Pairs) -> Mapping[str, Mapping[str, Score]]:
    """The ``lexical`` and ``fused`` scores of the chunks that either search found. `dense` are ids,
    nearest first. Source: Cormack, Clarke and Büttcher, "Reciprocal rank fusion", 2009."""
    points: dict[str, float] = {}
    for ids in (dense[:LEXICAL_DEPTH], [i for i, _ in lexical]):
        for rank, i in enumerate(ids, start=1):
            points[i] = points.get(i, 0.0) + 1 / (RRF_K + rank)
    order = sorted(points, key=lambda i: (-points[i], i))
    scores = {i: {"fused": Score(points[i], "rank", n)} for n, i in enumerate(order, start=1)}
    for rank, (i, score) in enumerate(lexical, start=1):
        scores[i]["lexical"] = Score(score, "rank", rank)
    return scores


@lru_cache(maxsize=64)
def source_matcher(pattern: str) -> Callable[[str], bool]:
    """A predicate for sources. The empty pattern matches every source, even an empty one."""
    wanted = _name(pattern.strip())
    if not wanted:
        return lambda source: True
    if not any(mark in wanted for mark in "*?["):
        return lambda source: wanted in _name(source)
    whole = re.compile(translate(wanted))

    def matches(source: str) -> bool:
        name = _name(source)
        return bool(whole.match(name) or whole.match(name.rpartition("/")[2]))

    return matches


def _name(source: str) -> str:
    return source.replace("\\", "/").casefold()
