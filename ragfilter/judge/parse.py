"""Reads the judge's answer: lines ``chunk id -> ACTION``, also as rows of a table, or JSON. Pure.

Source: Intelligent Chunk Filtering, response format; docs/design.md#judge. Design:

- The last decision for an id counts, since models think before they conclude. A changed decision
  is reported. Ids that were not asked about and unknown actions are reported and never obeyed.
- Nothing is guessed. A decision that may be meant for another chunk is reported and not obeyed,
  for example if its number may be the chunk's position instead of its id. An id that the answer
  mentions without a decision is reported too, such as one that is not the first in its row.
- Reports name only ids that were asked about, and quote nothing, since an answer may name anything.
- A line that decides is not searched for JSON, since its explanation may quote some.
- An answer can contain several JSON values. If one cannot be read, none counts: half a list would
  discard everything after the cut. Answers in lines are an exception, since they may quote JSON.
- Text that the model marks as thinking does not count (`ragfilter.models.chat`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

from pydantic import AliasChoices, BaseModel, Field, WithJsonSchema, model_validator

from ragfilter.judge.prompts import ACTIONS as ACTIONS
from ragfilter.model import Verdict
from ragfilter.models.chat import without_thought

MAX_REMARKS = 20
REMARK_CHARS = 60


class ChunkDecision(BaseModel, coerce_numbers_to_str=True, json_schema_extra={"additionalProperties": False}):
    """What becomes of one chunk."""

    chunk_id: str = Field(validation_alias=AliasChoices("chunk_id", "id", "chunk"))
    # Any text is accepted, so that an unknown action is reported with its id, as in a line.
    action: Annotated[Any, WithJsonSchema({"type": "string", "enum": list(ACTIONS)})] = Field(
        validation_alias=AliasChoices("action", "decision")
    )


class JudgeAnswer(BaseModel, extra="forbid"):
    """What becomes of each chunk."""

    decisions: list[ChunkDecision]

    @model_validator(mode="before")
    @classmethod
    def _of_any_form(cls, value: Any) -> Any:
        """Accept a list, a single decision and a mapping of ids to actions too."""
        if isinstance(value, dict):
            value = value.get("decisions", value)
        if isinstance(value, dict) and not {"action", "decision"} & value.keys():
            value = [{"chunk_id": i, "action": action} for i, action in value.items()]
        return {"decisions": value if isinstance(value, list) else [value]}


SCHEMA: dict[str, object] = JudgeAnswer.model_json_schema()
"""The schema for structured output. The same parser reads the line format."""

# Repetitions are possessive, bounded, or read a line once, so that parsing takes linear time.
_JSON = re.compile(r'(?:\[\s*+)?\{\s*+"')
_BULLET = r"(?:[-*•+][ \t]++|\(?\d+[.):][ \t]*+|\[\d+\][ \t]++)"
_OPENING = r"[ \t`*\"'“”‘’\[(<|]{0,9}?"
_CLOSING = r"[ \t`*\"'“”‘’\])>]*+"
_PREFIX = r"(?:(?:chunk[ _]?)?id[ \t]*+[:=]|(?P<ordinal>chunk[ \t]*+\#?|\#))"
_ARROW = r"(?:[-=—–~]{1,3}>|[→⇒⟶⟹➔➜➡]\ufe0f?)"
_SIGN = r"(?::=|[:：=＝,;]|[-‐‑‒–—―−]{1,3})"
# An explanation can follow an action, but must not continue its word.
_ACTION = r"[ \t`*\"'“”‘’\[\]()]*+(?:KEEP|DISCARD|EXPAND[ _-]?[135])(?![\w.-]*\w)"
# The next cell of a row, if it holds only an action.
_CELL = rf"\|(?={_ACTION}(?:[^\w|\n]*+(?:\||$)|[ ]\())"
_VERDICT = rf"""
    (?P<action>{_ACTION})?
    (?P<another>
        [^\w|\n]*+ (?:(?:or|and)[^\w\n]++)? (?:KEEP|DISCARD|EXPAND(?:[ _-]?\d)?)\b
        | [^\w|\n]*+ \|{_ACTION}[^\w\n]*+$
        | .*? (?:\b(?-i:KEEP|DISCARD|EXPAND) | {_ARROW}{_ACTION})
    )?
    .*
"""
_FLAGS = re.VERBOSE | re.IGNORECASE
_VERDICT_ALONE = re.compile(_VERDICT, _FLAGS)


class ParsedVerdicts(NamedTuple):
    """The decisions on the ids asked about, in that order; remarks; and ids mentioned without a clear decision."""

    verdicts: tuple[Verdict, ...]
    remarks: tuple[str, ...]
    unreadable: tuple[str, ...]


class _NamedAction(NamedTuple):
    """A decision on the chunk that the answer calls `name`. `action` is empty if unknown, None if not clear."""

    name: str
    action: str | None


class _ChunkIds:
    """The ids that were asked about, with patterns for decisions on them."""

    def __init__(self, ids: Sequence[str]) -> None:
        self.ids = frozenset(ids)
        self._order = tuple(ids)
        self._loose: dict[str, str] = {}
        for chunk_id in self.ids:
            # Ids that differ only in case or spaces must match exactly.
            key = _loose(chunk_id)
            self._loose[key] = "" if key in self._loose else chunk_id
        # An id may contain an arrow, an action or another id, so the pattern lists all ids, the longest first.
        every = sorted(self.ids, key=len, reverse=True)
        names = "|".join(r"\s+".join(map(re.escape, i.split())) for i in every) or "(?!)"
        opening = rf"{_OPENING}(?:{_PREFIX}{_OPENING})??"
        self._cell = re.compile(rf"{opening}(?P<id>{names}){_CLOSING}", _FLAGS)
        # Only ASCII word characters: Chinese and Japanese put no space between an id and a word.
        self._mention = re.compile(rf"(?<!(?a:\w))(?:{names})(?!(?a:\w))", _FLAGS)
        self._line = re.compile(
            rf"""
            [ \t]*+ {_BULLET}{{0,3}}? {opening} (?P<id>{names}|\d{{1,6}})
            (?!"\s*+:\s*+")    # a member of an object is left to JSON
            (?: {_CLOSING} (?:{_ARROW} | {_SIGN}(?={_ACTION}) | {_CELL})
                | [ \t`*"'“”‘’]++ (?={_ACTION}[^\w\n]*+$) )
            {_VERDICT}
            """,
            _FLAGS | re.MULTILINE,
        )

    def id_of(self, name: str) -> str:
        """The id that `name` stands for; empty if there is none."""
        return name if name in self.ids else self._loose.get(_loose(name), "")

    def id_in(self, cell: str) -> str:
        """The id that is the only content of `cell`; empty if there is none."""
        match = None if cell in self.ids else self._cell.fullmatch(cell)
        return "" if match and _is_ordinal(match) else self.id_of(match["id"] if match else cell)

    def in_line(self, line: str) -> _NamedAction | None:
        """The decision of a line that begins with an id or a number."""
        match = self._line.match(line)
        if match is None:
            return None
        return _NamedAction(match["id"], None if _is_ordinal(match) else _action(match))

    def mentioned(self, text: str) -> set[str]:
        """Every id in `text`."""
        return {self.id_of(match[0]) for match in self._mention.finditer(text)}

    def counting(self, decisions: Iterable[_NamedAction]) -> set[str]:
        """The numbers that may be positions of chunks, from 0 or 1, rather than ids."""
        names = {one.name for one in decisions if one.action is not None and one.name}
        numbers = set(filter(str.isdecimal, names))
        others = {i for i in map(self.id_of, names - numbers) if i}
        if not numbers or numbers | others == self.ids:
            return set()
        first = next((k for k in (0, 1) if numbers == set(map(str, range(k, k + len(numbers))))), -1)
        if not numbers <= self.ids:
            counts = first >= 0 or max(map(int, numbers)) <= len(self.ids)
        else:
            # Unless these numbers are the ids of the first chunks.
            own = self._order[: len(numbers)] == tuple(sorted(numbers, key=int))
            counts = first >= 0 and not others and not own
        return numbers if counts else set()


_UNASKED = re.compile(
    rf"(?!.*{_JSON.pattern}) (?:.* (?:{_ARROW}(?={_ACTION}) | {_SIGN}(?={_ACTION}[^\w]*+$))"
    rf"| {_ACTION}[^\w]*+$)",
    _FLAGS,
)
"""A line with a decision on something that was not asked about."""


def parse(text: str, asked: Sequence[str]) -> ParsedVerdicts:
    """Read the decisions in `text` on the ids in `asked`."""
    ids = _ChunkIds(asked)
    by_id: dict[str, list[Verdict | None]] = {chunk_id: [] for chunk_id in asked}
    text = without_thought(text)
    decisions = _decisions(text, ids)
    counting = ids.counting(decisions)
    mentioned = ids.mentioned(text)
    unknown = 0
    for name, action in decisions:
        chunk_id = ids.id_of(name)
        if not chunk_id:
            unknown += bool(action)
        elif action is not None and name not in counting:
            by_id[chunk_id].append(_verdict(chunk_id, action))
    verdicts: list[Verdict] = []
    remarks: list[str] = []
    unreadable: list[str] = []
    for chunk_id, of_chunk in by_id.items():
        name = _short(chunk_id)
        readable = [verdict for verdict in of_chunk if verdict]
        if len(readable) < len(of_chunk):
            remarks.append(f"unknown action for {name}")
        for one, next_ in pairwise(readable):
            if one != next_:
                remarks.append(f"changed for {name}: {one.written}, then {next_.written}")
        if readable:
            verdicts.append(readable[-1])
        elif of_chunk or chunk_id in mentioned:
            unreadable.append(chunk_id)
            if not of_chunk:
                remarks.append(f"no clear decision for {name}")
    if len(remarks) > MAX_REMARKS:
        remarks = [*remarks[:MAX_REMARKS], f"and {len(remarks) - MAX_REMARKS} more"]
    if unknown:
        what = "1 decision for an id" if unknown == 1 else f"{unknown} decisions for ids"
        remarks.append(f"{what} not asked about")
    return ParsedVerdicts(tuple(verdicts), tuple(remarks), tuple(unreadable))


def _decisions(text: str, asked: _ChunkIds) -> list[_NamedAction]:
    """The decisions in the lines and the JSON of `text`, in order."""
    decisions: list[_NamedAction] = []
    in_json = False
    try:
        for decision, from_json in _read(text, asked, with_json=True):
            decisions.append(decision)
            in_json = in_json or (from_json and bool(asked.id_of(decision.name)))
    except (ValueError, RecursionError):
        return [] if in_json else [decision for decision, _ in _read(text, asked, with_json=False)]
    return decisions


def _read(text: str, asked: _ChunkIds, *, with_json: bool) -> Iterator[tuple[_NamedAction, bool]]:
    """The decisions in `text`, and whether each is in JSON. Raises ValueError or RecursionError for unreadable JSON."""
    value = _JSON.search(text) if with_json else None
    at, fresh = 0, True
    while at <= len(text):
        end = text.find("\n", at) % (len(text) + 1)
        line = text[at:end].rstrip("\r")
        decision = asked.in_line(line) if fresh else None
        while value and value.start() < at:
            value = _JSON.search(text, at)
        if decision:
            yield decision, False
        elif value and value.start() <= end:
            data, at = json.JSONDecoder().raw_decode(text, value.start())
            for item in JudgeAnswer.model_validate(data).decisions:
                name = asked.id_in(item.chunk_id) or item.chunk_id
                match = _VERDICT_ALONE.match(str(item.action).replace("\n", " "))
                yield _NamedAction(name, _action(match) if match else ""), True
            fresh = False
            continue
        elif _UNASKED.match(line):
            yield _NamedAction("", "KEEP"), False
        at, fresh = end + 1, True


def _is_ordinal(match: re.Match[str]) -> bool:
    """Whether "chunk 2" may mean the second chunk rather than the id 2."""
    return bool(match["ordinal"]) and match["id"].isdecimal()


def _action(match: re.Match[str]) -> str:
    """The action; empty if it is unknown or another one follows."""
    return match["action"] if match["action"] and not match["another"] else ""


def _verdict(chunk_id: str, action: str) -> Verdict | None:
    if action[-1:].isdigit():
        return Verdict(chunk_id, "EXPAND", int(action[-1]))
    return Verdict(chunk_id, "KEEP" if action.upper().endswith("KEEP") else "DISCARD") if action else None


def _loose(chunk_id: str) -> str:
    return " ".join(chunk_id.split()).casefold()


def _short(text: str) -> str:
    line = "".join(c for c in " ".join(text[:500].split()) if c.isprintable())
    return line if len(line) <= REMARK_CHARS else f"{line[: REMARK_CHARS - 1]}…"
