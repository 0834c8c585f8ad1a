"""Labels, named query sets and asked questions of every collection, in the workspace's database.

A label judges a question and a chunk, and belongs to the text of the question: the same question in
two sets has the same labels. Nothing is overwritten. The last label of a person for a pair counts.
If it is taken back, the one before it counts again. Source: docs/design.md#labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from json import dumps, loads
from typing import Any, Literal

from ragfilter.basics import database
from ragfilter.basics.database import TEXT, TIME, WHOLE
from ragfilter.errors import ConflictError, InputError, extra
from ragfilter.model import Chunk, User
from ragfilter.stores.base import pages
from ragfilter.text.normalise import whole
from ragfilter.text.titles import query_id

with extra("chroma"):
    import sqlalchemy as sa

Maker = Literal["human", "llm"]
GRADES: Mapping[int, str] = {0: "not relevant", 1: "partly relevant", 2: "relevant"}
"""The grades that people assign. Imported labels may have higher grades."""
LABELLED, ASKED = "labelled", "asked"
"""Sets that every collection has: the questions with labels, and those asked before."""
MAX_ASKED = 1000
LONGEST_NAME = 200
BATCH = 500

_labels = database.table(
    "labels",
    at=TIME,
    who=TEXT,
    collection=TEXT,
    query=TEXT,
    chunk_id=TEXT,
    grade=WHOLE,
    made_by=TEXT,
)
_sets = database.table("query_sets", collection=TEXT, name=TEXT, query_id=TEXT, text=TEXT)
_places = database.table(
    "label_places",
    label=WHOLE,
    quote=TEXT,
    source=TEXT,
    page=WHOLE,
    start=WHOLE,
    end=WHOLE,
    found=TEXT,
    score=WHOLE,
)
_asked = database.table("asked_questions", at=TIME, collection=TEXT, text=TEXT)
_recorded = database.table("recorded_hits", collection=TEXT, query=TEXT, chunk_ids=TEXT)
_unrecorded = sa.Table(
    "collections_without_history",
    sa.MetaData(),
    sa.Column("collection", sa.Text, primary_key=True),
)
_INDEXES = (
    sa.Index("labels_of_query", _labels.c.collection, _labels.c.query, _labels.c.id),
    sa.Index("label_places_of_label", _places.c.label),
    sa.Index("query_sets_of_collection", _sets.c.collection, _sets.c.name, _sets.c.id),
    sa.Index("recorded_in_collection", _recorded.c.collection),
    sa.Index("asked_in_collection", _asked.c.collection, _asked.c.text),
)


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
    def told(self) -> str:
        """Who said what, and when: ``ann: relevant (21 Mar 2025)``."""
        who = f"{self.who} (LLM)" if self.made_by == "llm" else self.who
        grade = GRADES.get(self.grade, f"grade {self.grade}")
        return f"{who}: {grade} ({self.at.astimezone():%d %b %Y})"


Found = Literal["", "exact", "normalised", "fuzzy", "ambiguous", "gone"]
"""How the chunks of a label were found again after the chunking changed; empty: it never did."""
UNCOUNTED = "gone:"
"""Before the id of a chunk whose text is elsewhere or nowhere, so that its label does not count."""


@dataclass(frozen=True, slots=True)
class Quoted:
    """What a label judges, whatever the chunks are: the quoted text, its source and page, and its
    characters `start` to `end` in the source. -1 for what is not known. `score` rates a fuzzy
    match, in percent."""

    quote: str
    source: str = ""
    page: int = -1
    start: int = -1
    end: int = -1
    found: Found = ""
    score: int = 100


class LabelBook(database.Book):
    """The labels in the database at `url`."""

    what = "labels"
    called = "The book of labels"
    tables = (_labels, _sets, _asked, _recorded, _unrecorded, _places)
    indexes = _INDEXES

    def mark(
        self,
        collection: str,
        query: str,
        chunk_ids: Sequence[str],
        grade: int,
        *,
        who: str,
        place: Quoted | None = None,
    ) -> tuple[Label, ...]:
        """Give chunks the same label, all or none, and the `place` that it judges in them. It
        replaces the labeller's earlier labels."""
        with self._writing() as connection:
            labels = tuple(
                _label(connection.execute(_labels.insert().values(row).returning(_labels)).one())
                for row in (_row(collection, query, i, grade, who, "human") for i in chunk_ids)
            )
            if place is not None:
                rows = [_place_row(label.id, place) for label in labels]
                connection.execute(_places.insert(), rows)
            return labels

    def add(
        self,
        collection: str,
        labels: Iterable[tuple[str, str, int]],
        *,
        who: str,
        made_by: Maker = "human",
    ) -> int:
        """Add many labels as (question, chunk id, grade), all or none. Returns how many."""
        rows = [_row(collection, *each, who, made_by) for each in labels]
        with self._writing() as connection:
            for part in pages(rows, BATCH):
                connection.execute(_labels.insert(), part)
        return len(rows)

    def quote(self, collection: str, chunks: Mapping[str, Chunk]) -> None:
        """Keep the text and place of these chunks with their labels that have none yet."""
        known = sa.select(_places.c.label)
        found = sa.select(_labels.c.id, _labels.c.chunk_id).where(
            _labels.c.collection == collection, _labels.c.id.not_in(known)
        )
        rows = [
            _place_row(row.id, place_of(chunks[row.chunk_id]))
            for row in self._read(found)
            if row.chunk_id in chunks
        ]
        with self._writing() as connection:
            for part in pages(rows, BATCH):
                connection.execute(_places.insert(), part)

    def places(self, collection: str) -> dict[int, Quoted]:
        """The places of the labels that have one, by the label's id."""
        joined = _places.join(_labels, _labels.c.id == _places.c.label)
        found = sa.select(_places).select_from(joined).where(_labels.c.collection == collection)
        return {row.label: _place(row) for row in self._read(found)}

    def move(self, moved: Mapping[int, tuple[Quoted, Sequence[str]]]) -> None:
        """Give labels new places and chunks, all or none; one with several chunks becomes several
        labels."""
        with self._writing() as connection:
            for label_id, (place, chunk_ids) in moved.items():
                removed = _labels.delete().where(_labels.c.id == label_id).returning(_labels)
                old = connection.execute(removed).mappings().first()
                connection.execute(_places.delete().where(_places.c.label == label_id))
                for chunk_id in chunk_ids if old else ():
                    row = {**(old or {}), "chunk_id": chunk_id}
                    del row["id"]
                    made = _labels.insert().values(row).returning(_labels.c.id)
                    new = connection.execute(made).scalar_one()
                    connection.execute(_places.insert().values(_place_row(new, place)))

    def take_back(self, label_ids: Sequence[int]) -> None:
        """Remove labels; the labeller's previous ones count again. Repeating it does nothing."""
        with self._writing() as connection:
            connection.execute(_labels.delete().where(_labels.c.id.in_(label_ids)))
            connection.execute(_places.delete().where(_places.c.label.in_(label_ids)))

    def standing(self, collection: str, query: str | None = None) -> tuple[Label, ...]:
        """Every labeller's latest label of each pair, for one question or all, oldest first."""
        select = sa.select(_labels).where(_labels.c.collection == collection)
        if query is not None:
            select = select.where(_labels.c.query == _plain(query))
        last: dict[tuple[str, str, str, str], Label] = {}
        for row in self._read(select.order_by(_labels.c.id)):
            label = _label(row)
            pair = (label.query, label.chunk_id, label.who, label.made_by)
            last.pop(pair, None)
            last[pair] = label
        return tuple(last.values())

    def holds(self, collection: str) -> bool:
        """Whether anybody has labelled a chunk of the collection."""
        return bool(
            self._read(sa.select(_labels.c.id).where(_labels.c.collection == collection).limit(1))
        )

    def version(self, collection: str) -> str:
        """A version that changes with every label added or removed."""
        return self._version(collection, _labels)

    def questions_version(self, collection: str) -> str:
        """A version that changes with every question labelled, put into a set, or asked."""
        return self._version(collection, _labels, _sets, _asked)

    def _version(self, collection: str, *tables: sa.Table) -> str:
        counted = (
            sa.select(sa.literal(i), sa.func.count(), sa.func.max(table.c.id)).where(
                table.c.collection == collection
            )
            for i, table in enumerate(tables)
        )
        rows = self._read(sa.union_all(*counted))
        return " ".join(f"{count}-{last or 0}" for _, count, last in sorted(rows))

    def put_set(
        self,
        collection: str,
        name: str,
        queries: Mapping[str, str],
        *,
        before: Mapping[str, str] | None = None,
    ) -> None:
        """Store a query set (id → text) under a name, replacing an existing one.

        Raises InputError if the name is missing or reserved, or there are no queries, and
        ConflictError if it would replace another set than `before`.
        """
        name = _plain(name)
        if not name or name in (LABELLED, ASKED) or len(name) > LONGEST_NAME:
            raise InputError(
                f"A query set cannot be called {name[:80]!r}.",
                remedy=f"Choose a name other than {LABELLED} and {ASKED}, of at most "
                f"{LONGEST_NAME} characters.",
            )
        if not queries:
            raise InputError(f"The query set {name!r} would be empty.", remedy="Add questions.")
        rows = [
            {"collection": collection, "name": name, "query_id": whole(i), "text": _plain(text)}
            for i, text in queries.items()
        ]
        with self._writing() as connection:
            old = _sets.delete().where(*_named(collection, name))
            replaced = connection.execute(old.returning(_sets.c.query_id, _sets.c.text))
            was = {row.query_id: row.text for row in replaced}
            if before is not None and was and was != before:
                raise ConflictError(
                    f"The query set {name!r} was changed by somebody else meanwhile, so nothing is "
                    "saved.",
                    remedy="Save yours under another name, or reload the page to see theirs.",
                )
            for part in pages(rows, BATCH):
                connection.execute(_sets.insert(), part)

    def remove_set(self, collection: str, name: str) -> None:
        """Delete a query set. The labels of its questions stay."""
        with self._writing() as connection:
            connection.execute(_sets.delete().where(*_named(collection, name)))

    def sets(self, collection: str) -> dict[str, int]:
        """The number of questions in every set, by name; the two built-in sets come last."""
        select = (
            sa.select(_sets.c.name, sa.func.count())
            .where(_sets.c.collection == collection)
            .group_by(_sets.c.name)
            .order_by(_sets.c.name)
        )
        named = {row.name: row[1] for row in self._read(select)}
        return named | {own: len(self.queries(collection, own)) for own in (LABELLED, ASKED)}

    def queries(self, collection: str, name: str) -> dict[str, str]:
        """The questions of a set by id; empty if there is no such set."""
        if name in (LABELLED, ASKED):
            table = _labels if name == LABELLED else _asked
            text = _labels.c.query if name == LABELLED else _asked.c.text
            select = (
                sa.select(text).where(table.c.collection == collection)
                .group_by(text).order_by(sa.func.min(table.c.id))
            )  # fmt: skip
            return {query_id(each): each for (each,) in self._read(select)}
        rows = sa.select(_sets.c.query_id, _sets.c.text).where(*_named(collection, name))
        return {row.query_id: row.text for row in self._read(rows.order_by(_sets.c.id))}

    def record(self, collection: str, hits: Mapping[str, Sequence[str]]) -> None:
        """Store which chunks a trace says were retrieved for questions, in place of earlier
        ones."""
        with self._writing() as connection:
            for query, ids in hits.items():
                row = {"collection": collection, "query": _plain(query)}
                connection.execute(_recorded.delete().where(*_recording(collection, query)))
                connection.execute(_recorded.insert().values(**row, chunk_ids=dumps(list(ids))))

    def recorded(self, collection: str, query: str) -> tuple[str, ...]:
        """The chunks that a trace says were retrieved for a question; empty without one."""
        mine = _recording(collection, query)
        found = self._read(sa.select(_recorded.c.chunk_ids).where(*mine))
        return tuple(loads(found[0][0])) if found else ()

    def remember(self, collection: str, question: str) -> None:
        """Add an asked question to the history, without duplicates, unless the collection's history
        is off. Only the last thousand are kept."""
        text = _plain(question)
        mine = _asked.c.collection == collection
        oldest = (
            sa.select(_asked.c.id).where(mine).order_by(_asked.c.id.desc()).offset(MAX_ASKED)
        )  # fmt: skip
        if not self.records_history(collection):
            return
        with self._writing() as connection:
            connection.execute(_asked.delete().where(mine, _asked.c.text == text))
            row = {"at": datetime.now(UTC), "collection": collection, "text": text}
            connection.execute(_asked.insert().values(row))
            ids = [i for (i,) in connection.execute(oldest)]
            connection.execute(_asked.delete().where(_asked.c.id.in_(ids)))

    def records_history(self, collection: str) -> bool:
        """Whether asked questions are stored."""
        select = sa.select(_unrecorded).where(_unrecorded.c.collection == collection)
        return not self._read(select)

    def record_history(self, collection: str, on: bool) -> None:
        """Start storing asked questions, or delete them all and store no more."""
        with self._writing() as connection:
            own = _unrecorded.c.collection == collection
            connection.execute(_unrecorded.delete().where(own))
            if not on:
                connection.execute(_unrecorded.insert().values(collection=collection))
                connection.execute(_asked.delete().where(_asked.c.collection == collection))


def place_of(chunk: Chunk) -> Quoted:
    """The whole text of a chunk as the place of its labels."""
    page = -1 if chunk.page is None else chunk.page
    return Quoted(whole(chunk.text), whole(chunk.source), page)


def evidence(chunk: Chunk, selected: str) -> Quoted | None:
    """The place of what somebody selected in a chunk, whatever its spaces; None if it is not
    there."""
    words = whole(selected).split()
    found = re.search(r"\s+".join(map(re.escape, words)), whole(chunk.text)) if words else None
    return replace(place_of(chunk), quote=found.group()) if found else None


def visible_labels(
    labels: Iterable[Label], catalogue: Mapping[str, Chunk], user: User
) -> tuple[Label, ...]:
    """The labels of chunks that `user` may see. Labels of deleted chunks are only
    for users who see everything, since it is unknown who could see the chunk."""
    return tuple(
        each
        for each in labels
        if user.unrestricted or (each.chunk_id in catalogue and user.sees(catalogue[each.chunk_id]))
    )


def qrels_of(labels: Iterable[Label], *, llm: bool = False) -> dict[str, dict[str, int]]:
    """Question → chunk id → grade. If several people labelled a pair, the last one counts. With
    `llm`, an LLM's label counts if no person has labelled the pair; otherwise it is ignored."""
    qrels: dict[str, dict[str, int]] = {}
    ordered = sorted(labels, key=lambda label: (label.made_by == "human", label.id))
    for label in ordered:
        if label.made_by == "human" or llm:
            qrels.setdefault(label.query, {})[label.chunk_id] = label.grade
    return qrels


def conflicts(labels: Iterable[Label]) -> tuple[tuple[Label, ...], ...]:
    """The pairs on which people disagree, each with all their labels."""
    pairs: dict[tuple[str, str], list[Label]] = {}
    for label in labels:
        if label.made_by == "human":
            pairs.setdefault((label.query, label.chunk_id), []).append(label)
    return tuple(tuple(each) for each in pairs.values() if len({one.grade for one in each}) > 1)


def _named(collection: str, name: str) -> tuple[sa.ColumnElement[bool], ...]:
    return (_sets.c.collection == collection, _sets.c.name == name)


def _recording(collection: str, query: str) -> tuple[sa.ColumnElement[bool], ...]:
    return _recorded.c.collection == collection, _recorded.c.query == _plain(query)


def _plain(text: str) -> str:
    return whole(text).strip()


def _row(
    collection: str, query: str, chunk_id: str, grade: int, who: str, made_by: Maker
) -> dict[str, Any]:
    return {
        "at": datetime.now(UTC),
        "who": whole(who),
        "collection": collection,
        "query": _plain(query),
        "chunk_id": chunk_id,
        "grade": grade,
        "made_by": made_by,
    }


def _label(row: sa.Row[Any]) -> Label:
    values = dict(row._mapping)
    return Label(at=database.in_utc(values.pop("at")), **values)


def _place_row(label_id: int, place: Quoted) -> dict[str, Any]:
    return {"label": label_id, **asdict(place)}


def _place(row: sa.Row[Any]) -> Quoted:
    values = dict(row._mapping)
    return Quoted(**{name: values[name] for name in Quoted.__slots__})
