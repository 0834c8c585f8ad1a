"""A reranker at any address that answers ``/rerank``: Cohere, Jina, vLLM, TEI.

Source: docs/design.md#quality. The texts go to no other address, and the key is in no message, log
line or repr. Scores are taken as the endpoint gives them, on whatever scale.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ragfilter.basics.extras import extra
from ragfilter.errors import ChatError, ChatErrorKind, ModelError, SettingsError
from ragfilter.text.normalise import whole
from ragfilter.text.urls import shown, web_address

with extra("openai"):
    import httpx2

log = logging.getLogger(__name__)

BATCH = 32
MAX_CHARS = 20_000
"""Of one text."""
MAX_BYTES = 8 * 1024 * 1024
"""Of one answer."""
REMEDY = "Check RAGFILTER_RERANK_URL, and that the model is served there."


@dataclass(frozen=True, slots=True)
class RerankEndpoint:
    """Where a reranker is asked: the address up to ``/rerank``, and the price of a thousand
    calls."""

    url: str
    key: str = field(default="", repr=False)
    price: float = 0.0
    currency: str = ""

    @property
    def address(self) -> str:
        """The address of ``/rerank``. Raises SettingsError for what cannot be used."""
        parts = web_address(self.url.strip())
        if parts is None or parts.username or parts.password or parts.query or parts.fragment:
            raise SettingsError(
                "The address of the reranker is none, or holds credentials or a query.",
                remedy="Set RAGFILTER_RERANK_URL to an address like http://127.0.0.1:8080/v1, and "
                "RAGFILTER_RERANK_KEY to the key.",
            )
        if not self.key.isascii() or not self.key.isprintable() or " " in self.key.strip():
            raise SettingsError(
                "RAGFILTER_RERANK_KEY contains invalid characters.", remedy="Copy the key again."
            )
        url = self.url.strip().rstrip("/")
        return url if url.endswith("/rerank") else f"{url}/rerank"

    def calls(self, texts: int, batch: int) -> int:
        """How many calls so many texts take."""
        return math.ceil(texts / batch)

    def cost(self, texts: int, batch: int) -> float:
        """What these calls cost, 0 without a price."""
        return self.calls(texts, batch) * self.price / 1000


class HttpReranker:
    """Scores from an endpoint, on its own scale. Safe for threads; holds one HTTP client."""

    def __init__(
        self, model: str, at: RerankEndpoint, *, timeout_s: float, batch: int = BATCH
    ) -> None:
        """`model` is the endpoint's name of it; `timeout_s` bounds each call. Raises SettingsError
        for an address or key that cannot be used."""
        self._model, self._batch = model, batch
        self._address = at.address
        headers = {"Authorization": f"Bearer {at.key.strip()}"} if at.key.strip() else {}
        self._client = httpx2.Client(headers=headers, timeout=timeout_s, follow_redirects=False)
        self._texts_field = "documents"

    def __repr__(self) -> str:
        return f"<HttpReranker: {self.name} at {shown(self._address)}>"

    @property
    def name(self) -> str:
        return f"http:{self._model}"

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """One score a text, of any range; higher is better. Raises ModelError and ChatError."""
        scores: list[float] = []
        for start in range(0, len(texts), self._batch):
            batch = [whole(text[:MAX_CHARS]) or " " for text in texts[start : start + self._batch]]
            scores += self._ask(whole(query), batch)
        log.info("%s scored %d texts", self.name, len(texts))
        return scores

    def _ask(self, query: str, batch: list[str]) -> list[float]:
        status, answer = self._post(query, batch)
        if status in (400, 422) and self._texts_field == "documents":
            # TEI calls them texts.
            self._texts_field = "texts"
            status, answer = self._post(query, batch)
            if status >= 400:
                self._texts_field = "documents"
        if status >= 300:
            raise _refused(status)
        rows = answer.get("results", answer.get("data")) if isinstance(answer, dict) else answer
        try:
            scores = {int(row["index"]): _number(row) for row in rows or ()}
            return [scores[place] for place in range(len(batch))]
        except (KeyError, TypeError, ValueError):
            raise ModelError(
                f"The reranker gave no score for each of {len(batch)} texts.", remedy=REMEDY
            ) from None

    def _post(self, query: str, batch: list[str]) -> tuple[int, Any]:
        body: dict[str, Any] = {"model": self._model, "query": query, self._texts_field: batch}
        if self._texts_field == "documents":
            body |= {"top_n": len(batch), "return_documents": False}
        try:
            with self._client.stream("POST", self._address, json=body) as response:
                held = bytearray()
                for part in response.iter_bytes():
                    held += part
                    if len(held) > MAX_BYTES:
                        raise ModelError("The reranker's answer is too large.", remedy=REMEDY)
                if response.status_code >= 300:
                    return response.status_code, None
                return response.status_code, httpx2.Response(200, content=bytes(held)).json()
        except httpx2.TimeoutException:
            raise ChatError(
                "The reranker did not answer in time.", kind="timeout",
                remedy="Raise quality.reranker_timeout_ms, or lower quality.reranker_batch.",
            ) from None  # fmt: skip
        except httpx2.HTTPError as error:
            raise ChatError(
                f"The reranker at {shown(self._address)} cannot be reached "
                f"({type(error).__name__}).",
                kind="unreachable", remedy="Check that it runs, and RAGFILTER_RERANK_URL.",
            ) from None  # fmt: skip
        except ValueError:
            raise ModelError("The reranker's answer is no JSON.", remedy=REMEDY) from None


def _number(row: Any) -> float:
    score = row.get("relevance_score", row.get("score"))
    value = float(score)
    if not math.isfinite(value):
        raise ValueError(score)
    return value


def _refused(status: int) -> ModelError | ChatError:
    # What the endpoint says is not repeated: it may hold a part of the key.
    if status in (401, 403):
        remedy = "Check RAGFILTER_RERANK_KEY, and that it may use this model."
        return ModelError(f"The reranker refused the key (HTTP {status}).", remedy=remedy)
    if status == 429 or status >= 500:
        kind: ChatErrorKind = "rate_limit" if status == 429 else "server"
        return ChatError(f"The reranker failed (HTTP {status}).", kind=kind, remedy="Try again.")
    if status < 400:
        remedy = "If you trust that address, put it into RAGFILTER_RERANK_URL."
        return ModelError("The reranker redirects; the texts were not sent there.", remedy=remedy)
    return ModelError(f"The reranker refused the texts (HTTP {status}).", remedy=REMEDY)
