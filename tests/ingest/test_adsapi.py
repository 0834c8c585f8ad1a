"""The second demo collection: size, references, labels, and its intended noise."""

from __future__ import annotations

from functools import cache

import pytest

from ragfilter.errors import InputError
from ragfilter.evaluate import labelled_queries, query_sets
from ragfilter.ingest import bundled
from ragfilter.ingest.load import load
from ragfilter.model import Chunk

SEED = "How do I authenticate with sponsored-display API?"


@cache
def chunks() -> dict[str, Chunk]:
    return {record.chunk.id: record.chunk for record in load("adsapi")}


def reached(start: str) -> dict[str, int]:
    """Every chunk that references lead to, with the number of steps."""
    steps = {start: 0}
    waiting = [start]
    for chunk_id in waiting:
        for ref in chunks()[chunk_id].refs:
            if ref not in steps:
                steps[ref] = steps[chunk_id] + 1
                waiting.append(ref)
    return steps


def test_every_reference_resolves_and_nothing_was_left_out() -> None:
    assert [w for record in bundled.records("adsapi") for w in record.warnings] == []
    assert {ref for chunk in chunks().values() for ref in chunk.refs} <= chunks().keys()


def test_labels_resolve() -> None:
    queries, qrels = bundled.queries("adsapi"), bundled.qrels("adsapi")
    assert len(queries) >= 25
    assert queries.keys() == qrels.keys()
    assert queries["sd-authenticate"] == SEED
    assert len(set(queries.values())) == len(queries)
    for query, labelled in qrels.items():
        assert labelled.keys() <= chunks().keys(), query
        assert set(labelled.values()) <= {1, 2}, query
        assert 2 in labelled.values(), query


def test_some_answers_need_schemas_that_only_references_lead_to() -> None:
    needed = [i for i, score in bundled.qrels("adsapi")["create-campaign"].items() if score == 2]
    steps = reached("sd-api:CreateCampaign")
    assert {"sd-api:CampaignDraft", "sd-api:Budget", "common-api:CurrencyCode"} <= set(needed)
    assert {i: steps[i] for i in needed} == {
        "sd-api:CreateCampaign": 0,
        "sd-api:CampaignDraft": 1,
        "sd-api:Budget": 2,
        "sd-api:BidStrategy": 2,
        "common-api:DateRange": 2,
        "sd-api:BudgetKind": 3,
        "common-api:Money": 3,
        "common-api:CurrencyCode": 4,
    }


def test_the_name_stands_for_its_labels() -> None:
    assert query_sets.load_files("adsapi", "adsapi") == labelled_queries.Labels(
        bundled.queries("adsapi"), bundled.qrels("adsapi")
    )
    with pytest.raises(InputError, match="not in a file"):
        query_sets.load_files("adsapi", "qrels.tsv")
