"""Labels: which chunk is offered next, what an LLM is asked, and how far it agrees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from line import Line

from ragfilter.engine.replay import replay
from ragfilter.engine.retrieve import gather
from ragfilter.engine.search import Backends
from ragfilter.evaluate.labelling import QUEUE, agreement, next_to_label, requests
from ragfilter.model import Chunk, Hit, Pool
from ragfilter.report import ChunkRow, rows
from ragfilter.settings.config import load


class Unasked:
    """A chat model of which only the name is used."""

    name = "unasked"

    def stream(self, *args: Any, **given: Any) -> Any:
        raise AssertionError("nobody was to be asked")


def test_the_pool_may_be_deeper_than_any_prompt() -> None:
    """Half of the nearest are hidden, so more hits are gathered than `retrieval.k` allows."""
    line = Line()
    line.all = {str(i): replace(line.all["0"], id=str(i), clearance=i % 2 * 9) for i in range(500)}
    backends = Backends(line, line, None, Unasked())  # type: ignore[arg-type]
    settings = load(profile="full", environ={}).settings
    assert len(gather("0", settings, backends, wide=True).hits) > 200
    (request,) = requests(["0"], [], settings, backends, depth=5)
    assert [i for ready in request.prompts for i in ready.asked] == ["0", "2", "4", "6", "8"]


@pytest.mark.parametrize(
    ("human", "llm", "expected"),
    [
        ({"q": {"a": 1, "b": 0}}, {"q": {"a": 2, "b": 0}}, (2, 2, 1.0)),
        ({"q": {"a": 1, "b": 0}}, {"q": {"a": 0, "b": 1}}, (2, 0, -1.0)),
        # Observed 3 of 4; by chance 0.5 × 0.25 + 0.5 × 0.75 = 0.5.
        ({"q": dict.fromkeys("ab", 1) | dict.fromkeys("cd", 0)},
         {"q": {"a": 1, "b": 0, "c": 0, "d": 0}}, (4, 3, 0.5)),
        ({"q": {"a": 1}}, {"q": {"a": 1}}, (1, 1, None)),
        ({"q": {"a": 1}}, {"p": {"a": 1}}, (0, 0, None)),
    ],
)  # fmt: skip
def test_cohens_kappa(
    human: dict[str, dict[str, int]],
    llm: dict[str, dict[str, int]],
    expected: tuple[int, int, float | None],
) -> None:
    made = agreement(human, llm)
    assert (made.pairs, made.agreed) == expected[:2]
    assert made.kappa == (None if expected[2] is None else pytest.approx(expected[2]))


GAP = load(profile="adaptive-gap", environ={}).settings
IDS = [f"c{i}" for i in range(1, 101)]


def listed(*extra: str) -> list[ChunkRow]:
    """A hundred hits with a cliff after the third. Those in `extra` are kept too, and one that is
    not among the hits was brought in by an expansion."""
    distances = [0.1 + 0.001 * i + (0.4 if i > 3 else 0.0) for i in range(1, 101)]
    hits = (Hit(Chunk(i), d, n) for n, (i, d) in enumerate(zip(IDS, distances, strict=True), 1))
    found = list(rows(replay(Pool("q", "c", "l2", tuple(hits)), GAP)))
    brought = [found[0]._replace(id=i, rank=0) for i in extra if i not in IDS]
    return [row._replace(place=9) if row.id in extra else row for row in (*found, *brought)]


@pytest.mark.parametrize("cut", [[], IDS[:60]])
def test_what_is_kept_far_down_is_offered_beside_the_cut(cut: list[str]) -> None:
    order = next_to_label(listed("c95", "brought"), cut, mixed_by=None)
    assert order[:4] == ["brought", "c4", "c95", "c5"]
    assert sorted(order) == sorted([*IDS[:QUEUE], "c95", "brought"])


def test_without_anything_far_down_it_goes_from_the_cut_outwards() -> None:
    assert next_to_label(listed(), [], mixed_by=None)[:5] == ["c3", "c4", "c2", "c5", "c1"]
    assert next_to_label(listed(), ["c9", "c3", "c2"], mixed_by=None)[:4] == [
        "c1",
        "c4",
        "c2",
        "c5",
    ]


def test_blind_offers_the_same_in_an_order_that_rank_does_not_decide() -> None:
    given = listed("c95", "brought")
    order = next_to_label(given, [], mixed_by="q")
    assert sorted(order) == sorted(next_to_label(given, [], mixed_by=None))
    # Neither what is kept nor where it is changes the order of the others.
    few = listed()[:QUEUE]
    plain = [i for i in order if i in IDS[:QUEUE]]
    assert next_to_label(few, [], mixed_by="q") == plain
    turned = [row._replace(rank=101 - row.rank, place=None) for row in few]
    assert next_to_label(turned[::-1], [], mixed_by="q") == plain
    assert next_to_label(few, [], mixed_by="another") != plain
