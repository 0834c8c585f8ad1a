"""`index --ray`: a real Ray of two workers, one of which is killed while it embeds."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray

from ragfilter.cli.program import main
from ragfilter.indexing import order
from ragfilter.indexing.order import BATCH
from ragfilter.protocols import Vectors
from ragfilter.settings.deployment import Deployment
from ragfilter.stores.caches import VectorCache
from ragfilter.workbench import Workbench

COUNT = 12 * BATCH

pytestmark = [pytest.mark.slow, pytest.mark.model]


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Path]:
    rooms = ({"id": f"c{i}", "text": f"Room {i} holds {i * 7} coins."} for i in range(COUNT))
    (tmp_path / "rooms.jsonl").write_text("\n".join(map(json.dumps, rooms)))
    yield tmp_path / "rooms.jsonl"
    ray.shutdown()


def test_a_killed_worker_costs_its_batch_and_an_interruption_nothing(
    address: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, embed, put = tmp_path / "log", order._embed, VectorCache.put
    log.mkdir()

    # Ray sends it by value, with what it names here.
    def embed_or_die(model: str, texts: Sequence[str]) -> Vectors:
        with (log / texts[0]).open("a") as runs:
            runs.write(".")
        with suppress(FileExistsError):
            (log.parent / "killed").touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGKILL)
        return embed(model, texts)

    def save_and_stop(*given: Any, **more: Any) -> None:
        put(*given, **more)
        raise KeyboardInterrupt

    monkeypatch.setenv("RAGFILTER_WORKSPACE", address)
    monkeypatch.setattr(ray, "init", partial(ray.init, num_cpus=2))
    monkeypatch.setattr(order, "_embed", embed_or_die)
    monkeypatch.setattr(order.RayEmbedder, "at_once", 4 * BATCH)
    command = ["index", str(source), "--collection", "rooms", "--ray", "local"]
    with monkeypatch.context() as patch:
        patch.setattr(VectorCache, "put", save_and_stop)
        assert main(command) == 130
    assert main(command) == 0
    assert sorted(runs.stat().st_size for runs in log.iterdir()) == [1] * 11 + [2]
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
