"""Questions that a trace recorded, with the chunks that were retrieved: spans with the attributes
of OpenInference, as OpenTelemetry writes them in JSON (OTLP), or as Phoenix exports them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ragfilter.basics.files import json_objects
from ragfilter.errors import InputError
from ragfilter.text.normalise import loads, whole

REMEDY = "Write one span a line, or one message of OTLP, as JSON."
DOCUMENT = re.compile(r"retrieval\.documents\.(\d{1,9})\.document\.(id|content)")
ASKED_IN = ("query", "question", "input", "query_str")
"""Where a question is in an input that is JSON."""


class RecordedDocument(NamedTuple):
    """A retrieved chunk, as the span has it; empty where it has none."""

    id: str
    content: str


Recordings = dict[str, list[RecordedDocument]]
"""Questions, each with what was retrieved, best first."""


def read_traces(path: Path) -> Recordings:
    """The questions in the retriever spans of a file; of a repeated one, the last span counts.
    Raises InputError, also if there is none."""
    found: Recordings = {}
    for where, line in json_objects(path, REMEDY):
        try:
            spans = list(_spans(line))
        except (KeyError, TypeError, AttributeError, RecursionError):
            raise InputError(f"{where}: this is no message of OTLP.", remedy=REMEDY) from None
        for span in spans:
            query = _question(span.get("input.value"))
            by_place: dict[int, dict[str, str]] = {}
            for key, value in span.items():
                if match := DOCUMENT.fullmatch(key):
                    by_place.setdefault(int(match[1]), {})[match[2]] = whole(str(value))
            if query and by_place:
                found[query] = [
                    RecordedDocument(each.get("id", ""), each.get("content", ""))
                    for _, each in sorted(by_place.items())
                ]
    if not found:
        raise InputError(
            f"{path} has no span with a question (input.value) and retrieval.documents.",
            remedy="Export retriever spans, with their texts.",
        )
    return found


def matched(documents: list[RecordedDocument], texts: Mapping[str, str]) -> list[str]:
    """The ids of the chunks that these are, by id or by text (`texts`: id by whole text); the
    others are left out."""
    ids = set(texts.values())
    found = (d.id if d.id in ids else texts.get(d.content.strip(), "") for d in documents)
    return list(dict.fromkeys(filter(None, found)))


def _spans(line: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The attributes of every span of a line, by their full names."""
    message = line.get("resourceSpans")
    if not isinstance(message, list):
        yield {key.removeprefix("attributes."): value for key, value in _flat(line)}
        return
    for span in (s for r in message for scope in r["scopeSpans"] for s in scope["spans"]):
        # A value is an object with its kind as the only name.
        yield {
            each["key"]: next(iter(each["value"].values()), "")
            for each in span.get("attributes", ())
        }


def _flat(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Every value inside, by the names on the way to it."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for name, inside in pairs:
            yield from _flat(inside, f"{at}.{name}" if at else str(name))
    else:
        yield at, value


def _question(value: Any) -> str:
    """The question in an input, which may be JSON with the question in it."""
    text = whole(str(value or "")).strip()
    if text.startswith("{"):
        try:
            inside = loads(text)
        except (ValueError, RecursionError):
            return text
        given = (inside.get(name) for name in ASKED_IN)
        return next((each.strip() for each in given if isinstance(each, str)), text)
    return text
