"""Sentences of indexed chunks are embedded while the app is idle, and answers find them."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ragfilter.answer.extractive import extract
from ragfilter.basics.threads import SharedCache
from ragfilter.cli.program import main
from ragfilter.indexing.embed_ahead import prepare, prepare_when_idle
from ragfilter.indexing.order import Order, carry_out
from ragfilter.library.workspace import open_workspace
from ragfilter.model import Chunk, Hit
from ragfilter.stores.caches import VECTORS, VectorCache
from ragfilter.text.sentences import passages_of
from ragfilter.ui.resources import CachedEmbedder
from ragfilter.workbench import Workbench

TROLLS = "Trolls heal three points a turn. They fear fire and acid."
CAVES = "The caves are dark and wet. Bats live there in great numbers."


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Workbench]:
    with open_workspace(tmp_path / "ws") as opened:
        yield opened


def index(bench: Workbench, **texts: str) -> None:
    source = bench.workspace.path.parent / "a.jsonl"
    source.write_text("".join(json.dumps({"id": i, "text": t}) + "\n" for i, t in texts.items()))
    carry_out(Order("mine", str(source), reset=True), bench)


def known(sentences: VectorCache, *texts: str) -> list[int]:
    """How many sentences of each text are stored."""
    name = "all-MiniLM-L6-v2"
    return [len(sentences.find(name, passages_of("", text))) for text in texts]


@pytest.mark.model
def test_an_answer_from_prepared_sentences_is_the_same_and_embeds_only_the_question(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences = bench.workspace.vectors
    index(bench, a=TROLLS, b=CAVES)
    assert list(prepare(bench, sentences)) == [(4, 4)]
    assert known(sentences, TROLLS, CAVES) == [2, 2]

    asked: list[str] = []
    plain = bench.embedder.embed
    monkeypatch.setattr(bench.embedder, "embed", lambda texts: asked.extend(texts) or plain(texts))
    hits = [Hit(Chunk(text[:3], text), 0.5, n) for n, text in enumerate((TROLLS, CAVES), 1)]
    stored = CachedEmbedder(bench.embedder, SharedCache(9), stored=sentences)
    found = extract("How do trolls heal?", hits, stored)
    assert asked == ["How do trolls heal?"]
    assert found == extract("How do trolls heal?", hits, bench.embedder)

    # Sentences that have left the collection are removed; the others are not embedded again.
    index(bench, b=CAVES, c="Rats steal the food of travellers.")
    asked.clear()
    list(prepare(bench, sentences))
    assert asked == ["Rats steal the food of travellers."]
    assert known(sentences, TROLLS, CAVES) == [0, 2]
    bench.workspace.contents.path("mine").unlink()
    list(prepare(bench, sentences))
    assert known(sentences, CAVES) == [0]


@pytest.mark.model
def test_nothing_is_embedded_while_somebody_waits_or_has_just_waited(bench: Workbench) -> None:
    index(bench, a=TROLLS)
    sentences = bench.workspace.vectors
    step = prepare_when_idle(bench, sentences, iter([True, False]).__next__)
    assert [step(), step()] == [False, False]
    step = prepare_when_idle(bench, sentences, lambda: False)
    assert [step(), step()] == [True, False]


@pytest.mark.model
def test_the_command_embeds_them(tmp_path: Path) -> None:
    source = tmp_path / "a.jsonl"
    source.write_text(json.dumps({"id": "a", "text": CAVES}))
    assert main(["index", str(source), "-c", "mine", "--data-dir", str(tmp_path / "ws")]) == 0
    with open_workspace(tmp_path / "ws") as bench:
        assert known(bench.workspace.vectors, CAVES) == [2]


@pytest.mark.model
def test_a_damaged_file_stores_nothing_and_says_so_once(bench: Workbench, caplog: pytest.LogCaptureFixture) -> None:
    (bench.workspace.path / VECTORS).write_bytes(b"nonsense" * 999)
    sentences = bench.workspace.vectors
    with caplog.at_level(logging.WARNING):
        sentences.put("mine", "model", ["a"], np.ones((1, 4), np.float32))
        assert sentences.find("model", ["a"]) == {}
        index(bench, a=TROLLS)
        assert [len([*prepare(bench, sentences)]) for _ in range(2)] == [1, 0]
    assert caplog.text.count("Delete it to start over") == 1
