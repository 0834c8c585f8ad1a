"""Broken OpenAPI descriptions: one clear error, or one warning per part, and never a crash."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pets import PETS, described, minimal, warnings

from ragfilter.errors import InputError
from ragfilter.ingest.load import load
from ragfilter.ingest.records import Record


@pytest.mark.parametrize(
    ("name", "text", "message", "remedy"),
    [
        ("a.json", '{"openapi": 3,\n "info": ]}', "a.json, line 2, column 10: this is not JSON", "Correct"),
        ("a.yaml", "openapi: 3.0.0\ninfo: [1\nb: 2", "a.yaml, line 3, column 2: this is neither", "Correct"),
        ("a.yaml", "openapi: 3\n---\nb: 2", "a.yaml, line 2, column 1: this is neither", "Correct"),
        ("a.yaml", "openapi: " + "[" * 600, "a.yaml: this is neither", "Correct"),
        ("a.json", '{"openapi": ' + "[" * 200_000, "a.json: this is neither", "Correct"),
        ("a.json", '{"swagger": "2.0"}', "a.json: OpenAPI version '2.0'", "swagger2openapi"),
        ("a.yaml", "openapi: 4.0.0", "a.yaml: OpenAPI version '4.0.0'", "Convert"),
        ("a.json", '{"name": "x"}', "a.json: this is not an OpenAPI", "JSONL"),
        ("a.yaml", "", "a.yaml: this is not an OpenAPI", "JSONL"),
    ],
)
def test_one_clear_message(tmp_path: Path, name: str, text: str, message: str, remedy: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as error:
        list(load(tmp_path / name))
    assert error.value.message.startswith(message)
    assert remedy in error.value.remedy


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", "openapi: 3.0.0\ninfo: [1\nb: 2"),
        ("a.json", '{"x": 1, "openapi": "3.0.0",'),
        ("a.json", '{"swagger": "2.0"}'),
    ],
)
def test_a_broken_description_in_a_folder_is_not_passed_over(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=name):
        list(load(tmp_path))


@pytest.mark.parametrize(
    ("tree", "warning"),
    [
        ({"paths": []}, "paths: this is not an object"),
        ({"paths": {"/a": {"$ref": "b.yaml"}}}, "paths /a: b.yaml is not available"),
        ({"components": 5}, "components: this is not an object"),
        ({"components": {"schemas": {"A": 5}}}, "components schemas A: this is not an object"),
    ],
)
def test_a_wrong_type_costs_the_part_and_no_more(tree: dict[str, Any], warning: str) -> None:
    tree = minimal(**tree)
    tree.setdefault("components", {})
    if isinstance(tree["components"], dict):
        tree["components"] |= {"securitySchemes": {"z": {"type": "http", "scheme": "bearer"}}}
    else:
        tree["paths"] = {"/z": {"get": {}}}
    told = warnings(described(tree))
    assert len(told) == 1
    assert warning in told[0]


KEYWORDS = [
    "$ref",
    "openapi",
    "info",
    "title",
    "description",
    "paths",
    "/a",
    "get",
    "post",
    "parameters",
    "requestBody",
    "responses",
    "200",
    "content",
    "application/json",
    "schema",
    "schemas",
    "components",
    "properties",
    "items",
    "allOf",
    "oneOf",
    "type",
    "enum",
    "required",
    "security",
    "securitySchemes",
    "discriminator",
    "mapping",
    "tags",
    "name",
    "in",
    "flows",
    "scopes",
    "additionalProperties",
    "default",
    "callbacks",
    "headers",
    "format",
    "operationId",
    "summary",
    "deprecated",
    "servers",
    "webhooks",
    "pattern",
    "minimum",
    "exclusiveMinimum",
]
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["#/components/schemas/A", "#/paths/~1a", "#/a/0", "#", "x.yaml#/", "A", "object", "%ZZ"])
)
TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYWORDS) | st.text(max_size=4), inner, max_size=5)
    ),
    max_leaves=30,
)


def places(node: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a tree below its root."""
    children = node.items() if isinstance(node, dict) else enumerate(node)
    found = [(*at, key) for key, _ in children] if isinstance(node, dict | list) else []
    return found + [
        deeper
        for place in found
        if isinstance(child := node[place[-1]], dict | list)
        for deeper in places(child, place)
    ]


PLACES = [place for place in places(PETS) if place != ("openapi",)]


def holds(found: dict[str, Record]) -> None:
    for record in found.values():
        assert record.chunk.text.strip()
        assert set(record.chunk.refs) <= found.keys() - {record.chunk.id}


@given(st.lists(st.tuples(st.sampled_from(PLACES), TREES), min_size=1, max_size=3))
def test_no_damage_to_a_good_description_crashes(damages: list[tuple[tuple[Any, ...], Any]]) -> None:
    tree = copy.deepcopy(PETS)
    for place, value in damages:
        node: Any = tree
        for key in place[:-1]:
            node = node[key] if isinstance(node, dict) and key in node else None
        if isinstance(node, dict):
            node[str(place[-1])] = value
    holds(described(tree))
