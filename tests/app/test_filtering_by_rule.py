"""Inspect's table filters chunks by the state of their rule, and the link includes the choice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragfilter.rules.overview import Checks
from ragfilter.ui.session import resources

pytestmark = pytest.mark.model

CLERIC = "What does a 7th level cleric need to roll to hit an opponent with armor class 6?"
LINK = {"profile": "query-must", "q": CLERIC}
BROKEN, DOUBTED = "attack-matrix-clerics-ac-7", "attack-matrix-clerics-ac-8"


@pytest.fixture(scope="module")
def workspace(copy_demo: Callable[[], Path]) -> Path:
    return copy_demo()


def test_the_table_finds_rules_by_their_state(
    open_page: Callable[..., Any], workspace: Path
) -> None:
    page = open_page(LINK, workspace=workspace)
    store = resources.open_resources().bench.collection("demo")
    store.set_rules({BROKEN: "{broken", DOUBTED: '{"contain_one_of": [["a"], ["b"], ["c"]]}'})
    page.run()
    every = page.ids
    catalogue, checks = store.catalogue(), Checks()
    found = {}
    for word in ("invalid", "warning", "none", "note", "valid"):
        page.at.selectbox(key="filter-rule").set_value(word)
        found[word] = page.run().ids
    assert found["invalid"] == [BROKEN]
    assert DOUBTED in found["warning"]
    assert found["none"] == [i for i in every if not catalogue[i].rule]
    assert all(checks.state(catalogue[i]) == "valid" for i in found["valid"])
    assert sorted(i for ids in found.values() for i in ids) == sorted(every)
    # With words, both conditions must hold.
    page.at.text_input(key="filter").set_value("armor class 3")
    narrowed = page.run().ids
    assert narrowed
    assert set(narrowed) < set(found["valid"])
    assert page.link["rule"] == "valid"
    assert open_page({**LINK, "rule": "invalid"}, workspace=workspace).ids == [BROKEN]
    assert open_page({**LINK, "rule": "no such state"}, workspace=workspace).ids == every
