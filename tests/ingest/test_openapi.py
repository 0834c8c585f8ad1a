"""OpenAPI descriptions to chunks: literal documents, word for word, and their ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from pets import PETS, described, minimal, warnings

from ragfilter.ingest.load import load

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
    # The request, the response, its parameters, its key, and finally its errors.
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
    # Not itself. Examples are data, but a property may have that name.
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


@pytest.mark.parametrize("name", ["pets.json", "pets.yaml"])
def test_reading_json_shows_progress(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    text = json.dumps(PETS)
    file.write_text(text, encoding="utf-8")
    calls: list[tuple[int, int]] = []
    assert list(load(file, progress=lambda done, total: calls.append((done, total))))
    assert calls == [(0, len(text)), (len(text), len(text))]


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
