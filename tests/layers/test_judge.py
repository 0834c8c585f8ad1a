"""The judge layer: verdicts obeyed, expansions walked, fallbacks shown. Pure, without any model."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from ragfilter.judge import call
from ragfilter.judge.parse import parse
from ragfilter.judge.prompt import build_prompt
from ragfilter.layers.judge import apply
from ragfilter.layers.layer import LayerInput, LayerOutput
from ragfilter.layers.visibility import effective_user
from ragfilter.model import Chunk, Hit, Judgement, Pool, User, Verdict
from ragfilter.rules.match import compiled_rules
from ragfilter.settings.schema import Settings


def hit(chunk_id: str, distance: float, rank: int, *refs: str, **more: Any) -> Hit:
    return Hit(Chunk(chunk_id, **{"text": "t", **more}, refs=refs), distance, rank)


def row(*hits: Hit) -> tuple[Hit, ...]:
    """Hits with ascending distances and ranks."""
    return tuple(replace(h, distance=0.01 * n, rank=n) for n, h in enumerate(hits, start=1))


def bare(chunk_id: str, *refs: str, **more: Any) -> Hit:
    return hit(chunk_id, 0.0, 0, *refs, **more)


def verdicts(**actions: str) -> tuple[Verdict, ...]:
    """a="KEEP", b="EXPAND_3": as verdicts."""
    made, *_ = parse("\n".join(f"{i} -> {a}" for i, a in actions.items()), tuple(actions))
    assert len(made) == len(actions)
    return made


def judge(
    hits: tuple[Hit, ...],
    judgement: Judgement | None,
    *,
    pool: tuple[Hit, ...] | None = None,
    reachable: tuple[Hit, ...] = (),
    pinned: frozenset[str] = frozenset(),
    query: str = "why?",
    user: User | None = None,
    **settings: Any,
) -> LayerOutput:
    tree = Settings().with_values({"judge.enabled": True} | {k.replace("__", "."): v for k, v in settings.items()})
    said = (judgement,) if judgement else ()
    found = Pool(query, "c", "l2", pool or hits, judgements=said, reachable=reachable)
    scan, pins = compiled_rules(()).scan(query), dict.fromkeys(pinned, "named in the comparison")
    return apply(hits, LayerInput(tree, found, scan, effective_user(user, tree), pins))


def over(hits: tuple[Hit, ...], **actions: str) -> Judgement:
    return Judgement(tuple(h.id for h in hits), verdicts(**actions), model="m")


def ids(step: LayerOutput) -> list[str]:
    return [h.id for h in step.hits]


def outcomes(step: LayerOutput) -> dict[str, str]:
    found: dict[str, str] = {d.chunk_id: d.outcome for d in step.decisions}
    assert len(found) == len(step.decisions), "two decisions for one chunk"
    return found


def reason(step: LayerOutput, chunk_id: str) -> str:
    return reasons(step)[chunk_id]


def reasons(step: LayerOutput) -> dict[str, str]:
    return {"note": step.note} | {d.chunk_id: d.reason for d in step.decisions}


ABC = row(bare("a"), bare("b"), bare("c"))


# -- verdicts --------------------------------------------------------------------------------------


def test_verdicts_are_obeyed_and_the_unnamed_is_discarded(snapshot: SnapshotAssertion) -> None:
    step = judge(ABC, over(ABC, a="KEEP", b="DISCARD"))
    assert ids(step) == ["a"]
    assert outcomes(step) == {"a": "kept", "b": "dropped", "c": "dropped"}
    assert reasons(step) == snapshot
    assert (step.status, step.needs) == ("ok", ())


def test_what_is_not_similar_enough_is_dropped_with_its_number(snapshot: SnapshotAssertion) -> None:
    # Similarity of l2 is 1 − d/2: 0.3 stays, 0.25 is dropped.
    hits = (hit("a", 1.4, 1), hit("b", 1.5, 2))
    step = judge(hits, over(hits[:1], a="KEEP"))
    assert ids(step) == ["a"]
    assert reason(step, "b") == snapshot
    assert next((d.value, d.limit) for d in step.decisions if d.chunk_id == "b") == (0.25, 0.3)


def test_pinned_chunks_stay_whatever_the_verdict(snapshot: SnapshotAssertion) -> None:
    pins = frozenset({"a", "b"})
    step = judge(ABC, over(ABC, a="DISCARD", c="KEEP"), pinned=pins)
    assert ids(step) == ["a", "b", "c"]
    assert outcomes(step) == {"a": "pinned", "b": "pinned", "c": "kept"}
    assert reason(step, "a") == snapshot


# -- not judged ------------------------------------------------------------------------------------


def test_without_a_judgement_it_is_needed_and_the_nearest_stay(snapshot: SnapshotAssertion) -> None:
    hits = (ABC[2], ABC[0], ABC[1], hit("far", 1.9, 4))
    step = judge(hits, None, judge__max_chunks=2, judge__oversample=2.0)
    (need,) = step.needs
    assert (need.kind, need.layer, need.chunk_ids) == ("judge", "judge", ("c", "a", "b"))
    assert ids(step) == ["a", "b"]
    assert outcomes(step) == {"a": "kept", "b": "kept", "c": "dropped", "far": "dropped"}
    assert reasons(step) == snapshot


@given(n=st.integers(1, 12), most=st.integers(1, 12), pins=st.frozensets(st.integers(0, 11)), order=st.randoms())
def test_a_judge_that_waits_keeps_what_one_that_fails_keeps(
    n: int, most: int, pins: frozenset[int], order: Any
) -> None:
    hits = list(row(*(bare(f"c{i}") for i in range(n))))
    order.shuffle(hits)
    more: dict[str, Any] = {"pinned": frozenset(f"c{i}" for i in pins), "judge__max_chunks": most}
    waits = judge(tuple(hits), None, **more)
    failed = judge(tuple(hits), Judgement(waits.needs[0].chunk_ids, error="down"), **more)
    assert ids(waits) == ids(failed)
    assert len(waits.needs) == 1
    assert [d.chunk_id for d in waits.decisions] == [d.chunk_id for d in failed.decisions]


@pytest.mark.parametrize("asked", [ABC[:2], (ABC[1], ABC[0], ABC[2]), (*ABC, hit("d", 0.5, 4))])
def test_a_judgement_over_other_chunks_is_not_used(asked: tuple[Hit, ...]) -> None:
    step = judge(ABC, over(asked, a="KEEP"))
    assert ids(step) == ["a", "b", "c"]
    assert len(step.needs) == 1
    assert "other chunks" in step.note


def test_a_judgement_that_knew_of_a_hidden_reference_is_not_used_as_a_user() -> None:
    hits = row(bare("a", "secret"))
    secret = (bare("secret", clearance=2),)
    ready = build_prompt("why?", hits, Settings().judge, "l2")
    judgement = Judgement(ready.asked, verdicts(a="KEEP"), prompt_key=ready.key)
    assert judge(hits, judgement, reachable=secret).needs == ()
    for level, needs in ((1, 1), (2, 0)):
        step = judge(hits, judgement, reachable=secret, user=User(level))
        assert len(step.needs) == needs


@pytest.mark.parametrize("error", ["", "down"])
def test_a_judgement_by_another_prompt_is_not_used(error: str) -> None:
    said = () if error else verdicts(a="KEEP")
    used = build_prompt("why?", ABC, Settings().judge, "l2").key
    for key, need in [("", 0), (used, 0), ("another", 1)]:
        judgement = Judgement(("a", "b", "c"), said, error=error, prompt_key=key)
        assert len(judge(ABC, judgement).needs) == need
    judgement = Judgement(("a", "b", "c"), said, error=error, prompt_key=used)
    assert "another prompt" in judge(ABC, judgement, judge__prompt="strict").note


# -- fallback --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("judgement", "error"),
    [
        (Judgement(("a", "b", "c"), error="it hangs"), "it hangs"),
        (Judgement((), left_out=("a", "b", "c"), error="no room"), "no room"),
        (Judgement(("a", "b", "c")), call.NO_DECISION),
    ],
)
def test_any_failure_keeps_the_first_by_distance(judgement: Judgement, error: str, snapshot: SnapshotAssertion) -> None:
    hits = (ABC[2], ABC[0], ABC[1])
    judged = replace(
        judgement,
        asked=tuple(h.id for h in hits) if judgement.asked else (),
        left_out=tuple(h.id for h in hits) if judgement.left_out else (),
    )
    step = judge(hits, judged, judge__max_chunks=2, judge__oversample=2.0)
    assert ids(step) == ["a", "b"]
    assert outcomes(step) == {"a": "fallback", "b": "fallback", "c": "dropped"}
    assert reason(step, "a") == snapshot
    assert step.failed
    assert (step.needs, step.status) == ((), "ok")
    assert error in step.note


# -- expansion -------------------------------------------------------------------------------------

# a → s1, s2; s1 → s3 → s4 → s5 → s6; s2 → s1; s4 → a (a cycle)
ROOT = row(bare("a", "s1", "s2"), bare("b"))
EDGES = {"s1": ["s3"], "s2": ["s1"], "s3": ["s4"], "s4": ["s5", "a"], "s5": ["s6"], "s6": []}
GRAPH = tuple(bare(i, *refs) for i, refs in EDGES.items())


@pytest.mark.parametrize(
    ("action", "brought"),
    [
        ("KEEP", []),
        ("EXPAND_1", ["s1", "s2"]),
        ("EXPAND_3", ["s1", "s2", "s3", "s4"]),
        ("EXPAND_5", ["s1", "s2", "s3", "s4", "s5", "s6"]),
    ],
)
def test_expansion_walks_breadth_first_to_its_depth(action: str, brought: list[str]) -> None:
    step = judge(ROOT, over(ROOT, a=action), reachable=GRAPH)
    assert ids(step) == ["a", *brought]
    assert all(outcomes(step)[i] == "expanded" for i in brought)
    assert all(h.found_by == "expansion:a" and h.rank == 0 for h in step.hits[1:])


def test_a_hit_of_the_pool_stays_what_it_is() -> None:
    step = judge(ROOT[:1], over(ROOT[:1], a="EXPAND_1"), pool=(*ROOT, hit("s1", 0.9, 7)))
    made = [(h.id, h.rank, h.found_by) for h in step.hits]
    assert made == [("a", 1, "query"), ("s1", 7, "query")]


def test_the_unnamed_may_be_brought_and_the_discarded_not() -> None:
    hits = row(bare("a", "b", "c"), bare("b", "deep"), bare("c"))
    step = judge(hits, over(hits, a="EXPAND_3", b="DISCARD"), reachable=(bare("deep"),))
    assert ids(step) == ["a", "c"]
    assert outcomes(step) == {"a": "kept", "b": "dropped", "c": "expanded"}


def test_a_chunk_known_only_by_its_rule_is_brought_whole_or_not() -> None:
    hits = row(bare("a", "s1", "s2"))
    known = (hit(f"s{n}", 0.7 + n / 10, n + 1, loaded=False, text="") for n in (1, 2))
    pool = (*hits, *known)
    step = judge(hits, over(hits, a="EXPAND_1"), pool=pool, reachable=(bare("s1", text="whole"),))
    assert ids(step) == ["a", "s1"]
    assert (step.hits[1].chunk.text, step.hits[1].rank) == ("whole", 2)


def test_clearance_holds_in_expansion_and_hides_what_lies_behind() -> None:
    hits = row(bare("a", "secret", "open", "broken", "other"))
    reachable = (
        bare("secret", "behind", clearance=2),
        bare("open"),
        bare("broken", clearance=None),
        bare("other", department="north"),
        bare("behind"),
    )
    judgement = over(hits, a="EXPAND_5")
    everything = judge(hits, judgement, reachable=reachable)
    assert ids(everything) == ["a", "secret", "open", "broken", "other", "behind"]
    step = judge(hits, judgement, reachable=reachable, user=User(1))
    assert ids(step) == ["a", "open"]
    assert "secret" not in str((step.decisions, step.note, step.hits[1:]))


def test_a_failing_rule_holds_in_expansion_where_rules_are_on() -> None:
    hits = row(bare("a", "x", "y"))
    rule = json.dumps({"contain": "psionic"})
    reachable = (bare("x", rule=rule), bare("y"))
    judgement = over(hits, a="EXPAND_1")
    assert ids(judge(hits, judgement, reachable=reachable)) == ["a", "x", "y"]
    on: dict[str, Any] = {"query_must__enabled": True}
    assert ids(judge(hits, judgement, reachable=reachable, **on)) == ["a", "y"]
    psionic = judge(hits, judgement, reachable=reachable, query="psionic?", **on)
    assert ids(psionic) == ["a", "x", "y"]


@given(
    edges=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=40),
    actions=st.lists(st.sampled_from(["KEEP", "EXPAND_1", "EXPAND_3", "EXPAND_5", "DISCARD"]), min_size=4, max_size=4),
    levels=st.lists(st.integers(0, 2), min_size=12, max_size=12),
    most=st.integers(1, 5),
)
def test_laws_of_expansion(edges: list[tuple[int, int]], actions: list[str], levels: list[int], most: int) -> None:
    """Over random graphs: nothing twice, nothing secret or discarded, and no root over its limit."""
    nodes = [bare(f"n{i}", *(f"n{b}" for a, b in edges if a == i), clearance=levels[i]) for i in range(12)]
    hits = row(*(replace(h, chunk=replace(h.chunk, clearance=0)) for h in nodes[:4]))
    said = {f"n{i}": action for i, action in enumerate(actions)}
    step = judge(
        hits,
        over(hits, **said),
        reachable=tuple(nodes[4:]),
        judge__max_expansion=most,
        clearance__enabled=True,
        user=User(1),
    )
    found = ids(step)
    assert len(found) == len(set(found))
    roots = [i for i, action in said.items() if action != "DISCARD"]
    assert found[: len(roots)] == roots
    assert not {i for i, action in said.items() if action == "DISCARD"} & set(found)
    assert all(h.chunk.clearance in (0, 1) for h in step.hits)
    brought = step.hits[len(roots) :]
    assert all(said[h.found_by.removeprefix("expansion:")] != "KEEP" for h in brought)
    for root in roots:
        mine = [h for h in brought if h.found_by == f"expansion:{root}"]
        assert len(mine) <= most
    outcomes(step)
