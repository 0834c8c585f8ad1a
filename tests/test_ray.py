"""`index --ray`: a real Ray of two workers, one of which is killed while it embeds."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

from ragfilter.cli.app import main
from ragfilter.indexing.order import BATCH
from ragfilter.settings.deployment import Deployment
from ragfilter.workbench import Workbench

ray = pytest.importorskip("ray")
COUNT = 12 * BATCH

pytestmark = [pytest.mark.slow, pytest.mark.model]


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Path]:
    rooms = ({"id": f"c{i}", "text": f"Room {i} holds {i * 7} coins."} for i in range(COUNT))
    (tmp_path / "rooms.jsonl").write_text("\n".join(map(json.dumps, rooms)))
    yield tmp_path / "rooms.jsonl"
    ray.shutdown()


def killed_worker() -> threading.Thread:
    """Kills the first process that Ray has embed."""

    def kill() -> None:
        while True:
            for process in psutil.process_iter(["cmdline"]):
                if (process.info["cmdline"] or [""])[0].startswith("ray::_embed"):
                    process.kill()
                    return
            time.sleep(0.01)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    return thread


def test_a_killed_worker_costs_its_batch_alone(address: str, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGFILTER_WORKSPACE", address)
    killer = killed_worker()
    assert main(["index", str(source), "--collection", "rooms", "--ray", "local"]) == 0
    assert not killer.is_alive()
    with Workbench.open(Deployment(workspace=address)) as bench:
        database = bench.workspace.store()
        assert database.collection("rooms").count() == COUNT
        texts = [f"Room {i} holds {i * 7} coins." for i in range(0, COUNT, 100)]
        stored = database.vectors_of("rooms", texts)
        expected = bench.embedder.embed(texts)
        got = np.stack([stored[text] for text in texts])
        assert np.abs(got - expected).max() < 1e-5


def test_a_cluster_that_is_not_there_is_one_line(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["index", str(source), "--collection", "rooms", "--data-dir", str(tmp_path / "ws")]
    assert main([*command, "--ray", "127.0.0.1:1"]) == 2
    assert "There is no Ray cluster at 127.0.0.1:1" in capsys.readouterr().err
