"""Laws of matching: compiled rules equal a plain loop over parts, terms and positions."""

from __future__ import annotations

import re
import string
import unicodedata

from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_rule import rules_of

from ragfilter.rules.match import CompiledRules, Needles, Scan
from ragfilter.rules.rule import Rule
from ragfilter.text.normalise import by_script, normalise

# Few letters, so that terms overlap, repeat and occur.
ALPHABET = "ab1 .-–Aéß_\u0301"
TERM = st.text(ALPHABET, min_size=1, max_size=4).filter(normalise)
RULES = rules_of(TERM)
QUERIES = st.text(ALPHABET, max_size=30)


def found(term: str, query: str, match: str) -> bool:
    """The definition, position by position."""
    if match == "substring":
        return term.lower() in query.lower()
    term, query = normalise(term), normalise(query)
    return any(
        query.startswith(term, i)
        and not (i > 0 and in_word(term[0]) and in_word(query[i - 1]))
        and not (i + len(term) < len(query) and in_word(term[-1]) and in_word(query[i + len(term)]))
        for i in range(len(query))
    )


def in_word(char: str) -> bool:
    return char.isalnum() or unicodedata.category(char).startswith("M")


def holds(rule: Rule, query: str) -> bool:
    """The source's function, and `contain_none_of`."""
    for group in rule.contain_one_of:
        if not any(found(term, query, rule.match) for term in group):
            return False
    if rule.contain is not None and not found(rule.contain, query, rule.match):
        return False
    if not all(found(term, query, rule.match) for term in rule.contain_all_of):
        return False
    return not any(found(term, query, rule.match) for term in rule.contain_none_of)


def one_by_one(texts: list[str], query: str) -> list[Scan]:
    return [CompiledRules([text]).scan(query) for text in texts]


@given(st.lists(RULES, max_size=8), QUERIES)
@settings(max_examples=30)
def test_a_book_decides_like_the_plain_definition(rules: list[Rule], query: str) -> None:
    texts = [rule.text for rule in rules]
    scan = CompiledRules(texts).scan(query)
    assert [scan.passes(text) for text in texts] == [holds(rule, query) for rule in rules]


@given(st.lists(RULES, max_size=8), QUERIES)
@settings(max_examples=30)
def test_checks_agree_with_each_rule_alone_and_with_passes(rules: list[Rule], query: str) -> None:
    texts = [rule.text for rule in rules]
    scan, empty = CompiledRules(texts).scan(query), CompiledRules([]).scan(query)
    for text, alone in zip(texts, one_by_one(texts, query), strict=True):
        check = scan.check(text)
        assert check == alone.check(text) == empty.check(text)
        assert check.passes is scan.passes(text) is empty.passes(text)
        assert check.reason.startswith("rule holds: ") is check.passes


@given(st.text(), st.text())
def test_normalising_twice_changes_nothing(left: str, right: str) -> None:
    once = normalise(f"{left} {right}")
    assert normalise(once) == once


@given(st.text(string.printable + "éßＡ–\u00a0\u200b"))
def test_case_width_and_white_space_do_not_matter(text: str) -> None:
    wide = re.sub(r"\s", " \u00a0\t", text.swapcase())
    assert normalise(wide) == normalise(text)


APOSTROPHES = "'’‘‛ʼʻ′＇`´"
APOSTROPHE = st.sampled_from(APOSTROPHES)


@given(TERM | st.sampled_from(["a'b", "b'", "'a", "é' b"]), st.text("ab' é", max_size=20), st.data())
def test_apostrophes_are_alike(term: str, query: str, data: st.DataObject) -> None:
    def exchanged(text: str) -> str:
        return re.sub("'", lambda _: data.draw(APOSTROPHE), text)

    for match in ("word", "substring"):
        rule = Rule(contain=term, match=match).text
        other = Rule(contain=exchanged(term), match=match).text
        asked = exchanged(query)
        assert CompiledRules([rule]).scan(query).passes(rule) is CompiledRules([other]).scan(asked).passes(other)


SCRIPTS = ["a", "b1", "é", "1", "6", "μ", "戦士", "は", "カー", "는", "ไทย", "б", "ا", "की", " ", "'"]
WRITTEN = st.lists(st.sampled_from(SCRIPTS), min_size=1, max_size=8).map("".join)


@given(WRITTEN.filter(normalise), WRITTEN)
def test_a_space_between_scripts_changes_no_match(term: str, query: str) -> None:
    rule = Rule(contain=term).text
    scan = CompiledRules([rule]).scan
    assert scan(query).passes(rule) is scan(" ".join(by_script(query))).passes(rule)


@given(
    st.sets(st.text("ab", min_size=1, max_size=90), max_size=12),
    st.text("ab", max_size=40),
    st.integers(min_value=0, max_value=500),
    st.text("ab", max_size=10),
)
@example({"a", "aa", "a" * 63, "a" * 64, "a" * 65, "a" * 66 + "b"}, "a", 500, "")
@example({*("a" * n for n in range(1, 12)), "ab", "b", "ba"}, "a", 9000, "b")
def test_needles_are_found_like_by_the_in_operator(needles: set[str], part: str, times: int, end: str) -> None:
    numbered = {needle: number for number, needle in enumerate(sorted(needles))}
    text = part * times + end
    expected = {number for needle, number in numbered.items() if needle in text}
    assert Needles(numbered).find(text) == expected
