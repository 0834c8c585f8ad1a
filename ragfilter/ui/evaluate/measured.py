"""A run's data for the page: its records, and the tables made of them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ragfilter.evaluate import told
from ragfilter.evaluate.crossval import Interval
from ragfilter.evaluate.records import QueryRecord
from ragfilter.evaluate.runs import settings_of, variants_of
from ragfilter.evaluate.table import Gain, Row, layer_gains, over_fixed_k, table
from ragfilter.evaluate.table import figures_of as figures
from ragfilter.evaluate.variants import IN_FORCE, UNFILTERED, Variant
from ragfilter.stores.runs import Run

CHANGED = 1e-9
GREAT = 0.2
"""A gain of F1 over the unfiltered first k that is worth highlighting."""
ALL, FAILURES, DIFFERENT, HIGHLIGHTS = "All", "Failures", "Changed", "Highlights"
FILTERS = (ALL, FAILURES, DIFFERENT, HIGHLIGHTS)


@dataclass(frozen=True, slots=True)
class QueryRow:
    """One question with the settings of the run, compared with the unfiltered first k."""

    id: str
    query: str
    lost: int
    f1: float
    gain: float
    precision: float
    recall: float
    kept: int
    relevant: int
    unlabelled: int
    plain_recall: float


@dataclass(frozen=True)
class Measured:
    """A run with its records."""

    run: Run
    records: tuple[QueryRecord, ...]

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        return variants_of(self.run)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        return table(self.records, self.variants)

    @cached_property
    def gains(self) -> tuple[Gain, ...]:
        return layer_gains(self.records, self.variants)

    @property
    def in_sample(self) -> str:
        """A note if the settings may have seen these labels; empty otherwise."""
        plan = self.run.plan
        return told.in_sample(settings_of(self.run), plan.labels_version, plan.collection)

    @cached_property
    def over_fixed_k(self) -> Interval | None:
        """The gain in F1 over the best fixed k. None with fewer than two queries, or if the
        settings may have seen these labels."""
        if len(self.records) < 2 or self.in_sample:
            return None
        return over_fixed_k(self.records)

    @cached_property
    def queries(self) -> tuple[QueryRow, ...]:
        """The questions, sorted by the number of relevant chunks lost, then by F1."""
        own, plain = figures(self.records, IN_FORCE), figures(self.records, UNFILTERED)
        made = [
            QueryRow(
                id=record.id,
                query=record.query,
                lost=record.lost,
                f1=float(own["f1"][place]),
                gain=float(own["f1"][place] - plain["f1"][place]),
                precision=float(own["precision"][place]),
                recall=float(own["recall"][place]),
                kept=record.kept[IN_FORCE].chunks,
                relevant=record.relevant,
                unlabelled=record.kept[IN_FORCE].unlabelled,
                plain_recall=float(plain["recall"][place]),
            )
            for place, record in enumerate(self.records)
        ]
        return tuple(sorted(made, key=lambda row: (-row.lost, row.f1)))

    def row(self, name: str) -> Row | None:
        """The row called `name`, None if there is none."""
        return next((row for row in self.rows if row.name == name), None)


def matching(rows: tuple[QueryRow, ...], wanted: str) -> tuple[QueryRow, ...]:
    """Filter questions by comparison with the unfiltered first k. Failures have a lower F1, or an
    F1 of 0; changed ones have a different F1; highlights gain much and keep their recall."""
    match wanted:
        case "Failures":
            return tuple(row for row in rows if row.gain < -CHANGED or row.f1 == 0)
        case "Changed":
            return tuple(row for row in rows if abs(row.gain) > CHANGED)
        case "Highlights":
            best = (r for r in rows if r.gain >= GREAT and r.recall >= r.plain_recall - CHANGED)
            return tuple(sorted(best, key=lambda row: -row.gain))
        case _:
            return rows


def run_label(run: Run) -> str:
    """A run in one line."""
    changed = len(run.plan.changes)
    settings = run.plan.profile + (f" + {changed}" if changed else "")
    state_ = "" if run.complete else f" · {run.done} of {run.plan.queries}"
    when = run.at.astimezone().strftime("%d %b %H:%M")
    return f"{run.id} · {run.plan.query_set} · {settings} · {when}{state_}"
