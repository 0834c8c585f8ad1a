"""An embedder with a cache, so that an extractive answer over known chunks calls no model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ragfilter.basics.shelf import Shelf
from ragfilter.errors import ModelError
from ragfilter.protocols import Embedder, Progress, Vectors, Vocabulary

AT_ONCE = 32
"""Texts that are embedded and cached together."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """`inner`, with its vectors cached on `shelf`.

    With `only_known` the model is never called: an unknown text raises ModelError. `progress` is
    told of every few texts, and ends the work if it raises; what was embedded stays cached.
    """

    inner: Embedder
    shelf: Shelf[Vectors]
    only_known: bool = False
    progress: Progress | None = None

    @property
    def name(self) -> str:
        return self.inner.name

    def embed(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        known = {text: self.shelf.get((self.name, text)) for text in texts}
        missing = [text for text, vector in known.items() if vector is None]
        if missing and self.only_known:
            raise ModelError(f"{len(missing)} texts are not embedded yet.")
        progress = progress or self.progress
        for start in range(0, len(missing), AT_ONCE):
            part = missing[start : start + AT_ONCE]
            for text, vector in zip(part, self.inner.embed(part), strict=True):
                known[text] = self.shelf.put((self.name, text), vector)
            if progress is not None:
                progress(start + len(part), len(missing))
        return np.stack([vector for text in texts if (vector := known[text]) is not None])

    def knows(self, word: str) -> bool:
        return not isinstance(self.inner, Vocabulary) or self.inner.knows(word)
