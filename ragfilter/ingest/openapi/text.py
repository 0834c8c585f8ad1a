"""The title and text of a chunk of an API description, the most important first.

A chunk is one item of any length, but an embedding model reads only the beginning. So the text
begins with what the item is, continues with its prose and its shape, and ends with details. It is
cut at `LONGEST` characters, and says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from ragfilter.ingest.openapi.items import Item
from ragfilter.ingest.openapi.refs import Trees, follow, ref_name, ref_of
from ragfilter.ingest.openapi.types import (
    as_dict,
    as_list,
    cut,
    described,
    facets,
    one_line,
    property_lines,
    property_names,
    prose,
    type_words,
    value_words,
)

LONGEST = 20_000
LONGEST_TITLE = 200
# Longer than this, and the embedding model would not see the last fields: name them all first.
LONG_DETAILS = 600
LONGEST_NAMES = 1_000


def title_and_text(
    item: Item, trees: Trees, *, api: str, statuses: Sequence[str]
) -> tuple[str, str]:
    """The title and the text of an item.

    `api` is the name of its API, `statuses` are those that a shared response is used with. An
    operation or schema does not name its API: said in every chunk, it made them all alike.
    """
    if item.kind in ("guide", "tag"):
        title, lines = item.title, iter((prose(item.prose),))
    elif item.kind in ("operation", "webhook"):
        title = one_line(item.node.get("summary")) or item.names[0]
        lines = _operation(item, trees)
    elif item.kind == "schema":
        title, lines = f"{item.pointer[-1]} schema", _schema(item)
    elif item.kind == "response":
        title = " ".join([f"{item.pointer[-1]} response", *statuses])
        lines = _response(item, trees, statuses, api)
    else:
        title, lines = f"{item.pointer[-1]} security scheme", _security_scheme(item, api)
    return cut(title, LONGEST_TITLE), _joined(lines)


def _joined(lines: Iterator[str]) -> str:
    text: list[str] = []
    length = 0
    for line in lines:
        if not line:
            continue
        text.append(line)
        length += len(line) + 1
        if length > LONGEST:
            return f"{cut(chr(10).join(text), LONGEST)}\n(The rest is left out here.)"
    return "\n".join(text)


def _operation(item: Item, trees: Trees) -> Iterator[str]:
    node = item.node
    sent = "Webhook: " if item.kind == "webhook" else ""
    name = "" if item.names[0] == f"{item.method}{item.path}" else f" ({item.names[0]})"
    old = " Deprecated." if node.get("deprecated") is True else ""
    yield f"{sent}{item.method} {item.path}{name}.{old}"
    yield prose(node.get("description"))
    body, _ = follow(trees, node.get("requestBody"), item.base)
    if isinstance(body, dict):
        need = ", required" if body.get("required") is True else ""
        yield f"Request body: {_content(body)}{need}. {one_line(body.get('description'))}".strip()
        yield from _inline(body)
    parameters = list(_parameters(item, trees))
    if parameters:
        yield "Parameters:"
        yield from parameters
    responses = [
        _response_line(status, response, trees, item.base)
        for status, response in as_dict(node.get("responses")).items()
        if not status.startswith("x-")
    ]
    if responses:
        yield "Responses:"
        yield from responses
    yield security_words(item, trees)
    callbacks = as_dict(node.get("callbacks"))
    if callbacks:
        yield f"Calls back: {', '.join(callbacks)}."


def parameters_of(item: Item, trees: Trees) -> list[tuple[dict[str, Any], str]]:
    """The operation's parameters and those of its path that it does not replace; each with the
    file that it stands in."""
    found: dict[tuple[str, str], tuple[dict[str, Any], str]] = {}
    own = [(node, item.base) for node in as_list(item.node.get("parameters"))]
    for node, source in (*item.shared, *own):
        parameter, base = follow(trees, node, source)
        if isinstance(parameter, dict):
            key = (str(parameter.get("in")), str(parameter.get("name", ref_of(parameter))))
            found[key] = parameter, base
    return list(found.values())


def _parameters(item: Item, trees: Trees) -> Iterator[str]:
    for parameter, _ in parameters_of(item, trees):
        if ref := ref_of(parameter):
            yield f"- {ref_name(ref)}"
            continue
        name = value_words(parameter.get("name", "without a name"))
        where = parameter.get("in")
        schema = parameter.get("schema")
        if schema is None:
            media = next(iter(as_dict(parameter.get("content")).values()), None)
            schema = as_dict(media).get("schema")
        start = f"- {name}, {where}" if isinstance(where, str) else f"- {name}"
        required = parameter.get("required") is True
        line = described(start, schema, required=required, also=parameter.get("description"))
        yield f"{line} Deprecated." if parameter.get("deprecated") is True else line


def _content(node: dict[str, Any]) -> str:
    """What a body holds: the type, and the media types where they are not plain JSON."""
    by_type: dict[str, list[str]] = {}
    for media, value in as_dict(node.get("content")).items():
        by_type.setdefault(type_words(as_dict(value).get("schema")), []).append(media)
    words = []
    for name, media_types in by_type.items():
        plain = media_types == ["application/json"]
        words.append(name if plain else f"{name} ({', '.join(media_types)})")
    return " or ".join(words) or "none"


def _inline(node: dict[str, Any]) -> Iterator[str]:
    """The fields of bodies that are described in place."""
    for value in as_dict(node.get("content")).values():
        schema = as_dict(value).get("schema")
        yield from property_lines(schema)


def _response_line(status: str, response: Any, trees: Trees, base: str) -> str:
    node, _ = follow(trees, response, base)
    if not isinstance(node, dict):
        return f"- {status}"
    body = _content(node) if "content" in node else ""
    if name := ref_name(ref_of(response)):
        # The meaning of a shared response is in its own chunk, and not in a hundred others.
        return cut(f"- {status}: {name}{f' ({body})' if body else ''}", 1000)
    said = one_line(node.get("description"))
    return cut(f"- {status}{f' ({body})' if body else ''}: {said}", 1000).rstrip(": ")


def security_of(item: Item, trees: Trees) -> Any:
    """What an operation needs to be called: its own word, else that of its description. The latter
    is about calls to the API, so it does not hold for the webhooks that the API calls."""
    general = trees[item.base].get("security") if item.kind == "operation" else None
    return item.node.get("security", general)


def security_words(item: Item, trees: Trees) -> str:
    """`security_of` in words, empty if the description does not say."""
    options = security_of(item, trees)
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


def _schema(item: Item) -> Iterator[str]:
    node = item.node
    name = item.pointer[-1]
    if not isinstance(node, dict):
        yield f"{name}: {type_words(node)}."
        return
    said = facets(node)
    title = one_line(node.get("title"))
    yield (
        f"{name}: {', '.join([type_words(node), *said])}."
        f"{f' {title}.' if title and title != name else ''}"
    )
    yield prose(node.get("description"))
    details: list[str] = []
    length = 0
    for line in property_lines(node):
        details.append(line)
        length += len(line) + 1
        if length > LONGEST:
            break
    if length > LONG_DETAILS:
        names = islice(property_names(node), LONGEST_NAMES)
        yield cut(f"Fields: {', '.join(dict.fromkeys(names))}.", LONGEST_NAMES)
    if details:
        yield "Properties:"
        yield from details
    yield from _discriminator(node)


def _discriminator(node: dict[str, Any]) -> Iterator[str]:
    discriminator = as_dict(node.get("discriminator"))
    name = discriminator.get("propertyName")
    if isinstance(name, str):
        kinds = ", ".join(
            f"{key} is {ref_name(target)}"
            for key, target in as_dict(discriminator.get("mapping")).items()
            if isinstance(target, str)
        )
        yield f"Told apart by {name}{f': {kinds}' if kinds else ''}."


def _response(item: Item, trees: Trees, statuses: Sequence[str], api: str) -> Iterator[str]:
    node = item.node
    status = f" with status {' or '.join(statuses)}" if statuses else ""
    yield f"{item.pointer[-1]}: a response{status} that operations share ({api})."
    yield prose(node.get("description"))
    if "content" in node:
        yield f"Body: {_content(node)}."
        yield from _inline(node)
    headers = as_dict(node.get("headers"))
    if headers:
        yield "Headers:"
    for name, header in headers.items():
        value = as_dict(follow(trees, header, item.base)[0])
        yield described(f"- {name}", value.get("schema"), also=value.get("description"))


def _security_scheme(item: Item, api: str) -> Iterator[str]:
    node = item.node
    kind = value_words(node.get("type", "unknown"))
    detail = ""
    if kind == "http":
        detail = f", {value_words(node.get('scheme', ''))}"
    elif kind == "apiKey":
        where, name = (value_words(node.get(key, "")) for key in ("in", "name"))
        detail = f" in {where} {name}"
    yield f"{item.pointer[-1]}: {kind}{detail}. How to authenticate with {api}."
    yield prose(node.get("description"))
    if isinstance(node.get("openIdConnectUrl"), str):
        yield f"OpenID Connect: {node['openIdConnectUrl']}"
    for name, flow in as_dict(node.get("flows")).items():
        told = [
            f"{word} {as_dict(flow)[key]}"
            for key, word in (
                ("authorizationUrl", "authorize at"),
                ("tokenUrl", "token from"),
                ("refreshUrl", "refresh at"),
            )
            if isinstance(as_dict(flow).get(key), str)
        ]
        yield f"Flow {name}: {', '.join(told)}" if told else f"Flow {name}"
        for scope, said in as_dict(as_dict(flow).get("scopes")).items():
            yield cut(f"- {scope}: {one_line(said)}", 500)
