"""Stores the bundled model's encodings in files for all processes of a run: workers and servers ask
the same questions and rerank the same chunks repeatedly."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from ragfilter.models.embedders import BundledEmbedder
from ragfilter.models.rerankers import LateInteraction

Patch = Callable[[Any, str, Any], None]


def share_encodings(folder: Path, patch: Patch = setattr) -> None:
    """From now on, encode a text with the bundled model only if no process has done so."""
    folder.mkdir(exist_ok=True)
    embed, interact = BundledEmbedder.embed, LateInteraction._encode

    @functools.wraps(embed)
    def embedded(self: BundledEmbedder, texts: Sequence[str]) -> Any:
        if not is_bundled(self):
            return embed(self, texts)
        file = _file(folder, "batch", *texts)
        if not file.exists():
            _save(file, embed(self, texts))
        return np.load(file)

    @functools.wraps(interact)
    def interacting(self: LateInteraction, texts: list[str]) -> list[Any]:
        # A test's own embedder counts what it is asked for.
        if type(self._embedder) is not BundledEmbedder or not is_bundled(self._embedder):
            return interact(self, texts)
        files = {text: _file(folder, "tokens", text) for text in texts}
        missing = [text for text, file in files.items() if not file.exists()]
        for text, vectors in zip(missing, interact(self, missing), strict=True):
            _save(files[text], vectors)
        return [np.load(files[text]) for text in texts]

    patch(BundledEmbedder, "embed", embedded)
    patch(LateInteraction, "_encode", interacting)


def is_bundled(embedder: BundledEmbedder) -> bool:
    return embedder._folder is None


def _file(folder: Path, *parts: str) -> Path:
    name = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
    return folder / f"{name}.npy"


def _save(file: Path, vectors: Any) -> None:
    """Save completely or not at all, since another process may read it at once."""
    part = file.with_name(f"{uuid4().hex}.npy")
    np.save(part, vectors)
    part.replace(file)
