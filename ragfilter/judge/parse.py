"""Reads the judge's answer: lines ``chunk id -> ACTION``, a table, or the same as JSON. Pure.

Source: Intelligent Chunk Filtering, response format; docs/design.md#judge. The decisions:

- The last decision for an id counts, since models think before they conclude. A changed decision
  is reported. Ids that were not asked about and unknown actions are reported and never obeyed.
- A report names only ids that were asked about, and quotes nothing, since an answer may name
  anything.
- A line that decides is not searched for JSON, since its explanation may quote some.
- JSON may come in several values. If one of them cannot be read, none of them counts: half a list
  would discard everything after the cut. Only an answer in lines may quote such JSON.
- Text that the model marks as thinking does not count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

from pydantic import AliasChoices, BaseModel, Field, WithJsonSchema, model_validator

from ragfilter.judge.prompts import ACTIONS as ACTIONS
from ragfilter.model import Verdict

MOST_REMARKS = 20
REMARK_CHARS = 60


class ChunkDecision(
    BaseModel, coerce_numbers_to_str=True, json_schema_extra={"additionalProperties": False}
):
    """What becomes of one chunk."""

    chunk_id: str = Field(validation_alias=AliasChoices("chunk_id", "id", "chunk"))
    # Anything is accepted, so that what is not an action is reported with its id, as in a line.
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
"""The schema for structured output; the line format goes through the same parser."""

# Within JSON no line begins like this, since a string has no line breaks.
_THINKING = re.compile(r"(?ims)^[ \t]*+<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)")
# Repetitions are possessive, bounded, or run once through a line: reading takes linear time.
_JSON = r'(?:\[\s*+)?\{\s*+"'
_BULLET = r"(?:[-*•+][ \t]++|\(?\d+[.):][ \t]*+|\[\d+\][ \t]++)"
_OPENING = r"[ \t`*\"'“”‘’\[(<]{0,9}?"
_CLOSING = r"[ \t`*\"'“”‘’\])>,;]*+"
_ARROW = r"(?:[-=—–]{1,3}>|[→⇒⟶➔])"
# What follows an action may explain it, but must not continue the word.
_ACTION = r"[ \t`*\"'“”‘’\[\]()]*+(?:KEEP|DISCARD|EXPAND[ _-]?[135])(?![\w.-]*\w)"
_CELL = rf"\| (?={_ACTION}[^\w|\n]*+(?:\||$))"


def _pattern(asked: Iterable[str]) -> re.Pattern[str]:
    """A line that decides, or the beginning of JSON."""
    # An id may contain an arrow, an action and another id, so ids are looked for by name, and the
    # longest first.
    names = (r"\s+".join(map(re.escape, i.split())) for i in sorted(asked, key=len, reverse=True))
    return re.compile(
        rf"""
        ^(?:
            (?:[^|>\n]*\|){{0,9}}? [ \t]*+          # in a table, the cells before the id
            {_BULLET}{{0,3}}? {_OPENING} (?:(?:chunk[ _]?)?id[ \t]*+[:=]{_OPENING})??
            (?P<id>{"|".join(names)}) (?!"\s*+:\s*+")   # a member of an object is left to JSON
            {_CLOSING} (?: {_ARROW} | : (?={_ACTION}) | (?:\|[^|\n]*){{0,9}}? {_CELL} )
            | (?!.*{_JSON}) .*{_ARROW} (?={_ACTION})    # an id that was not asked about
        )
        (?P<action>{_ACTION})?
        (?P<another>
            [^\w|\n]*+ (?:(?:or|and)[^\w\n]++)? (?:KEEP|DISCARD|EXPAND(?:[ _-]?\d)?)\b
            | .*? (?:\b(?-i:KEEP|DISCARD|EXPAND) | {_ARROW}{_ACTION} | {_CELL})
        )?
        .*
        | (?P<json>{_JSON})
        """,
        re.VERBOSE | re.IGNORECASE | re.MULTILINE,
    )


class Reading(NamedTuple):
    """The decisions for the ids that were asked about, in that order; remarks on the rest; and the
    ids whose only action is unknown."""

    verdicts: tuple[Verdict, ...]
    remarks: tuple[str, ...]
    unreadable: tuple[str, ...]


def parse(text: str, asked: Sequence[str]) -> Reading:
    """Read what `text` says about the ids in `asked`."""
    said: dict[str, list[Verdict | None]] = {chunk_id: [] for chunk_id in asked}
    loose: dict[str, str] = {}
    for chunk_id in said:
        # Ids that differ only in case or spaces must be written exactly.
        loose[_loose(chunk_id)] = "" if _loose(chunk_id) in loose else chunk_id
    unknown = 0
    for match in _decisions(text, _pattern(said)):
        raw = match["id"] or ""
        chunk_id = raw if raw in said else loose.get(_loose(raw), "")
        if chunk_id in said:
            said[chunk_id].append(_verdict(chunk_id, match))
        else:
            unknown += 1
    verdicts: list[Verdict] = []
    remarks: list[str] = []
    unreadable: list[str] = []
    for chunk_id, given in said.items():
        name = _short(chunk_id)
        readable = [verdict for verdict in given if verdict]
        if len(readable) < len(given):
            remarks.append(f"unknown action for {name}")
        for one, next_ in pairwise(readable):
            if one != next_:
                remarks.append(f"changed for {name}: {one.written}, then {next_.written}")
        if readable:
            verdicts.append(readable[-1])
        elif given:
            unreadable.append(chunk_id)
    if len(remarks) > MOST_REMARKS:
        remarks = [*remarks[:MOST_REMARKS], f"and {len(remarks) - MOST_REMARKS} more"]
    if unknown:
        what = "1 decision for an id" if unknown == 1 else f"{unknown} decisions for ids"
        remarks.append(f"{what} not asked about")
    return Reading(tuple(verdicts), tuple(remarks), tuple(unreadable))


def _decisions(text: str, pattern: re.Pattern[str]) -> list[re.Match[str]]:
    """What decides in `text`, in its order: lines, and what JSON says, written as lines."""
    text = _THINKING.sub("", text)
    found: list[re.Match[str]] = []
    in_json = False
    end = 0
    try:
        while match := pattern.search(text, end):
            end = match.end()
            if match["json"] is None:
                found.append(match)
                continue
            value, end = json.JSONDecoder().raw_decode(text, match.start())
            for item in JudgeAnswer.model_validate(value).decisions:
                line = f"{item.chunk_id} -> {item.action}".replace("\n", " ")
                if decided := pattern.match(line):
                    found.append(decided)
                    in_json = True
    except (ValueError, RecursionError):
        lines = [line for line in pattern.finditer(text) if line["json"] is None]
        return [] if in_json else lines
    return found


def _verdict(chunk_id: str, match: re.Match[str]) -> Verdict | None:
    """None if the action is unknown, or if another one follows."""
    action = match["action"]
    if action is None or match["another"]:
        return None
    if action[-1].isdigit():
        return Verdict(chunk_id, "EXPAND", int(action[-1]))
    return Verdict(chunk_id, "KEEP" if action.upper().endswith("KEEP") else "DISCARD")


def _loose(chunk_id: str) -> str:
    return " ".join(chunk_id.split()).casefold()


def _short(text: str) -> str:
    line = "".join(c for c in " ".join(text[:500].split()) if c.isprintable())
    return line if len(line) <= REMARK_CHARS else f"{line[: REMARK_CHARS - 1]}…"
