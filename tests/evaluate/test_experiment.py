"""Sides compared: figures worked by hand, what counts when it is stopped early, and the LLM."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import pytest
from line import Line

from ragfilter.cli.sides import document
from ragfilter.engine.search import Backends
from ragfilter.errors import ChatError, InputError
from ragfilter.evaluate.sides import (
    Measurement,
    Side,
    before_and_after,
    means,
    measure,
    prompt_sides,
)  # fmt: skip
from ragfilter.judge.call import Judgements
from ragfilter.protocols import Delta, Message, Usage
from ragfilter.settings.schema import Settings


class World(Line):
    """The line, and a judge that keeps what a question's labels hold."""

    def __init__(self, qrels: Mapping[str, Mapping[str, int]], fails_on: str = "") -> None:
        super().__init__()
        self.qrels = qrels
        self.fails_on = fails_on
        self.asked: list[Sequence[Message]] = []

    def stream(self, messages: Sequence[Message], **_: object) -> Iterator[Delta]:
        self.asked.append(messages)
        query = re.findall(r"^Query: (.*)$", messages[-1].content, re.MULTILINE)[0]
        if query == self.fails_on:
            raise ChatError("It hangs.", kind="timeout")
        # The strict prompt keeps the first relevant chunk only.
        relevant = list(self.qrels[query])
        if "cannot do without" in messages[0].content:
            relevant = relevant[:1]
        yield Delta("\n".join(f"{i} -> KEEP" for i in relevant))
        yield Delta(usage=Usage(300, 20))

    def backends(self, *, chat: bool = True, remember: bool = False) -> Backends:
        return Backends(
            self, self, None, self if chat else None, Judgements() if remember else None
        )


QUERIES = {"zero": "0", "ten": "10"}
# Of the first four (0 1 2 3), two are relevant; of 10 9 11 8, three.
QRELS = {"zero": {"0": 1, "1": 2, "2": 0}, "ten": {"10": 1, "9": 1, "11": 1}}
BY_QUERY = {QUERIES[i]: {c: n for c, n in labels.items() if n} for i, labels in QRELS.items()}
FOUR = Settings().with_values({"retrieval.k": 4, "cutoff.enabled": False})
LLM = FOUR.with_values({"judge.enabled": True, "judge.max_chunks": 4})
TWO = FOUR.with_values(
    {"cutoff.enabled": True, "cutoff.strategy": "fixed", "cutoff.max_results": 2}
)


def measured(sides: Sequence[Side], world: World | None = None, **given: Any) -> list[Measurement]:
    world = world or World(BY_QUERY)
    return list(measure(QUERIES, QRELS, sides, world.backends(**given)))


def test_before_and_after_by_hand() -> None:
    sides = before_and_after((Side("two", TWO), Side("judged", LLM)))
    assert [side.name for side in sides] == ["unfiltered, k 4", "two", "judged"]
    rows = measured(sides)
    assert [(r.id, r.side, r.kept.ids) for r in rows] == [
        ("zero", "unfiltered, k 4", ("0", "1", "2", "3")),
        ("zero", "two", ("0", "1")),
        ("zero", "judged", ("0", "1")),
        # Equal distances are sorted by id, and ids are texts.
        ("ten", "unfiltered, k 4", ("10", "11", "9", "12")),
        ("ten", "two", ("10", "11")),
        ("ten", "judged", ("10", "11", "9")),
    ]
    plain, two, judged = means(rows, sides)
    assert (plain.kept, two.kept, judged.kept) == (4, 2, 2.5)
    assert plain.precision == pytest.approx((2 / 4 + 3 / 4) / 2)
    assert (plain.recall, two.precision, judged.precision, judged.recall) == (1, 1, 1, 1)
    assert two.recall == pytest.approx((1 + 2 / 3) / 2)
    # Three irrelevant ones before, none after.
    assert (plain.noise_reduction, judged.noise_reduction) == (0, 1)
    assert (plain.llm_tokens, two.llm_tokens, judged.llm_tokens) == (0, 0, 320)
    assert (plain.llm_ms, judged.fallbacks, judged.queries) == (0, 0, 2)
    assert judged.llm_ms > 0
    assert all(row.ms >= row.llm_ms for row in rows)
    assert two.context_tokens < plain.context_tokens


def test_the_order_of_sides_changes_no_figure() -> None:
    # Irrelevant are three of both first fours, seven of both first sixes.
    six = Side("six", TWO.with_values({"retrieval.k": 6, "cutoff.max_results": 4}))
    four = Side("four", LLM)
    forth, back = before_and_after((four, six)), before_and_after((six, four))
    assert [side.name for side in forth[:2]] == ["unfiltered, k 4", "unfiltered, k 6"]
    assert forth[:2] == back[:2]

    def cuts(sides: Sequence[Side]) -> dict[str, float | None]:
        return {one.side: one.noise_reduction for one in means(measured(sides), sides)}

    assert cuts(forth) == cuts(back)
    assert cuts(forth) == {
        "unfiltered, k 4": 0, "unfiltered, k 6": 0, "four": 1, "six": pytest.approx(1 - 3 / 7),
    }  # fmt: skip


def test_the_plain_side_searches_all_files_if_one_of_its_k_does() -> None:
    some = FOUR.with_values({"retrieval.source_pattern": "*.md"})
    sides = (Side("all", FOUR), Side("some", some))
    for given in (sides, sides[::-1]):
        assert before_and_after(given)[0].settings.retrieval.source_pattern == ""


def test_the_plain_side_has_every_layer_off() -> None:
    full = LLM.with_values({"clearance.enabled": True, "query_must.enabled": True})
    plain = before_and_after((Side("full", full),))[0]
    on = [
        name for name in ("clearance", "query_must", "entities", "quality", "cutoff", "judge")
        if plain.settings.get(f"{name}.enabled")
    ]  # fmt: skip
    assert (plain.plain, on) == (True, [])
    # A context budget does not shorten the unfiltered ranking, as in `eval`.
    tight = FOUR.with_values({"context.max_context_tokens": 60})
    rows = measured(before_and_after((Side("tight", tight),)))
    assert [len(row.kept.ids) for row in rows[:2]] == [4, 2]


def test_prompts_beside_each_other_and_beside_no_judge() -> None:
    sides = prompt_sides(FOUR.with_values({"judge.max_chunks": 3}), ("default", "strict"))
    assert [side.name for side in sides] == ["no judge", "default", "strict"]
    rows = measured(sides)
    assert [row.kept.ids for row in rows[:3]] == [("0", "1", "2"), ("0", "1"), ("0",)]
    none, default, strict = means(rows, sides)
    assert (none.kept, none.llm_tokens) == (3, 0)
    assert (default.recall, strict.precision) == (1, 1)
    assert strict.recall == pytest.approx((1 / 2 + 1 / 3) / 2)


def test_a_fallback_is_counted_and_told() -> None:
    sides = (Side("judged", LLM),)
    rows = measured(sides, World(BY_QUERY, fails_on="10"))
    assert [(row.fallback, row.error) for row in rows] == [(False, ""), (True, "It hangs.")]
    assert len(rows[1].kept.ids) == 4
    (mean,) = means(rows, sides)
    assert mean.fallbacks == 1


def test_without_labels_there_are_no_scores() -> None:
    sides = before_and_after((Side("two", TWO),))
    rows = list(measure(QUERIES, {}, sides, World({}).backends()))
    assert not any(row.labelled for row in rows)
    plain, two = means(rows, sides)
    assert (two.precision, two.recall, two.f1, two.noise_reduction) == (None,) * 4
    assert (plain.kept, two.kept) == (4, 2)
    made = document(rows, sides)
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    assert {(row["f1"], row["f1_most"], row["irrelevant"]) for row in made["per_query"]} == {
        (None, None, None)
    }


def test_stopped_early_the_means_are_over_what_every_side_has() -> None:
    sides = before_and_after((Side("two", TWO), Side("judged", LLM)))
    world = World(BY_QUERY)
    rows = list(islice(measure(QUERIES, QRELS, sides, world.backends()), 5))
    made = means(rows, sides)
    assert [one.queries for one in made] == [1, 1, 1]
    assert made == means(rows[:3], sides)
    assert means(rows[:2], sides) == ()
    assert [row["id"] for row in document(rows, sides)["per_query"]] == [
        *["zero"] * 3,
        *["ten"] * 2,
    ]


def test_nothing_is_asked_before_it_is_wanted() -> None:
    world = World(BY_QUERY)
    rows = measure(QUERIES, QRELS, (Side("judged", LLM),), world.backends())
    assert world.asked == []
    next(rows)
    assert len(world.asked) == 1


def test_an_llm_is_needed_only_by_sides_that_judge() -> None:
    plain, judged = (Side("two", TWO),), (Side("two", TWO), Side("judged", LLM))
    assert len(measured(plain, chat=False)) == 2
    with pytest.raises(InputError, match="needs an LLM") as refused:
        measured(judged, chat=False)
    assert "OPENAI_API_KEY" in refused.value.remedy


def test_a_remembered_answer_counts_with_what_it_took() -> None:
    world = World(BY_QUERY)
    sides = (Side("once", LLM), Side("again", LLM))
    rows = measured(sides, world, remember=True)
    assert len(world.asked) == 2
    once, again = means(rows, sides)
    assert once.llm_tokens == again.llm_tokens == 320
    assert once.llm_ms == again.llm_ms > 0
    assert all(row.ms >= row.llm_ms for row in rows)
