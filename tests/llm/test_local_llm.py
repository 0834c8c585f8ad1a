"""A real LLM end to end: SmolLM2-135M behind llama.cpp's OpenAI protocol.

The model is tiny and mostly wrong. These tests check the protocol and how we handle whatever it
says, not the quality of its answers.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import pytest
from waiting import PATIENT_S, PROCESS_S

from ragfilter.answer import context_packing
from ragfilter.answer.answer import AnswerStream
from ragfilter.errors import ChatError
from ragfilter.judge import call
from ragfilter.judge.prompt import build_prompt
from ragfilter.model import Chunk, Hit
from ragfilter.models.openai import OpenAIChat
from ragfilter.protocols import Message, Vectors
from ragfilter.rules.drafting import suggest
from ragfilter.rules.rule import parse
from ragfilter.settings.schema import Judge, Settings
from scripts.local_llm import UNUSABLE

pytestmark = pytest.mark.llm

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 600.0
LENGTH = "length limit was reached"
HITS = tuple(
    Hit(Chunk(f"c{n}", text, title), 0.1 * n, n)
    for n, (title, text) in enumerate(
        (
            ("Troll", "A troll regrows its limbs unless it is burned with fire or acid."),
            ("Boats", "A rowing boat carries four people over a river."),
        ),
        start=1,
    )
)


class NoEmbedder:
    """A chat model answers, so nothing may be embedded."""

    name = "none"

    def embed(self, texts: Sequence[str]) -> Vectors:
        raise AssertionError("embedded")


def test_an_answer_is_streamed_and_its_tokens_are_counted(chat: OpenAIChat) -> None:
    packed = context_packing.pack(HITS, Settings())
    stream = AnswerStream("How do I kill a troll?", packed, chat, NoEmbedder(), timeout_s=TIMEOUT_S)
    pieces = []
    while_running = []
    for piece in stream:
        pieces.append(piece)
        while_running.append(stream.answer.text)
    answer = stream.answer
    assert answer.text == "".join(pieces)
    assert len(pieces) > 1
    assert while_running[0] == pieces[0]
    assert answer.text.strip()
    assert answer.error == "" or LENGTH in answer.error
    assert not answer.usage.estimated
    assert answer.usage.prompt_tokens > 100
    assert 0 < answer.usage.completion_tokens <= 60
    assert (answer.model, answer.extractive) == ("smollm2-135m", False)
    assert set(answer.citations) <= {1, 2}


def test_a_judgement_is_read_or_told(chat: OpenAIChat) -> None:
    judgement = call.ask(
        build_prompt("How do I kill a troll?", HITS, Judge(), "l2"), chat, Judge(timeout_ms=int(TIMEOUT_S * 1000))
    )
    assert judgement.asked == ("c1", "c2")
    assert {verdict.chunk_id for verdict in judgement.verdicts} <= {"c1", "c2"}
    assert bool(judgement.verdicts) != bool(judgement.error)
    assert judgement.prompt_tokens > 100
    assert judgement.model == "smollm2-135m"


def test_a_draft_is_a_rule_or_words(chat: OpenAIChat) -> None:
    draft = suggest(HITS[0].chunk, chat, timeout_s=TIMEOUT_S)
    assert (draft.rule is None) == bool(draft.error)
    if draft.rule is not None:
        assert parse(draft.rule.text) == draft.rule
    assert draft.failed in ("", "rule", "interrupted", "timeout")
    assert draft.category == "general"
    assert draft.usage.prompt_tokens > 100


def test_the_schema_is_kept_to(chat: OpenAIChat) -> None:
    schema: dict[str, object] = {
        "type": "object",
        "properties": {"action": {"type": "string", "enum": ["KEEP", "DISCARD"]}},
        "required": ["action"],
        "additionalProperties": False,
    }
    ask = (Message("user", "Is a troll a boat?"),)
    text = "".join(d.text for d in chat.stream(ask, timeout_s=TIMEOUT_S, schema=schema))
    assert "".join(text.split()) in ('{"action":"KEEP"}', '{"action":"DISCARD"}')


def test_a_listener_that_goes_away_frees_the_model(chat: OpenAIChat) -> None:
    pieces = chat.stream((Message("user", "Tell me a long story."),), timeout_s=TIMEOUT_S)
    assert next(pieces).text
    pieces.close()  # type: ignore[attr-defined]
    (first, *_) = chat.stream((Message("user", "Say yes."),), timeout_s=TIMEOUT_S)
    assert first.text


def test_a_prompt_too_long_for_it_is_told(chat: OpenAIChat) -> None:
    ask = (Message("user", "troll " * 20_000),)
    with pytest.raises(ChatError) as caught:
        list(chat.stream(ask, timeout_s=TIMEOUT_S))
    assert caught.value.kind == "protocol"
    assert "too long" in str(caught.value) or "context" in str(caught.value)


def test_no_web_page_may_call_it_and_it_shows_none(chat: OpenAIChat) -> None:
    root = chat._at.url.removesuffix("/v1")
    assert root.startswith("http://127.0.0.1:")
    request = urllib.request.Request(f"{root}/v1/models", headers={"Origin": "http://example.org"})
    with urllib.request.urlopen(request, timeout=PATIENT_S) as answer:
        assert (answer.headers["Access-Control-Allow-Origin"] or "") == ""
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(f"{root}/", timeout=PATIENT_S)


def start(bare_environ: dict[str, str], port: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "scripts.local_llm", "--port", str(port)],
        cwd=ROOT,
        env=bare_environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.usefixtures("_installed")
def test_it_stops_when_it_is_asked_to(bare_environ: dict[str, str]) -> None:
    process = start(bare_environ, 0)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("export OPENAI_BASE_URL=http://127.0.0.1:")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PROCESS_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0
    assert "tiny demonstration model" in err
    assert "Traceback" not in err


@pytest.mark.usefixtures("_installed")
def test_a_port_in_use_is_told(bare_environ: dict[str, str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        process = start(bare_environ, port)
        try:
            out, err = process.communicate(timeout=PROCESS_S)
        finally:
            process.kill()
            process.wait()
    assert (process.returncode, out) == (UNUSABLE, "")
    assert err.startswith(f"ragfilter: Port {port} cannot be used: Address already in use.")
    assert err.count("\n") == 1
