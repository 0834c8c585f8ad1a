from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from ragfilter.layers.layer import LayerInput
from ragfilter.layers.query_must import apply, replay_rounds
from ragfilter.model import PUBLIC, Chunk, Hit, Pool
from ragfilter.rules.match import compiled_rules
from ragfilter.settings.schema import Settings

N, Y = False, True

CASES = [
    # passes, k, max_rounds, (retrieved, excluded, kept) of each round, finally kept, short by
    ([Y, Y, Y], 3, 3, [(3, 0, 3)], "abc", 0),
    ([N, N, N, Y, Y, Y], 3, 3, [(3, 3, 0), (3, 0, 3)], "def", 0),
    ([N, N, N, N, N, N, N, N, N, Y], 3, 3, [(3, 3, 0)] * 3, "", 1),
    ([N, N, N, N, N, N, N, N, N, Y], 3, 4, [(3, 3, 0)] * 3 + [(1, 0, 1)], "j", 0),
    ([], 3, 3, [], "", 0),
    ([N], 1, 3, [(1, 1, 0)], "", 0),
]


@pytest.mark.parametrize(("passes", "k", "most", "rounds", "kept", "short"), CASES)
def test_rounds(
    passes: list[bool], k: int, most: int, rounds: list[tuple[int, int, int]], kept: str, short: int
) -> None:
    result = replay_rounds("abcdefghij"[: len(passes)], passes, k=k, max_rounds=most)
    seen = [(len(r.retrieved), len(r.excluded), len(r.kept)) for r in result.rounds]
    assert seen == rounds
    assert "".join(result.kept) == kept
    assert result.short == short


def pins(
    rules: list[str | None], *, refs: Mapping[str, Sequence[str]] | None = None, **values: object
) -> dict[str, str]:
    settings = Settings().with_values({"query_must.enabled": True, "query_must.pin": True, **values})
    named = refs or {}
    chunks = [Chunk(f"c{i}", rule=rule, refs=tuple(named.get(f"c{i}", ()))) for i, rule in enumerate(rules, start=1)]
    hits = tuple(Hit(chunk, i / 10, i) for i, chunk in enumerate(chunks, start=1))
    scan = compiled_rules(tuple(filter(None, rules))).scan("a cleric rolls")
    step = apply(hits, LayerInput(settings, Pool("a cleric rolls", "c", "l2", hits), scan, PUBLIC))
    assert step.pinned.keys() == {d.chunk_id for d in step.decisions if d.outcome == "pinned"}
    return dict(step.pinned)


HOLDS = '{"contain": "cleric"}'
HOLDS_TOO = '{"contain_all_of": ["cleric"]}'
"""For the chunks without references, below."""


@pytest.mark.parametrize(
    ("rules", "values", "pinned"),
    [
        ([HOLDS, None, HOLDS], {}, ["c1", "c3"]),
        # no rule, or one that is invalid, asks for nothing, only forbids, or fails
        ([None, "{", "{}", '{"contain_none_of": ["undead"]}', '{"contain": "druid"}'], {}, []),
        ([HOLDS] * 4, {"retrieval.k": 2}, ["c1", "c2"]),
        ([HOLDS], {"query_must.pin": False}, []),
    ],
)
def test_what_a_rule_admits_is_pinned(rules: list[str | None], values: dict[str, object], pinned: list[str]) -> None:
    assert pins(rules, **values) == dict.fromkeys(pinned, "rule holds: cleric")


@pytest.mark.parametrize(
    ("rules", "refs", "references", "named"),
    [
        # The best chunk that is not pinned by its rule is c2; its nearest references come first.
        ([HOLDS, None, HOLDS, None, None], ["c5", "c4"], 1, ["c4"]),
        ([HOLDS, None, HOLDS, None, None], ["c5", "c4"], 5, ["c4", "c5"]),
        # one chunk alone that refers to it shows nothing
        ([HOLDS, None, None, None], ["c4"], 5, []),
        ([HOLDS, None, None, HOLDS_TOO], ["c3"], 5, []),
        # a reference whose own rule fails, one that is pinned anyway, and one that was not found
        ([HOLDS, None, HOLDS, '{"contain": "druid"}'], ["c4", "c3", "c9"], 5, []),
        # only pinned chunks
        ([HOLDS, HOLDS], ["c1"], 5, []),
    ],
)
def test_the_best_chunks_references_are_pinned_beside_two_rules(
    rules: list[str | None], refs: list[str], references: int, named: list[str]
) -> None:
    both = {f"c{i}": ["c2"] for i, rule in enumerate(rules, start=1) if rule == HOLDS}
    pinned = pins(rules, refs=both | {"c2": refs}, **{"query_must.references": references})
    by_rule = [f"c{i}" for i, rule in enumerate(rules, start=1) if rule in (HOLDS, HOLDS_TOO)]
    assert [*pinned] == [*by_rule, *named]
    assert {pinned[i] for i in named} <= {"the best chunk, “c2”, refers to it"}
