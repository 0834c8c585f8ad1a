"""The second demo collection: an invented advertising API as OpenAPI 3.1, with labelled questions.

It has six descriptions that refer to each other: sign-in, sponsored display, DSP, reporting, limits and errors, and
common parts. It is noisy because every API describes tokens, errors and limits, and because an answer often needs
schemas that a search does not find, but the found chunks refer to. Everything here was written for this project.
"""

from collections.abc import Iterator
from pathlib import Path

from ragfilter.ingest.demo import read_qrels, read_queries
from ragfilter.ingest.openapi.read import load_openapi
from ragfilter.ingest.records import PLAIN, Record

FOLDER = Path(__file__).parent
FILES = ("auth.yaml", "sponsored-display.yaml", "dsp.yaml", "reporting.yaml", "platform.yaml", "common.yaml")


def records() -> Iterator[Record]:
    """Every chunk of the collection as a record, in a fixed order."""
    return iter(load_openapi(FOLDER, FILES, PLAIN)[0])


def queries() -> dict[str, str]:
    """The labelled questions: query id to text."""
    return read_queries(FOLDER, "queries.jsonl")


def qrels() -> dict[str, dict[str, int]]:
    """The relevance labels: query id to chunk id to score (2 needed, 1 helpful)."""
    return read_qrels(FOLDER, "qrels.tsv")
