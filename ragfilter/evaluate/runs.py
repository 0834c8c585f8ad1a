"""Runs: plans that are measured, saved record by record, and continued. Effects.

The page and the command line start and read runs through this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from ragfilter.engine.search import Backends
from ragfilter.errors import InputError, RagfilterError
from ragfilter.evaluate import stored
from ragfilter.evaluate.beir import Labels
from ragfilter.evaluate.labels import are_files
from ragfilter.evaluate.measuring import labels_version, measurable, measure
from ragfilter.evaluate.records import QueryRecord, read
from ragfilter.evaluate.variants import Variant, profiles_version, variants
from ragfilter.layers.clearance import viewer, with_clearance
from ragfilter.model import Chunk, User
from ragfilter.settings.config import Given, of_profile
from ragfilter.settings.schema import Settings
from ragfilter.stores.runs import Plan, Run

if TYPE_CHECKING:
    from ragfilter.stores.chroma.collection import ChromaCollection
    from ragfilter.stores.labels import LabelBook
    from ragfilter.stores.runs import Runs

Seen = Callable[[int, int], bool | None]
"""Called with (queries done, total) after each query; returning False stops."""


def plan(
    labels: Labels,
    query_set: str,
    profile_name: str,
    settings: Settings,
    backends: Backends,
    user: User | None,
) -> Plan:
    """The plan of a run over these labels. Raises StoreError."""
    collection, who = backends.collection, viewer(user, settings)
    settings = with_clearance(settings, who)
    return Plan(
        collection=collection.name,
        query_set=query_set,
        profile=profile_name,
        changes=settings.changed_from(of_profile(profile_name)),
        viewer=who,
        collection_version=collection.version,
        labels_version=labels_version(labels),
        model=backends.embedder.name,
        space=collection.space,
        queries=len(labels.qrels),
        profiles=profiles_version(),
    )


def go_on(
    run: Run,
    labels: Labels,
    runs: Runs,
    backends: Backends,
    *,
    seen: Seen = lambda done, total: None,
) -> None:
    """Measure the remaining queries of a run, until `seen` asks to stop. Each is saved when it is
    finished. Raises what `measure` raises."""
    total, done = run.plan.queries, runs.done(run.id)
    if seen(len(done), total) is False:
        return
    records = measure(labels, variants_of(run), backends, run.plan.viewer, done=done)
    for count, record in enumerate(records, start=len(done) + 1):
        runs.keep(run.id, record.id, asdict(record))
        if seen(count, total) is False:
            return


def records_of(run: Run, runs: Runs) -> tuple[QueryRecord, ...]:
    """The records of a run. Raises StoreError."""
    return tuple(map(read, runs.records(run.id)))


def changed_since(
    plan: Plan, open_collection: Callable[[str], ChromaCollection], book: LabelBook
) -> list[str]:
    """Describe what has changed since the plan was made: the collection, questions or labels.
    Labels in files are not checked. If the collection cannot be opened, the notes say that nothing
    is known."""
    try:
        collection = open_collection(plan.collection)
        return _changed(plan, collection.version, collection.entries(), book)
    except RagfilterError as error:
        # The measurements can be read without the collection.
        return [f"Changes since then are unknown: {error}"]


def _changed(
    plan: Plan, version: str, catalogue: Mapping[str, Chunk], book: LabelBook
) -> list[str]:
    notes = []
    if version != plan.collection_version:
        notes.append("The collection has changed since then: measure again.")
    name, qrels, llm = stored.untitled(plan.query_set)
    if qrels:
        return notes
    try:
        now = measurable(stored.load(book, plan.collection, name, llm=llm), catalogue, plan.viewer)
    except InputError as error:
        if not are_files(name, None):
            unknown = "It is not known whether questions or labels have changed since then."
            notes.append(f"{error.message} {unknown}")
        return notes
    if labels_version(now) != plan.labels_version:
        notes.append("Questions or labels have changed since then: measure again.")
    return notes


def variants_of(run: Run) -> tuple[Variant, ...]:
    """The variants that a run compares."""
    return variants(settings_of(run))


def settings_of(run: Run) -> Settings:
    """The run's own settings. Raises SettingsError if they are no longer valid."""
    return of_profile(run.plan.profile, Given("the run", run.plan.changes))
