"""References between the parts and files of OpenAPI descriptions; cycles end."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import yaml
from pets import described, minimal, warnings

from ragfilter.ingest.load import load


@pytest.mark.parametrize(
    ("ref", "refs", "missing"),
    [
        ("#/components/schemas/A", ("t:A",), False),
        ("#/components/schemas/A/properties/x", ("t:A",), False),
        ("#/components/schemas/a~1b", ("t:a/b",), False),
        ("#/components/schemas/a%7E1b", ("t:a/b",), False),
        ("#/components/schemas/a~0b", ("t:a~b",), False),
        ("#/components/schemas/a%20b", ("t:a_b",), False),
        ("#/paths/~1x/get/responses/200", ("t:getX",), False),
        ("#/components/headers/H", ("t:A",), False),
        ("#/components/schemas/None", (), True),
        ("#/components/schemas/A/allOf/0", ("t:A",), False),
        ("#/components/schemas/A/allOf/7", (), True),
        ("#anchor", (), True),
        ("other.yaml#/components/schemas/A", (), True),
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
            f"pets.yaml, components schemas Asking: the reference {ref} leads to nothing that was "
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
            "parameters": {
                "P": {"$ref": "#/components/parameters/Q"},
                "Q": {"$ref": "#/components/parameters/P"},
            },
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
        ("#/x-ops/0", {"x-ops": [LIST]}),
        ("pets.yaml#/x-ops/a%20b~1c", {"x-ops": {"a b/c": LIST}}),
        ("#/paths/~1e/get", {"paths": {"/e": {"get": LIST}}}),
        ("#/paths/~1e~1%7Bid%7D/post/", {"paths": {"/e/{id}": {"post": LIST}}}),
        ("#/webhooks/w/post", {"webhooks": {"w": {"post": LIST}}}),
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


@pytest.mark.parametrize("ref", ["#/x-ops/none", "gone.yml", "#list"])
def test_an_operation_that_is_not_at_hand_is_told(ref: str) -> None:
    found = described(minimal(paths={"/d": {"get": {"$ref": ref}}}))
    assert list(found) == ["t:GET/d"]
    (warning,) = warnings(found)
    assert f"paths /d get: the reference {ref} leads to nothing" in warning


def test_parameters_of_a_path_stay_its_file_s(tmp_path: Path) -> None:
    shared = {"parameters": {"P": {"name": "here", "in": "path"}}}
    main = minimal(components=shared, paths={"/d": {
        "parameters": [{"$ref": "#/components/parameters/P"}],
        "get": {"$ref": "b.yaml#/paths/~1d/get"}}})  # fmt: skip
    other = minimal(
        info={"title": "B"},
        components={"parameters": {"P": {"name": "there", "in": "query"}}},
        paths={"/d": {"get": {"parameters": [{"$ref": "#/components/parameters/P"}]}}},
    )
    for name, tree in (("a.yaml", main), ("b.yaml", other)):
        (tmp_path / name).write_text(yaml.safe_dump(tree))
    texts = {r.chunk.id: r.chunk.text for r in load(tmp_path)}
    assert "- here, path (any value)\n- there, query (any value)" in texts["t:GET/d"]


def test_files_of_a_folder_refer_to_each_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "api").mkdir()
    main = minimal(
        paths={
            "/x": {
                "get": {
                    "operationId": "getX",
                    "parameters": [{"$ref": "../common.yaml#/components/parameters/Limit"}],
                    "security": [{"oauth": ["read"]}],
                    "responses": {"default": {"$ref": "../common.yaml#/components/responses/No"}},
                }
            }
        },
        components={
            "securitySchemes": {"oauth": {"$ref": "../common.yaml#/components/securitySchemes/o"}}
        },
    )  # fmt: skip
    common = {
        "openapi": "3.1.0",
        "info": {"title": "Common"},
        "components": {
            "parameters": {
                "Limit": {
                    "name": "limit", "in": "query", "schema": {"$ref": "#/components/schemas/Size"}
                }
            },
            "responses": {"No": {"description": "No."}},
            "securitySchemes": {
                "o": {"type": "oauth2", "flows": {"password": {"scopes": {"read": "R"}}}}
            },
            "schemas": {"Size": {"type": "integer"}},
        },
    }  # fmt: skip
    (tmp_path / "api" / "main.yaml").write_text(yaml.safe_dump(main))
    (tmp_path / "common.yaml").write_text(yaml.safe_dump(common))
    (tmp_path / "note.md").write_text("A note.")
    (tmp_path / "package.json").write_text('{"name": "x"}')
    (tmp_path / "redocly.yaml").write_text("openapi: {theme: dark}")
    (tmp_path / "odd.yaml").write_text("a: !!python/name:os.system [")
    with caplog.at_level(logging.WARNING):
        found = {record.chunk.id: record for record in load(tmp_path)}
    assert "3 files of other kinds are skipped: " in caplog.text
    assert warnings(found) == []
    assert [(i, record.chunk.source) for i, record in found.items()] == [
        ("note.md#note", "note.md"),
        ("common:Size", "common.yaml"),
        ("common:responses/No", "common.yaml"),
        ("common:security/o", "common.yaml"),
        ("t:getX", "api/main.yaml"),
    ]
    operation = found["t:getX"].chunk
    assert operation.refs == ("common:Size", "common:security/o", "common:responses/No")
    assert "- limit, query (Size)" in operation.text
    # The same file alone: each external reference is reported once and left out.
    alone = {r.chunk.id: r for r in load(tmp_path / "api" / "main.yaml")}
    assert alone["t:getX"].chunk.refs == ()
    assert len(warnings(alone)) == 3
