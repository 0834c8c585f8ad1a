"""A different value in a question is reported if the rule's own terms show it, otherwise not."""

from __future__ import annotations

import json

import pytest

from ragfilter.rules.another import another

CLASS = ["armor class 7", "armor class of 7", "ac 7", "armor class seven"]
MINUS = ["armor class -7", "ac -7", "armor class minus 7"]


@pytest.mark.parametrize(
    ("rule", "question", "kind"),
    [
        ({"contain_one_of": [["cleric"], CLASS]}, "cleric against armor class 6", "armor class"),
        ({"contain_one_of": [["thief"], CLASS]}, "a cleric and AC 6", "armor class"),
        ({"contain_one_of": [CLASS]}, "armor class -2", "armor class"),
        ({"contain_one_of": [MINUS]}, "armor class 7", "armor class"),
        ({"contain": "status 404"}, "what is Status 429?", "status"),
        ({"contain_all_of": ["7th level"]}, "a 9th level cleric", "level"),
        # Met, or not named by the question at all.
        ({"contain_one_of": [["thief"], CLASS]}, "a cleric and AC 7", ""),
        ({"contain_one_of": [CLASS]}, "how do I hit?", ""),
        # One number among other words does not make a kind of thing.
        ({"contain_one_of": [["fighter", "warrior", "level 0"]]}, "level 7 cleric", ""),
        ({"contain_one_of": [["6", "7"]]}, "intelligence 5", ""),
        ({"contain_none_of": ["armor class 6"]}, "armor class 6", ""),
    ],
)
def test_what_the_terms_show_is_named(rule: dict[str, object], question: str, kind: str) -> None:
    assert another(json.dumps(rule), question) == kind


@pytest.mark.parametrize("rule", [None, "", "{", '{"contain": 7}'])
def test_a_rule_that_says_nothing_names_nothing(rule: str | None) -> None:
    assert another(rule, "armor class 6") == ""
