"""A run's data for the page: its records, and the tables made of them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ragfilter.evaluate import kinds, told
from ragfilter.evaluate.crossval import Interval
from ragfilter.evaluate.kinds import QuestionRow
from ragfilter.evaluate.records import QueryRecord
from ragfilter.evaluate.runs import settings_of, variants_of
from ragfilter.evaluate.table import LayerGain, Row, layer_gains, over_fixed_k, table
from ragfilter.evaluate.variants import Variant
from ragfilter.stores.runs import Run


@dataclass(frozen=True)
class MeasuredRun:
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
    def gains(self) -> tuple[LayerGain, ...]:
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
    def queries(self) -> tuple[QuestionRow, ...]:
        return kinds.rows(self.records)

    def row(self, name: str) -> Row | None:
        """The row called `name`, None if there is none."""
        return next((row for row in self.rows if row.name == name), None)


def run_label(run: Run) -> str:
    """A run in one line."""
    changed = len(run.plan.changes)
    settings = run.plan.profile + (f" + {changed}" if changed else "")
    state_ = "" if run.complete else f" · {run.done} of {run.plan.queries}"
    when = run.at.astimezone().strftime("%d %b %H:%M")
    return f"{run.id} · {run.plan.query_set} · {settings} · {when}{state_}"
