"""A server started by a user answers only under its own names, and only to its own pages."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest

Ask = Callable[..., http.client.HTTPResponse]
PAGE, HEALTH, SOCKET = "/", "/_stcore/health", "/_stcore/stream"
HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "x3JJHMbDL1EzLkh9GBhXDw==",
}


@pytest.fixture
def ask(app: str) -> Iterator[Ask]:
    """Asks the server over a plain connection: ``ask(path, "Host", origin)``, with ``{port}`` replaced by its port."""
    port = urlsplit(app).port
    closing = ExitStack()

    def ask_(path: str, host: str | None, origin: str | None = None) -> http.client.HTTPResponse:
        headers = dict(HANDSHAKE) if path == SOCKET else {}
        headers |= {"Host": host.format(port=port)} if host is not None else {}
        headers |= {"Origin": origin.format(port=port)} if origin is not None else {}
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        closing.callback(connection.close)
        connection.putrequest("GET", path, skip_host=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        return closing.enter_context(connection.getresponse())

    with closing:
        yield ask_


@pytest.mark.parametrize("path", [PAGE, HEALTH, SOCKET])
@pytest.mark.parametrize(
    ("host", "origin", "ok"),
    [
        ("127.0.0.1:{port}", None, True),
        ("localhost:{port}", "http://localhost:{port}", True),
        ("[::1]:{port}", "http://[::1]:{port}", True),
        ("bench.example:8443", "https://bench.example:8443", True),
        ("[2001:db8::1]:{port}", None, True),
        ("evil.example:{port}", "http://evil.example:{port}", 400),
        ("localhost.evil.example", None, 400),
        ("sub.bench.example", None, 400),
        ("evil.example@127.0.0.1x", None, 400),
        ("[::1", None, 400),
        (None, None, 400),
        ("127.0.0.1:{port}", "http://evil.example:{port}", 403),
        ("127.0.0.1:{port}", "http://127.0.0.1.evil.example:{port}", 403),
        ("127.0.0.1:{port}", "http://localhost:{port}", 403),
        ("127.0.0.1:{port}", "null", 403),
    ],
)
def test_only_its_own_names_and_pages_are_answered(
    ask: Ask, path: str, host: str | None, origin: str | None, ok: bool | int
) -> None:
    accepted = 101 if path == SOCKET else 200
    assert ask(path, host, origin).status == (accepted if ok is True else ok)


@pytest.mark.parametrize("path", [PAGE, HEALTH, "/static/js/none.js", "/media/none.csv"])
def test_a_browser_may_load_nothing_from_elsewhere_and_frame_nothing(ask: Ask, path: str) -> None:
    answer = ask(path, "127.0.0.1:{port}")
    policy = dict(each.split(" ", 1) for each in answer.headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'self'"
    assert policy["img-src"] == "'self' data: blob:"
    assert policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert not [name for name, value in policy.items() if "*" in value or "http" in value]
    assert answer.headers["X-Frame-Options"] == "DENY"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"


def test_who_is_refused_is_told_what_would_allow_it(ask: Ask) -> None:
    answer = ask(PAGE, "evil.example")
    assert "RAGFILTER_ALLOWED_HOSTS" in answer.read().decode()
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
