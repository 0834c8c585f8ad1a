"""Proposals checked against labelled questions: names learned, rules weakened, doubts reported."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from ragfilter.evaluate.effect import LabelledQuestions, make_labelled
from ragfilter.evaluate.proposed import Evidence, suggest
from ragfilter.model import Chunk, Hit, Pool
from ragfilter.rules import contexts
from ragfilter.rules.families import find_families
from ragfilter.rules.proposals import NO_NAME
from ragfilter.settings.schema import Settings

PASSING = Settings().with_values(
    {"retrieval.k": 6, "cutoff.enabled": False, "query_must.enabled": True}
)


def table(who: str, number: int) -> Chunk:
    text = f"The score a {who} needs to roll on a die to hit an opponent with armor class {number}."
    title = f"Attack matrix for {who}s - Opponent Armor Class {number}"
    return Chunk(f"{who}-{number}", text, title)


CHUNKS = [table(who, number) for who in ("cleric", "fighter") for number in (5, 6, 7)]


def labelled(**asked: str) -> LabelledQuestions:
    """Questions by the chunk they are labelled for (``_`` for the hyphen)."""
    hits = tuple(Hit(chunk, 0.1 * rank, rank) for rank, chunk in enumerate(CHUNKS, start=1))
    pools = {i: Pool(text, "demo", "l2", hits) for i, text in asked.items()}
    return make_labelled(pools, {i: {i.replace("_", "-"): 1} for i in asked}, PASSING)


def near_to_clerics(words: Sequence[str], names: Sequence[str]) -> list[float]:
    """A fake embedder: priests are like clerics, and nothing else is like anything."""
    return [0.9 * (word == "priest" and "cleric" in names) for word in words]


def rules(*, likeness: bool = True, **asked: str) -> dict[str, list[list[str]]]:
    made = suggest(CHUNKS, (), labelled(**asked), near_to_clerics if likeness else None)
    assert made.evidence.losses == {}
    assert made.evidence.effect is not None
    assert not made.evidence.effect.loses_relevant
    return {p.chunk.id: json.loads(p.rule)["contain_one_of"] for p in made.proposals}


def test_a_name_is_learned_from_a_question_that_names_the_value() -> None:
    made = rules(cleric_6="what does a priest need against armor class 6")
    assert made["cleric-7"][0] == ["cleric", "clerics", "priest", "priests"]
    assert made["fighter-6"][0] == ["fighter", "fighters"]
    assert len(made["cleric-6"]) == 2


def test_a_rule_that_would_lose_a_labelled_chunk_asks_for_less() -> None:
    made = rules(
        fighter_5="what does a soldier need against armor class 5",
        cleric_7="what does a cleric need against a knight",
    )
    assert [group[0] for group in made["fighter-5"]] == ["armor class 5"]
    assert [group[0] for group in made["cleric-7"]] == ["cleric"]
    assert all(len(made[i]) == 2 for i in ("fighter-6", "cleric-5"))


def test_a_rule_that_cannot_keep_all_that_is_labelled_keeps_the_most() -> None:
    asked = {
        "a": "what does a cleric need against a knight",
        "b": "a cleric against armor class 7",
        "c": "who carries the lantern",
    }
    by_chunk = labelled(**asked)
    of_one = make_labelled(by_chunk.pools, {key: {"cleric-7": 1} for key in asked}, PASSING)
    made = suggest(CHUNKS, (), of_one)
    (rule,) = (p.rule for p in made.proposals if p.chunk.id == "cleric-7")
    assert json.loads(rule) == {"contain_one_of": [["cleric", "clerics"]]}
    assert made.evidence.losses == {"cleric-7": ("who carries the lantern",)}


def test_what_a_question_calls_the_value_is_a_spelling_where_another_text_says_it_too() -> None:
    asked = "what does a cleric need to hit one in chain mail and a shield"
    learned = Chunk("armor", "Chain mail and a shield: armor class 7.", "Armor")
    of_table = {"cleric_7": asked}
    with_text = suggest([*CHUNKS, learned], (), labelled(**of_table)).proposals
    without = suggest(CHUNKS, (), labelled(**of_table)).proposals
    values = {p.chunk.id: json.loads(p.rule)["contain_one_of"] for p in with_text}["cleric-7"]
    assert [group[0] for group in values] == ["cleric", "armor class 7"]
    assert values[1][-1] == "chain mail and a shield"
    asks_less = {p.chunk.id: json.loads(p.rule)["contain_one_of"] for p in without}["cleric-7"]
    assert [group[0] for group in asks_less] == ["cleric"]


def test_what_no_part_of_a_rule_can_keep_is_a_doubt() -> None:
    made = suggest(CHUNKS, (), labelled(fighter_5="who carries the lantern"), near_to_clerics)
    assert made.evidence.losses == {"fighter-5": ("who carries the lantern",)}


def test_a_labelled_question_that_keeps_its_chunk_settles_the_doubt() -> None:
    leave = (
        "Employees in {} receive {} days of annual leave. Leave is requested two weeks ahead from "
        "the manager and may be carried over until March."
    )
    places = (("germany", 30), ("france", 25), ("spain", 23), ("italy", 22))
    chunks = [Chunk(place, leave.format(place.capitalize(), days)) for place, days in places]
    hits = tuple(Hit(chunk, 0.1 * rank, rank) for rank, chunk in enumerate(chunks, start=1))
    asked = {"germany": "how long is the leave in Germany", "france": "who may take a holiday"}
    pools = {i: Pool(text, "demo", "l2", hits) for i, text in asked.items()}
    made = suggest(chunks, (), make_labelled(pools, {i: {i: 1} for i in asked}, PASSING))
    doubts = {p.chunk.id: p.doubt for p in made.proposals}
    assert doubts == {"germany": "", "france": NO_NAME, "spain": NO_NAME, "italy": NO_NAME}
    assert list(made.evidence.losses) == ["france"]


def test_a_family_of_which_nothing_is_proposed_is_not_listed() -> None:
    text = "This policy covers fire. The deductible is {} euros and claims are reported in {} days."
    titles = {"fleets": (150, 45), "drivers": (300, 30), "families": (500, 60)}
    chunks = [Chunk(name, text.format(*numbers), name) for name, numbers in titles.items()]
    assert find_families(chunks)
    assert suggest(chunks).families == suggest(chunks).proposals == ()


def test_each_proposal_has_its_row_of_the_matrix() -> None:
    made = suggest(CHUNKS, (), labelled(cleric_6="a cleric against armor class 6"))
    by_id = {p.chunk.id: made.evidence.rows[p.rule] for p in made.proposals}
    assert (by_id["cleric-6"].passes, by_id["cleric-6"].blocks) == (1, 0)
    assert (by_id["fighter-6"].passes, by_id["fighter-6"].blocks) == (0, 1)


def test_of_many_texts_the_families_own_are_read_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contexts, "MOST_TEXTS", len(CHUNKS))
    said = [replace(chunk, text=f"{chunk.text} AC {chunk.id[-1]} is usual.") for chunk in CHUNKS]
    made = suggest([*(Chunk(f"x{i}", "Boats float.") for i in range(9)), *said])
    assert len(made.proposals) == len(CHUNKS)
    assert all('"ac ' in each.rule for each in made.proposals)


def test_without_labels_nothing_is_measured() -> None:
    made = suggest(CHUNKS)
    assert len(made.proposals) == 6
    assert made.evidence == Evidence()
