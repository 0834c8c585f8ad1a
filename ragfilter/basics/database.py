"""The workspace's database, in SQLite or PostgreSQL, through SQLAlchemy; its failures become our errors."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from math import ceil
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from ragfilter.basics.threads import check_stopped
from ragfilter.errors import InputError, OutcomeUnknown, StoreError, StoreUnavailable, extra
from ragfilter.text.urls import shown

with extra("chroma"):
    import sqlalchemy as sa
    from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, OperationalError, SQLAlchemyError
    from sqlalchemy.schema import CreateIndex, CreateTable

if TYPE_CHECKING:
    from psycopg.abc import PQGen

T = TypeVar("T")
log = logging.getLogger(__name__)

BUSY_S = 10.0
"""How long to wait for a lock in SQLite, and for a server to accept a connection."""
MAKING = 0x72616766
"""The advisory lock for making tables: if two processes make the same one at once, one fails despite IF NOT EXISTS."""
_DAMAGED = re.compile("not a database|malformed")
_USER = re.compile('(user|role) "[^"]*"')
_together: ContextVar[tuple[str, sa.Connection] | None] = ContextVar("together", default=None)
"""The database and the connection of a transaction that several books share."""
OTHER_SCHEMA = (
    "It is not damaged, and nothing was changed. If another program made it, name another "
    "database in RAGFILTER_DATABASE_URL. If ragfilter did, export its labels and rules with the "
    "version that made it, index into another workspace, and import them there."
)

CAUSES = {
    "password|authentication failed|no pg_hba|this user does not exist|not permitted to log": "Check the user and "
    "password in the address.",
    'database "[^"]*" does not exist': "Create that database, or correct the address.",
    '(extension|file) "[^"]*vector[^"]*"': "Install pgvector on the server, then have its "
    "administrator run CREATE EXTENSION vector in this database.",
    "permission denied": "Let this user create tables there.",
    r"column \S+ does not exist": OTHER_SCHEMA,
    "already exists": "Another program's table has this name, and nothing was changed. Use another database.",
}
"""PostgreSQL's complaints, and what to do about each."""
UNREACHED = re.compile("no answer|resolve|connect|timeout|closed|terminat|shutting down|starting up|recovery mode")


LOST = (
    "the rules in the store stay, but earlier edits can then not be undone and a rebuild loses "
    "them, and labels, query sets, runs, votes and drafts are gone."
)
"""What is lost if a damaged database is moved away, whichever book found the damage."""

TEXT, WHOLE = sa.Text(), sa.Integer()
TIME = sa.DateTime(timezone=True)


def table(name: str, /, *others: sa.Constraint | sa.Index, **columns: sa.types.TypeEngine[Any]) -> sa.Table:
    """Define a table with numbered rows (`id`) and no missing values."""
    sql_columns = [sa.Column(each, kind, nullable=False) for each, kind in columns.items()]
    number = sa.Column("id", sa.Integer, primary_key=True)
    return sa.Table(name, sa.MetaData(), number, *sql_columns, *others, sqlite_autoincrement=True)


class Book:
    """Values in their own tables. Thread-safe. Every method raises StoreError if the database fails."""

    called = "The workspace's database"
    """Its name in error messages."""
    tables: Sequence[sa.Table]
    busy_s = BUSY_S
    _timeout_s = BUSY_S

    def __init__(self, url: str) -> None:
        """Open it, and make its tables if they are missing. Raises InputError if the URL is bad."""
        self._url = url
        self._engine = self._connect()
        self._reading = self._engine
        if self._engine.dialect.name == "postgresql":
            self._reading = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        try:
            self._prepare()
        except StoreError:
            self.close()
            raise

    def close(self) -> None:
        """Close the connections. It cannot be used afterwards."""
        self._engine.dispose()

    def _connect(self) -> sa.Engine:
        try:
            parsed = sa.make_url(self._url)
            backend = parsed.get_backend_name()
            if backend not in ("sqlite", "postgresql"):
                message = f"A database of the kind {backend} cannot be used."
                raise InputError(message, remedy="Use sqlite:///path/to/file or postgresql://host/database.")
            if backend == "sqlite":
                return sa.create_engine(parsed, connect_args={"timeout": self.busy_s})
            parsed = parsed.set(drivername="postgresql+psycopg")
            engine = sa.create_engine(parsed, connect_args={"connect_timeout": int(BUSY_S)}, pool_pre_ping=True)
        except (ArgumentError, ModuleNotFoundError, ValueError) as error:
            # The message does not repeat a URL that cannot be parsed: it may contain a password.
            why = str(error) if isinstance(error, ModuleNotFoundError) else "it cannot be read"
            remedy = "Write sqlite:///path/to/file or postgresql://host/database, and install the database's driver."
            raise InputError(f"The URL of the database cannot be used ({why}).", remedy=remedy) from None
        answer_in_time(engine, lambda: self._timeout_s)
        return engine

    def _prepare(self) -> None:
        """Make missing tables and indexes. Raises StoreError, before any change, if a table has other columns."""
        with self._guard():
            with self._engine.connect() as connection:
                there = sa.inspect(connection)
                for table in (each for each in self.tables if there.has_table(each.name)):
                    columns = {column["name"] for column in there.get_columns(table.name)}
                    if other := sorted(columns ^ set(table.columns.keys())):
                        what = f"the table {table.name} in {self.where} has another schema: {', '.join(other)}"
                        raise StoreError(f"{self.called} failed ({what}).", remedy=OTHER_SCHEMA)
                if self._engine.dialect.name == "sqlite":
                    # Readers then never wait for a writer. The file keeps this mode. SQLite does not wait for the lock
                    # that it needs; whoever holds it switches the mode, too.
                    with suppress(OperationalError):
                        connection.execute(sa.text("PRAGMA journal_mode=WAL"))
            with self.writing() as connection:
                if self._engine.dialect.name == "postgresql":
                    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MAKING)))
                for table in self.tables:
                    connection.execute(CreateTable(table, if_not_exists=True))
                    for index in table.indexes:
                        connection.execute(CreateIndex(index, if_not_exists=True))

    def _read(self, query: sa.Executable) -> list[sa.Row[Any]]:
        with self._connected() as connection:
            return list(connection.execute(query))

    @contextmanager
    def _connected(self, engine: sa.Engine | None = None) -> Iterator[sa.Connection]:
        """The connection of this thread's transaction or, if there is none, one to read with."""
        with self._guard():
            if (shared := self._shared) is not None:
                yield shared
            else:
                with (engine or self._reading).connect() as connection:
                    yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """This thread's transaction, or a new one."""
        with self._guard():
            if (shared := self._shared) is not None:
                yield shared
                return
            with self._engine.connect() as connection, connection.begin() as change:
                yield connection
                try:
                    change.commit()
                except DBAPIError as error:
                    if not error.connection_invalidated:
                        raise
                    message = f"{self.called} did not say whether it has saved the change."
                    remedy = "Look whether it has, once it answers again, before you repeat it."
                    raise OutcomeUnknown(message, remedy=remedy) from error

    def _write(self, *statements: sa.Executable) -> None:
        """Execute statements in one transaction."""
        with self.writing() as connection:
            for statement in statements:
                connection.execute(statement)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """One transaction in this thread for all books of the same database."""
        with self.writing() as connection:
            token = _together.set((self._url, connection))
            try:
                yield
            finally:
                _together.reset(token)

    @property
    def _shared(self) -> sa.Connection | None:
        shared = _together.get()
        return shared[1] if shared is not None and shared[0] == self._url else None

    @property
    def where(self) -> str:
        """The address without user and password."""
        url = self._engine.url
        return shown(url.set(drivername=url.get_backend_name()).render_as_string(hide_password=False))

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """Turn errors of the database into a StoreError."""
        try:
            yield
        except IntegrityError:
            raise
        except SQLAlchemyError as error:
            url, where = self._engine.url, self.where
            cause = str(getattr(error, "orig", None) or error).strip().split("\n")[0]
            # A driver's message may repeat secrets from the URL.
            for secret in (url.password, *map(str, url.query.values())):
                cause = cause.replace(secret, "…") if secret else cause
            cause = _USER.sub("this user", cause)
            remedy = f"Check that {where} is a writable file and that its disk is not full."
            if url.get_backend_name() == "postgresql":
                remedies = (r for pattern, r in CAUSES.items() if re.search(pattern, cause))
                running = f"Check that the server of {where} runs and lets this user in."
                remedy = next(remedies, running)
                if remedy == running and UNREACHED.search(cause):
                    raise StoreUnavailable(f"{self.called} cannot be reached ({cause}).", remedy=remedy) from error
            if _DAMAGED.search(cause):
                remedy = f"Restore {where} from a backup, or move it away: {LOST}"
            raise StoreError(f"{self.called} failed ({cause}).", remedy=remedy) from error


class OptionalBook(Book):
    """A book that nothing depends on, opened on first use. If its database fails, it logs one warning."""

    busy_s = 1.0

    def __init__(self, url: str) -> None:
        """Open nothing yet."""
        self._url = url
        self._told = False
        self._opening = threading.Lock()

    def close(self) -> None:
        """Close the connections. The next use opens them again."""
        if "_engine" in vars(self):
            super().close()
            del self._engine

    def _open(self) -> None:
        with self._opening:
            if "_engine" not in vars(self):
                super().__init__(self._url)

    def _attempt(self, work: Callable[[sa.Connection], T], otherwise: T) -> T:
        """Run `work` in one transaction; returns `otherwise` if the database fails."""
        try:
            self._open()
            with self.writing() as connection:
                return work(connection)
        except StoreError as error:
            if not self._told:
                log.warning("%s Delete it to start over.", error.message)
            self._told = True
            return otherwise


def in_utc(at: datetime) -> datetime:
    """Add UTC to a time read from the database, since SQLite stores no time zone."""
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def answer_in_time(engine: sa.Engine, seconds: Callable[[], float]) -> None:
    """Make reads through `engine` raise NoAnswer after `seconds()` without an answer. Writes may take minutes, so they
    raise it only once the server does not answer a new connection either. Both raise Abandoned as soon as nobody waits
    for them. The connection is then closed, so that the server rolls back uncommitted changes."""
    # Imported here: a folder needs no PostgreSQL.
    with extra("postgres"):
        import psycopg
        from psycopg.errors import ConnectionTimeout

    class NoAnswer(psycopg.OperationalError):
        """The server did not answer in time."""

    class Timed(psycopg.Connection[Any]):
        def wait(self, gen: PQGen[T], *args: Any, **named: Any) -> T:
            try:
                return super().wait(self.watched(gen), *args, **named)
            except BaseException as error:
                if not isinstance(error, psycopg.Error) or isinstance(error, NoAnswer):
                    self.pgconn.finish()
                raise

        def watched(self, gen: PQGen[T]) -> PQGen[T]:
            until = monotonic() + seconds()
            try:
                wanted = next(gen)
                while True:
                    # 0 ten times a second while there is no data.
                    ready = yield wanted
                    if not ready:
                        check_stopped()
                        if monotonic() > until:
                            if self.autocommit or self.read_only or not self.others_are_answered():
                                raise NoAnswer(f"no answer within {seconds():g} s")
                            until = monotonic() + seconds()
                    wanted = gen.send(ready)
            except StopIteration as done:
                answer: T = done.value
                return answer

        def others_are_answered(self) -> bool:
            info, seconds_left = self.info, ceil(seconds() / 2)
            try:
                psycopg.connect(info.dsn, password=info.password, connect_timeout=seconds_left).close()
            except psycopg.Error as error:
                return not isinstance(error, ConnectionTimeout)
            return True

    def is_open(connection: psycopg.Connection[Any]) -> bool:
        # Twice, since the first call reads the server's last message before it closed.
        connection.pgconn.consume_input()
        connection.pgconn.consume_input()
        return True

    sa.event.listen(engine, "do_connect", lambda dialect, record, args, named: Timed.connect(*args, **named))
    # Runs before each use. A query to the server would take as long as most requests.
    engine.dialect.do_ping = is_open
