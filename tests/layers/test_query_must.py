from __future__ import annotations

import pytest

from ragfilter.layers.query_must import replay_rounds

N, Y = False, True

CASES = [
    # passes, k, max_rounds, (retrieved, excluded, kept) of each round, kept in the end, short by
    ([Y, Y, Y], 3, 3, [(3, 0, 3)], "abc", 0),
    ([Y, N, Y, Y], 3, 3, [(3, 1, 2), (1, 0, 1)], "acd", 0),
    ([N, N, N, Y, Y, Y], 3, 3, [(3, 3, 0), (3, 0, 3)], "def", 0),
    ([Y, N, N, Y, Y, Y], 3, 3, [(3, 2, 1), (3, 0, 3)], "ade", 0),
    ([N, N, N, N, N, N, N, N, N, Y], 3, 3, [(3, 3, 0)] * 3, "", 1),
    ([N, N, N, N, N, N, N, N, N, Y], 3, 4, [(3, 3, 0)] * 3 + [(1, 0, 1)], "j", 0),
    ([], 3, 3, [], "", 0),
    ([N], 1, 3, [(1, 1, 0)], "", 0),
]


@pytest.mark.parametrize(("passes", "k", "most", "rounds", "kept", "short"), CASES)
def test_rounds(
    passes: list[bool],
    k: int,
    most: int,
    rounds: list[tuple[int, int, int]],
    kept: str,
    short: int,
) -> None:
    result = replay_rounds("abcdefghij"[: len(passes)], passes, k=k, max_rounds=most)
    seen = [(len(r.retrieved), len(r.excluded), len(r.kept)) for r in result.rounds]
    assert seen == rounds
    assert "".join(result.kept) == kept
    assert result.short == short
