"""When a gathered pool falls short of the settings, so that the page offers to gather again."""

from __future__ import annotations

from typing import Any

import pytest

from ragfilter.pipeline import replay
from ragfilter.settings import Settings
from ragfilter.types import Chunk, Hit, Pool
from ragfilter.ui.pools import falls_short, reach
from ragfilter.ui.state import Asked

FILES = "retrieval.source_pattern"


@pytest.mark.parametrize(
    ("before", "now", "complete", "short"),
    [
        ({}, {}, False, False),
        ({}, {"retrieval.pool_size": 300}, False, True),
        ({}, {"retrieval.pool_size": 300}, True, False),
        ({}, {"retrieval.pool_size": 100}, False, False),
        ({}, {FILES: "none.md"}, False, True),  # no hit of these files is there
        ({}, {FILES: "none.md"}, True, False),  # and none can be
        ({}, {FILES: "a.md"}, False, False),  # all that is wanted is there
        ({FILES: "a.md"}, {FILES: "b.md"}, True, True),
        ({FILES: "a.md"}, {}, False, True),
        ({FILES: "a.md"}, {FILES: "a.md"}, False, False),
    ],
)
def test_a_wider_pool_or_other_files(
    before: dict[str, Any], now: dict[str, Any], complete: bool, short: bool
) -> None:
    asked_with = Settings().with_values({"retrieval.k": 2, "cutoff.max_results": 2} | before)
    hits = tuple(Hit(Chunk(f"c{rank}", source="a.md"), 0.01 * rank, rank) for rank in range(1, 61))
    pattern = asked_with.retrieval.source_pattern
    pool = Pool("q", "demo", "l2", hits, source_pattern=pattern, complete=complete)
    settings = asked_with.with_values({FILES: ""} | now)
    put = Asked("q", "demo", "1", reach(asked_with))
    assert falls_short(put, replay(pool, settings), settings) is short
