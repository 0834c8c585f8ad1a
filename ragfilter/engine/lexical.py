"""Lexical search, fused with the vector search by reciprocal ranks.

A store may have a text search of its own. Otherwise BM25 ranks the texts that the user may see, and
no others: how rare a word is among hidden chunks would tell of them.

Source: Cormack, Clarke and Büttcher, "Reciprocal rank fusion", 2009, with its constant.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ragfilter.basics.extras import extra
from ragfilter.basics.threads import Shelf
from ragfilter.engine.search import Pairs, Search
from ragfilter.model import Score
from ragfilter.protocols import TextSearch, Where
from ragfilter.text.words import FUNCTION_WORDS, tokens

log = logging.getLogger(__name__)

DEPTH = 100
"""How many hits of each search are fused."""
RRF_K = 60


@dataclass(frozen=True, slots=True)
class TextIndex:
    """The texts of these chunks, ready to be searched."""

    ids: tuple[str, ...]
    bm25: Any


_indexes: Shelf[TextIndex] = Shelf(8)
"""By collection, its version, and what the user may see."""


def find(query: str, search: Search) -> Pairs:
    """Up to `DEPTH` chunks that share words with the query and that the user may see: id and score,
    highest first, equal ones by id. Raises StoreError, DependencyError."""
    collection = search.collection
    if isinstance(collection, TextSearch):
        return collection.matching(query, DEPTH, where=Where(search.user, search.files))
    if search.learned is not None:
        log.warning("%s is too large to be searched by words", collection.name)
        return []
    ids = tuple(sorted(filter(search.seen, search.known)))
    words = [word for word in tokens(query) if word not in FUNCTION_WORDS]
    if not ids or not words:
        return []
    key = (collection.name, collection.version, ids)
    index = _indexes.of(key, lambda: _index(ids, search))
    scores = index.bm25.get_scores(words)
    if search.files is not None:
        files = frozenset(search.files)
        scores = scores * [search.known[i].source in files for i in ids]
    best = np.argsort(-scores, kind="stable")[:DEPTH]
    return [(ids[place], float(scores[place])) for place in best if scores[place] > 0]


def _index(ids: tuple[str, ...], search: Search) -> TextIndex:
    with extra("chroma"):
        import bm25s

    chunks = search.collection.chunks(ids)
    bm25 = bm25s.BM25()
    texts = [list(tokens(chunks[i].passage)) if i in chunks else [] for i in ids]
    bm25.index(texts, show_progress=False)
    return TextIndex(ids, bm25)


def fused(dense: Sequence[str], lexical: Pairs) -> Mapping[str, Mapping[str, Score]]:
    """The named scores of what either search found: ``lexical`` and ``fused``. `dense` are ids,
    nearest first."""
    points: dict[str, float] = {}
    for ids in (dense[:DEPTH], [i for i, _ in lexical]):
        for rank, i in enumerate(ids, start=1):
            points[i] = points.get(i, 0.0) + 1 / (RRF_K + rank)
    order = sorted(points, key=lambda i: (-points[i], i))
    scores = {i: {"fused": Score(points[i], "rank", n)} for n, i in enumerate(order, start=1)}
    for rank, (i, score) in enumerate(lexical, start=1):
        scores[i]["lexical"] = Score(score, "rank", rank)
    return scores
