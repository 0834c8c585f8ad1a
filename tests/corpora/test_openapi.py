"""OpenAPI descriptions into chunks: literal documents, cycles, broken files, and no crash."""

from __future__ import annotations

import copy
import json
import logging
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ragfilter.corpora.load import load
from ragfilter.corpora.openapi import records
from ragfilter.corpora.openapi_yaml import parse_yaml
from ragfilter.corpora.records import Record
from ragfilter.errors import InputError

PETS: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {
        "title": "Pet Shop",
        "version": "1",
        "description": "Buys and sells.\n\n## Rate limits\n\n"
        "Ten a second, see [pets](#operation/addPet).",
    },
    "security": [{"key": []}],
    "tags": [{"name": "Dogs", "description": "All about dogs."}, {"name": "silent"}],
    "paths": {
        "/pets/{id}": {
            "parameters": [{"$ref": "#/components/parameters/Id"}],
            "put": {
                "operationId": "addPet",
                "summary": "Add a pet",
                "description": "Puts a <b>pet</b>\n  into the &amp; shop.",
                "parameters": [
                    {
                        "name": "limit",
                        "in": "query",
                        "description": "How many.",
                        "schema": {"type": "integer", "minimum": 1, "maximum": 9, "default": 5},
                    }
                ],
                "requestBody": {"$ref": "#/components/requestBodies/NewPet"},
                "responses": {
                    "404": {"$ref": "#/components/responses/Missing"},
                    "200": {
                        "description": "Added.",
                        "content": {
                            "application/json": {
                                "schema": {
                                    "type": "array",
                                    "items": {"$ref": "#/components/schemas/Pet"},
                                }
                            }
                        },
                    },
                },
            },
            "get": {"responses": {}, "security": [], "deprecated": True},
        }
    },
    "components": {
        "parameters": {
            "Id": {
                "name": "id",
                "in": "path",
                "required": True,
                "schema": {"$ref": "#/components/schemas/Id"},
            }
        },
        "requestBodies": {
            "NewPet": {
                "required": True,
                "content": {
                    "application/xml": {"schema": {"$ref": "#/components/schemas/Cat~1Kitten"}}
                },
            }
        },
        "schemas": {
            "Id": {"type": "string", "format": "uuid"},
            "Pet": {
                "description": "Any pet.",
                "oneOf": [{"$ref": "#/components/schemas/Cat%7E1Kitten"}],
                "discriminator": {
                    "propertyName": "kind",
                    "mapping": {"dog": "Dog", "cat": "#/components/schemas/Cat~1Kitten"},
                },
            },
            "Cat/Kitten": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "maxLength": 20, "description": "What it\nhears."},
                    "mother": {"$ref": "#/components/schemas/Cat~1Kitten"},
                    "colour": {"type": "string", "enum": ["red", "black"], "nullable": True},
                    "home": {
                        "type": "object",
                        "properties": {"town": {"$ref": "#/components/schemas/Id"}},
                    },
                    "example": {"$ref": "#/components/schemas/Dog"},
                },
                "example": {"$ref": "#/components/schemas/Nowhere"},
            },
            "Dog": {"allOf": [{"$ref": "#/components/schemas/Pet"}], "type": "object"},
        },
        "responses": {
            "Missing": {
                "description": "It is not here.",
                "content": {"text/plain": {"schema": {"type": "string"}}},
                "headers": {"X-Hint": {"description": "Where to look.", "schema": {}}},
            }
        },
        "securitySchemes": {
            "key": {"type": "apiKey", "in": "header", "name": "X-Key", "description": "A key."}
        },
    },
}


def described(tree: Any, source: str = "pets.yaml") -> dict[str, Record]:
    found = list(records({source: tree}))
    by_id = {record.chunk.id: record for record in found}
    assert len(by_id) == len(found)
    return by_id


def warnings(found: dict[str, Record]) -> list[str]:
    return [warning for record in found.values() for warning in record.warnings]


def minimal(**parts: Any) -> dict[str, Any]:
    return {"openapi": "3.1.0", "info": {"title": "T"}, **parts}


# --- the chunks of a small description, word for word


def test_every_part_becomes_a_chunk_with_its_kind_and_file() -> None:
    found = described(PETS)
    assert {i: record.chunk.type for i, record in found.items()} == {
        "pet-shop:guide/overview": "guide",
        "pet-shop:guide/rate-limits": "guide",
        "pet-shop:tags/dogs": "tag",
        "pet-shop:addPet": "operation",
        "pet-shop:GET/pets/{id}": "operation",
        "pet-shop:Id": "schema",
        "pet-shop:Pet": "schema",
        "pet-shop:Cat/Kitten": "schema",
        "pet-shop:Dog": "schema",
        "pet-shop:responses/Missing": "response",
        "pet-shop:security/key": "security",
    }
    assert {record.chunk.source for record in found.values()} == {"pets.yaml"}
    assert found["pet-shop:addPet"].place == "pets.yaml, paths /pets/{id} put"
    assert warnings(found) == []


def test_an_operation_word_for_word() -> None:
    chunk = described(PETS)["pet-shop:addPet"].chunk
    assert chunk.title == "Add a pet"
    assert chunk.text == (
        "PUT /pets/{id} (addPet).\n"
        "Puts a pet\n"
        "into the & shop.\n"
        "Request body: Cat/Kitten (application/xml), required.\n"
        "Parameters:\n"
        "- id, path (Id, required)\n"
        "- limit, query (integer, default 5, from 1, at most 9): How many.\n"
        "Responses:\n"
        "- 404: Missing (string (text/plain))\n"
        "- 200 (array of Pet): Added.\n"
        "Security: key."
    )
    # What is sent, what comes back, its parameters, its key, and last what may go wrong.
    assert chunk.refs == (
        "pet-shop:Cat/Kitten",
        "pet-shop:Pet",
        "pet-shop:Id",
        "pet-shop:security/key",
        "pet-shop:responses/Missing",
    )


def test_an_operation_without_a_name_is_called_by_method_and_path() -> None:
    chunk = described(PETS)["pet-shop:GET/pets/{id}"].chunk
    assert chunk.title == "GET/pets/{id}"
    assert chunk.text == (
        "GET /pets/{id}. Deprecated.\n"
        "Parameters:\n- id, path (Id, required)\nSecurity: no authentication."
    )
    assert chunk.refs == ("pet-shop:Id",)


def test_schemas_word_for_word() -> None:
    found = described(PETS)
    cat = found["pet-shop:Cat/Kitten"].chunk
    assert cat.title == "Cat/Kitten schema"
    assert cat.text == (
        "Cat/Kitten: object.\n"
        "Properties:\n"
        "- name (string, at most 20 characters, required): What it hears.\n"
        "- mother (Cat/Kitten)\n"
        "- colour (string, one of red, black, may be null)\n"
        "- home (object)\n"
        "- home.town (Id)\n"
        "- example (Dog)"
    )
    # Not itself; and what stands in an example is data, but a property may be called so.
    assert cat.refs == ("pet-shop:Id", "pet-shop:Dog")
    pet = found["pet-shop:Pet"].chunk
    assert pet.text == (
        "Pet: Cat/Kitten.\nAny pet.\nTold apart by kind: dog is Dog, cat is Cat/Kitten."
    )
    assert pet.refs == ("pet-shop:Dog", "pet-shop:Cat/Kitten")
    assert found["pet-shop:Dog"].chunk.refs == ("pet-shop:Pet",)


def test_the_other_kinds_word_for_word() -> None:
    found = described(PETS)
    assert found["pet-shop:guide/rate-limits"].chunk.title == "Pet Shop > Rate limits"
    assert found["pet-shop:guide/rate-limits"].chunk.text == "Ten a second, see pets."
    assert found["pet-shop:guide/rate-limits"].chunk.refs == ("pet-shop:addPet",)
    assert found["pet-shop:tags/dogs"].chunk.text == "All about dogs."
    missing = found["pet-shop:responses/Missing"].chunk
    assert missing.title == "Missing response 404"
    assert missing.text == (
        "Missing: a response with status 404 that operations share (Pet Shop).\n"
        "It is not here.\nBody: string (text/plain).\n"
        "Headers:\n- X-Hint (any value): Where to look."
    )
    assert found["pet-shop:security/key"].chunk.text == (
        "key: apiKey in header X-Key. How to authenticate with Pet Shop.\nA key."
    )


def test_json_and_yaml_give_the_same_chunks(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(PETS))
    (tmp_path / "b.yaml").write_text(yaml.safe_dump(PETS, sort_keys=False))
    (tmp_path / "c.yml").write_text(json.dumps(PETS))
    texts = [
        [(r.chunk.id, r.chunk.title, r.chunk.text, r.chunk.refs) for r in load(tmp_path / name)]
        for name in ("a.json", "b.yaml", "c.yml")
    ]
    assert texts[0] == texts[1] == texts[2]
    assert len(texts[0]) == 11


# --- ids


@pytest.mark.parametrize(
    ("info", "source", "prefix"),
    [
        ({"title": "Sponsored Display", "x-api-prefix": "sd-api"}, "x.yaml", "sd-api"),
        ({"title": "Sponsored  Display!"}, "x.yaml", "sponsored-display"),
        ({"title": "…"}, "deep/My File.yaml", "my-file"),
        ({"title": "The Platform for Advertisers and Agencies"}, "x.yaml", "the-platform-for"),
        ({"title": "x" * 50}, "x.yaml", "x" * 24),
        ({}, "x.yaml", "x"),
        (None, "x.yaml", "x"),
        (["odd"], "x.yaml", "x"),
    ],
)
def test_the_prefix(info: Any, source: str, prefix: str) -> None:
    tree = {"openapi": "3.0.0", "info": info, "components": {"schemas": {"A": {}}}}
    assert list(described(tree, source)) == [f"{prefix}:A"]


def test_names_that_are_taken_get_a_longer_one_whatever_the_order_in_the_file() -> None:
    tree = minimal(
        components={"schemas": {"Run": {}, "white space": {}}},
        paths={"/a": {"get": {"operationId": "Run"}, "post": {"operationId": "Run"}}},
    )
    assert list(described(tree)) == [
        "t:Run", "t:POST/a", "t:schemas/Run", "t:white_space"
    ]  # fmt: skip


def test_two_files_with_one_prefix_keep_their_chunks_apart() -> None:
    one = minimal(components={"schemas": {"A": {"$ref": "#/components/schemas/B"}, "B": {}}})
    found = list(records({"one.yaml": one, "v2/two.yaml": copy.deepcopy(one)}))
    assert [(r.chunk.id, r.chunk.refs) for r in found] == [
        ("t:A", ("t:B",)),
        ("t:B", ()),
        ("t:schemas/A", ("t:schemas/B",)),
        ("t:schemas/B", ()),
    ]
    third = list(records({"one.yaml": one, "two.yaml": one, "three.yaml": one}))
    assert [r.chunk.id for r in third][4:] == ["t:schemas/A@three", "t:schemas/B@three"]


# --- references


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
    (tmp_path / "odd.yaml").write_text("a: !!python/name:os.system [")
    with caplog.at_level(logging.WARNING):
        found = {record.chunk.id: record for record in load(tmp_path)}
    assert "2 files of another kind" in caplog.text
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
    # The same file alone: what it needs from outside is reported once each, and left out.
    alone = {r.chunk.id: r for r in load(tmp_path / "api" / "main.yaml")}
    assert alone["t:getX"].chunk.refs == ()
    assert len(warnings(alone)) == 3


# --- what cannot be read


@pytest.mark.parametrize(
    ("name", "text", "message", "remedy"),
    [
        ("a.json", '{"openapi": 3,\n "info": }', "a.json, line 2: this is not JSON", "Correct"),
        ("a.yaml", "openapi: 3.0.0\ninfo: [1\nb: 2", "a.yaml, line 3: this is not YAML", "Correct"),
        ("a.yaml", "openapi: 3.0.0\n---\nb: 2", "a.yaml, line 2: a second document", "Correct"),
        ("a.yaml", "openapi: 3.0.0\ninfo: *x", "a.yaml, line 2: the alias *x", "Correct"),
        ("a.yaml", "openapi: 3.0.0\n? [a]\n: 1", "a.yaml, line 2: a key is not text", "Correct"),
        ("a.yaml", "openapi: 3.0.0\n<<: 5", "a.yaml, line 2: << names", "Correct"),
        ("a.yaml", "a\tb: \x01", "a.yaml: this is not YAML", "Correct"),
        ("a.yaml", "x: " + "[" * 600, "a.yaml, line 1: nested deeper", "Correct"),
        ("a.json", "[" * 200_000, "a.json: this JSON cannot be read", "Nest"),
        ("a.json", '{"swagger": "2.0"}', "a.json: this is OpenAPI 2", "swagger2openapi"),
        ("a.yaml", "openapi: 4.0.0", "a.yaml: OpenAPI version '4.0.0'", "Convert"),
        ("a.yaml", "openapi: [3]", "a.yaml: OpenAPI version", "Convert"),
        ("a.json", '{"name": "x"}', "a.json: this is no OpenAPI", "JSONL"),
        ("a.json", "[1]", "a.json: this is no OpenAPI", "JSONL"),
        ("a.yaml", "", "a.yaml: this is no OpenAPI", "JSONL"),
        ("a.yaml", "only words", "a.yaml: this is no OpenAPI", "JSONL"),
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
        ({"components": {"schemas": {"A": {"allOf": {}}}}}, "schemas A: allOf has the wrong type"),
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


def test_many_warnings_are_summed_up() -> None:
    refs = [{"$ref": f"#/nowhere/{i}"} for i in range(40)]
    told = warnings(described(minimal(components={"schemas": {"A": {"allOf": refs}}})))
    assert len(told) == 11
    assert told[-1] == "pets.yaml: 30 more of that kind."


# --- YAML


def test_yaml_scalars_stay_what_was_written() -> None:
    text = """
on: no
version: 1.10
date: 2024-01-01
404: {yes: true, "no": "true", n: null, tilde: ~, e: , sex: 12:30, big: 0o17}
tagged: !!str true
custom: !thing {a: 1}
"""
    assert parse_yaml(text, place="x") == {
        "on": "no",
        "version": "1.10",
        "date": "2024-01-01",
        "404": {
            "yes": True, "no": "true", "n": None, "tilde": None, "e": None, "sex": "12:30",
            "big": "0o17",
        },
        "tagged": "true",
        "custom": {"a": "1"},
    }  # fmt: skip


def test_yaml_merge_keys_give_way_to_own_ones() -> None:
    text = "a: &a {x: 1, y: 1}\nb: {z: 3, <<: [*a, {y: 2, w: 2}], x: 3}"
    assert parse_yaml(text, place="x") == {
        "a": {"x": "1", "y": "1"},
        "b": {"z": "3", "x": "3", "y": "1", "w": "2"},
    }


def test_an_alias_is_the_same_object_and_may_hold_itself() -> None:
    tree: Any = parse_yaml("a: &a [1, *a]\nb: *a", place="x")
    assert tree["a"] is tree["b"]
    assert tree["a"][1] is tree["a"]


def test_a_bomb_of_aliases_neither_explodes_nor_hangs() -> None:
    started = time.process_time()
    lines = ["openapi: 3.0.0", "components:", "  schemas:", "    S0: &a0 {type: string}"]
    for i in range(1, 40):
        members = ", ".join([f"*a{i - 1}"] * 9)
        inner = f"anyOf: [{members}], properties: {{p: *a{i - 1}, q: *a{i - 1}}}, <<: *a{i - 1}"
        lines.append(f"    S{i}: &a{i} {{{inner}}}")
    lines.append("    Loop: &loop {properties: {again: *loop}, items: *loop, default: *loop}")
    found = described(parse_yaml("\n".join(lines), place="x"))
    assert len(found) == 41
    assert max(len(record.chunk.text) for record in found.values()) < 25_000
    assert time.process_time() - started < 20


def test_reading_yaml_shows_progress() -> None:
    calls: list[tuple[int, int]] = []
    text = "\n".join(f"key{i}: {{a: b}}" for i in range(20_000))
    parse_yaml(text, place="x", progress=lambda done, total: calls.append((done, total)))
    assert len(calls) >= 4
    assert calls == sorted(calls)
    assert calls[-1] == (len(text), len(text))


PLAIN = st.recursive(
    st.none() | st.booleans() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(PLAIN)
def test_what_yaml_writes_is_read_back(tree: object) -> None:
    assert parse_yaml(yaml.safe_dump(tree), place="x") == tree


@given(st.text(alphabet="ab:{}[]&*!<>-?|\"' \n\t#,%~", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    refused: InputError | None = None
    try:
        parse_yaml(text, place="x")
    except InputError as error:
        refused = error
    assert refused is None or (refused.message.startswith("x") and refused.remedy)


# --- no tree crashes it

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
    """Every place in a tree below its top."""
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
            node[place[-1]] = value
    holds(described(tree))
