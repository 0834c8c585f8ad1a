"""Proposals checked against labelled questions: words learned, losses reported."""

from __future__ import annotations

from ragfilter.evaluate.effect import GatheredQuestions, SuggestedRules, make_labelled, suggest
from ragfilter.model import Chunk, Hit, Pool
from ragfilter.settings.schema import Settings

PASSING = Settings().with_values({"retrieval.k": 6, "cutoff.enabled": False, "query_must.enabled": True})


def table(who: str, number: int) -> Chunk:
    text = f"The score a {who} needs to roll on a die to hit an opponent with armor class {number}."
    title = f"Attack matrix for {who}s - Opponent Armor Class {number}"
    return Chunk(f"{who}-{number}", text, title)


CHUNKS = [table(who, number) for who in ("cleric", "fighter") for number in (5, 6, 7)]


def labelled(**asked: str) -> GatheredQuestions:
    """Questions by the chunk they are labelled for (``_`` for the hyphen)."""
    hits = tuple(Hit(chunk, 0.1 * rank, rank) for rank, chunk in enumerate(CHUNKS, start=1))
    pools = {i: Pool(text, "demo", "l2", hits) for i, text in asked.items()}
    return make_labelled(pools, {i: {i.replace("_", "-"): 1} for i in asked}, PASSING)


def rules(made: SuggestedRules) -> dict[str, list[list[str]]]:
    return {p.chunk.id: [[*group] for group in p.rule.contain_one_of] for p in made.proposals}


def test_a_rule_learns_the_rarest_word_of_a_question_it_would_lose() -> None:
    for chunk, question, group, word in [
        ("cleric-6", "what does a priest need against armor class 6", 0, "priest"),
        ("cleric-7", "what does a cleric need against chain mail", 1, "mail"),
    ]:
        others = [Chunk("priest", "A priest prays.", "Priest"), Chunk("mail", "Armor: mail.", "Mail")]
        made = suggest([*CHUNKS, *others], (), labelled(**{chunk.replace("-", "_"): question}))
        assert rules(made)[chunk][group][-1] == word
        assert made.losses == {}, chunk
        assert made.effect is not None, chunk
        assert not made.effect.loses_relevant, chunk


def test_what_no_rule_can_keep_is_told() -> None:
    for question in ["what does a soldier need against armor class 5", "who carries the lantern"]:
        made = suggest(CHUNKS, (), labelled(fighter_5=question))
        assert made.losses == {"fighter-5": (question,)}


def test_without_labels_nothing_is_measured() -> None:
    made = suggest(CHUNKS)
    assert len(made.proposals) == 6
    assert made.effect is None
