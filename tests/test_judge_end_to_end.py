"""The acceptance scenario of the LLM judge: the source document's question over the demo API
descriptions, a real server that speaks the OpenAI protocol and judges from the labels, and the same
question when that server hangs or is stopped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from faults import Serve, Server
from judges import QRELS, QUERY, RELEVANT, SCHEMAS, capable
from waiting import PATIENT_MS

from ragfilter.answer.context_packing import SHORTENED
from ragfilter.cli.program import main
from ragfilter.engine.pipeline import search_and_filter
from ragfilter.engine.pool import unfiltered
from ragfilter.evaluate.frame import cells, frame
from ragfilter.evaluate.labelled_queries import Labels
from ragfilter.evaluate.query_records import measure
from ragfilter.evaluate.variants import Variant, with_unfiltered
from ragfilter.ingest import bundled
from ragfilter.layers.judge import settings_without_judge
from ragfilter.results.rows import rows
from ragfilter.results.verdicts import judge_stats, verdict_rows
from ragfilter.settings.config import load
from ragfilter.settings.deployment import read_deployment
from ragfilter.workbench import Workbench

pytestmark = pytest.mark.model

LLM = load(profile="llm-filter", environ={}).settings.with_values({"judge.timeout_ms": PATIENT_MS})


@pytest.fixture(scope="module")
def workspace(adsapi_workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(copytree(adsapi_workspace, tmp_path_factory.mktemp("judge") / "ws"))


@pytest.fixture
def judged_by(workspace: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Opens the workspace with a server as its LLM."""
    opened: list[Workbench] = []

    def open_with(behave: Any) -> tuple[Workbench, Server]:
        server = serve(behave)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        opened.append(Workbench.open(read_deployment(data_dir=workspace)))
        return opened[-1], server

    yield open_with
    for bench in opened:
        bench.close()


def test_the_question_of_the_source_document(judged_by: Any) -> None:
    bench, server = judged_by(capable)
    result = search_and_filter(QUERY, LLM, bench.backends("adsapi"))
    plain = [hit.id for hit in unfiltered(result.pool, LLM)]
    assert len(plain) == 25
    rows = verdict_rows(result)

    # Everything that the judge kept is relevant.
    by_verdict = {row.id for row in rows if row.outcome == "kept"}
    assert by_verdict
    assert by_verdict <= RELEVANT

    # Irrelevant chunks are reduced by at least half, including those that an expansion brought in.
    kept = [hit.id for hit in result.kept]
    noise_before, noise_after = len(set(plain) - RELEVANT), len(set(kept) - RELEVANT)
    assert noise_before >= 10
    assert noise_after <= noise_before / 2

    # The schemas that are needed are there, although the search did not find them.
    assert not SCHEMAS & set(plain)
    assert set(kept) >= SCHEMAS
    brought = {row.id: row.by for row in rows if row.outcome == "expanded"}
    assert set(brought) >= {"auth-api:ExchangeToken", *SCHEMAS}
    assert brought["auth-api:AuthorizationCodeGrant"].step == 3
    assert brought["auth-api:TokenRequest"].via == "auth-api:ExchangeToken"

    stats = judge_stats(result)
    assert stats is not None
    assert (stats.original, stats.fallback, stats.prompt_tokens) == (40, False, 1500)
    assert stats.kept == len(by_verdict)
    assert stats.expanded == len(brought)
    assert stats.reduction == 1 - len(by_verdict) / 40
    # One call, with a schema, over all of them; long chunks are shortened.
    (asked,) = server.asked
    assert asked["body"]["response_format"]["type"] == "json_schema"
    assert asked["body"]["messages"][-1]["content"].count("<chunk>") == 40
    assert stats.left_out == 0
    assert stats.shortened == asked["body"]["messages"][-1]["content"].count(SHORTENED) > 0


def test_with_the_server_stopped_the_first_max_chunks_stay(judged_by: Any) -> None:
    bench, server = judged_by(capable)
    server.shutdown()
    server.server_close()
    for profile in (LLM, LLM.with_values({"judge.max_chunks": 8})):
        result = search_and_filter(QUERY, profile, bench.backends("adsapi"))
        plain = search_and_filter(QUERY, settings_without_judge(profile), bench.backends("adsapi"))
        assert [hit.id for hit in result.kept] == [hit.id for hit in plain.kept]
        assert len(result.kept) == profile.judge.max_chunks
        kept = [row for row in rows(result) if row.kept]
        assert {(row.outcome, row.layer) for row in kept} == {("fallback", "judge")}
        assert all(row.reason.endswith("; the judge failed") for row in kept)
        (judged,) = (trace for trace in result.traces if trace.layer == "judge")
        assert "refused the connection" in judged.note
        assert result.status == "ok"


def test_the_command_line_says_all_of_it(judged_by: Any, workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench, _ = judged_by(capable)
    bench.close()
    command = [
        "query",
        QUERY,
        "-c",
        "adsapi",
        "-p",
        "llm-filter",
        "--data-dir",
        str(workspace),
        "--set",
        f"judge.timeout_ms={PATIENT_MS}",
    ]

    def printed(*more: str) -> Any:
        capsys.readouterr()
        assert main([*command, "--json", *more]) == 0
        return json.loads(capsys.readouterr().out)

    made = printed("--references")
    judge = made["judge"]
    assert (judge["original"], judge["fallback"], judge["error"]) == (40, False, "")
    assert judge["prompt_version"].startswith("default@")
    assert 0.5 < judge["reduction"] < 1
    hits = {hit["id"]: hit for hit in made["hits"]}
    assert hits["auth-api:TokenRequest"]["outcome"] == "expanded"
    guide = "sd-api:guide/calling-sponsored-display-with-a-token"
    assert hits[guide]["refs"] == ["auth-api:ExchangeToken"]

    off = printed("--no-rerank")
    assert (off["judge"], len(off["kept"]), off["kept"]) == (None, 25, off["unfiltered"])
    assert "refs" not in off["hits"][0]
    assert printed("--no-rerank", "-k", "6")["kept"] == off["kept"][:6]


def test_over_many_questions_noise_is_down_by_half(judged_by: Any) -> None:
    bench, _ = judged_by(capable)
    queries = dict(list(bundled.queries("adsapi").items())[:12])
    labels = Labels(queries, {i: QRELS[i] for i in queries})
    sides = with_unfiltered((Variant("judged", "settings", LLM),))
    measured = measure(labels, sides, bench.backends("adsapi"), timed=True)
    plain, judged = cells(frame(record for records in measured for record in records))
    assert (plain["queries"], judged["fallbacks"]) == (12, 0)
    assert judged["noise_reduction"] >= 0.5
    assert judged["precision"] > 2 * plain["precision"]
    assert judged["tokens"] < plain["tokens"]
    assert judged["llm_tokens"] > 1500
    assert judged["query_ms"] > judged["llm_ms"] > 0
