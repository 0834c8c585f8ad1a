"""Many queries are decided at once, in processes of their own, as they are one by one."""

from __future__ import annotations

from typing import Any

import pytest

import ragfilter as rf
from ragfilter.errors import InputError

QUERIES = [f"Which number is {n}?" for n in range(5)]


def hits(n: int) -> list[dict[str, Any]]:
    return [
        {"id": f"{n}-{i}", "text": f"Number {i}.", "distance": 0.5 + i * i / 20, "clearance": i % 3}
        for i in range(6)
    ]


@pytest.mark.parametrize("processes", [1, 2])
def test_a_batch_is_decided_as_one_by_one(processes: int) -> None:
    flt, user = rf.Filter("full"), rf.User(1)
    found = flt.batch(QUERIES, map(hits, range(5)), metric="l2", user=user, processes=processes)
    each = [flt(q, hits(n), metric="l2", user=user) for n, q in enumerate(QUERIES)]
    assert [result.query for result in found] == QUERIES
    assert [[hit.id for hit in result] for result in found] == [[h.id for h in r] for r in each]
    assert [result.traces for result in found] == [result.traces for result in each]
    assert found[0].kept


def test_an_error_of_one_query_is_raised() -> None:
    with pytest.raises(InputError, match="query"):
        rf.Filter("full").batch(["a", ""], [hits(0), hits(1)], metric="l2", processes=2)
    with pytest.raises(ValueError, match="shorter"):
        rf.Filter("full").batch(["a"], [], metric="l2")
