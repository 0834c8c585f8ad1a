"""What an LLM is asked when it proposes labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from line import Line

from ragfilter.engine.retrieve import gather
from ragfilter.engine.search import Backends
from ragfilter.evaluate.llm_labels import requests
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
