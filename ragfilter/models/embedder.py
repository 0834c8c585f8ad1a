"""Embedding models behind `protocols.Embedder`: of sentence-transformers, and how its models are
loaded, and ``openai:NAME`` over the OpenAI protocol.

No network is used at run time, unless the user asks for it. Texts go to the endpoint that is
configured for the LLM; every call has a deadline, and no part of the key is ever shown. Source:
docs/design.md#parts.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ragfilter.basics.files import kind
from ragfilter.basics.threads import within
from ragfilter.errors import DependencyError, ModelError, extra
from ragfilter.models.bundled import BUNDLED, CHARS_PER_TOKEN
from ragfilter.protocols import Vectors
from ragfilter.text.normalise import whole

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

OPENAI = "openai:"
"""Begins the name of a model that is asked over the OpenAI protocol."""
BATCH = 64
MAX_CHARS = 20_000
"""Of one text for an endpoint; models read about 8,000 tokens, and refuse more."""
TIMEOUT_S = 60.0


class SentenceEmbedder:
    """Unit vectors from a sentence-transformers model. Loaded on first use; safe for threads."""

    def __init__(self, model: str, *, fetch: bool = False) -> None:
        """`model`: any sentence-transformers name or path.

        `fetch`: a name that is not on this machine may be fetched, once.
        """
        self._model = model
        self._offline = not fetch or kind(model) == "folder"
        self._loading = threading.Lock()
        self._loaded: SentenceTransformer | None = None

    @property
    def name(self) -> str:
        return self._model

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors (float32) of `texts`, shape (len(texts), dimension); text is cut at the
        model's own length. Raises ModelError."""
        model = self.model()
        clean = [clean_text(text, model) for text in texts]
        # Longest first wastes least padding; the order is restored below.
        order = sorted(range(len(clean)), key=lambda i: -len(clean[i]))
        vectors = np.zeros((len(clean), _dimension(model)), dtype=np.float32)
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            vectors[batch] = self._encode(model, [clean[i] for i in batch])
        return vectors

    def knows(self, word: str) -> bool:
        """Whether `word` is one token of the model. Raises ModelError."""
        tokens = self.model().tokenizer
        # How the common tokenisers mark the beginning of a word.
        ids = tokens.convert_tokens_to_ids([mark + word for mark in ("", "▁", "Ġ")])
        return any(i not in (None, tokens.unk_token_id) for i in ids)

    def prepare(self) -> None:
        """Load the model now. Raises ModelError."""
        self.model()

    def model(self) -> SentenceTransformer:
        """The loaded model. Raises ModelError."""
        with self._loading:
            if self._loaded is None:
                self._loaded = load_model(self._model, offline=self._offline)
            return self._loaded

    def _encode(self, model: SentenceTransformer, texts: list[str]) -> Vectors:
        try:
            vectors = np.asarray(
                model.encode(
                    texts,
                    batch_size=BATCH,
                    normalize_embeddings=True,
                    convert_to_numpy=True,
                    show_progress_bar=False,
                ),
                dtype=np.float32,
            )
        except Exception as error:
            raise ModelError(
                f"The embedding model {self._model} failed: {error}.",
                remedy="Check the model, or use the bundled one.",
            ) from error
        if not np.isfinite(vectors).all():
            raise ModelError(
                f"The embedding model {self._model} gave a vector that is not finite.",
                remedy="Check the model, or use the bundled one.",
            )
        return vectors


class OpenAIEmbedder:
    """Unit vectors from an endpoint. Safe in threads; holds one HTTP client.

    Raises SettingsError for a base URL, key or model name that cannot be used.
    """

    def __init__(
        self, model: str, *, api_key: str = "", base_url: str = "", timeout_s: float = TIMEOUT_S
    ) -> None:
        """`model` is the endpoint's name of it; `timeout_s` bounds each call."""
        # Imported here: only those who ask an endpoint need its packages.
        with extra("openai"):
            import openai

            from ragfilter.models import endpoint
        self._at = endpoint.read_endpoint(model, api_key=api_key, base_url=base_url)
        self._timeout_s = timeout_s
        self._endpoint = endpoint
        # The texts go to no other address.
        http_client = openai.DefaultHttpxClient(follow_redirects=False)
        self._client = self._at.client(http_client=http_client)

    @property
    def name(self) -> str:
        return f"{OPENAI}{self._at.model}"

    def prepare(self) -> None:
        """Nothing has to be loaded."""

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors (float32) of `texts`, shape (len(texts), dimension). Raises ModelError."""
        parts: list[Vectors] = []
        for start in range(0, len(texts), BATCH):
            batch = [whole(text[:MAX_CHARS]) or " " for text in texts[start : start + BATCH]]
            parts.append(self._ask(batch))
        try:
            return np.concatenate(parts) if parts else np.zeros((0, 0), dtype=np.float32)
        except ValueError:
            raise self._unusable("vectors of different lengths") from None

    def _ask(self, batch: list[str]) -> Vectors:
        try:
            answer = within(self._timeout_s, lambda: self._call(batch))
            rows = sorted(answer.data, key=lambda row: row.index)
            vectors = np.asarray([row.embedding for row in rows], dtype=np.float32)
        except (AttributeError, TypeError, ValueError):
            raise self._unusable("no embeddings") from None
        except Exception as error:
            late = isinstance(error, TimeoutError)
            why = (
                self._endpoint.timed_out(self._timeout_s) if late
                else self._endpoint.explain(
                    error, self._at, answered=False, timeout_s=self._timeout_s)
            )  # fmt: skip
            raise ModelError(
                f"The embedding model {self.name} failed: {why.message}", remedy=why.remedy
            ) from None
        if vectors.ndim != 2 or len(vectors) != len(batch):
            raise self._unusable(f"{len(vectors)} vectors for {len(batch)} texts")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise self._unusable("a vector that is zero or not finite")
        unit: Vectors = vectors / lengths
        return unit

    def _call(self, batch: list[str]) -> Any:
        return self._client.embeddings.create(
            model=self._at.model, input=batch, encoding_format="float", timeout=self._timeout_s
        )

    def _unusable(self, what: str) -> ModelError:
        return ModelError(
            f"The endpoint gave {what} for the embedding model {self._at.model}.",
            remedy="Check that it serves /embeddings for this model; most base URLs end in /v1.",
        )


def load_model(name: str, *, offline: bool) -> SentenceTransformer:
    """The sentence-transformers model `name` on the CPU. Raises ModelError, DependencyError.

    Code that comes with a model is never run (`trust_remote_code` stays off).
    """
    with explain_failures(
        "embedding model", name, offline=offline, owner="sentence-transformers", instead=BUNDLED
    ):
        # Imported here: torch takes seconds, and not every command needs it.
        with extra("models"):
            quiet_loading()
            from sentence_transformers import SentenceTransformer

        return SentenceTransformer(name, device="cpu", local_files_only=offline)


def clean_text(text: str, model: SentenceTransformer) -> str:
    """`text` as a tokenizer takes it: no lone surrogates, and no longer than the model can read."""
    most = CHARS_PER_TOKEN * int(model.max_seq_length or 512)
    return whole(text[:most])


def _dimension(model: Any) -> int:
    get = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
    return int(get())


def quiet_loading() -> None:
    """Keep loading bars off standard error, telemetry off the network, and torch off more cores
    than there are or others need. Call it before sentence-transformers is imported."""
    # The hub's client reports at its first use, even if it only looks for files.
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    # Torch's threads wait for each other many times a text. By default they spin meanwhile, and
    # where something else needs a core, such as the browser that waits for the answer, embedding
    # a question takes ten times as long. OpenMP reads this once, while torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import torch
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    cores = os.cpu_count() or 1
    if torch.get_num_threads() > cores:
        torch.set_num_threads(cores)


@contextmanager
def explain_failures(
    kind: str, name: str, *, offline: bool, owner: str, instead: str
) -> Iterator[None]:
    """Raises ModelError where the `kind` of model called `name` cannot be loaded.

    Names without an owner belong to `owner`, and `instead` needs no fetching.
    """
    try:
        yield
    except (DependencyError, ModelError):
        raise
    except Exception as error:
        from huggingface_hub.errors import LocalEntryNotFoundError

        if offline and isinstance(error.__cause__, LocalEntryNotFoundError):
            full = name if "/" in name else f"{owner}/{name}"
            raise ModelError(
                f"The {kind} {name} is not installed on this machine.",
                remedy=f"Fetch it once with `hf download {full}`, let ragfilter fetch it with "
                f"RAGFILTER_FETCH_MODELS=true, or choose {instead}.",
            ) from error
        raise ModelError(
            f"The {kind} {name} cannot be loaded: {first_line(error)}.",
            remedy=f"Use the name or folder of a {owner} model, or choose {instead}.",
        ) from error


def first_line(error: BaseException) -> str:
    """The first line of an error's text, without a full stop at its end."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:300].rstrip(".")
