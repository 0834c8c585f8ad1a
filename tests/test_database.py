"""The workspace's database, in SQLite and PostgreSQL: its one schema, and many first starts."""

from __future__ import annotations

import multiprocessing
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
import sqlalchemy as sa
from waiting import PROCESS_S

from ragfilter.basics.database import Book
from ragfilter.errors import StoreError
from ragfilter.rules.drafting import DraftStore
from ragfilter.rules.journal import Journal
from ragfilter.stores.label_book import LabelBook
from ragfilter.stores.preferences import PreferenceBook
from ragfilter.stores.run_store import Runs

BOOKS: tuple[type[Book], ...] = (Journal, DraftStore, LabelBook, PreferenceBook, Runs)
STARTS = 8
STARTING = multiprocessing.get_context("forkserver")
STARTING.set_forkserver_preload(["sqlalchemy", "psycopg", "pytest", "numpy", "pydantic"])


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ragfilter.db'}"
    found: str = request.getfixturevalue("address")
    return found


def start(url: str, gate: Barrier, said: Queue[str]) -> None:
    """Open every book, at the same moment as the others do."""
    try:
        gate.wait(PROCESS_S)
        for book in BOOKS:
            book(url).close()
        said.put("")
    except Exception as error:
        said.put(repr(error))


@pytest.mark.slow
def test_many_first_starts_at_once_all_succeed(url: str) -> None:
    gate, said = STARTING.Barrier(STARTS), STARTING.Queue()
    starts = [STARTING.Process(target=start, args=(url, gate, said)) for _ in range(STARTS)]
    for each in starts:
        each.start()
    assert [said.get(timeout=PROCESS_S) for _ in starts] == [""] * STARTS
    for each in starts:
        each.join(PROCESS_S)


RENAMED = [(Journal, "rule_exports", "edit"), (LabelBook, "labels", "made_by")]
CHANGES = {
    "renamed": ("ALTER TABLE {table} RENAME COLUMN {column} TO other", "other"),
    "missing": ("ALTER TABLE {table} DROP COLUMN {column}", ""),
    "added": ("ALTER TABLE {table} ADD COLUMN other TEXT", "other"),
    "of something else": ("DROP TABLE {table}; CREATE TABLE {table} (id INTEGER, other TEXT)", "other"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("book", "table", "column"), RENAMED, ids=[t for _, t, _ in RENAMED])
def test_a_table_with_other_columns_is_another_schema_and_stays(
    url: str, book: type[Book], table: str, column: str, change: str
) -> None:
    book(url).close()
    order, added = CHANGES[change]
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for each in order.format(table=table, column=column).split(";"):
            connection.execute(sa.text(each))
    there = columns(engine, table)
    with pytest.raises(StoreError) as caught:
        book(url)
    assert columns(engine, table) == there
    engine.dispose()
    differing = caught.value.message.partition(" has another schema: ")[2].split(", ")
    assert {added, "" if change == "added" else column} - {""} <= {w.strip(").") for w in differing}
    assert f"the table {table} in {url.partition(':')[0]}" in caught.value.message
    assert "not damaged" in caught.value.remedy
    assert "move it away" not in caught.value.remedy


def columns(engine: sa.Engine, table: str) -> list[str]:
    return [column["name"] for column in sa.inspect(engine).get_columns(table)]
