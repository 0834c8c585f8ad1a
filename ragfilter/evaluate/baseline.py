"""The baseline of a gate: what every query reached, and whether it still does. Pure.

A broad drop is a drop of the mean that is larger than allowed and that a paired permutation test
does not attribute to chance. A severe loss is a large loss of a single query, which a mean would
hide. Queries and labelled chunks that are gone fail, too: without them, the figures that are left
can look fine. The file is small and byte-stable, so it can be kept in git.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ragfilter.errors import InputError
from ragfilter.evaluate.limits import EPSILON, SHARES, QueryFigures
from ragfilter.evaluate.paired import permutation_p

DROPPING = SHARES
"""The figures that must not drop."""
RELEVANT = "relevant"
"""How many relevant chunks of a query were there to be found; early baselines lack it."""
SIGNIFICANT = 0.05
SEVERE = 0.5
DIGITS = 6
DEFAULT_DROPS: Mapping[str, float] = {"recall": 0.02, "f1": 0.02}
"""What recall and F1, which are always checked, may drop unless limits say otherwise."""


@dataclass(frozen=True, slots=True)
class About:
    """What a baseline belongs to."""

    collection: str
    collection_version: str
    labels_version: str
    model: str
    space: str


@dataclass(frozen=True, slots=True)
class Baseline:
    """The figures that every query reached, and its number of relevant chunks, by query id."""

    about: About
    queries: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Drop:
    """A figure compared with the baseline, over the queries that both have. `drop` is baseline −
    now; its mean may drop by `allowed`. `severe` are the queries that lost `SEVERE` (of 1) or more,
    worst first."""

    figure: str
    allowed: float
    before: float
    now: float
    p_value: float
    severe: tuple[tuple[str, float], ...]
    worst: tuple[tuple[str, float], ...]

    @property
    def drop(self) -> float:
        return self.before - self.now

    @property
    def broad(self) -> bool:
        return self.drop > self.allowed + EPSILON and self.p_value < SIGNIFICANT

    @property
    def passed(self) -> bool:
        return not self.broad and not self.severe


@dataclass(frozen=True, slots=True)
class Gone:
    """Of the baseline's queries, those that were not measured, and for others how many relevant
    chunks fewer they have now."""

    queries: tuple[str, ...]
    relevant: tuple[tuple[str, int], ...]

    @property
    def passed(self) -> bool:
        return not self.queries and not self.relevant


def of_reached(reached: Sequence[QueryFigures], about: About) -> Baseline:
    """What these queries reach."""
    queries = {
        one.id: {name: round(one.figure(name), DIGITS) for name in DROPPING}
        | {RELEVANT: one.relevant}
        for one in reached
    }
    return Baseline(about, queries)


def check_gone(baseline: Baseline, reached: Sequence[QueryFigures]) -> Gone:
    """Find what the baseline measured and these queries, which are all there are, lack."""
    now = {one.id: one.relevant for one in reached}
    fewer = {
        i: int(figures.get(RELEVANT, 0)) - now[i]
        for i, figures in baseline.queries.items()
        if i in now
    }
    return Gone(
        tuple(sorted(baseline.queries.keys() - now.keys())),
        tuple(sorted((i, n) for i, n in fewer.items() if n > 0)),
    )


def check_drops(
    baseline: Baseline, reached: Sequence[QueryFigures], allowed: Mapping[str, float]
) -> tuple[Drop, ...]:
    """Compare every figure of `allowed` with the baseline. Raises InputError if no query is in
    both."""
    both = [one for one in reached if one.id in baseline.queries]
    if not both:
        raise _refused("None of the baseline's queries is among the labelled queries.")
    return tuple(_drop(name, most, baseline, both) for name, most in allowed.items())


def stale(baseline: Baseline, about: About) -> tuple[str, ...]:
    """The respects in which the baseline belongs to something else, in words."""
    then, now = asdict(baseline.about), asdict(about)
    names = {
        "collection": "another collection",
        "collection_version": "another version of the collection",
        "labels_version": "other labels",
        "model": "another embedding model",
        "space": "another distance metric",
    }
    return tuple(words for name, words in names.items() if then[name] != now[name])


def dumps(baseline: Baseline) -> str:
    """The file's content; the same figures always give the same bytes."""
    tree = {**asdict(baseline.about), "queries": dict(baseline.queries)}
    return json.dumps(tree, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def read(path: Path) -> Baseline:
    """Read a baseline from its file. Raises InputError."""
    try:
        tree: Any = json.loads(path.read_text(encoding="utf-8"))
        queries = {
            str(i): {name: _finite(figures[name]) for name in DROPPING}
            | ({RELEVANT: int(_finite(figures[RELEVANT]))} if RELEVANT in figures else {})
            for i, figures in tree.pop("queries").items()
        }
        return Baseline(About(**{name: str(value) for name, value in tree.items()}), queries)
    except OSError as error:
        raise _refused(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _refused(f"{path} is not a baseline file.") from None


def _finite(value: Any) -> float:
    """A figure of a baseline. Raises ValueError for NaN and infinities, which no comparison would
    ever break."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(value)
    return number


def _refused(why: str) -> InputError:
    return InputError(why, remedy="Create a new one.", action="baseline")


def _drop(name: str, allowed: float, baseline: Baseline, reached: Sequence[QueryFigures]) -> Drop:
    before = np.array([baseline.queries[one.id][name] for one in reached])
    now = np.array([round(one.figure(name), DIGITS) for one in reached])
    changes = [(one.id, float(change)) for one, change in zip(reached, now - before, strict=True)]
    lost = sorted((each for each in changes if each[1] < -EPSILON), key=lambda each: each[1])
    return Drop(
        figure=name,
        allowed=allowed,
        before=float(before.mean()),
        now=float(now.mean()),
        p_value=permutation_p(now - before),
        severe=tuple(each for each in lost if each[1] <= -SEVERE + EPSILON),
        worst=tuple(lost),
    )
