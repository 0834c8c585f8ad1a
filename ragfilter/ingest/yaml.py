"""YAML as API descriptions and front matter need it, from the events of PyYAML's parser.

Null, true and false are read as such. Every other scalar stays the text that was written, so that
version 1.10 is not 1.1 and a date is no date. Keys are text, and tags are ignored. PyYAML's own
composer takes nine times as long, and crashes the process on deep nesting.
"""

from __future__ import annotations

import io
from typing import Any

from ragfilter.basics.extras import extra
from ragfilter.errors import InputError
from ragfilter.protocols import Progress

with extra("ingest"):
    import yaml

    Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

DEEPEST = 300
MOST_MERGED = 1_000_000
WORDS: dict[str, object] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


def parse_yaml(text: str, *, place: str, progress: Progress | None = None) -> object:
    """The one document in `text` as dicts, lists, text, booleans and None.

    An alias is the same object again, so what is read may be a cycle. `progress` counts characters.
    Raises InputError naming `place` and the line.
    """
    try:
        return _Loader(_Stream(text, progress)).document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise InputError(
            f"{place}{line}: this is not YAML ({problem}).", remedy="Correct the YAML there."
        ) from None


class _Stream(io.StringIO):
    """Text that reports how much of it was read."""

    def __init__(self, text: str, progress: Progress | None) -> None:
        super().__init__(text)
        self._progress = progress
        self._total = len(text)

    def read(self, size: int | None = -1, /) -> str:
        part = super().read(size)
        if self._progress is not None:
            self._progress(self.tell(), self._total)
        return part


class _Loader(Loader):  # type: ignore[misc]
    def document(self) -> Any:
        self._anchors: dict[str, Any] = {}
        self._texts: dict[str, str] = {}
        self._merged = 0
        self.get_event()  # The beginning of the stream.
        if isinstance(self.get_event(), yaml.StreamEndEvent):
            return None
        value = self._value(0)
        self.get_event()  # The end of the document.
        event: Any = self.get_event()
        if not isinstance(event, yaml.StreamEndEvent):
            raise _problem(event, "a second document begins; give each a file of its own")
        return value

    def _value(self, depth: int) -> Any:
        event: Any = self.get_event()
        kind = event.__class__
        if kind is yaml.AliasEvent:
            if event.anchor not in self._anchors:
                raise _problem(event, f"the alias *{event.anchor} has no anchor")
            return self._anchors[event.anchor]
        value: Any
        if kind is yaml.ScalarEvent:
            # A description repeats its words thousands of times, so equal ones are kept once.
            text = self._texts.setdefault(event.value, event.value)
            value = WORDS.get(text, text) if event.implicit[0] and not event.tag else text
        else:
            value = [] if kind is yaml.SequenceStartEvent else {}
        if event.anchor:
            self._anchors[event.anchor] = value
        if depth > DEEPEST:
            raise _problem(event, f"it is nested deeper than {DEEPEST} levels")
        if kind is yaml.SequenceStartEvent:
            while self.peek_event().__class__ is not yaml.SequenceEndEvent:
                value.append(self._value(depth + 1))
            self.get_event()
        elif kind is yaml.MappingStartEvent:
            self._fill(value, depth)
        return value

    def _fill(self, mapping: dict[str, Any], depth: int) -> None:
        merged: list[Any] = []
        event: Any
        while (event := self.peek_event()).__class__ is not yaml.MappingEndEvent:
            plain = event.__class__ is yaml.ScalarEvent and event.implicit[0]
            key = self._value(depth + 1)
            if event.__class__ is yaml.ScalarEvent:
                key = event.value
            if not isinstance(key, str):
                raise _problem(event, "a key is not text")
            value = self._value(depth + 1)
            if plain and key == "<<":
                merged += value if isinstance(value, list) else [value]
                if not all(isinstance(base, dict) for base in merged):
                    raise _problem(event, "<< names something that is not a mapping")
            else:
                mapping[key] = value
        self.get_event()
        for base in merged:
            self._merged += len(base)
            if self._merged > MOST_MERGED:
                raise _problem(event, f"<< merges more than {MOST_MERGED:,} entries")
            # The mapping's own entries win, also those that come after the merge.
            for name, value in list(base.items()):
                mapping.setdefault(name, value)


def _problem(event: Any, what: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=what, problem_mark=event.start_mark)
