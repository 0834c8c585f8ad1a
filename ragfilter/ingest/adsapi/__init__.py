"""The second demo collection: an invented advertising API as OpenAPI 3.1, with labelled questions.

It has six descriptions that refer to each other: sign-in, sponsored display, DSP, reporting, limits and errors, and
common parts. It is noisy because every API describes tokens, errors and limits, and because an answer often needs
schemas that a search does not find, but the found chunks refer to. Everything here was written for this project.
"""

from collections.abc import Iterator
from typing import Any

from ragfilter.ingest.demo import read_qrels, read_queries, read_text
from ragfilter.ingest.openapi.read import parse
from ragfilter.ingest.openapi.read import records as openapi_records
from ragfilter.ingest.records import Record

FILES = ("auth.yaml", "sponsored-display.yaml", "dsp.yaml", "reporting.yaml", "platform.yaml", "common.yaml")


def trees() -> dict[str, dict[str, Any]]:
    """The six descriptions, parsed: file name to tree."""
    by_name: dict[str, dict[str, Any]] = {}
    for name in FILES:
        tree = parse(read_text(__name__, name), ".yaml", name)
        assert isinstance(tree, dict)
        by_name[name] = tree
    return by_name


def records() -> Iterator[Record]:
    """Every chunk of the collection as a record, in a fixed order."""
    return iter(openapi_records(trees()))


def queries() -> dict[str, str]:
    """The labelled questions: query id to text."""
    return read_queries(__name__, "queries.jsonl")


def qrels() -> dict[str, dict[str, int]]:
    """The relevance labels: query id to chunk id to score (2 needed, 1 helpful)."""
    return read_qrels(__name__, "qrels.tsv")
