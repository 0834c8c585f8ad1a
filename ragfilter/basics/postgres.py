"""Connections to PostgreSQL that give up on a server that does not answer."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from time import monotonic
from typing import Any, TypeVar

from ragfilter.basics.threads import check_stopped
from ragfilter.errors import extra

with extra("postgres"):
    import psycopg
    import sqlalchemy as sa
    from psycopg.abc import PQGen
    from psycopg.errors import ConnectionTimeout

T = TypeVar("T")


class NoAnswer(psycopg.OperationalError):
    """The server did not answer in time."""


def answer_in_time(engine: sa.Engine, seconds: Callable[[], float]) -> None:
    """Make reads through `engine` raise NoAnswer after `seconds()` without an answer. Writes may take minutes, so they
    raise it only once the server does not answer a new connection either. Both raise Abandoned as soon as nobody waits
    for them. The connection is then closed, so that the server rolls back uncommitted changes."""

    class Timed(psycopg.Connection[Any]):
        opened_with: tuple[Any, dict[str, Any]]

        def wait(self, gen: PQGen[T], *given: Any, **named: Any) -> T:
            try:
                return super().wait(self.watched(gen), *given, **named)
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
            args, named = self.opened_with
            try:
                psycopg.connect(*args, **named | {"connect_timeout": ceil(seconds() / 2)}).close()
            except psycopg.Error as error:
                return not isinstance(error, ConnectionTimeout)
            return True

    def open_timed(dialect: object, record: object, args: Any, named: dict[str, Any]) -> Timed:
        connection = Timed.connect(*args, **named)
        connection.opened_with = args, named
        return connection

    def is_open(connection: psycopg.Connection[Any]) -> bool:
        # Twice, since the first call reads the server's last message before it closed.
        connection.pgconn.consume_input()
        connection.pgconn.consume_input()
        return True

    sa.event.listen(engine, "do_connect", open_timed)
    # Runs before each use. A query to the server would take as long as most requests.
    engine.dialect.do_ping = is_open
