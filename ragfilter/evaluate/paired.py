"""Two sides over the same queries: wins, losses, ties and a paired permutation test. Pure; scipy.

`b` is compared with `a`: a win is a query that `b` answers better.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragfilter.basics.extras import extra
from ragfilter.evaluate.crossval import SEED, Interval, interval

SAME = 1e-9
RESAMPLES = 9999
EXACT = 12
"""Up to this many differing queries, every exchange of the two sides is tried."""


@dataclass(frozen=True, slots=True)
class Paired:
    """`gain` is b − a. `changes` are the queries by size of their change, largest first; `worst` is
    the largest loss of a single query. `p_value` is two-sided."""

    queries: int
    wins: int
    losses: int
    ties: int
    gain: Interval
    p_value: float
    changes: tuple[tuple[str, float], ...]

    @property
    def worst(self) -> tuple[str, float] | None:
        return min(self.changes, key=lambda pair: pair[1], default=None)


def compare(a: Mapping[str, float], b: Mapping[str, float]) -> Paired:
    """Compare two sides by query id, over the queries that both have."""
    ids = [i for i in a if i in b]
    if not ids:
        return Paired(0, 0, 0, 0, Interval(0.0, None), 1.0, ())
    apart = np.array([b[i] - a[i] for i in ids])
    changes = sorted(zip(ids, apart.tolist(), strict=True), key=lambda pair: -abs(pair[1]))
    return Paired(
        queries=len(ids),
        wins=int((apart > SAME).sum()),
        losses=int((apart < -SAME).sum()),
        ties=int((np.abs(apart) <= SAME).sum()),
        gain=interval(apart),
        p_value=permutation_p(apart),
        changes=tuple(changes),
    )


def permutation_p(apart: NDArray[np.float64]) -> float:
    """The probability of a mean difference at least this far from 0 if both sides are alike. Signs
    are flipped at random, or exhaustively if few queries differ. 1 for fewer than two queries."""
    differing = apart[np.abs(apart) > SAME]
    if len(differing) < 2:
        return 1.0
    with extra("eval"):
        from scipy.stats import permutation_test

    resamples = np.inf if len(differing) <= EXACT else RESAMPLES
    made = permutation_test(
        (differing,), np.mean, permutation_type="samples", n_resamples=resamples,
        rng=np.random.default_rng(SEED), vectorized=True,
    )  # fmt: skip
    return float(made.pvalue)


def document(made: Paired) -> dict[str, Any]:
    """The comparison as plain values."""
    return {
        "queries": made.queries,
        "wins": made.wins,
        "losses": made.losses,
        "ties": made.ties,
        "gain": {"f1": made.gain.mean, "ci": made.gain.ends},
        "p_value": made.p_value,
        "changes": [{"id": i, "f1": change} for i, change in made.changes],
    }
