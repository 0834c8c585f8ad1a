"""References between the parts of OpenAPI descriptions; cycles end."""

from __future__ import annotations

from typing import Any

import pytest
from pets import described, minimal, warnings


@pytest.mark.parametrize(
    ("ref", "refs", "missing"),
    [
        ("#/components/schemas/A", ("t:A",), False),
        ("#/components/schemas/A/properties/x", ("t:A",), False),
        ("#/components/schemas/a~1b", ("t:a/b",), False),
        ("#/components/schemas/a%7E1b", ("t:a/b",), False),
        ("#/paths/~1x/get/responses/200", ("t:getX",), False),
        ("#/components/headers/H", ("t:A",), False),
        ("#/components/schemas/None", (), True),
        ("#/components/schemas/A/allOf/0", ("t:A",), False),
        ("#/components/schemas/A/allOf/7", (), True),
        ("#anchor", (), True),
        ("https://example.org/x.json#/A", (), True),
        ("", (), False),
    ],
)
def test_where_references_lead(ref: str, refs: tuple[str, ...], missing: bool) -> None:
    tree = minimal(
        paths={"/x": {"get": {"operationId": "getX", "responses": {"200": {"description": "d"}}}}},
        components={
            "headers": {"H": {"schema": {"$ref": "#/components/schemas/A"}}},
            "schemas": {
                "A": {"properties": {"x": {}}, "allOf": [{}]},
                "a/b": {},
                "a~b": {},
                "a b": {},
                "Asking": {"properties": {"p": {"items": {"anyOf": [{"$ref": ref}]}}}},
            },
        },
    )
    found = described(tree)
    assert found["t:Asking"].chunk.refs == refs
    assert warnings(found) == (
        [
            f"pets.yaml, components schemas Asking: the reference {ref} points to nothing that was "
            "loaded; it is left out."
        ]
        if missing
        else []
    )


def test_cycles_of_every_kind_end() -> None:
    tree = minimal(
        paths={"/a": {"$ref": "#/paths/~1b"}, "/b": {"$ref": "#/paths/~1a"}},
        components={
            "schemas": {
                "Self": {"$ref": "#/components/schemas/Self"},
                "A": {"items": {"$ref": "#/components/schemas/B"}},
                "B": {"additionalProperties": {"$ref": "#/components/schemas/A"}},
            },
            "parameters": {"P": {"$ref": "#/components/parameters/Q"}, "Q": {"$ref": "#/components/parameters/P"}},
            "responses": {"R": {"$ref": "#/components/responses/R"}},
        },
    )
    tree["paths"]["/c"] = {"get": {"parameters": [{"$ref": "#/components/parameters/P"}]}}
    found = described(tree)
    assert {i: record.chunk.refs for i, record in found.items()} == {
        "t:GET/c": (),
        "t:Self": (),
        "t:A": ("t:B",),
        "t:B": ("t:A",),
    }
    assert len(warnings(found)) == 2


def test_a_path_item_by_reference_is_an_operation_of_its_own() -> None:
    tree = minimal(
        paths={"/a": {"get": {"operationId": "get"}}, "/b": {"$ref": "#/paths/~1a"}},
        webhooks={"done": {"post": {"summary": "It is done"}}},
    )
    found = described(tree)
    assert list(found) == ["t:get", "t:GET/b", "t:webhooks/done"]
    assert found["t:webhooks/done"].chunk.text == "Webhook: POST done (webhooks/done)."


LIST = {"operationId": "list", "description": "All.", "parameters": [{"name": "n", "in": "query"}]}


@pytest.mark.parametrize(
    ("ref", "rest"),
    [
        ("#/x-ops/list", {"x-ops": {"list": LIST}}),
        ("#/x-ops/through", {"x-ops": {"through": {"$ref": "#/x-ops/list"}, "list": LIST}}),
        ("pets.yaml#/x-ops/a%20b~1c", {"x-ops": {"a b/c": LIST}}),
        ("#/paths/~1e~1%7Bid%7D/post/", {"paths": {"/e/{id}": {"post": LIST}}}),
        ("#/components/pathItems/P/get", {"components": {"pathItems": {"P": {"get": LIST}}}}),
    ],
)
def test_an_operation_by_reference_has_its_text(ref: str, rest: dict[str, Any]) -> None:
    asking = {"parameters": [{"name": "id", "in": "path"}], "get": {"$ref": ref}}
    tree = minimal(**rest)
    tree["paths"] = {"/d": asking, **rest.get("paths", {})}
    found = described(tree)
    assert warnings(found) == []
    text = "GET /d (list).\nAll.\nParameters:\n- id, path (any value)\n- n, query (any value)"
    (operation,) = (r.chunk for r in found.values() if r.place == "pets.yaml, paths /d get")
    assert operation.text == text
