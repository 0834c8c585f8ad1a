"""Rerankers behind one protocol: late interaction with the bundled model, and cross-encoders.

Source: Adaptive Retrieval System, "Reranker Integration"; docs/design.md#parts. Late interaction is
the sum of maximal similarities of ColBERT (Khattab and Zaharia, 2020), as a mean.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache

from ragfilter.basics.extras import extra
from ragfilter.basics.files import kind
from ragfilter.basics.threads import within
from ragfilter.errors import ModelError
from ragfilter.models.bundled import BundledEmbedder
from ragfilter.models.embedder import explain_failures, first_line, quiet_loading
from ragfilter.protocols import Vectors
from ragfilter.text.normalise import whole

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

# score = 1 / (1 + exp(-(SLOPE * s + OFFSET))), where s is the mean best cosine. Fitted on the first
# 20 hits of every other labelled query of Cranfield by benchmarks/fit_late_interaction.py; how well
# it works on the other half is in docs/tuning.md.
SLOPE = 10.8
OFFSET = -7.65

CACHE_BYTES = 128 * 1024 * 1024
BATCH = 32
REMEDY = "Choose another reranker, or none."

TokenVectors = npt.NDArray[np.float16]


class LateInteraction:
    """Mean over the query's tokens of the best cosine with a token of the chunk, as a probability.

    Token vectors of chunks are kept (by content, up to `cache_bytes`), so that a second query over
    the same chunks encodes only itself. Safe for threads.
    """

    def __init__(
        self, embedder: BundledEmbedder | None = None, *, cache_bytes: int = CACHE_BYTES
    ) -> None:
        """`embedder` lends its loaded model."""
        self._embedder = embedder or BundledEmbedder()
        self._cache: LRUCache[bytes, TokenVectors] = LRUCache(cache_bytes, lambda t: t.nbytes)
        self._guard = threading.Lock()

    @property
    def name(self) -> str:
        return "late_interaction"

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score (0..1) a text. Raises ModelError."""
        return [float(1 / (1 + np.exp(-(SLOPE * s + OFFSET)))) for s in self.raw(query, texts)]

    def raw(self, query: str, texts: Sequence[str]) -> list[float]:
        """The mean best cosine (-1..1) of each text, before it is mapped. Raises ModelError."""
        if not texts:
            return []
        # Without the two tokens that stand around every text; a chunk keeps its own, as a place
        # for query words that match nothing (measured: nDCG@10 0.538 on Cranfield either way).
        asked = self._encode([query])[0][1:-1]
        if not len(asked):
            return [0.0] * len(texts)
        return [
            float((asked @ chunk.astype(np.float32).T).max(axis=1).mean())
            for chunk in self._chunks(texts)
        ]

    def _chunks(self, texts: Sequence[str]) -> list[TokenVectors]:
        keys = [_content(text) for text in texts]
        with self._guard:
            vectors = {key: self._cache[key] for key in keys if key in self._cache}
        missing = {k: t for k, t in zip(keys, texts, strict=True) if k not in vectors}
        fresh = [tokens.astype(np.float16) for tokens in self._encode(list(missing.values()))]
        vectors.update(zip(missing, fresh, strict=True))
        with self._guard:
            for key in keys:
                # Not if they are larger than the whole cache.
                with suppress(ValueError):
                    self._cache[key] = vectors[key]
        return [vectors[key] for key in keys]

    def _encode(self, texts: list[str]) -> list[Vectors]:
        """Unit vectors of each text's tokens, shape (tokens, dimension)."""
        tokens = self._embedder.tokens(texts)
        return [t / np.maximum(np.linalg.norm(t, axis=1, keepdims=True), 1e-9) for t in tokens]


def _content(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


class CrossEncoderReranker:
    """A cross-encoder, its output through a sigmoid. Loaded on first use; safe for threads."""

    def __init__(self, model: str, *, fetch: bool = False, load_timeout_s: float = 300.0) -> None:
        """`model`: any sentence-transformers cross-encoder name or path.

        `fetch`: a name that is not on this machine may be fetched, once.
        """
        self._model = model
        self._offline = not fetch or kind(model) == "folder"
        self._load_timeout_s = load_timeout_s
        self._loading = threading.Lock()
        self._loaded: CrossEncoder | None = None

    @property
    def name(self) -> str:
        return f"cross_encoder:{self._model}"

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score (0..1) a text. Raises ModelError."""
        if not texts:
            return []
        model = self.model()
        try:
            import torch

            pairs = [(whole(query), whole(text)) for text in texts]
            scores = np.asarray(
                model.predict(
                    pairs,
                    batch_size=BATCH,
                    activation_fn=torch.nn.Sigmoid(),
                    show_progress_bar=False,
                ),
                dtype=np.float64,
            )
        except Exception as error:
            raise ModelError(
                f"The cross-encoder {self._model} failed: {first_line(error)}.", remedy=REMEDY
            ) from error
        if scores.shape != (len(texts),) or not np.isfinite(scores).all():
            raise ModelError(
                f"The cross-encoder {self._model} did not give one finite score per text.",
                remedy=REMEDY,
            )
        return [float(score) for score in scores]

    def model(self) -> CrossEncoder:
        """The loaded model. Raises ModelError, also if loading takes too long."""
        with self._loading:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> CrossEncoder:
        with explain_failures(
            "cross-encoder", self._model, offline=self._offline, owner="cross-encoder",
            instead="late_interaction",
        ):  # fmt: skip
            model: CrossEncoder = within(self._load_timeout_s, self._open)
            return model

    def _open(self) -> Any:
        # Imported here: torch takes seconds, and not every command needs it.
        with extra("models"):
            quiet_loading()
            from sentence_transformers import CrossEncoder

        model = CrossEncoder(self._model, device="cpu", local_files_only=self._offline)
        kinds = list(getattr(model.config, "architectures", None) or [])
        # Any other model is given a head of random weights, and would score at random.
        if not any(kind.endswith(("ForSequenceClassification", "ForCausalLM")) for kind in kinds):
            raise ModelError(
                f"{self._model} is not a cross-encoder ({', '.join(kinds) or 'unknown kind'}).",
                remedy="Use a cross-encoder's name or folder, or choose late_interaction.",
            )
        if model.num_labels != 1:
            raise ModelError(
                f"The cross-encoder {self._model} gives {model.num_labels} scores per text, "
                "not one.",
                remedy="Use a model with a single score.",
            )
        return model
