"""An embedder with a cache, so that an extractive answer over known chunks calls no model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ragfilter.basics.shelf import Shelf
from ragfilter.errors import ModelError
from ragfilter.protocols import Embedder, Progress, Vectors, Vocabulary


@dataclass(frozen=True, slots=True)
class Remembered:
    """`inner`, with its vectors cached on `shelf`.

    With `only_known` the model is never called: an unknown text raises ModelError.
    """

    inner: Embedder
    shelf: Shelf[Vectors]
    only_known: bool = False

    @property
    def name(self) -> str:
        return self.inner.name

    def embed(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        known = {text: self.shelf.get((self.name, text)) for text in texts}
        missing = [text for text, vector in known.items() if vector is None]
        if missing and self.only_known:
            raise ModelError(f"{len(missing)} texts are not embedded yet.")
        if missing:
            for text, vector in zip(missing, self.inner.embed(missing, progress), strict=True):
                known[text] = self.shelf.put((self.name, text), vector)
        return np.stack([vector for text in texts if (vector := known[text]) is not None])

    def knows(self, word: str) -> bool:
        return not isinstance(self.inner, Vocabulary) or self.inner.knows(word)
