"""Rerankers by HTTP: a real server of the same shape, every range of scores, and every failure."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from faults import KEY, Behave, Handler, Serve, Server, hang, page

import ragfilter as rf
from ragfilter.errors import ModelError, SettingsError
from ragfilter.evaluate.learning import fit_reranker
from ragfilter.model import Chunk, Hit, Pool
from ragfilter.models.rerankers import HttpReranker, LateInteraction, RerankEndpoint
from ragfilter.settings.config import load
from ragfilter.settings.schema import Settings

TEXTS = ["owl 1", "owl 9", "owl 5", "owl 7"]
Score = Callable[[str, list[str]], list[float]]


def by_number(query: str, texts: list[str]) -> list[float]:
    """Scores as of a cross-encoder's logits: from −11 to 9."""
    return [2.5 * int(text.rsplit(maxsplit=1)[-1]) - 13.5 for text in texts]


def scored(score: Score = by_number, shape: str = "cohere") -> Behave:
    """Answers with the scores of the texts, best first, in the shape of Cohere or TEI."""
    field, name = ("texts", "score") if shape == "tei" else ("documents", "relevance_score")

    def behave(handler: Handler, body: dict[str, Any]) -> None:
        if field not in body:
            handler.reply(422, "{}")
            return
        scores = score(body["query"], body[field])
        rows = [{"index": place, name: score} for place, score in enumerate(scores)]
        rows.sort(key=lambda row: -float(row[name]))
        handler.reply(200, json.dumps(rows if shape == "tei" else {"results": rows}))

    return behave


def reranker(server: Server, **more: Any) -> HttpReranker:
    at = RerankEndpoint(server.url, KEY, price=2.0)
    given: dict[str, Any] = {"timeout_s": 20.0, "batch": 3, **more}
    return HttpReranker("rank-1", at, **given)


def always(**values: Any) -> Settings:
    base = load(profile="unfiltered", environ={}).settings
    given = {"enabled": True, "mode": "always", "reranker_top_k": 3, "max_top_k": 20, **values}
    return base.with_values({f"quality.{name}": value for name, value in given.items()})


def test_scores_come_in_the_order_of_the_texts(serve: Serve) -> None:
    for shape in ["cohere", "tei"]:
        server = serve(scored(shape=shape))
        assert reranker(server).score("owl", TEXTS) == [-11.0, 9.0, -1.0, 4.0], shape
        assert {(each["path"], each["key"]) for each in server.asked} == {("/v1/rerank", f"Bearer {KEY}")}, shape
        bodies = [each["body"] for each in server.asked]
        sizes = [len(body.get("documents", body.get("texts", ()))) for body in bodies]
        assert sizes[-2:] == [3, 1], shape
        assert RerankEndpoint(server.url, price=2.0).cost(4, 3) == pytest.approx(0.004), shape


def test_without_a_fit_scores_only_order(serve: Serve) -> None:
    flt = rf.Filter(always(), reranker=reranker(serve(scored())))
    assert flt.settings.quality.reranker == "http"
    result = flt("owl", TEXTS)
    assert [hit.chunk.text for hit in result] == ["owl 9", "owl 7", "owl 5"]
    assert "no threshold applies" in result.trace("quality").note
    assert result.dropped[0].setting == "quality.reranker_top_k"


def test_with_a_fit_thresholds_apply(serve: Serve) -> None:
    fitted = always(reranker_slope=1.0, reranker_offset=0.0, reranker_threshold=0.5)
    result = rf.Filter(fitted, reranker=reranker(serve(scored())))("owl", TEXTS)
    assert [hit.chunk.text for hit in result] == ["owl 9", "owl 7"]
    assert result[1].rerank_score == pytest.approx(0.982, abs=0.001)


def test_a_fit_is_found_from_labels(serve: Serve) -> None:
    hits = tuple(Hit(Chunk(f"c{n}", f"owl {n}"), n / 10, n) for n in range(1, 10))
    pools = {f"q{i}": Pool("owl", "c", "l2", hits) for i in range(12)}
    qrels = {i: {"c9": 1, "c8": 2, ("c4" if i == "q3" else "c7"): 1} for i in pools}
    made = fit_reranker(pools, qrels, reranker(serve(scored())), depth=9)
    assert made.slope > 0
    assert (made.queries, made.hits, made.relevant) == (12, 108, 36)


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (401, "refused the key"),
        (404, "refused the texts"),
        (503, "failed (HTTP 503)"),
        (429, "HTTP 429"),
        (302, "redirects"),
    ],
)
def test_a_failure_is_a_visible_fallback(
    serve: Serve, status: int, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    made = reranker(serve(page(status, f"bad {KEY}", "application/json")))
    result = rf.Filter(always(), reranker=made)("owl", TEXTS)
    assert says in result.warnings[0]
    assert result.fallbacks
    assert KEY not in f"{caplog.text}{result.warnings}{made!r}{result.to_dict()}"


def test_an_answer_that_does_not_come_is_a_visible_fallback(serve: Serve) -> None:
    slow = always(reranker_timeout_ms=300)
    result = rf.Filter(slow, reranker=reranker(serve(hang), timeout_s=0.3))("owl", TEXTS)
    assert result.fallbacks
    assert "within 0.3 s" in result.warnings[0] or "in time" in result.warnings[0]


def test_too_few_scores_are_refused(serve: Serve) -> None:
    server = serve(scored(lambda query, texts: [0.5]))
    with pytest.raises(ModelError, match="did not score all 3"):
        reranker(server).score("owl", TEXTS)


@pytest.mark.parametrize("url", ["", "ftp://host", "http://me:secret@host/v1", "http://host/?k=v"])
def test_an_address_with_secrets_is_refused_unshown(url: str) -> None:
    with pytest.raises(SettingsError) as told:
        HttpReranker("m", RerankEndpoint(url, KEY), timeout_s=1)
    assert "secret" not in str(told.value)


@pytest.mark.model
def test_the_bundled_reranker_orders_alike_behind_a_server(serve: Serve) -> None:
    every, local = always(reranker_threshold=0.0), LateInteraction()
    texts = ["Bread is baked.", "Trolls regenerate.", "A troll fears fire.", "Boats leak."]
    orders = [
        [hit.chunk.text for hit in rf.Filter(every, reranker=each)("Do trolls heal?", texts)]
        for each in (local, reranker(serve(scored(local.score))), reranker(serve(scored(local.raw, "tei"))))
    ]
    assert orders[0] == orders[1] == orders[2]
    assert {*orders[0][:2]} == {*texts[1:3]}
