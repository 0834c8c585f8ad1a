"""Runs: plans that are measured, saved query by query, and resumed. Has side effects.

A run measures its own settings and all the alternatives of `variants.variants`. The page and the command line start and
read runs through this module."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING

from ragfilter.engine.gather import Backends
from ragfilter.errors import InputError, RagfilterError, SettingsError
from ragfilter.evaluate import frame, query_sets, regression_gate, wording
from ragfilter.evaluate.crossval import FEW_QUERIES, Interval
from ragfilter.evaluate.frame import PairedTest, Row
from ragfilter.evaluate.labelled_queries import Labels, labels_version, measurable
from ragfilter.evaluate.metrics import Curve
from ragfilter.evaluate.query_records import QueryRecord, from_document, measure, to_document
from ragfilter.evaluate.query_sets import are_files
from ragfilter.evaluate.variants import CURRENT, FIXED, Variant, variants
from ragfilter.layers.tuned_on import origin, profile_name
from ragfilter.layers.visibility import effective_user, with_clearance_for
from ragfilter.model import User
from ragfilter.settings.config import Given, of_profile
from ragfilter.settings.schema import Settings
from ragfilter.stores.run_store import Plan, Run, Runs
from ragfilter.text.numbers import counted

if TYPE_CHECKING:
    import pandas as pd

    from ragfilter.workbench import Workbench

Seen = Callable[[int, int], bool | None]
"""Called with (queries done, total) after each query; returning False stops."""


@dataclass(frozen=True)
class MeasuredRun:
    """A run with its records and the tables made from them."""

    run: Run
    records: tuple[QueryRecord, ...]

    @cached_property
    def settings(self) -> Settings:
        """The run's own settings. Raises SettingsError if they are no longer valid."""
        return settings_of(self.run)

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        return variants(self.settings)

    @cached_property
    def rows(self) -> pd.DataFrame:
        return frame.rows(self.records, self.variants)

    @cached_property
    def gains(self) -> pd.DataFrame:
        return frame.layer_gains(self.records, self.variants)

    @cached_property
    def questions(self) -> pd.DataFrame:
        return frame.questions(self.records)

    @cached_property
    def curves(self) -> list[Curve]:
        return frame.curves_of(self.records)

    @property
    def in_sample(self) -> str:
        """A note if the settings may have seen these labels; empty otherwise."""
        plan = self.run.plan
        return wording.in_sample(self.settings, plan.labels_version, plan.collection)

    @cached_property
    def over_fixed_k(self) -> Interval | None:
        """The gain in F1 over the best fixed k. None for one query, or if the settings may have seen these labels."""
        return None if self.in_sample else frame.gain_over(self.records, FIXED, CURRENT)

    def ranked(self, figure: str) -> list[Row]:
        """The rows, best first by a figure; see `frame.ranked`."""
        return frame.ranked(self.rows, self.records, figure)

    def row(self, name: str) -> Row | None:
        """The row called `name`, None if there is none."""
        return next((row for row in frame.cells(self.rows) if row["variant"] == name), None)


def settings_name(run: Run) -> str:
    """The name of a run's settings: ``full + 2``, or after the labels that chose them."""
    plan = run.plan
    try:
        settings = settings_of(run)
    except SettingsError:
        settings = Settings()
    if origin(settings) is not None:
        return profile_name(plan.profile, settings)
    return plan.profile + (f" + {len(plan.changes)}" if plan.changes else "")


def run_label(run: Run, *, of_set: bool = True) -> str:
    """A run in one line, with the title of its query set if `of_set`."""
    settings = settings_name(run)
    progress = "" if run.complete else f" · {run.done} of {run.plan.queries}"
    when = run.at.astimezone().strftime("%d %b %H:%M")
    parts = (str(run.id), run.name, run.plan.query_set if of_set else "", settings, f"{when}{progress}")
    return " · ".join(filter(None, parts))


@dataclass(frozen=True)
class ComparedRuns:
    """Rows of two runs, A and B, query by query. `settings` are those of the rows, and `since` has the notes of
    `changed_since` about each run."""

    runs: tuple[Run, Run]
    settings: tuple[Settings, Settings]
    sides: pd.DataFrame
    since: tuple[Sequence[str], Sequence[str]] = ((), ())

    @cached_property
    def paired(self) -> PairedTest:
        return frame.paired(self.sides)

    @property
    def changes(self) -> list[Row]:
        """The queries, sorted by the largest change first."""
        return frame.cells(frame.most_changed(self.sides))

    @property
    def worst(self) -> Row | None:
        """The query with the largest loss; None if none is worse with B."""
        # A rounding error between two equal figures is not a loss.
        return next((row for row in self.changes if row["gain"] < -frame.SAME), None)

    def mean(self, figure: str, side: str) -> float:
        """The mean of a figure for one side, a or b."""
        return fmean(self.sides[f"{figure}_{side}"]) if len(self.sides) else 0.0

    @property
    def in_sample(self) -> list[str]:
        """The warnings of `wording.in_sample` about A and B."""
        plans = (run.plan for run in self.runs)
        sides = zip(self.settings, plans, strict=True)
        return [wording.in_sample(settings, plan.labels_version, plan.collection) for settings, plan in sides]

    @property
    def notes(self) -> list[str]:
        """Caveats about the comparison."""
        a, b = (run.plan for run in self.runs)
        notes = []
        same = ("collection", "collection_version", "labels_version")
        if any(getattr(a, name) != getattr(b, name) for name in same):
            notes.append(
                "The two sides were measured on different collections or versions, or with "
                "different questions or labels: measure both again."
            )
        if a.viewer != b.viewer:
            notes.append(
                "The two sides were measured as different users, who may see different chunks: "
                "measure both as the same user."
            )
        for letter, run, since, learned in zip("AB", self.runs, self.since, self.in_sample, strict=True):
            if not run.complete:
                notes.append(f"{letter} is measured for {run.done} of {counted(run.plan.queries, 'question')} only.")
            means = {each: self.mean(each, letter.lower()) for each in ("kept", "unlabelled", "f1", "f1_most")}
            sentences = *since, learned, wording.unlabelled(means)
            notes += [f"{letter}: {each[0].lower()}{each[1:]}" for each in sentences if each]
        if self.paired.gain.ends and self.paired.queries < FEW_QUERIES:
            labelled = counted(self.paired.queries, "labelled question")
            notes.append(f"Only {labelled}, so the interval is wide.")
        return notes


def plan(
    labels: Labels,
    query_set: str,
    profile_name: str,
    settings: Settings,
    backends: Backends,
    user: User | None,
    bench: Workbench,
) -> Plan:
    """The plan of a run over these labels. Raises StoreError."""
    collection, who = backends.collection, effective_user(user, settings)
    settings = with_clearance_for(settings, who)
    return Plan(
        collection=collection.name,
        query_set=query_set,
        profile=profile_name,
        changes=settings.changed_from(of_profile(profile_name)),
        viewer=who,
        collection_version=bench.version_seen(collection.name, who),
        labels_version=labels_version(labels),
        model=backends.embedder.name,
        space=collection.space,
        queries=len(labels.qrels),
    )


def go_on(run: Run, labels: Labels, runs: Runs, backends: Backends, *, seen: Seen = lambda done, total: None) -> None:
    """Measure the remaining queries of a run until `seen` asks to stop. Each query is saved when it is finished. Raises
    what `measure` raises."""
    total, done = run.plan.queries, runs.done(run.id)
    if seen(len(done), total) is False:
        return
    measured = measure(labels, variants(settings_of(run)), backends, run.plan.viewer, done=done)
    for count, records in enumerate(measured, start=len(done) + 1):
        runs.keep(run.id, records[0].id, to_document(records))
        if seen(count, total) is False:
            return


def load(run: Run, runs: Runs) -> MeasuredRun:
    """A run with its records. Raises StoreError."""
    saved = runs.records(run.id)
    return MeasuredRun(run, tuple(record for each in saved for record in from_document(each)))


def compare(
    a: MeasuredRun,
    b: MeasuredRun,
    bench: Workbench,
    *,
    names: tuple[str, str] = (CURRENT, CURRENT),
    settings: tuple[Settings, Settings] | None = None,
) -> ComparedRuns:
    """Compare two rows of runs, given by `names` and `settings`; by default, the runs' own. Raises StoreError."""
    sides = (
        frame.frame((each for each in run.records if each.variant == name), by="query")
        for run, name in zip((a, b), names, strict=True)
    )
    since = changed_since(a.run.plan, bench), changed_since(b.run.plan, bench)
    compared = settings or (a.settings, b.settings)
    return ComparedRuns((a.run, b.run), compared, frame.side_by_side(*sides), since)


BASELINE = "baseline"
"""The name of the run whose figures guard a query set."""


def earlier(run: Run, saved: Iterable[Run]) -> Run | None:
    """The run to compare this one with: of the complete runs before it with the same questions, user and settings, the
    baseline or else the latest."""

    def asked(plan: Plan) -> tuple[object, ...]:
        return plan.collection, plan.query_set, plan.viewer, plan.profile, plan.changes

    before = (each for each in saved if each.complete and each.id < run.id and asked(each.plan) == asked(run.plan))
    return max(before, key=lambda each: (each.name == BASELINE, each.id), default=None)


def moved_since(now: MeasuredRun, before: MeasuredRun) -> str:
    """What moved since another run, in the gate's words; empty if nothing did."""
    rows, known = regression_gate.reached(now.records), regression_gate.reached(before.records)
    if not rows["id"].isin(known["id"]).any():
        return ""
    baseline = regression_gate.to_baseline(known, origin_of(before))
    return regression_gate.decide(rows, baseline=baseline, now=origin_of(now)).verdict


def origin_of(measured: MeasuredRun) -> regression_gate.BaselineOrigin:
    """The origin of a baseline made from this run."""
    plan, settings = measured.run.plan, measured.settings.changed_from(Settings())
    return regression_gate.BaselineOrigin(
        settings=settings, **{name: getattr(plan, name) for name in regression_gate.ORIGINS}
    )


def measured_queries(plan: Plan) -> list[str]:
    """The options of a command that measures this plan's queries."""
    queries, qrels, llm = query_sets.untitled(plan.query_set)
    words = ["--collection", plan.collection, "--queries", queries]
    return words + (["--qrels", qrels] if qrels else []) + (["--with-llm"] if llm else [])


def find(settings: Settings, wanted: Plan, runs: Iterable[Run]) -> Iterator[tuple[Run, str]]:
    """Yield the complete runs that measured `settings` under the plan `wanted`, with the name of the row, whatever the
    plan's own settings are. A run measures many alternatives, so another run often already has such a row."""
    for run in runs:
        same = replace(run.plan, profile=wanted.profile, changes=wanted.changes)
        if run.complete and same == wanted:
            for variant in variants(settings_of(run)):
                if variant.settings == settings and not variant.plain:
                    yield run, variant.name


def changed_since(plan: Plan, bench: Workbench) -> list[str]:
    """Notes on what has changed since the plan was made: the collection, questions or labels. Labels in files are not
    checked. If the collection cannot be opened, a note says that changes are unknown."""
    notes = []
    name, qrels, llm = query_sets.untitled(plan.query_set)
    try:
        if bench.version_seen(plan.collection, plan.viewer) != plan.collection_version:
            notes.append("The collection has changed since then: measure again.")
        catalogue = bench.collection(plan.collection).entries()
    except RagfilterError as error:
        # The measurements can be read without the collection.
        return [f"Changes since then are unknown: {error}"]
    if qrels:
        return notes
    try:
        labels = query_sets.load(bench.labels, plan.collection, name, llm=llm)
        if labels_version(measurable(labels, catalogue, plan.viewer)) != plan.labels_version:
            notes.append("Questions or labels have changed since then: measure again.")
    except InputError as error:
        if not are_files(name, None):
            unknown = "It is not known whether questions or labels have changed since then."
            notes.append(f"{error.message} {unknown}")
    return notes


def settings_of(run: Run) -> Settings:
    """The run's own settings. Raises SettingsError if they are no longer valid."""
    return of_profile(run.plan.profile, Given("the run", run.plan.changes))
