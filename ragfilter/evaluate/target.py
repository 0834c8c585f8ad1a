"""What to tune for: a high mean, or few tokens at a given recall."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ragfilter.errors import InputError
from ragfilter.evaluate.crossval import Choice, Table, Tables, choose

CHOSEN_BY = ("f1", "f2", "recall", "tokens")
"""The figures that a target may use."""


@dataclass(frozen=True, slots=True)
class Target:
    """``f1``, ``f2``, or ``tokens@0.8``: the fewest tokens with a mean recall of 0.8."""

    figure: Literal["f1", "f2", "tokens"] = "f1"
    recall: float = 0.0

    def __str__(self) -> str:
        return f"tokens@{self.recall:g}" if self.figure == "tokens" else self.figure

    @property
    def oracle(self) -> Literal["f1", "f2"]:
        """The figure that the best prefix of a ranking maximises."""
        return "f2" if self.figure == "f2" else "f1"

    def better(self, figure: Table, than: Table) -> Table:
        """How much better one side is, per query; positive is better."""
        return than - figure if self.figure == "tokens" else figure - than

    def choose(self, tables: Tables) -> int:
        """The best candidate, the first of several. If none reaches the recall, the one that comes
        closest."""
        if self.figure != "tokens":
            return choose(tables[self.figure])
        recall = tables["recall"].mean(axis=0)
        least = min(self.recall, recall.max()) - 1e-12
        return int(np.argmin(np.where(recall >= least, tables["tokens"].mean(axis=0), np.inf)))

    def held_out(self, tables: Tables, folds: Choice) -> Choice:
        """For each query, the candidate that is best on the queries of the other folds."""
        chosen = np.empty(len(folds), dtype=np.intp)
        for fold in np.unique(folds):
            rest = folds != fold
            chosen[~rest] = self.choose({name: table[rest] for name, table in tables.items()})
        return chosen


def read(text: str) -> Target:
    """Parse a target. Raises InputError."""
    name, at, share = text.partition("@")
    if text in ("f1", "f2"):
        return Target("f1" if text == "f1" else "f2")
    try:
        recall = float(share)
    except ValueError:
        recall = 0.0
    if name == "tokens" and at and 0 < recall <= 1:
        return Target("tokens", recall)
    raise InputError(
        f"There is no measure {text!r}.",
        remedy="Use f1, f2, or the fewest tokens at a given recall, such as tokens@0.8.",
    )
