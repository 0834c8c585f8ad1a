"""The title and text of a chunk of an API description, with the most important parts first.

A chunk is one item of any length, but an embedding model reads only the beginning. So the text begins with what the
item is, continues with its prose and its structure, and ends with details. A referenced schema is shown only by its
name, so cycles do no harm. Inline structures are limited in depth and width, since YAML aliases can make a small file
endless."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from itertools import chain, count
from typing import Any
from urllib.parse import unquote

from ragfilter.ingest.openapi.items import Item
from ragfilter.ingest.openapi.resolver import PART, as_dict, as_list, as_text, end, item_of, ref_of, shown
from ragfilter.text.numbers import first_of

LONGEST, LONGEST_TITLE, LONGEST_LINE, LONGEST_VALUE = 20_000, 200, 1500, 80
DEEPEST, MAX_PARTS, MAX_VALUES, MAX_VISITS = 3, 30, 50, 2_000
COMPOSED = {"allOf": " and ", "oneOf": " or ", "anyOf": " or "}
LIMITS = {"const": "always {}", "default": "default {}", "minimum": "from {}", "maximum": "at most {}"}
LIMITS |= {"minLength": "at least {} characters", "maxLength": "at most {} characters"}
LIMITS |= {"minItems": "at least {} items", "maxItems": "at most {} items", "pattern": "pattern {}"}
FLAGS = {"nullable": "may be null", "readOnly": "read-only", "writeOnly": "write-only"}
ADDRESSES = {"authorizationUrl": "authorize at", "tokenUrl": "token from", "refreshUrl": "refresh at"}
_TAGS = r"p|br|a|b|i|u|em|strong|code|pre|[uo]l|li|h\d|div|span|table|thead|tbody|tr|td|th|img|hr|su[bp]|small"
_TAGS += "|blockquote|details|summary"
_TAG = re.compile(rf"</?(?:{_TAGS})\b[^<>]{{0,300}}>", re.IGNORECASE)


def title_and_text(item: Item) -> tuple[str, str]:
    """The title and the text of an item. Operations and schemas do not name their API, because this would make all
    chunks alike."""
    title, *lines = _LINES.get(item.kind, _operation)(item)
    text = "\n".join(filter(None, lines))
    return _cut(title, LONGEST_TITLE), text if item.kind == "tag" else _cut(text, LONGEST)


def _guide(item: Item) -> Iterator[str]:
    return iter((item.node["title"], item.node["description"]))


def _operation(item: Item) -> Iterator[str]:
    node, path, method = item.node, item.pointer[1], item.pointer[2].upper()
    yield _one_line(node.get("summary")) or item.names[0]
    sent = "Webhook: " if item.kind == "webhook" else ""
    name = "" if item.names[0] == f"{method}{path}" else f" ({item.names[0]})"
    yield f"{sent}{method} {path}{name}.{' Deprecated.' if node.get('deprecated') is True else ''}"
    yield _prose(node.get("description"))
    if body := as_dict(end(node.get("requestBody"))):
        need = ", required" if body.get("required") is True else ""
        yield f"Request body: {_content(body)}{need}. {_one_line(body.get('description'))}".strip()
        yield from chain(*map(_properties, _bodies(body).values()))
    yield "Parameters:" if node["parameters"] else ""
    for each in node["parameters"]:
        # If the reference is not available, only its name is known.
        words = [_name(each) or each.get("name") or "without a name", each.get("in")]
        schema = each.get("schema", next(iter(_bodies(each).values()), None))
        start = f"- {', '.join(map(_value, filter(None, words)))}"
        yield _described(start, schema, each.get("required") is True, each.get("description"))
    yield "Responses:" if node["responses"] else ""
    for status, response in node["responses"].items():
        # A shared response is described in its own chunk, not in a hundred others.
        found, name = as_dict(end(response)), _name(shown(response))
        body_type = f" ({_content(found)})" if "content" in found else ""
        told = f": {name}{body_type}" if name else f"{body_type}: {_one_line(found.get('description'))}"
        yield _cut(f"- {status}{told}".rstrip(": "), LONGEST_LINE)
    if isinstance(security := shown(node.get("security")), list):
        ways = []
        for way in security:
            named = [(name, ", ".join(map(str, as_list(scopes)))) for name, scopes in as_dict(way).items()]
            ways.append(" and ".join(f"{name} ({scopes})" if scopes else name for name, scopes in named))
        yield f"Security: {' or '.join(way or 'no authentication' for way in ways or [''])}."


def _bodies(node: Any) -> dict[str, Any]:
    """The schema of each media type of a body."""
    return {media: as_dict(body).get("schema") for media, body in as_dict(node.get("content")).items()}


def _content(node: Any) -> str:
    """The type of a body, and its media types unless they are plain JSON."""
    types = ((_type(schema), media) for media, schema in _bodies(node).items())
    return " or ".join(t if media == "application/json" else f"{t} ({media})" for t, media in types) or "none"


def _schema(item: Item) -> Iterator[str]:
    name, node = item.pointer[-1], item.node
    yield f"{name} schema"
    yield f"{name}: {', '.join([_type(node), *_facets(node)])}."
    yield _prose(node.get("description"))
    if properties := [*_properties(node)]:
        yield from ("Properties:", *properties)
    discriminator = as_dict(node.get("discriminator"))
    if field := discriminator.get("propertyName"):
        kinds = ", ".join(f"{key} is {_name(ref)}" for key, ref in as_dict(discriminator.get("mapping")).items())
        yield f"Told apart by {field}{': ' if kinds else ''}{kinds}."


def _response(item: Item) -> Iterator[str]:
    name, node, statuses = item.pointer[-1], item.node, sorted(item.statuses)
    yield " ".join([f"{name} response", *statuses])
    used = f" with status {' or '.join(statuses)}" if statuses else ""
    yield f"{name}: a response{used} that operations share ({item.api.title})."
    yield _prose(node.get("description"))
    if "content" in node:
        yield f"Body: {_content(node)}."
        yield from chain(*map(_properties, _bodies(node).values()))
    headers = as_dict(node.get("headers"))
    yield "Headers:" if headers else ""
    for key, each in headers.items():
        header = as_dict(end(each))
        yield _described(f"- {key}", header.get("schema"), also=header.get("description"))


def _security(item: Item) -> Iterator[str]:
    name, node = item.pointer[-1], item.node
    kind = _value(node.get("type", "unknown"))
    detail = f", {_value(node.get('scheme'))}" if kind == "http" else ""
    if kind == "apiKey":
        detail = f" in {_value(node.get('in'))} {_value(node.get('name'))}"
    yield f"{name} security scheme"
    yield f"{name}: {kind}{detail}. How to authenticate with {item.api.title}."
    yield _prose(node.get("description"))
    for key, flow in as_dict(node.get("flows")).items():
        flow = as_dict(flow)
        addresses = [f"{words} {flow[each]}" for each, words in ADDRESSES.items() if each in flow]
        yield f"Flow {key}: {', '.join(addresses)}".removesuffix(": ")
        for scope, description in as_dict(flow.get("scopes")).items():
            yield _cut(f"- {scope}: {_one_line(description)}", LONGEST_LINE)


_LINES = {"guide": _guide, "tag": _guide, "schema": _schema, "response": _response, "security": _security}


def _name(node: Any) -> str:
    """The name that readers use for a reference: its last word, or the name of its part."""
    if (item := item_of(node)) and PART in node:
        return str(item.pointer[-1])
    return unquote(re.split(r"[/#]", ref_of(node).rstrip("/#"))[-1]).replace("~1", "/").replace("~0", "~")


def _type(schema: Any, depth: int = 0) -> str:
    """The type of a schema as a phrase: ``array of Campaign``, ``string or null``."""
    schema = shown(schema)
    if not isinstance(schema, dict):
        return "nothing" if schema is False else "any value"
    if ref_of(schema):
        return _name(schema)
    if depth > DEEPEST:
        return "a nested value"
    for key, between in COMPOSED.items():
        if parts := as_list(schema.get(key)):
            # Each nested choice may contain as many again.
            most = MAX_PARTS if depth else MAX_VISITS
            return between.join(dict.fromkeys(_type(part, depth + 2) for part in parts[:most]))
    name, items, extra = (schema.get(key) for key in ("type", "items", "additionalProperties"))
    if isinstance(name, list):
        return " or ".join(_type({**schema, "type": str(n)}, depth) for n in name[:MAX_PARTS])
    if name == "array" or (name is None and items is not None):
        return f"array of {_type(items, depth + 1)}"
    if name == "object" or "properties" in schema or extra is not None:
        nested = isinstance(extra, dict) and not schema.get("properties")
        return f"map of {_type(extra, depth + 1)}" if nested else "object"
    return _value(name) if name else "any value"


def _facets(schema: Any) -> list[str]:
    """A schema's constraints besides its type, in words: ``one of A, B``, ``at most 100``."""
    schema = as_dict(schema)
    words = [_value(schema["format"])] if "format" in schema else []
    if values := as_list(schema.get("enum")):
        words.append(f"one of {first_of([*map(_value, values)], MAX_VALUES)}")
    words += [phrase.format(_value(schema[key])) for key, phrase in LIMITS.items() if key in schema]
    return words + [word for key, word in FLAGS.items() if schema.get(key) is True]


def _properties(schema: Any, before: str = "", depth: int = 0, visits: Iterator[int] | None = None) -> Iterator[str]:
    """Yield a line on each property of a schema and its inline schemas, with its dotted name (``bid.amount``)."""
    schema, visits = shown(schema), visits or count()
    if not isinstance(schema, dict) or depth > DEEPEST or next(visits) > MAX_VISITS:
        return
    required = as_list(schema.get("required"))
    for name, value in as_dict(end(schema.get("properties"))).items():
        yield _described(f"- {before}{name}", value, name in required)
        yield from _properties(value, f"{before}{name}.", depth + 1, visits)
    yield from _properties(schema.get("items"), f"{before.removesuffix('.')}[].", depth + 1, visits)
    yield from _properties(schema.get("additionalProperties"), f"{before}*.", depth + 1, visits)
    for part in chain(*(as_list(schema.get(key)) for key in COMPOSED)):
        yield from _properties(part, before, depth + 1, visits)


def _described(start: str, schema: Any, required: bool = False, also: Any = None) -> str:
    """``<start> (<type>, <facets>): <description>`` in one line."""
    words = [_type(schema, 1), *_facets(schema), *_facets(as_dict(schema).get("items"))]
    line = f"{start} ({', '.join([*words, 'required'] if required else words)})"
    sentence = _one_line(also) or _one_line(as_dict(schema).get("description"))
    return _cut(f"{line}: {sentence}" if sentence else line, LONGEST_LINE)


def _value(value: Any) -> str:
    """A value of the description, short and readable."""
    if isinstance(value, dict | list):
        return "{…}" if isinstance(value, dict) else "[…]" if value else "[]"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return _cut(" ".join(str(value).split()), LONGEST_VALUE)


def _prose(text: Any) -> str:
    """A description without HTML tags and superfluous white space, but with its paragraphs."""
    plain = html.unescape(_TAG.sub(" ", as_text(text)))
    lines = (" ".join(line.split()) for line in plain.strip().splitlines())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _one_line(text: Any) -> str:
    return " ".join(_prose(text).split())


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
