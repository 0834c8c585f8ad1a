"""Broken OpenAPI descriptions: one clear error, or one warning per part, and never a crash."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pets import PETS, described, minimal, warnings
from syrupy.assertion import SnapshotAssertion

from ragfilter.errors import InputError
from ragfilter.ingest.load import load
from ragfilter.ingest.records import Record


@pytest.mark.parametrize(
    ("name", "text", "message", "remedy"),
    [
        ("a.json", '{"openapi": 3,\n "info": }', "a.json, line 2: this is not JSON", "Correct"),
        ("a.yaml", "openapi: 3.0.0\ninfo: [1\nb: 2", "a.yaml, line 3: this is not YAML", "Correct"),
        ("a.yaml", "openapi: 3\n---\nb: 2", "a.yaml, line 2: this is not YAML (but", "Correct"),
        ("a.yaml", "openapi: 3\na: *x", "a.yaml, line 2: this is not YAML (found", "Correct"),
        ("a.yaml", "openapi: 3\n? [a]\n: 1", "a.yaml, line 2: this is not YAML (found", "Correct"),
        ("a.yaml", "openapi: 3.0.0\n<<: 5", "a.yaml, line 2: this is not YAML (exp", "Correct"),
        ("a.yaml", "a\tb: \x01", "a.yaml: this is not YAML", "Correct"),
        ("a.yaml", "x: " + "[" * 600, "a.yaml, line 1: this is not YAML (it is", "Correct"),
        ("a.json", "[" * 200_000, "a.json: this is not JSON (max", "Correct"),
        ("a.json", '{"swagger": "2.0"}', "a.json: OpenAPI version '2.0'", "swagger2openapi"),
        ("a.yaml", "openapi: 4.0.0", "a.yaml: OpenAPI version '4.0.0'", "Convert"),
        ("a.yaml", "openapi: [3]", "a.yaml: OpenAPI version", "Convert"),
        ("a.json", '{"name": "x"}', "a.json: this is not an OpenAPI", "JSONL"),
        ("a.json", "[1]", "a.json: this is not an OpenAPI", "JSONL"),
        ("a.yaml", "", "a.yaml: this is not an OpenAPI", "JSONL"),
        ("a.yaml", "only words", "a.yaml: this is not an OpenAPI", "JSONL"),
    ],
)  # fmt: skip
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
def test_a_broken_description_in_a_folder_is_not_passed_over(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=name):
        list(load(tmp_path))


@pytest.mark.parametrize(
    ("tree", "warning"),
    [
        ({"paths": []}, "paths: this is no object"),
        ({"paths": {"/a": 5}}, "paths /a: this is no path item"),
        ({"paths": {"/a": {"get": "x"}}}, "paths /a get: this is no operation"),
        ({"paths": {"/a": {"$ref": "b.yaml"}}}, "paths /a: b.yaml is not at hand"),
        ({"components": 5}, "components: this is no object"),
        ({"components": {"schemas": [1]}}, "schemas: this is no object"),
        ({"components": {"schemas": {"A": 5}}}, "components schemas A: this is no schema"),
        ({"components": {"responses": {"A": 5}}}, "components responses A: this is no response"),
        ({"tags": {}}, "tags: this is no list"),
        ({"tags": [5]}, "tags 0: this is no tag"),
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


def test_halves_of_characters_reach_neither_places_nor_warnings(tmp_path: Path) -> None:
    text = r'{"openapi": "3.1.0", "info": {"title": "T"}, "components": {"schemas": %s}}'
    for name in ("a.json", "b.yaml"):
        (tmp_path / name).write_text(text % r'{"A\ud83d": {}, "B\ud83d": 5}')
        (found,) = load(tmp_path / name)
        assert "A\ufffd" in found.place
        assert "B\ufffd" in found.warnings[0]


def test_many_warnings_are_summed_up(snapshot: SnapshotAssertion) -> None:
    refs = [{"$ref": f"#/nowhere/{i}"} for i in range(40)]
    told = warnings(described(minimal(components={"schemas": {"A": {"allOf": refs}}})))
    assert len(told) == 11
    assert told[-1] == snapshot


KEYWORDS = [
    "$ref", "openapi", "info", "title", "description", "paths", "/a", "get", "post", "parameters",
    "requestBody", "responses", "200", "content", "application/json", "schema", "schemas",
    "components", "properties", "items", "allOf", "oneOf", "type", "enum", "required", "security",
    "securitySchemes", "discriminator", "mapping", "tags", "name", "in", "flows", "scopes",
    "additionalProperties", "default", "callbacks", "headers", "format", "operationId", "summary",
    "deprecated", "servers", "webhooks", "pattern", "minimum", "exclusiveMinimum",
]  # fmt: skip
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        ["#/components/schemas/A", "#/paths/~1a", "#/a/0", "#", "x.yaml#/", "A", "object", "%ZZ"]
    )
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


@pytest.mark.slow
@given(TREES)
def test_no_random_tree_crashes(tree: object) -> None:
    parts = tree if isinstance(tree, dict) else {"components": tree, "paths": tree, "tags": tree}
    holds(described({**parts, "openapi": "3.0.0"}))


@given(st.lists(st.tuples(st.sampled_from(PLACES), TREES), min_size=1, max_size=3))
def test_no_damage_to_a_good_description_crashes(
    damages: list[tuple[tuple[Any, ...], Any]],
) -> None:
    tree = copy.deepcopy(PETS)
    for place, value in damages:
        node: Any = tree
        for key in place[:-1]:
            node = node[key] if isinstance(node, dict) and key in node else None
        if isinstance(node, dict):
            node[str(place[-1])] = value
    holds(described(tree))
