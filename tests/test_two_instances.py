"""Two instances on one PostgreSQL: what one of them stores, the other one can read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from test_indexing_queue import until

from ragfilter.cli import serve
from ragfilter.cli.program import main
from ragfilter.indexing.order import Order
from ragfilter.indexing.queue import IndexJob, Worker, queue_of
from ragfilter.settings import config
from ragfilter.settings.deployment import Deployment
from ragfilter.stores.base import Opening
from ragfilter.stores.caches import ReplyCache, VectorCache
from ragfilter.stores.opening import FILE, openings
from ragfilter.workbench import Workbench

ROOT = Path(__file__).resolve().parents[1]
INSTANCE = """
import sys, time
from ragfilter.indexing import queue
from ragfilter.settings.deployment import Deployment
from ragfilter.workbench import Workbench

queue.BEAT_S = 0.2
class Slow(queue.Worker):
    def _carry_out(self, job):
        self._bench.embedder.embed = slow(self._bench.embedder.embed)
        super()._carry_out(job)
def slow(embed):
    def wait(texts):
        time.sleep(0.5)
        return embed(texts)
    return wait
bench = Workbench.open(Deployment(workspace=sys.argv[1]))
Slow(bench).start()
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture
def bench(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workbench]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "here"))
    with Workbench.open(Deployment(workspace=address)) as bench:
        yield bench


@pytest.fixture
def elsewhere(address: str, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another instance, on a machine with other folders, which embeds slowly."""
    environ = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "there"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", INSTANCE, address]
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.wait()


def ordered(bench: Workbench, name: str, texts: int) -> IndexJob:
    """A job whose source was uploaded here."""
    queue = queue_of(bench)
    folder = queue.uploads / name
    folder.mkdir(parents=True)
    lines = (json.dumps({"id": f"c{i}", "text": f"Text {i}."}) + "\n" for i in range(texts))
    (folder / "a.jsonl").write_text("".join(lines))
    return queue.put(Order(name, str(folder), temporary=True))


@pytest.mark.model
def test_the_job_of_a_killed_instance_goes_on_in_another(
    bench: Workbench, elsewhere: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragfilter.indexing.queue.LOST_S", 2.0)
    job = ordered(bench, "mine", 640)
    queue = queue_of(bench)
    # Embedded there, from the files that came with the job.
    begun = until(queue, job, lambda at: at.state == "running" and at.done >= 128)
    elsewhere.send_signal(signal.SIGKILL)
    elsewhere.wait()
    Worker(bench).start()
    report = until(queue, job, lambda at: at.state == "done").result().report
    assert report.total == 640
    assert report.embedded <= 640 - begun.done
    assert bench.collection("mine").count() == 640


@pytest.mark.model
def test_each_job_goes_to_one_of_two_instances(bench: Workbench, elsewhere: subprocess.Popen[str]) -> None:
    Worker(bench).start()
    queue = queue_of(bench)
    workers: set[int] = set()
    # On a busy machine, one of them may take several jobs before the other looks for one.
    for part in range(20):
        jobs = [ordered(bench, f"each{part}-{n}", 10) for n in range(6)]
        reports = [until(queue, job, lambda at: at.state == "done").result().report for job in jobs]
        assert [report.embedded for report in reports] == [10] * 6
        with queue.writing() as connection:
            found = connection.exec_driver_sql("SELECT worker, tries FROM index_jobs").all()
        assert {tries for _, tries in found} == {1}
        workers |= {worker for worker, _ in found}
        if len(workers) == 2:
            return
    raise AssertionError(workers)


def test_settings_openings_answers_and_sentences_are_there_for_both(
    bench: Workbench, address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = bench.workspace.files
    config.save(files, "strict", "[cutoff]\nmax_results = 3\ngap_threshold = 9\n")
    files.write(FILE, '{"theirs": {"folder": "postgresql://host/db", "embedder": "m"}}')
    cache = ReplyCache(tmp_path, address, 1.0)
    cache.put("asked", "answered")
    VectorCache(tmp_path, address).put("mine", "m", ["a"], np.ones((1, 4), np.float32))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "there"))
    with Workbench.open(Deployment(workspace=address)) as other:
        assert other.workspace.path != bench.workspace.path
        assert config.saved_names(other.workspace.files) == ["strict"]
        assert openings(other.workspace.files) == {"theirs": Opening("postgresql://host/db", "m")}
        found = VectorCache(tmp_path, address).find("m", ["a", "b"])
        assert {text: list(vector) for text, vector in found.items()} == {"a": [1.0] * 4}
        there = ReplyCache(tmp_path, address, 1.0)
        assert there.get("asked") == "answered"
        there.close()
    monkeypatch.setenv("RAGFILTER_WORKSPACE", address)
    assert main(["query", "owl", "--config", "strict"]) == 2
    assert "strict.toml" in capsys.readouterr().err
    config.forget(files, "strict")
    assert main(["query", "owl", "--config", "strict"]) == 2
    assert "No settings are saved under 'strict'" in capsys.readouterr().err
    cache.close()


def test_the_answers_unused_for_longest_go_first(address: str, tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path, address, 0.5)
    for n in range(80):
        cache.put(str(n), "x" * 8_000)
        assert cache.get("0")
    stays = [n for n in range(80) if cache.get(str(n))]
    assert stays == [0, *range(19, 80)]
    cache.put("much", "x" * 500_000)
    assert cache.get("much") is None
    cache.close()


def test_an_app_starts_while_another_one_indexes_the_demo(
    bench: Workbench, address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    resources = SimpleNamespace(bench=SimpleNamespace(close=lambda: None))
    served = SimpleNamespace(open_resources=lambda: resources, main=lambda *_, **__: None)
    monkeypatch.setattr(serve, "import_module", lambda name: served)
    monkeypatch.setenv("RAGFILTER_WORKSPACE", address)
    with bench.workspace.store().only_one("demo"):
        assert main(["app", "--port", "8599"]) == 130
    out, err = capsys.readouterr()
    assert (out.startswith("workspace: postgresql:"), "demo" in err) == (True, True)
