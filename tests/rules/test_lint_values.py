"""Numbers, common words and shared rules: what lint finds, and the fix that it proposes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ragfilter.ingest import demo
from ragfilter.rules.lint import lint
from ragfilter.rules.lint_values import usual_words
from ragfilter.rules.mend import mend
from ragfilter.rules.values import Value, spellings

MATRIX = "Attack matrix for clerics - Opponent Armor Class 6"
SIX = list(spellings(Value(("armor", "class"), 6), ("armor class", "ac")))


def found(rule: Any, title: str = "") -> list[tuple[str, str, Any]]:
    findings = lint({"c": json.dumps(rule)}, {"c": title})
    return [(f.kind, f.place, f.proposal and json.loads(f.proposal)) for f in findings]


@pytest.mark.parametrize(
    ("rule", "title", "kinds"),
    [
        ({"contain_one_of": [["6"]]}, MATRIX, [("bare", "contain_one_of[0][0]")]),
        ({"contain_one_of": [["six", "ac 6"]]}, "", [("bare", "contain_one_of[0][0]")]),
        ({"contain_all_of": ["10", "13"]}, "", [("bare", "contain_all_of[0]"),
                                               ("bare", "contain_all_of[1]")]),
        # Another part says what is counted.
        ({"contain_one_of": [["wisdom"], ["1", "2"]]}, "Wisdom 1-5", []),
        ({"contain": "psionic", "contain_all_of": ["10", "13"]}, "", []),
        ({"contain_one_of": [["ac -6"]], "contain_none_of": ["7"]}, "", []),
        ({"contain_one_of": [["7th"]]}, "", [("bare", "contain_one_of[0][0]")]),
        ({"contain_one_of": [["1-5"]]}, "", [("bare", "contain_one_of[0][0]")]),
        ({"contain_one_of": [["7th level", "iv", "second level"]]}, "", []),
    ],
)  # fmt: skip
def test_a_number_alone(rule: Any, title: str, kinds: list[tuple[str, str]]) -> None:
    assert [(kind, place) for kind, place, _ in found(rule, title)] == kinds


def test_a_number_alone_is_mended_by_the_title() -> None:
    rule = {"contain_one_of": [["cleric"], ["6"]]}
    assert found(rule, MATRIX) == [
        ("bare", "contain_one_of[1][0]", {"contain_one_of": [["cleric"], SIX]})
    ]


@pytest.mark.parametrize(
    ("group", "title", "mended"),
    [
        (["6", "six"], MATRIX, SIX),
        (["six"], MATRIX, SIX),
        # The group says what it counts.
        (["6", "level 6"], "", ["level 6"]),
        (["6", "level 7"], "", None),
        (["6"], "", None),
        (["4.0"], "Installation of version 4.0", ["version 4.0", "version of 4.0"]),
    ],
)
def test_what_a_number_alone_becomes(group: list[str], title: str, mended: Any) -> None:
    rule = {"contain_one_of": [["cleric"], group]}
    left = mend({"c": json.dumps(rule)}, {"c": title})
    wanted = {"contain_one_of": [["cleric"], mended]}
    assert [json.loads(text) for text in left.values()] == ([wanted] if mended else [])


@pytest.mark.parametrize(
    ("rule", "place", "mended"),
    [
        ({"contain_one_of": [["the", "cleric"]]}, "contain_one_of[0][0]",
         {"contain_one_of": [["cleric"]]}),
        ({"contain_one_of": [["cleric"], ["what is"]]}, "contain_one_of[1][0]",
         {"contain_one_of": [["cleric"]]}),
        ({"contain": "cleric", "contain_none_of": ["of", "undead"]}, "contain_none_of[0]",
         {"contain": "cleric", "contain_none_of": ["undead"]}),
        ({"contain_all_of": ["cleric", "how"]}, "contain_all_of[1]",
         {"contain_all_of": ["cleric"]}),
        ({"contain_all_of": ["cleric", "?"]}, "contain_all_of[1]",
         {"contain_all_of": ["cleric"]}),
        # A rule that asks for nothing is not a fix.
        ({"contain_one_of": [["what"]]}, "contain_one_of[0][0]", None),
        ({"contain_none_of": ["the"]}, "contain_none_of[0]", None),
    ],
)  # fmt: skip
def test_a_term_of_every_question(rule: Any, place: str, mended: Any) -> None:
    assert found(rule) == [("everywhere", place, mended)]


def test_a_word_that_nearly_all_of_many_questions_have_is_one_of_every_question() -> None:
    asked = [f"Does the Campaign API list item {number} ???" for number in range(40)]
    rule = {"c": '{"contain_one_of":[["campaign","item 7","api ???"],["list item"],["???"]]}'}
    for questions, places in (
        ([*asked[:38], "What else?", "And now?"], ["[0][0]", "[1][0]"]),
        ([*asked[:37], "What else?", "And now?", "Why?"], []),
        (asked[:19], []),
    ):
        faults = [f for f in lint(rule, usual=usual_words(questions)) if f.kind == "everywhere"]
        assert [f.place.removeprefix("contain_one_of") for f in faults] == places
        assert not any(f.sure for f in faults)


@pytest.mark.parametrize(
    ("group", "title", "missing"),
    [
        (["ac 6"], MATRIX, ["armor class 6", "armor class of 6"]),
        (["cleric", "Armor  Class 6"], MATRIX, ["armor class of 6", "ac 6"]),
        (["armor class 6", "armor class of 6", "AC 6"], MATRIX, []),
        # The title does not say what else it is called.
        (["ac 6"], "", []),
        # The rule itself does.
        (["armor class 6", "ac 6"], "Clerics' attacks", ["armor class of 6"]),
        (["armor class 6"], "Clerics' attacks", []),
        (["level 6"], "Level 6", []),
        (["ac 6"], "Armor Class 7", []),
        # The year needs no words next to it.
        (["price list 2022"], "Price list 2022", []),
    ],
)
def test_spellings_that_are_missing(group: list[str], title: str, missing: list[str]) -> None:
    made = found({"contain_one_of": [group]}, title)
    if not missing:
        assert made == []
        return
    ((kind, place, mended),) = made
    assert (kind, place) == ("spelling", "contain_one_of[0]")
    assert sorted(mended["contain_one_of"][0]) == sorted(group + missing)


@pytest.mark.parametrize("rule", [{"contain": "ac 6"}, {"contain_all_of": ["ac 6"]}])
def test_a_required_spelling_becomes_a_group(rule: Any) -> None:
    (only,) = found(rule, MATRIX)
    usual = ["ac 6", "armor class 6", "armor class of 6"]
    assert (only[0], only[2]) == ("spelling", {"contain_one_of": [usual]})


def test_one_rule_on_titles_that_differ_in_a_value() -> None:
    text = '{"contain":"cleric"}'
    titles = {"a": MATRIX, "b": MATRIX.replace("6", "7"), "c": "Clerics", "d": "The cleric"}
    findings = lint(dict.fromkeys(titles, text), titles)
    assert [(f.chunk_id, f.kind) for f in findings] == [("a", "shared"), ("b", "shared")]
    assert json.loads(findings[0].proposal or "") == {"contain_one_of": [SIX], "contain": "cleric"}
    assert lint({"a": text, "b": text}, {"a": MATRIX, "b": MATRIX}) == ()


def test_a_value_that_the_text_alone_names() -> None:
    rules, texts = {"c": '{"contain":"ac 6"}'}, {"c": "Hits whatever has armor class 6 or less."}
    assert lint(rules, {"c": "To hit"}) == ()
    (finding,) = lint(rules, {"c": "To hit"}, texts)
    assert (finding.kind, json.loads(finding.proposal or "")) == (
        "spelling", {"contain_one_of": [["ac 6", "armor class 6", "armor class of 6"]]},
    )  # fmt: skip
    assert mend(rules, {}, (), texts) == {"c": finding.proposal}


def test_the_value_of_a_sibling_makes_way_for_the_chunks_own() -> None:
    text = '{"contain_one_of":[["goblin","goblins"],["armor class 3","ac 3","armor class of 3"]]}'
    titles = {f"c{n}": f"Attack table for goblins, armor class {n}" for n in (3, 4)}
    mended = mend(dict.fromkeys(titles, text), titles)
    assert set(mended) == {"c4"}
    goblins, values = json.loads(mended["c4"])["contain_one_of"]
    assert goblins == ["goblin", "goblins"]
    assert "ac 4" in values
    assert not [value for value in values if "3" in value]
    assert [f.kind for f in lint({"c3": text} | mended, titles)] == []


def test_one_rule_on_titles_that_differ_in_a_name_may_be_meant() -> None:
    text = '{"contain":"plan"}'
    titles = {name: f"Plan {name.title()} prices" for name in ("basic", "pro", "enterprise")}
    findings = lint(dict.fromkeys(titles, text), titles)
    assert [(f.chunk_id, f.kind, f.sure) for f in findings] == [
        (name, "shared", False) for name in titles
    ]
    asked = {"contain_one_of": [["pro"]], "contain": "plan"}
    assert json.loads(findings[1].proposal or "") == asked
    assert mend(dict.fromkeys(titles, text), titles) == {}


FOUR = list(spellings(Value(("armor", "class"), 4), ("armor class", "ac")))
RANGE = ["level 1", "levels two", "third-level", "levels 1-3"]


@pytest.mark.parametrize(
    ("title", "rule", "mended", "sure"),
    [
        # The rule has nothing of a sibling's, so it may be meant for all of them.
        ("Goblins, armor class {}", {"contain": "goblin"},
         {"contain": "goblin", "contain_one_of": [FOUR]}, False),
        # For a sibling that has a different rule by now, in every spelling, also as a required
        # term.
        ("Goblins, armor class {}", {"contain_one_of": [["goblin"], ["armor class 3", "ac 3"]]},
         {"contain_one_of": [["goblin"], FOUR]}, True),
        ("Goblins, armor class {}",
         {"contain_one_of": [["goblin"], ["ac3", "a.c. 3", "armor class of three"]]},
         {"contain_one_of": [["goblin"], FOUR]}, True),
        ("Goblins, armor class {}", {"contain": "goblin", "contain_all_of": ["ac -3"]},
         {"contain": "goblin", "contain_one_of": [FOUR]}, True),
        # It asks for something else as well, or for another thing.
        ("Goblins, armor class {}", {"contain_one_of": [["goblin"], ["ac 3", "plate mail"]]},
         {"contain_one_of": [["goblin"], FOUR]}, False),
        ("Goblins, armor class {}", {"contain_one_of": [["level 3"], ["k8"]]},
         {"contain_one_of": [["level 3"], ["k8"], FOUR]}, False),
        # A number that needs no words gets none, nor an acronym.
        ("Price list 202{}", {"contain": "price"},
         {"contain": "price", "contain_one_of": [["2024"]]}, False),
        ("Leave policy Germany 202{}", {"contain_one_of": [["leave"], ["2025"]]},
         {"contain_one_of": [["leave"], ["2024"]]}, True),
        # No sibling here has it, so it may count something else.
        ("Price list 202{}", {"contain_one_of": [["price"], ["2022"]]},
         {"contain_one_of": [["price"], ["2024"]]}, False),
        ("Parts {}: the sea", {"contain": "sea", "contain_one_of": [["part iii", "part three"]]},
         {"contain": "sea",
          "contain_one_of": [["parts 4", "parts of 4", "parts four", "parts of four"]]}, True),
    ],
)  # fmt: skip
def test_the_mend_of_a_shared_rule_is_sure_where_it_asks_for_a_siblings_value(
    title: str, rule: Any, mended: Any, sure: bool
) -> None:
    titles = {f"c{n}": title.format(n) for n in (4, 5)}
    (finding, *_) = lint(dict.fromkeys(titles, json.dumps(rule)), titles)
    assert (finding.chunk_id, finding.kind, finding.sure) == ("c4", "shared", sure)
    assert json.loads(finding.proposal or "") == mended


def test_a_range_makes_way_for_the_chunks_own() -> None:
    titles = {f"c{n}": f"Clerics, levels {n}-{n + 2}" for n in (4, 7)}
    text = json.dumps({"contain_one_of": [["cleric"], RANGE]})
    mended = mend(dict.fromkeys(titles, text), titles)
    groups = [json.loads(text)["contain_one_of"] for text in mended.values()]
    assert [(group[0], len(group), RANGE[0] in group[1]) for group in groups] == [
        (["cleric"], 2, False)
    ] * 2


@pytest.mark.parametrize(
    ("group", "told", "n", "groups"),
    [
        (["leave"], "in a number or in a name", 3, [["leave"], ["2023"], ["germany"]]),
        (["2023"], "in a name", 2, [["2023"], ["germany"]]),
        (["germany"], "in a number", 2, [["germany"], ["2023"]]),
    ],
)
def test_one_rule_on_titles_that_differ_in_a_number_and_a_name(
    group: list[str], told: str, n: int, groups: list[list[str]]
) -> None:
    places = [(name, year) for name in ("Germany", "France") for year in (2023, 2024)]
    titles = {f"{name}-{year}": f"Leave policy {name} {year}" for name, year in places}
    first, *_ = lint(dict.fromkeys(titles, json.dumps({"contain_one_of": [group]})), titles)
    assert f"on {n} chunks whose titles differ {told}" in first.problem
    assert (first.chunk_id, first.sure) == ("Germany-2023", False)
    assert json.loads(first.proposal or "") == {"contain_one_of": groups}


def test_a_name_is_asked_for_in_a_plural_that_texts_hold() -> None:
    titles = {name: f"Plan {name} prices" for name in ("Pro", "Basic", "Enterprise")}
    texts = {"Basic": "Not for the pros among you."}
    findings = lint(dict.fromkeys(titles, '{"contain":"plan"}'), titles, texts)
    groups = [json.loads(f.proposal or "")["contain_one_of"] for f in findings]
    assert groups == [[["pro", "pros"]], [["basic"]], [["enterprise"]]]


@pytest.mark.parametrize(
    ("group", "kinds"),
    [
        (["?", "dragon"], ["everywhere"]),
        (["???", "dragon"], []),
        (["2018", "2.1.3"], []),
        (["2.1", "dragon"], ["bare"]),
        (["999", "dragon"], ["bare"]),
    ],
)
def test_signs_and_numbers_that_tell_something(group: list[str], kinds: list[str]) -> None:
    assert [kind for kind, _, _ in found({"contain_one_of": [group]})] == kinds


def test_mending_ends_in_rules_without_findings() -> None:
    rules = {
        "a": '{"contain_one_of":[["the","cleric","cleric"],["6"]]}',
        "b": '{"contain_one_of":[["cleric"],["druid"],["monk"]]}',
        "c": '{"contains":1}',
        "d": '{"contain":"cleric"}',
    }
    titles = {"a": MATRIX}
    mended = mend(rules, titles)
    assert {i: json.loads(text) for i, text in mended.items()} == {
        "a": {"contain_one_of": [["cleric"], SIX]},
    }
    assert mend(mended, titles) == {}
    # Three groups of one word each may be meant together: they are only merged on request.
    assert mend(rules, titles, ["spread"]) == {
        "b": '{"contain_one_of":[["cleric","druid","monk"]]}'
    }
    assert set(mend(rules, titles | {"b": "Clerics, druids and monks"})) == {"a", "b"}


def test_the_demo_has_no_such_fault() -> None:
    records = [record for record in demo.records() if record.get("query_must")]
    rules = {r["id"]: json.dumps(r["query_must"]) for r in records}
    kinds = {f.kind for f in lint(rules, {r["id"]: r["title"] for r in records})}
    assert not kinds & {"bare", "everywhere", "shared", "spelling"}
