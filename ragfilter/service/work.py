"""Carries out what requests ask for beside the event loop: a bounded number of threads, a bounded
queue, a deadline, and an end to what nobody waits for any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from threading import Event
from typing import TypeVar

from starlette.requests import Request

from ragfilter.basics.threads import Abandoned, stopping
from ragfilter.service.problems import Refused

T = TypeVar("T")

WAITING = 200
"""How many requests may wait for a thread."""
GONE = 499
"""The status of an answer that nobody reads."""


class Work:
    """`threads` requests are carried out at a time, each within `timeout_s`."""

    def __init__(self, threads: int, timeout_s: float) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="ragfilter-service")
        self._room = threads + WAITING
        self._timeout_s = timeout_s
        self._closing = Event()
        self._open = 0

    async def answer(self, request: Request, work: Callable[[], T]) -> T:
        """`work()`, as long as the client of `request` waits. Raises what it raises, and
        Refused."""
        made = asyncio.ensure_future(self.call(work))
        gone = asyncio.ensure_future(_gone(request))
        try:
            await asyncio.wait((made, gone), return_when=asyncio.FIRST_COMPLETED)
            if not made.done():
                raise Refused(GONE, "The client has gone away.")
            return made.result()
        finally:
            made.cancel()
            gone.cancel()

    async def call(self, work: Callable[[], T]) -> T:
        """`work()` in a thread. Raises what it raises, and Refused if too many others wait or it
        takes too long. If the caller is cancelled, so is the work."""
        if self._open >= self._room:
            raise Refused(429, "Too many questions wait.", remedy="Try again later.")
        over = Event()
        context = copy_context()

        def run() -> T:
            with stopping(lambda: over.is_set() or self._closing.is_set()):
                return work()

        self._open += 1
        future: Future[T] = self._pool.submit(context.run, run)
        loop = asyncio.get_running_loop()
        # Counted until it ends, and not only until nobody waits for it.
        future.add_done_callback(lambda _: _soon(loop, self._ended))
        try:
            async with asyncio.timeout(self._timeout_s):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise Refused(
                504,
                f"The answer took more than {self._timeout_s:g} s.",
                remedy="Ask for less, or choose a profile without an LLM.",
            ) from None
        except Abandoned:
            raise Refused(503, "The service is being stopped.", remedy="Try again.") from None
        finally:
            over.set()
            future.cancel()

    def close(self) -> None:
        """Stop all work, and wait until it has stopped."""
        self._closing.set()
        self._pool.shutdown(cancel_futures=True)

    def _ended(self) -> None:
        self._open -= 1


def _soon(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # The loop has been closed.
        loop.call_soon_threadsafe(call)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
