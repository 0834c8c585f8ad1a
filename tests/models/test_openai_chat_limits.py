"""Where a chat endpoint may redirect the adapter, and how much of its answer is read."""

from __future__ import annotations

import gzip
import threading
from itertools import islice, repeat
from typing import Any

import pytest
from chats import ask, delta, failed
from faults import KEY, SSE, Behave, Handler, Serve, hang, well
from waiting import OWN_S, PATIENT_S, ends_soon

from ragfilter.errors import ChatError
from ragfilter.models.chat import MAX_BYTES
from ragfilter.models.openai import MAX_BODY_BYTES, MAX_EVENT_BYTES, _Body


def to(status: int, address: str) -> Behave:
    return lambda handler, _: handler.reply(status, "", Location=address)


def test_no_other_address_is_sent_the_prompt(serve: Serve) -> None:
    for status in [301, 302, 303, 307, 308]:
        other = serve(well)
        path = f"/v1/{KEY}?key={KEY}"
        failure = failed(serve(to(status, f"http://me:{KEY}@{other.url[7:-3]}{path}")))
        assert other.asked == [], status
        assert failure.kind == "protocol", status
        assert other.url.removesuffix("/v1") in failure.message, status
        assert "OPENAI_BASE_URL" in failure.remedy, status


def test_a_redirect_to_another_scheme_host_or_port_is_refused(serve: Serve) -> None:
    for address in [
        "https://127.0.0.1:{port}/v1",
        "http://localhost:{port}/v1",
        "//127.0.0.1/v1",
        "http://[bad",
        "file:///etc/passwd",
        f"http://{KEY}.example/",
    ]:
        server = serve(hang)
        server.behave = to(307, address.format(port=server.server_address[1]))
        assert failed(server).kind == "protocol", address
        assert len(server.asked) == 1, address


def test_a_redirect_within_the_endpoint_is_followed(serve: Serve) -> None:
    def moved(handler: Handler, body: dict[str, Any]) -> None:
        (well if handler.path.startswith("/new/") else to(308, "/new/chat/completions"))(handler, body)

    server = serve(moved)
    assert ask(server)[0] == "Trolls fear fire [1]."
    assert [asked["path"] for asked in server.asked] == ["/v1/chat/completions", "/new/chat/completions"]


def test_a_redirect_in_a_circle_is_named(serve: Serve) -> None:
    failure = failed(serve(to(308, "/v1/chat/completions")))
    assert (failure.kind, "redirects again and again" in failure.message) == ("unreachable", True)


MEGABYTE = 1_000_000


def flood(*sent: bytes, kind: str = SSE, status: int = 200, **headers: str) -> Behave:
    """Sends this, and then its last part over and over, as fast as it is read."""

    def behave(handler: Handler, body: dict[str, Any]) -> None:
        handler.send_response(status)
        handler.send_header("Content-Type", kind)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        for part in sent:
            handler.wfile.write(part)
        while True:
            handler.wfile.write(sent[-1])

    return behave


@pytest.mark.parametrize(
    ("behave", "kind"),
    [
        pytest.param(flood(delta("x" * MEGABYTE)), "interrupted", id="large deltas"),
        pytest.param(flood(b"data: " + b"x" * MEGABYTE), "interrupted", id="one line"),
        pytest.param(flood(b"data: 1\n" * 10_000), "interrupted", id="one event of many lines"),
        pytest.param(flood(b": keep-alive\n\n" * 9999), "interrupted", id="comments"),
        pytest.param(flood(b"[1]," * 99_999, kind="application/json"), "interrupted", id="JSON"),
        pytest.param(flood(b"[" * MEGABYTE + b"\n\n"), "interrupted", id="no events"),
        pytest.param(flood(b"data: " + b"[" * MEGABYTE + b"\n\n"), "protocol", id="deeply nested"),
        pytest.param(flood(b"x" * MEGABYTE, status=500), "interrupted", id="an error's body"),
        pytest.param(flood(b"x" * MEGABYTE, status=308, Location="/v1"), "interrupted", id="a redirect's body"),
        pytest.param(flood(gzip.compress(b"0" * 9 * MEGABYTE), Content_Encoding="gzip"), "protocol", id="a gzip bomb"),
    ],
)
def test_no_endpoint_is_read_without_end(serve: Serve, behave: Behave, kind: str) -> None:
    server = serve(behave)
    with ends_soon(OWN_S):
        text, _, failure = ask(server, timeout_s=1)
    assert failure is not None
    assert failure.kind in (kind, "timeout")
    assert failure.remedy
    assert len(text) <= MAX_BYTES
    assert server.hung_up.wait(PATIENT_S)


@pytest.mark.parametrize(
    ("part", "most"),
    [
        (b"x" * (MAX_EVENT_BYTES - 2) + b"\n\n", MAX_BODY_BYTES),
        (b"x" * (MAX_EVENT_BYTES // 64), MAX_EVENT_BYTES),
        (b"data: 1\r\n" * 1024, MAX_EVENT_BYTES),
    ],
    ids=["body", "event of one line", "event of many lines"],
)
def test_a_body_and_an_event_are_read_up_to_their_limits(part: bytes, most: int) -> None:
    reading = iter(_Body(repeat(part), threading.Event()))
    whole = most // len(part)
    assert len(list(islice(reading, whole))) == whole
    with pytest.raises(ChatError, match="more than") as error:
        next(reading)
    assert error.value.kind == "interrupted"
