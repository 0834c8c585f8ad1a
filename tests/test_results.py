"""Rows, CSV, JSON document, summary and trace of a result, none of which name a hidden chunk."""

from __future__ import annotations

import csv as csv_module
import io
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from ragfilter.basics import files as cells
from ragfilter.engine.replay import replay
from ragfilter.model import Chunk, Decision, Hit, LayerTrace, Outcome, Pool, PoolResult, User
from ragfilter.results.document import document, trace_text
from ragfilter.results.rows import COLUMNS, csv, kept_first, rows, visible_ids
from ragfilter.results.summary import summary, unfiltered_label
from ragfilter.settings.config import of_profile
from ragfilter.settings.profiles import PROFILES
from ragfilter.settings.schema import Settings

GIANTS = (("hill", 0.8813), ("category", 0.9313), ("troll", 0.9356), ("frost", 1.0763), ("mammoth", 1.0834))


def pool(*hits: Hit, query: str = "hill giant vs troll") -> Pool:
    ranked = tuple(replace(hit, rank=rank) for rank, hit in enumerate(hits, start=1))
    return Pool(query, "demo", "l2", ranked, queries=1)


def hit(i: str, distance: float, **fields: object) -> Hit:
    given = {"title": i.upper(), "text": f"about {i}", **fields}
    return Hit(Chunk(i, **given), distance, 0)  # type: ignore[arg-type]


def giants(**settings: object) -> PoolResult:
    hits = [hit(i, d) for i, d in GIANTS]
    return replay(pool(*hits), Settings().with_values({"retrieval.k": 5, **settings}))


def secrets(user: User | None = User(1), **settings: object) -> PoolResult:
    hits = [
        hit("open", 0.2, source="book.md", page=3),
        hit("secret", 0.3, clearance=3, title="The Hidden Door"),
        hit("broken", 0.31, clearance=None),
        hit("guild", 0.32, department="thieves"),
        hit("other", 0.33),
    ]
    on = {"clearance.enabled": True, **settings}
    return replay(pool(*hits), Settings().with_values(on), user)


def test_rows_show_rank_place_gap_and_what_decided() -> None:
    made = rows(giants())
    assert [(r.rank, r.place, r.id, r.title, r.outcome, r.layer) for r in made] == [
        (1, 1, "hill", "HILL", "kept", "cutoff"),
        (2, 2, "category", "CATEGORY", "kept", "cutoff"),
        (3, 3, "troll", "TROLL", "kept", "cutoff"),
        (4, None, "frost", "FROST", "dropped", "cutoff"),
        (5, None, "mammoth", "MAMMOTH", "dropped", "cutoff"),
    ]
    assert made[0].gap is None
    assert [round(r.gap or 0, 4) for r in made[1:]] == [0.05, 0.0043, 0.1407, 0.0071]
    assert made[0].similarity == pytest.approx(1 - 0.8813 / 2)
    assert [r.confidence for r in made] == ["low"] * 5
    (bare,) = rows(replay(pool(hit("x-1", 0.1, title="")), Settings()))
    assert bare.title == "x-1"


def decision(layer: str, outcome: Outcome) -> Decision:
    return Decision("x", layer, outcome, f"{layer} {outcome}")


def test_the_decision_that_explains_a_hit() -> None:
    for decisions, kept, expected in [
        ([], True, "no layer checked it"),
        ([], False, "no layer checked it"),
        ([("query_must", "kept"), ("cutoff", "kept"), ("context", "kept")], True, "cutoff kept"),
        ([("query_must", "kept"), ("top_k", "kept"), ("context", "kept")], True, "query_must kept"),
        (
            [("entities", "pinned"), ("quality", "pinned"), ("cutoff", "pinned"), ("context", "kept")],
            True,
            "entities pinned",
        ),
        ([("query_must", "kept"), ("cutoff", "dropped")], False, "cutoff dropped"),
        ([("quality", "dropped"), ("cutoff", "dropped")], False, "cutoff dropped"),
        # Cut, then brought back by an expansion: it stays, so the expansion explains it.
        ([("cutoff", "dropped"), ("judge", "expanded"), ("context", "kept")], True, "judge expanded"),
        # ExpandedChunk in, but there was no room.
        ([("judge", "expanded"), ("context", "dropped")], False, "context dropped"),
    ]:
        traces = tuple(LayerTrace(layer, True, 1, 1, (decision(layer, outcome),)) for layer, outcome in decisions)
        hits = (Hit(Chunk("x"), 0.1, 1),)
        result = replace(giants(), hits=hits, kept=hits if kept else (), traces=traces)
        assert [row.reason for row in rows(result)] == [expected]


def test_kept_come_first_in_their_own_order() -> None:
    result = giants()
    swapped = replace(result, kept=(result.hits[2], result.hits[0]))
    ids = [r.id for r in kept_first(rows(swapped))]
    assert ids == ["troll", "hill", "category", "frost", "mammoth"]


def test_what_an_expansion_brought_comes_last_and_has_no_gap() -> None:
    result = giants()
    brought = Hit(Chunk("lair", "text", "Lair"), 0.1, 0, "expansion:hill")
    result = replace(result, hits=(*result.hits, brought), kept=(*result.kept, brought))
    row = rows(result)[-1]
    assert (row.id, row.rank, row.place, row.gap) == ("lair", 0, 4, None)


def test_rows_are_of_what_the_user_sees_as_if_nothing_else_were_there() -> None:
    made = rows(secrets())
    assert [(r.rank, r.id, r.title, r.distance) for r in made] == [
        (1, "open", "OPEN", 0.2),
        (2, "other", "OTHER", 0.33),
    ]
    assert round(made[1].gap or 0, 2) == 0.13


def test_an_operator_sees_all_with_the_reason(snapshot: SnapshotAssertion) -> None:
    made = rows(secrets(), as_operator=True)
    assert [r.id for r in made] == ["open", "secret", "broken", "guild", "other"]
    assert [r.rank for r in made] == [1, 2, 3, 4, 5]
    assert {(r.outcome, r.layer) for r in made[1:4]} == {("dropped", "clearance")}
    assert made[1].reason == snapshot
    assert len(visible_ids(secrets(None, **{"clearance.enabled": False}))) == 5


def test_cells_that_a_spreadsheet_would_run() -> None:
    for cell, harmless in [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-cmd", "'-cmd"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("\n=1", "'\n=1"),
        ("＝1", "'＝1"),
        ("a=1", "a=1"),
        ("", ""),
        ("Armor Class -6", "Armor Class -6"),
    ]:
        assert cells.harmless(cell) == harmless


def test_csv_is_harmless_in_texts_and_plain_in_numbers() -> None:
    hits = (hit("=evil", 0.1, title="-2+3", source='say "hi", twice'), hit("b", 0.2))
    result = replay(pool(*hits), Settings())
    first = rows(result)[0]._replace(value=-0.25, gap=-0.05)
    cells = list(csv_module.DictReader(io.StringIO(csv([first]))))
    assert [*cells[0]] == [*COLUMNS]
    shown = {k: cells[0][k] for k in ("id", "title", "source", "value", "gap", "place", "page")}
    assert shown == {
        "id": "'=evil",
        "title": "'-2+3",
        "source": 'say "hi", twice',
        "value": "-0.25",
        "gap": "-0.05",
        "place": "1",
        "page": "",
    }


def test_document_has_the_promised_shape(snapshot: Any) -> None:
    made = document(giants(**{"query_must.enabled": True}))
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    for layer in made["layers"]:
        assert layer.pop("ms") >= 0
    assert made == snapshot
    bare = document(giants(**{"cutoff.enabled": False}))
    assert (bare["cutoff"], bare["rounds"], len(bare["kept"])) == (None, [], 5)
    hidden = document(secrets())
    assert [h["id"] for h in hidden["hits"]] == ["open", "other"]
    assert (hidden["retrieved"], hidden["hidden"]) == (2, None)


LEVELS = [
    # clearance and department of the chunks, the user's level, settings; success, count, level
    ([(1, None), (3, None), (0, None)], 3, {}, True, 3, 3),
    ([(1, None), (3, None), (0, None)], 1, {}, True, 2, 1),
    ([(3, None), (4, "referee")], 1, {}, False, 0, 4),
    ([(0, "referee")], 1, {}, False, 0, None),
    ([(None, None)], 100, {}, False, 0, None),
    # without a user: the highest clearance kept, unknown if it cannot be read
    ([(2, None), (5, "referee")], None, {"clearance.enabled": False}, True, 2, 5),
    ([(2, None), (None, None)], None, {"clearance.enabled": False}, True, 2, None),
    (
        [(2, None)],
        3,
        {"quality.enabled": True, "quality.reranker": "none", "quality.score_threshold": 1.0},
        False,
        0,
        None,
    ),
    ([], 0, {}, True, 0, None),
]


def test_success_count_and_level_are_those_of_the_seed() -> None:
    for chunks, user, settings, success, count, level in LEVELS:
        hits = [hit(f"c{i}", 0.1 * i, clearance=v, department=of) for i, (v, of) in enumerate(chunks, 1)]
        off = {"cutoff.enabled": False, "clearance.enabled": True}
        chosen = Settings().with_values({**off, **settings})
        made = document(replay(pool(*hits), chosen, None if user is None else User(user)))
        assert (made["success"], made["count"], made["max_security_level"]) == (success, count, level)
        assert made["success"] == (made["status"] == "ok")


def test_summary_counts_and_names_what_each_layer_did() -> None:
    rule = '{"contain": "psionic"}'
    hits = [hit(i, d) for i, d in GIANTS] + [hit("blast", 1.1, rule=rule)]
    settings = Settings().with_values({"query_must.enabled": True, "retrieval.k": 4})
    made = summary(replay(pool(*hits), settings))
    assert (made.kept, made.retrieved, made.unfiltered) == (3, 6, 4)
    assert 0 < made.tokens < made.tokens_unfiltered
    lines = {each.layer: (each.n_in, each.n_out, line) for each, line in made.layers}
    assert lines["clearance"] == (6, 6, "off")
    assert lines["query_must"] == (6, 5, "1 chunk fails its rule")
    assert lines["cutoff"] == (5, 3, "gap 0.141 ≥ 0.100 after hit 3")


def test_the_unfiltered_prompt_has_the_same_budget(snapshot: SnapshotAssertion) -> None:
    long = [hit(f"c{i}", 0.1 * i, text="word " * 400) for i in range(1, 5)]
    values = {"context.max_context_tokens": 1100, "retrieval.k": 4}
    plain = of_profile("unfiltered").with_values(values)
    result = replay(pool(*long), plain)
    made = summary(result)
    assert unfiltered_label(made.unfiltered, made.left_out) == snapshot


def test_unfiltered_tokens_are_those_of_the_first_k_in_every_profile() -> None:
    for name in list(PROFILES):
        found = pool(*(hit(f"c{i}", 0.02 * i, text=f"{i} " * (5 + i)) for i in range(1, 41)))
        settings = of_profile(name)
        plain = of_profile("unfiltered").with_values({"retrieval.k": settings.retrieval.k})
        made, same = summary(replay(found, settings)), summary(replay(found, plain))
        assert made.unfiltered == same.kept == settings.retrieval.k, name
        assert made.tokens_unfiltered == same.tokens, name


def test_trace_names_gaps_thresholds_rounds_and_the_final_list(snapshot: Any) -> None:
    five = [hit(f"c{i}", d) for i, d in enumerate((0.05, 0.08, 0.2, 0.35, 0.55))]
    many = [hit(f"c{i:03d}", 0.5 + i / 1000) for i in range(200)]
    for result in (
        giants(**{"query_must.enabled": True}),
        giants(**{"cutoff.gap_threshold": 0.2}),
        replay(pool(*five), Settings()),
        replay(pool(*many), Settings()),
    ):
        assert re.sub(r"[\d.]+ ms", "N ms", trace_text(result)) == snapshot
