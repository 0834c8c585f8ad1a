"""Every profile keeps the same chunks for every question as in the recorded table.

`data/kept_before.tsv` has one line per profile and labelled question of the demo: the ids kept, in order. `PYTHONPATH=.
python tests/test_kept_before.py WORKSPACE` prints a new table from a workspace with the demo. Use it only if a change
is meant to change what a profile keeps. Since the first table, `full` was tuned on purpose. The seeds' profiles keep
the same chunks, except for two questions of `query-must` and `llm-filter`, for which a chunk of the demo was rewritten.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from stores import Remembering, read_once

from ragfilter.engine.pipeline import search_and_filter
from ragfilter.ingest import bundled
from ragfilter.settings.config import load
from ragfilter.settings.deployment import Deployment
from ragfilter.settings.profiles import PROFILES
from ragfilter.workbench import Workbench

KEPT = Path(__file__).parent / "data" / "kept_before.tsv"


def kept_in(deployment: Deployment, every: int = 1) -> Iterator[str]:
    """The lines of the table with what the profiles keep today, for every so many questions. No LLM is called."""
    with Workbench.open(deployment) as opened:
        backends = replace(opened, embedder=Remembering()).backends("demo")
        for profile in PROFILES:
            settings = load(profile=profile, environ={}).settings
            for name, query in [*bundled.queries("demo").items()][::every]:
                result = search_and_filter(query, settings, backends)
                ids = " ".join(hit.id for hit in result.kept)
                yield f"{profile}\t{name}\t{result.status}\t{ids}"


@pytest.mark.model
def test_every_profile_keeps_what_it_kept(copy_demo: Callable[[], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    read_once(monkeypatch)
    lines = KEPT.read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(PROFILES) * len(bundled.queries("demo"))
    assert [*kept_in(Deployment(data_dir=copy_demo()))] == lines


if __name__ == "__main__":
    print(*kept_in(Deployment(data_dir=Path(sys.argv[1]))), sep="\n")  # noqa: T201
