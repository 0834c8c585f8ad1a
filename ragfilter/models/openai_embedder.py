"""Embeddings over the OpenAI protocol behind `protocols.Embedder`: ``openai:NAME``.

Source: docs/design.md#parts. Texts go to the endpoint that is configured for the LLM. Every call
has a deadline, and no part of the key is ever shown.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ragfilter.basics.threads import within
from ragfilter.errors import ChatError, ModelError, extra
from ragfilter.models.embedder import OPENAI
from ragfilter.models.endpoint import explain, read_endpoint, timed_out
from ragfilter.protocols import Vectors
from ragfilter.text.normalise import whole

with extra("openai"):
    import openai

BATCH = 64
MAX_CHARS = 20_000
"""Of one text; models read about 8,000 tokens, and refuse more."""
TIMEOUT_S = 60.0


class OpenAIEmbedder:
    """Unit vectors from an endpoint. Safe in threads; holds one HTTP client.

    Raises SettingsError for a base URL, key or model name that cannot be used.
    """

    def __init__(
        self, model: str, *, api_key: str = "", base_url: str = "", timeout_s: float = TIMEOUT_S
    ) -> None:
        """`model` is the endpoint's name of it; `timeout_s` bounds each call."""
        self._at = read_endpoint(model, api_key=api_key, base_url=base_url)
        self._timeout_s = timeout_s
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
        except TimeoutError:
            raise self._failed(timed_out(self._timeout_s)) from None
        except (AttributeError, TypeError, ValueError):
            raise self._unusable("no embeddings") from None
        except Exception as error:
            explained = explain(error, self._at, answered=False, timeout_s=self._timeout_s)
            raise self._failed(explained) from None
        if vectors.ndim != 2 or len(vectors) != len(batch):
            raise self._unusable(f"{len(vectors)} vectors for {len(batch)} texts")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(lengths).all() or not lengths.all():
            raise self._unusable("a vector that is zero or not finite")
        unit: Vectors = vectors / lengths
        return unit

    def _call(self, batch: list[str]) -> openai.types.CreateEmbeddingResponse:
        return self._client.embeddings.create(
            model=self._at.model, input=batch, encoding_format="float", timeout=self._timeout_s
        )

    def _failed(self, error: ChatError) -> ModelError:
        return ModelError(
            f"The embedding model {self.name} failed: {error.message}", remedy=error.remedy
        )

    def _unusable(self, what: str) -> ModelError:
        return ModelError(
            f"The endpoint gave {what} for the embedding model {self._at.model}.",
            remedy="Check that it serves /embeddings for this model; most base URLs end in /v1.",
        )
