"""The judge's figures, its verdict on each chunk, and references in the JSON document."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from ragfilter.cli.query import query_text
from ragfilter.engine.replay import replay
from ragfilter.model import Chunk, ExpandedChunk, Hit, Judgement, Pool, PoolResult, User, Verdict
from ragfilter.results.document import document
from ragfilter.results.rows import references
from ragfilter.results.verdicts import judge_stats, remarks, verdict_rows
from ragfilter.settings.schema import Settings

ON = {"judge.enabled": True, "cutoff.enabled": False}


def hit(i: str, rank: int, *refs: str, **more: Any) -> Hit:
    return Hit(Chunk(i, f"about {i}", i.upper(), refs=refs, **more), 0.1 * rank, rank)


HITS = (hit("a", 1, "x", "secret"), hit("b", 2), hit("c", 3), hit("secret", 4, clearance=3), hit("far", 18))
REACHABLE = (Hit(Chunk("x", "about x", "X"), 1.2, 0, "expansion"),)
POOL = Pool("why?", "demo", "l2", HITS, reachable=REACHABLE)
SAID = Judgement(
    ("a", "b", "c", "secret"),
    (Verdict("a", "EXPAND", 1), Verdict("b", "KEEP"), Verdict("c", "DISCARD")),
    remarks=("1 decision for an id not asked about",),
    model="m",
    prompt_version="",
    prompt_tokens=400,
    completion_tokens=20,
    ms=1234.5678,
)


def judged(
    judgement: Judgement | None = SAID, pool: Pool = POOL, user: User | None = None, **settings: Any
) -> PoolResult:
    values = ON | {name.replace("__", "."): value for name, value in settings.items()}
    said = () if judgement is None else (judgement,)
    return replay(replace(pool, judgements=said), Settings().with_values(values), user)


def test_the_document_holds_the_seeds_figures() -> None:
    made = document(judged())["judge"]
    # Two of four candidates stay, a and b: 1 − 2/4. far is not similar enough; x and secret are brought in.
    assert made == {
        "original": 4,
        "kept": 2,
        "expanded": 2,
        "reduction": 0.5,
        "fallback": False,
        "ms": 1234.568,
        "prompt_tokens": 400,
        "completion_tokens": 20,
        "error": "",
        "cached": False,
        "model": "m",
        "prompt_version": "",
        "left_out": 0,
        "decisions": {"a": "EXPAND_1", "b": "KEEP", "c": "DISCARD"},
        "remarks": ["1 decision for an id not asked about"],
        "shortened": 0,
    }


def test_a_fallback_says_so_and_why() -> None:
    failed = judged(replace(SAID, verdicts=(), error="It hangs."), judge__max_chunks=3)
    made = document(failed)["judge"]
    assert (made["original"], made["kept"], made["fallback"]) == (4, 3, True)
    assert (made["reduction"], made["error"]) == (0.25, "It hangs.")
    shown = query_text(failed, profile="llm-filter")
    assert "judge fell back: 3 of 4 candidates kept, 25.0% cut; It hangs." in shown


def test_there_are_no_figures_where_nothing_was_judged() -> None:
    for judgement, settings in [
        (None, {}),
        (SAID, {"judge__enabled": False}),
        (replace(SAID, asked=("a",)), {}),
        (SAID, {"judge__prompt": "terse", "judge__max_chunks": 1}),
    ]:
        result = judged(judgement, **settings)
        assert judge_stats(result) is None, judgement
        assert document(result)["judge"] is None, judgement
        assert "\njudge:" not in query_text(result, profile="llm-filter"), judgement
        assert all(row.said == "" for row in verdict_rows(result)), judgement


def test_remarks_and_decisions_as_a_user_with_clearance() -> None:
    asked = replace(SAID, asked=("a", "b", "c"))
    result = judged(asked, replace(POOL, references=(Chunk("x", loaded=False),)), **USER)
    made = document(result)["judge"]
    assert made["remarks"] == ["1 decision for an id not asked about"]
    hidden = replace(asked, verdicts=(*asked.verdicts, Verdict("secret", "KEEP")))
    result = judged(hidden, replace(POOL, references=(Chunk("x", loaded=False),)), **USER)
    assert "secret" not in json.dumps(document(result)["judge"])
    # An answer about chunks that the user cannot see does not apply to this result.
    result = judged(SAID, replace(POOL, references=(Chunk("x", loaded=False),)), **USER)
    assert remarks(result) == ()


def test_verdict_and_expansion_of_every_chunk() -> None:
    rows = {row.id: row for row in verdict_rows(judged())}
    assert {i: (row.said, row.outcome) for i, row in rows.items()} == {
        "a": ("EXPAND_1", "kept"),
        "b": ("KEEP", "kept"),
        "x": ("", "expanded"),
        "secret": ("", "expanded"),
        "c": ("DISCARD", "dropped"),
        "far": ("", "dropped"),
    }
    assert (rows["a"].title, rows["a"].reason) == ("A", "the judge said EXPAND_1")
    assert rows["a"].brought == ("x", "secret")
    assert rows["x"].by == ExpandedChunk("x", "a", "a", 1)
    assert rows["a"].by is None
    outcomes = [row.outcome == "dropped" for row in verdict_rows(judged())]
    assert outcomes == sorted(outcomes)


USER: dict[str, Any] = {"clearance__enabled": True, "user": User(1)}


def test_reasons_tell_nothing_of_what_is_hidden_before_a_chunk() -> None:
    hidden = hit("secret", 1, clearance=3)
    seen = [hit("a", 1), hit("b", 2), hit("c", 3)]
    behind = [replace(each, rank=each.rank + 1) for each in seen]
    # One of three is judged. The others are further down, at ranks that are not shown.
    said = replace(SAID, asked=("a",), verdicts=(Verdict("a", "KEEP"),))
    rows = [
        verdict_rows(judged(said, replace(POOL, hits=tuple(hits)), judge__max_chunks=1, judge__oversample=1.0, **USER))
        for hits in (seen, [hidden, *behind])
    ]
    assert rows[0] == rows[1]
    assert {row.reason for row in rows[0][1:]} == {"beyond the first 1 that are judged"}


def test_verdicts_are_shown_as_the_user() -> None:
    asked = replace(SAID, asked=("a", "b", "c"))
    result = judged(asked, replace(POOL, references=(Chunk("x", loaded=False),)), **USER)
    rows = verdict_rows(result)
    assert rows[0].brought == ("x",)
    assert "secret" not in str(rows)
    assert "secret" not in str(verdict_rows(result, as_operator=True)[0].brought)


def test_references_are_named_where_asked_for_and_as_the_user() -> None:
    for settings, refs in [({}, ["x", "secret"]), (USER, ["x"]), (USER | {"user": User(3)}, ["x", "secret"])]:
        result = judged(None, **settings)
        made = document(result, references=True)
        by_id = {entry["id"]: entry["refs"] for entry in made["hits"]}
        assert by_id["a"] == refs
        assert by_id["b"] == [], settings
        assert json.loads(json.dumps(made)) == made, settings
        assert not any("refs" in entry for entry in document(result)["hits"])
        assert references(result, as_operator=True)["a"] == ("x", "secret"), settings
