"""Answers: citations, prices, what remains after a failure, and extractive answers without a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from syrupy.assertion import SnapshotAssertion

from ragfilter.answer.answer import UNFINISHED, VERSION, Answer, AnswerStream, citations
from ragfilter.answer.context_packing import Context, pack
from ragfilter.errors import ChatError, ModelError
from ragfilter.model import Chunk, Hit
from ragfilter.protocols import Delta, Embedder, Message, Prices, Usage, Vectors
from ragfilter.settings.schema import Settings

TEXTS = ("Trolls fear fire.", "Giants throw stones [9].")


class Chat:
    """Replays pieces: texts, a usage, or an error to raise."""

    name = "scripted"

    def __init__(self, *pieces: str | Usage | Exception) -> None:
        self._pieces = pieces
        self.asked: list[tuple[tuple[Message, ...], float]] = []

    def stream(self, messages: Sequence[Message], *, timeout_s: float, **_: object) -> Iterator[Delta]:
        self.asked.append((tuple(messages), timeout_s))
        for piece in self._pieces:
            if isinstance(piece, Exception):
                raise piece
            yield Delta(piece) if isinstance(piece, str) else Delta(usage=piece)


class Letters:
    """Counts letters, which is enough of an embedder to tell sentences apart."""

    name = "letters"

    def embed(self, texts: Sequence[str]) -> Vectors:
        counts = np.array(
            [[t.lower().count(c) + 0.01 for c in "abcdefghijklmnopqrstuvwxyz"] for t in texts], dtype=np.float32
        )
        vectors: Vectors = counts / np.linalg.norm(counts, axis=1, keepdims=True)
        return vectors


class Broken:
    name = "broken"

    def embed(self, texts: Sequence[str]) -> Vectors:
        raise ModelError("The model is gone.", remedy="Install it.")


def packed(*texts: str) -> Context:
    hits = tuple(Hit(Chunk(f"c{n}", t), 0.5, n) for n, t in enumerate(texts, start=1))
    return pack(hits, Settings())


def ask(chat: Chat | None, embedder: Embedder | None = None, prices: Prices | None = None) -> Answer:
    return AnswerStream(
        "What do trolls fear?", packed(*TEXTS), chat, embedder or Letters(), timeout_s=3.0, prices=prices
    ).read()


def test_citations() -> None:
    for text, n, known, unknown in [
        ("Fire [2][1], again [2].", 2, (2, 1), ()),
        ("Fire [1, 2].", 2, (1, 2), ()),
        ("Fire [1-3].", 3, (1, 2, 3), ()),
        ("Fire [1–3, 5].", 4, (1, 2, 3), (5,)),
        ("Fire [0] [7].", 2, (), (0, 7)),
        ("Fire [1-99999].", 1, (1,), (99999,)),
        ("Fire [a], 1, (2), [].", 2, (), ()),
    ]:
        assert citations(text, n) == (known, unknown)


def test_an_answer_by_the_model() -> None:
    chat = Chat("They fear ", "fire [1] and [4].", Usage(1000, 200))
    found = ask(chat, prices=Prices(prompt=0.5, completion=2.0, currency="EUR"))
    assert found.text == "They fear fire [1] and [4]."
    assert (found.citations, found.unknown_citations) == ((1,), (4,))
    assert (found.model, found.extractive, found.error) == ("scripted", False, "")
    assert found.prompt_version == VERSION
    assert found.usage == Usage(1000, 200)
    # 1000 × 0.5 / 1e6 + 200 × 2 / 1e6
    assert found.cost == pytest.approx(0.0009)
    assert found.currency == "EUR"
    assert found.ms > 0
    # The shown context is the one that was sent.
    assert chat.asked == [(found.prompt, 3.0)]
    assert TEXTS[0] in found.prompt[1].content


def test_a_failure_keeps_what_was_streamed_and_says_what_failed(snapshot: SnapshotAssertion) -> None:
    error = ChatError("The endpoint closed.", kind="interrupted", remedy="Try again.")
    found = ask(Chat("They fear fire [1]", error), prices=Prices(1, 1))
    assert found.text == "They fear fire [1]"
    assert found.citations == (1,)
    assert found.error == snapshot
    assert found.usage.estimated


def test_a_foreign_failure_is_told_without_its_words(snapshot: SnapshotAssertion) -> None:
    found = ask(Chat("Fire", ValueError("key sk-secret")))
    assert found.text == "Fire"
    assert found.error == snapshot


def test_without_a_model_the_answer_is_quoted() -> None:
    found = ask(None, prices=Prices(1, 1))
    assert found.text.startswith("Trolls fear fire. [1]")
    assert found.extractive
    assert (found.model, found.prompt, found.cost, found.error) == ("extractive", (), None, "")
    # "[9]" is in the chunk, so it is not a citation of ours.
    assert found.unknown_citations == ()
    assert set(found.citations) <= {1, 2}


def test_a_failing_embedder_is_told() -> None:
    found = ask(None, Broken())
    assert (found.text, found.error) == ("", "The model is gone. Install it.")


def test_streaming_gives_the_pieces_and_the_answer_so_far() -> None:
    stream = AnswerStream("q", packed(*TEXTS), Chat("a ", "[1]"), Letters(), timeout_s=1)
    assert stream.answer.error == UNFINISHED
    pieces = iter(stream)
    assert next(pieces) == "a "
    assert (stream.answer.text, stream.answer.error) == ("a ", UNFINISHED)
    assert list(pieces) == ["[1]"]
    assert (stream.answer.text, stream.answer.error) == ("a [1]", "")
    # Read twice, but asked once.
    assert list(stream) == []
    assert stream.answer.citations == (1,)
