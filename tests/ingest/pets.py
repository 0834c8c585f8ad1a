"""A small OpenAPI description with one of everything, and helpers to read its chunks."""

from __future__ import annotations

import copy
from typing import Any

from ragfilter.ingest.openapi.read import records
from ragfilter.ingest.records import Record

PETS: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {
        "title": "Pet Shop",
        "version": "1",
        "description": "Buys and sells.\n\n## Rate limits\n\nTen a second, see [pets](#operation/addPet).",
    },
    "security": [{"key": []}],
    "tags": [{"name": "Dogs", "description": "All about dogs."}, {"name": "silent"}],
    "paths": {
        "/pets/{id}": {
            "parameters": [{"$ref": "#/components/parameters/Id"}],
            "put": {
                "operationId": "addPet",
                "summary": "Add a pet",
                "description": "<details>Puts a <b><u>pet</u></b>\n  into the &amp; shop.</details>",
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
                                "schema": {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}}
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
            "Id": {"name": "id", "in": "path", "required": True, "schema": {"$ref": "#/components/schemas/Id"}}
        },
        "requestBodies": {
            "NewPet": {
                "required": True,
                "content": {"application/xml": {"schema": {"$ref": "#/components/schemas/Cat~1Kitten"}}},
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
                    "home": {"type": "object", "properties": {"town": {"$ref": "#/components/schemas/Id"}}},
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
        "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key", "description": "A key."}},
    },
}


def described(tree: Any, source: str = "pets.yaml") -> dict[str, Record]:
    found = records({source: copy.deepcopy(tree)})
    by_id = {record.chunk.id: record for record in found}
    assert len(by_id) == len(found)
    return by_id


def warnings(found: dict[str, Record]) -> list[str]:
    return [warning for record in found.values() for warning in record.warnings]


def minimal(**parts: Any) -> dict[str, Any]:
    return {"openapi": "3.1.0", "info": {"title": "T"}, **parts}
