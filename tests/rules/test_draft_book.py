"""Drafts that await review: stored as they are made, so that a run continues where it stopped."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import PROCESS_S

from ragfilter.protocols import Usage
from ragfilter.rules.draft import Draft
from ragfilter.rules.draft_book import DraftBook
from ragfilter.rules.rule import canonical, parse

RULE = parse('{"contain": "troll"}')
GOOD = Draft(
    "a",
    category="general",
    rule=RULE,
    text=canonical(RULE),
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
def book(url: str) -> Iterator[DraftBook]:
    book = DraftBook(url)
    yield book
    book.close()


def test_a_draft_comes_back_as_it_was_made(book: DraftBook) -> None:
    book.want("c", ["a", "b"])
    book.keep("c", GOOD)
    book.keep("c", FAILED)
    assert book.drafts("c") == (GOOD, FAILED)
    assert book.waiting("c") == ()


def test_a_run_goes_on_where_it_stood_and_tries_failures_again(book: DraftBook) -> None:
    book.want("c", ["b", "a", "d", "a"])
    assert book.waiting("c") == ("b", "a", "d")
    book.keep("c", FAILED)
    book.keep("c", GOOD)
    assert book.waiting("c") == ("d",)
    book.want("c", ["e"])
    # A failure is tried again only if its chunk is asked for.
    assert (book.waiting("c"), book.drafts("c")) == (("d", "e"), (FAILED, GOOD))
    book.want("c", ["a", "b"])
    # What is queued stays queued.
    assert (book.waiting("c"), book.drafts("c")) == (("d", "e", "b"), (GOOD,))


def test_what_drafts_used_is_remembered_when_they_are_gone(book: DraftBook) -> None:
    everyone = {"a", "b"}
    assert book.used("c", everyone) == Usage()
    book.want("c", ["a", "b"])
    book.keep("c", GOOD)
    assert book.used("c", everyone) == Usage(7, 3)
    book.keep("c", FAILED)
    # Tried again, as after a failure or a pause.
    book.want("c", ["b"])
    book.count("c", FAILED)
    book.keep("c", FAILED)
    book.forget("c", ["a", "b"])
    assert book.used("c", everyone) == Usage(28, 12, estimated=True)
    # A user knows only of the chunks that they may see.
    assert book.used("c", {"a"}) == Usage(7, 3)
    assert book.used("other", everyone) == Usage()


def test_a_draft_for_which_nothing_was_sent_makes_no_total_an_estimate(book: DraftBook) -> None:
    book.count("c", Draft("a", error="no text", failed="chunk", usage=Usage(estimated=True)))
    assert book.used("c", {"a"}) == Usage()


def test_collections_are_kept_apart_and_drafts_forgotten(book: DraftBook) -> None:
    for name in ("c", "other"):
        book.want(name, ["a", "b"])
        book.keep(name, GOOD)
    book.forget("c", ["a"])
    assert (book.drafts("c"), book.waiting("c")) == ((), ("b",))
    assert (book.drafts("other"), book.waiting("other")) == ((GOOD,), ("b",))


def test_what_was_kept_survives_a_killed_process(url: str) -> None:
    killed = (
        "import os, signal; from ragfilter.rules.draft import Draft;"
        "from ragfilter.rules.draft_book import DraftBook;"
        f"book = DraftBook({url!r}); book.want('c', ['b', 'a']);"
        "book.keep('c', Draft('b', error='no')); os.kill(os.getpid(), signal.SIGKILL)"
    )
    made = subprocess.run(
        [sys.executable, "-c", killed], env=dict(os.environ), timeout=PROCESS_S, check=False
    )
    assert made.returncode == -9
    book = DraftBook(url)
    assert book.waiting("c") == ("a",)
    assert [draft.error for draft in book.drafts("c")] == ["no"]
    book.close()
