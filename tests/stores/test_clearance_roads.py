"""No way out of a workspace in PostgreSQL names chunks that its user cannot see: a share of the
10,000 cases of `benchmarks/clearance_roads.py`."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_postgres import another

from benchmarks.clearance_roads import QUESTIONS, ROADS, USERS, leaks, names_of, opened

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("large", [False, True])
def test_no_road_names_what_is_hidden(postgres: str, tmp_path: Path, large: bool) -> None:
    with opened(another(postgres), tmp_path, 7, large=large) as roads:
        assert [(name, found) for name, found in leaks(roads, 45, 7) if found] == []
        # Every way out names visible chunks, so that the law can fail.
        chief = USERS[-1]
        seen = [n for n, chunk in enumerate(roads.chunks) if not chief.refusal(chunk)]
        for name, road in ROADS.items():
            told = road(roads, chief, QUESTIONS[0], "unfiltered")
            named = any(each in told for n in seen for each in names_of(n)[::2])
            assert named is (name not in ("metrics", "errors", "counts")), name
