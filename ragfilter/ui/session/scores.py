"""A reranker that calls the real one only for texts without a cached score for the query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from ragfilter.basics.shelf import Shelf
from ragfilter.protocols import Reranker

Key = tuple[str, str, str]


def key(reranker: str, query: str, text: str) -> Key:
    """The key of a score: the reranker, the query, and a hash of the text."""
    return reranker, query, blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Remembering:
    """`inner`, with its scores cached on `shelf`. Raises ModelError as `inner` does."""

    inner: Reranker
    name: str
    shelf: Shelf[float]

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        keys = [key(self.name, query, text) for text in texts]
        known = {k: self.shelf.get(k) for k in keys}
        missing = [(k, t) for k, t in zip(keys, texts, strict=True) if known[k] is None]
        if missing:
            fresh = self.inner.score(query, [text for _, text in missing])
            for (k, _), score in zip(missing, fresh, strict=True):
                known[k] = self.shelf.put(k, score)
        return [value for k in keys if (value := known[k]) is not None]
