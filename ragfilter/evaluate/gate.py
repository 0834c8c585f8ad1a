"""The gate: whether a filter meets its limits and still reaches its baseline. Pure.

The command line and the page decide through this module. Source: docs/design.md#evaluate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragfilter.evaluate import baseline as baselines
from ragfilter.evaluate import limits as limiting
from ragfilter.evaluate.baseline import DEFAULT_DROPS, About, Baseline, Drop, Gone
from ragfilter.evaluate.limits import Check, Limit, QueryFigures


@dataclass(frozen=True, slots=True)
class Gate:
    """Every check with its outcome. `gone` is None without a baseline, or if only some of the
    queries were measured. `notes` say how the baseline differs from what was measured."""

    checks: tuple[Check, ...] = ()
    drops: tuple[Drop, ...] = ()
    gone: Gone | None = None
    notes: tuple[str, ...] = ()

    @property
    def every(self) -> tuple[Check | Drop | Gone, ...]:
        return (*self.checks, *self.drops, *([] if self.gone is None else [self.gone]))

    @property
    def passed(self) -> bool:
        return all(one.passed for one in self.every)


def decide(
    reached: Sequence[QueryFigures],
    limits: Sequence[Limit] = (),
    *,
    before: tuple[Baseline, About] | None = None,
    allowed: Mapping[str, float] = DEFAULT_DROPS,
    partly: bool = False,
) -> Gate:
    """Check what was reached against the limits, and against a baseline `before`, which comes with
    what was measured now. `allowed` is how much the mean of a figure may drop; `partly` says that
    only some of the queries were measured. Raises InputError if the baseline has none of the
    queries."""
    checks = limiting.check(reached, limits)
    if before is None:
        return Gate(checks)
    baseline, about = before
    notes = [
        f"The baseline is of {words}. Renew it if that is intended."
        for words in baselines.stale(baseline, about)
    ]
    gone = baselines.check_gone(baseline, reached)
    if partly and gone.queries:
        notes.append(
            f"{len(gone.queries)} of {len(baseline.queries)} questions in the baseline were not "
            f"measured, such as {gone.queries[0]!r}."
        )
    new = [one.id for one in reached if one.id not in baseline.queries]
    if new:
        notes.append(
            f"Not compared, because the baseline lacks them: {len(new)} of {len(reached)} "
            f"questions, such as {new[0]!r}."
        )
    drops = baselines.check_drops(baseline, reached, allowed)
    return Gate(checks, drops, None if partly else gone, tuple(notes))


def document(gate: Gate) -> dict[str, Any]:
    """The outcome as plain values: the document of `ragfilter gate --json`, without its head."""
    gone = gate.gone
    return {
        "passed": gate.passed,
        "gone": gone
        and {
            "queries": list(gone.queries),
            "relevant": [{"id": i, "fewer": fewer} for i, fewer in gone.relevant],
        },
        "drops": [
            {
                "figure": one.figure,
                "allowed": one.allowed,
                "before": one.before,
                "value": one.now,
                "p_value": one.p_value,
                "passed": one.passed,
                "severe": [{"id": i, "change": change} for i, change in one.severe],
                "lost": [{"id": i, "change": change} for i, change in one.worst],
            }
            for one in gate.drops
        ],
        "checks": [
            {
                "figure": one.limit.figure,
                "at": "least" if one.limit.least else "most",
                "limit": one.limit.value,
                "value": one.mean,
                "passed": one.passed,
                "beyond": [{"id": i, "value": value} for i, value in one.worst],
            }
            for one in gate.checks
        ],
    }
