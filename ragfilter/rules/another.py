"""Finds values in which a question differs from the rule: "armor class 6" if the rule wants 7.

Pure, and derived only from the terms of the rule. If they do not show it, nothing is reported.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ragfilter.rules.match import prepared
from ragfilter.rules.rule import Rule, read_rule
from ragfilter.text.normalise import normalise

_NUMBER = re.compile(r"(?<![\w-])-?\d+(?:st|nd|rd|th)?(?!\w)")
_LIKE = r"-?\d+(?:st|nd|rd|th)?"


@lru_cache(maxsize=4096)
def another(text: str | None, question: str) -> str:
    """What the rule `text` and the question give different numbers, in the rule's own words.

    This is a part of the rule that the question does not meet. Most of its terms contain a number,
    and one of them has the question's words. Empty if there is none.
    """
    rule = read_rule(text)
    if not isinstance(rule, Rule):
        return ""
    asked, sought = normalise(question), prepared(question, rule.match)
    for terms in rule.demands.values():
        if any(prepared(term, rule.match) in sought for term in terms):
            continue
        numbered = [found for term in terms if (found := _numbered(normalise(term)))]
        if 2 * len(numbered) > len(terms) and any(re.search(like, asked) for _, like in numbered):
            return numbered[0][0]
    return ""


def _numbered(term: str) -> tuple[str, str] | None:
    """The words of a term with one number, and a pattern that matches the term with any number."""
    numbers = list(_NUMBER.finditer(term))
    if len(numbers) != 1:
        return None
    before, after = term[: numbers[0].start()], term[numbers[0].end() :]
    words = " ".join(f"{before} {after}".split()).strip(" -")
    if not any(char.isalpha() for char in words):
        return None
    return words, rf"(?<!\w){re.escape(before)}{_LIKE}{re.escape(after)}(?!\w)"
