"""The second demo collection: size, references, labels, and its intended noise."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ragfilter.errors import InputError
from ragfilter.evaluate import labelled_queries, query_sets
from ragfilter.ingest import adsapi
from ragfilter.ingest.load import load
from ragfilter.ingest.openapi.read import records
from ragfilter.model import Chunk
from ragfilter.settings.deployment import Deployment
from ragfilter.workbench import Workbench

CHUNKS: dict[str, Chunk] = {record.chunk.id: record.chunk for record in load("adsapi")}
SEED = "How do I authenticate with sponsored-display API?"


def reached(start: str) -> dict[str, int]:
    """Every chunk that references lead to, with the number of steps."""
    steps = {start: 0}
    waiting = [start]
    for chunk_id in waiting:
        for ref in CHUNKS[chunk_id].refs:
            if ref not in steps:
                steps[ref] = steps[chunk_id] + 1
                waiting.append(ref)
    return steps


def test_every_reference_resolves_and_nothing_was_left_out() -> None:
    assert [w for record in records(adsapi.trees()) for w in record.warnings] == []
    assert {ref for chunk in CHUNKS.values() for ref in chunk.refs} <= CHUNKS.keys()


def test_labels_resolve() -> None:
    queries, qrels = adsapi.queries(), adsapi.qrels()
    assert len(queries) >= 25
    assert queries.keys() == qrels.keys()
    assert queries["sd-authenticate"] == SEED
    assert len(set(queries.values())) == len(queries)
    for query, labelled in qrels.items():
        assert labelled.keys() <= CHUNKS.keys(), query
        assert set(labelled.values()) <= {1, 2}, query
        assert 2 in labelled.values(), query


def test_some_answers_need_schemas_that_only_references_lead_to() -> None:
    needed = [i for i, score in adsapi.qrels()["create-campaign"].items() if score == 2]
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
        adsapi.queries(), adsapi.qrels()
    )
    with pytest.raises(InputError, match="Only one of queries and qrels is adsapi"):
        query_sets.load_files("adsapi", "qrels.tsv")


@pytest.mark.model
def test_the_seed_question_brings_mostly_noise(adsapi_workspace: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(adsapi_workspace, tmp_path / "workspace")
    with Workbench.open(Deployment(data_dir=folder)) as bench:
        found = bench.collection("adsapi").nearest(bench.embedder.embed([SEED]), 40)
    ranked = [chunk_id for chunk_id, _ in found]
    relevant = adsapi.qrels()["sd-authenticate"]
    first = [i in relevant for i in ranked[:40]]
    # A judge finds enough among 40, and has more than half of them to discard.
    assert sum(first) >= 8
    assert first[0]
    assert first.count(False) / 40 >= 0.6
    assert first[:15].count(False) >= 7
    noise = [i for i in ranked[:25] if i not in relevant]
    assert any("error" in i or "refuse" in i.lower() or "Refusal" in i for i in noise)
    assert any("limit" in i for i in noise)
    assert any(CHUNKS[i].type == "schema" for i in noise)
    assert any("validation" in i for i in noise)
