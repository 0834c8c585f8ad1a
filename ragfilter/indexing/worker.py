"""Carries out the orders of a workspace, one after the other, in its own thread."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace

from ragfilter.errors import RagfilterError
from ragfilter.indexing.order import PHASES, Refusal, Watch, carry_out
from ragfilter.indexing.queue import IndexJob, Queue, Standing
from ragfilter.protocols import Progress
from ragfilter.stores.workspace import taken
from ragfilter.text.numbers import Pace
from ragfilter.workbench import Workbench

log = logging.getLogger(__name__)

LOOK_S = 0.5
"""How often new orders are looked for."""
TELL_S = 0.25
"""How often progress is written."""


class OrderStopped(Exception):
    """The order is to stop."""


class Worker:
    """Works for as long as `bench` is open. Of several, one works and the others stand by."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._queue = Queue(bench.workspace.path)
        self._lock = self._queue.worker_lock()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ragfilter-worker", daemon=True)

    def start(self) -> None:
        """Begin. The bench, when it is closed, waits until the present order has stopped."""
        self._bench.before_closing(self.close)
        if self._stand_by():
            self._queue.sweep()
        self._thread.start()

    def close(self) -> None:
        """Stop what is under way; it waits to be gone on with."""
        self._end.set()
        self._thread.join()
        self._lock.release()

    def _run(self) -> None:
        while not self._end.is_set():
            try:
                job = self._next()
                if job is not None:
                    self._carry_out(job)
                    continue
            except RagfilterError as error:
                log.warning("the indexing queue is blocked: %s", error)
            self._end.wait(LOOK_S)

    def _stand_by(self) -> bool:
        """Whether this worker is the one who works. What another left half done is stopped."""
        if self._lock.is_locked:
            return True
        if not taken(self._lock):
            return False
        for job in self._queue.jobs():
            if job.standing.state == "running":
                self._queue.tell(job.id, replace(job.standing, state="stopped"))
        return True

    def _next(self) -> IndexJob | None:
        if not self._stand_by():
            return None
        jobs = self._queue.jobs()
        return next((job for job in jobs if job.standing.state == "waiting"), None)

    def _carry_out(self, job: IndexJob) -> None:
        watch = _Telling(self._queue, job.id, self._end)
        try:
            watch.tell(force=True)
            done = carry_out(job.order, self._bench, watch)
        except OrderStopped:
            ended = replace(watch.standing, state="stopped")
        except RagfilterError as error:
            ended = replace(
                watch.standing, state="failed", message=error.message, remedy=error.remedy,
                action=error.action,
            )  # fmt: skip
        except Exception as error:
            log.exception("an order failed")
            said = f"Unexpected {type(error).__name__}: {' '.join(str(error).split())[:300]}."
            remedy = "The log of the app says more."
            ended = replace(watch.standing, state="failed", message=said, remedy=remedy)
        else:
            ended = replace(
                watch.standing, state="done", report=done.report, refused=done.refused,
                left_out=done.left_out,
            )  # fmt: skip
            self._queue.clear(job.order)
        self._queue.tell(job.id, replace(ended, seconds_left=None))


class _Telling(Watch):
    """Writes how an order goes, and stops it when it is to stop."""

    def __init__(self, queue: Queue, job_id: str, end: threading.Event) -> None:
        self.standing = Standing("running")
        self._queue = queue
        self._job_id = job_id
        self._end = end
        self._told = 0.0

    def progress(self, phase: str) -> Progress:
        pace = Pace()

        def show(done: int, total: int) -> None:
            self.standing = replace(
                self.standing, phase=PHASES[phase], done=done, total=total,
                seconds_left=pace.left(done, total),
            )  # fmt: skip
            self.tell()

        return show

    def refused(self, refusal: Refusal) -> None:
        refused = (*self.standing.refused, refusal)
        self.standing = replace(self.standing, refused=refused, left_out=len(refused))

    def tell(self, *, force: bool = False) -> None:
        if self._end.is_set() or self._queue.is_to_stop(self._job_id):
            raise OrderStopped
        if force or time.monotonic() - self._told >= TELL_S:
            self._queue.tell(self._job_id, self.standing)
            self._told = time.monotonic()
