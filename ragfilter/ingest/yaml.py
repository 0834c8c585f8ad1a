"""YAML as API descriptions and front matter need it. Null, true and false are parsed. Every other scalar stays text as
written, so version 1.10 does not become 1.1, and dates stay text. Keys are text, and tags are ignored."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from ragfilter.errors import InputError, extra

with extra("ingest"):
    import yaml

DEEPEST, MAX_MERGED = 300, 1_000_000
WORDS: dict[str, object] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


def _value(loader: Any, node: yaml.Node) -> Iterator[Any]:
    if isinstance(node, yaml.ScalarNode):
        yield WORDS.get(node.value, node.value) if node.tag == "word" else node.value
    elif isinstance(node, yaml.SequenceNode):
        yield from loader.construct_yaml_seq(node)
    else:
        for key, _ in node.value:
            key.tag = key.tag.replace("word", "key")
        yield from loader.construct_yaml_map(node)


class _Loader(yaml.CSafeLoader):
    yaml_implicit_resolvers: ClassVar[Any] = {  # type: ignore[misc]
        None: [("word", re.compile(f"(?:{'|'.join(WORDS)})$")), ("tag:yaml.org,2002:merge", re.compile("<<$"))]
    }
    yaml_constructors: ClassVar[Any] = {None: _value}
    _merged = 0

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        self._merged += len(node.value)
        if self._merged > MAX_MERGED:
            raise yaml.YAMLError(f"<< merges more than {MAX_MERGED:,} entries")


def parse_yaml(text: str, *, place: str) -> object:
    """Parse the single document in `text` into dicts, lists, text, booleans and None. An alias is the same object
    again, so the result may contain cycles. Raises InputError naming `place` and the line."""
    try:
        depth = 0
        # Deep nesting would crash the process when nodes are composed.
        for event in yaml.parse(text, _Loader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                raise yaml.YAMLError(f"it is nested deeper than {DEEPEST} levels")
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        message = f"{place}{line}: this is neither JSON nor YAML ({problem})."
        remedy = "Correct it there. A text that begins with & * @ % or ` needs quotes."
        raise InputError(message, remedy=remedy) from None
