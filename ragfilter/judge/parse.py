"""Reads the judge's answer: lines ``chunk id -> ACTION``, a table, or the same as JSON. Pure.

Source: Intelligent Chunk Filtering, response format; docs/design.md#judge. The decisions:

- The last decision for an id counts, since models think before they conclude. A changed decision
  is reported. Ids that were not asked about and unknown actions are reported and never obeyed.
- A report names only ids that were asked about, and quotes nothing, since an answer may name
  anything.
- JSON inside prose is read if no line decides about an id that was asked about.
- JSON may come in several values. If one of them cannot be read completely, none of them counts:
  half a list would discard everything after the cut. Text that the model marks as thinking does not
  count either.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ragfilter.judge.prompts import ACTIONS as ACTIONS
from ragfilter.model import Verdict

MOST_REMARKS = 20
REMARK_CHARS = 60
MOST_LAYERS = 10

SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "decisions": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "chunk_id": {"type": "string"},
                    "action": {"type": "string", "enum": list(ACTIONS)},
                },
                "required": ["chunk_id", "action"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["decisions"],
    "additionalProperties": False,
}
"""The schema for structured output; the line format goes through the same parser."""

_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n`]*$", re.MULTILINE)
_JSON = re.compile(r"\{|\[\s*[\[{\"\]]")
_JSON_INSIDE = re.compile(r"\{\s*\"|\[\s*\{\s*\"")
_NEXT = re.compile(r"(?P<thought><think(?:ing)?>)|\{\s*\"|\[\s*[\[{\"]", re.IGNORECASE)
_DECODER = json.JSONDecoder()
_MEMBER = re.compile(r'[\s{\[]*"[^"]*"\s*:\s*"[^"]*"[\s}\],]*')
_ARROW = re.compile(r"[-=—–]{1,3}>|[→⇒⟶➔]")
# Quotation marks are not included: what a judge quotes is not its decision.
_BULLET = re.compile(r"^(?:[-*•+]\s+|\(?\d+[.):]\s*|\[\d+\]\s+)")
_LABEL = re.compile(r"^(?:chunk[ _]?)?id\s*[:=]\s*", re.IGNORECASE)
# What follows the action may explain it, but must not continue the word or name another action.
_ACTION = re.compile(
    r"\s*+[`*\"'“”‘’\[\]() \t]*+(KEEP|DISCARD|EXPAND[ _-]?(?P<depth>[135]))(?![\w.-]*\w)",
    re.IGNORECASE,
)
_ANOTHER = re.compile(r"\W*+(?:(?:or|and)\W+)?(?i:keep|discard|expand(?:[ _-]?\d)?)\b")
_SHOUTED = re.compile(r"\b(?:KEEP|DISCARD|EXPAND)")
_WORD = re.compile(r"\w")
_WRAPPING = "`*\"'“”‘’,;"
_BRACKETS = ("[]", "<>", "()")


class Reading(NamedTuple):
    """The decisions for the ids that were asked about, in that order; remarks on the rest; and the
    ids whose only action is unknown."""

    verdicts: tuple[Verdict, ...]
    remarks: tuple[str, ...]
    unreadable: tuple[str, ...]


def parse(text: str, asked: Sequence[str]) -> Reading:
    """Read what `text` says about the ids in `asked`."""
    names = _Names(asked)
    actions: dict[str, str] = {}
    unreadable: set[str] = set()
    remarks: list[str] = []
    unknown = 0
    for raw_id, raw_action in _decisions(text, names):
        chunk_id = names.find(raw_id)
        action = _action(raw_action)
        if chunk_id is None:
            unknown += 1
        elif action is None:
            remarks.append(f"unknown action for {_short(chunk_id)}")
            unreadable.add(chunk_id)
        else:
            earlier = actions.get(chunk_id, action)
            if earlier != action:
                remarks.append(f"changed for {_short(chunk_id)}: {earlier}, then {action}")
            actions[chunk_id] = action
    if len(remarks) > MOST_REMARKS:
        remarks = [*remarks[:MOST_REMARKS], f"and {len(remarks) - MOST_REMARKS} more"]
    if unknown:
        what = "1 decision for an id" if unknown == 1 else f"{unknown} decisions for ids"
        remarks.append(f"{what} not asked about")
    once = dict.fromkeys(asked)
    return Reading(
        tuple(_verdict(i, actions[i]) for i in once if i in actions),
        tuple(remarks),
        tuple(i for i in once if i in unreadable and i not in actions),
    )


class _Names:
    """The ids that were asked about, found in the forms in which a model may write them."""

    def __init__(self, asked: Sequence[str]) -> None:
        self._asked = frozenset(asked)
        self._loose: dict[str, str | None] = {}
        for chunk_id in self._asked:
            key = _loose(chunk_id)
            # Two ids that differ only in case or spaces must be written exactly.
            self._loose[key] = None if key in self._loose else chunk_id

    def find(self, raw: str) -> str | None:
        """The asked id that `raw` names: an exact match, or one ignoring decoration and case."""
        for form in _forms(raw):
            if form in self._asked:
                return form
        for form in _forms(raw):
            found = self._loose.get(_loose(form))
            if found is not None:
                return found
        return None


_NOBODY = _Names(())


def _forms(raw: str) -> Iterator[str]:
    """`raw`, then with one layer of decoration after another removed."""
    form = raw.strip()
    for _ in range(MOST_LAYERS):
        yield form
        bare = _LABEL.sub("", _BULLET.sub("", form, count=1), count=1)
        if bare == form:
            pair = form[:1] + form[-1:]
            begin = form[:1] in _WRAPPING or pair in _BRACKETS
            end = form[-1:] in _WRAPPING or pair in _BRACKETS
            bare = form[begin : len(form) - end].strip()
        if bare == form or not bare:
            return
        form = bare


def _loose(chunk_id: str) -> str:
    return " ".join(chunk_id.split()).casefold()


def _decisions(text: str, names: _Names) -> Iterator[tuple[str, str]]:
    """(id, action) as written, in the order of the answer."""
    text = _FENCE.sub("", text).strip()
    if not _JSON.match(text):
        text = _THINKING.sub("", text).strip()
    if _JSON.match(text) and not _decides(_from_line(text.partition("\n")[0], names), names):
        yield from _from_json(text, names)
        return
    lines = _from_lines(text, names)
    begins = _JSON_INSIDE.search(text)
    inside = list(_from_json(text[begins.start() :], names)) if begins else []
    yield from inside if inside and not _decides(lines, names) else lines


def _from_line(line: str, names: _Names) -> Iterator[tuple[str, str]]:
    # An id may contain an arrow itself, so the last arrow followed by an action divides the line.
    arrows = list(_ARROW.finditer(line))
    shouted = max((word.start() for word in _SHOUTED.finditer(line)), default=-1) if arrows else -1
    for arrow in reversed(arrows):
        if _action(line, arrow.end(), shouted) is not None:
            yield line[: arrow.start()], line[arrow.end() :]
            return
    # "| id | KEEP |" and "id: KEEP" are common too, but are only read for ids that were asked
    # about.
    row = _from_row(line, names) if "|" in line else None
    if row is not None:
        yield row
        return
    if arrows:
        yield line[: arrows[0].start()], line[arrows[0].end() :]
        return
    raw_id, colon, raw_action = line.rpartition(":")
    # A member of a JSON object is read with the whole object, or not at all.
    if colon and not _MEMBER.fullmatch(line) and _decides([(raw_id, raw_action)], names):
        yield raw_id, raw_action


def _from_row(line: str, names: _Names) -> tuple[str, str] | None:
    """The first cell that is an id, and the next cell that is only an action."""
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    place = next((n for n, cell in enumerate(cells) if names.find(cell) is not None), len(cells))
    actions = [cell for cell in cells[place + 1 :] if _is_action(cell)]
    return (cells[place], actions[0]) if len(actions) == 1 else None


def _decides(decisions: Iterable[tuple[str, str]], names: _Names) -> bool:
    """Whether any of them gives an action to an id that was asked about."""
    return any(_action(a) is not None and names.find(i) is not None for i, a in decisions)


def _from_json(text: str, names: _Names) -> list[tuple[str, str]]:
    """Decisions from one JSON value after another, and from the lines between them; none if one of
    the values is cut off."""
    found: list[tuple[str, str]] = []
    between: list[str] = []
    begins, end = _JSON.match(text), 0
    while begins:
        between.append(text[end : begins.start()])
        if begins.groupdict().get("thought"):
            thought = _THINKING.match(text, begins.start())
            end = thought.end() if thought else len(text)
        else:
            found += _from_lines("".join(between), names)
            between.clear()
            try:
                value, end = _DECODER.raw_decode(text, begins.start())
            except (ValueError, RecursionError):
                return []
            found += _from_value(value)
        begins = _NEXT.search(text, end)
    return found + _from_lines("".join(between) + text[end:], names)


def _from_lines(text: str, names: _Names) -> list[tuple[str, str]]:
    return [decision for line in text.splitlines() for decision in _from_line(line, names)]


def _from_value(data: Any) -> Iterator[tuple[str, str]]:
    if isinstance(data, dict) and isinstance(data.get("decisions"), list | dict):
        data = data["decisions"]
    if isinstance(data, dict) and not ({"action", "decision"} & data.keys()):
        yield from ((str(i), action) for i, action in data.items() if isinstance(action, str))
        return
    for item in data if isinstance(data, list) else [data]:
        if isinstance(item, dict):
            raw_id = next((item[k] for k in ("chunk_id", "id", "chunk") if k in item), None)
            action = next((item[k] for k in ("action", "decision") if k in item), None)
            if isinstance(raw_id, str) and isinstance(action, str):
                yield raw_id, action
        elif isinstance(item, str):
            yield from _from_line(item, _NOBODY)


def _action(raw: str, begin: int = 0, shouted: int | None = None) -> str | None:
    """The action at `begin` of `raw`, None if there is none or if it names two. `shouted` is the
    position of the last action in capitals, -1 if there is none, for callers that check a line many
    times."""
    match = _ACTION.match(raw, begin)
    if match is None or _ANOTHER.match(raw, match.end()):
        return None
    if _SHOUTED.search(raw, match.end()) if shouted is None else shouted >= match.end():
        return None
    return f"EXPAND_{match['depth']}" if match["depth"] else match[1].upper()


def _is_action(cell: str) -> bool:
    """Whether `cell` is an action without any other word."""
    match = _ACTION.match(cell)
    return match is not None and not _WORD.search(cell, match.end())


def _verdict(chunk_id: str, action: str) -> Verdict:
    if action.startswith("EXPAND"):
        return Verdict(chunk_id, "EXPAND", int(action[-1]))
    return Verdict(chunk_id, "KEEP" if action == "KEEP" else "DISCARD")


def _short(text: str) -> str:
    line = "".join(c for c in " ".join(text[:500].split()) if c.isprintable())
    return line if len(line) <= REMARK_CHARS else f"{line[: REMARK_CHARS - 1]}…"
