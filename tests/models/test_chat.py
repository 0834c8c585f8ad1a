"""A model's reply is joined into whole characters and limited in length, for any model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragfilter.answer import answer
from ragfilter.answer.context_packing import Context
from ragfilter.errors import ChatError
from ragfilter.judge import call
from ragfilter.judge.prompt import build_prompt
from ragfilter.model import Chunk, Hit, Verdict
from ragfilter.models.chat import MAX_BYTES, bounded, estimated_usage, without_thought
from ragfilter.protocols import Delta, Message, Usage
from ragfilter.rules import drafting as suggest
from ragfilter.settings.schema import Judge

HIT = Hit(Chunk("c1", "Trolls fear fire.", title="Troll"), 0.1, 1)


def test_halves_of_a_character_are_joined_across_pieces() -> None:
    for pieces, read in [
        (["a", "b"], ["a", "b"]),
        (["\ud83d", "\ude00"], ["😀"]),
        (["a\ud83d", "\ude00b"], ["a", "😀b"]),
        (["a\ud83d", "", "\ude00b"], ["a", "😀b"]),
        (["\ud83d", "b"], ["\ufffdb"]),
        (["\ude00", "b\ud83d"], ["\ufffd", "b", "\ufffd"]),
        (["\ud83d\ud83d", "\ude00"], ["\ufffd", "😀"]),
        ([], []),
    ]:
        assert [delta.text for delta in bounded(map(Delta, pieces))] == read


def test_no_more_is_read_than_there_is_room_for() -> None:
    came: list[str] = []
    with pytest.raises(ChatError, match="longer than 5 bytes") as caught:
        came.extend(d.text for d in bounded(map(Delta, ["ab", "cdé", "f"]), most_bytes=5))
    assert caught.value.kind == "interrupted"
    assert caught.value.remedy
    assert "".join(d.text for d in bounded(map(Delta, ["ab", "cd", "e"]), most_bytes=5)) == "abcde"


HARMONY = "<|channel|>analysis<|message|>Hm?<|end|><|start|>assistant"
THOUGHTS = [
    # DeepSeek R1, Qwen3, QwQ, GLM, MiniMax, Nemotron, Step, Olmo
    "<think>\nHm?\n</think>\n\n{}",
    "<think></think>{}",
    "Hm?\n</think>\n\n{}",
    "Hm?</think>{}",
    # A template opens the thought, and so does the model; one that thinks again; nested ones.
    "<think>\n<think>\nHm?\n</think>\n{}",
    "<think>Hm?</think><think>No.</think>{}",
    "Hm?</think>No.</think>{}",
    "<think>Hm <think>well</think> so</think>{}",
    # Claude as it is often prompted, Gemini, EXAONE, Granite, Hunyuan, ERNIE, K2-Think, Reflection
    "<thinking>Hm?</thinking>{}",
    "<thought>\nHm?</thought>{}",
    "<reasoning>Hm?</reasoning>\n{}",
    "<think>Hm?</think>\n<answer>\n{}\n</answer>",
    "<think>Hm?</think><response>{}</response>",
    "<Thought>Hm?</Thought><Output>{}</Output>",
    "<reflection>Hm?</reflection>{}",
    # Seed-OSS, LongCat, a thought with a budget, OpenThinker, Cohere, Solar
    "<seed:think>Hm?</seed:think>{}",
    "<longcat_think>Hm?</longcat_think>{}",
    '<think budget="200">Hm?</think>{}',
    "<|think|>Hm?<|/think|>{}",
    "<|begin_of_thought|>Hm?<|end_of_thought|>\n<|begin_of_solution|>{}<|end_of_solution|>",
    "<|START_THINKING|>Hm?<|END_THINKING|><|START_RESPONSE|>{}<|END_RESPONSE|>",
    # Magistral, Kimi, Gemma, Apriel
    "[THINK]Hm?[/THINK]{}",
    "Hm?[/THINK]{}",
    "◁think▷Hm?◁/think▷{}",
    "<|channel>thought\nHm?<channel|>{}",
    "Here are my reasoning steps:\nHm?\n[BEGIN FINAL RESPONSE]\n{}\n[END FINAL RESPONSE]<|end|>",
    # gpt-oss, whole, in two steps, with a type, and where a server leaves out its tokens
    HARMONY + "<|channel|>final<|message|>{}<|return|>",
    HARMONY + HARMONY + "<|channel|>final<|message|>{}",
    HARMONY + "<|channel|>final json<|message|>{}",
    HARMONY + "<|channel|>final <|constrain|>json<|message|>{}<|return|>",
    "<|start|>assistant<|channel|>final<|message|>{}<|return|>",
    "analysisWe need fire.assistantfinal{}",
    HARMONY + "<|channel|>final{}",
    # What prompts call a thought, and tags with spaces, without an end, escaped or in full width
    *(
        f"Hm?\n{close}\n\n{{}}"
        for close in (
            "</analysis>¦</thought_process>¦</thinking_process>¦</rationale>¦</cot>¦</inner_monologue>¦"
            "</deliberation>¦</chain-of-thought>¦</scratch_pad>¦</reasoning_content>¦</ think>¦< /think>¦"
            "< / THINK >¦</think¦</analysis\n>¦&lt;/think&gt;¦<|think_end|>¦<|end_think|>¦<end_of_thought>¦"
            "<｜end▁of▁thinking｜>¦＜/think＞¦...done thinking.¦…done thinking"
        ).split("¦")
    ),
    "<analysis>Hm?</analysis>{}",
    "< think >Hm?</ think>{}",
    "<|think_start|>Hm?<|think_end|>{}",
    "&lt;think&gt;Hm?&lt;/think&gt;{}",
    "<｜begin▁of▁thinking｜>Hm?<｜end▁of▁thinking｜>{}",
    "Thinking...\nHm?\n...done thinking.\n\n{}",
    # In Markdown: fences, folded sections, headings, tags in brackets, comments
    "```thinking\nHm?\n```\n{}",
    "~~~reasoning\nHm?\n~~~\n\n{}",
    "``` Thought process\nHm?\n```\n{}",
    "<details>\n<summary>Thinking</summary>\nHm?\n</details>\n{}",
    '<details type="reasoning">\n<summary>Thought for 5 s</summary>\n> Hm?\n</details>\n{}',
    "## Thinking\nHm?\n\n## Answer\n{}",
    "**Reasoning:** Hm?\n\n**Final answer:** {}",
    "Thought: Hm?\nNo.\nDecision:\n{}",
    "[thinking]Hm?[/thinking]{}",
    "<!-- thinking: Hm? -->\n{}",
]
MENTIONS = ("It writes `<think>` and then `</think>` [1].", 'It ends with "</think>".')


def test_a_thought_is_no_part_of_the_answer() -> None:
    for text in THOUGHTS:
        for said in ("Trolls fear fire [1].", '{"c1": "KEEP"}', *MENTIONS):
            assert without_thought(text.replace("{}", said)) == said, text


def test_of_a_thought_alone_nothing_is_left() -> None:
    for text in [
        "<think>\nHm?",
        "<think>Hm </think",
        "[THINK]Hm",
        "◁think▷Hm",
        "<|channel|>analysis<|message|>Hm",
        "<|channel|>commentary to=functions.x<|message|>{}",
        "analysisWe need",
        "Hm?</think>",
        HARMONY,
        "<think>I end with `</think>` then",
        "Hm?</think>\n<think>No",
        "<|channel>thought\nHm",
        "<analysis>\nHm?",
        "```thinking\nHm?",
        "< think >Hm",
        "&lt;think&gt;Hm",
        "<｜begin▁of▁thinking｜>Hm",
    ]:
        assert without_thought(text) == "", text


def test_what_stands_around_a_thought_stays() -> None:
    assert without_thought("Fire.\n<think>Hm <think>well</think> so</think>\nAcid.") == "Fire.\n\nAcid."
    assert without_thought("<think>Hm</think>Fire. <think>Or") == "Fire."


@given(st.lists(st.sampled_from(["<think>", "</think>", "<thinking>", "[/THINK]", "Hm ", "\n"])))
def test_an_answer_begins_after_the_last_mark(pieces: list[str]) -> None:
    said = "".join(pieces)
    assert without_thought(f"{said}</think>Fire.").endswith("Fire.")
    assert "secret" not in without_thought(f"{said}<think>secret")
    assert "secret" not in without_thought(f"secret{said.replace('<', '</')}</think>Fire.")


@dataclass(frozen=True, slots=True)
class Says:
    """A third-party chat model that says these pieces."""

    pieces: tuple[str, ...]
    name: str = "fake"

    def stream(self, messages: Sequence[Message], **_: object) -> Iterator[Delta]:
        return iter([Delta(piece) for piece in self.pieces])


class NoEmbedder:
    name = "none"

    def embed(self, *_: object) -> None:
        raise AssertionError


def answered(*pieces: str) -> answer.Answer:
    context = Context((HIT,), (), "[1] Trolls fear fire.", 5)
    return answer.AnswerStream("why?", context, Says(pieces), NoEmbedder(), timeout_s=5).read()  # type: ignore[arg-type]


def judged(*pieces: str) -> call.Judgement:
    ready = build_prompt("why?", [HIT], Judge(), "l2")
    return call.ask(ready, Says(pieces), Judge())


def test_no_listener_takes_a_thought_for_the_answer() -> None:
    for text in THOUGHTS:
        made = answered(*text.replace("{}", "Fire [1]."))
        assert (made.text, made.citations, made.error) == ("Fire [1].", (1,), ""), text
        assert judged(*text.replace("{}", "c1 -> KEEP")).verdicts == (Verdict("c1", "KEEP"),), text
        rule = '{"contain_one_of": [["troll"]]}'
        draft = suggest.suggest(HIT.chunk, Says((text.replace("{}", rule),)), timeout_s=5)
        assert draft.rule is not None, text
        assert draft.rule.text == '{"contain_one_of":[["troll"]]}', text


def test_the_pieces_hold_no_thought() -> None:
    for pieces, read in [
        (["Fire ", "[1]."], ["Fire ", "[1]."]),
        (["<th", "ink>Hm</thi", "nk>", "Fire ", "[1]."], ["Fire [1]."]),
        (["Fire ", "[1]. ", "<think>", "Hm"], ["Fire ", "[1]. "]),
        (["1 ", "< 2 ", "[1]."], ["1 ", "< 2 [1]."]),
    ]:
        context = Context((HIT,), (), "[1] Trolls fear fire.", 5)
        stream = answer.AnswerStream("why?", context, Says(tuple(pieces)), NoEmbedder(), timeout_s=5)  # type: ignore[arg-type]
        assert list(stream) == read


def test_an_answer_without_end_fails_like_any_other() -> None:
    piece = "c1 -> KEEP\n" * 100
    pieces = (piece,) * (MAX_BYTES // len(piece) + 1)
    made = answered(*pieces)
    assert made.failed == "interrupted"
    assert "longer than" in made.error
    assert len(made.text) == MAX_BYTES
    judgement = judged(*pieces)
    assert "longer than" in judgement.error
    assert judgement.verdicts == ()


ASKED = (Message("system", "a" * 40), Message("user", "b" * 20))
"""Ten tokens and five."""
READ = {
    "timeout": True,
    "server": True,
    "interrupted": True,
    "empty": True,
    "": True,
    "unreachable": False,
    "auth": False,
    "rate_limit": False,
    "protocol": False,
}


def test_a_prompt_counts_where_it_was_read() -> None:
    for failed in READ:
        assert estimated_usage(ASKED, "", failed) == Usage(15 if READ[failed] else 0, 0, True)
        # If anything was answered, the prompt was read.
        assert estimated_usage(ASKED, "c" * 8, failed) == Usage(15, 2, True)
