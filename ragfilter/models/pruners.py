"""The bundled pruner, which scores pieces by sentence vectors.

A piece is worth as much as its best sentence or row: the cosine with the question, increased by the share of the
question's words and numbers that it contains. The neighbours of a piece get a share of its value, since "It lasts an
hour." needs its neighbour."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ragfilter.protocols import Embedder, PrunePassage
from ragfilter.text.sentences import passages_of
from ragfilter.text.shared_words import FUNCTION_WORDS, words_of

SHARED = 0.5
"""The increase for a piece that contains all words and numbers of the question."""
NEAR = 0.85
"""The share of its value that a piece gives to its neighbours."""


class SentencePruner:
    """Rates pieces by the sentence vectors of `embedder`. Thread-safe if the embedder is."""

    name = "sentences"

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def contributions(self, query: str, passages: Sequence[PrunePassage]) -> list[tuple[float, ...]]:
        """One value (0..1) for each piece of each passage. Raises ModelError."""
        read = [[passages_of(p.title, piece) for piece in p.pieces] for p in passages]
        texts = list(dict.fromkeys(t for one in read for units in one for t in units))
        if not texts:
            return [(0.0,) * len(p.pieces) for p in passages]
        vectors = self._embedder.embed([query, *texts])
        near = dict(zip(texts, (vectors[1:] @ vectors[0]).tolist(), strict=True))
        question_words = frozenset(words_of(query)) - FUNCTION_WORDS
        values = []
        for passage, units_of in zip(passages, read, strict=True):
            contributions = [
                max((near[t] for t in units), default=0.0) + SHARED * _share(question_words, piece)
                for piece, units in zip(passage.pieces, units_of, strict=True)
            ]
            values.append(tuple(float(np.clip(v, 0.0, 1.0)) for v in _with_neighbours(contributions)))
        return values


def _share(question_words: frozenset[str], piece: str) -> float:
    shared = len(question_words.intersection(words_of(piece)))
    return shared / len(question_words) if shared else 0.0


def _with_neighbours(values: Sequence[float]) -> list[float]:
    around = [0.0, *values, 0.0]
    return [max(v, NEAR * max(around[i], around[i + 2])) for i, v in enumerate(values)]
