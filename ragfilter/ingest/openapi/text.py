"""The title and text of a chunk of an API description, with the most important parts first.

A chunk is one item of any length, but an embedding model reads only the beginning. So the text begins with what the
item is, continues with its prose and its structure, and ends with details. A referenced schema is shown only by its
name, so cycles do no harm. Inline structures are limited in depth and width, since YAML aliases can make a small file
endless."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Sequence
from itertools import chain, count
from typing import Any
from urllib.parse import unquote

from ragfilter.ingest.openapi.bundle import Descriptions, as_dict, as_list, ref_of
from ragfilter.ingest.openapi.items import Item

LONGEST, LONGEST_TITLE, LONGEST_LINE, LONGEST_VALUE = 20_000, 200, 1500, 80
LONG_DETAILS, LONGEST_NAMES = 600, 1_000
"""If details are longer, the embedding model would not see the last fields, so a list of all names comes first."""
DEEPEST, MAX_PARTS, MAX_VALUES, MAX_VISITS = 3, 30, 50, 2_000
COMPOSED = {"allOf": " and ", "oneOf": " or ", "anyOf": " or "}
LIMITS = {
    "const": "always {}",
    "default": "default {}",
    "minimum": "from {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "pattern": "pattern {}",
}
FLAGS = {"nullable": "may be null", "readOnly": "read-only", "writeOnly": "write-only"}
ADDRESSES = {"authorizationUrl": "authorize at", "tokenUrl": "token from", "refreshUrl": "refresh at"}
_TAG = re.compile(
    r"</?(?:p|br|a|b|i|u|em|strong|code|pre|[uo]l|li|h\d|div|span|t(?:able|head|body|r|d|h)|img|hr|su[bp]|"
    r"small|blockquote|details|summary)\b[^<>]{0,300}>",
    re.IGNORECASE,
)


def title_and_text(item: Item, api: Descriptions, *, name: str, statuses: Sequence[str]) -> tuple[str, str]:
    """The title and the text of an item. `name` is the API's name, `statuses` are the statuses of a shared response.
    Operations and schemas do not name their API, because this would make all chunks alike."""
    key, node = item.pointer[-1], item.node
    if item.method:
        title, lines = _one_line(node.get("summary")) or item.names[0], _operation(item, api)
    elif item.kind == "schema":
        title, lines = f"{key} schema", _schema(node, key)
    elif item.kind == "response":
        title = " ".join([f"{key} response", *statuses])
        used = f" with status {' or '.join(statuses)}" if statuses else ""
        lines = chain([f"{key}: a response{used} that operations share ({name})."], _response(node, api))
    elif item.kind == "security":
        title, lines = f"{key} security scheme", _security_scheme(node, key, name)
    else:
        title, lines = item.title, iter((item.prose,))
    return _cut(title, LONGEST_TITLE), _cut("\n".join(filter(None, lines)), LONGEST)


def _operation(item: Item, api: Descriptions) -> Iterator[str]:
    node = item.node
    sent = "Webhook: " if item.kind == "webhook" else ""
    name = "" if item.names[0] == f"{item.method}{item.path}" else f" ({item.names[0]})"
    yield f"{sent}{item.method} {item.path}{name}.{_deprecated(node)}"
    yield _prose(node.get("description"))
    body = api.end(node.get("requestBody"))
    if isinstance(body, dict):
        need = ", required" if body.get("required") is True else ""
        yield f"Request body: {_content(body)}{need}. {_one_line(body.get('description'))}".strip()
        yield from _fields(body)
    if item.parameters:
        yield "Parameters:"
    for each in item.parameters:
        # If the reference is not available, only its name is known.
        words = [_name(ref_of(each)) or each.get("name") or "without a name", each.get("in")]
        schema = each.get("schema", next(iter(_bodies(each).values()), None))
        required = each.get("required") is True
        start = f"- {', '.join(map(_value, filter(None, words)))}"
        yield _described(start, schema, required, each.get("description")) + _deprecated(each)
    if item.responses:
        yield "Responses:"
    for status, response in item.responses.items():
        shared, found = ref_of(response), as_dict(api.end(response))
        body_type = f" ({_content(found)})" if "content" in found else ""
        # A shared response is described in its own chunk, not in a hundred others.
        told = f": {_name(shared)}{body_type}" if shared else f"{body_type}: {_one_line(found.get('description'))}"
        yield _cut(f"- {status}{told}".rstrip(": "), LONGEST_LINE)
    if isinstance(item.security, list):
        ways = [" and ".join(map(_scheme, as_dict(way).items())) for way in item.security]
        yield f"Security: {' or '.join(way or 'no authentication' for way in ways or [''])}."


def _scheme(named: tuple[str, Any]) -> str:
    name, scopes = named
    return f"{name} ({', '.join(map(str, scopes))})" if as_list(scopes) else name


def _deprecated(node: Any) -> str:
    return " Deprecated." if node.get("deprecated") is True else ""


def _bodies(node: Any) -> dict[str, Any]:
    """The schema of each media type of a body."""
    return {media: as_dict(body).get("schema") for media, body in as_dict(node.get("content")).items()}


def _content(node: Any) -> str:
    """The type of a body, and its media types unless they are plain JSON."""
    types = ((_type(schema), media) for media, schema in _bodies(node).items())
    return " or ".join(t if media == "application/json" else f"{t} ({media})" for t, media in types) or "none"


def _fields(node: Any) -> Iterator[str]:
    """The fields of bodies that are described inline."""
    return chain.from_iterable(map(_properties, _bodies(node).values()))


def _schema(node: Any, name: str) -> Iterator[str]:
    title = _one_line(node.get("title"))
    title_words = f" {title}." if title and title != name else ""
    yield f"{name}: {', '.join([_type(node), *_facets(node)])}.{title_words}"
    yield _prose(node.get("description"))
    if properties := list(_properties(node)):
        details = "\n".join(["Properties:", *properties])
        if len(details) > LONG_DETAILS:
            names = dict.fromkeys(re.split(r"[.\[]| \(", line[2:])[0] for line in properties)
            yield _cut(f"Fields: {', '.join(names)}.", LONGEST_NAMES)
        yield details
    discriminator = as_dict(node.get("discriminator"))
    if field := discriminator.get("propertyName"):
        mapping = as_dict(discriminator.get("mapping")).items()
        kinds = ", ".join(f"{key} is {_name(str(ref))}" for key, ref in mapping)
        yield f"Told apart by {field}{': ' if kinds else ''}{kinds}."


def _response(node: Any, api: Descriptions) -> Iterator[str]:
    yield _prose(node.get("description"))
    if "content" in node:
        yield f"Body: {_content(node)}."
        yield from _fields(node)
    headers = as_dict(node.get("headers"))
    if headers:
        yield "Headers:"
    for key, each in headers.items():
        header = as_dict(api.end(each))
        yield _described(f"- {key}", header.get("schema"), also=header.get("description"))


def _security_scheme(node: Any, name: str, api_name: str) -> Iterator[str]:
    kind = _value(node.get("type", "unknown"))
    detail = f", {_value(node.get('scheme'))}" if kind == "http" else ""
    if kind == "apiKey":
        detail = f" in {_value(node.get('in'))} {_value(node.get('name'))}"
    yield f"{name}: {kind}{detail}. How to authenticate with {api_name}."
    yield _prose(node.get("description"))
    if address := node.get("openIdConnectUrl"):
        yield f"OpenID Connect: {_value(address)}"
    for key, flow in as_dict(node.get("flows")).items():
        flow = as_dict(flow)
        addresses = [f"{words} {flow[each]}" for each, words in ADDRESSES.items() if each in flow]
        yield f"Flow {key}: {', '.join(addresses)}".removesuffix(": ")
        for scope, description in as_dict(flow.get("scopes")).items():
            yield _cut(f"- {scope}: {_one_line(description)}", LONGEST_LINE)


def _name(ref: str) -> str:
    """The name that readers use for a reference: its last part."""
    return unquote(re.split(r"[/#]", ref.rstrip("/#"))[-1]).replace("~1", "/").replace("~0", "~")


def _type(schema: Any, depth: int = 0) -> str:
    """The type of a schema as a phrase: ``array of Campaign``, ``string or null``."""
    if not isinstance(schema, dict):
        return "nothing" if schema is False else "any value"
    if ref := ref_of(schema):
        return _name(ref)
    if depth > DEEPEST:
        return "a nested value"
    for key, between in COMPOSED.items():
        if parts := as_list(schema.get(key)):
            # The first few nested choices are enough, since each may contain as many again.
            first = parts[: MAX_PARTS if depth else MAX_VISITS]
            words = [*dict.fromkeys(_type(part, depth + 2) for part in first)]
            return between.join(words) + (f"{between}more" if len(parts) > len(first) else "")
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
        more = f" and {len(values) - MAX_VALUES} more" if len(values) > MAX_VALUES else ""
        words.append(f"one of {', '.join(map(_value, values[:MAX_VALUES]))}{more}")
    # The exclusive limits of OpenAPI 3.0 are booleans that modify the other limits.
    limits = {k: v for k, v in schema.items() if not (k.startswith("exclusive") and v in (0, 1))}
    words += [phrase.format(_value(limits[k])) for k, phrase in LIMITS.items() if k in limits]
    return words + [word for key, word in FLAGS.items() if schema.get(key) is True]


def _properties(schema: Any, before: str = "", depth: int = 0, visits: Iterator[int] | None = None) -> Iterator[str]:
    """Yield a line on each property of a schema and its inline schemas, with its dotted name (``bid.amount``)."""
    visits = visits or count()
    if not isinstance(schema, dict) or depth > DEEPEST or next(visits) > MAX_VISITS:
        return
    required = as_list(schema.get("required"))
    for name, value in as_dict(schema.get("properties")).items():
        yield _described(f"- {before}{name}", value, name in required)
        yield from _properties(value, f"{before}{name}.", depth + 1, visits)
    inner = [(f"{before.removesuffix('.')}[].", schema.get("items"))]
    inner.append((f"{before}*.", schema.get("additionalProperties")))
    inner += [(before, part) for key in COMPOSED for part in as_list(schema.get(key))]
    for prefix, node in inner:
        yield from _properties(node, prefix, depth + 1, visits)


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
    plain = html.unescape(_TAG.sub(" ", text)) if isinstance(text, str) else ""
    lines = (" ".join(line.split()) for line in plain.strip().splitlines())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _one_line(text: Any) -> str:
    return " ".join(_prose(text).split())


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
