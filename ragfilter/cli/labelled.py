"""The labelled queries of a command: where they come from, and what is reported about them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ragfilter.cli import access, output
from ragfilter.cli.options import (
    Except,
    Only,
    Place,
    QrelsFile,
    QueriesFile,
    SetOrNone,
    WithLlm,
    refuse_without,
)
from ragfilter.engine.complete import find_chunks
from ragfilter.engine.search import Backends
from ragfilter.errors import InputError
from ragfilter.evaluate.labelled_queries import Labels
from ragfilter.model import User
from ragfilter.settings.schema import Settings

if TYPE_CHECKING:
    from ragfilter.workbench import Workbench

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuerySelection:
    """Options that select some of the labelled queries."""

    only: Only = None
    leave_out: Except = None

    def choose(self, labels: Labels) -> Labels:
        """Select from `labels`, some of which have labels. Raises InputError."""
        from ragfilter.evaluate.labelled_queries import choose

        return choose(labels, only=self.only or (), leave_out=self.leave_out or ())


class OpenedLabels(NamedTuple):
    """An open workspace, and the labelled queries of one of its collections that the user may see.
    `unknown` are the labelled ids that the collection does not have for this user."""

    bench: Workbench
    backends: Backends
    labels: Labels
    unknown: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledOptions(QuerySelection):
    """Options for labelled queries."""

    queries: QueriesFile
    qrels: QrelsFile = None
    llm: WithLlm = False

    @contextmanager
    def open(
        self,
        what: str,
        place: Place,
        user: User,
        *,
        bare: bool = False,
        check: Callable[[Workbench], None] | None = None,
    ) -> Iterator[OpenedLabels]:
        """Open the workspace for the command `what` and read the chosen queries. Reports which of
        their chunks the collection lacks. `bare`: queries need no labels. `check` may raise before
        anything is read.

        Raises InputError and StoreError.
        """
        from ragfilter.evaluate import query_sets

        if self.llm and self.qrels is not None:
            raise InputError(
                "--with-llm needs a query set of the workspace, and --qrels names a file.",
                remedy="Leave out --qrels, or import both with `ragfilter labels import`.",
            )
        in_files = not self.llm and query_sets.in_files(place.collection, self.queries, self.qrels)
        read = self._read_files(bare=bare) if in_files else None
        with place.open(what) as bench:
            if check is not None:
                check(bench)
            backends = access.backends(bench, place.collection)
            found = read or self.choose(
                query_sets.load(bench.labels, place.collection, self.queries, llm=self.llm)
            )
            if self.llm:
                _tell_agreement(bench, place.collection, user)
            labels, unknown = visible_labels(found, backends, user, stored=read is None)
            yield OpenedLabels(bench, backends, labels, unknown)

    def _read_files(self, *, bare: bool) -> Labels:
        from ragfilter.evaluate import labelled_queries, query_sets
        from ragfilter.evaluate.query_files import read_questions

        if bare and self.qrels is None and self.queries not in query_sets.DEMOS:
            asked = Labels(read_questions(Path(self.queries)), {})
            return labelled_queries.pick(
                asked, only=self.only or (), leave_out=self.leave_out or ()
            )
        return self.choose(query_sets.load_files(self.queries, self.qrels))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring(QuerySelection):
    """Options for labelled queries on which rules are measured, if any are named."""

    queries: SetOrNone = None
    qrels: QrelsFile = None

    def read(self, bench: Workbench, collection: str, user: User) -> Labels | None:
        """The named queries; see `read_labels`. None if there are none."""
        if self.queries is None:
            options = {"only": self.only, "except": self.leave_out, "qrels": self.qrels}
            refuse_without("--queries", **options)
            return None
        return read_labels(self, self.queries, self.qrels, bench, collection, user)


def read_labels(
    chosen: QuerySelection,
    queries: str,
    qrels: str | None,
    bench: Workbench,
    collection: str,
    user: User,
) -> Labels:
    """The labelled queries of two files, a demo, or a set in the workspace, with the labels that
    `user` may see. Reports labels of chunks that the collection lacks.

    Raises InputError if no label is left.
    """
    from ragfilter.evaluate import query_sets

    in_files = query_sets.in_files(collection, queries, qrels)
    found = (
        query_sets.load_files(queries, qrels)
        if in_files
        else query_sets.load(bench.labels, collection, queries)
    )
    backends = access.backends(bench, collection)
    return visible_labels(chosen.choose(found), backends, user, stored=not in_files)[0]


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
    found = find_chunks(where, named)
    there = {i for i, chunk in found.items() if user.sees(chunk)}
    gone = missing(named, there, collection=where.name)
    seen = measurable(labels, found, user)
    if stored and not user.unrestricted:
        return seen, []
    if gone:
        verb = "is" if len(gone) == 1 else "are"
        log.warning(
            "%d of %d labelled ids %s not in the collection %s, such as %r: their labels are left "
            "out. Index those chunks, or label others",
            len(gone), len(named), verb, where.name, gone[0],
        )  # fmt: skip
    lost = [i for i in labels.qrels if i not in seen.qrels]
    if lost:
        log.warning(
            "%d of %d labelled queries, such as %r: none of their relevant chunks is in the "
            "collection %s, as this user sees it, so they are left out",
            len(lost), len(labels.qrels), lost[0], where.name,
        )  # fmt: skip
    return seen, list(gone)


def _tell_agreement(bench: Workbench, collection: str, user: User) -> None:
    """Report how far an LLM's labels agree with people's, for what `user` may see."""
    from ragfilter.evaluate import query_sets
    from ragfilter.stores import labels

    catalogue = bench.collection(collection).entries()
    standing = bench.labels.standing(collection)
    seen = labels.visible_labels(standing, catalogue, user)
    output.tell(query_sets.agreed(seen).told)


def warn_of(labels: Labels) -> None:
    """Warn if there are too few labelled queries for reliable figures, or some without anything
    relevant."""
    from ragfilter.evaluate import caveats

    for caveat in caveats.about_labels(labels):
        log.warning("%s", caveat)


def warn_in_sample(
    settings: Settings, labels: Labels, collection: str, side: str = ""
) -> list[str]:
    """Warn if the settings (of a `side`) may have seen these labels of a collection. Returns the
    warning, if any, as notes of a document."""
    from ragfilter.evaluate import caveats
    from ragfilter.evaluate.labelled_queries import labels_version

    caveat = caveats.in_sample(settings, labels_version(labels), collection)
    notes = [f"{side}: {caveat}" if side else caveat] if caveat else []
    for note in notes:
        log.warning("%s", note)
    return notes
