"""The addresses of the HTTP service. Requests run in threads, outside the event loop."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial, wraps
from time import thread_time
from typing import Any, ParamSpec, TypeVar, get_type_hints

from fastapi import FastAPI, Security
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.security import HTTPBearer
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from ragfilter import __version__
from ragfilter.errors import InputError, RagfilterError, complaint
from ragfilter.library import tracing
from ragfilter.library.tools import ChunkTools, make_server
from ragfilter.library.workspace import OpenWorkspace
from ragfilter.service import access, bodies
from ragfilter.service.access import ASSETS, Caller, Problem, Refused, TokenGate, error_response
from ragfilter.service.bodies import merged
from ragfilter.service.caller_workspace import CallerWorkspace
from ragfilter.service.executor import Executor
from ragfilter.service.prometheus import Metrics
from ragfilter.settings.schema import Settings
from ragfilter.text.urls import served_names

P = ParamSpec("P")
R = TypeVar("R")
Handler = TypeVar("Handler", bound=Callable[..., BaseModel])

ABOUT = "Which chunks of a vector search reach an LLM's prompt, and why the others do not."
RESPONSES: dict[int | str, dict[str, Any]] = {s: {"model": Problem} for s in access.DOCUMENTED}
TITLE = "ragfilter"
LONG_S = 0.003
"""A full garbage collection that takes longer blocks the event loop noticeably."""


@dataclass(frozen=True, slots=True)
class Serving:
    """The configuration of a service. `collection` and `settings` apply unless a request names
    others. Without `tokens` (callers by the hashes of their tokens), everybody is `anyone`."""

    workspace: OpenWorkspace
    collection: str
    settings: Settings
    tokens: Mapping[str, Caller]
    anyone: Caller
    threads: int = 3
    timeout_s: float = 30.0


def make_app(serving: Serving) -> FastAPI:
    """The service as an ASGI application."""
    executor = Executor(serving.threads, serving.timeout_s)
    metrics = Metrics()
    mcp_app = _McpApp(serving, executor, metrics)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        gc.freeze()
        freeze = _freezer()
        gc.callbacks.append(freeze)
        # Working threads yield to the event loop after one millisecond instead of five.
        sys.setswitchinterval(0.001)
        try:
            async with mcp_app.open():
                yield
        finally:
            gc.callbacks.remove(freeze)
            await asyncio.to_thread(executor.close)

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
    _add_post_routes(app, serving, executor, metrics)
    _add_health_and_metrics(app, serving, executor, metrics)
    app.router.routes.append(Route("/mcp", mcp_app, methods=["GET", "POST", "DELETE"]))
    hosts = served_names(serving.workspace.deployment.allowed_hosts)
    app.add_middleware(TokenGate, tokens=serving.tokens, anyone=serving.anyone, hosts=hosts, count=metrics.count_answer)
    return app


def _freezer() -> Callable[[str, Mapping[str, int]], None]:
    """A callback that freezes the objects that survive a long full collection: modules, models and catalogues stay, and
    the collector would stop all threads to scan them again. Counting them with `gc.get_objects` instead would refer to
    tuples that other threads are still building, which then raise SystemError."""
    started = 0.0

    def freeze(phase: str, collection: Mapping[str, int]) -> None:
        nonlocal started
        if collection["generation"] < 2:
            return
        if phase == "start":
            started = thread_time()
        elif thread_time() - started > LONG_S:
            gc.freeze()

    return freeze


def _add_page(app: FastAPI) -> None:
    """Add the page that describes the addresses. It loads its assets from a package, offline."""
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


def _add_post_routes(app: FastAPI, serving: Serving, executor: Executor, metrics: Metrics) -> None:
    bearer = Security(HTTPBearer(auto_error=False, description="A token of the service."))

    def post_route(path: str, summary: str) -> Callable[[Handler], Handler]:
        """Answer requests for `path` with a function of the caller's workspace and the body, which runs in a thread."""

        def add(function: Handler) -> Handler:
            async def endpoint(request: Request, body: Any) -> Response:
                workspace = CallerWorkspace(serving.workspace, metrics, request.state.caller, path)
                with tracing.under(request.headers):
                    # The thread also writes the JSON.
                    content = await executor.answer(request, lambda: function(workspace, body).model_dump_json())
                return Response(content, media_type="application/json")

            types = get_type_hints(function)
            endpoint.__annotations__["body"] = types["body"]
            post = app.post(
                path, name=function.__name__, summary=summary, response_model=types["return"], dependencies=[bearer]
            )
            post(endpoint)
            return function

        return add

    @post_route("/v1/search", "Search a collection, and filter the hits.")
    def search(workspace: CallerWorkspace, body: bodies.SearchBody) -> bodies.FilterAnswer:
        user, settings = body.viewer(workspace.caller), merged(serving.settings, body.profile, body.settings)
        collection = body.collection or serving.collection
        return bodies.filter_answer(*workspace.search(body.question, collection, settings, user))

    @post_route("/v1/filter", "Filter hits of your own, from any store.")
    def filter_hits(workspace: CallerWorkspace, body: bodies.FilterBody) -> bodies.FilterAnswer:
        user, settings = body.viewer(workspace.caller), merged(serving.settings, body.profile, body.settings)
        return bodies.filter_answer(*workspace.filter(body.question, body.hits, settings, user, metric=body.metric))

    @post_route("/v1/rerank", "Rank documents, as Cohere's and Jina's API does.")
    @post_route("/v2/rerank", "The same at the address of Cohere's newer API.")
    def rerank(workspace: CallerWorkspace, body: bodies.RerankBody) -> bodies.RerankAnswer:
        settings = merged(serving.settings, body.profile, {})
        result, _ = workspace.rank(body.query, body.hits, settings, workspace.caller.user)
        return bodies.rerank_answer(result, body)

    @post_route("/retrieval", "An external knowledge base for Dify.")
    def retrieval(workspace: CallerWorkspace, body: bodies.DifyBody) -> bodies.DifyRecords:
        body.check()
        limits = body.retrieval_setting
        result, _ = workspace.search(body.query, body.knowledge_id, serving.settings, workspace.caller.user)
        return bodies.dify_records(result, most=limits.top_k, least=limits.score_threshold or 0.0)


def _add_health_and_metrics(app: FastAPI, serving: Serving, executor: Executor, counters: Metrics) -> None:
    @app.get("/healthz", summary="Whether the service runs.")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/readyz", summary="Whether it can search.")
    async def readyz() -> dict[str, str]:
        await executor.call(lambda: serving.workspace.collection(serving.collection).check_not_empty())
        return {"status": "ok"}

    @app.get("/metrics", summary="What it did, for Prometheus.", response_class=Response)
    async def metrics(request: Request) -> Response:
        if not request.state.caller.metrics:
            raise Refused(403, "This token cannot read metrics.", remedy="Set `metrics = true`.")
        return Response(counters.text(), media_type=counters.content_type)


def _handle_errors(app: FastAPI) -> None:
    def failed(request: Request, error: Exception) -> JSONResponse:
        if isinstance(error, RequestValidationError):
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"][1:])) or "body"
            json = "json" in request.headers.get("content-type", "json")
            remedy = "See /docs." if json else "Send the header `Content-Type: application/json`."
            error = InputError(f"{place}: {complaint(first['msg'])}.", remedy=remedy)
        return error_response(error, request.url.path)

    for kind in (RequestValidationError, RagfilterError, HTTPException, Exception):
        app.add_exception_handler(kind, failed)


class _McpApp:
    """MCP over HTTP: an ASGI application with a server for each caller, so that no agent can reach
    what only another can see."""

    def __init__(self, serving: Serving, executor: Executor, metrics: Metrics) -> None:
        self._apps: dict[Caller, Starlette] = {}
        for caller in {*serving.tokens.values()} or {serving.anyone}:
            workspace = CallerWorkspace(serving.workspace, metrics, caller, "/mcp")
            tools = ChunkTools(workspace, serving.collection, serving.settings, caller.user)
            server = make_server(tools, carry=partial(_in_thread, executor))
            self._apps[caller] = server.streamable_http_app(
                stateless_http=True,
                json_response=True,
                max_request_body_size=access.MAX_BYTES,
                # The gate has already checked the host or the token.
                transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            )

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for app in self._apps.values():
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._apps[scope["state"]["caller"]](scope, receive, send)


def _in_thread(executor: Executor, function: Callable[P, R]) -> Callable[P, Awaitable[R]]:

    @wraps(function)
    async def carried(*args: P.args, **kwargs: P.kwargs) -> R:
        return await executor.call(partial(function, *args, **kwargs))

    return carried
