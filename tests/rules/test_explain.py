"""One rule against one question: the places of matches, and near matches."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from ragfilter.ingest import bundled
from ragfilter.rules import explain as explaining
from ragfilter.rules.explain import Explanation, differing_quantity
from ragfilter.rules.match import check
from ragfilter.rules.rule import InvalidRule, parse, read_text

MATRIX = '{"contain_one_of":[["cleric","clerics"],["armor class 6","ac 6"]]}'


def explain(rule: str, question: str) -> Explanation:
    return explaining.explain(parse(rule), question)


def texts(question: str, spans: tuple[tuple[int, int], ...]) -> list[str]:
    return [question[start:end] for start, end in spans]


def test_matched_terms_are_found_where_they_stand() -> None:
    question = "A Cleric, and more  CLERICS, against Armor\tClass 6?"
    made = explain(MATRIX, question)
    assert (made.passes, [part.met for part in made.parts]) == (True, [True, True])
    singular, plural = made.parts[0].found
    assert (singular.place, singular.spans) == ("contain_one_of[0][0]", ((2, 8),))
    assert texts(question, plural.spans) == ["CLERICS"]
    (armor,) = made.parts[1].found
    assert texts(question, armor.spans) == ["Armor\tClass 6"]


def test_a_missing_group_says_what_came_nearest() -> None:
    question = "which cleric hits Armour Class 6 best"
    made = explain(MATRIX, question)
    assert not made.passes
    assert made.parts[0].near is None
    group = made.parts[1]
    assert (group.place, group.terms, group.met) == ("contain_one_of[1]", ("armor class 6", "ac 6"), False)
    assert group.near is not None
    assert (group.near.term, group.near.words, group.near.letters) == ("armor class 6", "Armour Class 6", 1)
    assert texts(question, (group.near.span,)) == ["Armour Class 6"]


def test_a_word_that_changes_its_length_is_marked_whole() -> None:
    question = "the ﬁghter at Straße 6"
    made = explain('{"contain_all_of":["fighter","strasse"]}', question)
    assert [texts(question, part.found[0].spans) for part in made.parts] == [["ﬁghter"], ["Straße"]]


PIECES = st.sampled_from("ac|6|-|cleric|Clerics| |  |é|e\u0301|ß|İ|ﬁ|\u00ad|10|\u2212|,|Σ|日|ʼ|는".split("|"))
TEXT = st.lists(PIECES, min_size=1, max_size=8).map("".join)


@given(TEXT, TEXT, st.sampled_from(("word", "substring")))
def test_a_place_is_found_exactly_where_the_matcher_finds_the_term(term: str, question: str, mode: str) -> None:
    rule = json.dumps({"contain": term, "match": mode})
    read = read_text(rule)
    if isinstance(read, InvalidRule):
        return
    made = explaining.explain(read, question)
    assert made.passes == check(read, question).passes == made.parts[0].met
    for found in made.parts[0].found:
        assert all(0 <= start < end <= len(question) for start, end in found.spans)


CLASS = ["armor class 7", "armor class of 7", "ac 7", "armor class seven"]
MINUS = ["armor class -7", "ac -7", "armor class minus 7"]


def test_a_value_in_which_the_question_differs_is_named() -> None:
    for rule, question, kind in [
        ({"contain_one_of": [["cleric"], CLASS]}, "cleric against armor class 6", "armor class"),
        ({"contain_one_of": [CLASS]}, "armor class -2", "armor class"),
        ({"contain_one_of": [MINUS]}, "armor class 7", "armor class"),
        ({"contain": "status 404"}, "what is Status 429?", "status"),
        # Met, or not named by the question at all.
        ({"contain_one_of": [["thief"], CLASS]}, "a cleric and AC 7", ""),
        ({"contain_one_of": [CLASS]}, "how do I hit?", ""),
        # One number among other words does not make a kind of thing.
        ({"contain_one_of": [["fighter", "warrior", "level 0"]]}, "level 7 cleric", ""),
        ({"contain_none_of": ["armor class 6"]}, "armor class 6", ""),
    ]:
        assert differing_quantity(json.dumps(rule), question) == kind


def test_the_matrices_of_the_demo_differ_in_the_armor_class() -> None:
    matrices = [r for r in bundled.demo_rows() if r["id"].startswith("attack-matrix")]
    kinds = [differing_quantity(json.dumps(r["query_must"]), "hit armor class 6") for r in matrices]
    assert (kinds.count("armor class"), kinds.count("")) == (80, 4)
