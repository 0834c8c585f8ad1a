"""Runs requests outside the event loop, with a bounded number of threads, a bounded queue and a
deadline. Stops work that nobody waits for any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from threading import Event
from typing import Any, TypeVar

from starlette.requests import Request

from ragfilter.basics.threads import Abandoned, stopping
from ragfilter.service.access import Refused

T = TypeVar("T")

WAITING = 200
"""Maximum number of requests that wait for a thread."""


class Executor:
    """Runs up to `threads` requests at a time, each for at most `timeout_s` seconds."""

    def __init__(self, threads: int, timeout_s: float) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="ragfilter-service")
        self._room = threads + WAITING
        self._timeout_s = timeout_s
        self._closing = Event()
        self._open: set[Future[Any]] = set()

    async def answer(self, request: Request, work: Callable[[], T]) -> T:
        """Run `work()` while the client of `request` waits. Raises the errors of `work`, and Refused."""
        answer = asyncio.ensure_future(self.call(work))
        disconnect = asyncio.ensure_future(_disconnect(request))
        try:
            await asyncio.wait((answer, disconnect), return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise Refused(499, "The client has gone away.")
            return answer.result()
        finally:
            answer.cancel()
            disconnect.cancel()

    async def call(self, work: Callable[[], T]) -> T:
        """Run `work()` in a thread. Raises its errors, and Refused if too many requests wait or it
        takes too long. If the caller is cancelled, so is the work."""
        if len(self._open) >= self._room:
            raise Refused(429, "Too many questions are waiting.", remedy="Try again later.")
        over = Event()
        context = copy_context()

        def run() -> T:
            with stopping(lambda: over.is_set() or self._closing.is_set()):
                return work()

        future: Future[T] = self._pool.submit(context.run, run)
        # The work counts until it ends, even if nobody waits for it any more.
        self._open.add(future)
        future.add_done_callback(self._open.discard)
        try:
            async with asyncio.timeout(self._timeout_s):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            late = f"The answer took more than {self._timeout_s:g} s."
            raise Refused(504, late, remedy="Ask for less, or choose a profile without an LLM.") from None
        except Abandoned:
            raise Refused(503, "The service is stopping.", remedy="Try again.") from None
        finally:
            over.set()
            future.cancel()

    def close(self) -> None:
        """Stop all work, and wait for it to stop."""
        self._closing.set()
        self._pool.shutdown(cancel_futures=True)


async def _disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
