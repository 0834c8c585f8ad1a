"""The queue of indexing jobs in the workspace's database, and the workers that run them: one in
every process that has the workspace open as the app.

Source: docs/decisions/0015-indexing-waits-in-a-queue.md. A job continues after its page is closed, and the command line
can submit jobs while the app runs. Each job runs on one worker. If a worker stops sending heartbeats, another one takes
over its job."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeVar
from zipfile import ZipFile

from pydantic import TypeAdapter

from ragfilter.basics import database
from ragfilter.basics.database import TEXT, WHOLE
from ragfilter.basics.threads import Pace
from ragfilter.errors import Action, RagfilterError, WorkspaceLocked, extra
from ragfilter.indexing.order import Done, Order, Refusal, carry_out
from ragfilter.stores.base import IndexReport
from ragfilter.workbench import Workbench

with extra("chroma"):
    import sqlalchemy as sa

log = logging.getLogger(__name__)

State = Literal["waiting", "running", "stopped", "failed", "done"]
UPLOADS = "uploads"
UNUSED_S = 24 * 3600
"""Age at which uploads without a job are removed."""
LOOK_S = 0.5
"""Interval between checks for new jobs."""
TELL_S = 0.25
"""Minimum interval between progress updates."""
BEAT_S = 5.0
"""Interval between a worker's heartbeats."""
LOST_S = 15.0
"""Time without a heartbeat after which a worker counts as dead."""
MAX_TRIES = 3
"""Maximum number of workers that may die while running a job."""

_jobs = database.table(
    "index_jobs", given=TEXT, standing=TEXT, state=TEXT, stop=WHOLE, worker=WHOLE, tries=WHOLE, parcel=sa.LargeBinary()
)
_workers = database.table("index_workers", seen=sa.Float(53))
NOW = {"sqlite": "(julianday('now') - 2440587.5) * 86400.0", "postgresql": "extract(epoch FROM clock_timestamp())"}
"""The database's clock, in seconds, so that workers on several machines share one clock."""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """The status of a job. `seconds_left` is None if it cannot be estimated."""

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
        """Whether the job is waiting or running."""
        return self.state in ("waiting", "running")

    @property
    def share(self) -> float:
        """The finished share of the current phase, from 0 to 1."""
        return min(self.done / self.total, 1.0) if self.total else 0.0

    def result(self) -> Done:
        """The result of the job. Raises RagfilterError if it failed."""
        if self.report is None:
            raise RagfilterError(self.message, remedy=self.remedy, action=self.action)
        return Done(self.report, self.refused, self.left_out, self.labels)


@dataclass(frozen=True, slots=True)
class IndexJob:
    """A job in the queue. Later jobs have higher ids."""

    id: int
    order: Order
    status: JobStatus = field(default_factory=JobStatus)


T = TypeVar("T")
_ORDER, _STATUS = TypeAdapter(Order), TypeAdapter(JobStatus)
KILLED = JobStatus(
    "failed",
    message=f"The indexing process ended {MAX_TRIES} times.",
    remedy="Its log, or the machine's, says why. Memory may be short.",
)


class Queue(database.Book):
    """The jobs of a workspace. Safe across processes. Uploads are in a subfolder of `folder`."""

    called = "The indexing queue"
    tables = (_jobs, _workers)

    def __init__(self, url: str, folder: Path) -> None:
        super().__init__(url)
        self.uploads = folder / UPLOADS
        clock = sa.literal_column(NOW[self._engine.dialect.name], sa.Float())
        self._now = clock
        self._lost = clock - LOST_S

    def put(self, order: Order) -> IndexJob:
        """Submit a job. With PostgreSQL, the files of a temporary source are stored with it."""
        elsewhere = order.temporary and self._engine.dialect.name == "postgresql"
        row = {"given": _json(order), **_row(JobStatus()), "stop": 0, "worker": 0, "tries": 0}
        row["parcel"] = _packed(Path(order.source)) if elsewhere else b""
        with self.writing() as connection:
            number: int = connection.execute(_jobs.insert().values(row).returning(_jobs.c.id)).scalar_one()
        return IndexJob(number, order)

    def jobs(self) -> tuple[IndexJob, ...]:
        """All jobs, oldest first."""
        query = sa.select(_jobs.c.id, _jobs.c.given, _jobs.c.standing).order_by(_jobs.c.id)
        # Parsed with json, because pydantic refuses lone surrogates, which file names may contain.
        return tuple(
            IndexJob(number, _ORDER.validate_python(json.loads(order)), _STATUS.validate_python(json.loads(standing)))
            for number, order, standing in self._read(query)
        )

    def job(self, job_id: int) -> IndexJob | None:
        """The job with this id, None if it was removed."""
        return next((job for job in self.jobs() if job.id == job_id), None)

    def moved(self) -> tuple[tuple[int, str], ...]:
        """A value that changes whenever a job is submitted, started, ended or removed."""
        query = sa.select(_jobs.c.id, _jobs.c.state).order_by(_jobs.c.id)
        return tuple((i, state) for i, state in self._read(query))

    def stop(self, job_id: int) -> None:
        """Ask a job to stop; a waiting job is stopped at once."""
        update = _jobs.update().filter_by(id=job_id)
        self._write(update.values(stop=1), update.filter_by(state="waiting").values(_row(JobStatus("stopped"))))

    def go_on(self, job_id: int) -> None:
        """Queue a stopped or failed job again. Finished embeddings are kept."""
        again = {**_row(JobStatus()), "stop": 0, "tries": 0}
        self._write(_jobs.update().where(_jobs.c.id == job_id).values(again))

    def remove(self, job_id: int) -> None:
        """Remove a job and its temporary source."""
        job = self.job(job_id)
        self._write(_jobs.delete().where(_jobs.c.id == job_id))
        if job is not None:
            self.clear(job.order)

    def clear(self, order: Order) -> None:
        """Remove the job's source if it is a temporary upload."""
        source = Path(order.source)
        if order.temporary and source.parent == self.uploads:
            shutil.rmtree(source, ignore_errors=True)

    def sweep(self) -> None:
        """Remove uploads without a job that are older than a day: their tab was closed."""
        ordered = {Path(job.order.source).name for job in self.jobs()}
        for folder in self.uploads.glob("*"):
            with contextlib.suppress(FileNotFoundError):
                if folder.name not in ordered and time.time() - folder.stat().st_mtime > UNUSED_S:
                    shutil.rmtree(folder, ignore_errors=True)

    @property
    def attended(self) -> bool:
        """Whether any worker is alive."""
        return bool(self._read(sa.select(_workers.c.id).where(_workers.c.seen >= self._lost)))

    def enlist(self) -> int:
        """Register a worker. Returns its number."""
        with self.writing() as connection:
            connection.execute(_workers.delete().where(_workers.c.seen < self._lost))
            new = _workers.insert().values(seen=self._now).returning(_workers.c.id)
            number: int = connection.execute(new).scalar_one()
            return number

    def beat(self, worker: int) -> None:
        """Record a worker's heartbeat, even if it had counted as dead."""
        with self.writing() as connection:
            this = _workers.c.id == worker
            if not connection.execute(_workers.update().where(this).values(seen=self._now)).rowcount:
                connection.execute(_workers.insert().values(id=worker, seen=self._now))

    def leave(self, worker: int) -> None:
        """Unregister a worker. Its job waits for another worker."""
        self._write(_workers.delete().where(_workers.c.id == worker))

    def is_first(self, worker: int) -> bool:
        """Whether this worker has been alive the longest."""
        oldest_worker = sa.select(sa.func.min(_workers.c.id)).where(_workers.c.seen >= self._lost)
        return bool(self._read(oldest_worker)[0][0] == worker)

    def take(self, worker: int) -> IndexJob | None:
        """Assign the next job to this worker, which must have no other; None if none is waiting."""
        others = (_workers.c.seen >= self._lost) & (_workers.c.id != worker)
        busy = sa.select(_workers.c.id).where(others)
        orphaned = (_jobs.c.state == "running") & _jobs.c.worker.not_in(busy)
        free = (_jobs.c.state == "waiting") | orphaned
        first = sa.select(_jobs.c.id, _jobs.c.tries).where(free).order_by(_jobs.c.id).limit(1)
        if not self._read(first):
            return None
        with self.writing() as connection:
            row = connection.execute(first.with_for_update(skip_locked=True)).one_or_none()
            if row is None:
                return None
            this = (_jobs.c.id == row.id) & free
            begun = JobStatus("running") if row.tries < MAX_TRIES else KILLED
            mine = {**_row(begun), "worker": worker, "tries": row.tries + 1}
            done = connection.execute(_jobs.update().where(this).values(mine))
            if not done.rowcount or not begun.open:
                return None
        return self.job(row.id)

    def unpack(self, job: IndexJob) -> None:
        """Unpack the files that came with a job, unless this machine has them."""
        source = Path(job.order.source)
        ((parcel,),) = self._read(sa.select(_jobs.c.parcel).where(_jobs.c.id == job.id))
        if parcel and not source.exists():
            ZipFile(io.BytesIO(parcel)).extractall(source)

    def tell(self, job_id: int, status: JobStatus, worker: int | None = None) -> bool:
        """Write a job's status. Returns whether `worker` should continue: not if stopped, removed or taken over."""
        this = _jobs.c.id == job_id
        if worker is not None:
            this &= _jobs.c.worker == worker
        with self.writing() as connection:
            done = {"parcel": b""} if status.state == "done" else {}
            update = _jobs.update().where(this).values(_row(status) | done).returning(_jobs.c.stop)
            stop: int | None = connection.execute(update).scalar_one_or_none()
        return stop == 0


def queue_of(bench: Workbench) -> Queue:
    """The queue of an open workspace. Raises StoreError."""
    return bench.once(Queue, lambda: Queue(bench.workspace.database_url, bench.workspace.path), close=True)


def _json(value: Order | JobStatus) -> str:
    return json.dumps(asdict(value))


def _row(status: JobStatus) -> dict[str, Any]:
    return {"standing": _json(status), "state": status.state}


def _packed(folder: Path) -> bytes:
    """The files of a folder as a zip."""
    with TemporaryDirectory() as place:
        return Path(shutil.make_archive(f"{place}/files", "zip", folder)).read_bytes()


class OrderStopped(Exception):
    """The job was asked to stop."""


class Worker:
    """Runs jobs while `bench` is open. While no job is waiting, one of all workers calls
    `meanwhile`, which returns whether it did anything."""

    def __init__(self, bench: Workbench, meanwhile: Callable[[], bool] = lambda: False) -> None:
        self._bench = bench
        self._meanwhile = meanwhile
        self._queue = queue_of(bench)
        self._number = 0
        self._end = threading.Event()
        self._threads = [
            threading.Thread(target=work, name="ragfilter-worker", daemon=True) for work in (self._run, self._beat)
        ]

    def start(self) -> None:
        """Start the threads. Closing the bench waits until the current job has stopped."""
        self._bench.before_closing(self.close)
        self._queue.sweep()
        self._number = self._queue.enlist()
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Stop. The current job waits for another worker or the next start."""
        self._end.set()
        for thread in self._threads:
            thread.join()
        with contextlib.suppress(RagfilterError):
            self._queue.leave(self._number)

    def _beat(self) -> None:
        while not self._end.wait(BEAT_S):
            try:
                self._queue.beat(self._number)
            except RagfilterError as error:
                log.warning("the indexing queue is blocked: %s", error)

    def _run(self) -> None:
        while not self._end.is_set():
            try:
                job = self._queue.take(self._number)
                if job is not None:
                    self._carry_out(job)
                    continue
                if self._queue.is_first(self._number) and self._meanwhile():
                    continue
            except RagfilterError as error:
                log.warning("the indexing queue is blocked: %s", error)
            self._end.wait(LOOK_S)

    def _carry_out(self, job: IndexJob) -> None:
        watch = _ProgressWriter(self._queue, job.id, self._number, self._end)
        ended: dict[str, Any]
        try:
            watch.tell(force=True)
            self._queue.unpack(job)
            done = carry_out(job.order, self._bench, watch.report, watch.refuse)
        except OrderStopped:
            ended = {"state": "waiting" if self._end.is_set() else "stopped"}
        except WorkspaceLocked:
            # Another process is indexing the same collection.
            watch.status, ended = JobStatus(), {}
            self._end.wait(LOOK_S)
        except RagfilterError as error:
            ended = {"state": "failed", "message": error.message, "remedy": error.remedy, "action": error.action}
        except Exception as error:
            log.exception("an indexing job failed")
            message = f"Unexpected {type(error).__name__}: {' '.join(str(error).split())[:300]}."
            ended = {"state": "failed", "message": message, "remedy": "The app's log says more."}
        else:
            ended = {"state": "done"} | {each.name: getattr(done, each.name) for each in fields(done)}
            self._queue.clear(job.order)
        status = replace(watch.status, seconds_left=None, **ended)
        self._queue.tell(job.id, status, self._number)


@dataclass
class _ProgressWriter:
    """Writes a job's progress, and raises OrderStopped if the job should stop."""

    queue: Queue
    job_id: int
    worker: int
    end: threading.Event
    status: JobStatus = JobStatus("running")
    written_at: float = 0.0
    pace: Pace = field(default_factory=Pace)

    def report(self, phase: str, done: int, total: int) -> None:
        left = self.pace.left(done, total)
        self.status = replace(self.status, phase=phase, done=done, total=total, seconds_left=left)
        self.tell()

    def refuse(self, refusal: Refusal) -> None:
        refused = (*self.status.refused, refusal)
        self.status = replace(self.status, refused=refused, left_out=len(refused))

    def tell(self, *, force: bool = False) -> None:
        if self.end.is_set():
            raise OrderStopped
        if force or time.monotonic() - self.written_at >= TELL_S:
            if not self.queue.tell(self.job_id, self.status, self.worker):
                raise OrderStopped
            self.written_at = time.monotonic()
