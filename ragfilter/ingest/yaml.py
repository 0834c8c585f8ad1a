"""YAML as API descriptions and front matter need it, composed by PyYAML's parser in C.

Null, true and false are read as such. Every other scalar stays the text that was written, so that
version 1.10 is not 1.1 and a date is no date. Keys are text, and tags are ignored.
"""

from __future__ import annotations

from typing import Any

from ragfilter.basics.extras import extra
from ragfilter.errors import InputError

with extra("ingest"):
    import yaml

    Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

DEEPEST = 300
MAX_MERGED = 1_000_000
PLAIN = ("tag:yaml.org,2002:null", "tag:yaml.org,2002:bool")
MERGE = "tag:yaml.org,2002:merge"
WORDS: dict[str, object] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


def parse_yaml(text: str, *, place: str) -> object:
    """The one document in `text` as dicts, lists, text, booleans and None.

    An alias is the same object again, so what is read may be a cycle. Raises InputError naming
    `place` and the line.
    """
    try:
        _check_depth(text)
        node = yaml.compose(text, Loader)
        return None if node is None else _Values().of(node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        parts = (getattr(error, "context", None), getattr(error, "problem", None))
        problem = ", ".join(filter(None, parts)) or str(error).partition("\n")[0]
        raise InputError(
            f"{place}{line}: this is not YAML ({problem}).",
            remedy="Correct the YAML there. A text that begins with & * @ % or ` needs quotes.",
        ) from None


def _check_depth(text: str) -> None:
    """Raise YAMLError for deep nesting, which crashes the process while nodes are composed."""
    depth = 0
    for event in yaml.parse(text, Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEEPEST:
                raise _problem(event, f"it is nested deeper than {DEEPEST} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class _Values:
    """The values of nodes, each made once."""

    def __init__(self) -> None:
        self._known: dict[int, Any] = {}
        self._merged = 0

    def of(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return WORDS.get(node.value, node.value) if node.tag in PLAIN else node.value
        if id(node) not in self._known:
            if isinstance(node, yaml.SequenceNode):
                items = self._known[id(node)] = []
                items.extend(map(self.of, node.value))
            else:
                self._fill(self._known.setdefault(id(node), {}), node)
        return self._known[id(node)]

    def _fill(self, mapping: dict[str, Any], node: yaml.Node) -> None:
        merged: list[Any] = []
        for key, item in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _problem(key, "a key is not text")
            value = self.of(item)
            if key.tag != MERGE:
                mapping[key.value] = value
                continue
            merged += value if isinstance(value, list) else [value]
            if not all(isinstance(base, dict) for base in merged):
                raise _problem(key, "<< names something that is not a mapping")
        for base in merged:
            self._merged += len(base)
            if self._merged > MAX_MERGED:
                raise _problem(node, f"<< merges more than {MAX_MERGED:,} entries")
            # The mapping's own entries win, also those that come after the merge.
            for name, value in list(base.items()):
                mapping.setdefault(name, value)


def _problem(place: Any, what: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=what, problem_mark=place.start_mark)
