"""Labels, named query sets and asked questions of every collection, in the workspace's database.

A label grades a chunk for a question. It belongs to the question's text, so the same question in two sets has the same
labels. Nothing is overwritten. A person's last label for a pair counts. If it is taken back, the previous one counts
again. Source: docs/design.md#labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from json import dumps, loads
from typing import Any, Literal

from ragfilter.basics import database
from ragfilter.basics.database import TEXT, TIME, WHOLE
from ragfilter.errors import ConflictError, InputError, extra
from ragfilter.model import Chunk, User
from ragfilter.text.normalise import mend_characters
from ragfilter.text.titles import query_id

with extra("chroma"):
    import sqlalchemy as sa

Maker = Literal["human", "llm"]
GRADES: Mapping[int, str] = {0: "not relevant", 1: "partly relevant", 2: "relevant"}
"""The grades that people assign. Imported labels may have higher grades."""
LABELLED, ASKED = "labelled", "asked"
"""Sets that every collection has: the questions with labels, and the questions asked before."""
MAX_ASKED = 1000
LONGEST_NAME = 200
REPEATED = 16
"""The fewest characters that chunks cut with an overlap share; fewer may be a common beginning."""

_labels = database.table(
    "labels", at=TIME, who=TEXT, collection=TEXT, query=TEXT, chunk_id=TEXT, grade=WHOLE, made_by=TEXT
)
_sets = database.table("query_sets", collection=TEXT, name=TEXT, query_id=TEXT, text=TEXT)
_quotations = database.table(
    "label_places", label=WHOLE, quote=TEXT, source=TEXT, page=WHOLE, start=WHOLE, end=WHOLE, found=TEXT, score=WHOLE
)
_asked = database.table("asked_questions", at=TIME, collection=TEXT, text=TEXT)
_recorded = database.table("recorded_hits", collection=TEXT, query=TEXT, chunk_ids=TEXT)
_unrecorded = sa.Table("collections_without_history", sa.MetaData(), sa.Column("collection", TEXT, primary_key=True))
ORPHANS = _quotations.delete().where(_quotations.c.label.not_in(sa.select(_labels.c.id)))
"""Deletes the quotations of deleted labels."""
sa.Index("labels_of_query", _labels.c.collection, _labels.c.query, _labels.c.id)
sa.Index("label_places_of_label", _quotations.c.label)
sa.Index("query_sets_of_collection", _sets.c.collection, _sets.c.name, _sets.c.id)
sa.Index("recorded_in_collection", _recorded.c.collection)
sa.Index("asked_in_collection", _asked.c.collection, _asked.c.text)


@dataclass(frozen=True, slots=True)
class Label:
    """One labeller's grade for a question and a chunk; `at` is in UTC."""

    id: int
    at: datetime
    who: str
    collection: str
    query: str
    chunk_id: str
    grade: int
    made_by: Maker

    @property
    def words(self) -> str:
        """The label in words: ``ann: relevant (21 Mar 2025)``."""
        who = f"{self.who} (LLM)" if self.made_by == "llm" else self.who
        grade = GRADES.get(self.grade, f"grade {self.grade}")
        return f"{who}: {grade} ({self.at.astimezone():%d %b %Y})"


Found = Literal["", "exact", "normalised", "fuzzy", "ambiguous", "gone"]
"""How a label's chunks were found again after the chunking changed; empty if it never did."""
UNCOUNTED = "gone:"
"""A prefix for the id of a chunk whose text has moved or is gone, so its label does not count."""


@dataclass(frozen=True, slots=True)
class Quotation:
    """The text that a label judges, independent of chunking: the quoted text, its source and page, and its characters
    `start` to `end` in the source. -1 means unknown; without an end, the start is from `starts_of`. `score` rates a
    fuzzy match, in percent."""

    quote: str
    source: str = ""
    page: int = -1
    start: int = -1
    end: int = -1
    found: Found = ""
    score: int = 100


class LabelBook(database.Book):
    """The labels in the database at `url`."""

    called = "The book of labels"
    tables = (_labels, _sets, _asked, _recorded, _unrecorded, _quotations)

    def label(
        self,
        collection: str,
        query: str,
        chunk_ids: Sequence[str],
        grade: int,
        *,
        who: str,
        quotation: Quotation | None = None,
    ) -> tuple[Label, ...]:
        """Label all chunks alike, with the `quotation` that was judged. Replaces the labeller's earlier labels."""
        with self.writing() as connection:
            labels = tuple(
                _label(connection.execute(_labels.insert().values(row).returning(_labels)).one())
                for row in (_row(collection, query, i, grade, who, "human") for i in chunk_ids)
            )
            if quotation is not None:
                _insert(connection, [(label.id, quotation) for label in labels])
            return labels

    def add(
        self, collection: str, labels: Iterable[tuple[str, str, int]], *, who: str, made_by: Maker = "human"
    ) -> int:
        """Add many labels as (question, chunk id, grade), all or none. Returns how many."""
        rows = [_row(collection, *each, who, made_by) for each in labels]
        if rows:
            with self.writing() as connection:
                connection.execute(_labels.insert(), rows)
        return len(rows)

    def unquoted(self, collection: str) -> dict[int, str]:
        """The chunk ids of the labels without a quotation, by the label's id."""
        quoted = sa.select(_quotations.c.label)
        bare = sa.select(_labels.c.id, _labels.c.chunk_id).where(_labels.c.id.not_in(quoted))
        return {row.id: row.chunk_id for row in self._read(bare.filter_by(collection=collection))}

    def quote(self, collection: str, chunks: Mapping[str, Chunk]) -> None:
        """Add quotations to the labels without one, from all `chunks` of the collection, in the order of their text."""
        starts = starts_of(chunks.values())
        rows = [
            (i, replace(quotation_of(chunks[name]), start=starts[name]))
            for i, name in self.unquoted(collection).items()
            if name in chunks
        ]
        with self.writing() as connection:
            _insert(connection, rows)

    def quotations(self, collection: str) -> dict[int, Quotation]:
        """The quotations of the labels that have one, by the label's id."""
        labels = sa.select(_labels.c.id).where(_labels.c.collection == collection)
        rows = self._read(sa.select(_quotations).where(_quotations.c.label.in_(labels)))
        columns = [field.name for field in fields(Quotation)]
        return {row.label: Quotation(*(row._mapping[each] for each in columns)) for row in rows}

    def move(self, moved: Mapping[int, tuple[Quotation, Sequence[str]]]) -> None:
        """Give labels new quotations and chunks, all or none. Times stay, so the latest still counts. A label with
        several chunks becomes several labels."""
        with self.writing() as connection:
            for label_id, (quotation, chunk_ids) in sorted(moved.items()):
                removed = _labels.delete().where(_labels.c.id == label_id).returning(_labels)
                old = connection.execute(removed).mappings().first()
                connection.execute(_quotations.delete().where(_quotations.c.label == label_id))
                for chunk_id in chunk_ids if old else ():
                    row = {n: v for n, v in (old or {}).items() if n != "id"}
                    new = _labels.insert().values(row | {"chunk_id": chunk_id})
                    new_id = connection.execute(new.returning(_labels.c.id)).scalar_one()
                    _insert(connection, [(new_id, quotation)])

    def take_back(self, label_ids: Sequence[int]) -> None:
        """Remove labels; the labeller's previous labels count again. Repeating it does nothing."""
        with self.writing() as connection:
            connection.execute(_labels.delete().where(_labels.c.id.in_(label_ids)))
            connection.execute(_quotations.delete().where(_quotations.c.label.in_(label_ids)))

    def standing(self, collection: str, query: str | None = None) -> tuple[Label, ...]:
        """Every labeller's latest label for each pair, for one question or all, oldest first."""
        last: dict[tuple[str, str, str, str], Label] = {}
        for label in self.history(collection, query):
            pair = (label.query, label.chunk_id, label.who, label.made_by)
            last.pop(pair, None)
            last[pair] = label
        return tuple(last.values())

    def history(self, collection: str, query: str | None = None) -> list[Label]:
        """Every label, oldest first, including replaced ones: a chunk may hold several quotes, each with its label."""
        mine = {"collection": collection} | ({} if query is None else {"query": _plain(query)})
        # By time first, since a moved label has a new id.
        ordered = sa.select(_labels).filter_by(**mine).order_by(_labels.c.at, _labels.c.id)
        return [_label(row) for row in self._read(ordered)]

    def holds(self, collection: str) -> bool:
        """Whether anybody has labelled a chunk of the collection."""
        return bool(self._read(sa.select(_labels).filter_by(collection=collection).limit(1)))

    def version(self, collection: str, *, questions: bool = False) -> str:
        """A version that changes with the labels and, with `questions`, every question asked or put into a set."""
        counted = (
            sa.select(sa.literal(i), sa.func.count(), sa.func.max(table.c.id)).where(table.c.collection == collection)
            for i, table in enumerate((_labels, _sets, _asked) if questions else (_labels,))
        )
        rows = self._read(sa.union_all(*counted))
        return " ".join(f"{count}-{last or 0}" for _, count, last in sorted(rows))

    def put_set(
        self, collection: str, name: str, queries: Mapping[str, str], *, before: Mapping[str, str] | None = None
    ) -> None:
        """Store a query set (id → text) under a name, replacing an existing one. Raises InputError if the name is
        missing or reserved or there are no queries, and ConflictError if the set to be replaced is not `before`."""
        name = _plain(name)
        if not name or name in (LABELLED, ASKED) or len(name) > LONGEST_NAME:
            remedy = f"Choose a name other than {LABELLED} and {ASKED}, of at most {LONGEST_NAME} characters."
            raise InputError(f"A query set cannot be called {name[:80]!r}.", remedy=remedy)
        if not queries:
            raise InputError(f"The query set {name!r} would be empty.", remedy="Add questions.")
        rows = [
            {"collection": collection, "name": name, "query_id": mend_characters(i), "text": _plain(text)}
            for i, text in queries.items()
        ]
        with self.writing() as connection:
            old = _sets.delete().filter_by(collection=collection, name=name)
            replaced = connection.execute(old.returning(_sets.c.query_id, _sets.c.text))
            was = {row.query_id: row.text for row in replaced}
            if before is not None and was and was != before:
                message = f"Somebody else has changed the query set {name!r}. Nothing was saved."
                raise ConflictError(message, remedy="Save yours under another name, or reload the page to see theirs.")
            connection.execute(_sets.insert(), rows)

    def remove_set(self, collection: str, name: str) -> None:
        """Delete a query set. The labels of its questions stay."""
        self._write(_sets.delete().filter_by(collection=collection, name=name))

    def sets(self, collection: str) -> dict[str, int]:
        """The number of questions in every set, by name; the two built-in sets come last."""
        sizes = sa.select(_sets.c.name, sa.func.count()).filter_by(collection=collection)
        rows = self._read(sizes.group_by(_sets.c.name).order_by(_sets.c.name))
        built_in = {name: len(self.queries(collection, name)) for name in (LABELLED, ASKED)}
        return {row.name: row[1] for row in rows} | built_in

    def queries(self, collection: str, name: str) -> dict[str, str]:
        """The questions of a set by id; empty if there is no such set."""
        if name in (LABELLED, ASKED):
            table = _labels if name == LABELLED else _asked
            text = _labels.c.query if name == LABELLED else _asked.c.text
            texts = sa.select(text).filter_by(collection=collection).group_by(text)
            rows = self._read(texts.order_by(sa.func.min(table.c.id)))
            return {query_id(each): each for (each,) in rows}
        rows = sa.select(_sets).filter_by(collection=collection, name=name)
        return {row.query_id: row.text for row in self._read(rows.order_by(_sets.c.id))}

    def record(self, collection: str, hits: Mapping[str, Sequence[str]]) -> None:
        """Store the chunks retrieved for questions according to a trace, replacing earlier ones."""
        with self.writing() as connection:
            for query, ids in hits.items():
                row = {"collection": collection, "query": _plain(query)}
                connection.execute(_recorded.delete().filter_by(**row))
                connection.execute(_recorded.insert().values(**row, chunk_ids=dumps(list(ids))))

    def recorded(self, collection: str, query: str) -> tuple[str, ...]:
        """The chunks retrieved for a question according to a trace; empty without a trace."""
        recorded = sa.select(_recorded).filter_by(collection=collection, query=_plain(query))
        return tuple(i for row in self._read(recorded) for i in loads(row.chunk_ids))

    def remember(self, collection: str, question: str) -> None:
        """Add a question to the history, unless it is off, without duplicates. Only the last thousand are kept."""
        if not self.records_history(collection):
            return
        row = {"collection": collection, "text": _plain(question)}
        oldest = sa.select(_asked.c.id).filter_by(collection=collection)
        oldest = oldest.order_by(_asked.c.id.desc()).offset(MAX_ASKED)
        with self.writing() as connection:
            connection.execute(_asked.delete().filter_by(**row))
            connection.execute(_asked.insert().values(at=datetime.now(UTC), **row))
            ids = connection.execute(oldest).scalars().all()
            connection.execute(_asked.delete().where(_asked.c.id.in_(ids)))

    def records_history(self, collection: str) -> bool:
        """Whether asked questions are stored."""
        return not self._read(sa.select(_unrecorded).filter_by(collection=collection))

    def record_history(self, collection: str, on: bool) -> None:
        """Start storing asked questions, or delete them all and stop storing."""
        with self.writing() as connection:
            connection.execute(_unrecorded.delete().filter_by(collection=collection))
            if not on:
                connection.execute(_unrecorded.insert().values(collection=collection))
                connection.execute(_asked.delete().filter_by(collection=collection))


def quotation_of(chunk: Chunk) -> Quotation:
    """The whole text of a chunk as the quotation of its labels."""
    page = -1 if chunk.page is None else chunk.page
    return Quotation(mend_characters(chunk.text), mend_characters(chunk.source), page)


def starts_of(chunks: Iterable[Chunk]) -> dict[str, int]:
    """About where each chunk begins in its source: after the chunks before it, less the text that it repeats."""
    starts: dict[str, int] = {}
    before: dict[str, tuple[int, str]] = {}
    for chunk in chunks:
        start, text = before.get(chunk.source, (0, ""))
        starts[chunk.id] = start + len(text) - _repeated(text, chunk.text)
        before[chunk.source] = starts[chunk.id], chunk.text
    return starts


def _repeated(text: str, following: str) -> int:
    """How many characters at the end of `text` the following one begins with, short of all its own."""
    first = following[:REPEATED]
    at = text.find(first, max(len(text) - len(following) + 1, 0)) if first else -1
    while at >= 0 and not following.startswith(text[at:]):
        at = text.find(first, at + 1)
    return len(text) - at if at >= 0 else 0


def selected_quotation(chunk: Chunk, selected: str) -> Quotation | None:
    """The quotation of the text `selected` in a chunk, whatever its white space; None if the chunk lacks it."""
    words = mend_characters(selected).split()
    match = re.search(r"\s+".join(map(re.escape, words)), mend_characters(chunk.text)) if words else None
    return replace(quotation_of(chunk), quote=match.group()) if match else None


def visible_labels(labels: Iterable[Label], catalogue: Mapping[str, Chunk], user: User) -> tuple[Label, ...]:
    """The labels of chunks that `user` can see. Only users who see everything get labels of deleted
    chunks, since it is unknown who could see these."""
    return tuple(
        each
        for each in labels
        if user.unrestricted or (each.chunk_id in catalogue and user.sees(catalogue[each.chunk_id]))
    )


def qrels_of(labels: Iterable[Label], *, llm: bool = False) -> dict[str, dict[str, int]]:
    """Question → chunk id → grade. If several people labelled a pair, the last label counts. With
    `llm`, an LLM's label counts if no person has labelled the pair; otherwise it is ignored."""
    qrels: dict[str, dict[str, int]] = {}
    ordered = sorted(labels, key=lambda label: (label.made_by == "human", label.at, label.id))
    for label in ordered:
        if label.made_by == "human" or llm:
            qrels.setdefault(label.query, {})[label.chunk_id] = label.grade
    return qrels


def conflicts(labels: Iterable[Label]) -> tuple[tuple[Label, ...], ...]:
    """The pairs on which people disagree, each with all its labels."""
    pairs: dict[tuple[str, str], list[Label]] = {}
    for label in labels:
        if label.made_by == "human":
            pairs.setdefault((label.query, label.chunk_id), []).append(label)
    return tuple(tuple(each) for each in pairs.values() if len({one.grade for one in each}) > 1)


def _plain(text: str) -> str:
    return mend_characters(text).strip()


def _row(collection: str, query: str, chunk_id: str, grade: int, who: str, made_by: Maker) -> dict[str, Any]:
    return {
        "at": datetime.now(UTC),
        "who": mend_characters(who),
        "collection": collection,
        "query": _plain(query),
        "chunk_id": chunk_id,
        "grade": grade,
        "made_by": made_by,
    }


def _label(row: sa.Row[Any]) -> Label:
    values = dict(row._mapping)
    return Label(at=database.in_utc(values.pop("at")), **values)


def _insert(connection: sa.Connection, quotations: Sequence[tuple[int, Quotation]]) -> None:
    if quotations:
        rows = [{"label": label_id, **asdict(each)} for label_id, each in quotations]
        connection.execute(_quotations.insert(), rows)
