"""YAML as API descriptions and front matter need it.

Null, true and false are read as such. Every other scalar stays the text that was written, so that
version 1.10 is not 1.1 and a date is no date. Keys are text, and tags are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from ragfilter.errors import InputError, extra

with extra("ingest"):
    import yaml

DEEPEST = 300
MAX_MERGED = 1_000_000
TAG = "tag:yaml.org,2002:"
WORDS: dict[str, object] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


def _value(loader: Any, node: yaml.Node) -> Iterator[Any]:
    if isinstance(node, yaml.ScalarNode):
        yield WORDS.get(node.value, node.value) if node.tag == f"{TAG}bool" else node.value
    elif isinstance(node, yaml.SequenceNode):
        yield from loader.construct_yaml_seq(node)
    else:
        for key, _ in node.value:
            key.tag = key.tag.replace("bool", "str")
        yield from loader.construct_yaml_map(node)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    yaml_implicit_resolvers: ClassVar[Any] = {None: [
        (f"{TAG}bool", re.compile(f"(?:{'|'.join(WORDS)})$")),
        (f"{TAG}merge", re.compile("<<$")),
    ]}  # fmt: skip
    yaml_constructors: ClassVar[Any] = {None: _value}
    _merged = 0

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        self._merged += len(node.value)
        if self._merged > MAX_MERGED:
            raise _problem(node, f"<< merges more than {MAX_MERGED:,} entries")


def parse_yaml(text: str, *, place: str) -> object:
    """The one document in `text` as dicts, lists, text, booleans and None.

    An alias is the same object again, so what is read may be a cycle. Raises InputError naming
    `place` and the line.
    """
    try:
        _check_depth(text)
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise InputError(
            f"{place}{line}: this is not YAML ({problem}).",
            remedy="Correct the YAML there. A text that begins with & * @ % or ` needs quotes.",
        ) from None


def _check_depth(text: str) -> None:
    """Raise YAMLError for deep nesting, which crashes the process while nodes are composed."""
    depth = 0
    for event in yaml.parse(text, _Loader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise _problem(event, f"it is nested deeper than {DEEPEST} levels")


def _problem(place: Any, what: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=what, problem_mark=place.start_mark)
