"""A strictly typed program that uses the library: `make lint` finds no error in it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import create_engine, text

import ragfilter as rf

CONFIG = 'metric = "l2"\nstrategy = "gap"\ndepartments = ["ops", "hr"]'


class Longest:
    """A reranker as its author would write it."""

    name = "longest"

    def score(self, question: str, passages: list[str]) -> list[float]:
        return [min(len(passage) / 1000, 1.0) for passage in passages]


class Arrays:
    @property
    def name(self) -> str:
        return "arrays"

    def score(self, query: str, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        return np.linspace(1, 0, len(texts), dtype=np.float32)


def rows() -> Iterator[Mapping[str, Any]]:
    with create_engine("sqlite://").connect() as connection:
        query = text("SELECT 1 AS id, 'Trolls fear fire.' AS text, 0.2 AS distance")
        yield from (dict(row) for row in connection.execute(query).mappings())


def test_a_strict_program_has_no_error_that_is_not_one() -> None:
    config = tomllib.loads(CONFIG)
    metric: str = config["metric"]
    departments: set[str] = set(config["departments"])
    user = rf.User(level=1, departments=departments)
    settings = rf.Settings(cutoff={"strategy": config["strategy"], "max_results": 300})
    rf.Settings(quality=settings.quality, cutoff=settings.cutoff)
    rf.Filter(settings, reranker=Arrays())
    flt = rf.Filter(settings, reranker=Longest())
    result = flt("What do trolls fear?", rows(), metric=metric, user=user)
    best: rf.Hit = result[0]
    first: tuple[rf.Hit, ...] = result[:3]
    names: list[str] = [hit.chunk.name for hit in result]
    owned = {hit.id: hit.doc["text"] for hit in result}
    assert (best.id, len(first), names, owned) == ("1", 1, ["1"], {"1": "Trolls fear fire."})
    scores: list[float | None] = [0.1, None]
    assert len(flt("?", ("a", "b"), scores, metric=metric)) == 2
    assert len(flt("?", ["a", "b"], np.array([0.1, 0.2]), metric="euclidean")) == 2
    cut: rf.Cut = rf.cut(np.array([0.1, 0.9]), strategy="otsu")
    messages = [(message.role, message.content) for message in result.prompt(reorder=True)]
    reasons: list[tuple[str, str]] = [(row.layer, row.reason) for row in result.dropped]
    assert (cut.kept, len(messages), reasons) == (2, 2, [])
    assert "ops" in user.departments
    flt.as_haystack(metric=metric, user=user)
