"""The second demo collection: an invented advertising API as OpenAPI 3.1, with labelled questions.

Six descriptions that refer to each other: sign-in, sponsored display, DSP, reporting, limits and
errors, and common parts. The noise problem here is that every API says something about tokens,
errors and limits, and that an answer often needs schemas which no search for its words finds, only
the references of what it found. Everything was written for this project.
"""

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from ragfilter.ingest.openapi.files import parse
from ragfilter.ingest.openapi.read import parts

FILES = (
    "auth.yaml",
    "sponsored-display.yaml",
    "dsp.yaml",
    "reporting.yaml",
    "platform.yaml",
    "common.yaml",
)


def trees() -> dict[str, dict[str, Any]]:
    """The six descriptions, parsed: file name to tree."""
    found: dict[str, dict[str, Any]] = {}
    for name in FILES:
        tree = parse(_text(name), ".yaml", name)
        assert isinstance(tree, dict)
        found[name] = tree
    return found


def records() -> Iterator[dict[str, object]]:
    """Every chunk of the collection as a plain record, in a fixed order."""
    for part in parts(trees(), {name: [] for name in FILES}):
        yield part.raw


def queries() -> dict[str, str]:
    """The labelled questions: query id to text."""
    lines = (json.loads(line) for line in _text("queries.jsonl").splitlines() if line.strip())
    return {line["_id"]: line["text"] for line in lines}


def qrels() -> dict[str, dict[str, int]]:
    """The relevance labels: query id to chunk id to score (2 needed, 1 helpful)."""
    labels: dict[str, dict[str, int]] = {}
    for line in _text("qrels.tsv").splitlines()[1:]:
        query_id, chunk_id, score = line.split("\t")
        labels.setdefault(query_id, {})[chunk_id] = int(score)
    return labels


def _text(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
