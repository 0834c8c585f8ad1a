"""Everything that calls an LLM, with an endpoint that fails in every way: it always reports an error."""

from __future__ import annotations

from faults import FAULTS, KEY, LATE, TOLD, Serve, Server, deadline, says
from waiting import PATIENT_MS

from ragfilter.judge import call
from ragfilter.judge.prompt import build_prompt
from ragfilter.model import Chunk, Hit
from ragfilter.models.openai import OpenAIChat
from ragfilter.rules.drafting import suggest
from ragfilter.settings.schema import Judge

SHORT_S = 0.5
PATIENT = Judge(timeout_ms=PATIENT_MS)
HITS = tuple(Hit(Chunk(f"c{n}", f"text {n}"), 0.1 * n, n) for n in range(1, 4))

KINDS = {
    "401": "auth",
    "429": "rate_limit",
    "500": "server",
    "hangs": "timeout",
    "hangs midway": "timeout",
    "never ends": "timeout",
    "cuts the stream": "interrupted",
    "closes at once": "interrupted",
    "garbage": "protocol",
    "a page": "protocol",
    "half a JSON": "protocol",
    "nothing": "empty",
    "refuses": "unreachable",
}


def stopped(serve: Serve) -> Server:
    server = serve(says("never said"))
    server.shutdown()
    server.server_close()
    return server


def failing(serve: Serve, fault: str) -> OpenAIChat:
    server = stopped(serve) if fault == "refuses" else serve(FAULTS[fault])
    return OpenAIChat(model="tiny", api_key=KEY, base_url=server.url)


def test_every_fault_is_in_the_table() -> None:
    assert TOLD.keys() == KINDS.keys() == FAULTS.keys() | {"refuses"}
    assert tuple(fault for fault, kind in KINDS.items() if kind == "timeout") == LATE


def test_no_draft_but_words(serve: Serve) -> None:
    for fault in TOLD:
        chat = failing(serve, fault)
        timeout_s = deadline(fault, SHORT_S)
        draft = suggest(Chunk("c1", "some text", title="A title"), chat, timeout_s=timeout_s)
        assert all(words in draft.error for words in TOLD[fault])
        assert (draft.failed, draft.rule) == (KINDS[fault], None)
        assert KEY not in repr(draft), fault


def test_no_verdict_but_words(serve: Serve) -> None:
    for fault in TOLD:
        chat = failing(serve, fault)
        settings = Judge(timeout_ms=int(deadline(fault, SHORT_S) * 1000))
        judgement = call.ask(build_prompt("why?", HITS, Judge(), "l2"), chat, settings)
        assert TOLD[fault][0] in judgement.error
        assert judgement.verdicts == (), fault
        assert judgement.asked == ("c1", "c2", "c3"), fault
        assert KEY not in repr(judgement), fault


HALF_VERDICTS = '{"decisions": [{"chunk_id": "c1", "action": "KEEP"}, {"chunk'


def test_a_whole_stream_of_no_verdict(serve: Serve) -> None:
    for answer in [HALF_VERDICTS, "lorem ipsum " * 50]:
        chat = OpenAIChat(model="tiny", base_url=serve(says(answer)).url)
        judgement = call.ask(build_prompt("why?", HITS, Judge(), "l2"), chat, PATIENT)
        assert judgement.error == call.NO_DECISION, answer
        assert judgement.verdicts == (), answer
