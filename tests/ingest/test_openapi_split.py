"""API descriptions that are split into files: every part is found, and none outside the folder."""

from __future__ import annotations

import copy
import json
import logging
from pathlib import Path
from typing import Any

import pytest
import yaml
from pets import PETS, minimal, warnings
from written import written

from ragfilter.errors import InputError
from ragfilter.ingest.load import load
from ragfilter.ingest.openapi.read import records
from ragfilter.ingest.records import ReadOptions, Record


def loaded(tmp_path: Path, files: dict[str, Any]) -> dict[str, Record]:
    for name, content in files.items():
        written(tmp_path, name, content if isinstance(content, str) else json.dumps(content))
    found = list(load(tmp_path))
    assert len({record.chunk.id for record in found}) == len(found)
    return {record.chunk.id: record for record in found}


SPLIT = {
    "openapi.yaml": """\
openapi: 3.1.0
info: {title: T, description: {$ref: text/intro.yml#/first}}
tags: [{name: Dogs, description: {$ref: "text/intro.yml#/dogs"}}]
paths:
  /pets/{id}: {$ref: ./paths/pet.yaml}
  /pets: {get: {$ref: "paths/list.json"}}
components:
  schemas: {Pet: {$ref: "schemas/pet.yml"}}
  securitySchemes: {key: {$ref: "schemas/key.yml"}}
""",
    "text/intro.yml": "first: Buys and sells.\ndogs: All about dogs.\n",
    "paths/pet.yaml": """\
parameters: [{$ref: "../shared/parameters.yml#/id"}]
put:
  operationId: putPet
  requestBody: {$ref: ../bodies/new.json}
  responses:
    "200": {description: Put., content: {application/json: {schema: {$ref: ../schemas/pet.yml}}}}
    "404": {$ref: "../shared/responses.yml#/not~1found"}
  security: [{key: []}]
""",
    "paths/list.json": '{"operationId": "listPets", "responses": {"200": {"description": "All.",'
    ' "content": {"application/json": {"schema": {"type": "array",'
    ' "items": {"$ref": "../schemas/pet.yml"}}}}}}}',
    "shared/parameters.yml": "id: {name: id, in: path, required: true, schema: {$ref: '#/Id'}}\n"
    "Id: {type: string, description: Whose.}\n",
    "shared/responses.yml": "not/found: {description: Not here., content: "
    "{text/plain: {schema: {$ref: ../schemas/error.yml}}}}\n",
    "bodies/new.json": '{"required": true, "content": {"application/json": {"schema":'
    ' {"$ref": "../openapi.yaml#/components/schemas/Pet"}}}}',
    "schemas/pet.yml": """\
type: object
properties:
  mother: {$ref: pet.yml, description: Its mother.}
  example: {$ref: "more/owner.yml#/definitions/Owner"}
discriminator: {propertyName: kind, mapping: {cat: cat.yml, dog: Pet}}
""",
    "schemas/cat.yml": "allOf: [{$ref: pet.yml}]\n",
    "schemas/error.yml": "{type: string, description: What went wrong.}",
    "schemas/more/owner.yml": "definitions: {Owner: {properties: {pets: {items: {$ref: ../pet.yml}}}}}",
    "schemas/key.yml": "{type: apiKey, in: header, name: X-Key}",
}


def test_every_part_is_found_word_for_word(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        found = loaded(tmp_path, SPLIT)
    assert caplog.text == ""
    assert warnings(found) == []
    assert {record.chunk.source for record in found.values()} == {"openapi.yaml"}
    assert {i: (record.chunk.text, record.chunk.refs) for i, record in found.items()} == {
        "t:guide/overview": ("Buys and sells.", ()),
        "t:tags/dogs": ("All about dogs.", ()),
        "t:putPet": (
            "PUT /pets/{id} (putPet).\nRequest body: Pet, required.\nParameters:\n"
            "- id, path (string, required): Whose.\nResponses:\n- 200 (Pet): Put.\n"
            "- 404 (string (text/plain)): Not here.\nSecurity: key.",
            ("t:Pet", "t:security/key"),
        ),
        "t:listPets": ("GET /pets (listPets).\nResponses:\n- 200 (array of Pet): All.", ("t:Pet",)),
        "t:Pet": (
            "Pet: object.\nProperties:\n- mother (Pet): Its mother.\n- example (object)\n"
            "- example.pets (array of Pet)\nTold apart by kind: cat is cat.yml, dog is Pet.",
            (),
        ),
        "t:security/key": ("key: apiKey in header X-Key. How to authenticate with T.", ()),
    }


@pytest.mark.parametrize("ending", ["json", "yaml"])
def test_a_description_cut_apart_gives_the_same_chunks(tmp_path: Path, ending: str) -> None:
    """Each component and operation has a file of its own, in neighbouring folders."""

    def cut(node: Any, at: str) -> Any:
        text = json.dumps(node).replace("#/components/", "../api/pets.yaml#/components/")
        tree = json.loads(text)
        name = f"{at.replace('/', '_').replace('{', '').replace('}', '')}.{ending}"
        content = json.dumps(tree) if ending == "json" else yaml.safe_dump(tree, sort_keys=False)
        written(tmp_path, f"parts/{name}", content)
        return {"$ref": f"../parts/{name}"}

    tree = json.loads(json.dumps(PETS))
    for kind, named in tree["components"].items():
        if kind != "responses":  # A shared response is told apart from one in its place.
            tree["components"][kind] = {name: cut(x, f"{kind}-{name}") for name, x in named.items()}
    for path, item in tree["paths"].items():
        item["put"] = cut(item["put"], "put")
        tree["paths"][path] = cut(item, path)
    written(tmp_path, "api/pets.yaml", yaml.safe_dump(tree, sort_keys=False))
    found = list(load(tmp_path))
    expected = records({"api/pets.yaml": copy.deepcopy(PETS)})
    assert [r.chunk for r in found] == [r.chunk for r in expected]
    assert [w for r in found for w in r.warnings] == []


@pytest.mark.parametrize(
    ("files", "ids"),
    [
        # An index names the schemas; others come through it, or go to the files themselves.
        (
            {
                "schemas/_index.yaml": "A: {$ref: ./a.yaml}\nB: {properties: {a: {$ref: '#/A'}}}\n",
                "schemas/a.yaml": "properties: {b: {$ref: '_index.yaml#/B'}, a: {$ref: a.yaml}}",
                "o.yaml": minimal(components={"schemas": {"$ref": "schemas/_index.yaml"}}),
            },
            {"t:A": ("t:B",), "t:B": ("t:A",)},
        ),
        # One file with all paths, whose references refer to the description.
        (
            {
                "paths.yml": "/a: {get: {responses: {'200': {content: {x/y: {schema: "
                "{$ref: '#/components/schemas/A'}}}}}}}",
                "o.yaml": minimal(paths={"$ref": "paths.yml"}, components={"schemas": {"A": {}}}),
            },
            {"t:GET/a": ("t:A",), "t:A": ()},
        ),
        # A map of properties in a file of its own.
        (
            {
                "p.yml": "b: {$ref: 'o.yaml#/components/schemas/B'}",
                "o.yaml": minimal(components={"schemas": {"A": {"properties": {"$ref": "p.yml"}}, "B": {}}}),
            },
            {"t:A": ("t:B",), "t:B": ()},
        ),
        # Cycles of parts that are not schemas, and of references only.
        (
            {
                "p.yml": "{get: {$ref: 'p.yml#/post'}, post: {$ref: 'p.yml#/get'}, put: {callbacks: "
                "{done: {'{$url}': {$ref: p.yml}}}}}",
                "s.yml": "{$ref: r.yml}",
                "r.yml": "{$ref: s.yml}",
                "o.yaml": minimal(paths={"/p": {"$ref": "p.yml"}}, components={"schemas": {"S": {"$ref": "s.yml"}}}),
            },
            {"t:GET/p": (), "t:POST/p": (), "t:PUT/p": (), "t:S": ()},
        ),
    ],
)
def test_where_parts_stand(tmp_path: Path, files: dict[str, Any], ids: dict[str, tuple[str, ...]]) -> None:
    found = loaded(tmp_path, files)
    assert {i: record.chunk.refs for i, record in found.items()} == ids


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize(
    "ref",
    [
        r"deep\s.yml",
        r".\deep\s.yml",
        r"deep\\s.yml",
        "deep%5Cs.yml",
        r"x\..\deep/s.yml#/",
        "deep/s.yml#",
        "deep/s.yml#/",
        "deep/all.yml#/A",
        r".\deep\all.yml#/A/",
        "deep/bare",
        "./deep/bare#/",
        "deep/bare.d/s",
        "deep/my%20bare",
        "deep/S.JSON",
    ],
)
def test_ways_to_write_where_a_part_stands(tmp_path: Path, ref: str, alone: bool) -> None:
    part = '{"properties": {"secret": {"$ref": "#"}}}'
    files = {
        "deep/s.yml": part,
        "deep/all.yml": f"A: {part}",
        "deep/bare": part,
        "deep/bare.d/s": part,
        "deep/my bare": part,
        "deep/S.JSON": part,
        "o.yaml": minimal(components={"schemas": {"A": {"properties": {"x": {"$ref": ref}}}}}),
    }
    found = loaded(tmp_path, files)
    if alone:
        found = {record.chunk.id: record for record in load(tmp_path / "o.yaml")}
    assert warnings(found) == []
    assert "- x.secret" in found["t:A"].chunk.text


@pytest.mark.parametrize(
    "ref",
    [
        "../s.yml",
        "up/s.yml",
        ".s.yml",
        ".env",
        ".git/s.yml",
        "x" * 300,
        "a%00b",
        "s.txt",
        "folder",
        "file:///etc/hostname",
        "/etc/hostname",
        "%ED%A0%80",
        "https://a.example/s.yml",
    ],
)
def test_a_file_alone_reads_nothing_outside_its_folder(tmp_path: Path, ref: str) -> None:
    part = "{properties: {secret: {}}}"
    for name in ("s.yml", "api/.s.yml", "api/.env", "api/.git/s.yml", "api/s.txt", "api/folder/x"):
        written(tmp_path, name, part)
    (tmp_path / "api" / "up").symlink_to(tmp_path)
    tree = minimal(components={"schemas": {"A": {"properties": {"x": {"$ref": ref}}}}})
    (record,) = load(written(tmp_path, "api/o.yaml", json.dumps(tree)))
    assert "secret" not in record.chunk.text
    (warning,) = record.warnings
    assert "points to nothing that was loaded" in warning


@pytest.mark.parametrize(
    "ref",
    [
        "../outside.yml",
        "../api/../../outside.yml",
        "/etc/hostname",
        "file:///etc/hostname",
        "https://example.org/s.yml",
        "missing.yml",
        "part.yml#/none",
        "part.yml#none",
        "note.txt",
    ],
)
@pytest.mark.parametrize("through", ["o.yaml", "deep/through.yml"])
def test_what_is_not_in_the_folder_is_told(tmp_path: Path, ref: str, through: str) -> None:
    written(tmp_path, "outside.yml", "{properties: {secret: {}}}")
    if "deep" in through:
        ref = ref if ref[0] == "/" or ":" in ref else f"../{ref}"
    asking = {"properties": {"x": {"$ref": ref}}}
    files = {
        "part.yml": "{a: {}}",
        "note.txt": "properties: {secret: {}}",
        "deep/through.yml": asking,
        "o.yaml": minimal(components={"schemas": {"A": asking if through == "o.yaml" else {"$ref": through}}}),
    }
    found = loaded(tmp_path / "api", files)
    assert found["t:A"].chunk.refs == ()
    assert "secret" not in found["t:A"].chunk.text
    (warning,) = warnings(found)
    assert "points to nothing that was loaded" in warning


def test_files_that_nothing_refers_to_are_skipped_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = {
        "a.yml": "{}",
        "b.yml": "{$ref: a.yml}",
        "o.yaml": minimal(components={"schemas": {"A": {"$ref": "a.yml"}}}),
    }
    with caplog.at_level(logging.WARNING):
        assert list(loaded(tmp_path, files)) == ["t:A"]
    assert "1 file without an OpenAPI description skipped: b.yml" in caplog.text


def test_a_part_that_cannot_be_read_costs_no_more_than_itself(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    part, said = "type: object\nx: [1\nb: 2", "a.yml, line 3, column 2: this is neither JSON nor YAML"
    properties = {"x": {"$ref": "a.yml"}, "y": {"$ref": "a.yml#/b"}, "z": {"$ref": "b.yml"}}
    tree = minimal(components={"schemas": {"A": {"properties": properties}}})
    files = {"a.yml": part, "b.yml": "{}", "c.txt": "Hush.", "o.yaml": tree}
    with caplog.at_level(logging.WARNING):
        found = loaded(tmp_path, files)
    assert list(found) == ["c.txt#1", "t:A"]
    assert [r.message.startswith(said) for r in caplog.records] == [True]
    assert ["a.yml" in warning for warning in warnings(found)] == [True, True]
    told: list[InputError] = []
    for source in (tmp_path, tmp_path / "o.yaml"):
        assert "t:A" in [r.chunk.id for r in load(source, reading=ReadOptions(skip=told.append))]
    assert [error.message.startswith(said) for error in told] == [True, True]


def test_a_text_in_a_file_takes_the_place_of_its_reference(tmp_path: Path) -> None:
    tree = minimal(
        info={"title": "T", "description": {"$ref": "d.md"}},
        paths={"/a": {"get": {"description": {"$ref": "t/get.md"}}}},
        components={"schemas": {"A": {"type": "object", "description": {"$ref": "t/a.md"}}}},
    )
    files = {"api.yaml": tree, "d.md": "Buys.", "t/get.md": "Gets it.", "t/a.md": "Any pet."}
    loaded(tmp_path, files)
    found = {record.chunk.id: record for record in load(tmp_path / "api.yaml")}
    assert warnings(found) == []
    assert {i: record.chunk.text for i, record in found.items()} == {
        "t:guide/overview": "Buys.",
        "t:GET/a": "GET /a.\nGets it.",
        "t:A": "A: object.\nAny pet.",
    }
