"""What the linter finds, and the rule that it proposes instead."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragfilter.ingest import bundled
from ragfilter.model import Chunk
from ragfilter.rules.lint import Finding, analyse, check_rule, fix_rules, rules_of
from ragfilter.rules.match import check
from ragfilter.rules.rule import Rule, read_text, texts_of
from ragfilter.rules.values import Value, spellings

MATRIX = "I.A. ATTACK MATRIX FOR CLERICS, DRUIDS AND MONKS - Opponent Armor Class 6"
CLERICS = "Attack matrix for clerics - Opponent Armor Class 6"
ARMOR = ["armor class 6", "armor class of 6", "ac 6", "a.c. 6"]
THREE_GROUPS = [["cleric", "clerics"], ["druid", "druids"], ["monk", "monks"], ARMOR]
SIX = list(spellings(Value(("armor", "class"), 6), ("armor class", "ac")))
FOUR = list(spellings(Value(("armor", "class"), 4), ("armor class", "ac")))


def text_of(rule: Any) -> str:
    return rule if isinstance(rule, str) else json.dumps(rule, ensure_ascii=False)


def found(rule: Any, title: str = "") -> list[tuple[str, str, Any]]:
    """Kind, place and fix of every finding about a rule; a fix without terms is ``{}``."""
    findings = check_rule(read_text(text_of(rule)), title)
    return [(f.kind, f.place, f.fix and json.loads(f.fix.text)) for f in findings]


def catalogue(rules: Mapping[str, Any], titles: Mapping[str, str] | None = None, text: str = "") -> dict[str, Chunk]:
    """Chunks with these rules, texts or values."""
    titles = titles or {}
    return {i: Chunk(i, text, titles.get(i, ""), rule=text_of(rule)) for i, rule in rules.items()}


def fixed(chunks: Mapping[str, Chunk], *kinds: str) -> dict[str, Any]:
    fixes = texts_of(fix_rules(chunks, rules_of(chunks.values()), kinds))
    return {i: text and json.loads(text) for i, text in fixes.items()}


def test_the_three_group_mistake_is_found_and_its_merge_serves_a_cleric() -> None:
    for title in [MATRIX, ""]:
        rule = read_text(text_of({"contain_one_of": THREE_GROUPS}))
        (finding,) = check_rule(rule, title)
        assert (finding.kind, finding.place, finding.severity) == ("spread", "contain_one_of[0]", "warning"), title
        assert isinstance(rule, Rule), title
        assert finding.fix is not None, title
        assert finding.fix.value["contain_one_of"] == (
            ("cleric", "clerics", "druid", "druids", "monk", "monks"),
            tuple(ARMOR),
        ), title
        query = "what does a cleric need against ac 6"
        assert (check(rule, query).passes, check(finding.fix, query).passes) == (False, True), title


def test_spread_alternatives() -> None:
    for title, groups, merged in [
        # Two alternatives are only recognised by the title's list.
        (
            "ATTACK MATRIX FOR MAGIC-USERS AND ILLUSIONISTS",
            [["magic-user"], ["ac 6"], ["illusionist"]],
            [["magic-user", "illusionist"], ["ac 6"]],
        ),
        ("Thieves/Assassins: armor", [["thief"], ["assassin"]], [["thief", "assassin"]]),
        # No list, and fewer than three single words: meant together.
        ("Encounters, temperate forest", [["temperate"], ["forest"]], None),
        # One group for the whole list is right.
        ("Clerics, druids and monks", [["cleric", "druid", "monk"], ["ac 6"]], None),
        # A word before the first thing in the list is not one of the things.
        ("Attack matrix for clerics and druids", [["attack"], ["druid"]], None),
        # A comma alone may set apart, and what ends in a number is not a thing in a list.
        ("Vampire, bat form", [["vampire"], ["bat form"]], None),
        # Three words of one phrase are its name, also with a suffix.
        ("Adult Black Dragon - Actions", [["dragon", "dragons"], ["adult"], ["black"]], None),
        ("Dragons", [["dragon"], ["adult"], ["black"]], [["dragon", "adult", "black"]]),
        # Two groups that hold spellings of one term.
        ("", [["cleric"], ["armor class 6"], ["AC 6"]], [["cleric"], ["armor class 6", "AC 6"]]),
        ("", [["cleric"], ["clerics"], ["ac 6"]], [["cleric", "clerics"], ["ac 6"]]),
        ("", [["7th level"], ["level 7"], ["level 6"]], [["7th level", "level 7"], ["level 6"]]),
        ("", [["armor class 6"], ["ac 7"]], None),
        # Numbers are not plain words.
        ("", [["level 7"], ["ac 6"], ["10"]], None),
    ]:
        spread = [fix for kind, _, fix in found({"contain_one_of": groups}, title) if kind == "spread"]
        assert spread == ([] if merged is None else [{"contain_one_of": merged}])


FINDINGS: list[tuple[Any, list[tuple[str, str, Any]]]] = [
    ('{"contain": 1', [("unreadable", "line 1, column 14", None)]),
    ({"contain_one_of": [["a"], []]}, [("unreadable", "contain_one_of[1]", None)]),
    ({}, [("empty", "", {})]),
    ({"contain_one_of": [["cleric", "clerics"]], "contain_all_of": ["10", "13"]}, []),
    # Twice, after normalisation.
    (
        {"contain_one_of": [["Armor  Class", "armor class"]]},
        [("duplicate", "contain_one_of[0][1]", {"contain_one_of": [["Armor  Class"]]})],
    ),
    ({"contain": "x", "contain_all_of": ["X"]}, [("duplicate", "contain_all_of[0]", {"contain": "x"})]),
    # A shorter alternative decides; in word mode only if it ends at a token edge.
    (
        {"contain_one_of": [["cleric", "clerics"]], "match": "substring"},
        [("covered", "contain_one_of[0][1]", {"contain_one_of": [["cleric"]], "match": "substring"})],
    ),
    (
        {"contain_one_of": [["psionic blast", "psionic"]]},
        [("covered", "contain_one_of[0][0]", {"contain_one_of": [["psionic"]]})],
    ),
    # A longer required term decides.
    (
        {"contain": "armor class", "contain_all_of": ["class"]},
        [("covered", "contain_all_of[0]", {"contain": "armor class"})],
    ),
    # A longer term elsewhere decides about a whole group; of two equal groups, the first.
    (
        {"contain_one_of": [["troll", "trolls"]], "contain": "troll king"},
        [("covered", "contain_one_of[0]", {"contain": "troll king"})],
    ),
    (
        {"contain_one_of": [["troll king", "ice troll"], ["troll", "ogre"]]},
        [("covered", "contain_one_of[1]", {"contain_one_of": [["troll king", "ice troll"]]})],
    ),
    (
        {"contain_one_of": [["troll", "ogre"], ["ogre", "troll"]]},
        [("covered", "contain_one_of[1]", {"contain_one_of": [["troll", "ogre"]]})],
    ),
    ({"contain_one_of": [["troll", "ogre"], ["ice troll", "lich"]]}, []),
    # Required and forbidden. Nothing is fixed in a rule that no query can meet.
    ({"contain_all_of": ["Undead king"], "contain_none_of": ["undead"]}, [("impossible", "contain_all_of[0]", None)]),
    ({"contain_all_of": ["undeadly"], "contain_none_of": ["undead"]}, []),
    ({"contain_one_of": [["undead king"]], "contain_none_of": ["undead"]}, [("impossible", "contain_one_of[0]", None)]),
    (
        {"contain_one_of": [["undead king", "lich"]], "contain_none_of": ["undead"]},
        [("dead", "contain_one_of[0][0]", {"contain_one_of": [["lich"]], "contain_none_of": ["undead"]})],
    ),
    # Substrings that match too much.
    (
        {"contain_one_of": [["cleric"], ["armor class 1"]], "match": "substring"},
        [("loose", "contain_one_of[1][0]", {"contain_one_of": [["cleric"], ["armor class 1"]]})],
    ),
    ({"contain": "intelligence", "match": "substring"}, []),
    ({"contain": "戦士"}, [("no_edges", "contain", {"contain": "戦士", "match": "substring"})]),
    # Neither mode suits both terms, so each finding leaves the choice to a person.
    ({"contain_one_of": [["戦士"], ["level 3"]], "match": "substring"}, [("loose", "contain_one_of[1][0]", None)]),
    ({"contain_one_of": [["戦士"], ["level 3"]]}, [("no_edges", "contain_one_of[0][0]", None)]),
    # A number alone, unless another part says what is counted.
    ({"contain_one_of": [["six", "ac 6"]]}, [("bare", "contain_one_of[0][0]", None)]),
    ({"contain": "psionic", "contain_all_of": ["10", "13"]}, []),
    ({"contain_one_of": [["ac -6"]], "contain_none_of": ["7"]}, []),
    ({"contain_one_of": [["7th level", "iv", "second level"]]}, []),
    ({"contain_one_of": [["2018", "2.1.3"]]}, []),
    ({"contain_one_of": [["999", "dragon"]]}, [("bare", "contain_one_of[0][0]", None)]),
    # Terms of every question.
    (
        {"contain_one_of": [["the", "cleric"]]},
        [("everywhere", "contain_one_of[0][0]", {"contain_one_of": [["cleric"]]})],
    ),
    (
        {"contain_one_of": [["cleric"], ["what is"]]},
        [("everywhere", "contain_one_of[1][0]", {"contain_one_of": [["cleric"]]})],
    ),
    ({"contain_all_of": ["cleric", "how"]}, [("everywhere", "contain_all_of[1]", {"contain_all_of": ["cleric"]})]),
    ({"contain_one_of": [["???", "dragon"]]}, []),
    # A rule that asks for nothing is not a fix.
    ({"contain_none_of": ["the"]}, [("everywhere", "contain_none_of[0]", None)]),
    # The rule itself says what else the value is called.
    (
        {"contain_one_of": [["armor class 6", "ac 6"]]},
        [("spelling", "contain_one_of[0]", {"contain_one_of": [["armor class 6", "ac 6", "armor class of 6"]]})],
    ),
    ({"contain_one_of": [["armor class 6"]]}, []),
    ({"contain_one_of": [["ac 6"]]}, []),
]


def test_findings() -> None:
    for rule, expected in FINDINGS:
        assert found(rule) == expected


AC_6 = ["ac 6", "armor class 6", "armor class of 6"]


def test_findings_that_the_title_shows() -> None:
    for title, rule, expected in [
        (CLERICS, {"contain_one_of": [["cleric"], ["6"]]}, ("bare", {"contain_one_of": [["cleric"], SIX]})),
        (CLERICS, {"contain_one_of": [["ac 6"]]}, ("spelling", {"contain_one_of": [AC_6]})),
        (
            CLERICS,
            {"contain_one_of": [["cleric", "Armor  Class 6"]]},
            ("spelling", {"contain_one_of": [["cleric", "Armor  Class 6", "armor class of 6", "ac 6"]]}),
        ),
        # A required spelling becomes a group.
        (CLERICS, {"contain": "ac 6"}, ("spelling", {"contain_one_of": [AC_6]})),
        (CLERICS, {"contain_one_of": [["armor class 6", "armor class of 6", "AC 6"]]}, None),
        ("Armor Class 7", {"contain_one_of": [["ac 6"]]}, None),
        # The year needs no words next to it.
        ("Price list 2022", {"contain_one_of": [["price list 2022"]]}, None),
    ]:
        assert [(kind, fix) for kind, _, fix in found(rule, title)] == ([expected] if expected else [])


def test_a_large_number_may_be_asked_for_by_itself() -> None:
    for number, sure in [("62", True), ("625", False)]:
        (finding,) = analyse(catalogue({"c": {"contain_one_of": [[number]]}}, {"c": f"Bosch PowerTube {number}"}))
        assert (finding.kind, finding.fix is None, finding.sure) == ("bare", False, sure)


def test_a_value_that_the_text_alone_names() -> None:
    rules = {"c": {"contain": "ac 6"}}
    assert analyse(catalogue(rules, {"c": "To hit"})) == []
    chunks = catalogue(rules, {"c": "To hit"}, "Hits whatever has armor class 6 or less.")
    (finding,) = analyse(chunks)
    assert finding.kind == "spelling"
    assert fixed(chunks) == {"c": {"contain_one_of": [AC_6]}}


def test_chunks_with_the_same_rule_share_a_finding_and_all_stand_in_the_order_of_rules() -> None:
    rules = {"b": "{", "a": {"contain": "x"}, "c": {}, "d": "{"}
    findings = analyse(catalogue(rules))
    assert [(f.kind, f.chunk_ids) for f in findings] == [("unreadable", ("b", "d")), ("empty", ("c",))]
    assert findings[1].fixed is None
    assert analyse(catalogue(rules), {"a": read_text("{}")})[0].chunk_ids == ("a",)


def test_the_fix_of_a_shared_rule_asks_for_the_chunks_own_value() -> None:
    for title, rule, expected in [
        ("Goblins, armor class {}", {"contain": "goblin"}, {"contain": "goblin", "contain_one_of": [FOUR]}),
        # For a sibling that has a different rule by now, in every spelling, also as a required term.
        (
            "Goblins, armor class {}",
            {"contain_one_of": [["goblin"], ["armor class 3", "ac 3"]]},
            {"contain_one_of": [["goblin"], FOUR]},
        ),
        (
            "Goblins, armor class {}",
            {"contain": "goblin", "contain_all_of": ["ac -3"]},
            {"contain": "goblin", "contain_one_of": [FOUR]},
        ),
        # A number that needs no words gets none, nor an acronym.
        ("Price list 202{}", {"contain": "price"}, {"contain": "price", "contain_one_of": [["2024"]]}),
    ]:
        titles = {f"c{n}": title.format(n) for n in (4, 5)}
        (finding, *_) = analyse(catalogue(dict.fromkeys(titles, text_of(rule)), titles))
        assert (finding.chunk_ids, finding.kind, finding.sure) == (("c4",), "shared", False), title
        assert finding.fix == read_text(text_of(expected))


TERM = st.text("ab 1", min_size=1, max_size=3).filter(str.strip)
RULES = st.builds(
    Rule,
    contain_one_of=st.lists(st.lists(TERM, min_size=1, max_size=3), max_size=3),
    contain=st.none() | TERM,
    contain_all_of=st.lists(TERM, max_size=3),
    contain_none_of=st.lists(TERM, max_size=2),
    match=st.sampled_from(("word", "substring")),
)


@given(RULES, st.text("ab 1", max_size=12))
@settings(max_examples=40)
def test_findings_keep_their_word(rule: Rule, query: str) -> None:
    findings = check_rule(rule)
    impossible = any(finding.kind == "impossible" for finding in findings)
    for finding in findings:
        if impossible:
            assert finding.fix is None
        elif finding.kind in ("duplicate", "covered", "dead"):
            assert finding.fix is not None
            assert check(rule, query).passes is check(finding.fix, query).passes
        if finding.kind == "impossible":
            assert not check(rule, query).passes
        if finding.fix is not None:
            assert read_text(finding.fix.text) == finding.fix
            again = {(other.kind, other.place) for other in check_rule(finding.fix)}
            fewer = len(finding.fix.terms) < len(rule.terms)
            assert fewer or (finding.kind, finding.place) not in again or finding.kind == "empty"


def test_the_mode_of_a_rule_is_never_changed_unasked() -> None:
    # "regenerat" stands for regeneration and regenerates, which word mode would not find.
    stems = {"contain_one_of": [["regenerat"], ["1st level"]], "match": "substring"}
    chunks = catalogue({"a": stems, "b": {"contain_one_of": [["攻撃", "port"]]}})
    assert fixed(chunks) == {}
    assert fixed(catalogue({"a": stems}), "loose") == {"a": {"contain_one_of": [["regenerat"], ["1st level"]]}}


def test_fixes_know_the_rules_that_are_not_fixed() -> None:
    six, seven = (Chunk(f"ac-{n}", title=f"Clerics, AC {n}", rule='{"contain":"cleric"}') for n in (6, 7))
    rules = rules_of([seven])
    assert fix_rules({"ac-7": seven}, rules) == {}
    fixes = fix_rules({"ac-6": six, "ac-7": seven}, rules, ["shared"])
    assert list(fixes) == ["ac-7"]
    assert fixes["ac-7"] is not None
    assert '"ac 7"' in fixes["ac-7"].text


def test_fixing_ends_in_rules_without_findings() -> None:
    rules = {
        "a": {"contain_one_of": [["the", "cleric", "cleric"], ["6"]]},
        "b": {"contain_one_of": [["cleric"], ["druid"], ["monk"]]},
        "c": {"contains": 1},
        "d": {"contain": "cleric"},
        "e": {},
    }
    chunks = catalogue(rules, {"a": CLERICS})
    fixes = fixed(chunks)
    assert fixes == {"a": {"contain_one_of": [["cleric"], SIX]}, "e": None}
    assert fixed(catalogue({"a": fixes["a"]}, {"a": CLERICS})) == {}
    # Three groups of one word each may be meant together: they are only merged on request.
    merged = {"contain_one_of": [["cleric", "druid", "monk"]]}
    assert fixed(chunks, "spread") == {"b": merged}
    assert set(fixed(catalogue(rules, {"b": "Clerics, druids and monks"}))) == {"a", "b", "e"}


def test_messages(snapshot: Any) -> None:
    rules = [rule for rule, _ in FINDINGS]
    rules.append({"contain_one_of": THREE_GROUPS})
    lines: dict[str, Finding] = {}
    for rule in rules:
        for finding in check_rule(read_text(text_of(rule))):
            lines.setdefault(finding.kind, finding)
    assert {kind: f"{f.severity}: {f.message}" for kind, f in lines.items()} == snapshot


@pytest.mark.slow
def test_the_demo_has_no_such_problem() -> None:
    records = [record for record in bundled.demo_rows() if record.get("query_must")]
    chunks = {r["id"]: Chunk(r["id"], r["text"], r["title"], rule=text_of(r["query_must"])) for r in records}
    kinds = {finding.kind for finding in analyse(chunks)}
    assert not kinds & {"bare", "everywhere", "shared", "spelling"}
