"""Queries and labels in files: BEIR's `queries.jsonl` (`_id`, `text`), CSV or one question per
line; the qrels of BEIR, TREC and NTCIR; spans; and traces with the retrieved documents.

Source: docs/design.md#formats. A line of qrels has query, chunk and grade, or TREC's four columns, of which the second
is ignored. NTCIR writes a grade of 2 as L2. A grade of 1 or more means relevant, 0 means judged but not relevant.
TREC's negative grades (junk, spam) are read as 0."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ragfilter.basics.files import by_column, json_objects, read_lines, read_text, rows, write_text
from ragfilter.errors import InputError
from ragfilter.evaluate.labelled_queries import Labels, Qrels, Queries
from ragfilter.text.normalise import loads_or_none, mend_characters
from ragfilter.text.numbers import counted, first_of
from ragfilter.text.titles import query_id as id_of

if TYPE_CHECKING:
    from ragfilter.stores.label_book import Label, Quotation

log = logging.getLogger(__name__)

TEXT = ("text", "query", "question")
ID = ("_id", "id", "query_id", "query-id")
"""Names of the fields or columns with a query's text and its id; the first one present counts."""

MAX_NAMED = 5
HIGHEST = 2**31 - 1
"""The highest label, which every database can hold."""
_NTCIR = re.compile(r"^L(?=\d+$)")
_DIGIT = re.compile(r"\d")
_REMARK = re.compile(r"\s+#")

Tell = Callable[[str], object]
Reader = Callable[[Path], Iterator[tuple[str, str, str]]]
"""Yields each question's place in the file, its id (empty without one) and its text."""


def known(texts: Queries, labels: Qrels, queries: Path, qrels: Path, *, tell: Tell = log.warning) -> Qrels:
    """The labels of the queries in `texts`. Other labels are left out, with a warning to `tell`
    that names both files. Raises InputError if none are left."""
    strangers = [i for i in labels if i not in texts]
    if strangers:
        tell(
            f"{qrels} has labels for {counted(len(strangers), 'query')} not in {queries}, such as "
            f"{strangers[0]!r}; they are left out"
        )
    shared = {i: labels[i] for i in texts if i in labels}
    if not shared:
        raise InputError(
            f"None of the queries in {queries} has a label in {qrels}.",
            remedy="Check that both files use the same query ids.",
        )
    return shared


def read_qrels(path: Path, *, tell: Tell = log.warning) -> dict[str, dict[str, int]]:
    """Query id → chunk id → label. A header of names without digits is optional. A repeated label counts once, with a
    warning to `tell`. Lines that begin with # and remarks after the columns are skipped. Raises InputError, also if a
    chunk has two labels for a query; if TREC's second column differs (as for subtopics), the higher label counts."""
    labels: dict[str, dict[str, int]] = {}
    seconds: dict[tuple[str, str], str] = {}
    repeated: list[int] = []
    header = last_name = ""
    for place, line in _lines(path):
        where = f"{path}, line {place}"
        if line.lstrip().startswith("#"):
            continue
        cells = _cells(line)
        has_names = len(cells) > 2 and not _DIGIT.search(cells[0] + cells[-1])
        if has_names and not header and not labels:
            header, last_name = where, cells[-1]
            continue
        if len(cells) not in (3, 4):
            raise InputError(
                f"{where} has {counted(len(cells), 'column')}.",
                remedy="Write query-id, corpus-id and score, or TREC's four columns.",
            )
        query_id, second, chunk_id, score = cells if len(cells) == 4 else (cells[0], "", *cells[1:])
        if not (query_id and chunk_id):
            raise InputError(f"{where} has no id.", remedy="Write one between the tabs.")
        number = _number(score)
        label = int(number) if number is not None and number.is_integer() else None
        if label is None or label > HIGHEST:
            wrong = "not a whole number" if label is None else "too high"
            raise _no_grade(where, score, wrong)
        label = max(label, 0)
        known = labels.setdefault(query_id, {})
        before = known.get(chunk_id, label)
        if before != label and seconds[query_id, chunk_id] == second:
            raise InputError(
                f"{where}: {chunk_id!r} already has the label {before} for {query_id!r}.",
                remedy="Keep one of the two lines.",
            )
        if chunk_id in known:
            repeated.append(place)
        known[chunk_id] = max(label, before)
        seconds[query_id, chunk_id] = second
    if header and not labels and last_name != "score":
        raise _no_grade(header, last_name, "not a whole number")
    if repeated:
        tell(
            f"{path} repeats {counted(len(repeated), 'label')}, the first in line {repeated[0]}; "
            "each counts once, with its highest score"
        )
    return labels


def _no_grade(where: str, score: str, wrong: str) -> InputError:
    return InputError(
        f"{where}: the score {score[:80]!r} is {wrong}.", remedy="Use 0 for not relevant, 1 or more for relevant."
    )


def _cells(line: str) -> list[str]:
    """The columns of a line, without a remark after them. A # in front of the last column is part of an id."""
    cells = _columns(line)
    if len(cells) in (3, 4) and _number(cells[-1]) is not None:
        return cells
    before = (_columns(line[: remark.start()]) for remark in _REMARK.finditer(line))
    return next((columns for columns in before if len(columns) in (3, 4)), cells)


def _columns(line: str) -> list[str]:
    """Split a line at white space or, if tabs alone separate and ids contain spaces, at tabs."""
    spaced = line.split()
    tabbed = [cell.strip() for cell in line.split("\t")]
    # Both separate if the last cell has two words, or if the second column is TREC's usual one.
    both = len(tabbed[-1].split()) != 1 or (len(spaced) == 4 and spaced[1] in ("0", "Q0"))
    return spaced if both or len(tabbed) not in (3, 4) else tabbed


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The non-empty lines with their 1-based numbers."""
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip():
            yield number, line


def _from_jsonl(path: Path) -> Iterator[tuple[str, str, str]]:
    for where, record in json_objects(path, 'Write {"_id": …, "text": …} per line.'):
        query_id, text = (
            next((record[name] for name in names if record.get(name) is not None), None) for names in (ID, TEXT)
        )
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"{where} has no text.", remedy="Give every query a text, in quotes.")
        if isinstance(query_id, bool) or not isinstance(query_id, str | int | None):
            raise InputError(f"{where}: the _id is not a string.", remedy="Write it in quotes.")
        yield where, "" if query_id is None else str(query_id).strip(), text.strip()


def _number(text: str) -> float | None:
    """A grade as a number: 2, 2.0, or NTCIR's L2."""
    try:
        return float(_NTCIR.sub("", text))
    except ValueError:
        return None


LabelRow = tuple[str, str, int]
"""A label: question, chunk id and grade."""
Form = Literal["beir", "trec"]
OTHER_FOLDER = "Name another folder."


def read_labels(queries: str | Path, qrels: str | Path) -> Labels:
    """Labelled queries, with texts and labels by id. Queries are in BEIR format, CSV, or one per
    line in a .txt file; qrels are in BEIR or TREC format. Labels of other queries are left
    out, with a warning. Raises InputError with file and line, also if no query has a label."""
    queries, qrels = Path(queries), Path(qrels)
    texts = read_questions(queries)
    return Labels(texts, known(texts, read_qrels(qrels), queries, qrels))


def read_import(
    queries: Path, qrels: Path | None, *, tell: Tell = log.warning
) -> tuple[dict[str, str], list[LabelRow]]:
    """Read questions in any of these formats with their labels: none if there is no qrels file, or if it is empty.
    Queries with the same text become one question, and the higher grade counts. Notes go to `tell`. Raises InputError
    with file and line."""
    questions = read_questions(queries, tell=tell)
    labels: Qrels = {} if qrels is None else read_qrels(qrels, tell=tell)
    if qrels is not None and labels:
        labels = known(questions, labels, queries, qrels, tell=tell)
    grades: dict[tuple[str, str], int] = {}
    for i, text in questions.items():
        for chunk_id, grade in labels.get(i, {}).items():
            pair = (text.strip(), chunk_id)
            grades[pair] = max(grade, grades.get(pair, grade))
    return questions, [(text, chunk_id, grade) for (text, chunk_id), grade in grades.items()]


def read_questions(path: Path, *, tell: Tell = log.warning) -> dict[str, str]:
    """Query id → question, in file order. The format depends on the file's suffix: .csv with a column text (or query,
    or question) and optionally one with ids; .txt with one question per line; otherwise BEIR's JSONL with fields of the
    same names. A question without an id gets one made from its text. Notes on other columns go to `tell`. Raises
    InputError."""
    readers: dict[str, Reader] = {".csv": partial(_from_csv, tell=tell), ".txt": _from_text}
    questions: dict[str, str] = {}
    for where, given_id, text in readers.get(path.suffix.lower(), _from_jsonl)(path):
        query_id = given_id or id_of(text)
        if questions.setdefault(query_id, text) != text:
            raise InputError(f"{where}: the id {query_id!r} appears twice.", remedy="Remove one.")
    if not questions:
        raise InputError(f"{path} contains no questions.", remedy="Write one question per line.")
    return questions


def write(labels: Labels, folder: Path, form: Form, *, by_llm: Labels | None = None) -> tuple[Path, ...]:
    """Write questions and labels to a folder, which is created if necessary: queries.jsonl,
    qrels.tsv (BEIR) or qrels.txt (TREC), and qrels-llm.tsv or qrels-llm.txt for the labels
    `by_llm`. Returns the paths. Raises InputError."""
    queries, ending = folder / "queries.jsonl", "tsv" if form == "beir" else "txt"
    query_rows = [{"_id": i, "text": text} for i, text in labels.queries.items()]
    lines = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in query_rows)
    written = {queries: lines, folder / f"qrels.{ending}": _qrels(labels.qrels, form)}
    if by_llm is not None:
        written[folder / f"qrels-llm.{ending}"] = _qrels(by_llm.qrels, form)
    for path, text in written.items():
        write_text(path, text, remedy=OTHER_FOLDER)
    return tuple(written)


def _from_text(path: Path) -> Iterator[tuple[str, str, str]]:
    return ((f"{path}, line {number}", "", line.strip()) for number, line in _lines(path))


def _from_csv(path: Path, *, tell: Tell) -> Iterator[tuple[str, str, str]]:
    numbered = rows(read_text(path), str(path))
    names = [name.strip().lower() for name in next(numbered, (1, [TEXT[0]]))[1]]
    text = next((name for name in TEXT if name in names), "")
    if not text:
        raise InputError(f"{path} has no column with questions.", remedy="Name the column text, query or question.")
    query_id = next((name for name in ID if name in names), "")
    if others := [name for name in names if name not in ("", text, query_id)]:
        tell(f"{path}: columns left out: {first_of(others, MAX_NAMED)}")
    for line, cells in numbered:
        place = f"{path}, line {line}"
        row = by_column(cells, names, place)
        if text in row:
            yield place, row.get(query_id, "").strip(), row[text].strip()


def _qrels(qrels: Qrels, form: Form) -> str:
    rows = [(i, chunk, grade) for i, grades in qrels.items() for chunk, grade in grades.items()]
    for name in (name for row in rows for name in row[:2]):
        bad = any(character.isspace() for character in name) if form == "trec" else "\t" in name
        if bad or "\n" in name:
            raise InputError(
                f"The id {name!r} contains white space, which the {form.upper()} format does not allow.",
                remedy="Export as BEIR." if form == "trec" else "Give it another id.",
            )
    if form == "trec":
        return "".join(f"{i} 0 {chunk} {grade}\n" for i, chunk, grade in rows)
    head = "query-id\tcorpus-id\tscore\n"
    return head + "".join(f"{i}\t{chunk}\t{grade}\n" for i, chunk, grade in rows)


Span = tuple[str, int, "Quotation"]
"""A question, a grade and the quotation that it judges."""
RELEVANT = 2
SPAN = 'Write {"question": "…", "source": "…", "quote": "…"}, or start and end.'


def read_spans(path: Path, sources: Path | None = None) -> list[Span]:
    """Read spans from JSON lines with `question`, `source`, and `start` and `end` or `quote`, as in public chunking
    benchmarks; `grade` (default: 2) and `page` are optional. `sources` is the folder of the texts in which `start` and
    `end` count characters from 0; a quote does not need it. Raises InputError with file and line."""
    spans = [_span(row, where, sources) for where, row in json_objects(path, SPAN)]
    if not spans:
        raise InputError(f"{path} holds no labels.", remedy="Name another file.")
    return spans


def _span(row: Mapping[str, Any], where: str, sources: Path | None) -> Span:
    from ragfilter.stores.label_book import Quotation

    try:
        question, source = mend_characters(row["question"]).strip(), mend_characters(row.get("source", ""))
        start, end = int(row.get("start", -1)), int(row.get("end", -1))
        page, grade = int(row.get("page", -1)), int(row.get("grade", RELEVANT))
        quote = mend_characters(row.get("quote", ""))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        raise InputError(f"{where}: this is not a span's label.", remedy=SPAN) from None
    if not quote and sources is not None and 0 <= start < end:
        file = (sources / source).resolve()
        if not file.is_relative_to(sources.resolve()):
            raise InputError(
                f"{where}: the source {source!r} is outside {sources}.", remedy="Name a file in that folder."
            )
        quote = read_text(file)[start:end]
    if not quote.strip() or not question:
        raise InputError(
            f"{where}: the quote or the question is missing.",
            remedy="Add quote, or start and end with --sources FOLDER.",
        )
    return question, grade, Quotation(quote, source, page, start, end)


def span_lines(labels: Mapping[int, Label], places: Mapping[int, Quotation]) -> Iterator[str]:
    """Yield a line for the latest label of each question and quote. Known places tell equal quotes apart."""
    last: dict[tuple[str, str, str, int], tuple[Label, Quotation]] = {}
    for label_id, label in labels.items():
        if place := places.get(label_id):
            quoted = (label.query, place.source, place.quote, place.start if place.end >= 0 else -1)
            last.pop(quoted, None)
            last[quoted] = label, place
    for label, place in last.values():
        known = {"page": place.page} if place.page >= 0 else {}
        known |= {"start": place.start, "end": place.end} if place.end >= 0 else {}
        row = {"question": label.query, "source": place.source, "quote": place.quote, "grade": label.grade, **known}
        yield json.dumps(row, ensure_ascii=False) + "\n"


TRACE = "Write one span a line, or one message of OTLP, as JSON."
DOCUMENT = re.compile(r"retrieval\.documents\.(\d{1,9})\.document\.(id|content)")
ASKED_IN = ("query", "question", "input", "query_str")
"""Names of the question in an input that is JSON."""


class RecordedDocument(NamedTuple):
    """A retrieved chunk, as in the span; fields that the span lacks are empty."""

    id: str = ""
    content: str = ""


Recordings = dict[str, list[RecordedDocument]]
"""Question → retrieved documents, best first."""


def read_traces(path: Path) -> Recordings:
    """Read the questions in a file's retriever spans; the last of repeated ones counts. Raises InputError for none."""
    recordings: Recordings = {}
    for where, line in json_objects(path, TRACE):
        try:
            spans = list(_spans(line))
        except (KeyError, TypeError, AttributeError, RecursionError):
            raise InputError(f"{where}: this is not an OTLP message.", remedy=TRACE) from None
        for span in spans:
            query = _question(span.get("input.value"))
            by_place: dict[int, dict[str, str]] = {}
            for key, value in span.items():
                if match := DOCUMENT.fullmatch(key):
                    by_place.setdefault(int(match[1]), {})[match[2]] = mend_characters(str(value))
            if query and by_place:
                recordings[query] = [RecordedDocument(**each) for _, each in sorted(by_place.items())]
    if not recordings:
        raise InputError(
            f"{path} has no span with a question (input.value) and retrieval.documents.",
            remedy="Export retriever spans, with their texts.",
        )
    return recordings


def matched(documents: list[RecordedDocument], texts: Mapping[str, str]) -> list[str]:
    """The chunk ids of these documents, found by id or text, others left out. `texts`: whole text → chunk id."""
    ids = set(texts.values())
    ids_in_order = (d.id if d.id in ids else texts.get(d.content.strip(), "") for d in documents)
    return list(dict.fromkeys(filter(None, ids_in_order)))


def _spans(line: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The attributes of every span of a line, by their full names."""
    message = line.get("resourceSpans")
    if not isinstance(message, list):
        yield {key.removeprefix("attributes."): value for key, value in _flat(line)}
        return
    for span in (s for r in message for scope in r["scopeSpans"] for s in scope["spans"]):
        # A value is an object whose only key is its kind.
        yield {each["key"]: next(iter(each["value"].values()), "") for each in span.get("attributes", ())}


def _flat(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Every nested value with its dotted path."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for name, inside in pairs:
            yield from _flat(inside, f"{at}.{name}" if at else str(name))
    else:
        yield at, value


def _question(value: Any) -> str:
    """The question in an input, which may be JSON with the question in it."""
    text = mend_characters(str(value or "")).strip()
    inside = loads_or_none(text)
    candidates = [inside.get(name) for name in ASKED_IN] if isinstance(inside, dict) else []
    return next((each.strip() for each in candidates if isinstance(each, str)), text)
