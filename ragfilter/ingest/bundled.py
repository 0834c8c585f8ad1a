"""The bundled collections, with labelled questions. Everything in them was written for this project.

`demo` holds an invented fantasy game's rules: hundreds of chunks with a real noise problem. 84 attack matrices differ
in one number, tables by range and by terrain crowd out the rule that you look for, and most users cannot see a few
referee secrets. `adsapi` is an invented advertising API as OpenAPI 3.1, in six descriptions that refer to each other.
It is noisy because every API describes tokens, errors and limits, and because an answer often needs schemas that a
search does not find, but the found chunks refer to."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ragfilter.basics.files import json_objects, read_lines
from ragfilter.ingest.records import PLAIN, Record, to_record
from ragfilter.model import User

FOLDER = Path(__file__).parent
DEMOS = {"demo": ("", "-monsters"), "adsapi": ("",)}
"""The bundled collections, with the endings of their files of questions and labels."""
DEMO_FILES = ("tables", "rules", "monsters", "spells", "items", "travel")
ADSAPI_FILES = ("auth.yaml", "sponsored-display.yaml", "dsp.yaml", "reporting.yaml", "platform.yaml", "common.yaml")
DEMO_USERS = {"Guest": User(), "Player": User(1), "Referee": User(3, ("referee",))}
"""Users at the table: a guest sees the rules, a player also some notes, the referee the secrets."""


def demo_rows() -> Iterator[dict[str, Any]]:
    """Every chunk of `demo` as it is written in its files, in a fixed order."""
    for name in DEMO_FILES:
        yield from (row for _, row in json_objects(FOLDER / "demo" / f"{name}.jsonl", ""))


def records(collection: str) -> Iterator[Record]:
    """Every chunk of a bundled collection as a record, in a fixed order."""
    if collection == "demo":
        return (to_record(row, place=f"demo, record {number}") for number, row in enumerate(demo_rows(), start=1))
    # Imported here: reading OpenAPI needs an extra.
    from ragfilter.ingest.openapi.read import load_openapi

    return iter(load_openapi(FOLDER / "adsapi", ADSAPI_FILES, PLAIN)[0])


def queries(collection: str) -> dict[str, str]:
    """The labelled questions of a bundled collection: query id to text."""
    paths = (FOLDER / collection / f"queries{ending}.jsonl" for ending in DEMOS[collection])
    return {row["_id"]: row["text"] for path in paths for _, row in json_objects(path, "")}


def qrels(collection: str) -> dict[str, dict[str, int]]:
    """The relevance labels of a bundled collection: query id to chunk id to score (2 needed, 1 helpful)."""
    labels: dict[str, dict[str, int]] = {}
    for ending in DEMOS[collection]:
        _, *lines = read_lines(FOLDER / collection / f"qrels{ending}.tsv")
        for query_id, chunk_id, score in (line.split("\t") for line in lines):
            labels.setdefault(query_id, {})[chunk_id] = int(score)
    return labels
