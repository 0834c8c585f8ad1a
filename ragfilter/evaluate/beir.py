"""Labelled queries: BEIR's `queries.jsonl` (`_id`, `text`) and the qrels of BEIR, TREC and NTCIR.

Source: docs/design.md#formats. A line of qrels has query, chunk and grade, or TREC's four columns,
of which the second is ignored. NTCIR writes a grade of 2 as L2. A grade of 1 or more means
relevant, 0 means judged and not relevant. TREC's negative grades (junk, spam) are read as 0.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ragfilter.basics.files import read_lines
from ragfilter.errors import InputError
from ragfilter.text.normalise import loads
from ragfilter.text.numbers import counted
from ragfilter.text.titles import query_id as id_of

log = logging.getLogger(__name__)

TEXT = ("text", "query", "question")
ID = ("_id", "id", "query_id", "query-id")
"""The names of the fields, or columns, with a query's text and id; the first one counts."""

HIGHEST = 2**31 - 1
"""The highest label, which every database can hold."""
_NTCIR = re.compile(r"^L(?=\d+$)")
_REMARK = re.compile(r"\s+#")

Tell = Callable[[str], object]
Queries = Mapping[str, str]
Qrels = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Labels:
    """`queries`: query id → text; `qrels`: query id → chunk id → label."""

    queries: Queries
    qrels: Qrels

    def __repr__(self) -> str:
        n = sum(map(len, self.qrels.values()))
        return f"<Labels: {counted(len(self.queries), 'query')}, {counted(n, 'label')}>"

    @property
    def labelled(self) -> Queries:
        """The queries that have labels."""
        return {i: text for i, text in self.queries.items() if i in self.qrels}

    @property
    def answered(self) -> Queries:
        """The queries for which a chunk is labelled relevant."""
        relevant = {i for i, labels in self.qrels.items() if any(g > 0 for g in labels.values())}
        return {i: text for i, text in self.queries.items() if i in relevant}

    def first(self, limit: int | None) -> Labels:
        """The first `limit` queries that have labels, or if none has, of all; everything if it is
        None."""
        if limit is None:
            return self
        queries = dict(islice((self.labelled or self.queries).items(), limit))
        return Labels(queries, {i: self.qrels[i] for i in queries if i in self.qrels})

    def check_relevant(self) -> None:
        """Raise InputError if nothing is labelled relevant, since no figure would mean anything."""
        if not self.answered:
            raise InputError(
                "No chunk is labelled as relevant, so there is nothing to measure.",
                remedy="Label at least one chunk as relevant, with 1 or more.",
            )


def known(
    texts: Queries, labels: Qrels, queries: Path, qrels: Path, *, tell: Tell = log.warning
) -> Qrels:
    """The labels of the queries in `texts`. Others are left out, with a warning to `tell` naming
    both files. Raises InputError if none are left."""
    strangers = [i for i in labels if i not in texts]
    if strangers:
        tell(
            f"{qrels} has labels for {counted(len(strangers), 'query')} not in {queries}, such as "
            f"{strangers[0]!r}; they are left out"
        )
    found = {i: labels[i] for i in texts if i in labels}
    if not found:
        raise InputError(
            f"None of the queries in {queries} has a label in {qrels}.",
            remedy="Check that both files use the same query ids.",
        )
    return found


def read_queries(path: Path) -> dict[str, str]:
    """Query id → text, in file order; a query without an id gets one made from its text. Raises
    InputError."""
    texts: dict[str, str] = {}
    for number, line in _lines(path):
        where = f"{path}, line {number}"
        try:
            record = loads(line)
        except (ValueError, RecursionError) as error:
            reason = getattr(error, "msg", None) or str(error)
            raise InputError(
                f"{where} is not valid JSON: {reason}.", remedy="Write one JSON object per line."
            ) from None
        query_id, text = _fields(record, where)
        if texts.setdefault(query_id, text) != text:
            raise InputError(f"{where}: the id {query_id!r} appears twice.", remedy="Remove one.")
    if not texts:
        raise InputError(
            f"{path} contains no queries.", remedy='Write {"_id": …, "text": …} per line.'
        )
    return texts


def read_qrels(path: Path, *, tell: Tell = log.warning) -> dict[str, dict[str, int]]:
    """Query id → chunk id → label; the header is optional. A repeated label counts once, and a line
    that begins with # is skipped, both with a warning to `tell`. A remark after the columns, which
    begins with # too, is not read. Raises InputError, also if a chunk has two different labels for
    a query. If TREC's second column differs (a subtopic, for example), the higher one counts."""
    labels: dict[str, dict[str, int]] = {}
    seconds: dict[tuple[str, str], str] = {}
    repeated: list[int] = []
    differ = False
    comments: list[int] = []
    is_first = True
    for number, line in _lines(path):
        where = f"{path}, line {number}"
        if line.lstrip().startswith("#"):
            comments.append(number)
            continue
        cells = _cells(line)
        is_header = is_first and len(cells) > 2 and not _is_number(cells[-1])
        is_first = False
        if is_header:
            continue
        if len(cells) not in (3, 4):
            raise InputError(
                f"{where} has {counted(len(cells), 'column')}.",
                remedy="Write query-id, corpus-id and score, or TREC's four columns.",
            )
        query_id, second, chunk_id, score = cells if len(cells) == 4 else (cells[0], "", *cells[1:])
        if not (query_id and chunk_id):
            raise InputError(f"{where} has no id.", remedy="Write one between the tabs.")
        label = _grade(score)
        if label is None or label > HIGHEST:
            wrong = "not a whole number" if label is None else "too high"
            raise InputError(
                f"{where}: the score {score[:80]!r} is {wrong}.",
                remedy="Use 0 for not relevant, 1 or more for relevant.",
            )
        label = max(label, 0)
        known = labels.setdefault(query_id, {})
        before = known.get(chunk_id, label)
        if before != label and seconds[query_id, chunk_id] == second:
            raise InputError(
                f"{where}: {chunk_id!r} already has the label {before} for {query_id!r}.",
                remedy="Keep one of the two lines.",
            )
        if chunk_id in known:
            repeated.append(number)
            differ = differ or before != label
        known[chunk_id] = max(label, before)
        seconds[query_id, chunk_id] = second
    if repeated:
        tell(
            f"{path} repeats {counted(len(repeated), 'label')}, the first in line {repeated[0]}; "
            f"each counts once{', with its highest score' if differ else ''}"
        )
    if comments:
        tell(
            f"{path} has {counted(len(comments), 'line')} beginning with #, the first in line "
            f"{comments[0]}; they are skipped as comments"
        )
    return labels


def _cells(line: str) -> list[str]:
    """The columns of a line, without a remark after them. A # in front of the last column is part
    of an id."""
    cells = _columns(line)
    if len(cells) in (3, 4) and _is_number(cells[-1]):
        return cells
    before = (_columns(line[: remark.start()]) for remark in _REMARK.finditer(line))
    return next((columns for columns in before if len(columns) in (3, 4)), cells)


def _columns(line: str) -> list[str]:
    """What white space separates in a line; if tabs alone separate, ids may hold spaces."""
    spaced = line.split()
    tabbed = [cell.strip() for cell in line.split("\t")]
    # A last cell of two words says that both tabs and spaces separate, as does TREC's usual column.
    both = len(tabbed[-1].split()) != 1 or (len(spaced) == 4 and spaced[1] in ("0", "Q0"))
    return spaced if both or len(tabbed) not in (3, 4) else tabbed


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The non-empty lines with their 1-based numbers."""
    for number, line in enumerate(read_lines(path), start=1):
        if line.strip():
            yield number, line


def _fields(record: object, where: str) -> tuple[str, str]:
    if not isinstance(record, dict):
        raise InputError(f"{where} is not a JSON object.", remedy='Write {"_id": …, "text": …}.')
    query_id, text = (
        next((record[name] for name in names if record.get(name) is not None), None)
        for names in (ID, TEXT)
    )
    if text is not None and not isinstance(text, str):
        raise InputError(f"{where}: the text is not a string.", remedy="Write it in quotes.")
    if not text or not text.strip():
        raise InputError(f"{where} has no text.", remedy="Give every query a text.")
    if query_id is None or query_id == "":
        return id_of(text.strip()), text.strip()
    if isinstance(query_id, int) and not isinstance(query_id, bool):
        query_id = str(query_id)
    if not isinstance(query_id, str) or not query_id.strip():
        raise InputError(f"{where}: the _id is not a string.", remedy="Write it in quotes.")
    return query_id.strip(), text


def _grade(text: str) -> int | None:
    """A grade as a whole number: 2, 2.0, or NTCIR's L2."""
    try:
        number = float(_NTCIR.sub("", text))
    except ValueError:
        return None
    return int(number) if number.is_integer() else None


def _is_number(text: str) -> bool:
    try:
        float(_NTCIR.sub("", text))
    except ValueError:
        return False
    return True
