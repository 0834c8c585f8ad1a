"""Shared words: what moves up, by how much, and what is pinned for a value in the query."""

from __future__ import annotations

from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from ragfilter.layers import words
from ragfilter.layers.layer import LayerInput, LayerOutput
from ragfilter.model import PUBLIC, Chunk, Hit, Pool
from ragfilter.rules.match import compiled_rules
from ragfilter.settings.schema import Settings
from ragfilter.text.shared_words import overlaps

QUERY = "What does a cleric with strength 17 roll?"
TABLE = Chunk("table", "Strength 16: +1. Strength 17: +2.", "Strength Table")
OTHER = Chunk("other", "A strength of 17 is asked for.", "The Champion")
FAR = tuple(Hit(Chunk(f"far{i}", "Tea.", "Tea"), 1.0, i + 3) for i in range(47))
"""Half of them, and more, are the background: 1.0."""


def run(hits: tuple[Hit, ...], pinned: dict[str, str] | None = None, **values: object) -> LayerOutput:
    settings = Settings().with_values({f"words.{name}": v for name, v in values.items()})
    pool = Pool(QUERY, "c", "l2", hits)
    inputs = LayerInput(settings, pool, compiled_rules(()).scan(QUERY), PUBLIC, pinned or {})
    return words.apply(hits, inputs)


def made(*chunks: tuple[Chunk, float]) -> tuple[Hit, ...]:
    return (*(Hit(chunk, d, i) for i, (chunk, d) in enumerate(chunks, start=1)), *FAR)


def test_shared_words_lower_the_distance_by_a_share_of_the_way_to_the_background(snapshot: SnapshotAssertion) -> None:
    cleric = Chunk("cleric", "Roll as a cleric does.", "The Cleric")
    hits = made((Chunk("tea", "Nothing with it.", "Rest"), 0.4), (cleric, 0.5), (OTHER, 0.9))
    step = run(hits, pin_values=False, depth=3)
    share = overlaps(QUERY, [hit.chunk.passage for hit in hits[:3]])[1].share
    assert step.adjusted_distances["cleric"] == pytest.approx(0.5 - 1.5 * (1.0 - 0.4) * share)
    assert [hit.id for hit in step.hits[:2]] == ["cleric", "tea"]
    assert {d.chunk_id: d.reason for d in step.decisions} == snapshot
    assert step.adjusted_distances["far0"] == 1.0


def test_it_needs_no_scale() -> None:
    hits = made((TABLE, 0.4), (OTHER, 0.5), (Chunk("cleric", "A cleric.", ""), 0.45))
    twice = tuple(replace(hit, distance=2 * hit.distance) for hit in hits)
    once, scaled = run(hits), run(twice)
    assert [hit.id for hit in once.hits] == [hit.id for hit in scaled.hits]
    assert scaled.adjusted_distances == pytest.approx({i: 2 * d for i, d in once.adjusted_distances.items()})


def test_a_stated_value_pins_what_is_titled_by_its_name() -> None:
    hits = made((Chunk("cleric", "A cleric.", ""), 0.4), (OTHER, 0.5), (TABLE, 0.9))
    step = run(hits)
    assert step.pinned == {"table": "states “strength 17”, as the query does"}
    assert step.hits[0].id == "table"
    assert {d.chunk_id for d in step.decisions if d.outcome == "pinned"} == {"table"}
    assert run(hits, pin_values=False).pinned == {}


def test_a_value_that_a_pin_states_needs_no_other() -> None:
    hits = made((OTHER, 0.5), (TABLE, 0.9))
    step = run(hits, {"other": "its rule holds"})
    assert step.pinned == {}
    decisions = {d.chunk_id: (d.outcome, d.reason) for d in step.decisions}
    assert decisions["other"] == ("pinned", "its rule holds")


def test_a_chunk_without_its_text_shares_nothing(snapshot: SnapshotAssertion) -> None:
    bare = replace(TABLE, text="", title="", loaded=False)
    step = run(made((bare, 0.5)))
    assert step.pinned == {}
    assert step.decisions[0].reason == snapshot
