"""all-MiniLM-L6-v2 in onnxruntime. Its first vector takes a fraction of a second; importing torch
and sentence-transformers would take several.

The graph has no weights, which come from the package of the model (docs/decisions/0020).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from ragfilter.basics.extras import extra
from ragfilter.protocols import Vectors

GRAPH = Path(__file__).with_name("minilm.onnx")
"""Written by `scripts/minilm_graph.py`."""
DIMENSION = 384
MOST_TOKENS = 256
"""What the model reads of a text, its two marks included."""
BATCH_TOKENS = 512
"""Texts are computed together up to this many tokens, since more leave the caches."""
UNUSED = {"embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias"}
"""Tensors of the file on which the vectors of tokens do not depend."""
ERRORS_ONLY = 3
"""A severity of onnxruntime's log, which goes to standard error."""
_turns = threading.BoundedSemaphore(os.cpu_count() or 1)
"""Held for each batch of a longer call: in the whole process, no more batches than cores."""


class MiniLM:
    """The model. Safe for threads."""

    def __init__(self, weights: bytes, tokenizer: Path) -> None:
        """`weights` is what `model.safetensors` holds; `tokenizer` is the file `tokenizer.json`."""
        # By default, onnxruntime reports its use to its maker. It reads this once, while imported.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        with extra("models"):
            import onnxruntime
            from safetensors.numpy import load
            from tokenizers import Tokenizer

        read = {
            name: onnxruntime.OrtValue.ortvalue_from_numpy(weight)
            for name, weight in load(weights).items()
            if name not in UNUSED
        }
        options = onnxruntime.SessionOptions()
        options.add_external_initializers(list(read), list(read.values()))
        # Pools of threads spin while they wait. Instead, batches are computed beside each other.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = ERRORS_ONLY
        self._session = onnxruntime.InferenceSession(
            GRAPH.read_bytes(), options, providers=["CPUExecutionProvider"]
        )
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
        batches = _batches(ids)
        found: dict[int, Vectors] = {}
        pool = ThreadPoolExecutor(os.cpu_count())
        try:
            inputs = [[ids[i] for i in batch] for batch in batches]
            many = len(inputs) > 1
            made = pool.map(self._in_turn, inputs) if many else map(self._computed, inputs)
            for batch, vectors in zip(batches, made, strict=True):
                found |= zip(batch, vectors, strict=True)
                told(len(found))
        finally:
            pool.shutdown(cancel_futures=True)
        return [found[i] for i in range(len(texts))]

    def _in_turn(self, ids: list[list[int]]) -> Vectors:
        with _turns:
            return self._computed(ids)

    def _computed(self, ids: list[list[int]]) -> Vectors:
        """The vectors of texts of the same length, given as the numbers of their tokens, shape
        (texts, tokens, 384)."""
        (vectors,) = self._session.run(None, {"ids": np.array(ids, dtype=np.int64)})
        # onnxruntime never gives back the memory that its results take, much after a long call.
        copied: Vectors = vectors.copy()
        return copied


def _batches(ids: list[list[int]]) -> list[list[int]]:
    """The places of texts of the same length, as many in a batch as have BATCH_TOKENS tokens
    together."""
    by_length: dict[int, list[int]] = {}
    for i, each in enumerate(ids):
        by_length.setdefault(len(each), []).append(i)
    return [
        places[start : start + BATCH_TOKENS // length]
        for length, places in by_length.items()
        for start in range(0, len(places), BATCH_TOKENS // length)
    ]
