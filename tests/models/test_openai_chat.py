"""The chat adapter with a real HTTP server that behaves correctly, and in every wrong way."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from typing import Any

import pytest
from chats import ASK, SCHEMA, ask, chat, delta, document, failed
from faults import (
    KEY,
    SSE,
    WORD,
    Behave,
    Handler,
    Serve,
    cut_off,
    drip,
    error_body,
    events,
    half_a_json,
    hang,
    hang_midway,
    page,
    raw,
    well,
)
from waiting import OWN_S, PATIENT_S, SILENT_S, ends_after, ends_soon

from ragfilter.errors import ChatError, SettingsError
from ragfilter.models.openai import OpenAIChat
from ragfilter.protocols import Delta, Usage


def test_a_streamed_answer_with_usage(serve: Serve) -> None:
    server = serve(well)
    deltas = list(chat(server).stream(ASK, timeout_s=PATIENT_S))
    assert deltas == [Delta("Trolls "), Delta("fear fire [1]."), Delta(usage=Usage(11, 5))]
    (asked,) = server.asked
    assert asked["path"] == "/v1/chat/completions"
    assert asked["key"] == f"Bearer {KEY}"
    assert asked["body"] == {
        "model": "tiny",
        "messages": [{"role": "system", "content": "be short"}, {"role": "user", "content": "why?"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_without_a_key_none_of_the_environment_is_sent(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server = serve(well)
    list(OpenAIChat(model="tiny", base_url=server.url).stream(ASK, timeout_s=PATIENT_S))
    assert server.asked[0]["key"] == "Bearer none"


def test_pieces_arrive_while_the_model_still_writes(serve: Serve) -> None:
    go_on = threading.Event()

    def waits(handler: Handler, body: dict[str, Any]) -> None:
        handler.start()
        handler.piece("first")
        go_on.wait(SILENT_S)
        handler.piece("second", "stop")

    pieces = chat(serve(waits)).stream(ASK, timeout_s=PATIENT_S)
    assert next(pieces) == Delta("first")
    go_on.set()
    assert list(pieces) == [Delta("second")]


def test_a_server_that_ignores_stream_is_understood(serve: Serve) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 1}
    assert ask(serve(document("stop", usage=usage))) == ("Trolls", Usage(3, 1), None)


def picky(refuses: list[str], *, names: bool) -> Behave:
    """A server that does not know some parts of a request; with `names` it says which."""

    def behave(handler: Handler, body: dict[str, Any]) -> None:
        wrong = [part for part in refuses if part in body]
        if wrong:
            message = f"Unknown parameter: {wrong[0]}" if names else "Bad request"
            handler.reply(400, json.dumps({"error": {"message": message}}))
        else:
            well(handler, body)

    return behave


def test_a_refusal_is_paid_for_once(serve: Serve) -> None:
    for refuses, names, requests, sent_at_last in [
        (["response_format"], True, [2, 1, 1], {"stream_options"}),
        (["response_format", "stream_options"], True, [3, 1, 1], set()),
        (["response_format", "stream_options"], False, [3, 1, 1], set()),
    ]:
        server = serve(picky(refuses, names=names))
        client = chat(server)
        made = []
        for _ in requests:
            before = len(server.asked)
            text = "".join(d.text for d in client.stream(ASK, timeout_s=PATIENT_S, schema=SCHEMA))
            assert text == "Trolls fear fire [1]."
            made.append(len(server.asked) - before)
        assert made == requests
        assert {"response_format", "stream_options"} & set(server.asked[-1]["body"]) == sent_at_last
        # Another client does not know about it.
        ask(server, schema=SCHEMA)
        assert len(server.asked) == sum(requests) + requests[0]


def test_a_schema_that_is_refused_in_the_stream_is_left_out(serve: Serve) -> None:
    def without_schemas(handler: Handler, body: dict[str, Any]) -> None:
        if "response_format" in body:
            handler.start()
            handler.event(json.dumps({"error": {"message": "json_schema is not supported"}}))
        else:
            well(handler, body)

    server = serve(without_schemas)
    client = chat(server)
    for requests in (2, 3):
        text = "".join(d.text for d in client.stream(ASK, timeout_s=PATIENT_S, schema=SCHEMA))
        assert (text, len(server.asked)) == ("Trolls fear fire [1].", requests)


def test_a_server_that_is_down_is_asked_again_at_most_once(serve: Serve) -> None:
    for status, schema, requests in [
        (500, True, 2),
        (501, True, 2),
        (404, True, 2),
        (500, False, 1),
        (404, False, 1),
        (401, True, 1),
        (403, True, 1),
        (429, True, 1),
        (502, True, 1),
        (503, True, 1),
    ]:
        server = serve(page(status, error_body("down"), "application/json"))
        assert f"HTTP {status}" in failed(server, schema=SCHEMA if schema else None).message
        assert len(server.asked) == requests


@pytest.mark.parametrize(
    ("status", "body", "kind", "says"),
    [
        (401, error_body(f"Incorrect API key provided: {KEY}"), "auth", "HTTP 401"),
        (404, error_body("model not found"), "protocol", "'tiny'"),
        (500, error_body(f"key {KEY} is\x1b[31m bad"), "server", "key *** is"),
        (503, "<html>down</html>", "server", "HTTP 503"),
        (504, "upstream timed out", "timeout", "upstream timed out"),
        (400, error_body("context too long"), "protocol", "context too long"),
    ],
)
def test_refusals(serve: Serve, status: int, body: str, kind: str, says: str) -> None:
    failure = failed(serve(lambda h, _: h.reply(status, body)))
    assert failure.kind == kind
    assert says in failure.message
    for banned in ("\x1b", "<html>"):
        assert banned not in str(failure)


def finished(reason: str, text: str | None = "Trolls") -> Behave:
    def behave(handler: Handler, body: dict[str, Any]) -> None:
        handler.start()
        handler.piece(text, reason)
        handler.event("[DONE]")

    return behave


@pytest.mark.parametrize(
    ("behave", "kind", "text"),
    [
        pytest.param(raw(b""), "interrupted", "", id="closes at once"),
        pytest.param(raw(b"\x00\xffgarbage\r\n\r\n"), "protocol", "", id="not HTTP"),
        pytest.param(page(200, "<p>login</p>", "text/html"), "protocol", "", id="a page"),
        pytest.param(page(200, '{"error": "x"}', "application/json"), "server", "", id="error"),
        pytest.param(page(200, "", SSE), "empty", "", id="empty stream"),
        pytest.param(events(5, [1], {"choices": None}, {"choices": "x"}), "protocol", "", id="events of other shapes"),
        pytest.param(half_a_json, "protocol", "Trolls", id="half a JSON"),
        pytest.param(cut_off, "interrupted", "Trolls", id="cut within an event"),
        pytest.param(finished("stop", None), "empty", "", id="no text"),
    ],
)
def test_bad_answers(serve: Serve, behave: Behave, kind: str, text: str) -> None:
    came, _, failure = ask(serve(behave))
    assert came == text
    assert failure is not None
    assert failure.kind == kind, failure


def test_an_answer_that_ended_for_another_reason_is_not_whole(serve: Serve) -> None:
    for reason, said in [
        ("length", "length limit"),
        ("MAX_TOKENS", "length limit"),
        ("content_filter", "content filter"),
        ("tool_calls", "(reason: tool_calls)"),
        ("SAFETY", "(reason: safety)"),
        (f"key {KEY}", "(reason: unknown)"),
        ("x" * 99, f"(reason: {'x' * 40})"),
    ]:
        for behave in (finished(reason), document(reason)):
            text, _, failure = ask(serve(behave))
            assert text == "Trolls"
            assert failure is not None
            assert failure.kind == "interrupted"
            assert said in failure.message


def test_an_answer_that_ended_by_itself_is_whole(serve: Serve) -> None:
    for reason in ["stop", "STOP", "end_turn", "eos_token", "COMPLETE", "", None]:
        for behave in (finished(reason), document(reason)):
            assert ask(serve(behave)) == ("Trolls", None, None)


def test_a_reason_that_comes_with_every_piece_ends_nothing(serve: Serve) -> None:
    def behave(handler: Handler, body: dict[str, Any]) -> None:
        handler.start()
        for piece in ("Trolls ", "fear ", "fire."):
            handler.piece(piece, "stop")
        handler.event("[DONE]")

    assert ask(serve(behave)) == ("Trolls fear fire.", None, None)


USAGE = {"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 5}}


@pytest.mark.parametrize(
    ("after", "usage"), [([], None), ([USAGE], Usage(11, 5)), ([USAGE, "[DONE]"], Usage(11, 5)), (["[DONE]"], None)]
)
@pytest.mark.parametrize(("reason", "kind"), [("stop", None), ("max_tokens", "interrupted")])
def test_a_stream_that_stays_open_after_its_end_is_finished(
    serve: Serve, after: list[object], usage: Usage | None, reason: str, kind: str | None
) -> None:
    def behave(handler: Handler, body: dict[str, Any]) -> None:
        handler.start()
        handler.piece("Trolls")
        handler.piece(None, reason)
        for event in after:
            handler.event(event)
        while not handler.server.over.wait(0.05):
            handler.send(": keep-alive\n\n")

    with ends_soon(OWN_S):
        text, told, failure = ask(serve(behave))
    assert (text, told, failure and failure.kind) == ("Trolls", usage, kind)


THINKS = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm, giants?"}]}
SAYS = {"type": "text", "text": "Trolls"}


def test_content_in_parts_is_read_without_thoughts(serve: Serve) -> None:
    for contents in [
        [[THINKS], [SAYS]],
        [[THINKS, SAYS]],
        [[{"type": "reference", "reference_ids": [1]}, 7, None, SAYS], [], None],
    ]:
        streamed = [{"choices": [{"delta": {"content": content}}]} for content in contents]
        assert ask(serve(events(*streamed))) == ("Trolls", None, None), contents
        for content in contents:
            if content and content != [THINKS]:
                assert ask(serve(document("stop", content))) == ("Trolls", None, None)


def said(delta: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta} | more]}


STOP = said({}, finish_reason="stop")


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(
            [said({"role": "assistant", "content": "", "reasoning_content": "Hm."}), said({"content": "Fire."}), STOP],
            id="DeepSeek and vLLM",
        ),
        pytest.param(
            [said({"content": "", "reasoning": "Hm.", "reasoning_details": [{}]}), said({"content": "Fire."}), STOP],
            id="OpenRouter and gpt-oss on Groq",
        ),
        pytest.param(
            [
                {"choices": [], "prompt_filter_results": [{"prompt_index": 0}]},
                said({"role": "assistant", "content": None, "refusal": None}),
                said({"content": "Fire."}),
                STOP,
                {"choices": [{"index": 0, "finish_reason": None, "content_filter_offsets": {"check_offset": 44}}]},
            ],
            id="Azure with annotations",
        ),
        pytest.param([said({"content": "Fire."}), {"type": "ping"}, STOP], id="a proxy's event"),
        pytest.param(
            [said({"content": "Fire."}), said(None, finish_reason="stop")],  # type: ignore[arg-type]
            id="no delta at the end",
        ),
    ],
)
def test_streams_of_real_servers(serve: Serve, data: list[Any]) -> None:
    def behave(handler: Handler, body: dict[str, Any]) -> None:
        handler.start()
        for event in data:
            handler.send(": OPENROUTER PROCESSING\n\n")
            handler.event(event)
        handler.event("[DONE]")

    text, _, failure = ask(serve(behave))
    assert (text, failure) == ("Fire.", None)


def test_failures_in_the_middle_of_a_stream(serve: Serve) -> None:
    for data, kind in [
        ([{"error": {"message": "overloaded", "code": 502}}], "server"),
        ([{"error": {"message": "overloaded"}, **said({"content": ""}, finish_reason="error")}], "server"),
        ([said({"reasoning_content": "more"}, finish_reason="length")], "interrupted"),
    ]:
        text, _, failure = ask(serve(events(said({"content": "Fire"}), *data)))
        assert text == "Fire", data
        assert failure is not None, data
        assert failure.kind == kind
        assert kind != "server" or "overloaded" in failure.message


def drip_headers(handler: Handler, body: dict[str, Any]) -> None:
    handler.send_response(200)
    handler.flush_headers()
    for n in range(160):
        handler.send(f"X-{n}: 1\r\n")
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("behave", "has_text"),
    [
        pytest.param(hang, False, id="hangs"),
        pytest.param(hang_midway, True, id="hangs midway"),
        pytest.param(drip(": keep-alive\n\n"), False, id="drips comments"),
        pytest.param(drip(WORD), True, id="never stops talking"),
        pytest.param(drip_headers, False, id="drips headers"),
    ],
)
def test_the_deadline_holds_for_the_whole_call(serve: Serve, behave: Behave, has_text: bool) -> None:
    # A word that is late on a busy machine gets more time.
    for timeout_s in (0.5, 5.0, PATIENT_S):
        with ends_after(timeout_s):
            text, _, failure = ask(serve(behave), timeout_s=timeout_s)
        assert failure is not None
        assert failure.kind == "timeout"
        assert f"within {timeout_s:g} s" in failure.message
        if text or not has_text:
            break
    assert text.startswith("Trolls") == has_text


def test_whoever_stops_listening_ends_the_call(serve: Serve) -> None:
    server = serve(drip(WORD))
    pieces = chat(server).stream(ASK, timeout_s=PATIENT_S)
    assert next(pieces) == Delta("Trolls")
    pieces.close()  # type: ignore[attr-defined]
    assert server.hung_up.wait(PATIENT_S)


@pytest.mark.parametrize(
    ("url", "says"), [("http://127.0.0.1:{free}/v1", "refused the connection"), ("https://127.0.0.1:{open}/v1", "TLS")]
)
def test_unreachable(serve: Serve, url: str, says: str) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    server = serve(well)
    address = url.format(free=free, open=server.server_address[1])
    with pytest.raises(ChatError) as caught:
        list(OpenAIChat(model="m", api_key=KEY, base_url=address).stream(ASK, timeout_s=PATIENT_S))
    assert caught.value.kind == "unreachable"
    assert says in caught.value.message
    assert caught.value.remedy


# -- what an endpoint may do to its client ---------------------------------------------------------


def test_token_counts_that_cannot_be_are_not_taken(serve: Serve) -> None:
    for prompt, completion in [(-5, 3), (3, 10**30), (True, 3), (3, 2.0), ("3", 2), (None, 2), ([3], 2)]:
        usage = {"prompt_tokens": prompt, "completion_tokens": completion}
        choice = {"delta": {"content": "All."}, "finish_reason": "stop"}
        assert ask(serve(events({"choices": [choice], "usage": usage}))) == ("All.", None, None), prompt
        assert ask(serve(document("stop", usage=usage))) == ("Trolls", None, None), prompt


@pytest.mark.parametrize(("end", "kind"), [("data: [DONE]\n\n", None), ("", "interrupted")])
def test_a_stream_that_says_it_is_done_is_whole(serve: Serve, end: str, kind: str | None) -> None:
    # The text itself does not decide how the stream ends.
    text = "In SSE, data: [DONE] ends a stream."

    def behave(handler: Handler, _: dict[str, Any]) -> None:
        handler.start()
        for piece in f"{delta(text).decode()}{end}":
            handler.send(piece)
            # So that the client reads them one by one.
            time.sleep(0.001)

    came, _, failure = ask(serve(behave))
    assert came == text
    assert (failure and failure.kind) == kind


# -- secrets and settings --------------------------------------------------------------------------


def test_the_key_is_in_no_log_and_no_repr(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for status in (200, 400, 401, 500):
        body = error_body(f"bad key {KEY}")
        server = serve(well if status == 200 else page(status, body, "application/json"))
        _, _, failure = ask(server, schema=SCHEMA)
        assert KEY not in repr(failure)
        assert KEY not in repr(chat(server))
        assert failure is None or failure.__cause__ is None
    assert caplog.records
    assert KEY not in caplog.text


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"model": " "}, "No model"),
        ({"model": "m", "base_url": "127.0.0.1:8080"}, "must be an http"),
        ({"model": "m", "base_url": f"http://me:{KEY}@host/v1"}, "credentials"),
        ({"model": "m", "base_url": f"http://host/v1?key={KEY}"}, "credentials"),
        ({"model": "m", "api_key": f"{KEY}\nx"}, "characters"),
    ],
)
def test_unusable_settings(settings: dict[str, str], says: str) -> None:
    with pytest.raises(SettingsError, match=says) as caught:
        OpenAIChat(**settings)
    assert caught.value.remedy
    assert KEY not in str(caught.value)


def test_a_key_with_a_line_break_at_its_end_is_taken(serve: Serve) -> None:
    server = serve(well)
    model = OpenAIChat(model="m", api_key=f"{KEY}\n", base_url=server.url)
    list(model.stream(ASK, timeout_s=PATIENT_S))
    assert server.asked[0]["key"] == f"Bearer {KEY}"
