"""After an edit of rules, a pool is renewed without a search if a search would give the same result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from ragfilter.engine import gather as gathering
from ragfilter.engine.gather import Backends, gather, wanted_count
from ragfilter.engine.pool import renew_rules
from ragfilter.engine.replay import replay
from ragfilter.model import PUBLIC, Chunk
from ragfilter.protocols import Vectors
from ragfilter.settings.config import load
from ragfilter.settings.schema import Settings
from ragfilter.testing import MemoryCollection

PASSES, FAILS = '{"contain":"troll"}', '{"contain":"owl"}'
N = 1500
"""More than the widest search finds, 16 times the pool."""


class Row(MemoryCollection):
    """A fake collection and embedder with chunks in a row: chunk n is n / 100 away."""

    name = "row"

    def __init__(self, rules: dict[int, str]) -> None:
        super().__init__(Chunk(f"c{i}", f"troll {i}", rule=rules.get(i)) for i in range(N))
        self.searches = 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        return np.zeros((len(texts), 1), dtype=np.float32)

    def distances(self, vector: Vectors) -> dict[str, float]:
        self.searches += 1
        return {i: int(i[1:]) / 100 for i in self.all}


def settings(profile: str) -> Settings:
    chosen = load(profile=profile, environ={}).settings
    return chosen.with_values({"retrieval.pool_size": 80, "quality.enabled": False})


@pytest.fixture(autouse=True)
def bounded_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A layer without `candidates` would have the texts of all hits fetched, even while it is off."""
    monkeypatch.setattr(gathering, "LAYERS", tuple(layer for layer in gathering.LAYERS if layer.candidates))


@pytest.mark.parametrize("profile", ["full", "query-must", "adaptive-gap"])
@pytest.mark.parametrize(
    ("before", "edits", "searched"),
    [
        ({}, {3: PASSES}, False),
        ({3: FAILS, 70: FAILS}, {3: PASSES, 70: PASSES, 200: FAILS}, False),
        # Fewer than wanted are left among the 80 that were found.
        ({}, dict.fromkeys(range(40), FAILS), True),
        # Only the texts of the first 80 were fetched, and of those that passed.
        (dict.fromkeys(range(10, 120), FAILS), {100: PASSES}, True),
        # The chunks beyond the widest search were found by their rules: 1,325 would be nearer.
        (dict.fromkeys(range(1350), FAILS), {1325: PASSES}, True),
    ],
)
def test_a_renewed_pool_keeps_what_another_search_would(
    profile: str, before: dict[int, str], edits: dict[int, str | None], searched: bool
) -> None:
    chosen, row = settings(profile), Row(before)
    backends = Backends(row, row)
    pool = gather("a troll", chosen, backends)
    searches = row.searches
    for i, rule in edits.items():
        row.all[f"c{i}"] = replace(row.all[f"c{i}"], rule=rule)
    renewed = renew_rules(pool, row.catalogue(), chosen, PUBLIC, wanted_count(chosen))
    assert row.searches == searches
    assert (renewed is None) is searched
    if renewed is not None:
        again = gather("a troll", chosen, backends)
        assert replay(renewed, chosen).kept == replay(again, chosen).kept
