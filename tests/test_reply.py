"""A model's reply is joined into whole characters and limited in length, for any model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragfilter.answer import stream as answer
from ragfilter.answer.context import Context
from ragfilter.basics.reply import MOST_BYTES, bounded
from ragfilter.errors import ChatError
from ragfilter.judge import call
from ragfilter.layers.judge import Judge
from ragfilter.model import Chunk, Hit
from ragfilter.protocols import Delta, Message, Usage
from ragfilter.rules import draft as suggest
from ragfilter.text.characters import whole

HIT = Hit(Chunk("c1", "Trolls fear fire.", title="Troll"), 0.1, 1)


@pytest.mark.parametrize(
    ("pieces", "read"),
    [
        (["a", "b"], ["a", "b"]),
        (["\ud83d", "\ude00"], ["😀"]),
        (["a\ud83d", "\ude00b"], ["a", "😀b"]),
        (["a\ud83d", "", "\ude00b"], ["a", "😀b"]),
        (["\ud83d", "b"], ["\ufffdb"]),
        (["\ude00", "b\ud83d"], ["\ufffd", "b", "\ufffd"]),
        (["\ud83d\ud83d", "\ude00"], ["\ufffd", "😀"]),
        ([], []),
    ],
)
def test_halves_of_a_character_are_joined_across_pieces(pieces: list[str], read: list[str]) -> None:
    assert [delta.text for delta in bounded(map(Delta, pieces))] == read


@given(st.lists(st.text("\ud83d\ude00a😀", max_size=3)))
def test_it_makes_no_difference_where_an_answer_is_split(pieces: list[str]) -> None:
    assert "".join(d.text for d in bounded(map(Delta, pieces))) == whole("".join(pieces))


def test_usage_is_passed_on() -> None:
    said = [Delta("\ud83d"), Delta(usage=Usage(1, 2))]
    assert list(bounded(said)) == [Delta(usage=Usage(1, 2)), Delta("\ufffd")]


def test_no_more_is_read_than_there_is_room_for() -> None:
    came: list[str] = []
    with pytest.raises(ChatError, match="longer than 5 bytes") as caught:
        came.extend(d.text for d in bounded(map(Delta, ["ab", "cdé", "f"]), most_bytes=5))
    assert caught.value.kind == "interrupted"
    assert caught.value.remedy
    assert "".join(d.text for d in bounded(map(Delta, ["ab", "cd", "e"]), most_bytes=5)) == "abcde"


@dataclass(frozen=True, slots=True)
class Says:
    """A third-party chat model that says these pieces."""

    pieces: tuple[str, ...]
    name: str = "fake"

    def stream(
        self,
        messages: Sequence[Message],
        *,
        timeout_s: float,
        schema: Mapping[str, object] | None = None,
    ) -> Iterator[Delta]:
        return iter([Delta(piece) for piece in self.pieces])


class NoEmbedder:
    name = "none"

    def embed(self, *_: object) -> None:
        raise AssertionError


def answered(*pieces: str) -> answer.Answer:
    context = Context((HIT,), (), "[1] Trolls fear fire.", 5)
    return answer.AnswerStream("why?", context, Says(pieces), NoEmbedder(), timeout_s=5).read()  # type: ignore[arg-type]


def judged(*pieces: str) -> call.Judgement:
    ready = call.prompt("why?", [HIT], Judge(), "l2")
    return call.ask(ready, Says(pieces), Judge())


def test_an_emoji_split_over_two_pieces_is_whole_for_every_listener() -> None:
    assert answered("Fire \ud83d", "\ude00 [1].").text == "Fire 😀 [1]."
    assert answered("Fire \ud83d").text == "Fire \ufffd"
    judgement = judged("c1 -> KEEP \ud83d", "\ude00\nso \ude00")
    assert judgement.error == ""
    assert judgement.reply == "c1 -> KEEP 😀\nso \ufffd"
    said = ('{"contain_one_of": [["troll", "\ud83d', '\ude00"]]}')
    draft = suggest.suggest(HIT.chunk, Says(said), timeout_s=5)
    assert draft.text == '{"contain_one_of":[["troll","😀"]]}'


def test_an_answer_without_end_fails_like_any_other() -> None:
    piece = "c1 -> KEEP\n" * 100
    pieces = (piece,) * (MOST_BYTES // len(piece) + 1)
    made = answered(*pieces)
    assert made.failed == "interrupted"
    assert "longer than" in made.error
    assert len(made.text) == MOST_BYTES
    judgement = judged(*pieces)
    assert "longer than" in judgement.error
    assert judgement.verdicts == ()
