"""Drafts that await review: stored as they are made."""

from __future__ import annotations

from collections.abc import Iterator
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
