"""The title and text of a chunk of an API description, the most important first.

A chunk is one item of any length, but an embedding model reads only the beginning. So the text
begins with what the item is, continues with its prose and its shape, and ends with details. A
schema that is referred to is shown only by its name, so cycles do no harm. Structures in place are
shown to a fixed depth and width, since YAML aliases can make a small file endless.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Sequence
from itertools import count, islice
from typing import Any

from ragfilter.ingest.openapi.bundle import Descriptions, as_dict, as_list, ref_of, unescaped
from ragfilter.ingest.openapi.items import Item

LONGEST, LONGEST_TITLE, LONGEST_LINE, LONGEST_VALUE = 20_000, 200, 1500, 80
LONG_DETAILS = 600
"""If they are longer, the embedding model would not see the last fields, so all are named first."""
LONGEST_NAMES = 1_000
DEEPEST, DEEPEST_TYPE = 3, 4
MAX_PARTS, MAX_VALUES, MAX_VISITS = 30, 50, 5_000
COMPOSED = {"allOf": " and ", "oneOf": " or ", "anyOf": " or "}
LIMITS = {
    "const": "always {}", "default": "default {}", "minimum": "from {}",
    "exclusiveMinimum": "above {}", "maximum": "at most {}", "exclusiveMaximum": "below {}",
    "multipleOf": "a multiple of {}", "minLength": "at least {} characters",
    "maxLength": "at most {} characters", "minItems": "at least {} items",
    "maxItems": "at most {} items", "pattern": "pattern {}",
}  # fmt: skip
FLAGS = {
    "uniqueItems": "unique items", "nullable": "may be null", "readOnly": "read-only",
    "writeOnly": "write-only", "deprecated": "deprecated",
}  # fmt: skip
ADDRESSES = {
    "authorizationUrl": "authorize at", "tokenUrl": "token from", "refreshUrl": "refresh at"
}  # fmt: skip
_TAG = re.compile(
    r"</?(?:p|br|a|b|i|u|em|strong|code|pre|ul|ol|li|h[1-6]|div|span|table|thead|tbody|tr|td|th|"
    r"img|hr|sup|sub|small|blockquote|details|summary)\b[^<>]{0,300}>",
    re.IGNORECASE,
)


def title_and_text(
    item: Item, api: Descriptions, *, name: str, statuses: Sequence[str]
) -> tuple[str, str]:
    """The title and the text of an item.

    `name` is that of its API, `statuses` are those that a shared response is used with. An
    operation or schema does not name its API: said in every chunk, it made them all alike.
    """
    own = item.pointer[-1]
    if item.kind in ("guide", "tag"):
        title, lines = item.title, iter((_prose(item.prose),))
    elif item.method:
        title, lines = _one_line(item.node.get("summary")) or item.names[0], _operation(item, api)
    elif item.kind == "schema":
        title, lines = f"{own} schema", _schema(item.node, own)
    elif item.kind == "response":
        title = " ".join([f"{own} response", *statuses])
        lines = _response(item.node, own, statuses, name, api)
    else:
        title, lines = f"{own} security scheme", _security_scheme(item.node, own, name)
    text = "\n".join(_first(filter(None, lines), LONGEST))
    if len(text) >= LONGEST:
        text = _cut(text, LONGEST) + "\n(The rest is left out here.)"
    return _cut(title, LONGEST_TITLE), text


def _first(lines: Iterator[str], most: int) -> Iterator[str]:
    """The first lines, up to the one that makes them longer than `most` characters."""
    length = 0
    for line in lines:
        yield line
        length += len(line) + 1
        if length > most:
            break


def _operation(item: Item, api: Descriptions) -> Iterator[str]:
    node = item.node
    sent = "Webhook: " if item.kind == "webhook" else ""
    name = "" if item.names[0] == f"{item.method}{item.path}" else f" ({item.names[0]})"
    old = " Deprecated." if node.get("deprecated") is True else ""
    yield f"{sent}{item.method} {item.path}{name}.{old}"
    yield _prose(node.get("description"))
    body = api.end(node.get("requestBody"))
    if isinstance(body, dict):
        need = ", required" if body.get("required") is True else ""
        yield f"Request body: {_content(body)}{need}. {_one_line(body.get('description'))}".strip()
        yield from _inline(body)
    if item.parameters:
        yield "Parameters:"
    yield from map(_parameter, item.parameters)
    responses = {key: node for key, node in item.responses.items() if not key.startswith("x-")}
    if responses:
        yield "Responses:"
    for status, response in responses.items():
        yield _cut(_response_line(status, response, api), 1000)
    yield _security(item.security)
    if callbacks := as_dict(node.get("callbacks")):
        yield f"Calls back: {', '.join(callbacks)}."


def _parameter(node: Any) -> str:
    if ref := ref_of(node):
        return f"- {_name(ref)}"
    name, where = _value(node.get("name", "without a name")), node.get("in")
    schema = node.get("schema")
    if schema is None:
        schema = next(iter(_bodies(node).values()), None)
    start = f"- {name}, {where}" if isinstance(where, str) else f"- {name}"
    line = _described(start, schema, node.get("required") is True, node.get("description"))
    return f"{line} Deprecated." if node.get("deprecated") is True else line


def _bodies(node: Any) -> dict[str, Any]:
    """The schema of each media type of a body."""
    content = as_dict(node.get("content"))
    return {media: as_dict(body).get("schema") for media, body in content.items()}


def _content(node: Any) -> str:
    """What a body holds: the type, and the media types where they are not plain JSON."""
    by_type: dict[str, list[str]] = {}
    for media, schema in _bodies(node).items():
        by_type.setdefault(_type(schema), []).append(media)
    words = (
        name if media == ["application/json"] else f"{name} ({', '.join(media)})"
        for name, media in by_type.items()
    )  # fmt: skip
    return " or ".join(words) or "none"


def _inline(node: Any) -> Iterator[str]:
    """The fields of bodies that are described in place."""
    for schema in _bodies(node).values():
        yield from _property_lines(schema)


def _response_line(status: str, response: Any, api: Descriptions) -> str:
    node = as_dict(api.end(response))
    body = f" ({_content(node)})" if "content" in node else ""
    if ref := ref_of(response):
        # The meaning of a shared response is in its own chunk, and not in a hundred others.
        return f"- {status}: {_name(ref)}{body}"
    return f"- {status}{body}: {_one_line(node.get('description'))}".rstrip(": ")


def _security(options: Any) -> str:
    """What an operation needs to be called in words, empty if nothing is said."""
    if not isinstance(options, list):
        return ""
    words = []
    for option in options[:50]:
        schemes = []
        for name, scopes in as_dict(option).items():
            listed = ", ".join(scope for scope in as_list(scopes) if isinstance(scope, str))
            schemes.append(f"{name} ({listed})" if listed else name)
        words.append(" and ".join(schemes) or "no authentication")
    return f"Security: {' or '.join(words) or 'no authentication'}."


def _schema(node: Any, name: str) -> Iterator[str]:
    if not isinstance(node, dict):
        yield f"{name}: {_type(node)}."
        return
    title = _one_line(node.get("title"))
    named = f" {title}." if title and title != name else ""
    yield f"{name}: {', '.join([_type(node), *_facets(node)])}.{named}"
    yield _prose(node.get("description"))
    details = list(_first(_property_lines(node), LONGEST))
    if sum(len(line) + 1 for line in details) > LONG_DETAILS:
        names = (name for before, name, _, _ in _properties(node) if not before)
        first = dict.fromkeys(islice(names, LONGEST_NAMES))
        yield _cut(f"Fields: {', '.join(first)}.", LONGEST_NAMES)
    if details:
        yield "Properties:"
        yield from details
    discriminator = as_dict(node.get("discriminator"))
    if isinstance(field := discriminator.get("propertyName"), str):
        mapping = as_dict(discriminator.get("mapping")).items()
        kinds = [f"{key} is {_name(ref)}" for key, ref in mapping if isinstance(ref, str)]
        yield f"Told apart by {field}{': ' if kinds else ''}{', '.join(kinds)}."


def _response(
    node: Any, name: str, statuses: Sequence[str], api_name: str, api: Descriptions
) -> Iterator[str]:
    status = f" with status {' or '.join(statuses)}" if statuses else ""
    yield f"{name}: a response{status} that operations share ({api_name})."
    yield _prose(node.get("description"))
    if "content" in node:
        yield f"Body: {_content(node)}."
        yield from _inline(node)
    headers = as_dict(node.get("headers"))
    if headers:
        yield "Headers:"
    for key, each in headers.items():
        header = as_dict(api.end(each))
        yield _described(f"- {key}", header.get("schema"), also=header.get("description"))


def _security_scheme(node: Any, name: str, api_name: str) -> Iterator[str]:
    kind = _value(node.get("type", "unknown"))
    detail = ""
    if kind == "http":
        detail = f", {_value(node.get('scheme', ''))}"
    elif kind == "apiKey":
        detail = f" in {_value(node.get('in', ''))} {_value(node.get('name', ''))}"
    yield f"{name}: {kind}{detail}. How to authenticate with {api_name}."
    yield _prose(node.get("description"))
    if isinstance(node.get("openIdConnectUrl"), str):
        yield f"OpenID Connect: {node['openIdConnectUrl']}"
    for key, flow in as_dict(node.get("flows")).items():
        flow = as_dict(flow)
        addresses = [
            f"{w} {url}" for k, w in ADDRESSES.items() if isinstance(url := flow.get(k), str)
        ]
        yield f"Flow {key}: {', '.join(addresses)}".removesuffix(": ")
        for scope, description in as_dict(flow.get("scopes")).items():
            yield _cut(f"- {scope}: {_one_line(description)}", 500)


def _name(ref: str) -> str:
    """A reference as a reader would say it: its last part."""
    return unescaped(re.split(r"[/#]", ref.rstrip("/#"))[-1])


def _type(schema: Any, depth: int = 0) -> str:
    """The type of a schema as a phrase: ``array of Campaign``, ``string or null``."""
    if not isinstance(schema, dict):
        return "nothing" if schema is False else "any value"
    if ref := ref_of(schema):
        return _name(ref)
    if depth > DEEPEST_TYPE:
        return "a nested value"
    for key, between in COMPOSED.items():
        if parts := as_list(schema.get(key)):
            # Of nested choices the first few are enough, since each may hold as many again.
            words = [_type(part, depth + 2) for part in parts[: MAX_PARTS if depth else MAX_VISITS]]
            words = words[:1] if len(set(words)) == 1 else words
            return between.join(words) + (f"{between}more" if len(parts) > len(words) > 1 else "")
    name, items, extra = (schema.get(key) for key in ("type", "items", "additionalProperties"))
    if isinstance(name, list):
        return " or ".join(_type({**schema, "type": n}, depth) for n in map(str, name[:MAX_PARTS]))
    if name == "array" or (not isinstance(name, str) and items is not None):
        return f"array of {_type(items, depth + 1)}"
    if name == "object" or "properties" in schema or extra is not None:
        nested = isinstance(extra, dict) and not schema.get("properties")
        return f"map of {_type(extra, depth + 1)}" if nested else "object"
    return name if isinstance(name, str) and name else "any value"


def _facets(schema: Any) -> list[str]:
    """What a schema says beside its type, in words: ``one of A, B``, ``at most 100``."""
    schema = as_dict(schema)
    words = [_value(schema["format"])] if isinstance(schema.get("format"), str) else []
    if values := as_list(schema.get("enum")):
        more = f" and {len(values) - MAX_VALUES} more" if len(values) > MAX_VALUES else ""
        words.append(f"one of {', '.join(map(_value, values[:MAX_VALUES]))}{more}")
    for key, phrase in LIMITS.items():
        # The exclusive limits of OpenAPI 3.0 are true or false and belong to the others.
        if key in schema and not (key.startswith("exclusive") and isinstance(schema[key], bool)):
            words.append(phrase.format(_value(schema[key])))
    return words + [word for key, word in FLAGS.items() if schema.get(key) is True]


def _property_lines(schema: Any) -> Iterator[str]:
    """A line for each property; inline objects have dotted names (``bid.amount``)."""
    for before, name, value, required in _properties(schema):
        yield _described(f"- {before}{name}", value, required)


def _properties(
    schema: Any, before: str = "", depth: int = 0, visits: Iterator[int] | None = None
) -> Iterator[tuple[str, str, Any, bool]]:
    """The properties of a schema and of what it holds in place: what stands before the name, the
    name, the value, and whether it is required."""
    visits = count() if visits is None else visits
    if not isinstance(schema, dict) or depth > DEEPEST or next(visits) > MAX_VISITS:
        return
    required = schema.get("required")
    for name, value in as_dict(schema.get("properties")).items():
        yield before, name, value, isinstance(required, list) and name in required
        yield from _properties(value, f"{before}{name}.", depth + 1, visits)
    inner = [(f"{before.removesuffix('.')}[].", schema.get("items"))]
    inner.append((f"{before}*.", schema.get("additionalProperties")))
    inner += [(before, part) for key in COMPOSED for part in as_list(schema.get(key))]
    for prefix, node in inner:
        if isinstance(node, dict):
            yield from _properties(node, prefix, depth + 1, visits)


def _described(start: str, schema: Any, required: bool = False, also: Any = None) -> str:
    """``<start> (<type>, <facets>): <description>`` in one line."""
    words = [_type(schema, 1), *_facets(schema), *_facets(as_dict(schema).get("items"))]
    line = f"{start} ({', '.join([*words, 'required'] if required else words)})"
    sentence = _one_line(also) or _one_line(as_dict(schema).get("description"))
    return _cut(f"{line}: {sentence}" if sentence else line, LONGEST_LINE)


def _value(value: Any) -> str:
    """A value of the description as one reads it, short."""
    if isinstance(value, dict | list):
        return "{…}" if isinstance(value, dict) else "[…]" if value else "[]"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return _cut(" ".join(str(value).split()), LONGEST_VALUE)


def _prose(text: Any) -> str:
    """A description without HTML marks and needless white space, paragraphs kept."""
    if not isinstance(text, str):
        return ""
    if "<" in text or "&" in text:
        text = html.unescape(_TAG.sub(" ", text))
    lines = (" ".join(line.split()) for line in text.strip().splitlines())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _one_line(text: Any) -> str:
    return " ".join(_prose(text).split())


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
