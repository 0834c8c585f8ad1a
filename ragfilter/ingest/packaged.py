"""The files of a demo collection's package: records, questions and labels."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from typing import Any


def read_text(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")


def read_json_lines(package: str, name: str) -> Iterator[dict[str, Any]]:
    """The objects of a JSONL file."""
    return map(json.loads, filter(str.strip, read_text(package, name).split("\n")))


def read_queries(package: str, *names: str) -> dict[str, str]:
    """Query id to text."""
    lines = (line for name in names for line in read_json_lines(package, name))
    return {line["_id"]: line["text"] for line in lines}


def read_qrels(package: str, *names: str) -> dict[str, dict[str, int]]:
    """Query id to chunk id to score (2 needed, 1 helpful)."""
    labels: dict[str, dict[str, int]] = {}
    for name in names:
        for line in read_text(package, name).splitlines()[1:]:
            query_id, chunk_id, score = line.split("\t")
            labels.setdefault(query_id, {})[chunk_id] = int(score)
    return labels
