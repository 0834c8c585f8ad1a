"""The filter in Haystack, with its real package."""

from __future__ import annotations

import asyncio

from haystack import Document, Pipeline

import ragfilter as rf

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
