"""Sentences that contribute nothing to the answer are left out of the context only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stores import OneVector

import ragfilter as rf
from ragfilter.answer.context_packing import prompt_text, without
from ragfilter.answer.extractive import extract
from ragfilter.engine.pool import join_pools
from ragfilter.engine.replay import replay
from ragfilter.model import Chunk, Hit, Pool, Pruning
from ragfilter.models.pruners import SentencePruner
from ragfilter.protocols import PrunePassage
from ragfilter.settings.schema import Settings
from ragfilter.text.sentences import pieces

ON = Settings().with_values({"prune.enabled": True, "prune.share": 0.5, "cutoff.enabled": False, "retrieval.k": 10})
PROSE = "# Trolls\n\nTrolls heal. They live far away. Fire stops that.\n"
TABLE = "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n"
LIST = "Parameters:\n- one: x\n- two: y\n\nAfter it.\n"
CODE = "Before.\n\n```py\na = 1\n\nb = 2\n```\n"


class Marked:
    """Values pieces by whether they contain one of the words."""

    name = "marked"

    def __init__(self, *words: str, wrong: bool = False) -> None:
        self.words, self.wrong = words, wrong

    def contributions(self, query: str, passages: Sequence[PrunePassage]) -> list[list[float]]:
        made = [
            [0.8 if any(word in piece for word in self.words) else 0.2 for piece in each.pieces] for each in passages
        ]
        return made[1:] if self.wrong else made


def filtered(*texts: str, pruner: Marked, settings: Settings = ON) -> rf.Result:
    flt = rf.Filter(settings, pruner=pruner)
    return flt("heal?", [{"id": f"c{n}", "text": t} for n, t in enumerate(texts, 1)])


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (PROSE, ["heading", "sentence", "sentence", "sentence"]),
        (TABLE, ["block"]),
        # The line that leads to a list is a part of it.
        (LIST, ["block", "sentence"]),
        (CODE, ["sentence", "block"]),
        ("Level 1-3: 14. Level 4-6: 12. Add what magic gives.", ["block", "sentence"]),
        ("", []),
    ],
)
def test_the_pieces_of_a_text(text: str, kinds: list[str]) -> None:
    found = pieces(text)
    assert [piece.kind for piece in found] == kinds
    assert "".join(text[p.start : p.end] for p in found) == text


@given(st.text(alphabet=" \n.ab#|-`:1É", max_size=80))
def test_pieces_cover_any_text(text: str) -> None:
    found = pieces(text)
    assert "".join(text[p.start : p.end] for p in found) == text
    assert all(without(text, ((p.start, p.end),)).strip() or len(found) == 1 for p in found)


def test_what_contributes_little_is_not_in_the_prompt_but_in_the_chunk() -> None:
    result = filtered(PROSE, pruner=Marked("heal", "Fire"))
    (hit,) = result
    assert hit.chunk.text == PROSE
    assert prompt_text(hit) == "# Trolls\n\nTrolls heal. … Fire stops that."
    prompt = result.prompt()[1].content
    assert "Fire stops" in prompt
    assert "far away" not in prompt
    assert result.to_dict()["hits"][0]["prompt_text"] == prompt_text(hit)
    (decision,) = result.trace("prune").decisions
    assert (decision.outcome, decision.value, decision.limit) == ("kept", 0.2, 0.4)
    detail = result.trace("prune").detail
    assert isinstance(detail, Pruning)
    assert detail.after < detail.before
    assert result.context.tokens == detail.after


def test_tables_lists_and_code_stay_whole_or_go_whole() -> None:
    for text in (TABLE, LIST, CODE):
        (one, two) = filtered(text, PROSE, pruner=Marked("heal", "4", "two", "b = 2"))
        assert prompt_text(two) == "# Trolls\n\nTrolls heal. …"
        blocks = [p for p in pieces(text) if p.kind == "block"]
        assert all(text[p.start : p.end].rstrip() in prompt_text(one) for p in blocks)


def test_every_kept_chunk_sends_its_best_piece() -> None:
    (one, two) = filtered("Trolls heal.", "No use at all. None here.", pruner=Marked("heal"))
    assert prompt_text(one) == "Trolls heal."
    # Both of its pieces are equally good.
    assert prompt_text(two) == "No use at all. None here."


def test_quotes_come_from_what_is_sent() -> None:
    (hit,) = filtered(PROSE, pruner=Marked("heal"))
    quotes = extract("heal?", [hit], OneVector({}, np.ones(1, dtype=np.float32)))
    assert "live far away" not in " ".join(quote.text for quote in quotes)


def test_without_a_pruner_chunks_stay_whole_and_the_result_says_so() -> None:
    result = rf.Filter(ON)("heal?", [PROSE])
    assert [need.kind for need in result.needs] == ["prune"]
    assert prompt_text(result[0]) == PROSE


def test_a_pruner_that_fails_is_told() -> None:
    result = filtered(PROSE, pruner=Marked("heal", wrong=True))
    assert result.needs == ()
    assert result.fallbacks
    assert prompt_text(result[0]) == PROSE
    assert result.warnings[0].startswith("The pruner failed: marked did not give")


def test_sessions_share_what_is_known() -> None:
    hit = Hit(Chunk("c1", PROSE), 0.1, 1)
    mine = Pool("heal?", "c", "l2", (hit,))
    theirs = replace(mine, hits=(replace(hit, contributions=(0.1, 0.9, 0.1, 0.1)),))
    assert replay(join_pools(mine, theirs), ON).needs == ()


def test_the_bundled_pruner_counts_vectors_words_and_neighbours() -> None:
    hills = "They live in the hills."
    passage = PrunePassage("", (hills, "It is cold there.", "Fire 7 is used by all.", "No more."))
    question, near, far = (np.array([x, 0], dtype=np.float32) for x in (1, 0.6, 0.1))
    embedder = OneVector({"fire 7?": question, hills: near}, far)
    (values,) = SentencePruner(embedder).contributions("fire 7?", [passage])
    assert values[0] == pytest.approx(0.6)
    assert values[1] > 0.4  # beside the best
    assert values[2] == pytest.approx(0.6)  # has both of the question's words
    assert all(0 <= value <= 1 for value in values)
