"""What lint finds, and the rule that it proposes instead."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragfilter.rules.lint import Finding, lint
from ragfilter.rules.match import RuleBook
from ragfilter.rules.mend import mend
from ragfilter.rules.rule import Rule, canonical, parse, terms

MATRIX = "I.A. ATTACK MATRIX FOR CLERICS, DRUIDS AND MONKS - Opponent Armor Class 6"
ARMOR = ["armor class 6", "armor class of 6", "ac 6", "a.c. 6"]
THREE_GROUPS = [["cleric", "clerics"], ["druid", "druids"], ["monk", "monks"], ARMOR]


def found(rule: Any, title: str = "") -> list[tuple[str, str, str | None]]:
    text = rule if isinstance(rule, str) else json.dumps(rule)
    findings = lint({"c": text}, {"c": title})
    assert {finding.chunk_id for finding in findings} <= {"c"}
    return [(finding.kind, finding.place, finding.proposal) for finding in findings]


@pytest.mark.parametrize("title", [MATRIX, ""])
def test_the_three_group_mistake_is_found_and_its_merge_serves_a_cleric(title: str) -> None:
    merged = json.dumps(
        {"contain_one_of": [["cleric", "clerics", "druid", "druids", "monk", "monks"], ARMOR]},
        separators=(",", ":"),
    )
    rule = {"contain_one_of": THREE_GROUPS}
    assert found(rule, title) == [("spread", "contain_one_of[0]", merged)]
    scan = RuleBook([merged]).scan("what does a cleric need against ac 6")
    assert scan.passes(merged)
    assert not scan.passes(json.dumps(rule))


@pytest.mark.parametrize(
    ("title", "groups", "merged"),
    [
        # Two alternatives are only recognised by the title's list.
        (
            "ATTACK MATRIX FOR MAGIC-USERS AND ILLUSIONISTS",
            [["magic-user"], ["ac 6"], ["illusionist"]],
            [["magic-user", "illusionist"], ["ac 6"]],
        ),
        (
            "MATRIX FOR FIGHTERS, PALADINS, AND 0 LEVEL HALFLINGS AND HUMANS*",
            [["fighter", "paladin"], ["0 level halfling"], ["ac 6"]],
            [["fighter", "paladin", "0 level halfling"], ["ac 6"]],
        ),
        ("Thieves/Assassins: armor", [["thief"], ["assassin"]], [["thief", "assassin"]]),
        # No list, and fewer than three single words: meant together.
        ("Encounters, temperate forest", [["temperate"], ["forest"]], None),
        ("Encounters", [["temperate"], ["forest"]], None),
        # One group for the whole list is right.
        ("Clerics, druids and monks", [["cleric", "druid", "monk"], ["ac 6"]], None),
        # A word before the first thing in the list is not one of the things.
        ("Attack matrix for clerics and druids", [["attack"], ["druid"]], None),
        ("Intelligence/Wisdom 10-13", [["psionic"], ["int", "intelligence", "wisdom"]], None),
        # A comma alone may set apart, and what ends in a number is not a thing in a list.
        ("Vampire, bat form", [["vampire"], ["bat form"]], None),
        ("Goblins, orcs and armor class 3", [["goblin"], ["armor class 3"]], None),
        # Three words of one phrase are its name, also with a suffix.
        ("Adult Black Dragon - Actions", [["dragon", "dragons"], ["adult"], ["black"]], None),
        ("Dragons", [["dragon"], ["adult"], ["black"]], [["dragon", "adult", "black"]]),
        # Numbers are not plain words.
        ("", [["level 7"], ["ac 6"], ["10"]], None),
    ],
)
def test_spread_alternatives(
    title: str, groups: list[list[str]], merged: list[list[str]] | None
) -> None:
    spread = [row for row in found({"contain_one_of": groups}, title) if row[0] == "spread"]
    if merged is None:
        assert spread == []
    else:
        (row,) = spread
        assert row[2] == json.dumps({"contain_one_of": merged}, separators=(",", ":"))


def test_three_words_that_must_all_stand_there_may_be_alternatives() -> None:
    (finding,) = lint({"c": '{"contain_all_of":["cleric","druid","monk"]}'})
    assert (finding.kind, finding.sure) == ("spread", False)
    assert finding.proposal == '{"contain_one_of":[["cleric","druid","monk"]]}'


def test_nothing_is_mended_in_a_rule_that_nothing_can_meet() -> None:
    rule = {"contain_one_of": [["dragon", "red dragon"]], "contain_none_of": ["dragon"]}
    assert {(kind, better) for kind, _, better in found(rule)} == {
        ("impossible", None), ("covered", None),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ('{"contain": 1', [("unreadable", "line 1, column 14", None)]),
        ({"contain_one_of": [["a"], []]}, [("unreadable", "contain_one_of[1]", None)]),
        ({}, [("empty", "", "")]),
        ({"contain_one_of": [["cleric", "clerics"]], "contain_all_of": ["10", "13"]}, []),
        # Twice, after normalisation.
        (
            {"contain_one_of": [["Armor  Class", "armor class"]]},
            [("duplicate", "contain_one_of[0][1]", '{"contain_one_of":[["Armor  Class"]]}')],
        ),
        (
            {"contain": "x", "contain_all_of": ["X"]},
            [("duplicate", "contain_all_of[0]", '{"contain":"x"}')],
        ),
        (
            {"contain_one_of": [["x", "y"], ["Y", "X"]]},
            [("duplicate", "contain_one_of[1]", '{"contain_one_of":[["x","y"]]}')],
        ),
        # Every question about a cat also meets the second group.
        (
            {"contain_one_of": [["cat"], ["cat", "dog"]]},
            [("covered", "contain_one_of[1]", '{"contain_one_of":[["cat"]]}')],
        ),
        (
            {"contain_one_of": [["dog", "cat"]], "contain_all_of": ["big dog"]},
            [("covered", "contain_one_of[0]", '{"contain_all_of":["big dog"]}')],
        ),
        # A shorter alternative decides; in word mode only if it ends at a token edge.
        (
            {"contain_one_of": [["cleric", "clerics"]], "match": "substring"},
            [
                (
                    "covered",
                    "contain_one_of[0][1]",
                    '{"contain_one_of":[["cleric"]],"match":"substring"}',
                )
            ],
        ),
        (
            {"contain_one_of": [["psionic blast", "psionic"]]},
            [("covered", "contain_one_of[0][0]", '{"contain_one_of":[["psionic"]]}')],
        ),
        # A longer required term decides.
        (
            {"contain": "armor class", "contain_all_of": ["class"]},
            [("covered", "contain_all_of[0]", '{"contain":"armor class"}')],
        ),
        (
            {"contain_none_of": ["undead king", "undead"]},
            [("covered", "contain_none_of[0]", '{"contain_none_of":["undead"]}')],
        ),
        # Required and forbidden.
        (
            {"contain_all_of": ["Undead king"], "contain_none_of": ["undead"]},
            [("impossible", "contain_all_of[0]", None)],
        ),
        ({"contain": "x", "contain_none_of": ["X"]}, [("impossible", "contain", None)]),
        ({"contain_all_of": ["undeadly"], "contain_none_of": ["undead"]}, []),
        (
            {"contain_one_of": [["undead king"]], "contain_none_of": ["undead"]},
            [("impossible", "contain_one_of[0]", None)],
        ),
        (
            {"contain_one_of": [["undead king", "lich"]], "contain_none_of": ["undead"]},
            [
                (
                    "dead",
                    "contain_one_of[0][0]",
                    '{"contain_one_of":[["lich"]],"contain_none_of":["undead"]}',
                )
            ],
        ),
        # Lists pasted as one term.
        (
            {"contain_one_of": [["cleric, druid; monk", "priest"], ["level 7"]]},
            [
                (
                    "list",
                    "contain_one_of[0][0]",
                    '{"contain_one_of":[["cleric","druid","monk","priest"],["level 7"]]}',
                )
            ],
        ),
        (
            {"contain_one_of": [["cleric,"], ["armor class 6."]]},
            [
                (
                    "list",
                    "contain_one_of[0][0]",
                    '{"contain_one_of":[["cleric"],["armor class 6."]]}',
                ),
                (
                    "list",
                    "contain_one_of[1][0]",
                    '{"contain_one_of":[["cleric,"],["armor class 6"]]}',
                ),
            ],
        ),
        (
            {"contain_none_of": ["dog、cat、owl", "cat"]},
            [
                ("list", "contain_none_of[0]", '{"contain_none_of":["dog","cat","owl"]}'),
                ("covered", "contain_none_of[0]", '{"contain_none_of":["cat"]}'),
            ],
        ),
        ({"contain": "cleric,"}, [("list", "contain", '{"contain":"cleric"}')]),
        ({"contain": "cleric, druid, monk"}, [("list", "contain", None)]),
        # Names and numbers that hold a comma or end in a full stop.
        ({"contain_one_of": [["10,000 gold pieces", "a.c. 6", "vs.", "August 5, 2020"]]}, []),
        ({"contain_one_of": [["Smith, John", "New York, NY", "N,N-dimethylformamide"]]}, []),
        # Substrings that match too much.
        (
            {"contain_one_of": [["cleric"], ["armor class 1"]], "match": "substring"},
            [
                (
                    "loose",
                    "contain_one_of[1][0]",
                    '{"contain_one_of":[["cleric"],["armor class 1"]]}',
                )
            ],
        ),
        (
            {"contain": "int", "match": "substring"},
            [("loose", "contain", '{"contain":"int"}')],
        ),
        ({"contain": "intelligence", "match": "substring"}, []),
        (
            {"contain": "戦士"},
            [("no_edges", "contain", '{"contain":"戦士","match":"substring"}')],
        ),
        ({"contain": "戦士", "match": "substring"}, []),
        # Neither mode suits both terms, so each finding leaves the choice to a person.
        (
            {"contain_one_of": [["戦士"], ["level 3"]], "match": "substring"},
            [("loose", "contain_one_of[1][0]", None)],
        ),
        (
            {"contain_one_of": [["戦士"], ["level 3"]]},
            [("no_edges", "contain_one_of[0][0]", None)],
        ),
    ],
)
def test_findings(rule: Any, expected: list[tuple[str, str, str | None]]) -> None:
    assert found(rule) == expected


def test_required_terms_that_the_title_lists_are_alternatives() -> None:
    rule = {"contain_all_of": ["cleric", "druid", "armor class 7"]}
    merged = '{"contain_one_of":[["cleric","druid"]],"contain_all_of":["armor class 7"]}'
    assert found(rule, MATRIX) == [("spread", "contain_all_of[0]", merged)]
    assert found(rule) == []


def test_a_finding_says_in_words_what_is_wrong() -> None:
    (finding,) = lint({"m": json.dumps({"contain_one_of": THREE_GROUPS})})
    assert finding == Finding(
        "m",
        "spread",
        "contain_one_of[0]",
        "As written, a question must mention “cleric”, “druid” and “monk”. "
        "If any one of them is enough, put them in one group.",
        finding.proposal,
        sure=False,
    )
    assert finding.severity == "warning"


def test_findings_stand_in_the_order_of_the_chunks() -> None:
    rules = {"b": "{", "a": '{"contain": "x"}', "c": "{}", "d": "{"}
    assert [finding.chunk_id for finding in lint(rules)] == ["b", "c", "d"]


TERM = st.text("ab 1", min_size=1, max_size=3).filter(str.strip)
RULES = st.builds(
    Rule,
    contain_one_of=st.lists(st.lists(TERM, min_size=1, max_size=3).map(tuple), max_size=3).map(
        tuple
    ),
    contain=st.none() | TERM,
    contain_all_of=st.lists(TERM, max_size=3).map(tuple),
    contain_none_of=st.lists(TERM, max_size=2).map(tuple),
    match=st.sampled_from(("word", "substring")),
)


@given(RULES, st.text("ab 1", max_size=12))
def test_findings_keep_their_word(rule: Rule, query: str) -> None:
    text = canonical(rule)
    findings = lint({"c": text})
    impossible = any(finding.kind == "impossible" for finding in findings)
    for finding in findings:
        if impossible:
            assert finding.proposal is None
        elif finding.kind in ("duplicate", "covered", "dead"):
            assert finding.proposal is not None
            scan = RuleBook([text, finding.proposal]).scan(query)
            assert scan.passes(text) is scan.passes(finding.proposal)
        if finding.kind == "impossible":
            assert not RuleBook([text]).scan(query).passes(text)
        if finding.proposal:
            assert canonical(parse(finding.proposal)) == finding.proposal
            kinds = {again.kind for again in lint({"c": finding.proposal})}
            fewer = len(list(terms(parse(finding.proposal)))) < len(list(terms(rule)))
            assert fewer or finding.kind not in kinds


def test_the_mode_of_a_rule_is_never_changed_unasked() -> None:
    # "regenerat" stands for regeneration and regenerates, which word mode would not find.
    stems = '{"contain_one_of":[["regenerat"],["1st level"]],"match":"substring"}'
    words = '{"contain_one_of":[["regenerat"],["1st level"]]}'
    assert mend({"a": stems, "b": '{"contain_one_of":[["攻撃","port"]]}'}, {}) == {}
    assert mend({"a": stems}, {}, ["loose"]) == {"a": words}
