"""all-MiniLM-L6-v2 in numpy, as read from its files. Its first vector takes a fraction of a second,
of which torch and sentence-transformers would need several to be imported.

Source: BERT (Devlin et al., 2019), whose encoder it is; docs/design.md#parts.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ragfilter.basics.extras import extra
from ragfilter.protocols import Vectors

DIMENSION = 384
LAYERS = 6
HEADS = 12
MOST_TOKENS = 256
"""What the model reads of a text, its two marks included."""
EPSILON = 1e-12


class MiniLM:
    """The model. Safe for threads."""

    def __init__(self, weights: bytes, tokenizer: Path) -> None:
        """`weights` is what `model.safetensors` holds; `tokenizer` is the file `tokenizer.json`."""
        with extra("models"):
            from safetensors.numpy import load
            from tokenizers import Tokenizer

        self._weights = load(weights)
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MOST_TOKENS)

    def knows(self, word: str) -> bool:
        """Whether `word` is one token."""
        return self._tokenizer.token_to_id(word) is not None

    def tokens(self, text: str) -> Vectors:
        """A vector for each token of `text`, shape (tokens, 384). The first and the last one belong
        to the marks that stand around every text."""
        # One text at a time: padded to a common length, many take longer together.
        ids = self._tokenizer.encode(text).ids
        words, places, kind = (
            self._weights[f"embeddings.{part}_embeddings.weight"]
            for part in ("word", "position", "token_type")
        )
        x = self._normed(words[ids] + places[: len(ids)] + kind[0], "embeddings")
        for n in range(LAYERS):
            layer = f"encoder.layer.{n}"
            attended = self._dense(self._attention(x, layer), f"{layer}.attention.output.dense")
            x = self._normed(x + attended, f"{layer}.attention.output")
            inner = _gelu(self._dense(x, f"{layer}.intermediate.dense"))
            x = self._normed(x + self._dense(inner, f"{layer}.output.dense"), f"{layer}.output")
        return x

    def _attention(self, x: Vectors, layer: str) -> Vectors:
        query, key, value = (
            self._dense(x, f"{layer}.attention.self.{part}")
            .reshape(len(x), HEADS, DIMENSION // HEADS)
            .transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / np.float32((DIMENSION // HEADS) ** 0.5)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        heads: Vectors = (weights @ value).transpose(1, 0, 2)
        return heads.reshape(len(x), DIMENSION)

    def _dense(self, x: Vectors, name: str) -> Vectors:
        result: Vectors = x @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        return result

    def _normed(self, x: Vectors, name: str) -> Vectors:
        """Every row with mean 0 and variance 1, then scaled and moved as the model learned."""
        centred = x - x.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + EPSILON)
        scale, shift = (self._weights[f"{name}.LayerNorm.{part}"] for part in ("weight", "bias"))
        result: Vectors = centred / spread * scale + shift
        return result


def _gelu(x: Vectors) -> Vectors:
    """x times the share of a normal distribution below x.

    numpy has no error function; this one (Abramowitz and Stegun, 7.1.26) is exact to 2e-7.
    """
    z: Vectors = np.abs(x) * np.float32(2**-0.5)
    t: Vectors = np.reciprocal(1 + np.float32(0.3275911) * z)
    tail = np.zeros_like(x)
    for factor in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail = (tail + np.float32(factor)) * t
    result: Vectors = x * (1 + np.copysign(1 - tail * np.exp(-z * z), x)) / 2
    return result
