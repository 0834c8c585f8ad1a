"""A workspace in PostgreSQL: the contract, concurrent edits, indexing, and failure messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import numpy as np
import psutil
import pytest
import sqlalchemy as sa
from stores import OneVector
from test_kept_before import KEPT, kept_in

from ragfilter.engine.gather import Backends, gather
from ragfilter.engine.pipeline import search_and_filter
from ragfilter.errors import ConflictError, OutcomeUnknown, StoreError, StoreUnavailable, WorkspaceLocked
from ragfilter.ingest.records import Record
from ragfilter.model import UNRESTRICTED, Chunk, User
from ragfilter.protocols import Vectors, Where
from ragfilter.rules import edits
from ragfilter.rules.journal import Journal
from ragfilter.rules.rule import Rule
from ragfilter.settings.config import load
from ragfilter.settings.deployment import Deployment
from ragfilter.settings.schema import Settings
from ragfilter.stores.copies import Copies, StoredRow
from ragfilter.stores.indexer import index
from ragfilter.stores.postgres import tables
from ragfilter.stores.postgres.store import PgCollection, PgStore
from ragfilter.stores.workspace_files import Workspace
from ragfilter.testing import CHUNKS, QUERY, VECTORS
from ragfilter.workbench import Workbench

ROWS = [StoredRow(chunk, vector) for chunk, vector in zip(CHUNKS, VECTORS, strict=True)]


@pytest.fixture
def workspace(address: str, tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(tmp_path / "passing", address=address) as workspace:
        yield workspace


@pytest.fixture
def store(workspace: Workspace) -> PgStore:
    return workspace.store()


@pytest.fixture
def ours(store: PgStore) -> PgStore:
    store.put("ours", ROWS, embedder="given")
    return store


def another(postgres: str) -> str:
    """The address of a new database with pgvector, which no other test empties."""
    url = sa.make_url(postgres).set(database=f"other{uuid4().hex}")
    engine = sa.create_engine(postgres, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {url.database}"))
    engine.dispose()
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE EXTENSION vector"))
    engine.dispose()
    return url.render_as_string(hide_password=False)


@pytest.mark.parametrize(
    ("query", "where", "expected"),
    [
        ("What about 7?", Where(User(1, ("5",))), ["c07"]),
        ("What about 7?", Where(User(1)), []),
        ("7 and its 3", Where(UNRESTRICTED), ["c03", "c07"]),
        ("7 and its 3", Where(UNRESTRICTED, ("b.json",)), []),
        ("7' | & ! :* \\ (3", Where(User(0, ("5",))), ["c03"]),
        ("Is it the one?", Where(), []),
    ],
)
def test_words_are_searched_as_the_user(ours: PgStore, query: str, where: Where, expected: list[str]) -> None:
    found = ours.collection("ours").matching(query, 99, where=where)
    assert [i for i, _ in found] == expected
    assert all(score > 0 for _, score in found)


def test_a_question_of_a_workspace_in_postgres_is_also_searched_by_words(ours: PgStore) -> None:
    settings = Settings().with_values({"retrieval.lexical": True, "retrieval.pool_size": 10})
    backends = Backends(ours.collection("ours"), OneVector({}, QUERY))
    pool = gather("What about 7?", settings, backends, User(1, ("5",)))
    scores = {hit.id: hit.scores["lexical"] for hit in pool.hits if "lexical" in hit.scores}
    assert {i: score.rank for i, score in scores.items()} == {"c07": 1}


def test_an_edit_is_one_transaction_and_another_instance_sees_it(ours: PgStore, address: str) -> None:
    other, journal = PgStore(address), Journal(address)
    mine, theirs = ours.collection("ours"), other.collection("ours")
    before = theirs.version
    assert theirs.entries()["c01"].rule is None
    (edit,) = edits.save_all(mine, journal, rules={"c01": Rule(contain="x")}, expected={"c01": None}, who="a")
    assert (edit.state, theirs.rule("c01")) == ("done", edit.after)
    assert theirs.entries()["c01"].rule == edit.after
    assert theirs.version != before
    assert mine.chunks(["c01"])["c01"].rule == edit.after
    with pytest.raises(ConflictError):
        edits.save(theirs, journal, chunk_id="c01", rule=None, expected=None, who="b")
    rules = dict.fromkeys(("c02", "nobody"), Rule(contain="y"))
    with pytest.raises(ConflictError):
        edits.save_all(theirs, journal, rules=rules, expected={}, who="b")
    assert theirs.rule("c02") is None
    assert journal.unfinished() == ()
    assert [each.id for each in journal.history("ours")] == [edit.id]
    edits.turn("undo", theirs, journal, who="b")
    assert mine.entries()["c01"].rule is None
    other.close()
    journal.close()


def test_a_failure_amid_an_edit_leaves_nothing(ours: PgStore, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    journal, collection = Journal(address), ours.collection("ours")

    def fail(edit: object) -> None:
        raise StoreError("The disk is full.")

    monkeypatch.setattr(journal, "finish", fail)
    with pytest.raises(StoreError, match="Nothing was saved"):
        edits.save(collection, journal, chunk_id="c01", rule='{"contain": "x"}', expected=None, who="a")
    assert collection.rule("c01") is None
    assert journal.history("ours") == ()
    journal.close()


@pytest.mark.parametrize("wide", [False, True])
def test_rules_reach_as_far_without_a_catalogue(store: PgStore, wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The chunks whose rules hold are farther away than all that a single search returns."""
    rules = ['{"contain":"wizard"}'] * 2000 + ['{"contain":"cleric"}'] * 9
    angles = np.linspace(0, 1, len(rules))
    batch = [
        StoredRow(Chunk(f"c{i}", f"text {i}", rule=rule), np.array([np.cos(a), np.sin(a)]))
        for i, (rule, a) in enumerate(zip(rules, angles, strict=True))
    ]
    store.put("ruled", batch, embedder="given")
    store.catalogue_limit = 0
    monkeypatch.setattr(PgCollection, "entries", None)
    settings = load(profile="query-must", environ={}).settings
    settings = settings.with_values({"retrieval.pool_size": 50})
    backends = Backends(store.collection("ruled"), OneVector({}, np.array([1.0, 0.0])))
    result = search_and_filter("Which cleric?", settings, backends, User(), wide=wide)
    assert [hit.id for hit in result.kept] == [f"c{i}" for i in range(2000, 2009)]
    assert {hit.found_by for hit in result.kept} == {"rules"}


class Counting(OneVector):
    """Counts the texts that it embeds, and fails from the call number `failing`."""

    def __init__(self, failing: int = 10**9) -> None:
        super().__init__({}, QUERY)
        self.texts: list[str] = []
        self._failing = failing

    def embed(self, texts: Sequence[str]) -> Vectors:
        self._failing -= 1
        if self._failing < 0:
            raise KeyboardInterrupt
        self.texts += texts
        return super().embed(texts)


def records(n: int, text: str = "text", clearance: int | None = 0) -> list[Record]:
    made = (Chunk(f"c{i:03d}", f"{text} {i}", clearance=clearance) for i in range(n))
    return [Record(chunk, "a line") for chunk in made]


def test_only_what_changed_is_embedded_and_edited_rules_stay(workspace: Workspace, store: PgStore) -> None:
    embedder = Counting()
    index(records(70), name="notes", workspace=workspace, embedder=embedder)
    assert len(embedder.texts) == 70
    rule = '{"contain":"x"}'
    store.collection("notes").set_rules({"c001": rule})
    version = store.collection("notes").version
    report = index(records(70), name="notes", workspace=workspace, embedder=embedder)
    assert (report.unchanged, report.written, len(embedder.texts)) == (70, 0, 70)
    assert store.collection("notes").version == version
    more = [*records(2, "other"), *records(71)[2:]]
    report = index(more, name="notes", workspace=workspace, embedder=embedder, rules=lambda: {"c001": rule})
    assert (report.added, report.changed, report.embedded) == (1, 2, 3)
    assert store.collection("notes").rule("c001") == rule
    assert list(store.collection("notes").entries()) == [f"c{i:03d}" for i in range(71)]
    report = index(records(3), name="notes", workspace=workspace, embedder=embedder, reset=True)
    assert store.collection("notes").count() == report.total == 3
    assert set(store.collection("notes").entries()) == {"c000", "c001", "c002"}


def test_an_interrupted_indexing_leaves_the_collection_and_goes_on(workspace: Workspace, store: PgStore) -> None:
    index(records(3), name="notes", workspace=workspace, embedder=Counting())
    with suppress(KeyboardInterrupt):
        index(records(200, "new"), name="notes", workspace=workspace, embedder=Counting(2))
    assert store.collection("notes").count() == 3
    rest = Counting()
    index(records(200, "new"), name="notes", workspace=workspace, embedder=rest)
    assert len(rest.texts) == 200 - 2 * 64
    assert store.collection("notes").count() == 200


def test_clearances_change_before_anything_is_embedded(workspace: Workspace, store: PgStore) -> None:
    index(records(3), name="notes", workspace=workspace, embedder=Counting())
    secret = [Record(Chunk(f"c{i:03d}", f"new {i}", clearance=4), "a line") for i in range(3)]
    with suppress(KeyboardInterrupt):
        index(secret, name="notes", workspace=workspace, embedder=Counting(0))
    # A page that has a pool of them searches again.
    assert store.collection("notes").content == ""
    assert store.collection("notes").nearest(QUERY, 9, where=Where(User(3))) == []
    assert len(store.collection("notes").nearest(QUERY, 9, where=Where(User(4)))) == 3


def test_an_edit_elsewhere_leaves_the_content_and_is_seen_with_the_next_version(ours: PgStore, address: str) -> None:
    before, content = ours.collection("ours").version, ours.collection("ours").content
    other = PgStore(address)
    other.collection("ours").set_rules({CHUNKS[0].id: '{"contain": "owl"}'})
    other.close()
    assert not ours.outdated(before)
    assert ours.collection("ours").version != before
    assert ours.outdated(before)
    assert ours.collection("ours").content == content


def test_metadata_that_others_damage_are_shown_as_they_are(ours: PgStore, address: str) -> None:
    for damaged in ("{oops", "[1]", "[" * 100_000):
        with ours.changing("ours") as (connection, row):
            connection.exec_driver_sql(f"UPDATE {tables.chunks_of(row)} SET metadata = %(said)s", {"said": damaged})
        assert ours.collection("ours").chunks([CHUNKS[0].id])[CHUNKS[0].id].metadata == {"metadata": damaged}


def test_one_collection_is_indexed_by_one(store: PgStore, address: str) -> None:
    other = PgStore(address)
    with store.only_one("notes"), pytest.raises(WorkspaceLocked), other.only_one("notes"):
        pass
    with other.only_one("notes"):
        pass
    other.close()


@pytest.mark.model
def test_every_profile_keeps_what_it_keeps_in_a_folder(copy_demo: Callable[[], Path], address: str) -> None:
    batch = Copies(copy_demo() / "copies").read("demo")
    deployment = Deployment(workspace=address)
    with Workbench.open(deployment) as bench:
        bench.workspace.store().put("demo", batch, embedder=bench.embedder.name)
    kept = [*kept_in(deployment, every=10)]
    assert len(kept) > 100
    assert set(kept) <= set(KEPT.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize(
    ("address", "remedy"),
    [
        ("postgresql://somebody:secret@127.0.0.1:1/x", "Check that the server of"),
        ("postgresql://somebody:secret@nowhere.invalid/x", "Check that the server of"),
        ("postgresql://somebody:secret@{host}", "Check the user and password in the address."),
        ("postgresql://postgres:secret@{host}", "Create that database"),
    ],
)
def test_a_failure_is_one_line_with_the_remedy(postgres: str, address: str, remedy: str) -> None:
    host = f"/missing?{postgres.partition('?')[2]}"
    with pytest.raises(StoreError) as caught, Workbench.open(Deployment(workspace=address.format(host=host))):
        pass
    assert remedy in caught.value.remedy
    assert "secret" not in str(caught.value)
    assert "somebody" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "remedy"),
    [
        ("CREATE TABLE ragfilter_collections (name text)", "Another program's table has this name"),
        ("CREATE TABLE ragfilter_version (other text)", "It is not damaged"),
        ("CREATE TABLE ragfilter_version AS SELECT '9999'::text AS version_num", "Install that version here too"),
    ],
)
def test_another_schema_is_no_damage(address: str, change: str, remedy: str) -> None:
    engine = sa.create_engine(address)
    with engine.begin() as connection:
        connection.execute(sa.text(change))
    engine.dispose()
    with pytest.raises(StoreError) as caught:
        PgStore(address)
    assert remedy in caught.value.remedy


@pytest.mark.parametrize("version", ["0.8.1", "0.10.0"])
def test_an_index_search_goes_on_where_the_server_can(store: PgStore, address: str, version: str) -> None:
    with store.writing() as connection:
        connection.exec_driver_sql(f"UPDATE pg_extension SET extversion = '{version}' WHERE extname = 'vector'")
    other = PgStore(address)
    assert other.read("SELECT current_setting('hnsw.iterative_scan', true)", width=9) == [("strict_order",)]
    other.close()


def test_a_frozen_server_is_told_within_the_deadline(ours: PgStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours, "_timeout_s", 0.5)
    with pytest.raises(StoreUnavailable, match=r"no answer within 0\.5 s"):
        ours.read("SELECT pg_sleep(5)")
    assert ours.collection("ours").count() == len(CHUNKS)


@pytest.mark.parametrize(
    ("last", "error"), [(False, StoreUnavailable), (True, OutcomeUnknown)], ids=["within", "at end"]
)
def test_a_change_waits_only_for_a_server_that_answers_others(
    ours: PgStore, monkeypatch: pytest.MonkeyPatch, last: bool, error: type[StoreError]
) -> None:
    monkeypatch.setattr(ours, "_timeout_s", 0.5)
    with ours.writing() as connection:
        connection.exec_driver_sql("SELECT pg_sleep(1)")
        own = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
    server = psutil.Process(own).parent()
    assert server is not None

    def change() -> None:
        with ours.writing() as connection:
            connection.exec_driver_sql("DELETE FROM ragfilter_collections")
            for process in (server, *server.children()):
                process.suspend()
            if not last:
                connection.exec_driver_sql("SELECT 1")

    try:
        with pytest.raises(error) as caught:
            change()
        assert type(caught.value) is error
    finally:
        for process in (server, *server.children()):
            process.resume()
    if not last:
        assert ours.collection("ours").count() == len(CHUNKS)


def test_so_is_one_that_freezes_while_a_journal_is_read(
    address: str, ours: PgStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal(address)
    monkeypatch.setattr(journal, "_timeout_s", 0.5)
    with ours.writing() as connection:
        connection.exec_driver_sql("LOCK TABLE rule_edits")
        with pytest.raises(StoreUnavailable, match=r"no answer within 0\.5 s"):
            journal.edited_rules("ours")
    assert journal.edited_rules("ours") == {}
    journal.close()
