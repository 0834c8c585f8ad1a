"""The labelled queries of a command: where they come from, and what is reported about them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ragfilter.cli import access, output
from ragfilter.cli.options import Place, refuse_without, text_option
from ragfilter.engine.complete import find_chunks
from ragfilter.engine.search import Backends
from ragfilter.errors import InputError
from ragfilter.evaluate.labelled_queries import Labels
from ragfilter.model import User
from ragfilter.settings.schema import Settings

if TYPE_CHECKING:
    from ragfilter.stores.labels import LabelBook
    from ragfilter.workbench import Workbench

log = logging.getLogger(__name__)

QUERIES = typer.Option(
    "--queries",
    help="Labelled queries: a file (.jsonl, .csv, .txt), or a query set: labelled, asked, demo, "
    "adsapi, or an imported one.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOptions:
    """Options that name queries and select some of them."""

    queries: Annotated[str | None, QUERIES] = None
    qrels: Annotated[
        str | None, "Their labels, a qrels.tsv file. Built in for demo and adsapi."
    ] = None
    only: Annotated[list[str] | None, "Use only the query with this ID. Repeatable."] = None
    leave_out: Annotated[
        list[str] | None, text_option("--except", help="Leave out this query. Repeatable.")
    ] = None

    def read(
        self, bench: Workbench, collection: str, user: User, *, bare: bool = False
    ) -> Labels | None:
        """The named queries with the labels that `user` may see, None if none are named. Reports
        labels of chunks that the collection lacks. `bare`: queries need no labels. Raises
        InputError and StoreError."""
        if self.queries is None:
            options = {"only": self.only, "except": self.leave_out, "qrels": self.qrels}
            refuse_without("--queries", **options)
            return None
        labels = self.load(collection, bare=bare)
        stored = labels is None
        labels = labels or self.load(collection, bench.labels, bare=bare)
        assert labels is not None
        backends = access.backends(bench, collection)
        return visible_labels(labels, backends, user, stored=stored)[0]

    def load(
        self,
        collection: str,
        book: LabelBook | None = None,
        *,
        llm: bool = False,
        bare: bool = False,
    ) -> Labels | None:
        """The chosen queries: from files or, with the workspace's `book`, from a stored set; None
        if they are stored and there is no book. Raises InputError, StoreError."""
        from ragfilter.evaluate import labelled_queries, query_sets
        from ragfilter.evaluate.query_files import read_questions

        assert self.queries is not None
        chosen = {"only": self.only or (), "leave_out": self.leave_out or ()}
        # The set of a demo's own collection also includes people's labels.
        own = self.qrels is None and self.queries == collection
        if llm or own or not query_sets.are_files(self.queries, self.qrels):
            if book is None:
                return None
            labels = query_sets.load(book, collection, self.queries, llm=llm, bare=bare)
        elif bare and self.qrels is None and self.queries not in query_sets.DEMOS:
            labels = Labels(read_questions(Path(self.queries)), {})
        else:
            labels = query_sets.load_files(self.queries, self.qrels)
        return labelled_queries.choose(labels, **chosen)


class OpenedLabels(NamedTuple):
    """An open workspace, and the labelled queries of one of its collections that the user may see.
    `unknown` are the labelled ids that the collection does not have for this user."""

    bench: Workbench
    backends: Backends
    labels: Labels
    unknown: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledOptions(QueryOptions):
    """Options for labelled queries, without which there is nothing to measure."""

    queries: Annotated[str, QUERIES]
    llm: Annotated[
        bool, typer.Option("--with-llm", help="An LLM's labels count where nobody has labelled.")
    ] = False

    @contextmanager
    def open(
        self, what: str, place: Place, user: User, *, bare: bool = False
    ) -> Iterator[OpenedLabels]:
        """Open the workspace for the command `what`, and read the chosen queries: those in files
        before it is opened. Raises InputError and StoreError."""
        from ragfilter.evaluate import query_sets
        from ragfilter.stores.labels import visible_labels as seen_by

        if self.llm and self.qrels is not None:
            raise InputError(
                "--with-llm needs a query set of the workspace, and --qrels names a file.",
                remedy="Leave out --qrels, or import both with `ragfilter labels import`.",
            )
        labels = self.load(place.collection, llm=self.llm, bare=bare)
        stored = labels is None
        with place.open(what) as bench:
            backends = access.backends(bench, place.collection)
            labels = labels or self.load(place.collection, bench.labels, llm=self.llm, bare=bare)
            assert labels is not None
            if self.llm:
                catalogue = bench.collection(place.collection).entries()
                standing = bench.labels.standing(place.collection)
                output.tell(query_sets.agreed(seen_by(standing, catalogue, user)).told)
            visible, unknown = visible_labels(labels, backends, user, stored=stored)
            yield OpenedLabels(bench, backends, visible, unknown)


def visible_labels(
    labels: Labels, backends: Backends, user: User, *, stored: bool
) -> tuple[Labels, list[str]]:
    """The labels that `user` may see, and the labelled ids that the collection does not have for
    them: a hidden chunk is treated like one that does not exist. Reports both, and the queries that
    have nothing relevant left. Labels that others have `stored` name chunks that this user need not
    know, so nothing is reported of them to a user who may not see everything.

    Raises InputError if there are labels but no relevant one is left.
    """
    from ragfilter.evaluate.labelled_queries import measurable, missing

    where = backends.collection
    named = dict.fromkeys(i for grades in labels.qrels.values() for i in grades)
    catalogue = find_chunks(where, named)
    there = {i for i, chunk in catalogue.items() if user.sees(chunk)}
    gone = missing(named, there, collection=where.name)
    visible = measurable(labels, catalogue, user)
    if stored and not user.unrestricted:
        return visible, []
    if gone:
        verb = "is" if len(gone) == 1 else "are"
        log.warning(
            "%d of %d labelled ids %s not in the collection %s, such as %r: their labels are left "
            "out. Index those chunks, or label others",
            len(gone), len(named), verb, where.name, gone[0],
        )  # fmt: skip
    lost = [i for i in labels.qrels if i not in visible.qrels]
    if lost:
        log.warning(
            "%d of %d labelled queries, such as %r: none of their relevant chunks is in the "
            "collection %s, as this user sees it, so they are left out",
            len(lost), len(labels.qrels), lost[0], where.name,
        )  # fmt: skip
    return visible, list(gone)


def warn_of(labels: Labels) -> None:
    """Warn if there are too few labelled queries for reliable figures, or some without anything
    relevant."""
    from ragfilter.evaluate import wording

    for caveat in wording.about_labels(labels):
        log.warning("%s", caveat)


def warn_in_sample(
    settings: Settings, labels: Labels, collection: str, side: str = ""
) -> list[str]:
    """Warn if the settings (of a `side`) may have seen these labels of a collection. Returns the
    warning, if any, as notes of a document."""
    from ragfilter.evaluate import wording
    from ragfilter.evaluate.labelled_queries import labels_version

    caveat = wording.in_sample(settings, labels_version(labels), collection)
    notes = [f"{side}: {caveat}" if side else caveat] if caveat else []
    for note in notes:
        log.warning("%s", note)
    return notes
