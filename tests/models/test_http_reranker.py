"""Rerankers by HTTP: a real server of the same shape, every range of scores, and every failure."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import pytest

import ragfilter as rf
from ragfilter.errors import ModelError, SettingsError
from ragfilter.evaluate.learning import fit_reranker
from ragfilter.model import Chunk, Hit, Pool
from ragfilter.models.rerankers import HttpReranker, RerankEndpoint
from ragfilter.settings.config import load
from ragfilter.settings.schema import Settings

KEY = "sk-not-to-be-told"
TEXTS = ["owl 1", "owl 9", "owl 5", "owl 7"]
Score = Callable[[str, list[str]], list[float]]


def by_number(query: str, texts: list[str]) -> list[float]:
    """Scores as of a cross-encoder's logits: from −11 to 9."""
    return [2.5 * int(text.rsplit(maxsplit=1)[-1]) - 13.5 for text in texts]


class Server(ThreadingHTTPServer):
    """Answers ``/v1/rerank`` as `shape` does, and remembers what it was asked."""

    def __init__(self, score: Score, shape: str = "cohere", status: int = 200) -> None:
        self.score, self.shape, self.status = score, shape, status
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.waits = Event()
        self.waits.set()
        super().__init__(("127.0.0.1", 0), Handler)

    def handle_error(self, *_: Any) -> None:
        """A caller who gave up is gone."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.waits.wait(20)
        self.server.asked.append({"path": self.path, **body})
        self.server.keys.append(self.headers.get("Authorization", ""))
        field = "texts" if self.server.shape == "tei" else "documents"
        if self.server.status != 200 or field not in body:
            self._send(self.server.status if field in body else 422, {"error": f"bad {KEY}"})
            return
        scores = self.server.score(body["query"], body[field])
        name = "score" if self.server.shape == "tei" else "relevance_score"
        rows = [{"index": place, name: score} for place, score in enumerate(scores)]
        rows.sort(key=lambda row: -float(row[name]))
        self._send(200, rows if self.server.shape == "tei" else {"results": rows})

    def _send(self, status: int, made: object) -> None:
        said = json.dumps(made).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(score: Score = by_number, shape: str = "cohere", status: int = 200) -> Iterator[Server]:
    server = Server(score, shape, status)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.waits.set()
        server.shutdown()
        server.server_close()


def reranker(server: Server, **more: Any) -> HttpReranker:
    at = RerankEndpoint(server.url, KEY, price=2.0)
    given: dict[str, Any] = {"timeout_s": 20.0, "batch": 3, **more}
    return HttpReranker("rank-1", at, **given)


def always(**values: Any) -> Settings:
    base = load(profile="unfiltered", environ={}).settings
    given = {"enabled": True, "mode": "always", "reranker_top_k": 3, "max_top_k": 20, **values}
    return base.with_values({f"quality.{name}": value for name, value in given.items()})


@pytest.mark.parametrize("shape", ["cohere", "tei"])
def test_scores_come_in_the_order_of_the_texts(shape: str) -> None:
    with serving(shape=shape) as server:
        assert reranker(server).score("owl", TEXTS) == [-11.0, 9.0, -1.0, 4.0]
        assert [each["path"] for each in server.asked] == ["/v1/rerank"] * len(server.asked)
        assert set(server.keys) == {f"Bearer {KEY}"}
        sizes = [len(each.get("documents", each.get("texts", ()))) for each in server.asked]
        assert sizes[-2:] == [3, 1]
        assert RerankEndpoint(server.url, price=2.0).cost(4, 3) == pytest.approx(0.004)


def test_without_a_fit_scores_only_order() -> None:
    with serving() as server:
        flt = rf.Filter(always(), reranker=reranker(server))
        assert flt.settings.quality.reranker == "http"
        result = flt("owl", TEXTS)
    assert [hit.chunk.text for hit in result] == ["owl 9", "owl 7", "owl 5"]
    assert "no threshold applies" in result.trace("quality").note
    assert result.dropped[0].setting == "quality.reranker_top_k"


def test_with_a_fit_thresholds_apply() -> None:
    with serving() as server:
        fitted = always(reranker_slope=1.0, reranker_offset=0.0, reranker_threshold=0.5)
        result = rf.Filter(fitted, reranker=reranker(server))("owl", TEXTS)
    assert [hit.chunk.text for hit in result] == ["owl 9", "owl 7"]
    assert result[1].rerank_score == pytest.approx(0.982, abs=0.001)


def test_a_fit_is_found_from_labels() -> None:
    hits = tuple(Hit(Chunk(f"c{n}", f"owl {n}"), n / 10, n) for n in range(1, 10))
    pools = {f"q{i}": Pool("owl", "c", "l2", hits) for i in range(12)}
    qrels = {i: {"c9": 1, "c8": 2, ("c4" if i == "q3" else "c7"): 1} for i in pools}
    with serving() as server:
        made = fit_reranker(pools, qrels, reranker(server), depth=9)
    assert made.slope > 0
    assert (made.queries, made.hits, made.relevant) == (12, 108, 36)


@pytest.mark.parametrize(
    ("status", "says"),
    [(401, "refused the key"), (404, "refused the texts"), (503, "failed (HTTP 503)"),
     (429, "HTTP 429"), (302, "redirects")],
)  # fmt: skip
def test_a_failure_is_a_visible_fallback(
    status: int, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with serving(status=status) as server:
        made = reranker(server)
        result = rf.Filter(always(), reranker=made)("owl", TEXTS)
    assert says in result.warnings[0]
    assert result.fell_back
    assert KEY not in f"{caplog.text}{result.warnings}{made!r}{result.to_dict()}"


def test_an_answer_that_does_not_come_is_a_visible_fallback() -> None:
    with serving() as server:
        server.waits.clear()
        slow = always(reranker_timeout_ms=300)
        result = rf.Filter(slow, reranker=reranker(server, timeout_s=0.3))("owl", TEXTS)
    assert result.fell_back
    assert "within 0.3 s" in result.warnings[0] or "in time" in result.warnings[0]


def test_too_few_scores_are_refused() -> None:
    with (
        serving(lambda query, texts: [0.5]) as server,
        pytest.raises(ModelError, match="no score for each of 3"),
    ):
        reranker(server).score("owl", TEXTS)


@pytest.mark.parametrize("url", ["", "ftp://host", "http://me:secret@host/v1", "http://host/?k=v"])
def test_an_address_with_secrets_is_refused_unshown(url: str) -> None:
    with pytest.raises(SettingsError) as told:
        HttpReranker("m", RerankEndpoint(url, KEY), timeout_s=1)
    assert "secret" not in str(told.value)
