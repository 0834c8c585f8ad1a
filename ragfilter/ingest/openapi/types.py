"""JSON Schema in words: a type as a phrase, properties as lines.

A reference is shown only by its name, so cycles do no harm. Inline structures are shown to a fixed
depth and width, since YAML aliases can make a small file endless. Readers of the lines stop when
they have enough.
"""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Iterator
from typing import Any

from ragfilter.ingest.openapi.refs import ref_name, ref_of

DEEPEST = 3
DEEPEST_TYPE = 4
DEEPEST_CHOICE = 2
MOST_PARTS = 30
MOST_TOP_PARTS = 200
MOST_VISITS = 5_000
MOST_VALUES = 50
LONGEST_LINE = 1500
LONGEST_VALUE = 80
COMPOSED = (("allOf", " and "), ("oneOf", " or "), ("anyOf", " or "))
_TAG = re.compile(
    r"</?(?:p|br|a|b|i|u|em|strong|code|pre|ul|ol|li|h[1-6]|div|span|table|thead|tbody|tr|td|th|"
    r"img|hr|sup|sub|small|blockquote|details|summary)\b[^<>]{0,300}>",
    re.IGNORECASE,
)


def type_words(schema: Any, depth: int = 0) -> str:
    """The type of a schema as a phrase: ``array of Campaign``, ``string or null``."""
    if schema is False:
        return "nothing"
    if not isinstance(schema, dict):
        return "any value"
    if ref := ref_of(schema):
        return ref_name(ref)
    if depth > DEEPEST_TYPE:
        return "a nested value"
    for key, between in COMPOSED:
        if parts := as_list(schema.get(key)):
            if depth > DEEPEST_CHOICE:
                return "a nested value"
            most = MOST_PARTS if depth else MOST_TOP_PARTS
            words = [type_words(part, depth + 1) for part in parts[:most]]
            words = words[:1] if len(set(words)) == 1 else words
            return between.join(words) + (f"{between}more" if len(parts) > most else "")
    name = schema.get("type")
    names: list[Any] = [n for n in as_list(name) if isinstance(n, str)] or [name]
    return " or ".join(_one_type(n, schema, depth) for n in names[:MOST_PARTS])


def _one_type(name: Any, schema: dict[str, Any], depth: int) -> str:
    if name == "array" or (not isinstance(name, str) and "items" in schema):
        return f"array of {type_words(schema.get('items'), depth + 1)}"
    if name == "object" or "properties" in schema or "additionalProperties" in schema:
        extra = schema.get("additionalProperties")
        if isinstance(extra, dict) and not schema.get("properties"):
            return f"map of {type_words(extra, depth + 1)}"
        return "object"
    return name if isinstance(name, str) and name else "any value"


def facets(schema: Any) -> list[str]:
    """What a schema says beside its type, in words: ``one of A, B``, ``at most 100``."""
    if not isinstance(schema, dict):
        return []
    words = [value_words(schema["format"])] if isinstance(schema.get("format"), str) else []
    values = as_list(schema.get("enum"))
    if values:
        more = f" and {len(values) - MOST_VALUES} more" if len(values) > MOST_VALUES else ""
        words.append(f"one of {', '.join(value_words(v) for v in values[:MOST_VALUES])}{more}")
    for key, phrase in (
        ("const", "always {}"),
        ("default", "default {}"),
        ("minimum", "from {}"),
        ("exclusiveMinimum", "above {}"),
        ("maximum", "at most {}"),
        ("exclusiveMaximum", "below {}"),
        ("multipleOf", "a multiple of {}"),
        ("minLength", "at least {} characters"),
        ("maxLength", "at most {} characters"),
        ("minItems", "at least {} items"),
        ("maxItems", "at most {} items"),
        ("pattern", "pattern {}"),
    ):
        # The exclusive limits of OpenAPI 3.0 are true or false and belong to the others.
        if key in schema and not (key.startswith("exclusive") and isinstance(schema[key], bool)):
            words.append(phrase.format(value_words(schema[key])))
    for key, word in (
        ("uniqueItems", "unique items"),
        ("nullable", "may be null"),
        ("readOnly", "read-only"),
        ("writeOnly", "write-only"),
        ("deprecated", "deprecated"),
    ):
        if schema.get(key) is True:
            words.append(word)
    return words


def property_lines(
    schema: Any, before: str = "", depth: int = 0, visits: Iterator[int] | None = None
) -> Iterator[str]:
    """A line for each property, those of inline objects under dotted names (``bid.amount``)."""
    visits = itertools.count() if visits is None else visits
    if not isinstance(schema, dict) or depth > DEEPEST or next(visits) > MOST_VISITS:
        return
    required = {name for name in as_list(schema.get("required")) if isinstance(name, str)}
    for name, value in as_dict(schema.get("properties")).items():
        yield described(f"- {before}{name}", value, required=name in required)
        yield from property_lines(value, f"{before}{name}.", depth + 1, visits)
    start = f"{before.removesuffix('.')}[]."
    yield from property_lines(schema.get("items"), start, depth + 1, visits)
    extra = schema.get("additionalProperties")
    yield from property_lines(extra, f"{before}*.", depth + 1, visits)
    for key, _ in COMPOSED:
        for part in as_list(schema.get(key)):
            yield from property_lines(part, before, depth + 1, visits)


def property_names(
    schema: Any, depth: int = 0, visits: Iterator[int] | None = None
) -> Iterator[str]:
    """The names of a schema's own properties, also of inline parts it is composed of."""
    visits = itertools.count() if visits is None else visits
    if not isinstance(schema, dict) or depth > DEEPEST or next(visits) > MOST_VISITS:
        return
    yield from as_dict(schema.get("properties"))
    for key, _ in COMPOSED:
        for part in as_list(schema.get(key)):
            yield from property_names(part, depth + 1, visits)


def described(start: str, schema: Any, *, required: bool = False, also: Any = None) -> str:
    """``<start> (<type>, <facets>): <description>`` in one line."""
    words = [type_words(schema, 1), *facets(schema)]
    words += facets(as_dict(schema).get("items"))
    if required:
        words.append("required")
    line = f"{start} ({', '.join(words)})"
    own = isinstance(also, str) and also
    said = one_line(also if own else as_dict(schema).get("description"))
    return cut(f"{line}: {said}" if said else line, LONGEST_LINE)


def value_words(value: Any) -> str:
    """A value of the description as one reads it, short."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{…}" if value else "{}"
    if isinstance(value, list):
        if any(isinstance(v, dict | list) for v in value[:MOST_PARTS]):
            return "[…]"
        more = ", …" if len(value) > MOST_PARTS else ""
        return f"[{', '.join(value_words(v) for v in value[:MOST_PARTS])}{more}]"
    return cut(" ".join(str(value)[: 4 * LONGEST_VALUE].split()), LONGEST_VALUE)


def prose(text: Any) -> str:
    """A description without HTML marks and needless white space, paragraphs kept."""
    if not isinstance(text, str):
        return ""
    if "<" in text or "&" in text:
        text = html.unescape(_TAG.sub(" ", text))
    lines = (" ".join(line.split()) for line in text.strip().splitlines())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def one_line(text: Any) -> str:
    return " ".join(prose(text).split())


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
