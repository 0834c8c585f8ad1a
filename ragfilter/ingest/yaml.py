"""YAML as API descriptions and front matter need it: fast, and safe on a file from a stranger.

Built on the parser's events. PyYAML's own loaders took ten times as long and fifteen times the
memory on 10 MB, crash the process on deep nesting, and read `on`, `no` and dates as what the
author did not write. Here:

- null, true and false are read as such, every other scalar stays the text that was written (so
  version 1.10 is not 1.1), and keys are always text
- an alias is the same object again, so a file of aliases of aliases takes no more memory than its
  text; an anchor may hold itself, so what is read may be a cycle
- tags are not obeyed
"""

from __future__ import annotations

from typing import Any

from ragfilter.basics.extras import extra
from ragfilter.errors import InputError
from ragfilter.protocols import Progress

with extra("ingest"):
    import yaml
    from yaml.events import (
        AliasEvent,
        DocumentStartEvent,
        MappingEndEvent,
        MappingStartEvent,
        ScalarEvent,
        SequenceEndEvent,
        SequenceStartEvent,
        StreamEndEvent,
    )

REMEDY = "Correct the YAML there."
DEEPEST = 500
MOST_MERGED = 1_000_000
EVERY = 20_000
WORDS: dict[str, object] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
STR_TAG = "tag:yaml.org,2002:str"

_NO_KEY: Any = object()
_MERGE: Any = object()


def parse_yaml(text: str, *, place: str, progress: Progress | None = None) -> object:
    """The one document in `text` as dicts, lists, text, booleans and None.

    `progress` counts characters. Raises InputError naming `place` and the line.
    """
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        return _Builder(place).build(loader, progress, len(text))
    except yaml.MarkedYAMLError as error:
        where = error.problem_mark or error.context_mark
        line = f", line {where.line + 1}" if where else ""
        raise InputError(
            f"{place}{line}: this is not YAML ({error.problem or error.context}).", remedy=REMEDY
        ) from None
    except (yaml.YAMLError, ValueError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{place}: this is not YAML ({first}).", remedy=REMEDY) from None


class _Builder:
    """The containers that are open while the events go by."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.root: object = None
        self.open: list[tuple[Any, Any]] = []
        self.current: Any = None
        self.key: Any = _NO_KEY
        self.anchors: dict[str, Any] = {}
        self.merges: dict[int, list[Any]] = {}
        self.merged = 0
        # Equal texts are kept once: a description repeats its words thousands of times.
        self.texts: dict[str, str] = {}

    def build(self, loader: Any, progress: Progress | None, total: int) -> object:
        documents = count = 0
        while True:
            event = loader.get_event()
            kind = event.__class__
            count += 1
            if progress is not None and count % EVERY == 0:
                progress(min(event.start_mark.index, total - 1), total)
            if kind is ScalarEvent:
                self._scalar(event)
            elif kind is MappingStartEvent:
                self._begin({}, event)
            elif kind is SequenceStartEvent:
                self._begin([], event)
            elif kind is MappingEndEvent or kind is SequenceEndEvent:
                self._end(event)
            elif kind is AliasEvent:
                if event.anchor not in self.anchors:
                    self._refuse(event, f"the alias *{event.anchor} has no anchor")
                self._put(self.anchors[event.anchor], event)
            elif kind is DocumentStartEvent:
                documents += 1
                if documents > 1:
                    self._refuse(event, "a second document begins; give each a file of its own")
            elif kind is StreamEndEvent:
                if progress is not None and count >= EVERY:
                    progress(total, total)
                return self.root

    def _scalar(self, event: ScalarEvent) -> None:
        text = self.texts.setdefault(event.value, event.value)
        plain = event.implicit[0] and event.tag != STR_TAG
        if self.current.__class__ is dict and self.key is _NO_KEY:
            self.key = _MERGE if plain and text == "<<" else text
            if event.anchor:
                self.anchors[event.anchor] = text
            return
        value = WORDS.get(text, text) if plain else text
        if event.anchor:
            self.anchors[event.anchor] = value
        self._put(value, event)

    def _begin(self, container: Any, event: Any) -> None:
        if self.current.__class__ is dict and self.key is _NO_KEY:
            self._refuse(event, "a key is not text")
        if len(self.open) >= DEEPEST:
            self._refuse(event, f"nested deeper than {DEEPEST} levels")
        if event.anchor:
            self.anchors[event.anchor] = container
        self.open.append((self.current, self.key))
        self.current, self.key = container, _NO_KEY

    def _end(self, event: Any) -> None:
        finished = self.current
        for base in self.merges.pop(id(finished), ()):
            for key, value in list(base.items()):
                finished.setdefault(key, value)
        self.current, self.key = self.open.pop()
        self._put(finished, event)

    def _put(self, value: Any, event: Any) -> None:
        into = self.current
        if into.__class__ is list:
            into.append(value)
        elif into.__class__ is not dict:
            self.root = value
        elif self.key is _NO_KEY:
            if not isinstance(value, str):
                self._refuse(event, "a key is not text")
            self.key = value
        elif self.key is _MERGE:
            self._merge(value, event)
            self.key = _NO_KEY
        else:
            into[self.key] = value
            self.key = _NO_KEY

    def _merge(self, value: Any, event: Any) -> None:
        bases = value if isinstance(value, list) else [value]
        if not all(isinstance(base, dict) for base in bases):
            self._refuse(event, "<< names something that is not a mapping")
        self.merged += sum(len(base) for base in bases)
        if self.merged > MOST_MERGED:
            self._refuse(event, f"<< merges more than {MOST_MERGED:,} entries")
        # The mapping's own entries win, also those that come after the merge.
        self.merges.setdefault(id(self.current), []).extend(bases)

    def _refuse(self, event: Any, what: str) -> None:
        line = event.start_mark.line + 1
        raise InputError(f"{self.place}, line {line}: {what}.", remedy=REMEDY)
