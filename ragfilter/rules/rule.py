"""A `query_must` rule: the terms that a query must contain for a chunk to be kept.

Source: Filtering, "query_must Structure"; docs/design.md#rules (`contain_none_of`, `match`).

All parts that are present must hold:

contain_one_of   groups of alternatives; every group needs at least one of its terms
contain          one term
contain_all_of   every term
contain_none_of  none of the terms
match            ``word`` (default) or ``substring``, see `ragfilter.rules.match`

Terms are text. A number is refused, because ``6`` hardly ever means the bare digit. Only `contain`
accepts one, as in the source, and stores it as text. A part that is an empty list requires nothing,
like an absent one. A rule without any parts always holds. ``{"query_must": {…}}``, as in a record,
is read as its value.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, NoReturn

from ragfilter.errors import RuleError
from ragfilter.text.characters import has_halves, joined, whole
from ragfilter.text.normalise import normalise

Match = Literal["word", "substring"]

MAX_BYTES = 64 * 1024
MAX_TERMS = 1000
KEYS = ("contain_one_of", "contain", "contain_all_of", "contain_none_of", "match")
MODES = ("word", "substring")
DEEPEST = 4
"""Levels of a rule: ``{"query_must": {"contain_one_of": [["term"]]}}``."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}]|-?(?:\d+|Infinity|NaN)', re.DOTALL)
# Python refuses to parse a number with more digits.
_LONG = re.compile(r"-?\d{4301}")
_GROUPS = '[["term", "other spelling"]]'
_TEMPLATE_TERMS = 8
_FILLERS = frozenset((
    "and", "are", "before", "between", "for", "from", "into", "not", "off", "one", "over", "per",
    "table", "tables", "than", "that", "the", "their", "these", "this", "through", "type", "under",
    "upon", "used", "using", "what", "when", "where", "which", "with", "within", "without", "your",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rule:
    """A valid rule; terms as they were written."""

    contain_one_of: tuple[tuple[str, ...], ...] = ()
    contain: str | None = None
    contain_all_of: tuple[str, ...] = ()
    contain_none_of: tuple[str, ...] = ()
    match: Match = "word"

    @property
    def required(self) -> tuple[str, ...]:
        """The terms that must all occur."""
        return (*(() if self.contain is None else (self.contain,)), *self.contain_all_of)


def parse(text: str) -> Rule:
    """Parse a rule from JSON text. Raises RuleError, whose `place` is a path such as
    ``contain_one_of[1][0]``, ``rule`` if it is too large, or ``line 2, column 5`` if the text is
    not JSON."""
    text = joined(text)
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise RuleError(
            f"has {size:,} bytes; the limit is {MAX_BYTES:,}.",
            place="rule",
            remedy="Shorten it, or give the chunks that need other terms rules of their own.",
        )
    data = load(text)
    if isinstance(data, dict) and data.keys() == {"query_must"}:
        data = data["query_must"]
    if not isinstance(data, dict):
        raise RuleError(
            f"a rule is a JSON object, this is {_kind(data)}.",
            remedy=f'Begin with {{"contain_one_of": {_GROUPS}}}.',
        )
    for key in data:
        if key not in KEYS:
            _refuse_key(key)
    mode = data.get("match", "word")
    if mode not in MODES:
        raise RuleError(
            f"{_shown(mode)} is not a way of matching.",
            place="match",
            remedy='Write "word" or "substring".',
        )
    rule = Rule(
        contain_one_of=_groups(data.get("contain_one_of", [])),
        contain=_single(data["contain"]) if "contain" in data else None,
        contain_all_of=_list(data.get("contain_all_of", []), "contain_all_of"),
        contain_none_of=_list(data.get("contain_none_of", []), "contain_none_of"),
        match=mode,
    )
    count = sum(map(len, (*rule.contain_one_of, rule.required, rule.contain_none_of)))
    if count > MAX_TERMS:
        raise RuleError(
            f"has {count:,} terms; the limit is {MAX_TERMS:,}.",
            place="rule",
            remedy="Leave out spellings that no query will contain.",
        )
    return rule


def canonical(rule: Rule) -> str:
    """The rule as compact JSON text, as stored: keys in a fixed order, absent parts and the
    default `match` left out. ``parse(canonical(rule)) == rule``."""
    return json.dumps(_parts(rule), ensure_ascii=False, separators=(",", ":"))


def stored_form(text: str | None) -> str | None:
    """The form in which the store holds a rule: canonical JSON, None for no rule. Raises
    RuleError."""
    return canonical(parse(text)) if text and text.strip() else None


def stored_form_or_text(text: str | None) -> str | None:
    """Like `stored_form`, but an invalid rule is returned unchanged."""
    try:
        return stored_form(text)
    except RuleError:
        return text


def value_of(text: str | None) -> Any:
    """A stored rule as a JSON value; an invalid one as its text."""
    try:
        return json.loads(canonical(parse(text))) if text else None
    except RuleError:
        return text


def pretty(rule: Rule) -> str:
    """The rule as indented JSON text for an editor, with each group on one line."""
    lines = []
    for key, value in _parts(rule).items():
        if key == "contain_one_of":
            groups = ",\n".join(f"    {json.dumps(g, ensure_ascii=False)}" for g in value)
            lines.append(f'  "{key}": [\n{groups}\n  ]')
        else:
            lines.append(f'  "{key}": {json.dumps(value, ensure_ascii=False)}')
    return "{\n" + ",\n".join(lines) + "\n}" if lines else "{}"


def demands(rule: Rule) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The place and terms of every part that a query must meet: a group, or a required term as a
    group of one."""
    for i, group in enumerate(rule.contain_one_of):
        yield f"contain_one_of[{i}]", group
    if rule.contain is not None:
        yield "contain", (rule.contain,)
    for i, term in enumerate(rule.contain_all_of):
        yield f"contain_all_of[{i}]", (term,)


def placed(place: str, group: Sequence[str]) -> list[tuple[str, str]]:
    """Every (place, term) of a part of `demands`, or of ``contain_none_of``."""
    if place.startswith("contain_one_of") or place == "contain_none_of":
        return [(f"{place}[{i}]", term) for i, term in enumerate(group)]
    return [(place, group[0])]


def terms(rule: Rule) -> Iterator[tuple[str, str]]:
    """Every (place, term) of the rule, in the order of its parts."""
    for place, group in (*demands(rule), ("contain_none_of", rule.contain_none_of)):
        yield from placed(place, group)


def parts(rule: Rule) -> Iterator[str]:
    """The place of every group and term that can be removed on its own."""
    groups = {f"contain_one_of[{i}]": group for i, group in enumerate(rule.contain_one_of)}
    yield from groups
    alone = {f"{place}[0]" for place, group in groups.items() if len(group) == 1}
    yield from (place for place, _ in terms(rule) if place not in alone)


def written(rule: Rule, place: str) -> str:
    """The group or term at `place` as JSON text."""
    value: Any = _parts(rule)
    for step in re.findall(r"\w+", place):
        value = value[int(step) if step.isdigit() else step]
    return json.dumps(value, ensure_ascii=False)


def without(rule: Rule, place: str) -> str:
    """Canonical text of `rule` without the term or group at `place`."""
    return replaced(rule, place, ())


def replaced(rule: Rule, place: str, terms: tuple[str, ...]) -> str:
    """Canonical text of `rule` with `terms` instead of the term at `place` (of ``contain``, at most
    one), or without the group there."""

    def rest(part: str, listed: tuple[str, ...]) -> tuple[str, ...]:
        at = [f"{part}[{i}]" == place for i in range(len(listed))]
        if not any(at):
            return listed
        new = (terms if here else (term,) for here, term in zip(at, listed, strict=True))
        return tuple(dict.fromkeys(chain.from_iterable(new)))

    groups = [rest(f"contain_one_of[{i}]", group) for i, group in enumerate(rule.contain_one_of)]
    single = next(iter(terms), None) if place == "contain" else rule.contain
    return canonical(
        Rule(
            contain_one_of=tuple(
                group for i, group in enumerate(groups) if f"contain_one_of[{i}]" != place
            ),
            contain=single,
            contain_all_of=rest("contain_all_of", rule.contain_all_of),
            contain_none_of=rest("contain_none_of", rule.contain_none_of),
            match=rule.match,
        )
    )


def template(title: str) -> str:
    """A valid rule to start from, as indented JSON text, for a chunk without one: it asks for any
    distinctive word of the title, with the other parts empty."""
    words = dict.fromkeys(re.findall(r"[^\W\d_]{3,}", normalise(title)))
    group = [word for word in words if word not in _FILLERS][:_TEMPLATE_TERMS]
    group = group or ["term", "other spelling"]
    return (
        '{\n  "contain_one_of": [\n'
        f"    {json.dumps(group, ensure_ascii=False)}\n"
        '  ],\n  "contain_all_of": [],\n  "contain_none_of": [],\n  "match": "word"\n}'
    )


def shorten(text: str) -> str:
    """`text` shortened to at most 40 characters, for a message."""
    text = whole(text)
    return text if len(text) <= 40 else f"{text[:39]}…"


def _parts(rule: Rule) -> dict[str, Any]:
    parts = {
        "contain_one_of": rule.contain_one_of,
        "contain": rule.contain,
        "contain_all_of": rule.contain_all_of,
        "contain_none_of": rule.contain_none_of,
        "match": None if rule.match == "word" else rule.match,
    }
    return {key: value for key, value in parts.items() if value not in ((), None)}


def load(text: str) -> Any:
    """Parse JSON text. Raises RuleError with the place for invalid JSON, a duplicate key, NaN, or
    nesting that is too deep."""
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise RuleError(
            f"this is not valid JSON ({error.msg}).",
            place=_place(text, error.pos),
            remedy="Look for a missing comma, quote or bracket there or just before.",
        ) from None
    except _Constant as constant:
        name = str(constant)
        raise RuleError(
            f"{name} is not valid JSON.",
            place=_place(text, _find(text, lambda token, _: token == name)),
            remedy=f'Write the term in quotes: "{name}".',
        ) from None
    except RecursionError:
        raise RuleError(
            "this JSON is nested too deeply.",
            place=_place(text, _find(text, lambda _, depth: depth > DEEPEST)),
            remedy="A rule holds lists of terms, and groups of terms in contain_one_of.",
        ) from None
    except ValueError:
        raise RuleError(
            "this JSON holds a number that is too long.",
            place=_place(text, _find(text, lambda token, _: _LONG.match(token) is not None)),
            remedy="Write a term in quotes.",
        ) from None


def _place(text: str, at: int) -> str:
    before = text[:at]
    return f"line {before.count(chr(10)) + 1}, column {at - before.rfind(chr(10))}"


def _find(text: str, wanted: Callable[[str, int], bool]) -> int:
    """The position of the first JSON token for which `wanted` is true, given the token and its
    depth."""
    depth = 0
    for found in _TOKEN.finditer(text):
        token = found.group()
        depth += (token in ("[", "{")) - (token in ("]", "}"))
        if wanted(token, depth):
            return found.start()
    return 0


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise RuleError(
                f"the key appears {sum(k == key for k, _ in pairs)} times.",
                place=shorten(key),
                remedy="Keep one of them.",
            )
        found[key] = value
    return found


class _Constant(Exception):
    """NaN and the infinities, which Python parses although JSON does not have them."""


def _no_constant(name: str) -> NoReturn:
    raise _Constant(name)


_DECODER = json.JSONDecoder(object_pairs_hook=_no_twins, parse_constant=_no_constant)


def _refuse_key(key: str) -> NoReturn:
    near = difflib.get_close_matches(key, KEYS, n=1)
    if key == "query_must":
        remedy = "Write only what is inside query_must."
    elif near:
        remedy = f"Did you mean {near[0]}?"
    else:
        remedy = f"Known keys: {', '.join(KEYS)}."
    raise RuleError("unknown key.", place=shorten(key), remedy=remedy)


def _groups(value: Any) -> tuple[tuple[str, ...], ...]:
    place = "contain_one_of"
    _be_list(value, "must be a list of groups", place, f"Write {_GROUPS}.")
    remedy = f"Put the alternatives into brackets of their own: {_GROUPS}."
    groups = []
    for i, group in enumerate(value):
        here = f"{place}[{i}]"
        _be_list(group, "a group must be a list of terms", here, remedy)
        if not group:
            raise RuleError(
                "the group is empty, so no query could meet it.",
                place=here,
                remedy="Add a term or remove the group.",
            )
        groups.append(_terms(group, here))
    return tuple(groups)


def _list(value: Any, place: str) -> tuple[str, ...]:
    _be_list(value, "must be a list of terms", place, 'Write ["term", "another term"].')
    return _terms(value, place)


def _be_list(value: Any, said: str, place: str, remedy: str) -> None:
    if not isinstance(value, list):
        raise RuleError(f"{said}, this is {_kind(value)}.", place=place, remedy=remedy)


def _terms(values: list[Any], place: str) -> tuple[str, ...]:
    # A fast path: a hundred thousand rules are parsed at once, and almost no term is refused.
    if all(isinstance(v, str) and v.isascii() and v.strip() for v in values):
        return tuple(values)
    return tuple(_term(term, f"{place}[{i}]") for i, term in enumerate(values))


def _single(value: Any) -> str:
    if _is_number(value) and math.isfinite(value):
        return str(value)
    if not isinstance(value, str):
        raise RuleError(
            f"must be one term, this is {_kind(value)}.",
            place="contain",
            remedy="Write one text in quotes, or use contain_all_of for several.",
        )
    return _term(value, "contain")


def _term(value: Any, place: str) -> str:
    if not isinstance(value, str):
        remedy = 'Write a text in quotes: "term".'
        if _is_number(value):
            remedy = f'Write it in quotes: "{value}".'
        raise RuleError(f"a term must be text, this is {_kind(value)}.", place=place, remedy=remedy)
    if has_halves(value):
        raise RuleError(
            "the term contains half a character (a lone surrogate).",
            place=place,
            remedy="Type the term again.",
        )
    if not (value.strip() if value.isascii() else normalise(value)):
        raise RuleError(
            "the term is empty.", place=place, remedy="Write at least one visible character."
        )
    return value


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if _is_number(value):
        return f"the number {shorten(str(value))}"
    if isinstance(value, str):
        return f"the text {_shown(value)}"
    return "a list" if isinstance(value, list) else "an object"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    return shorten(json.dumps(value))
