"""Embeddings over the OpenAI protocol, with a real server that answers correctly and incorrectly."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults import FAULTS, KEY, Behave, Serve, deadline, embeddings, url
from waiting import PATIENT_S

from ragfilter.cli.program import main
from ragfilter.errors import ModelError
from ragfilter.models.openai import OpenAIEmbedder


def test_texts_come_back_as_unit_vectors_in_their_order(serve: Serve) -> None:
    server = serve(embeddings())
    endpoint = f"http://127.0.0.1:{server.server_port}/v1"
    model = OpenAIEmbedder("tiny", api_key=KEY, base_url=endpoint, timeout_s=PATIENT_S)
    texts = [f"{'x' * i}b" for i in range(70)]
    vectors = model.embed(texts)
    wanted = np.array([[len(text), ord(text[0]), 1] for text in texts], dtype=np.float32)
    assert np.allclose(vectors, wanted / np.linalg.norm(wanted, axis=1, keepdims=True))
    assert vectors.dtype == np.float32
    assert len(server.asked) == 2
    assert model.name == "openai:tiny"
    assert {each["path"] for each in server.asked} == {"/v1/embeddings"}
    assert server.asked[0]["key"] == f"Bearer {KEY}"
    model.close()


@pytest.mark.parametrize("fault", [name for name in FAULTS if name != "never ends"])
def test_every_fault_is_a_model_error_without_the_key(
    serve: Serve, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    model = OpenAIEmbedder("tiny", api_key=KEY, base_url=url(serve, FAULTS[fault]), timeout_s=deadline(fault, 0.5))
    with caplog.at_level(logging.DEBUG), pytest.raises(ModelError) as error:
        model.embed(["a"])
    assert error.value.remedy
    assert KEY not in f"{error.value} {caplog.text}"
    model.close()


def test_no_other_host_is_sent_the_texts(serve: Serve) -> None:
    other = serve(embeddings())
    there = f"http://localhost:{other.server_port}/v1/embeddings"
    behave: Behave = lambda handler, _: handler.reply(307, "", Location=there)  # noqa: E731
    model = OpenAIEmbedder("tiny", api_key=KEY, base_url=url(serve, behave), timeout_s=PATIENT_S)
    with pytest.raises(ModelError) as error:
        model.embed(["a"])
    assert error.value.remedy
    assert other.asked == []
    model.close()


def test_a_workspace_is_indexed_and_asked_with_it(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", url(serve, embeddings()))
    monkeypatch.setenv("RAGFILTER_EMBEDDING_MODEL", "openai:tiny")
    (tmp_path / "a.txt").write_text("Trolls fear fire.")
    where = ["-c", "mine", "--data-dir", str(tmp_path / "ws")]
    assert main(["index", str(tmp_path / "a.txt"), *where]) == 0
    assert main(["query", "Trolls?", "-p", "adaptive-gap", *where]) == 0
    assert "1 kept of 1" in capsys.readouterr().out
    # Unless the environment names one, each collection is queried with its own model.
    monkeypatch.delenv("RAGFILTER_EMBEDDING_MODEL")
    assert main(["query", "Trolls?", "-p", "adaptive-gap", *where]) == 0
    assert "1 kept of 1" in capsys.readouterr().out
    monkeypatch.setenv("RAGFILTER_EMBEDDING_MODEL", "openai:other")
    assert main(["query", "Trolls?", "-p", "adaptive-gap", *where]) == 2
    said = capsys.readouterr().err
    assert "was indexed with openai:tiny, not with openai:other. Use openai:tiny" in said


def test_a_labelled_collection_is_indexed_anew_with_another_model(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", url(serve, embeddings()))
    monkeypatch.setenv("RAGFILTER_EMBEDDING_MODEL", "openai:tiny")
    (tmp_path / "a.txt").write_text("Trolls fear fire.")
    where = ["-c", "mine", "--data-dir", str(tmp_path / "ws")]
    again = ["index", str(tmp_path / "a.txt"), *where]
    assert main(again) == 0
    assert main(["labels", "mark", "Trolls?", "a.txt#1", *where]) == 0
    monkeypatch.setenv("RAGFILTER_EMBEDDING_MODEL", "openai:other")
    assert main(again) == 2
    assert main([*again, "--reset"]) == 0
    assert main(["labels", "list", *where]) == 0
    assert "1 label on 1 question" in capsys.readouterr().out
