"""`ragfilter serve`: the same decisions as the library, for the user of each token and no other."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
import schemathesis
import uvicorn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from opentelemetry.exporter.otlp.proto.http import trace_exporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from schemathesis import GenerationMode
from starlette.testclient import TestClient
from stores import Remembering
from twins import QUESTIONS, SECRET, USER, make_twins, still_clocks
from waiting import PROCESS_S

import ragfilter as rf
from ragfilter.basics.threads import Abandoned, check_stopped, stopping, within
from ragfilter.cli import serve
from ragfilter.cli.program import main
from ragfilter.ingest import bundled
from ragfilter.library.workspace import OpenWorkspace
from ragfilter.service.access import MAX_BYTES, MAX_CHARS, Caller, Refused, error_response, read_tokens, token_hash
from ragfilter.service.executor import Executor
from ragfilter.service.routes import Serving, make_app
from ragfilter.settings.config import of_profile
from ragfilter.settings.deployment import Deployment

pytestmark = [pytest.mark.slow, pytest.mark.model]

ROOT = Path(__file__).resolve().parents[1]
FULL = of_profile("full")
ADA = Caller(rf.User(2, ("ops",)), frozenset(("demo",)))
BEN = Caller(rf.User(0), metrics=True)
TOKENS = {token_hash("for-ada"): ADA, token_hash("for-ben"): BEN}
QUESTION = "Do trolls heal?"


@pytest.fixture(scope="module")
def bench(copy_demo: Callable[[], Path]) -> Iterator[OpenWorkspace]:
    with OpenWorkspace.open(Deployment(data_dir=copy_demo())) as opened:
        yield replace(opened, embedder=Remembering())


def serving(bench: OpenWorkspace, **more: Any) -> Serving:
    given = {"tokens": {}, "anyone": Caller(metrics=True), "collection": "demo", "settings": FULL}
    return Serving(bench, **{**given, **more})


@pytest.fixture(scope="module")
def service(bench: OpenWorkspace) -> Iterator[TestClient]:
    with TestClient(make_app(serving(bench)), base_url="http://127.0.0.1:8000") as client:
        yield client


@pytest.fixture(scope="module")
def guarded(bench: OpenWorkspace) -> Iterator[TestClient]:
    with TestClient(make_app(serving(bench, tokens=TOKENS))) as client:
        yield client


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def ids(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [chunk["id"] for chunk in answer.json()["kept"]]


def test_the_demos_questions_are_answered_as_by_the_library(service: TestClient, bench: OpenWorkspace) -> None:
    for profile, every in (("full", 5), ("query-must", 20), ("adaptive-gap+entities", 20)):
        for question in [*bundled.queries("demo").values()][::every]:
            mine = bench["demo"].search(question, profile, user=rf.User(0))
            asked = {"question": question, "profile": profile}
            said = service.post("/v1/search", json=asked).json()
            assert [chunk["id"] for chunk in said["kept"]] == [hit.id for hit in mine]
            told = [(row["id"], row["layer"], row["reason"]) for row in said["dropped"]]
            assert told == [(row.id, row.layer, row.reason) for row in mine.dropped]
            assert said["context"] == mine.context.text
            assert said["status"] == mine.status


def test_own_hits_are_filtered_as_by_the_library(service: TestClient) -> None:
    docs = [
        {"id": "a", "text": "Trolls regenerate.", "score": 0.7, "page": 3},
        {"id": "b", "text": "Only for some.", "score": 0.69, "clearance": 1},
        {"id": "c", "text": "The weather in spring.", "score": 0.2, "color": ["grey"]},
    ]
    asked = {"question": QUESTION, "hits": docs, "metric": "similarity", "profile": "adaptive-gap"}
    mine = rf.Filter("adaptive-gap")(QUESTION, docs, metric="similarity", user=rf.User(0))
    assert ids(service.post("/v1/filter", json=asked)) == [hit.id for hit in mine]
    more = {"settings": {"cutoff.max_results": 1, "cutoff.min_results": 1}}
    assert len(ids(service.post("/v1/filter", json=asked | more))) == 1


def test_documents_are_ranked_for_the_clients_of_rerankers(service: TestClient) -> None:
    for path in ["/v1/rerank", "/v2/rerank"]:
        documents = ["The weather in spring.", "Trolls regenerate.", {"text": "Trolls fear fire."}]
        asked = {"model": "unfiltered", "query": QUESTION, "documents": documents, "top_n": 2}
        said = service.post(path, json=asked | {"max_tokens_per_doc": 100}).json()
        assert [each["index"] for each in said["results"]] == [1, 2], path
        scores = [each["relevance_score"] for each in said["results"]]
        assert 1 >= scores[0] >= scores[1] >= 0, path
        said = service.post(path, json=asked | {"return_documents": True, "model": ""})
        assert {"text": "Trolls regenerate."} in [each["document"] for each in said.json()["results"]], path
        untold = service.post(path, json=asked | {"documents": [{"no": "text"}]})
        assert (untold.status_code, untold.json()["message"].partition(":")[0]) == (422, "documents.0.fields.text")
        unknown = service.post(path, json=asked | {"model": "rerank-v3.5"})
        assert unknown.status_code == 404, path
        assert "short-answers" in unknown.json()["remedy"], path


def test_dify_reads_a_collection_as_a_knowledge_base(service: TestClient) -> None:
    setting = {"top_k": 2, "score_threshold": 0.3}
    asked = {"knowledge_id": "demo", "query": QUESTION, "retrieval_setting": setting}
    records = service.post("/retrieval", json=asked).json()["records"]
    assert records[0]["metadata"]["id"] == "monster-troll"
    assert len(records) == 2
    assert all(record["content"] and 0.3 <= record["score"] <= 1 for record in records)
    missing = service.post("/retrieval", json=asked | {"knowledge_id": "nope"})
    assert (missing.status_code, missing.json()["error_code"]) == (404, 2001)
    condition = {"conditions": [{"name": "type", "comparison_operator": "is", "value": "spell"}]}
    assert service.post("/retrieval", json=asked | {"metadata_condition": condition}).is_error


ASKED = {"question": QUESTION, "profile": "unfiltered"}


def test_nobody_asks_without_a_token(guarded: TestClient) -> None:
    for headers in ({}, bearer("for-nobody"), {"Authorization": "Basic Zm9vOmJhcg=="}):
        for path in ("/v1/search", "/mcp", "/nowhere"):
            said = guarded.post(path, json=ASKED, headers=headers)
            assert said.status_code == 401
            assert set(said.json()) == {"error", "message", "remedy"}
        assert guarded.get("/metrics", headers=headers).status_code == 401
    for path in ("/healthz", "/readyz", "/docs", "/openapi.json"):
        assert guarded.get(path).status_code == 200


def test_nobody_asks_for_more_than_their_token_may(guarded: TestClient) -> None:
    mine = bearer("for-ada")
    assert ids(guarded.post("/v1/search", json=ASKED, headers=mine))
    lower = {"user": {"level": 0, "departments": []}}
    assert ids(guarded.post("/v1/search", json=ASKED | lower, headers=mine))
    for user in ({"level": 3}, {"departments": ["ops", "hr"]}):
        said = guarded.post("/v1/search", json=ASKED | {"user": user}, headers=mine)
        assert said.status_code == 403
    for name in ("adsapi", "nope"):
        said = guarded.post("/v1/search", json=ASKED | {"collection": name}, headers=mine)
        assert said.status_code == 403
    assert guarded.get("/metrics", headers=mine).status_code == 403
    assert "ragfilter_questions_total" in guarded.get("/metrics", headers=bearer("for-ben")).text


def test_questions_and_answers_are_counted(bench: OpenWorkspace) -> None:
    with TestClient(make_app(serving(bench)), base_url="http://localhost") as client:
        client.post("/v1/search", json={"question": QUESTION, "settings": {"judge.enabled": True}})
        client.post("/v1/search", json={})
        lines = client.get("/metrics").text.splitlines()
    path = 'path="/v1/search"'
    counted = (
        f"ragfilter_questions_total{{{path}}}",
        f"ragfilter_seconds_count{{{path}}}",
        f'ragfilter_answers_total{{{path},status="200"}}',
        f'ragfilter_answers_total{{{path},status="422"}}',
        'ragfilter_fallbacks_total{layer="judge"}',
    )
    assert [each for each in counted if f"{each} 1.0" not in lines] == []


def test_it_is_not_ready_without_its_collection(bench: OpenWorkspace) -> None:
    with TestClient(make_app(serving(bench, collection="nope")), base_url="http://localhost") as client:
        assert (client.get("/healthz").status_code, client.get("/readyz").status_code) == (200, 404)


def test_a_large_collection_is_never_listed(
    service: TestClient, bench: OpenWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = bench.workspace.store()
    monkeypatch.setattr(store, "catalogue_limit", 0)
    monkeypatch.setattr(type(store.collection("demo")), "entries", None)
    assert ids(service.post("/v1/search", json={"question": QUESTION}))


def test_without_tokens_only_this_machine_is_answered(service: TestClient) -> None:
    said = service.post("/v1/search", json=ASKED, headers={"Host": "evil.example"})
    assert said.status_code == 400
    assert service.post("/v1/search", json=ASKED, headers={"Host": "[::1]:8000"}).is_success


def test_every_error_has_one_shape_and_a_remedy(service: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    for path, body, status in (
        ("/v1/search", {}, 422),
        ("/v1/search", ASKED | {"profle": "full"}, 422),
        ("/v1/search", ASKED | {"question": "\ud800"}, 422),
        ("/v1/search", ASKED | {"settings": {"cutoff.max_results": -1}}, 422),
        ("/v1/search", ASKED | {"settings": {"quality.reranker_model": "/etc"}}, 422),
        ("/v1/search", ASKED | {"settings": {"retrieval.source_pattern": "nope*"}}, 422),
        ("/v1/search", ASKED | {"collection": "n" * 5000}, 404),
        ("/v1/filter", {"question": "a", "hits": [{"id": "x"}]}, 422),
        ("/v1/filter", {"question": "a", "hits": [{"text": "x"}] * 1001}, 422),
        ("/v1/nope", {}, 404),
    ):
        said = service.post(path, content=json.dumps(body), headers={"content-type": JSON})
        assert (said.status_code, set(said.json())) == (status, {"error", "message", "remedy"})
        assert said.json()["remedy"]
        assert len(said.json()["message"]) <= MAX_CHARS
    for error, kind in ((KeyError("x"), "Unexpected"), (rf.RagfilterError("x"), "RagfilterError")):
        assert json.loads(error_response(error, "/").body)["error"] == kind
    assert caplog.records[-1].exc_info is None
    assert service.get("/v1/search").status_code == 405
    for sent in (b" " * (MAX_BYTES + 1), (b" " * 1024 for _ in range(MAX_BYTES // 1024 + 1))):
        large = service.post("/v1/search", content=sent, headers={"content-type": JSON})
        assert large.status_code == 413
    assert service.post("/v1/search", content=b"{", headers={"content-type": JSON}).is_error
    untyped = service.post("/v1/search", content=b"{}", headers={"content-type": "text/plain"})
    assert JSON in untyped.json()["remedy"]


JSON = "application/json"


def test_the_page_of_the_addresses_loads_nothing_from_elsewhere(service: TestClient) -> None:
    page = service.get("/docs").text
    assets = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert len(assets) == 3
    for asset in assets:
        assert asset.startswith("/swagger/")
        assert service.get(asset).status_code == 200


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    with still_clocks():
        yield make_twins(tmp_path_factory.mktemp("served"))


def everything_told(world: Path) -> list[str]:
    """All answers to a user of the world, and the metrics afterwards."""
    told = []
    with OpenWorkspace.open(Deployment(data_dir=world / "ws")) as opened:
        # Also a token for this user that may read the metrics.
        anyone = Caller(USER, metrics=True)
        app = make_app(serving(opened, collection="small", anyone=anyone))
        with TestClient(app, base_url="http://localhost") as client:
            for question in QUESTIONS.values():
                for profile in ("full", "query-must", "unfiltered"):
                    asked = {"question": question, "profile": profile}
                    told.append(client.post("/v1/search", json=asked).text)
                dify = {"knowledge_id": "small", "query": question}
                told.append(client.post("/retrieval", json=dify).text)
                file = {"settings": {"retrieval.source_pattern": "vault*"}, "question": question}
                told.append(client.post("/v1/search", json=file).text)
            call = {"name": "get_chunks", "arguments": {"ids": ["hidden-cat-0", "cat-0"]}}
            ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            accept = {"Accept": "application/json, text/event-stream"}
            told.append(client.post("/mcp", json=ask, headers=accept).text)
            metrics = client.get("/metrics").text.splitlines()
            told += [line for line in metrics if "_created" not in line]
    return told


def test_hidden_chunks_leave_no_trace(worlds: tuple[Path, Path]) -> None:
    one, other = map(everything_told, worlds)
    assert one == other
    assert SECRET not in "".join(one)


@pytest.fixture(scope="module")
def live(bench: OpenWorkspace) -> Iterator[str]:
    """The address of the service with tokens, served by a real server."""
    bound = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(make_app(serving(bench, tokens=TOKENS)), log_config=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        bound.close()


# schemathesis registers a random number generator that hypothesis cannot reset.
@pytest.mark.filterwarnings("ignore:.*register_random")
def test_no_request_makes_it_fail(live: str) -> None:
    schema = schemathesis.openapi.from_url(f"{live}/openapi.json")
    for found in schema.get_all_operations():
        operation = found.ok()
        modes = list(GenerationMode) if operation.body else [GenerationMode.POSITIVE]

        @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
        @given(case=st.one_of(map(operation.as_strategy, modes)))
        def check(case: Any) -> None:
            said = case.call(headers=bearer("for-ben"))
            assert said.status_code < 500, said.text
            if said.status_code >= 400:
                assert set(said.json()) >= {"error", "message", "remedy"}

        check()


def test_agents_use_the_tools_as_the_user_of_their_token(live: str) -> None:
    async def ask(token: str, name: str, **given: Any) -> tuple[bool, Any]:
        async with httpx2.AsyncClient(headers=bearer(token)) as http:
            transport = streamable_http_client(f"{live}/mcp", http_client=http)
            async with Client(transport) as client:
                said = await client.call_tool(name, given)
                return bool(said.is_error), said.structured_content or said.content[0].text

    failed, said = asyncio.run(ask("for-ada", "search_chunks", query=QUESTION, k=2))
    assert not failed
    assert said["chunks"][0]["id"] == "monster-troll"
    failed, said = asyncio.run(ask("for-ada", "search_chunks", query="a", collection="other"))
    assert failed
    assert "cannot search" in said
    failed, said = asyncio.run(ask("for-ben", "get_chunks", ids=["x"], collection="other"))
    assert failed
    assert "no collection 'other'" in said


def patient(started: threading.Event, stopped: threading.Event) -> Callable[[], None]:
    """Work that ends only if it is stopped."""

    def work() -> None:
        started.set()
        try:
            while True:
                check_stopped()
                time.sleep(0.01)
        except Abandoned:
            stopped.set()
            raise

    return work


class Left:
    """A request whose client goes away once the work has started."""

    def __init__(self, started: threading.Event) -> None:
        self.started = started

    async def receive(self) -> dict[str, str]:
        await asyncio.to_thread(self.started.wait)
        return {"type": "http.disconnect"}


def test_what_nobody_waits_for_is_stopped() -> None:
    async def leave(work: Executor) -> None:
        started, stopped = threading.Event(), threading.Event()
        with pytest.raises(Refused, match="gone away"):
            await work.answer(Left(started), patient(started, stopped))  # type: ignore[arg-type]
        await asyncio.to_thread(stopped.wait)

    async def overrun() -> None:
        started, stopped = threading.Event(), threading.Event()
        work = Executor(1, 0.05)
        with pytest.raises(Refused, match=r"more than 0\.05 s") as refused:
            await work.call(patient(started, stopped))
        assert refused.value.status == 504
        await asyncio.to_thread(stopped.wait)
        work.close()

    async def all_of_it() -> None:
        work = Executor(1, PROCESS_S)
        await leave(work)
        # The one thread is free again.
        assert await work.call(lambda: 1) == 1
        work.close()
        await overrun()

    asyncio.run(all_of_it())


def test_more_than_a_queue_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragfilter.service.executor.WAITING", 1)

    async def crowd() -> None:
        work, release = Executor(1, PROCESS_S), threading.Event()
        waiting = [asyncio.create_task(work.call(release.wait)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Refused, match="Too many") as refused:
            await work.call(lambda: None)
        assert refused.value.status == 429
        release.set()
        await asyncio.gather(*waiting)
        work.close()

    asyncio.run(crowd())


def test_waiting_for_a_model_is_stopped_too() -> None:
    over = threading.Event()
    threading.Timer(0.05, over.set).start()
    with stopping(over.is_set), pytest.raises(Abandoned):
        within(PROCESS_S, threading.Event().wait)


# The commands


def test_a_token_is_shown_once_and_its_hash_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tokens.toml"
    for words in (["ada", "--level", "2", "--department", "ops", "--collection", "demo"], ["ben", "--metrics"]):
        assert main(["token", *words]) == 0
        said = capsys.readouterr()
        made = said.err.split()[-1]
        assert made not in said.out
        with file.open("a") as opened:
            opened.write(said.out)
        assert token_hash(made) in said.out
    ada, ben = read_tokens(file).values()
    assert (ada, ben) == (ADA, replace(BEN, metrics=True))


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ('name = "a"', "sha256"),
        ('name = "a"\nsha256 = "abc"', "sha256"),
        (f'name = "a"\nsha256 = "{"0" * 64}"\ndepartment = "ops"', "department"),
        (f'name = "a"\nsha256 = "{"0" * 64}"\nlevel = -1', "level"),
        (f'name = "a"\nsha256 = "{"0" * 64}"\n[[token]]\nname = "a"\nsha256 = "{"1" * 64}"', "a."),
    ],
)
def test_a_file_that_could_let_somebody_in_is_refused(tmp_path: Path, entry: str, why: str) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(f"[[token]]\n{entry}\n")
    with pytest.raises(rf.RagfilterError, match=why):
        read_tokens(file)


def test_without_tokens_it_is_not_bound_to_a_network(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--host", "0.0.0.0"]) == 2
    assert "ragfilter token" in capsys.readouterr().err


def test_its_spans_are_exported(copy_demo: Callable[[], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    spans, parent = InMemorySpanExporter(), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    def ask(server: uvicorn.Server, sockets: object) -> None:
        with TestClient(server.config.app, base_url="http://localhost") as client:  # type: ignore[arg-type]
            assert ids(client.post("/v1/search", json=ASKED, headers={"traceparent": parent}))

    monkeypatch.setattr(trace_exporter, "OTLPSpanExporter", lambda: spans)
    monkeypatch.setattr(uvicorn.Server, "run", ask)
    monkeypatch.setattr(serve, "_bind", lambda host, port: socket.socket())
    assert main(["serve", "--traces", "texts", "--data-dir", str(copy_demo())]) == 0
    (question,) = (span for span in spans.get_finished_spans() if span.name == "ragfilter")
    assert (question.attributes or {})["input.value"] == QUESTION
    assert f"{question.context.trace_id:032x}" in parent


def test_it_is_served_until_it_is_stopped(copy_demo: Callable[[], Path], bare_environ: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    command = [sys.executable, "-m", "ragfilter", "serve", "--port", str(port), "--data-dir", str(copy_demo())]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=bare_environ, text=True, stdout=pipe, stderr=pipe) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        try:
            url = server.stdout.readline().split()[0]
            said = httpx2.post(f"{url}/v1/search", json=ASKED, timeout=PROCESS_S).json()
            assert said["kept"]
            server.send_signal(signal.SIGTERM)
            assert server.wait(PROCESS_S) == 130
            assert "only this machine" in server.stderr.read()
        finally:
            server.kill()
