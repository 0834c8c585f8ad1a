"""A rule's text: what is accepted, what is refused and where, and the canonical form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragfilter.errors import RuleError
from ragfilter.rules.rule import Rule, parse, starter
from ragfilter.text.normalise import normalise

TERM = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=8).filter(normalise)


def rules_of(term: st.SearchStrategy[str]) -> st.SearchStrategy[Rule]:
    """Rules of such terms."""
    terms = st.lists(term, max_size=4).map(tuple)
    group = st.lists(term, min_size=1, max_size=3).map(tuple)
    return st.builds(
        Rule,
        contain_one_of=st.lists(group, max_size=3).map(tuple),
        contain=st.none() | term,
        contain_all_of=terms,
        contain_none_of=terms,
        match=st.sampled_from(("word", "substring")),
    )


RULES = rules_of(TERM)


def test_every_part_is_read() -> None:
    text = """{"contain_one_of": [["cleric", "clerics"], ["armor class 6"]],
      "contain_all_of": ["10", "13"], "contain": "psionic", "contain_none_of": ["undead"],
      "match": "substring"}"""
    assert parse(text) == Rule(
        contain_one_of=(("cleric", "clerics"), ("armor class 6",)),
        contain="psionic",
        contain_all_of=("10", "13"),
        contain_none_of=("undead",),
        match="substring",
    )


def test_a_rule_pasted_from_a_record_is_read() -> None:
    assert parse('{"query_must": {"contain": "troll"}}') == Rule(contain="troll")
    assert parse('{"query_must": {"contain": "troll"}}').text == '{"contain":"troll"}'


def test_contain_takes_a_number_as_the_source_does_and_replaces_half_a_character() -> None:
    for value, term in [("7", "7"), ("-6", "-6"), ("7.50", "7.5"), ("1" * 400, "1" * 400), ('"a\\ud800"', "a\ufffd")]:
        assert parse(f'{{"contain": {value}}}').contain == term


REFUSED: list[tuple[str, Any, str, str]] = [
    # name, rule (text, or a value written as JSON), place, a part of message and remedy
    ("no JSON", '{"contain": }', "line 1, column 13", "not valid JSON"),
    ("no JSON, line 2", '{"contain": "a",\n "match" "word"}', "line 2, column 10", "comma"),
    ("NaN", '{"contain": NaN}', "contain", "one term"),
    ("infinite", '{"contain": 1e999}', "contain", "one term"),
    ("too deep", "[" * 60_000, "", "nested too deeply"),
    ("a list", [], "", "a list"),
    ("unknown key", {"contian_all_of": ["a"]}, "contian_all_of", "Did you mean contain_all_of?"),
    ("strange key", {"zzz": 1}, "zzz", "Known keys: contain_one_of"),
    ("whole metadata", {"query_must": {}, "contain": "a"}, "query_must", "only what is inside"),
    ("twice", '{"contain": "a", "contain": "b"}', "contain", "appears 2 times"),
    ("flat group", {"contain_one_of": ["a", "b"]}, "contain_one_of[0]", "brackets of their own"),
    ("no groups", {"contain_one_of": "a"}, "contain_one_of", "a list of groups"),
    ("empty group", {"contain_one_of": [["a"], []]}, "contain_one_of[1]", "the group is empty"),
    ("empty term", {"contain_one_of": [["a"], ["b", ""]]}, "contain_one_of[1][1]", "is empty"),
    ("invisible term", {"contain_none_of": ["\u200b"]}, "contain_none_of[0]", "is empty"),
    ("number", {"contain_one_of": [[6]]}, "contain_one_of[0][0]", "Write it in quotes"),
    ("true", {"contain_all_of": ["a", True]}, "contain_all_of[1]", "must be text"),
    ("null part", {"contain_all_of": None}, "contain_all_of", "a list of terms"),
    ("contain list", {"contain": ["a"]}, "contain", "use contain_all_of"),
    ("contain blank", {"contain": ""}, "contain", "is empty"),
    ("half in a key", '{"contain\ud800": "a"}', "contain\ufffd", "unknown key"),
    ("match", {"match": "regex"}, "match", '"word" or "substring"'),
    ("1,001 terms", {"contain_all_of": ["a"] * 1001}, "rule", "1,001 terms; the limit is 1,000"),
    ("too large", {"contain": "a" * 65_536}, "rule", "65,551 bytes; the limit is 65,536"),
    ("long number", '{"contain": ' + "1" * 5000 + "}", "", "too long"),
]


@pytest.mark.parametrize(("rule", "place", "says"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_is_refused_says_where_and_what_to_do(rule: Any, place: str, says: str) -> None:
    text = rule if isinstance(rule, str) else json.dumps(rule)
    with pytest.raises(RuleError) as caught:
        parse(text)
    assert caught.value.place == place
    assert says in str(caught.value)
    assert caught.value.remedy


def test_limits_are_inclusive() -> None:
    assert len(parse(json.dumps({"contain_all_of": ["a"] * 1000})).contain_all_of) == 1000
    text = json.dumps({"contain": "a" * 65_521})
    assert len(text) == 65_536
    assert parse(text).contain == "a" * 65_521


@given(RULES)
@settings(max_examples=40)
def test_canonical_and_pretty_are_read_back_as_the_same_rule(rule: Rule) -> None:
    assert parse(rule.text) == rule
    assert parse(rule.pretty) == rule


@given(
    st.text(max_size=60)
    | st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(("contain", "contain_one_of", "match", "x")), inner)
        ),
    ).map(json.dumps)
)
def test_any_text_is_a_rule_or_a_rule_error(text: str) -> None:
    try:
        rule = parse(text)
    except RuleError as error:
        assert error.message  # noqa: PT017
    else:
        assert parse(rule.text) == rule


@given(st.text())
def test_a_template_is_valid_whatever_the_title(title: str) -> None:
    assert parse(starter(title)).contain_one_of
