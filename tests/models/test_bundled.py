"""The bundled embedder: verified weights, unit vectors, and no text that breaks it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from waiting import PATIENT_S, PROCESS_S

from ragfilter.basics.threads import within
from ragfilter.errors import ModelError
from ragfilter.models import embedders as minilm
from ragfilter.models.embedders import BundledEmbedder, SentenceEmbedder, bundled_folder


@pytest.fixture(scope="module")
def embedder() -> BundledEmbedder:
    return BundledEmbedder()


def test_a_changed_bundled_model_is_not_loaded(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(bundled_folder(), folder)
    weights = folder / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(bytes(data))
    changed = BundledEmbedder(folder)
    with pytest.raises(ModelError, match="not the expected ones"):
        changed.embed(["text"])


@pytest.mark.model
def test_its_vectors_are_those_of_sentence_transformers(embedder: BundledEmbedder) -> None:
    texts = ["", "owl", "A hill giant hurls rocks! 🙂", "the tale of a hill giant " * 99]
    reference = SentenceEmbedder(str(bundled_folder()))
    assert np.abs(embedder.embed(texts) - reference.embed(texts)).max() < 1e-6
    for word in ("giant", "lightsaber"):
        assert embedder.knows(word) == reference.knows(word)
    assert embedder.knows("giant")
    assert not embedder.knows("lightsaber")


@pytest.mark.model
def test_no_text_breaks_it(embedder: BundledEmbedder) -> None:
    for text in ["", " \n", "\x00", "a\ud800b", "\u202e🙂\u0301", "word " * 200_000, "x" * 10**6, "🙂" * 9999]:
        vectors = embedder.embed([text, "owl"])
        assert np.isfinite(vectors).all(), text[:9]
        assert vectors[1] == pytest.approx(embedder.embed(["owl"])[0], abs=1e-5), text[:9]


@pytest.mark.model
def test_a_question_waits_for_no_longer_call(embedder: BundledEmbedder) -> None:
    embedder.prepare()
    with ExitStack() as held:
        for _ in range(os.cpu_count() or 1):
            held.enter_context(minilm._turns)
        (tokens,) = within(PATIENT_S, lambda: embedder.tokens(["a question that waits"]))
    assert tokens.shape == (6, 384)


ALONE = """
import time
from pathlib import Path
from threadpoolctl import threadpool_info
from ragfilter.models.embedders import BundledEmbedder

def threads():
    return sorted(task.name for task in Path("/proc/self/task").iterdir())

blas, before = threadpool_info(), threads()
embedder = BundledEmbedder()
embedder.embed(["the tale of a hill giant " * 99, "owl " * 60] * 4)
assert threadpool_info() == blas
deadline = time.monotonic() + 10  # Threads that have been joined are listed a little longer.
while threads() != before and time.monotonic() < deadline:
    time.sleep(0.01)
assert threads() == before
"""


@pytest.mark.model
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="counts threads in /proc")
def test_it_reports_nothing_starts_no_thread_and_changes_none_of_blas(tmp_path: Path) -> None:
    # The reports of onnxruntime wait in the cache folder, and a thread sends them; not in CI.
    environ = {"HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    made = subprocess.run([sys.executable, "-c", ALONE], env=environ, capture_output=True, text=True, timeout=PROCESS_S)
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_the_graph_is_what_the_script_writes() -> None:
    import onnx

    from scripts import minilm_graph

    assert minilm_graph.model() == onnx.load_model(minilm.GRAPH, load_external_data=False)
