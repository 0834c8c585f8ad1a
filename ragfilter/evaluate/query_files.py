"""Query sets and labels to and from files: BEIR, TREC, CSV, or one question per line."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from ragfilter.basics.files import read_lines, read_text, write_text
from ragfilter.errors import InputError
from ragfilter.evaluate.beir import ID, TEXT, Labels, Qrels, Tell, known, read_qrels, read_queries
from ragfilter.ingest.csv_file import check_cells, rows
from ragfilter.text.titles import query_id

log = logging.getLogger(__name__)

LabelRow = tuple[str, str, int]
"""A label: question, chunk id and grade."""
Form = Literal["beir", "trec"]
OTHER_FOLDER = "Name another folder."


def read(queries: Path, qrels: Path) -> Labels:
    """Read questions in any of these forms with their labels. Labels of other questions are left
    out, with a warning. Raises InputError naming file and line, also if no question has a label."""
    texts = read_questions(queries)
    return Labels(texts, known(texts, read_qrels(qrels), queries, qrels))


def read_import(
    queries: Path, qrels: Path | None, *, tell: Tell = log.warning
) -> tuple[dict[str, str], list[LabelRow]]:
    """Questions in any of these forms, and their labels as of `as_labels`: none if there is no file
    of them, or if it is empty. Notes go to `tell`. Raises InputError naming file and line."""
    asked = read_questions(queries)
    found = {} if qrels is None else read_qrels(qrels, tell=tell)
    if qrels is None or not found:
        return asked, []
    return asked, as_labels(asked, known(asked, found, queries, qrels, tell=tell))


def read_questions(path: Path) -> dict[str, str]:
    """Query id → question, in file order. The format depends on the file's ending: .csv with a
    column text (or query, or question) and optionally one with ids, .txt with one question per
    line, otherwise BEIR's JSONL with fields of the same names. A question without an id gets one
    made from its text. Raises InputError."""
    match path.suffix.lower():
        case ".csv":
            found = _from_csv(path)
        case ".txt":
            texts = [line.strip() for line in read_lines(path)]
            found = {query_id(text): text for text in texts if text}
        case _:
            found = read_queries(path)
    if not found:
        raise InputError(f"{path} contains no questions.", remedy="Write one question per line.")
    return found


def write(
    labels: Labels, folder: Path, form: Form, *, by_llm: Labels | None = None
) -> tuple[Path, ...]:
    """Write questions and labels into a folder, which is created if necessary: queries.jsonl,
    qrels.tsv (BEIR) or qrels.txt (TREC), and for the labels `by_llm` qrels-llm.tsv or
    qrels-llm.txt. Returns the paths. Raises InputError."""
    queries, ending = folder / "queries.jsonl", "tsv" if form == "beir" else "txt"
    asked = [{"_id": i, "text": text} for i, text in labels.queries.items()]
    lines = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in asked)
    written = {queries: lines, folder / f"qrels.{ending}": _qrels(labels.qrels, form)}
    if by_llm is not None:
        written[folder / f"qrels-llm.{ending}"] = _qrels(by_llm.qrels, form)
    for path, text in written.items():
        write_text(path, text, remedy=OTHER_FOLDER)
    return tuple(written)


def as_labels(queries: Mapping[str, str], qrels: Qrels) -> list[LabelRow]:
    """Question, chunk id and grade of every label of these queries. Two queries with the same text
    are one question, with the higher grade."""
    found: dict[tuple[str, str], int] = {}
    for i, text in queries.items():
        for chunk_id, grade in qrels.get(i, {}).items():
            pair = (text.strip(), chunk_id)
            found[pair] = max(grade, found.get(pair, grade))
    return [(text, chunk_id, grade) for (text, chunk_id), grade in found.items()]


def _from_csv(path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    names: list[str] = []
    text = ""
    for line, cells in rows(read_text(path), str(path)):
        place = f"{path}, line {line}"
        if not names:
            names = [name.strip().lower() for name in cells]
            text = next((name for name in TEXT if name in names), "")
            if not text:
                raise InputError(
                    f"{path} has no column with questions.",
                    remedy="Name the column text, query or question.",
                )
            continue
        check_cells(cells, names, place)
        row = {name: cell.strip() for name, cell in zip(names, cells, strict=False)}
        question = row.get(text)
        if not question:
            continue
        key = next((row[name] for name in ID if row.get(name)), query_id(question))
        if found.setdefault(key, question) != question:
            raise InputError(f"{place}: the id {key!r} appears twice.", remedy="Remove one.")
    return found


def _qrels(qrels: Qrels, form: Form) -> str:
    rows = [(i, chunk, grade) for i, grades in qrels.items() for chunk, grade in grades.items()]
    for name in (name for row in rows for name in row[:2]):
        bad = any(character.isspace() for character in name) if form == "trec" else "\t" in name
        if bad or "\n" in name:
            raise InputError(
                f"The id {name!r} contains white space, which the {form.upper()} format does not "
                "allow.",
                remedy="Export as BEIR." if form == "trec" else "Give it another id.",
            )
    if form == "trec":
        return "".join(f"{i} 0 {chunk} {grade}\n" for i, chunk, grade in rows)
    head = "query-id\tcorpus-id\tscore\n"
    return head + "".join(f"{i}\t{chunk}\t{grade}\n" for i, chunk, grade in rows)
