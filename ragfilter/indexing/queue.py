"""Orders that wait in the workspace folder, and the worker that carries them out, one after the
other, in the process that has the folder open.

Source: docs/decisions/0015-indexing-waits-in-a-queue.md. An order is a file, and so is its
progress. Both are always replaced as a whole. So you can leave the page that gave an order, and the
command line can give one while the app runs.

    queue/ID.order.json     what is to be done
    queue/ID.json           the progress, once it was started
    queue/ID.stop           a request to stop it
    queue/.worker.lock      held by the process that carries out the orders
"""

from __future__ import annotations

import contextlib
import json
import logging
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from pydantic import TypeAdapter

from ragfilter.errors import Action, RagfilterError, StoreError
from ragfilter.indexing.order import PHASES, Done, Order, Refusal, Watch, carry_out
from ragfilter.protocols import Progress
from ragfilter.stores.report import IndexReport
from ragfilter.stores.workspace import lock_file, taken
from ragfilter.text.numbers import Pace
from ragfilter.workbench import Workbench

if TYPE_CHECKING:
    from filelock import BaseFileLock

log = logging.getLogger(__name__)

State = Literal["waiting", "running", "stopped", "failed", "done"]
ORDER, STANDING, STOP = ".order.json", ".json", ".stop"
FOLDER, UPLOADS = "queue", "uploads"
UNUSED_S = 24 * 3600
"""How long uploads wait for an order."""
LOOK_S = 0.5
"""How often new orders are looked for."""
TELL_S = 0.25
"""How often progress is written."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an order stands. `seconds_left` is None if it cannot be told."""

    state: State = "waiting"
    phase: str = ""
    done: int = 0
    total: int = 0
    seconds_left: float | None = None
    refused: tuple[Refusal, ...] = ()
    left_out: int = 0
    report: IndexReport | None = None
    labels: str = ""
    message: str = ""
    remedy: str = ""
    action: Action = ""

    @property
    def open(self) -> bool:
        """Whether it is still to be done."""
        return self.state in ("waiting", "running")

    @property
    def share(self) -> float:
        """How much of the present phase is done, from 0 to 1."""
        return min(self.done / self.total, 1.0) if self.total else 0.0

    def result(self) -> Done:
        """What the order came to. Raises what prevented it."""
        if self.report is None:
            raise RagfilterError(self.message, remedy=self.remedy, action=self.action)
        return Done(self.report, self.refused, self.left_out, self.labels)


@dataclass(frozen=True, slots=True)
class IndexJob:
    """An order in the queue. Ids ascend in the order in which they were given."""

    id: str
    order: Order
    standing: Standing = field(default_factory=Standing)


T = TypeVar("T")
_ORDER, _STANDING = TypeAdapter(Order), TypeAdapter(Standing)


class Queue:
    """The orders of the workspace at `folder`. Any process may use it; raises StoreError."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder
        self.folder = folder / FOLDER
        with _told(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)

    def put(self, order: Order) -> IndexJob:
        """Give an order."""
        job = IndexJob(f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}", order)
        self._write(job.id, ORDER, order)
        return job

    def jobs(self) -> tuple[IndexJob, ...]:
        """Every order, oldest first."""
        names = sorted(path.name for path in self.folder.glob(f"*{ORDER}"))
        every = (self.job(name.removesuffix(ORDER)) for name in names)
        return tuple(job for job in every if job is not None)

    def job(self, job_id: str) -> IndexJob | None:
        """An order, None if it was removed or cannot be read."""
        order = self._read(job_id, ORDER, _ORDER)
        if order is None:
            return None
        return IndexJob(job_id, order, self._read(job_id, STANDING, _STANDING) or Standing())

    def stop(self, job_id: str) -> None:
        """Ask that an order be stopped; one that waits is stopped at once."""
        with _told(self.folder):
            (self.folder / f"{job_id}{STOP}").touch()
        job = self.job(job_id)
        if job is not None and job.standing.state == "waiting":
            self.tell(job_id, Standing("stopped"))

    def is_to_stop(self, job_id: str) -> bool:
        """Whether an order is to be stopped, or was removed."""
        given, stop = (self.folder / f"{job_id}{suffix}" for suffix in (ORDER, STOP))
        return stop.exists() or not given.exists()

    def go_on(self, job_id: str) -> None:
        """Let an order that was stopped or failed wait again; what is embedded is kept."""
        with _told(self.folder):
            (self.folder / f"{job_id}{STOP}").unlink(missing_ok=True)
        self.tell(job_id, Standing())

    def remove(self, job_id: str) -> None:
        """Forget an order, with its temporary source."""
        job = self.job(job_id)
        with _told(self.folder):
            for suffix in (ORDER, STOP, STANDING):
                (self.folder / f"{job_id}{suffix}").unlink(missing_ok=True)
        if job is not None:
            self.clear(job.order)

    def clear(self, order: Order) -> None:
        """Remove the source of an order that is temporary, which lies among the uploads."""
        source = Path(order.source)
        if order.temporary and source.parent == self.workspace / UPLOADS:
            shutil.rmtree(source, ignore_errors=True)

    def sweep(self) -> None:
        """Remove uploads that nobody ordered to be indexed within a day: their tab was closed."""
        ordered = {Path(job.order.source).name for job in self.jobs()}
        for folder in (self.workspace / UPLOADS).glob("*"):
            with contextlib.suppress(FileNotFoundError):
                if folder.name not in ordered and time.time() - folder.stat().st_mtime > UNUSED_S:
                    shutil.rmtree(folder, ignore_errors=True)

    def tell(self, job_id: str, standing: Standing) -> None:
        """Write where an order stands, unless it was removed."""
        if (self.folder / f"{job_id}{ORDER}").exists():
            self._write(job_id, STANDING, standing)

    def worker_lock(self) -> BaseFileLock:
        """The lock of whoever carries the orders out."""
        return lock_file(self.folder / ".worker.lock")

    @property
    def attended(self) -> bool:
        """Whether some process carries the orders out."""
        lock = self.worker_lock()
        if not taken(lock):
            return True
        lock.release()
        return False

    def _read(self, job_id: str, suffix: str, kind: TypeAdapter[T]) -> T | None:
        try:
            text = (self.folder / f"{job_id}{suffix}").read_bytes()
            # Not by pydantic alone: it refuses halves of characters, which a file's name may hold.
            return kind.validate_python(json.loads(text))
        except (OSError, ValueError):
            return None

    def _write(self, job_id: str, suffix: str, value: Order | Standing) -> None:
        fresh = self.folder / f"{job_id}{suffix}.new"
        with _told(self.folder):
            fresh.write_text(json.dumps(asdict(value)), encoding="utf-8")
            fresh.replace(self.folder / f"{job_id}{suffix}")


@contextlib.contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be written: {error.strerror}.",
            remedy="Free up disk space or check the folder's permissions.",
        ) from None


class OrderStopped(Exception):
    """The order is to stop."""


class Worker:
    """Works for as long as `bench` is open. Of several, one works and the others stand by.
    `meanwhile` is called while no order waits, and returns whether it has done something."""

    def __init__(self, bench: Workbench, meanwhile: Callable[[], bool] = lambda: False) -> None:
        self._bench = bench
        self._meanwhile = meanwhile
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
                if self._lock.is_locked and self._meanwhile():
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
            message = f"Unexpected {type(error).__name__}: {' '.join(str(error).split())[:300]}."
            remedy = "The log of the app says more."
            ended = replace(watch.standing, state="failed", message=message, remedy=remedy)
        else:
            ended = replace(
                watch.standing, state="done", report=done.report, refused=done.refused,
                left_out=done.left_out, labels=done.labels,
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
