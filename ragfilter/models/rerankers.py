"""Rerankers behind one protocol: late interaction with the bundled model, cross-encoders, and any
endpoint that answers ``/rerank``: Cohere, Jina, vLLM, TEI.

Source: Adaptive Retrieval System, "Reranker Integration"; docs/design.md#parts. Late interaction is ColBERT's sum of
maximum similarities (Khattab and Zaharia, 2020), as a mean. Texts are sent to no other address, and the key appears in
no message, log line or repr. Scores from an endpoint stay as they are, on any scale."""

from __future__ import annotations

import hashlib
import json
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ragfilter.basics.files import kind
from ragfilter.basics.threads import SharedCache, within
from ragfilter.errors import ChatError, ModelError, SettingsError, extra
from ragfilter.models.embedders import BundledEmbedder, LazyModel, explain_failures, first_line, quiet_loading
from ragfilter.protocols import Vectors
from ragfilter.text.normalise import mend_characters
from ragfilter.text.numbers import counted, money
from ragfilter.text.urls import shown, web_address

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

# score = 1 / (1 + exp(-(SLOPE * s + OFFSET))), where s is the mean best cosine. Fitted on the first
# 20 hits of every other labelled query of Cranfield by benchmarks/fit_late_interaction.py;
# docs/tuning.md shows how well it works on the other half.
SLOPE = 10.8
OFFSET = -7.65

CACHE_BYTES = 128 * 1024 * 1024
BATCH = 32
REMEDY = "Choose another reranker, or none."

log = logging.getLogger(__name__)

TokenVectors = npt.NDArray[np.float16]


class LateInteraction:
    """The mean, over the query's tokens, of the best cosine with a chunk's token, as a probability. Thread-safe. Token
    vectors of chunks are cached by content, up to `cache_bytes`, so a second query over them encodes only the query."""

    name = "late_interaction"

    def __init__(self, embedder: BundledEmbedder | None = None, *, cache_bytes: int = CACHE_BYTES) -> None:
        """`embedder` provides the loaded model."""
        self._embedder = embedder or BundledEmbedder()
        self._vectors: SharedCache[TokenVectors] = SharedCache(cache_bytes, lambda tokens: tokens.nbytes)

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score (0..1) per text. Raises ModelError."""
        return [float(1 / (1 + np.exp(-(SLOPE * s + OFFSET)))) for s in self.raw(query, texts)]

    def raw(self, query: str, texts: Sequence[str]) -> list[float]:
        """The mean best cosine (-1..1) of each text, before mapping. Raises ModelError."""
        if not texts:
            return []
        # Without the query's two special tokens. A chunk keeps its own, which query words without a
        # match can match (measured: nDCG@10 0.538 on Cranfield either way).
        query_tokens = self._encode([query])[0][1:-1]
        if not len(query_tokens):
            return [0.0] * len(texts)
        return [float((query_tokens @ chunk.astype(np.float32).T).max(axis=1).mean()) for chunk in self._chunks(texts)]

    def _chunks(self, texts: Sequence[str]) -> list[TokenVectors]:
        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        known = {key: self._vectors.get(key) for key in keys}
        vectors = {key: tokens for key, tokens in known.items() if tokens is not None}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        for key, tokens in zip(missing, self._encode(list(missing.values())), strict=True):
            vectors[key] = self._vectors.put(key, tokens.astype(np.float16))
        return [vectors[key] for key in keys]

    def _encode(self, texts: list[str]) -> list[Vectors]:
        """Unit vectors of each text's tokens, shape (tokens, dimension)."""
        tokens = self._embedder.tokens(texts)
        return [t / np.maximum(np.linalg.norm(t, axis=1, keepdims=True), 1e-9) for t in tokens]


class CrossEncoderReranker(LazyModel["CrossEncoder"]):
    """A cross-encoder whose output goes through a sigmoid."""

    def __init__(self, model: str, *, fetch: bool = False, load_timeout_s: float = 300.0) -> None:
        """`model` is any cross-encoder's name or path. With `fetch`, a model that is missing is downloaded once."""
        super().__init__()
        self.name = f"cross_encoder:{model}"
        self._model, self._load_timeout_s = model, load_timeout_s
        self._offline = not fetch or kind(model) == "folder"

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score (0..1) per text. Raises ModelError."""
        if not texts:
            return []
        model = self.model()
        try:
            import torch

            pairs, sigmoid = [(mend_characters(query), mend_characters(text)) for text in texts], torch.nn.Sigmoid()
            predicted = model.predict(pairs, batch_size=BATCH, activation_fn=sigmoid, show_progress_bar=False)
            scores: npt.NDArray[np.float64] = np.asarray(predicted, dtype=np.float64)
        except Exception as error:
            raise ModelError(f"The cross-encoder {self._model} failed: {first_line(error)}.", remedy=REMEDY) from error
        if scores.shape != (len(texts),) or not np.isfinite(scores).all():
            raise ModelError(f"The cross-encoder {self._model} did not give one finite score per text.", remedy=REMEDY)
        return [float(score) for score in scores]

    def _load(self) -> CrossEncoder:
        def open_model() -> CrossEncoder:
            # Imported here: torch takes seconds, and not every command needs it.
            with extra("models"):
                quiet_loading()
                from sentence_transformers import CrossEncoder

            return CrossEncoder(self._model, device="cpu", local_files_only=self._offline)

        with explain_failures("cross-encoder", self._model, self._offline, "cross-encoder", "late_interaction"):
            model = within(self._load_timeout_s, open_model)
        kinds = list(getattr(model.config, "architectures", None) or [])
        # Any other model gets a head with random weights and would return random scores.
        whole = any(kind.endswith(("ForSequenceClassification", "ForCausalLM")) for kind in kinds)
        if not whole or model.num_labels != 1:
            raise ModelError(
                f"{self._model} is not a cross-encoder with one score per text "
                f"({', '.join(kinds) or 'unknown kind'}, {model.num_labels} scores per text).",
                remedy="Use a cross-encoder's name or folder, or choose late_interaction.",
            )
        return model


MAX_CHARS = 20_000
"""Maximum length of a text."""
MAX_BYTES = 8 * 1024 * 1024
"""Maximum size of an answer."""
URL_REMEDY = "Check RAGFILTER_RERANK_URL, and that the model is served there."


@dataclass(frozen=True, slots=True)
class RerankEndpoint:
    """The endpoint of a reranker: its address up to ``/rerank``, and the price per thousand calls."""

    url: str
    key: str = field(default="", repr=False)
    price: float = 0.0
    currency: str = ""

    @property
    def address(self) -> str:
        """The address of ``/rerank``. Raises SettingsError if it cannot be used."""
        parts = web_address(self.url.strip())
        if parts is None or parts.username or parts.password or parts.query or parts.fragment:
            raise SettingsError(
                "The reranker needs an http or https address without credentials or query.",
                remedy="Set RAGFILTER_RERANK_URL to an address like http://127.0.0.1:8080/v1, and "
                "RAGFILTER_RERANK_KEY to the key.",
            )
        if not self.key.isascii() or not self.key.isprintable() or " " in self.key.strip():
            raise SettingsError("RAGFILTER_RERANK_KEY contains invalid characters.", remedy="Copy the key again.")
        url = self.url.strip().rstrip("/")
        return url if url.endswith("/rerank") else f"{url}/rerank"

    def cost(self, texts: int, batch: int) -> float:
        """The cost of the calls for this many texts; 0 without a price."""
        return math.ceil(texts / batch) * self.price / 1000

    def bill(self, texts: int, batch: int) -> str:
        """``2 calls, 0.0040 EUR``; without a price, only the calls."""
        cost = f", {money(self.cost(texts, batch), self.currency)}" if self.price else ""
        return f"{counted(math.ceil(texts / batch), 'call')}{cost}"


class HttpReranker:
    """Scores from an endpoint, on its own scale. Thread-safe; holds one HTTP client."""

    def __init__(self, model: str, at: RerankEndpoint, *, timeout_s: float, batch: int = BATCH) -> None:
        """`model` is the endpoint's name for the model; `timeout_s` limits each call. Raises
        SettingsError for an unusable address or key."""
        with extra("openai"):
            import httpx2
        self.name = f"http:{model}"
        self._model, self._batch = model, batch
        self._address = at.address
        headers = {"Authorization": f"Bearer {at.key.strip()}"} if at.key.strip() else {}
        self._client = httpx2.Client(headers=headers, timeout=timeout_s, follow_redirects=False)
        self._texts_field = "documents"

    def __repr__(self) -> str:
        return f"<HttpReranker: {self.name} at {shown(self._address)}>"

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score per text, in any range; higher is better. Raises ModelError and ChatError."""
        scores: list[float] = []
        for start in range(0, len(texts), self._batch):
            batch = [mend_characters(text[:MAX_CHARS]) or " " for text in texts[start : start + self._batch]]
            scores += self._ask(mend_characters(query), batch)
        log.info("%s scored %d texts", self.name, len(texts))
        return scores

    def _ask(self, query: str, batch: list[str]) -> list[float]:
        status, answer = self._post(query, batch, self._texts_field)
        if status in (400, 422) and self._texts_field == "documents":
            # TEI calls them texts.
            status, answer = self._post(query, batch, "texts")
            self._texts_field = "texts" if status < 400 else "documents"
        if status >= 300:
            # The endpoint's message is not repeated, since it may contain a part of the key.
            what, remedy = _REFUSALS.get(status, _REFUSALS[status // 100 * 100])
            message = f"The reranker {what} (HTTP {status})."
            if status != 429 and status < 500:
                raise ModelError(message, remedy=remedy)
            raise ChatError(message, kind="rate_limit" if status == 429 else "server", remedy=remedy)
        # TEI answers with just the rows.
        rows: Any = answer.get("results", answer.get("data")) if isinstance(answer, dict) else answer
        try:
            values = {int(r["index"]): r.get("relevance_score", r.get("score")) for r in rows}
            scores = [float(values[place]) for place in range(len(batch))]
        except (AttributeError, KeyError, TypeError, ValueError):
            scores = []
        if not scores or not all(map(math.isfinite, scores)):
            raise ModelError(f"The reranker did not score all {len(batch)} texts.", remedy=URL_REMEDY)
        return scores

    def _post(self, query: str, batch: list[str], field: str) -> tuple[int, Any]:
        import httpx2

        body: dict[str, Any] = {"model": self._model, "query": query, field: batch}
        if field == "documents":
            body |= {"top_n": len(batch), "return_documents": False}
        try:
            with self._client.stream("POST", self._address, json=body) as response:
                received = bytearray()
                for part in response.iter_bytes():
                    received += part
                    if len(received) > MAX_BYTES:
                        raise ModelError("The reranker's answer is too large.", remedy=URL_REMEDY)
            return response.status_code, json.loads(received) if response.is_success else None
        except httpx2.TimeoutException:
            remedy = "Raise quality.reranker_timeout_ms, or lower quality.reranker_batch."
            raise ChatError("The reranker did not answer in time.", kind="timeout", remedy=remedy) from None
        except httpx2.HTTPError as error:
            why = f"The reranker at {shown(self._address)} cannot be reached ({type(error).__name__})."
            remedy = "Check that it runs, and RAGFILTER_RERANK_URL."
            raise ChatError(why, kind="unreachable", remedy=remedy) from None
        except ValueError:
            raise ModelError("The reranker's answer is not JSON.", remedy=URL_REMEDY) from None


_KEY = "refused the key", "Check RAGFILTER_RERANK_KEY, and that it can use this model."
_REFUSALS = {
    300: ("redirects; the texts were not sent there", "If you trust that address, put it into RAGFILTER_RERANK_URL."),
    400: ("refused the texts", URL_REMEDY),
    401: _KEY,
    403: _KEY,
    429: ("has reached its rate limit", "Try again."),
    500: ("failed", "Try again."),
}
