"""A real HTTP server on loopback that speaks the OpenAI protocol, correctly or in every wrong way.

The `serve` fixture starts one: ``serve(behave)``. `FAULTS` names a behaviour for each way in which
an endpoint fails, `LATE` those that only a deadline ends.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from waiting import PATIENT_S, SILENT_S

KEY = "sk-very-secret-0123456789"
SSE = "text/event-stream"

Behave = Callable[["Handler", dict[str, Any]], None]


class Handler(BaseHTTPRequestHandler):
    """Answers every POST with the server's `behave`, and remembers the requests."""

    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append({"path": self.path, "body": body, "key": self.headers["Authorization"]})
        try:
            self.server.behave(self, body)
        except (BrokenPipeError, ConnectionResetError):
            self.server.hung_up.set()

    def reply(self, status: int, body: str, kind: str = "application/json", **headers: str) -> None:
        raw = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(raw)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(raw)

    def start(self, kind: str = "text/event-stream") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()

    def send(self, text: str) -> None:
        self.wfile.write(text.encode())
        self.wfile.flush()

    def event(self, data: object) -> None:
        self.send(f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n")

    def piece(self, text: str | None, finish: str | None = None) -> None:
        self.event({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]})

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, behave: Behave, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.behave = behave
        self.asked: list[dict[str, Any]] = []
        self.hung_up = threading.Event()
        self.over = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"


Serve = Callable[..., Server]


@contextmanager
def servers() -> Iterator[Serve]:
    """Starts servers, and stops them all at the end."""
    running: list[Server] = []

    def start(behave: Behave, port: int = 0) -> Server:
        server = Server(behave, port)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        running.append(server)
        return server

    try:
        yield start
    finally:
        for server in running:
            server.over.set()
            server.shutdown()
            server.server_close()


def well(handler: Handler, body: dict[str, Any]) -> None:
    handler.start()
    handler.send(": keep-alive\n\n")
    handler.piece("Trolls ")
    handler.piece("fear fire [1].")
    handler.piece(None, "stop")
    if body.get("stream_options", {}).get("include_usage"):
        handler.event({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 5}})
    handler.event("[DONE]")


def says(*answers: str) -> Behave:
    """Answers successive calls with these texts, repeating the last one; 7 and 3 tokens per call."""

    def behave(handler: Handler, body: dict[str, Any]) -> None:
        text = answers[min(len(handler.server.asked), len(answers)) - 1]
        handler.start()
        for start in range(0, len(text), 20):
            handler.piece(text[start : start + 20])
        handler.piece(None, "stop")
        if body.get("stream_options", {}).get("include_usage"):
            handler.event({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})
        handler.event("[DONE]")

    return behave


def error_body(message: str) -> str:
    return json.dumps({"error": {"message": message, "type": "x", "code": None}})


def raw(text: bytes) -> Behave:
    """Sends these bytes instead of an HTTP answer, and closes."""

    def behave(handler: Handler, body: dict[str, Any]) -> None:
        handler.wfile.write(text)
        handler.wfile.flush()
        handler.close_connection = True

    return behave


def page(status: int, text: str, kind: str) -> Behave:
    return lambda handler, _: handler.reply(status, text, kind)


def events(*data: object, done: bool = True) -> Behave:
    def behave(handler: Handler, body: dict[str, Any]) -> None:
        handler.start()
        for item in data:
            handler.event(item)
        if done:
            handler.event("[DONE]")

    return behave


def half_a_json(handler: Handler, body: dict[str, Any]) -> None:
    handler.start()
    handler.piece("Trolls")
    handler.event('{"choices": [{"delta": {"con')


def cut_off(handler: Handler, body: dict[str, Any]) -> None:
    handler.start()
    handler.piece("Trolls")
    handler.send('data: {"choices": [{"del')


def hang(handler: Handler, body: dict[str, Any]) -> None:
    handler.server.over.wait(SILENT_S)


def hang_midway(handler: Handler, body: dict[str, Any]) -> None:
    handler.start()
    handler.piece("Trolls")
    handler.server.over.wait(SILENT_S)


def drip(what: str) -> Behave:
    """Sends `what` every 50 ms: every single read succeeds, and it never ends."""

    def behave(handler: Handler, body: dict[str, Any]) -> None:
        handler.start()
        for _ in range(int(SILENT_S / 0.05)):
            handler.send(what)
            if handler.server.over.wait(0.05):
                break

    return behave


WORD = 'data: {"choices": [{"delta": {"content": "Trolls"}}]}\n\n'


def status(code: int, message: str, **headers: str) -> Behave:
    return lambda handler, _: handler.reply(code, error_body(message), **headers)


FAULTS: Mapping[str, Behave] = {
    "401": status(401, f"Incorrect API key provided: {KEY}"),
    "429": status(429, "slow down", Retry_After="7"),
    "500": status(500, "out of memory"),
    "hangs": hang,
    "hangs midway": hang_midway,
    "never ends": drip(WORD),
    "cuts the stream": cut_off,
    "closes at once": raw(b""),
    "garbage": raw(b"\x00\xffgarbage\r\n\r\n"),
    "a page": page(200, "<p>login</p>", "text/html"),
    "half a JSON": half_a_json,
    "nothing": page(200, "", SSE),
}
"""A stopped server, which refuses connections, is the one fault that no behaviour can show."""

LATE = ("hangs", "hangs midway", "never ends")


def deadline(fault: str, short_s: float) -> float:
    """`short_s` if the endpoint is silent, otherwise enough time for its answer to arrive."""
    return short_s if fault in LATE else PATIENT_S


TOLD: Mapping[str, tuple[str, str]] = {
    "401": ("refused the key", "Check OPENAI_API_KEY"),
    "429": ("HTTP 429", "Wait 7 s"),
    "500": ("out of memory", "Try again"),
    "hangs": ("within", "Raise the timeout"),
    "hangs midway": ("within", "Raise the timeout"),
    "never ends": ("within", "Raise the timeout"),
    "cuts the stream": ("before the answer was complete", "Try again"),
    "closes at once": ("before the answer was complete", "Try again"),
    "garbage": ("cannot be read", "Check that the base URL"),
    "a page": ("cannot be read", "Check that the base URL"),
    "half a JSON": ("cannot be read", "Check that the base URL"),
    "nothing": ("sent nothing", "Try again"),
    "refuses": ("refused the connection", "Check that it runs"),
}
"""What each fault's message must tell the user, and the remedy."""


def url(serve: Serve, behave: Behave) -> str:
    return f"http://127.0.0.1:{serve(behave).server_port}/v1"


def embeddings(*vectors: list[Any] | None) -> Behave:
    """Answers with these vectors; by default with the length and the first letter of each text."""

    def behave(handler: Handler, body: dict[str, Any]) -> None:
        made = list(vectors) or [[len(text), ord(text[0]), 1] for text in body["input"]]
        data = [{"object": "embedding", "index": i, "embedding": v} for i, v in enumerate(made)]
        answer = {
            "object": "list",
            "model": body["model"],
            "data": data[::-1],
            "usage": {"prompt_tokens": 1, "total_tokens": 1},
        }
        handler.reply(200, json.dumps(answer))

    return behave
