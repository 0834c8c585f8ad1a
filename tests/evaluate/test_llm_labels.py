"""What an LLM is asked when it proposes labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from line import Line

from ragfilter.engine.retrieve import gather
from ragfilter.engine.search import Backends
from ragfilter.evaluate.labelling import agreement, requests
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
