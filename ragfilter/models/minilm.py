"""all-MiniLM-L6-v2 in numpy, as read from its files. Its first vector takes a fraction of a second,
of which torch and sentence-transformers would need several to be imported.

Matrices are multiplied in blocks that are too small for BLAS to divide among its threads. These
wait for each other by spinning, which takes several times the CPU time where something else runs,
and their number can only be set for the whole process, which belongs to the caller. Instead, texts
are computed beside each other.

Source: BERT (Devlin et al., 2019), whose encoder it is; docs/design.md#parts.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
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

ROWS, COLUMNS = 32, 16
"""Of a block of a product, whose depth is DIMENSION. OpenBLAS uses one thread below 2**18
multiplications (`interface/gemm.c`)."""
ATTENDING = 16
"""How many tokens attend to all others at once, for the same reason."""
GROUP_TOKENS = 512
"""Texts are computed together up to this many tokens, since more leave the caches."""
_turns = threading.BoundedSemaphore(os.cpu_count() or 1)
"""Held for each group of a longer call: in the whole process, no more groups than cores."""


class MiniLM:
    """The model. Safe for threads."""

    def __init__(self, weights: bytes, tokenizer: Path) -> None:
        """`weights` is what `model.safetensors` holds; `tokenizer` is the file `tokenizer.json`."""
        with extra("models"):
            from safetensors.numpy import load
            from tokenizers import Tokenizer

        read = load(weights)
        self._blocks = {
            name: _blocks(read.pop(name))
            for name in list(read)
            if name.startswith("encoder.") and read[name].ndim == 2
        }
        self._weights = read
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MOST_TOKENS)

    def knows(self, word: str) -> bool:
        """Whether `word` is one token."""
        return self._tokenizer.token_to_id(word) is not None

    def tokens(
        self, texts: Sequence[str], told: Callable[[int], None] = lambda done: None
    ) -> list[Vectors]:
        """A vector for each token of each text, shape (tokens, 384). The first and the last one of
        a text belong to the marks that stand around it. `told` is called with the number of texts
        that are done, and ends the work if it raises.

        A call of few tokens, such as a question, is computed at once. Longer ones share the cores.
        """
        ids = [self._tokenizer.encode(text).ids for text in texts]
        groups = _groups(ids)
        found: list[Vectors] = []
        pool = ThreadPoolExecutor(os.cpu_count())
        try:
            many = len(groups) > 1
            for vectors in pool.map(self._in_turn, groups) if many else map(self._computed, groups):
                found += vectors
                told(len(found))
        finally:
            pool.shutdown(cancel_futures=True)
        return found

    def _in_turn(self, group: list[list[int]]) -> list[Vectors]:
        with _turns:
            return self._computed(group)

    def _computed(self, group: list[list[int]]) -> list[Vectors]:
        """The vectors of texts, given as the numbers of their tokens, whose rows lie below each
        other."""
        words, places, kind = (
            self._weights[f"embeddings.{part}_embeddings.weight"]
            for part in ("word", "position", "token_type")
        )
        ends = list(accumulate(len(ids) for ids in group))
        parts = [slice(end - len(ids), end) for ids, end in zip(group, ends, strict=True)]
        x = np.zeros((-(-ends[-1] // ROWS) * ROWS, DIMENSION), dtype=np.float32)
        for ids, part in zip(group, parts, strict=True):
            x[part] = words[ids] + places[: len(ids)]
        x = self._normed(x + kind[0], "embeddings")
        for n in range(LAYERS):
            layer = f"encoder.layer.{n}"
            attended = self._dense(self._attention(x, parts, layer), f"{layer}.attention.output")
            x = self._normed(np.add(x, attended, out=x), f"{layer}.attention.output")
            inner = _gelu(self._dense(x, f"{layer}.intermediate"))
            x = self._normed(x + self._dense(inner, f"{layer}.output"), f"{layer}.output")
        return [x[part] for part in parts]

    def _attention(self, x: Vectors, parts: list[slice], layer: str) -> Vectors:
        """Each token's mean of the values of its own text, weighted by how well its query fits
        their keys."""
        width = DIMENSION // HEADS
        query, key, value = (
            self._dense(x, f"{layer}.attention.self.{part}", "")
            .reshape(len(x), HEADS, width)
            .transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        query *= np.float32(width**-0.5)
        found = np.zeros_like(x)
        heads = found.reshape(len(x), HEADS, width).transpose(1, 0, 2)
        for part in parts:
            keys = np.ascontiguousarray(key[:, part].transpose(0, 2, 1))
            for start in range(part.start, part.stop, ATTENDING):
                rows = slice(start, min(start + ATTENDING, part.stop))
                weights = query[:, rows] @ keys
                weights -= weights.max(axis=-1, keepdims=True)
                np.exp(weights, out=weights)
                total = weights.sum(axis=-1, keepdims=True)
                np.divide(weights @ value[:, part], total, out=heads[:, rows])
        return found

    def _dense(self, x: Vectors, name: str, dense: str = ".dense") -> Vectors:
        blocks = self._blocks[f"{name}{dense}.weight"]
        depths, across = blocks.shape[:2]
        down = len(x) // ROWS
        products = np.empty((depths, len(x), across * COLUMNS), dtype=np.float32)
        np.matmul(
            x.reshape(down, ROWS, depths, DIMENSION).transpose(2, 0, 1, 3)[:, None],
            blocks[:, :, None],
            out=products.reshape(depths, down, ROWS, across, COLUMNS).transpose(0, 3, 1, 2, 4),
        )
        found: Vectors = products[0]
        for product in products[1:]:
            found += product
        found += self._weights[f"{name}{dense}.bias"]
        return found

    def _normed(self, x: Vectors, name: str) -> Vectors:
        """Every row with mean 0 and variance 1, then scaled and moved as the model learned; in
        place."""
        x -= x.mean(axis=-1, keepdims=True)
        x /= np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + np.float32(EPSILON))
        x *= self._weights[f"{name}.LayerNorm.weight"]
        x += self._weights[f"{name}.LayerNorm.bias"]
        return x


def _groups(ids: list[list[int]]) -> list[list[list[int]]]:
    """Texts in order, as many in a group as have GROUP_TOKENS tokens together."""
    groups: list[list[list[int]]] = []
    room = 0
    for each in ids:
        if len(each) > room:
            groups.append([])
            room = GROUP_TOKENS
        groups[-1].append(each)
        room -= len(each)
    return groups


def _blocks(weights: Vectors) -> Vectors:
    """The weights of a dense layer, shape (outputs, inputs), as blocks of (inputs / DIMENSION,
    outputs / COLUMNS, DIMENSION, COLUMNS)."""
    cut = weights.reshape(-1, COLUMNS, weights.shape[1] // DIMENSION, DIMENSION)
    return np.ascontiguousarray(cut.transpose(2, 0, 3, 1))


def _gelu(x: Vectors) -> Vectors:
    """x times the share of a normal distribution below x; in place, a few rows at a time, which
    stay in the cache.

    numpy has no error function; this one (Abramowitz and Stegun, 7.1.26) is exact to 2e-7.
    """
    for start in range(0, len(x), ATTENDING):
        rows = x[start : start + ATTENDING]
        z = np.abs(rows)
        z *= np.float32(2**-0.5)
        t = z * np.float32(0.3275911)
        t += np.float32(1)
        np.reciprocal(t, out=t)
        tail = t * np.float32(1.061405429)
        for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
            tail += np.float32(factor)
            tail *= t
        np.square(z, out=z)
        np.negative(z, out=z)
        tail *= np.exp(z, out=z)
        np.subtract(np.float32(1), tail, out=tail)
        np.copysign(tail, rows, out=tail)
        tail += np.float32(1)
        tail *= np.float32(0.5)
        rows *= tail
    return x
