"""The guard between the network and the app: which requests it answers, and what pages can do.

Another site can make its own name resolve to this machine, and then read the app as if it were its own (DNS rebinding).
So a request must name a host that the app is served under and, if a page sent it, come from a page of that host."""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragfilter.errors import SettingsError
from ragfilter.settings.deployment import read_deployment
from ragfilter.text.urls import host_name, served_names

POLICY = {
    "default-src": "'self'",
    # Streamlit's page contains one inline script, which has this hash; its numbers are WebAssembly.
    # It loads a component's script from a blob, which only a running script can create.
    "script-src": "'self' blob: 'wasm-unsafe-eval' 'sha256-THxz9J9+wf7rhwR2YkXJoSZ13UCmYyC+3lNDv2+8ugA='",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self'",
    "worker-src": "'self' blob:",
    "frame-src": "'none'",
    "frame-ancestors": "'none'",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'none'",
}
HEADERS = {
    "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in POLICY.items()),
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class RequestGuard:
    """ASGI middleware around `app`, which is served under `hosts` and the loopback names."""

    def __init__(self, app: ASGIApp, hosts: str = "") -> None:
        self.app = app
        self.hosts = served_names(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await (self._refusal(Headers(scope=scope)) or self.app)(scope, receive, answer)

    def _refusal(self, headers: Headers) -> ASGIApp | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if host_name(host) not in self.hosts:
            return PlainTextResponse("Host name not allowed. Add it to RAGFILTER_ALLOWED_HOSTS.\n", status_code=400)
        if origin is not None and origin.partition("://")[2].lower() != host.lower():
            return PlainTextResponse("Cross-site requests are not allowed.\n", 403)
        return None


def hosts() -> str:
    """The hosts named in the environment; empty if it is invalid, which the page reports."""
    try:
        return read_deployment().allowed_hosts
    except SettingsError:
        return ""
