"""The table and the matrix of the Rules page after rules, chunks and sources have changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rules_page import open_rules, select, settled

from ragfilter.protocols import Catalogue
from ragfilter.rules.rule import template
from ragfilter.stores.chroma.store import ChromaCollection
from ragfilter.ui.session import resources

pytestmark = pytest.mark.model

MATRIX = "attack-matrix-clerics-ac-6"


@pytest.fixture
def page(open_page: Callable[..., Any], copy_demo: Callable[[], Path]) -> Any:
    return open_rules(open_page(workspace=copy_demo()))


def table(page: Any) -> Any:
    (frame,) = [f.value for f in page.at.dataframe if "state" in f.value]
    return frame


def narrow(page: Any, words: str, *states: str) -> Any:
    page.at.text_input(key="rules-text").set_value(words)
    page.at.multiselect(key="rules-states").set_value(list(states))
    return page.run()


def test_what_was_measured_says_nothing_of_a_rule_that_changed_since(page: Any) -> None:
    store = resources.open_resources().bench.collection("demo")
    settled(page.press("rules-measure"))
    first = table(narrow(page, "", "none")).iloc[0]
    assert first["kept wrongly"] > 0
    assert table(narrow(page, "")).iloc[0]["conflicts"] > 0
    mended = (first["id"], table(page).iloc[0]["id"])
    for chunk_id in mended:
        store.set_rules({chunk_id: template(chunk_id)})
    page.run().press("rules-sort")
    assert not {*mended} & {*table(page)["id"][:2]}
    for chunk_id in mended:
        found = table(narrow(page, chunk_id)).set_index("id").loc[chunk_id]
        assert found[["kept wrongly", "conflicts"]].isna().all()

    settled(page.choose("rules-part", "Matrix"))
    # Nobody can say what the parts of an unreadable rule do.
    store.set_rules({MATRIX: '{"contains":1}'})
    select(settled(page.run()), "matrix", MATRIX)
    assert "contains" in page.errors[0]


def test_a_new_chunk_enters_the_table(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # One chunk is replaced in the index.
    *others, last = resources.open_resources().bench.collection("demo").entries().values()
    new = Catalogue({c.id: c for c in (*others, replace(last, id="the-new-chunk"))})
    monkeypatch.setattr(ChromaCollection, "entries", lambda self: new)
    for name in ("content", "version"):
        monkeypatch.setattr(ChromaCollection, name, property(lambda self: "indexed again"))
    order = page.run().session.rules.order[1]
    assert "the-new-chunk" in order
    assert last.id not in order
