"""The service: its addresses, each of which is carried out beside the event loop."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Annotated, Any, ParamSpec, TypeVar

from fastapi import Body, FastAPI, Security
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.security import HTTPBearer
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from ragfilter import __version__
from ragfilter.errors import InputError, RagfilterError, complaint
from ragfilter.library import tracing
from ragfilter.library.tools import ChunkTools, make_server
from ragfilter.library.workspace import OpenWorkspace
from ragfilter.service import bodies
from ragfilter.service.bodies import (
    DifyAsked,
    FilterAsked,
    RerankAsked,
    SearchAsked,
    settings_for,
)
from ragfilter.service.desk import CallersDesk, Decided, Meters, Work
from ragfilter.service.gate import (
    ASSETS,
    DOCUMENTED,
    LOOPBACK,
    MAX_BYTES,
    Caller,
    Problem,
    Refused,
    TokenGate,
    explain,
)
from ragfilter.settings.profiles import PROFILES
from ragfilter.settings.schema import Settings

P = ParamSpec("P")
R = TypeVar("R")

ABOUT = "Which chunks of a vector search reach an LLM's prompt, and why the others do not."
COUNTED = ("/v1/search", "/v1/filter", "/v1/rerank", "/v2/rerank", "/retrieval", "/mcp")
RESPONSES: dict[int | str, dict[str, Any]] = {s: {"model": Problem} for s in DOCUMENTED}
TITLE = "ragfilter"


@dataclass(frozen=True, slots=True)
class Serving:
    """What a service is made with. `collection` and `settings` hold where a request names no other.
    Without `tokens` (callers by their tokens' hashes), everybody is `anyone`."""

    bench: OpenWorkspace
    collection: str
    settings: Settings
    tokens: Mapping[str, Caller]
    anyone: Caller
    threads: int = 4
    timeout_s: float = 30.0


def make_app(serving: Serving) -> FastAPI:
    """The service as an ASGI application."""
    work = Work(serving.threads, serving.timeout_s)
    meters = Meters(COUNTED)
    agents = _Agents(serving, work, meters)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # What is open stays. The collector would stop all threads to look at it again.
        gc.freeze()
        # Threads that decide let the event loop go on after a millisecond, not five.
        sys.setswitchinterval(0.001)
        try:
            async with agents.open():
                yield
        finally:
            await asyncio.to_thread(work.close)

    app = FastAPI(
        title=TITLE,
        version=__version__,
        description=ABOUT,
        docs_url=None,
        redoc_url=None,
        swagger_ui_oauth2_redirect_url=None,
        lifespan=lifespan,
        responses=RESPONSES,
    )
    _add_page(app)
    _handle_errors(app)
    _add_questions(app, serving, work, meters)
    _add_state(app, serving, work, meters)
    app.router.routes.append(Route("/mcp", agents, methods=["GET", "POST", "DELETE"]))
    names = serving.bench.deployment.allowed_hosts.split(",")
    hosts = LOOPBACK.union(name.strip().strip("[]").lower() for name in names if name.strip())
    app.add_middleware(
        TokenGate, tokens=serving.tokens, anyone=serving.anyone, hosts=hosts, count=meters.answered
    )
    return app


def _add_page(app: FastAPI) -> None:
    """The page that describes the addresses. What it loads is in a package, not on a network."""
    app.mount(ASSETS, StaticFiles(packages=[("fastapi_swagger", "resources")]))

    @app.get("/docs", include_in_schema=False)
    async def page() -> HTMLResponse:
        return get_swagger_ui_html(
            openapi_url="/openapi.json",
            title=TITLE,
            swagger_js_url=f"{ASSETS}swagger-ui-bundle.js",
            swagger_css_url=f"{ASSETS}swagger-ui.css",
            swagger_favicon_url=f"{ASSETS}favicon-32x32.png",
        )


def _add_questions(app: FastAPI, serving: Serving, work: Work, meters: Meters) -> None:
    bearer = Security(HTTPBearer(auto_error=False, description="A token of the service."))

    def ask(path: str, answer: type[BaseModel], **more: Any) -> Callable[..., Any]:
        return app.post(path, response_model=answer, dependencies=[bearer], **more)

    async def carried(request: Request, make: Callable[[CallersDesk], BaseModel]) -> Response:
        desk = CallersDesk(serving.bench, meters, request.state.caller, request.url.path)
        # Written as JSON in the thread, too.
        with tracing.under(request.headers):
            content = await work.answer(request, lambda: make(desk).model_dump_json().encode())
        return Response(content, media_type="application/json")

    @ask("/v1/search", bodies.Filtered, summary="Search a collection, and filter the hits.")
    async def search(request: Request, asked: Annotated[SearchAsked, Body()]) -> Response:
        def make(desk: CallersDesk) -> BaseModel:
            user = asked.viewer(desk.caller)
            settings = settings_for(serving.settings, asked.profile, asked.settings)
            where = asked.collection or serving.collection
            return bodies.filtered(*desk.search(asked.question, where, settings, user))

        return await carried(request, make)

    @ask("/v1/filter", bodies.Filtered, summary="Filter hits of your own, from any store.")
    async def filter_hits(request: Request, asked: Annotated[FilterAsked, Body()]) -> Response:
        def make(desk: CallersDesk) -> BaseModel:
            user = asked.viewer(desk.caller)
            settings = settings_for(serving.settings, asked.profile, asked.settings)
            hits = asked.hits
            return bodies.filtered(
                *desk.filter(asked.question, hits, settings, user, metric=asked.metric)
            )

        return await carried(request, make)

    @ask("/v1/rerank", bodies.Reranked, summary="Rank documents, as Cohere's and Jina's API does.")
    @ask("/v2/rerank", bodies.Reranked, summary="The same at the address of Cohere's newer API.")
    async def rerank(request: Request, asked: Annotated[RerankAsked, Body()]) -> Response:
        def make(desk: CallersDesk) -> BaseModel:
            name = asked.model if asked.model in PROFILES else None
            settings = settings_for(serving.settings, name, {})
            hits = [_document(place, each) for place, each in enumerate(asked.documents)]
            result, _ = desk.rank(asked.query, hits, settings, desk.caller.user)
            return bodies.reranked(
                result,
                [hit["text"] for hit in hits],
                asked.model,
                most=asked.top_n,
                with_documents=asked.return_documents,
            )

        return await carried(request, make)

    @ask("/retrieval", bodies.DifyRecords, summary="An external knowledge base for Dify.")
    async def retrieval(request: Request, asked: Annotated[DifyAsked, Body()]) -> Response:
        def make(desk: CallersDesk) -> BaseModel:
            asked.check()
            wanted = asked.retrieval_setting
            decided: Decided = desk.search(
                asked.query, asked.knowledge_id, serving.settings, desk.caller.user
            )
            least = wanted.score_threshold or 0.0
            return bodies.records(decided[0], most=wanted.top_k, least=least)

        return await carried(request, make)


def _document(place: int, given: Any) -> dict[str, Any]:
    """A document of a request to rerank, with its place as its id. Raises Refused."""
    fields = {"text": given} if isinstance(given, str) else given
    text, title = fields.get("text"), fields.get("title") or ""
    if not isinstance(text, str) or not isinstance(title, str):
        raise Refused(
            422, f"Document {place + 1} has no text.", remedy="Pass texts, or objects with `text`."
        )
    return {**fields, "id": str(place), "title": title}


def _add_state(app: FastAPI, serving: Serving, work: Work, meters: Meters) -> None:
    @app.get("/healthz", summary="Whether the service runs.")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/readyz", summary="Whether it can search.")
    async def readyz() -> dict[str, str]:
        await work.call(lambda: serving.bench.collection(serving.collection).check_not_empty())
        return {"status": "ok"}

    @app.get("/metrics", summary="What it did, for Prometheus.", response_class=Response)
    async def metrics(request: Request) -> Response:
        if not request.state.caller.metrics:
            raise Refused(403, "This token may not read metrics.", remedy="Set `metrics = true`.")
        return Response(meters.text(), media_type=meters.content_type)


def _handle_errors(app: FastAPI) -> None:
    def failed(request: Request, error: Exception) -> JSONResponse:
        return explain(error, request.url.path)

    def invalid(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"][1:])
        why = complaint(first["msg"])
        json = "json" in request.headers.get("content-type", "json")
        remedy = "See /docs." if json else "Send the header `Content-Type: application/json`."
        said = InputError(f"{place or 'body'}: {why}.", remedy=remedy)
        return failed(request, said)

    app.add_exception_handler(RagfilterError, failed)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, failed)
    app.add_exception_handler(Exception, failed)


class _Agents:
    """The Model Context Protocol over HTTP: an ASGI application with a server for each kind of
    caller, so that no agent can reach what another may see."""

    def __init__(self, serving: Serving, work: Work, meters: Meters) -> None:
        self._apps: dict[Caller, ASGIApp] = {}
        self._servers = {}
        for caller in {_kind(each) for each in serving.tokens.values() or [serving.anyone]}:
            desk = CallersDesk(serving.bench, meters, caller, "/mcp")
            tools = ChunkTools(desk, serving.collection, serving.settings, caller.user)
            server = make_server(tools, carry=partial(_carried, work))
            self._apps[caller] = server.streamable_http_app(
                stateless_http=True,
                json_response=True,
                max_request_body_size=MAX_BYTES,
                # The gate has looked at the host, or at the token.
                transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            )
            self._servers[caller] = server

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for server in self._servers.values():
                await stack.enter_async_context(server.session_manager.run())
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._apps[_kind(scope["state"]["caller"])](scope, receive, send)


def _kind(caller: Caller) -> Caller:
    return replace(caller, name="", metrics=False)


def _carried(work: Work, function: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """A tool whose calls are carried out as questions are."""

    @wraps(function)
    async def carried(*args: P.args, **kwargs: P.kwargs) -> R:
        return await work.call(partial(function, *args, **kwargs))

    return carried
