"""A `query_must` rule: the terms that a query must contain for a chunk to be kept.

Source: Filtering, "query_must Structure"; docs/design.md#rules (`contain_none_of`, `match`).

All parts that are present must hold:

contain_one_of   groups of alternatives; every group needs at least one of its terms
contain          one term
contain_all_of   every term
contain_none_of  none of the terms
match            ``word`` (default) or ``substring``, see `ragfilter.rules.match`

Terms are text. Numbers are refused, because ``6`` hardly ever means the bare digit. As in the source, only `contain`
accepts a number and stores it as text. An empty list requires nothing, like an absent part. A rule without any parts
always holds. ``{"query_must": {…}}``, as in a record, is read as its value. The store, the journal, the editor
and a `Chunk` have the rule's text, by which equal rules are found. `parse` and `read_rule` turn it into a value."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from ragfilter.errors import RagfilterError, RuleError
from ragfilter.text.normalise import mend_characters, normalise
from ragfilter.text.shared_words import FUNCTION_WORDS

Match = Literal["word", "substring"]

MAX_BYTES = 64 * 1024
MAX_TERMS = 1000
KEYS = ("contain_one_of", "contain", "contain_all_of", "contain_none_of", "match")
MODES = ("word", "substring")
FORM = {
    "contain_one_of": "Groups",
    "contain": "All of",
    "contain_all_of": "All of",
    "contain_none_of": "None of",
    "match": "Match",
}
"""The name of each part in the editor's form."""

_GROUPS = '[["term", "other spelling"]]'
_STARTER_TERMS = 8


def _visible(term: str) -> str:
    term = mend_characters(term)
    if not (term.strip() if term.isascii() else normalise(term)):
        raise PydanticCustomError("blank", "no visible character")
    return term


def _number_as_text(value: Any) -> Any:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if number and (isinstance(value, int) or math.isfinite(value)) else value


Term = Annotated[str, AfterValidator(_visible)]
Terms = tuple[Term, ...]


class Rule(BaseModel):
    """A valid rule, with terms as written. Places of terms and groups are paths such as ``contain_one_of[1][0]``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    contain_one_of: tuple[Annotated[Terms, Field(min_length=1)], ...] = ()
    contain: Annotated[Term | None, BeforeValidator(_number_as_text)] = None
    contain_all_of: Terms = ()
    contain_none_of: Terms = ()
    match: Match = "word"

    @property
    def value(self) -> dict[str, Any]:
        """The rule as JSON values: keys in a fixed order, without absent parts and the default `match`."""
        parts = {key: getattr(self, key) for key in KEYS}
        if self.match == "word":
            del parts["match"]
        return {key: part for key, part in parts.items() if part not in ((), None)}

    @property
    def text(self) -> str:
        """The rule as compact JSON, as stored. ``parse(rule.text) == rule``."""
        return json.dumps(self.value, ensure_ascii=False, separators=(",", ":"))

    @property
    def pretty(self) -> str:
        """The rule as indented JSON for an editor, with each group on one line."""
        lines = []
        for key, part in self.value.items():
            text = json.dumps(part, ensure_ascii=False)
            if key == "contain_one_of":
                text = "[\n" + ",\n".join(f"    {json.dumps(g, ensure_ascii=False)}" for g in part) + "\n  ]"
            lines.append(f'  "{key}": {text}')
        return "{\n" + ",\n".join(lines) + "\n}" if lines else "{}"

    @property
    def required(self) -> tuple[str, ...]:
        """The terms that must all occur."""
        return (*(() if self.contain is None else (self.contain,)), *self.contain_all_of)

    @property
    def demands(self) -> dict[str, tuple[str, ...]]:
        """The terms of every part that a query must meet, by place: a group, or a required term as a group of one."""
        demands = {f"contain_one_of[{i}]": group for i, group in enumerate(self.contain_one_of)}
        if self.contain is not None:
            demands["contain"] = (self.contain,)
        return demands | {f"contain_all_of[{i}]": (term,) for i, term in enumerate(self.contain_all_of)}

    @property
    def terms(self) -> dict[str, str]:
        """Every term by its place, in the order of the parts."""
        parts = self.demands | {"contain_none_of": self.contain_none_of}
        return {at: term for place, group in parts.items() for at, term in terms_at(place, group).items()}

    @property
    def removable(self) -> tuple[str, ...]:
        """The place of every group, and of every term that can be removed on its own."""
        groups = {f"contain_one_of[{i}]": group for i, group in enumerate(self.contain_one_of)}
        alone = {f"{place}[0]" for place, group in groups.items() if len(group) == 1}
        return (*groups, *(place for place in self.terms if place not in alone))

    def written(self, place: str) -> str:
        """The group or term at `place` as JSON text."""
        part: Any = self.value
        for step in re.findall(r"\w+", place):
            part = part[int(step) if step.isdigit() else step]
        return json.dumps(part, ensure_ascii=False)

    def with_parts(self, **parts: Any) -> Self:
        """The rule with other `parts`, which must be valid."""
        return self.model_copy(update=parts)

    def without(self, place: str) -> Self:
        """The rule without the term or group at `place`."""
        return self.replaced(place, ())

    def replaced(self, place: str, terms: Sequence[str]) -> Self:
        """The rule with `terms` (at most one for ``contain``) instead of those at `place`. Empty groups are removed."""
        part, *steps = re.findall(r"\w+", place)
        if part == "contain":
            return self.with_parts(contain=next(iter(terms), None))
        listed, index = getattr(self, part), int(steps[0])
        if part != "contain_one_of":
            return self.with_parts(**{part: _spliced(listed, index, terms)})
        group = _spliced(listed[index], int(steps[1]), terms) if len(steps) > 1 else tuple(terms)
        groups = (*listed[:index], *((group,) if group else ()), *listed[index + 1 :])
        return self.with_parts(contain_one_of=groups)


@dataclass(frozen=True, slots=True)
class InvalidRule:
    """A stored text that is not a rule, and why."""

    text: str
    error: RuleError = field(compare=False)

    @property
    def value(self) -> str:
        """The text, in place of JSON values."""
        return self.text

    @property
    def pretty(self) -> str:
        """The text as it is."""
        return self.text


AnyRule = Rule | InvalidRule
Changes = Mapping[str, AnyRule | None]
"""New rules by chunk id, None for no rule. Undoing an edit may bring back an invalid one."""
ValidChanges = Mapping[str, Rule | None]
"""Changes that can be saved."""
RuleTexts = Mapping[str, str | None]
"""Rules as stored, by chunk id, None for no rule."""


def parse(text: str) -> Rule:
    """Parse a rule from JSON text. Raises RuleError, whose `place` is a path such as ``contain_one_of[1][0]``, ``rule``
    if it is too large, or ``line 2, column 5`` if the text is not JSON."""
    text = mend_characters(text)
    _check_limit(len(text.encode()), MAX_BYTES, "bytes")
    data = load(text)
    if isinstance(data, dict) and data.keys() == {"query_must"}:
        data = data["query_must"]
    if not isinstance(data, dict):
        remedy = f'Begin with {{"contain_one_of": {_GROUPS}}}.'
        raise RuleError("a rule is a JSON object, but this is a list or a value.", remedy=remedy)
    try:
        # A part that is null counts as absent.
        rule = Rule.model_validate({mend_characters(k): {} if v is None else v for k, v in data.items()})
    except ValidationError as error:
        raise _refusal(error.errors(include_url=False)[0]) from None
    _check_limit(sum(map(len, (*rule.contain_one_of, rule.required, rule.contain_none_of))), MAX_TERMS, "terms")
    return rule


def _check_limit(count: int, limit: int, what: str) -> None:
    if count > limit:
        remedy = "Leave out spellings that no query will contain."
        raise RuleError(f"has {count:,} {what}; the limit is {limit:,}.", place="rule", remedy=remedy)


# Every question compiles rules, but a collection's rules stay the same.
@lru_cache(maxsize=4096)
def read_text(text: str) -> AnyRule:
    """Parse a rule text into a Rule or an InvalidRule."""
    try:
        return parse(text)
    except RuleError as error:
        return InvalidRule(text, error.with_traceback(None))


def read_rule(text: str | None) -> AnyRule | None:
    """The rule in a stored text, None for no text."""
    return read_text(text) if text else None


def pretty_rule(text: str | None) -> str:
    """A stored rule formatted for an editor; an invalid one is returned unchanged."""
    rule = read_rule(text)
    return "" if rule is None else rule.pretty


def texts_of(changes: Changes) -> dict[str, str | None]:
    """The rules as the store and chunks have them."""
    return {chunk_id: rule.text if rule else None for chunk_id, rule in changes.items()}


def terms_at(place: str, group: Sequence[str]) -> dict[str, str]:
    """Every term of one of `Rule.demands`, or of ``contain_none_of``, by place."""
    if place.startswith("contain_one_of") or place == "contain_none_of":
        return {f"{place}[{i}]": term for i, term in enumerate(group)}
    return {place: group[0]}


def starter(title: str) -> str:
    """A valid rule to start from, as indented JSON: any distinctive word of the title; the other parts are empty."""
    words = dict.fromkeys(re.findall(r"[^\W\d_]{3,}", normalise(title)))
    group = [word for word in words if word not in FUNCTION_WORDS][:_STARTER_TERMS]
    group = group or ["term", "other spelling"]
    return (
        '{\n  "contain_one_of": [\n'
        f"    {json.dumps(group, ensure_ascii=False)}\n"
        '  ],\n  "contain_all_of": [],\n  "contain_none_of": [],\n  "match": "word"\n}'
    )


def place_name(place: str) -> str:
    """The name of a place in a rule, as in the editor's form and in messages: ``Group 2, term 1``
    for ``contain_one_of[1][0]``. Other places, such as a line of JSON, stay as they are."""
    part, *steps = re.findall(r"\w+", place) or [place]
    if part not in FORM:
        return place
    name = FORM[part]
    if part == "contain_one_of" and steps:
        name = f"Group {int(steps.pop(0)) + 1}"
    return ", ".join((name, *(f"term {int(step) + 1}" for step in steps)))


def in_words(error: RagfilterError) -> str:
    """An error in words, which names a place in a rule as the form does."""
    if not isinstance(error, RuleError):
        return str(error)
    place = f"{place_name(error.place)}: " if error.place else ""
    return f"{place}{error.message.removeprefix(f'{error.place}: ')} {error.remedy}".strip()


def shorten(text: str) -> str:
    """`text` shortened to at most 40 characters, for a message."""
    text = mend_characters(text)
    return text if len(text) <= 40 else f"{text[:39]}…"


def _spliced(terms: Sequence[str], index: int, new: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*terms[:index], *new, *terms[index + 1 :])))


def load(text: str) -> Any:
    """Parse JSON text. Raises RuleError, also for a duplicate key."""
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise RuleError(
            f"this is not valid JSON ({error.msg}).",
            place=f"line {error.lineno}, column {error.colno}",
            remedy="Look for a missing comma, quote or bracket there or just before.",
        ) from None
    except (RecursionError, ValueError):
        raise RuleError(
            "this JSON is nested too deeply, or contains a number that is too long.",
            remedy="A rule holds lists of terms in quotes.",
        ) from None


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for key, value in pairs:
        if key in record:
            raise RuleError(
                f"the key appears {sum(k == key for k, _ in pairs)} times.",
                place=shorten(key),
                remedy="Keep one of them.",
            )
        record[key] = value
    return record


_DECODER = json.JSONDecoder(object_pairs_hook=_unique_keys)

_MESSAGES = {
    "literal_error": ("this is not a way of matching.", 'Write "word" or "substring".'),
    "blank": ("the term is empty.", "Write at least one visible character."),
    "too_short": ("the group is empty, so no query could meet it.", "Add a term or remove the group."),
    "string_type": ("a term must be text.", 'Write it in quotes: "term".'),
}
"""pydantic's error type → what is wrong with a part, a group or a term, and what to do."""


def _refusal(error: ErrorDetails) -> RuleError:
    part, *steps = error["loc"]
    place = "".join((str(part), *(f"[{step}]" for step in steps)))
    if error["type"] == "extra_forbidden":
        similar = difflib.get_close_matches(place, KEYS, n=1)
        remedy = f"Did you mean {similar[0]}?" if similar else f"Known keys: {', '.join(KEYS)}."
        if part == "query_must":
            remedy = "Write only what is inside query_must."
        return RuleError("unknown key.", place=shorten(place), remedy=remedy)
    if error["type"] == "string_type" and part == "contain":
        message, remedy = "must be one term.", "For several, use contain_all_of."
    elif error["type"] in _MESSAGES:
        message, remedy = _MESSAGES[error["type"]]
    elif steps:
        message = "a group must be a list of terms."
        remedy = f"Put the alternatives into brackets of their own: {_GROUPS}."
    elif part == "contain_one_of":
        message, remedy = "must be a list of groups.", f"Write {_GROUPS}."
    else:
        message, remedy = "must be a list of terms.", 'Write ["term", "another term"].'
    return RuleError(message, place=place, remedy=remedy)
