"""The filter in Haystack, with its real package."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from haystack import Document, Pipeline

import ragfilter as rf
from ragfilter.errors import InputError

QUERY = "How strong is a troll?"
GAP = (0.12, 0.18, 0.22, 0.35, 0.50)


def documents(scores: tuple[float | None, ...]) -> list[Document]:
    return [Document(content=f"Trolls, part {i}.", score=s) for i, s in enumerate(scores)]


def test_the_callers_own_documents_stay_best_first() -> None:
    docs = documents(GAP[::-1])
    found = rf.Filter("adaptive-gap").as_haystack(metric="l2").run(QUERY, docs)["documents"]
    assert [next(i for i, doc in enumerate(docs) if doc is one) for one in found] == [4, 3, 2, 1]


def test_it_is_a_part_of_a_pipeline_also_in_an_event_loop() -> None:
    docs = documents(tuple(1 - distance for distance in GAP))
    pipeline = Pipeline()
    pipeline.add_component("filter", rf.Filter("adaptive-gap").as_haystack(metric="similarity"))
    given = {"filter": {"query": QUERY, "documents": docs}}
    assert pipeline.run(given)["filter"]["documents"] == docs[:4]
    assert asyncio.run(pipeline.run_async(given))["filter"]["documents"] == docs[:4]


def test_a_saved_pipeline_filters_as_before_and_for_the_public() -> None:
    settings = rf.Filter("adaptive-gap").settings.with_values({"clearance.enabled": True})
    flt = rf.Filter(settings, reranker="late_interaction")
    user = rf.User(level=2)
    before = Pipeline()
    before.add_component("filter", flt.as_haystack(metric="l2", user=user))
    after = Pipeline.loads(before.dumps(), allowed_modules=["ragfilter.*"])
    docs = [
        replace(doc, meta={"clearance": level})
        for doc, level in zip(documents(GAP), (0, 1, 0, 0, 2), strict=True)
    ]
    given = {"filter": {"query": QUERY, "documents": docs}}
    assert before.run(given)["filter"]["documents"] == docs[:4]
    assert after.run(given)["filter"]["documents"] == [docs[0], docs[2]]
    loaded = after.get_component("filter")
    assert (loaded.filter.settings, loaded.metric) == (settings, "l2")
    assert (loaded.filter.reranker.name, loaded.filter.judge) == ("late_interaction", None)
    loaded.user = user
    assert after.run(given)["filter"]["documents"] == docs[:4]


def test_a_model_that_is_an_object_is_not_saved() -> None:
    reranker = rf.Filter("full", reranker="late_interaction").reranker
    with pytest.raises(InputError, match="reranker was passed as an object"):
        rf.Filter("full", reranker=reranker).as_haystack().to_dict()
