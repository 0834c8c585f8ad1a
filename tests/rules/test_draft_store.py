"""Drafts that await review: stored as they are made."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from ragfilter.protocols import Usage
from ragfilter.rules.drafting import Draft, DraftStore
from ragfilter.rules.rule import parse

RULE = parse('{"contain": "troll"}')
GOOD = Draft(
    "a",
    category="general",
    rule=RULE,
    remarks=("too wide",),
    repaired=True,
    model="tiny",
    prompt_version="suggest-1 general-1",
    usage=Usage(7, 3, estimated=False),
    ms=12.5,
)
FAILED = Draft("b", error="no rule in the answer", failed="rule", usage=Usage(7, 3, estimated=True))


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'book.db'}"


@pytest.fixture
def store(url: str) -> Iterator[DraftStore]:
    store = DraftStore(url)
    yield store
    store.close()


def test_a_draft_comes_back_as_it_was_made(store: DraftStore) -> None:
    store.keep("c", GOOD)
    store.keep("c", FAILED)
    assert store.drafts("c") == (GOOD, FAILED)


def test_a_second_draft_of_a_chunk_replaces_the_first(store: DraftStore) -> None:
    store.keep("c", FAILED)
    again = replace(GOOD, chunk_id="b")
    store.keep("c", again)
    assert store.drafts("c") == (again,)


def test_collections_are_kept_apart_and_drafts_forgotten(store: DraftStore) -> None:
    for name in ("c", "other"):
        store.keep(name, GOOD)
        store.keep(name, FAILED)
    store.forget("c", ["a"])
    store.forget("c", [])
    assert store.drafts("c") == (FAILED,)
    assert store.drafts("other") == (GOOD, FAILED)


def test_a_table_that_reuses_numbers_as_in_earlier_workspaces_still_works(tmp_path: Path, url: str) -> None:
    with closing(sqlite3.connect(tmp_path / "book.db")) as earlier:
        columns = "id INTEGER NOT NULL, collection TEXT NOT NULL, chunk_id TEXT NOT NULL, body TEXT NOT NULL"
        earlier.execute(f"CREATE TABLE rule_drafts ({columns}, PRIMARY KEY (id))")
    with closing(DraftStore(url)) as store:
        for draft in (GOOD, FAILED, GOOD):
            store.keep("c", draft)
        assert store.drafts("c") == (FAILED, GOOD)
