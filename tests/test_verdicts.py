"""Reading a judge's answer: all forms of decisions, and everything that is not a decision."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from waiting import ends_soon

from ragfilter.judge.parse import ACTIONS, MAX_REMARKS, SCHEMA, parse
from ragfilter.model import Verdict
from ragfilter.models.chat import MAX_BYTES

IDS = ("sd-api:CreateCampaign", "dsp-api:GetAudiences", "sd-api:ErrorCodes")
KEEP_0 = (Verdict(IDS[0], "KEEP"),)


def decided(text: str) -> dict[str, str]:
    verdicts, *_ = parse(text, IDS)
    return {v.chunk_id: f"{v.action}_{v.depth}" if v.depth else v.action for v in verdicts}


def test_forms_of_one_decision() -> None:
    for line in [
        "sd-api:CreateCampaign -> KEEP",
        "12) `sd-api:CreateCampaign` -> `KEEP`",
        "- **`sd-api:CreateCampaign`** → **KEEP**",
        '"sd-api:CreateCampaign" -> "KEEP",',
        "Chunk ID: sd-api:CreateCampaign -> KEEP",
        "SD-API:createcampaign -> KEEP",
        "sd-api:CreateCampaign -> KEEP (answers the question)",
        "```text\nsd-api:CreateCampaign -> KEEP\n```",
        "<think>sd-api:CreateCampaign -> DISCARD?</think>\nsd-api:CreateCampaign -> KEEP",
        '{"decisions": [{"chunk_id": "sd-api:CreateCampaign", "action": "KEEP"}]}',
        '{"sd-api:CreateCampaign": "KEEP"}',
        '["sd-api:CreateCampaign -> KEEP"]',
        'Sure:\n{"sd-api:CreateCampaign": "KEEP"}\nDone.',
        'Of GET /ads/{id} ->\n{\n  "sd-api:CreateCampaign": "KEEP"\n}\nDone.',
        "sd-api:CreateCampaign -> KEEP: it expands on how to keep a token",
        "| sd-api:CreateCampaign | KEEP | leads from code -> token |",
        "| `sd-api:CreateCampaign` | **KEEP** | it says how to discard a token |",
        "| id | action |\n|---|---|\n| sd-api:CreateCampaign | KEEP |\n",
        '{"why": "it shows <think>", "decisions": {"sd-api:CreateCampaign": "KEEP"}}',
        'sd-api:CreateCampaign -> KEEP, as {"sd-api:CreateCampaign": "discard"} shows',
        'Of a body {"name": …}:\nsd-api:CreateCampaign -> KEEP',
    ]:
        assert parse(line, IDS) == (KEEP_0, (), ())


A, B = '{"chunk_id": "sd-api:CreateCampaign", "action": "KEEP"}', '{"dsp-api:GetAudiences": "KEEP"}'


def test_json_in_several_values() -> None:
    for text in [
        f"{A}\n{B}",
        f"```json\n{A}\n```\nand\n```json\n{B}\n```",
        f"{A}\ndsp-api:GetAudiences -> KEEP",
        f"{A}\n<think>sd-api:ErrorCodes -> KEEP</think>\n{B}",
    ]:
        assert decided(text) == {IDS[0]: "KEEP", IDS[1]: "KEEP"}


def test_a_later_value_that_is_cut_off_gives_no_decisions_at_all() -> None:
    for cut in range(2, len(B)):
        assert decided(f"{A}\n{B[:cut]}") == {}, cut
        assert decided(f"{A}\nsd-api:ErrorCodes -> KEEP\n{B[:cut]}") == {}, cut


def test_json_may_have_numbers_as_ids_and_anything_as_an_action() -> None:
    verdicts, remarks, unreadable = parse('[{"id": 7, "action": "KEEP"}, {"id": 8, "action": null}]', "78")
    assert verdicts == (Verdict("7", "KEEP"),)
    assert remarks == ("unknown action for 8",)
    assert unreadable == ("8",)


def test_the_schema_is_one_that_strict_endpoints_accept() -> None:
    item = SCHEMA["$defs"]["ChunkDecision"]  # type: ignore[index]
    for one, names in ((SCHEMA, ["decisions"]), (item, ["chunk_id", "action"])):
        assert one["additionalProperties"] is False
        assert one["required"] == list(one["properties"]) == names
    assert item["properties"]["action"]["enum"] == list(ACTIONS)


def read(text: str, ids: str = "a b c") -> tuple[dict[str, str], list[str], int]:
    """The decisions by id, the ids without a clear decision, and the number of remarks on ids that
    were not asked about."""
    reading = parse(text, tuple(ids.split()))
    other = sum("not asked about" in remark for remark in reading.remarks)
    return {v.chunk_id: v.written for v in reading.verdicts}, list(reading.unreadable), other


OF_NUMBERS = {"7": "KEEP", "3": "DISCARD", "2": "KEEP"}


def test_ids_that_are_numbers_are_told_from_what_counts_them() -> None:
    for text in [
        "|id|action|reason|\n|--|:-:|--|\n|7|KEEP|3 of 2|\n|3|discard|see 7|\n|2|keep|7|",
        "id;action\n7;KEEP\n3;DISCARD\n2;KEEP",
        "7, KEEP\n3, DISCARD\n2, KEEP",
        "1. 7: KEEP\n2. 3: DISCARD\n3. 2: KEEP",
        '[{"index": 2, "id": 7, "action": "KEEP"}, {"index": 7, "id": 3, "action": "DISCARD"}, '
        '{"index": 3, "id": 2, "action": "KEEP"}]',
    ]:
        assert read(text, "7 3 2") == (OF_NUMBERS, [], 0)


def test_what_may_be_meant_for_another_chunk_is_reported_and_not_obeyed() -> None:
    for text, unclear in [
        ("| 1 | 7 | KEEP |\n| 2 | 3 | DISCARD |\n| 3 | 2 | KEEP |", "732"),
        ("1. KEEP\n2. DISCARD\n3. KEEP", "32"),
        ("1 -> KEEP\n2 -> DISCARD\n3 -> KEEP", "32"),
        ('{"1": "KEEP", "2": "DISCARD", "3": "KEEP"}', "32"),
        ("Chunk 2: KEEP\n#3: DISCARD\n| Chunk 7 | KEEP |", "732"),
        ("7, 3 -> KEEP", "73"),
        # Counted from 0, in another order, in part, and with an unknown action.
        ("0,KEEP\n1,KEEP\n2,DISCARD", "2"),
        ('{"2": "KEEP", "0": "KEEP", "1": "DISCARD"}', "2"),
        ("3: KEEP\n2: DISCARD\n1: DISCARD", "32"),
        ("2 -> KEEP\n0 -> MAYBE\n1 -> KEEP", "2"),
    ]:
        decisions, unreadable, _ = read(text, "7 3 2")
        assert decisions == {}, text
        assert unreadable == list(unclear)
        assert parse(text, ("7", "3", "2")).remarks[: len(unclear)] == tuple(
            f"no clear decision for {i}" for i in unclear
        )


SIGNS = "-> => --> —> ~> → ⇒ ⟹ ➜ ➡️ : ： := = – — - -- ‐ − , ;"


def test_every_sign_between_an_id_and_its_action() -> None:
    for sign in SIGNS.split():
        for form in ("b {} KEEP", "**b {} KEEP**", "- `b` {} **KEEP**.", "“b” {} “KEEP”"):
            text = f"a -> KEEP\n{form.format(sign)}\nc -> DISCARD"
            assert read(text) == ({"a": "KEEP", "b": "KEEP", "c": "DISCARD"}, [], 0), text


def test_no_id_that_is_mentioned_is_passed_over_in_silence() -> None:
    for line in (
        "b ... KEEP¦b is a KEEP¦b: I would KEEP it¦KEEP b¦KEEP: b¦b) KEEP¦b. KEEP¦b ✅ KEEP¦b ~ KEEP¦b / KEEP¦"
        'Action for b is KEEP¦<chunk id="b" action="KEEP"/>¦<td>b</td><td>KEEP</td>¦| b (Trolls) | KEEP |¦'
        "| KEEP | b |¦a KEEP, b KEEP¦a -> KEEP, b -> KEEP¦id=b action=KEEP¦b -> EXPAND_2¦b,MAYBE\na,KEEP\nb,MAYBE¦"
        "Keep: b¦Keep b¦keep: a, b; discard: c¦b should be kept¦b ✓¦- [x] b¦b¦B: yes¦Drop b¦bは保留¦保留b¦"
        '{"keep": ["a", "b"]}¦a -> keep, b -> keep'
    ).split("¦"):
        decisions, unreadable, _ = read(f"{line}\nc -> DISCARD")
        assert decisions["c"] == "DISCARD", line
        assert "b" not in decisions, line
        assert "b" in unreadable, line


def test_an_explanation_does_not_take_back_a_decision() -> None:
    assert read("I KEEP b, as a and c are in it.\nb -> KEEP\na -> DISCARD\nc -> DISCARD") == (
        {"a": "DISCARD", "b": "KEEP", "c": "DISCARD"},
        [],
        0,
    )


def test_a_thought_decides_nothing() -> None:
    for text in [
        "Hm.\na -> DISCARD\nc -> KEEP\n</think>\n\na -> KEEP\nb -> DISCARD",
        "<think>c -> KEEP</think><answer>a -> KEEP\nb -> DISCARD</answer>",
    ]:
        assert read(text) == ({"a": "KEEP", "b": "DISCARD"}, [], 0)


def test_unknown_actions_are_reported_and_not_obeyed() -> None:
    for action in (
        "EXPAND_7|EXPAND_13|EXPAND_1.5|EXPAND|EXPAND_|DELETE|KEEP_ALL|KEEPER|do not KEEP|KEEP or DISCARD|"
        "keep or discard|KEEP/EXPAND_1|keep, expand_1|KEEP, though DISCARD would do|keep, sd-api:Other -> keep||yes"
    ).split("|"):
        verdicts, remarks, unreadable = parse(f"{IDS[0]} -> {action}", IDS)
        assert verdicts == (), action
        assert remarks == (f"unknown action for {IDS[0]}",)
        assert unreadable == (IDS[0],), action


def test_the_last_decision_counts_and_the_change_is_reported() -> None:
    text = f"{IDS[0]} -> DISCARD\n{IDS[1]} -> KEEP\n{IDS[0]} -> KEEP\n{IDS[1]} -> KEEP"
    verdicts, remarks, *_ = parse(text, IDS)
    assert verdicts == (*KEEP_0, Verdict(IDS[1], "KEEP"))
    assert remarks == (f"changed for {IDS[0]}: DISCARD, then KEEP",)


def test_ids_of_every_shape() -> None:
    ids = "a b c|1. intro|- x|x -> y|GET /v1/ads -> list|“quoted”|[7]|a:b:c|7|chunk_id: x|a,|naïve/ß|keep|x -> KEEP"
    for chunk_id in ids.split("|"):
        expanded = parse(f"- `{chunk_id}` -> EXPAND_1", (chunk_id, "z"))
        assert expanded == ((Verdict(chunk_id, "EXPAND", 1),), (), ()), chunk_id
        assert parse(json.dumps({chunk_id: "KEEP"}), (chunk_id,))[0] == (Verdict(chunk_id, "KEEP"),), chunk_id


def test_ids_that_differ_in_case_only_must_be_written_exactly() -> None:
    ids = ("Ad", "AD")
    assert parse("Ad -> KEEP\nAD -> DISCARD", ids)[0] == (Verdict("Ad", "KEEP"), Verdict("AD", "DISCARD"))
    assert parse("ad -> KEEP", ids) == ((), ("1 decision for an id not asked about",), ())


def test_what_cannot_be_read_gives_no_decision() -> None:
    for text in [
        "",
        "I cannot help with that.",
        '{"decisions": [{"chunk_id": "sd-api:CreateCampaign", "action": "KEEP"}, {"chu',
        'Sure:\n{\n"sd-api:CreateCampaign": "KEEP",\n"dsp-api:GetAud',
        "| sd-api:CreateCampaign | KEEP | DISCARD |",
        "| sd-api:CreateCampaign | Keep what is sent |",
        "[[[[",
        "[" * 100_000,
        '{"a":' * 100_000,
    ]:
        assert parse(text, IDS)[0] == (), text[:99]


HEAVY = {
    "objects": '{"sd-api:CreateCampaign": "KEEP"}\n',
    "values": '["a"]',
    "arrows": "-> keep a ",
    "cells": "|a|KEEP",
    "lines": "a: KEEP\n",
    "dots": "sd-api:CreateCampaign -> KEEP....",
    "marks": "<think>",
    "unclear": "KEEP sd-api:ErrorCodes ",
}


@pytest.mark.slow
@pytest.mark.parametrize("piece", HEAVY.values(), ids=HEAVY)
def test_reading_takes_time_in_proportion(piece: str) -> None:
    """Twice the maximum that is read of an answer; in quadratic time it would take many seconds."""
    for head in ("", "x\n", "x -> ", "{"):
        with ends_soon():
            parse(head + piece * (2 * MAX_BYTES // len(piece)), IDS)


def test_remarks_are_short_and_few() -> None:
    asked = [f"{n}{'x' * 500}\x1b[31m" for n in range(100)]
    text = "\n".join(f"{i} -> PERHAPS\nunknown{i} -> KEEP" for i in asked)
    _, remarks, *_ = parse(text, asked)
    assert len(remarks) == MAX_REMARKS + 2
    assert remarks[-2:] == ("and 80 more", "100 decisions for ids not asked about")
    assert all(len(r) < 100 and r.isprintable() for r in remarks)


def test_remarks_quote_nothing_of_an_answer_since_it_may_name_anything() -> None:
    text = f"secret -> KEEP\n{IDS[0]} -> see secret\n{IDS[1]} -> KEEP, or DISCARD as secret is"
    _, remarks, *_ = parse(text, IDS)
    assert len(remarks) == 3
    assert "secret" not in repr(remarks)


@given(st.text(alphabet="ab:-> |\n{}[]\"'`KEPDISCARX_135,.*→", max_size=200))
def test_whatever_the_judge_says_only_ids_asked_about_get_decisions(text: str) -> None:
    asked = ("a", "b", "a:b")
    verdicts, *_ = parse(text, asked)
    ids = [v.chunk_id for v in verdicts]
    assert set(ids) <= set(asked)
    assert len(ids) == len(set(ids))
    assert all(v.depth in ((1, 3, 5) if v.action == "EXPAND" else (0,)) for v in verdicts)


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=12).filter(lambda s: s.strip() == s and s.isprintable()),
        st.sampled_from(ACTIONS),
        min_size=1,
        max_size=6,
    )
)
@settings(max_examples=40)
def test_structured_output_of_any_ids_is_read_back(actions: dict[str, str]) -> None:
    items = [{"chunk_id": i, "action": a} for i, a in actions.items()]
    verdicts, remarks, *_ = parse(json.dumps({"decisions": items}), tuple(actions))
    read = {v.chunk_id: f"EXPAND_{v.depth}" if v.depth else v.action for v in verdicts}
    assert (read, remarks) == (actions, ())
