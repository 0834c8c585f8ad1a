"""OpenAPI descriptions to chunks: literal documents, word for word, and their ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from pets import PETS, described, warnings
from syrupy.assertion import SnapshotAssertion

from ragfilter.ingest.load import load

# --- the chunks of a small description, word for word


def test_every_part_becomes_a_chunk_with_its_kind_and_file(snapshot: SnapshotAssertion) -> None:
    found = described(PETS)
    assert {
        i: (record.place, record.chunk.type, record.chunk.title, record.chunk.text) for i, record in found.items()
    } == snapshot
    assert warnings(found) == []
    # The request, the response, its parameters, its key, and finally its errors.
    assert found["pet-shop:addPet"].chunk.refs == (
        "pet-shop:Cat/Kitten",
        "pet-shop:Pet",
        "pet-shop:Id",
        "pet-shop:security/key",
        "pet-shop:responses/Missing",
    )
    # Not itself. Examples are data, but a property may have that name.
    assert found["pet-shop:Cat/Kitten"].chunk.refs == ("pet-shop:Id", "pet-shop:Dog")


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
        ({"title": "x" * 50}, "x.yaml", "x" * 24),
        (["odd"], "x.yaml", "x"),
    ],
)
def test_the_prefix(info: Any, source: str, prefix: str) -> None:
    tree = {"openapi": "3.0.0", "info": info, "components": {"schemas": {"A": {}}}}
    assert list(described(tree, source)) == [f"{prefix}:A"]
