"""Options that name labelled queries, the labels that they stand for, and warnings about these labels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ragfilter.cli.options import Place, Text, Texts, refuse
from ragfilter.cli.output import tell, warn
from ragfilter.evaluate import query_sets
from ragfilter.evaluate.labelled_queries import Labels, choose, labels_version, measurable, missing
from ragfilter.evaluate.query_files import read_questions
from ragfilter.ingest.bundled import DEMOS
from ragfilter.layers.references import find_chunks
from ragfilter.model import User
from ragfilter.settings.schema import Settings
from ragfilter.stores.label_book import visible_labels

if TYPE_CHECKING:
    from ragfilter.engine.gather import Backends
    from ragfilter.workbench import Workbench

QUERIES = typer.Option(
    "--queries",
    help="Labelled queries: a file (.jsonl, .csv, .txt), or a query set: labelled, asked, demo, "
    "adsapi, or an imported one.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOptions:
    """Options that name queries and select some of them."""

    queries: Annotated[str | None, QUERIES] = None
    qrels: Annotated[Text, "Their labels: a qrels.tsv file. Built in for demo and adsapi."] = None
    only: Annotated[Texts, "Use only the query with this ID. Repeatable."] = None
    leave_out: Annotated[Texts, "--except", "Leave out this query. Repeatable."] = None

    def read(self, bench: Workbench, place: Place, user: User, *, bare: bool = False) -> Labels | None:
        """The named queries with the labels that `user` can see, None if no queries are named. Reports labels of chunks
        that the collection lacks. `bare`: queries need no labels. Raises InputError and StoreError."""
        if self.queries is None:
            refuse("without --queries", **{"only": self.only, "except": self.leave_out, "qrels": self.qrels})
            return None
        return self.load(bench, place, user, bare=bare)[0]

    def load(
        self, bench: Workbench, place: Place, user: User, *, llm: bool = False, bare: bool = False
    ) -> tuple[Labels, list[str]]:
        """The named queries, as `report_visible_labels` returns them. Raises InputError and StoreError."""
        assert self.queries is not None
        book, collection = bench.labels, place.collection
        # The set of a demo's own collection also includes people's labels.
        of_demo = self.qrels is None and self.queries == collection
        stored = llm or of_demo or not query_sets.are_files(self.queries, self.qrels)
        if stored:
            labels = query_sets.load(book, collection, self.queries, llm=llm, bare=bare)
        elif bare and self.qrels is None and self.queries not in DEMOS:
            labels = Labels(read_questions(Path(self.queries)), {})
        else:
            labels = query_sets.load_files(self.queries, self.qrels)
        labels = choose(labels, self.only or (), self.leave_out or ())
        return report_visible_labels(labels, place.backends(bench), user, stored=stored)


class OpenedLabels(NamedTuple):
    """An open workspace, and the labels that a user can see; `unknown` are labelled ids that the collection lacks."""

    bench: Workbench
    backends: Backends
    labels: Labels
    unknown: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledOptions(QueryOptions):
    """Options for labelled queries, which are required."""

    queries: Annotated[str, QUERIES]
    llm: Annotated[bool, "--with-llm", "Count an LLM's labels where nobody has labelled."] = False

    @contextmanager
    def open(self, what: str, place: Place, user: User, *, bare: bool = False) -> Iterator[OpenedLabels]:
        """Open the workspace for the command `what`, and read the chosen queries. Raises InputError and StoreError."""
        if self.llm:
            refuse("beside --with-llm, which needs a query set of the workspace", qrels=self.qrels)
        with place.open(what) as bench:
            if self.llm:
                catalogue = bench.collection(place.collection).entries()
                standing = bench.labels.standing(place.collection)
                tell(query_sets.agreed(visible_labels(standing, catalogue, user)).sentence)
            labels, unknown = self.load(bench, place, user, llm=self.llm, bare=bare)
            yield OpenedLabels(bench, place.backends(bench), labels, unknown)


def report_visible_labels(labels: Labels, backends: Backends, user: User, *, stored: bool) -> tuple[Labels, list[str]]:
    """The labels that `user` can see, and the labelled ids that are missing or hidden. Reports these ids, and queries
    that have no relevant chunks left, unless the labels are `stored` and the user cannot see everything: others may
    have made them about chunks that this user must not know. Raises InputError if no relevant label is left."""
    where = backends.collection
    named = dict.fromkeys(i for grades in labels.qrels.values() for i in grades)
    catalogue = find_chunks(where, named)
    visible_ids = {i for i, chunk in catalogue.items() if user.sees(chunk)}
    gone = missing(named, visible_ids, collection=where.name)
    visible = measurable(labels, catalogue, user)
    if stored and not user.unrestricted:
        return visible, []
    if gone:
        warn(
            f"Left out, because the collection {where.name} lacks them: {len(gone)} of {len(named)} labelled ids, "
            f"such as {gone[0]!r}. Index those chunks, or label others"
        )
    lost = [i for i in labels.qrels if i not in visible.qrels]
    if lost:
        warn(
            f"{len(lost)} of {len(labels.qrels)} labelled queries, such as {lost[0]!r}: none of their relevant chunks "
            f"is in the collection {where.name}, as this user sees it, so they are left out"
        )
    return visible, list(gone)


def warn_of(labels: Labels) -> None:
    """Warn if there are too few labelled queries for reliable figures, or if some have no relevant chunk."""
    from ragfilter.evaluate import wording

    for caveat in wording.about_labels(labels):
        warn(caveat)


def warn_in_sample(settings: Settings, labels: Labels, collection: str, side: str = "") -> list[str]:
    """Warn if the settings (of a `side`) may have seen these labels. Returns the warning, if any, as notes for JSON."""
    from ragfilter.evaluate import wording

    caveat = wording.in_sample(settings, labels_version(labels), collection)
    notes = [f"{side}: {caveat}" if side else caveat] if caveat else []
    for note in notes:
        warn(note)
    return notes
