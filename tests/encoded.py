"""Stores what the bundled model makes of texts in files for all processes of a run: workers and servers index the same
chunks, ask the same questions and rerank repeatedly."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from ragfilter.models.embedders import BundledEmbedder

Patch = Callable[[Any, str, Any], None]


def share_encodings(folder: Path, patch: Patch = setattr) -> None:
    """From now on, encode a text with the bundled model only if no process has done so."""
    folder.mkdir(exist_ok=True)
    encode = BundledEmbedder.tokens

    @functools.wraps(encode)
    def tokens(self: BundledEmbedder, texts: Sequence[str]) -> list[Any]:
        if not is_bundled(self):
            return encode(self, texts)
        files = {text: _file(folder, text) for text in texts}
        missing = [text for text, file in files.items() if not file.exists()]
        # The model is loaded only for a text that is new.
        for text, vectors in zip(missing, encode(self, missing) if missing else (), strict=True):
            _save(files[text], vectors)
        return [np.load(files[text]) for text in texts]

    patch(BundledEmbedder, "tokens", tokens)


def is_bundled(embedder: BundledEmbedder) -> bool:
    return embedder._folder is None


def _file(folder: Path, text: str) -> Path:
    return folder / f"{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}.npy"


def _save(file: Path, vectors: Any) -> None:
    """Save completely or not at all, since another process may read it at once."""
    part = file.with_name(f"{uuid4().hex}.npy")
    np.save(part, vectors)
    part.replace(file)
