"""Reads a rule from a chat model's answer, and says what is wrong with it. Pure.

Source: Filtering, "Layer 1: Metadata Generation". The decisions:

- The JSON may be alone, in a code fence or within prose. Of several objects, the last rule counts,
  since models think before they conclude.
- A rule has an error if `parse` refuses it, if the linter has an error or warning, or if a part is
  not about the chunk: a model that repeats the example of its prompt writes a perfect rule for
  another chunk.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from ragfilter.errors import RuleError
from ragfilter.model import Chunk
from ragfilter.rules.lint import check_rule
from ragfilter.rules.match import check
from ragfilter.rules.rule import KEYS, Rule, parse

MOST_OBJECTS = 50
_LAST_COMMA = re.compile(r",\s*([\]}])")
NO_JSON = "the answer contains no JSON object"
TOO_DEEP = "the answer's JSON is nested too deeply"


@dataclass(frozen=True, slots=True)
class ParsedRule:
    """What could be read from an answer. Without a rule, `faults` says why; with one, they are
    doubts that do not prevent its use."""

    rule: Rule | None
    faults: tuple[str, ...] = ()


def read(answer: str, chunk: Chunk) -> ParsedRule:
    """Read the rule that a model gave for `chunk` in `answer`, with its problems."""
    try:
        return _read(answer, chunk)
    except RecursionError:
        return ParsedRule(None, (TOO_DEEP,))


def _read(answer: str, chunk: Chunk) -> ParsedRule:
    text = _json_text(answer)
    if not text:
        return ParsedRule(None, (NO_JSON,))
    try:
        rule = parse(text)
    except RuleError as error:
        return ParsedRule(None, (str(error),))
    findings = [f for f in check_rule(rule, chunk.title, chunk.text) if f.severity != "note"]
    faults = [f"{f.place}: {f.message}" if f.place else f.message for f in findings]
    if any(f.kind in ("impossible", "empty") for f in findings):
        return ParsedRule(None, tuple(faults))
    # Forbidden terms need not be in the chunk, and should not be.
    verdict = check(rule.with_parts(contain_none_of=()), chunk.passage)
    if not verdict.passes:
        faults.append(f"the rule requires what the chunk itself does not contain: {verdict.reason}")
    return ParsedRule(rule, tuple(faults))


def _json_text(answer: str) -> str:
    """The last rule-like JSON object in `answer`, otherwise its last object, otherwise text that
    starts like one (so that `parse` can say where it breaks); empty if there is none."""
    rule_like, other = "", ""
    begin = answer.find("{")
    start = begin
    for _ in range(MOST_OBJECTS):
        if start < 0:
            break
        value, end = _decoded(answer, start)
        if isinstance(value, dict):
            inner = value.get("query_must")
            if isinstance(inner, dict):
                rule_like = json.dumps(inner, ensure_ascii=False)
            elif any(key in value for key in KEYS):
                rule_like = answer[start:end]
            else:
                other = answer[start:end]
        start = answer.find("{", end)
    rest = answer[begin:].strip() if begin >= 0 else ""
    return rule_like or other or _without_last_commas(rest)


def _without_last_commas(text: str) -> str:
    """`text` without the commas before closing brackets, the most common mistake of small models,
    if that makes it valid JSON; otherwise `text` itself."""
    mended = _LAST_COMMA.sub(r"\1", text)
    value, end = _decoded(mended, 0)
    return mended[:end] if isinstance(value, dict) else text


def _decoded(text: str, start: int) -> tuple[Any, int]:
    """The JSON value that begins at `start`, and its end; None if there is none."""
    try:
        return json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, start + 1
