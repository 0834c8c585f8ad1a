"""Jobs are run by the process that has the workspace open: reported, stopped, continued."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name

import pytest
import sqlalchemy as sa
from killed import Even
from waiting import PROCESS_S

from ragfilter.cli.program import main
from ragfilter.indexing.order import Order
from ragfilter.indexing.queue import IndexJob, JobStatus, Queue, Worker, queue_of
from ragfilter.library.workspace import open_workspace
from ragfilter.models.embedders import BundledEmbedder
from ragfilter.protocols import Vectors
from ragfilter.workbench import Workbench

pytestmark = pytest.mark.model
ROOT = Path(__file__).resolve().parents[1]


def until(queue: Queue, job: IndexJob, told: Callable[[JobStatus], bool]) -> JobStatus:
    deadline = time.monotonic() + PROCESS_S
    while time.monotonic() < deadline:
        found = queue.job(job.id)
        assert found is not None
        if told(found.status):
            return found.status
        time.sleep(0.02)
    raise AssertionError("it never came to that")


def embedding(status: JobStatus) -> bool:
    """Whether some texts were embedded, not only read."""
    return status.done >= 64 and "embedded" in status.phase


def records(path: Path, n: int, text: str = "Text {} of trolls.") -> Path:
    lines = (json.dumps({"id": f"c{i}", "text": text.format(i)}) + "\n" for i in range(n))
    path.write_text("".join(lines))
    return path


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Workbench]:
    with open_workspace(tmp_path / "ws") as opened:
        yield opened


@pytest.fixture
def slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch of texts is embedded without the model, in the time in which a test can interfere."""

    def embed(self: BundledEmbedder, texts: Sequence[str]) -> Vectors:
        time.sleep(0.05)
        return Even().embed(texts)

    monkeypatch.setattr(BundledEmbedder, "embed", embed)


def test_an_order_is_carried_out_and_what_is_left_out_is_listed(bench: Workbench, tmp_path: Path) -> None:
    source = records(tmp_path / "a.jsonl", 3)
    source.write_text(source.read_text() + "nonsense\n")
    queue = queue_of(bench)
    assert not queue.attended
    job = queue.put(Order("mine", str(source), lenient=True))
    Worker(bench).start()
    assert queue.attended
    status = until(queue, job, lambda status: not status.open)
    assert status.state == "done"
    assert status.result().report.total == 3
    assert status.left_out == 1
    assert status.refused[0].message.startswith("a.jsonl, line 4: this is not valid JSON")
    queue.remove(job.id)
    assert queue.jobs() == ()
    bench.close()
    with open_workspace(bench.workspace.path) as again:
        assert not queue_of(again).attended


def test_an_order_that_fails_says_why(bench: Workbench, tmp_path: Path) -> None:
    queue = queue_of(bench)
    bad = queue.put(Order("mine", str(tmp_path / "nothing.txt")))
    other = queue.put(Order("mine", "demo", embedder="another-model"))
    (empty := tmp_path / "empty.jsonl").write_text('{"id": "a"}\n')
    unusable = queue.put(Order("mine", str(empty), lenient=True))
    Worker(bench).start()
    failed = until(queue, bad, lambda status: not status.open)
    assert (failed.state, "does not exist" in failed.message) == ("failed", True)
    refused = until(queue, other, lambda status: not status.open)
    assert "another-model is not installed" in refused.message
    assert "choose all-MiniLM-L6-v2" in refused.remedy
    empty_source = until(queue, unusable, lambda status: not status.open)
    assert "empty.jsonl, line 1: the text is missing" in empty_source.message


@pytest.mark.usefixtures("slowly")
def test_an_order_is_stopped_and_gone_on_with(bench: Workbench, tmp_path: Path) -> None:
    source = records(tmp_path / "a.jsonl", 640)
    queue = queue_of(bench)
    job = queue.put(Order("mine", str(source)))
    Worker(bench).start()
    until(queue, job, embedding)
    queue.stop(job.id)
    stopped = until(queue, job, lambda status: not status.open)
    assert stopped.state == "stopped"
    assert "mine" not in list(bench)
    queue.go_on(job.id)
    status = until(queue, job, lambda status: not status.open)
    assert status.result().report.total == 640
    # Texts reported as embedded are not embedded again.
    assert status.result().report.embedded <= 640 - stopped.done < 640


@pytest.mark.usefixtures("slowly")
def test_an_order_that_is_removed_while_it_runs_is_stopped(bench: Workbench, tmp_path: Path) -> None:
    queue = queue_of(bench)
    job = queue.put(Order("mine", str(records(tmp_path / "a.jsonl", 640))))
    Worker(bench).start()
    until(queue, job, embedding)
    queue.remove(job.id)
    other = queue.put(Order("other", str(records(tmp_path / "b.jsonl", 2))))
    until(queue, other, lambda status: status.state == "done")
    assert list(bench) == ["other"]
    assert [each.id for each in queue.jobs()] == [other.id]


@pytest.mark.parametrize(("tries", "ends"), [(1, "done"), (3, "failed")])
def test_what_a_dead_process_left_half_done_goes_on_a_few_times(
    bench: Workbench, tmp_path: Path, tries: int, ends: str
) -> None:
    queue = queue_of(bench)
    job = queue.put(Order("mine", str(records(tmp_path / "a.jsonl", 2))))
    for _ in range(tries):
        assert queue.take(queue.enlist()) == replace(job, status=JobStatus("running"))
        assert queue.take(0) is None
        with queue.writing() as connection:
            connection.execute(sa.text("UPDATE index_workers SET seen = seen - 16"))
    Worker(bench).start()
    assert until(queue, job, lambda status: not status.open).state == ends


def test_a_worker_whose_end_could_not_be_told_begins_again(bench: Workbench) -> None:
    queue = queue_of(bench)
    job, worker, other = queue.put(Order("mine", "a file")), queue.enlist(), queue.enlist()
    for _ in range(2):
        assert queue.take(worker) == replace(job, status=JobStatus("running"))
        assert queue.take(other) is None
    # A worker that counted as dead, but is alive.
    queue.leave(worker)
    assert not queue.is_first(worker)
    queue.beat(worker)
    assert queue.is_first(worker)
    assert queue.take(other) is None


@pytest.mark.usefixtures("slowly")
def test_what_is_under_way_at_the_end_waits_for_the_next_start(bench: Workbench, tmp_path: Path) -> None:
    queue = queue_of(bench)
    job = queue.put(Order("mine", str(records(tmp_path / "a.jsonl", 640))))
    Worker(bench).start()
    until(queue, job, embedding)
    bench.close()
    with open_workspace(bench.workspace.path) as again:
        Worker(again).start()
        report = until(queue_of(again), job, lambda at: not at.open).result().report
    assert report.embedded <= 640 - 64


def test_a_temporary_source_goes_with_its_order_and_nothing_else_does(bench: Workbench, tmp_path: Path) -> None:
    queue = queue_of(bench)
    inside = bench.workspace.path / "uploads" / "x"
    inside.mkdir(parents=True)
    for source in (inside, tmp_path / "mine"):
        source.mkdir(exist_ok=True)
        job = queue.put(Order("mine", str(source), temporary=True))
        queue.remove(job.id)
    assert (inside.exists(), (tmp_path / "mine").exists()) == (False, True)


def test_uploads_of_a_closed_tab_are_removed_a_day_later(bench: Workbench) -> None:
    queue = queue_of(bench)
    folders = [bench.workspace.path / "uploads" / name for name in ("ordered", "new", "old")]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "a.txt").write_text("Trolls fear fire.")
        if folder.name != "new":
            os.utime(folder, times=(time.time() - 25 * 3600,) * 2)
    job = queue.put(Order("mine", str(folders[0]), temporary=True))
    queue.stop(job.id)
    Worker(bench).start()
    assert [folder.exists() for folder in folders] == [True, True, False]


def test_the_command_line_indexes_while_the_app_runs(
    bench: Workbench, tmp_path: Path, bare_environ: dict[str, str]
) -> None:
    source = records(tmp_path / "a.jsonl", 3)
    where = ["--data-dir", str(bench.workspace.path), "--json"]
    command = [sys.executable, "-m", "ragfilter", "index", source.name, "-c", "mine", *where]

    def run() -> subprocess.CompletedProcess[str]:
        environ = bare_environ | {"PYTHONPATH": str(ROOT)}
        return subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True)

    held = run()
    assert held.returncode == 2
    assert "is in use by" in held.stderr
    Worker(bench).start()
    made = run()
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["total"] == 3
    assert "The app has the workspace open. It indexes for this command." in made.stderr
    assert bench.collection("mine").count() == 3
    assert queue_of(bench).jobs() == ()
    source.write_text("nonsense\n")
    bad = run()
    assert (bad.returncode, "a.jsonl, line 1" in bad.stderr) == (2, True)


@pytest.mark.parametrize(
    ("broken", "reached"),
    [
        ("ragfilter.ingest.csv_file.to_record", "2,000 records read"),
        ("ragfilter.stores.caches.VectorCache.put", "64 of 5,000 texts embedded, chunks written"),
    ],
)
def test_an_interrupted_index_says_how_far_it_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], broken: str, reached: str
) -> None:
    source = tmp_path / "a.csv"
    source.write_text("id,text\n" + "".join(f"{i},owl {i}\n" for i in range(2500)))
    real = resolve_name(broken)
    left = 2200 if "to_record" in broken else 1

    def interrupted(*args: object, **kwargs: object) -> object:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    monkeypatch.setattr(broken, interrupted)
    command = ["index", str(source), "-c", "mine", "--data-dir", str(tmp_path / "ws")]
    assert main(command) == 130
    said = f"{reached}. Run the same command again to continue.\nStopped.\n"
    assert capsys.readouterr() == ("", said)
