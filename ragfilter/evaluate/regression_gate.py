"""The gate: whether a filter meets its limits and still reaches its baseline. Pure, except `read` and `read_log`.

A broad drop is a drop of the mean that is larger than allowed and significant in a paired permutation test. A severe
loss is a large loss of a single query, which a mean would hide. The gate also fails if queries or labelled chunks are
gone: without them, the remaining figures can look fine. The checks read rows of `evaluate.frame` by query.

Drift needs no labels: two-sample tests compare how questions are answered with the baseline. The best distance as a
share of the background shows what the search finds before the filter acts. If it moved, the corpus, the model or the
questions changed; questions that both sides have show which. If only other figures moved, the filter decides
differently.

Source: docs/design.md#evaluate."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal
from xml.etree.ElementTree import Element, SubElement, tostring

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field, FiniteFloat

from ragfilter.basics.files import read_lines
from ragfilter.errors import InputError, SettingsError, extra
from ragfilter.evaluate import wording
from ragfilter.evaluate.frame import cells, frame, permutation_p
from ragfilter.evaluate.metrics import FIGURES
from ragfilter.evaluate.query_records import QueryRecord
from ragfilter.evaluate.variants import CURRENT
from ragfilter.settings.schema import Settings
from ragfilter.text import numbers
from ragfilter.text.normalise import mend_characters
from ragfilter.text.numbers import counted, p_value, signed
from ragfilter.text.titles import query_id, query_name

RATIOS = ("precision", "recall", "f1")
"""Figures that must not drop."""
NAMES = {name: FIGURES[name].label for name in RATIOS} | {"kept": "kept chunks", "lost": "lost relevant chunks"}
"""The figures that can be limited: means of per-query values over the labelled queries."""
ORIGINS = {
    "collection": "another collection",
    "collection_version": "another version of the collection",
    "labels_version": "other labels",
    "model": "another embedding model",
    "space": "another distance metric",
}
"""How a baseline may differ from the current measurement."""
EPSILON = 1e-9
SIGNIFICANT = 0.05
SEVERE = 0.5
DIGITS = 6
DEFAULT_DROPS: Mapping[str, float] = {"recall": 0.02, "f1": 0.02}
"""How much recall and F1 may drop by default; both are always checked."""
WIDTH = 60
SHOWN = 20
"""Maximum number of listed questions if space is limited."""
LEVEL = 0.05
"""The probability of a false alarm over all drift figures together."""
MIN_QUERIES = 8
"""With fewer questions on a side, drift is not tested."""
SEARCHED = "best distance ÷ background"
STILL = 0.01
"""How far this may move for questions that both sides have, if neither the corpus nor the model did."""
MOVED = "The corpus or the model moved"
# Characters that XML does not allow, even escaped.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Limit:
    """A figure and the value that its mean must reach (`at` least) or not exceed (`at` most)."""

    figure: str
    at: Literal["least", "most"]
    limit: float

    def breaks(self, value: float) -> bool:
        """Whether a value is beyond the limit."""
        return value < self.limit - EPSILON if self.at == "least" else value > self.limit + EPSILON


@dataclass(frozen=True, slots=True)
class Check:
    """A check with its outcome: its `line` says both. `reasons` says what each query that explains it lost or lacks, by
    id, worst first. `figures` are what `gate --json` prints."""

    name: str
    passed: bool
    line: str
    reasons: Mapping[str, str]
    figures: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Shift:
    """A figure before and now: means or, for a share, from 0 to 1. `moved`: significantly."""

    figure: str
    before: float
    now: float
    p_value: float
    moved: bool

    def __str__(self) -> str:
        return f"{self.figure} {self.before:.3f} → {self.now:.3f} ({p_value(self.p_value)})"


@dataclass(frozen=True, slots=True)
class Gate:
    """Every check. `gone` is None without a baseline, or if only some of the queries were measured. `notes` say how the
    baseline differs from what was measured, `drift` how answers have changed, and `verdict` what moved."""

    limits: tuple[Check, ...]
    drops: tuple[Check, ...] = ()
    gone: Check | None = None
    notes: tuple[str, ...] = ()
    drift: tuple[Shift, ...] = ()
    verdict: str = ""

    @property
    def every(self) -> tuple[Check, ...]:
        return (*self.limits, *self.drops, *([self.gone] if self.gone else []))

    @property
    def passed(self) -> bool:
        return all(one.passed for one in self.every)

    @property
    def failing(self) -> int:
        """How many questions explain the failed checks."""
        return len({i for one in self.every if not one.passed for i in one.reasons})

    @property
    def document(self) -> dict[str, Any]:
        """The gate in `gate --json`."""
        return {
            "passed": self.passed,
            "gone": self.gone and self.gone.figures,
            "drops": [one.figures for one in self.drops],
            "checks": [one.figures for one in self.limits],
            "drift": self.drift,
            "verdict": self.verdict,
        }


class ReachedFigures(BaseModel, frozen=True, extra="forbid"):
    """The figures of one query, hashes of its relevant chunks' ids, and what drift tests need: the best distance as a
    share of the background (None without distances), the number of kept chunks, whether a layer fell back, and a hash
    of the question."""

    precision: FiniteFloat
    recall: FiniteFloat
    f1: FiniteFloat
    relevant: str
    nearness: FiniteFloat | None
    kept: int
    fell_back: bool
    asked: str


class _LogLine(BaseModel, strict=True):
    """What the logger writes about a question."""

    nearness: Annotated[FiniteFloat, Field(ge=0)] | None
    kept: Annotated[int, Field(ge=0, lt=2**53)]
    fallback: list[str]
    collection: str | None = None
    query: str = ""


class BaselineOrigin(BaseModel, frozen=True, extra="forbid"):
    """What a baseline was measured on. `settings` are those that differ from the defaults."""

    collection: str
    collection_version: str
    labels_version: str
    model: str
    space: str
    settings: Mapping[str, Any]


class Baseline(BaselineOrigin, frozen=True):
    """The figures that every query reached, by query id."""

    queries: Mapping[str, ReachedFigures]

    def dumps(self) -> str:
        """The file's content; the same figures always give the same bytes."""
        return json.dumps(self.model_dump(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def reached(records: Iterable[QueryRecord]) -> pd.DataFrame:
    """What the current settings reached: the rows of `frame` by query, with the columns of `ReachedFigures`."""
    current = [each for each in records if each.variant == CURRENT]
    return frame(current, by="query").assign(
        relevant=[each.relevant_keys for each in current],
        fell_back=[each.waiting for each in current],
        asked=[query_id(each.query) for each in current],
    )


def to_baseline(rows: pd.DataFrame, origin: BaselineOrigin) -> Baseline:
    """The baseline of the rows of `reached`."""
    queries = {
        row["id"]: {name: row[name] for name in ReachedFigures.model_fields} for row in cells(rows.round(DIGITS))
    }
    return Baseline.model_validate(origin.model_dump() | {"queries": queries})


def read(path: Path) -> Baseline:
    """Read a baseline from its file. Raises InputError."""
    try:
        baseline = Baseline.model_validate_json(path.read_bytes())
        Settings().with_values(baseline.settings)
        return baseline
    except OSError as error:
        why = f"{path} cannot be read: {error.strerror}."
    except (ValueError, SettingsError):
        why = f"{path} is not a baseline file."
    raise InputError(why, remedy="Create a new one.", action="baseline")


def read_limit(text: str, at: Literal["least", "most"], *, option: str, among: Collection[str] = tuple(NAMES)) -> Limit:
    """Parse ``f1=0.6``, given with `option`, as a limit on one of `among`. Raises InputError."""
    figure, _, number = (part.strip() for part in text.partition("="))
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if figure not in among or not 0 <= value <= (1.0 if figure in RATIOS else sys.float_info.max):
        raise InputError(
            f"{option} {text} is not a limit on a figure.",
            remedy=f"Write {option} FIGURE=NUMBER with one of: {', '.join(among)}; precision, "
            "recall and f1 are between 0 and 1.",
        )
    return Limit(figure=figure, at=at, limit=value)


def decide(
    rows: pd.DataFrame,
    limits: Sequence[Limit] = (),
    *,
    baseline: Baseline | None = None,
    now: BaselineOrigin | None = None,
    allowed: Mapping[str, float] = DEFAULT_DROPS,
    partly: bool = False,
    mapped: float | None = None,
) -> Gate:
    """Check the rows of `reached` against the limits and, if given, a baseline. `now` is the origin
    of the rows. `allowed` is how much the mean of a figure may drop. `partly`: only some of the
    queries were measured. `mapped` is the share of labels that were mapped to other chunks, if any.
    Raises InputError if the baseline has none of the queries."""
    within = tuple(_within(rows, limit) for limit in limits)
    if baseline is None or now is None:
        return Gate(within)
    known = rows["id"].isin(baseline.queries)
    if not known.any():
        raise InputError(
            "None of the baseline's queries is among the labelled queries.",
            remedy="Create a new one.",
            action="baseline",
        )
    notes = [
        f"The baseline is of {words}. Renew it if that is intended."
        for name, words in ORIGINS.items()
        if getattr(baseline, name) != getattr(now, name)
    ]
    relevant = {i: {*keys.split()} for i, keys in zip(rows["id"], rows["relevant"], strict=True)}
    before = {i: {*each.relevant.split()} for i, each in sorted(baseline.queries.items())}
    moved = {i for i, keys in before.items() if relevant.get(i, keys) - keys}
    lost = {i: n for i, keys in before.items() if (n := len(keys) - len(relevant.get(i, keys))) > 0}
    missing = sorted(before.keys() - relevant.keys())
    gone = [*(lost.keys() - moved), *([] if partly else missing)]
    # If a source was removed, most of its labels are gone, and few are found elsewhere.
    changed = mapped is not None and baseline.collection_version != now.collection_version
    rechunked = changed and len(moved) > len(gone)
    if rechunked:
        notes.insert(0, f"Chunking changed, labels mapped: {mapped:.0%}.")
    reset = wording.changed(*(Settings().with_values(each.settings) for each in (baseline, now)))
    if reset:
        notes.append(f"The settings have changed: {'; '.join(reset)}.")
    if partly and missing:
        notes.append(
            f"{len(missing)} of {len(baseline.queries)} questions in the baseline were not "
            f"measured, such as {missing[0]!r}."
        )
    new = rows["id"][~known]
    if len(new):
        notes.append(
            f"Not compared, because the baseline lacks them: {len(new)} of {len(rows)} "
            f"questions, such as {new.iloc[0]!r}."
        )
    both, were = rows[known], answers(baseline)
    drops = tuple(_drop(name, most, were, both) for name, most in allowed.items())
    worse = not all(drop.passed for drop in drops)
    drift = shifts(were.loc[both["id"]], both)
    same = both[~both["id"].isin(lost)]
    if worse and (baseline.model, baseline.space) != (now.model, now.space):
        verdict = "The embedding model has changed: recalibrate, then renew the baseline."
    elif worse and rechunked:
        verdict = "The chunking has changed: recalibrate, then renew the baseline."
        verdict += " So have the settings: gate the old ones to tell the effects apart." if reset else ""
    elif worse and lost and (same.empty or all(_drop(*each, were, same).passed for each in allowed.items())):
        verdict = "Labels are gone: get them back, or renew the baseline."
    else:
        verdict = what_moved(drift, worse=worse)
    whole = None if partly else _gone(missing, {} if rechunked else lost)
    return Gate(within, drops, whole, tuple(notes), drift, verdict)


def answers(baseline: Baseline) -> pd.DataFrame:
    """What each query of a baseline reached, by its id."""
    rows = [each.model_dump() for each in baseline.queries.values()]
    return pd.DataFrame(rows, index=pd.Index(baseline.queries, dtype=object), columns=[*ReachedFigures.model_fields])


def shifts(before: pd.DataFrame, now: pd.DataFrame) -> tuple[Shift, ...]:
    """How the figures of two samples of questions differ. A figure is left out if one sample is too small for it. Both
    have the columns ``nearness`` (NaN without distances), ``kept`` and ``fell_back``."""
    with extra("eval"):
        from scipy.stats import fisher_exact, ks_2samp

    def apart(a: Any, b: Any) -> Any:
        return ks_2samp(a, b, method="asymp").pvalue

    def shares(a: Any, b: Any) -> Any:
        return fisher_exact([[each.sum(), len(each) - each.sum()] for each in (a, b)]).pvalue

    figures: tuple[tuple[str, Callable[[Any], Any], Callable[[Any, Any], Any]], ...] = (
        (SEARCHED, lambda each: each["nearness"].dropna(), apart),
        ("chunks kept", lambda each: each["kept"], apart),
        ("share of empty results", lambda each: each["kept"] == 0, shares),
        ("share of fallbacks", lambda each: each["fell_back"], shares),
    )
    compared = []
    for name, values, test in figures:
        a, b = (values(side).to_numpy(dtype=np.float64) for side in (before, now))
        if min(len(a), len(b)) >= MIN_QUERIES:
            chance = float(test(a, b))
            moved = chance < LEVEL / len(figures)
            compared.append(Shift(figure=name, before=a.mean(), now=b.mean(), p_value=chance, moved=moved))
    return tuple(compared)


def mover(before: pd.DataFrame, now: pd.DataFrame) -> str:
    """What moved if the samples of `shifts` differ in distance: the questions, if those in both are as near as before.
    Without enough of them, this cannot be told. Both have the column ``asked``."""
    both = before.merge(now, on="asked", suffixes=("", "_now")).dropna(subset=["nearness", "nearness_now"])
    if both["asked"].nunique() < MIN_QUERIES:
        return "The questions, the corpus or the model moved (the log has too few of the baseline's questions to tell)"
    moved = (both["nearness"] - both["nearness_now"]).abs().quantile(0.9)
    return "The questions moved" if moved <= STILL else MOVED


def what_moved(compared: Sequence[Shift], *, worse: bool = False, who: str = MOVED) -> str:
    """What moved, in a sentence; empty if nothing moved and the filter is not `worse` either. `who` is from `mover`."""
    moved = [shift for shift in compared if shift.moved]
    figures = ", ".join(map(str, moved))
    if any(shift.figure == SEARCHED for shift in moved):
        return f"{who}: {figures}."
    near = any(shift.figure == SEARCHED for shift in compared)
    if worse and compared:
        return f"The filter got worse{': the search finds chunks as near as before' if near else ''}."
    return f"The filter decides differently{' on similar distances' if near else ''}: {figures}." if moved else ""


def read_log(path: Path, collection: str) -> pd.DataFrame:
    """Read the questions to a collection from a log that ragfilter wrote as JSON lines, for `shifts`. Other lines are
    skipped. Raises InputError if there are none."""
    questions, others = [], set()
    for line in read_lines(path):
        try:
            row = _LogLine.model_validate_json(line)
        except ValueError:
            continue
        if row.collection in (None, "", collection):
            near = np.nan if row.nearness is None else row.nearness
            questions.append((near, row.kept, bool(row.fallback), query_id(row.query)))
        else:
            others.add(row.collection)
    if not questions:
        only = f" to the collection {collection!r}, only to {', '.join(sorted(others))}" if others else ""
        raise InputError(
            f"{path} has no questions{only}.",
            remedy="Pass the baseline of a collection that the log has."
            if others
            else "Write the log with --log json, or write the records of the logger ragfilter, with their fields, as "
            "JSON lines.",
        )
    return pd.DataFrame(questions, columns=["nearness", "kept", "fell_back", "asked"])


def broken(checks: Iterable[Check], texts: Mapping[str, str]) -> list[str]:
    """The questions that break these checks, each in one line with all its reasons; at most
    `SHOWN`, and how many more there are. `texts` has the questions by id. Questions come in the
    order of the checks. Limits on a mean should come last: they also name unchanged questions."""
    reasons: dict[str, list[str]] = {}
    for one in checks:
        for i, reason in ({} if one.passed else one.reasons).items():
            reasons.setdefault(i, []).append(reason)
    lines = [f"{query_name(i, texts.get(i, ''), WIDTH)}: {', '.join(why)}" for i, why in islice(reasons.items(), SHOWN)]
    more = len(reasons) - SHOWN
    return [*lines, f"… and {more} more"] if more > 0 else lines


def junit(gate: Gate, collection: str, texts: Mapping[str, str]) -> str:
    """The checks as JUnit XML, with the questions that break each of them."""
    root = Element(
        "testsuite",
        name=f"ragfilter gate {collection}",
        tests=str(len(gate.every)),
        failures=str(sum(not one.passed for one in gate.every)),
    )
    for one in gate.every:
        case = SubElement(root, "testcase", classname="ragfilter.gate", name=one.name)
        if not one.passed:
            failure = SubElement(case, "failure", message=one.line)
            failure.text = "\n".join([one.line, *broken([one], texts)])
    body = _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", mend_characters(tostring(root, encoding="unicode")))
    return f'<?xml version="1.0" encoding="utf-8"?>\n{body}\n'


def _within(rows: pd.DataFrame, limit: Limit) -> Check:
    """Whether a mean is within a limit. The queries beyond it break the check."""
    values = rows.set_index("id")[limit.figure].astype(float)
    mean, name = fmean(values), NAMES[limit.figure]
    beyond = values[[limit.breaks(value) for value in values]]
    worst = beyond.sort_values(ascending=limit.at == "least", kind="stable").to_dict()
    write = numbers.apart if limit.figure in RATIOS else "{:g} {} {:g}".format
    passed, sign = not limit.breaks(mean), "<" if limit.at == "least" else ">"
    return Check(
        name=f"{name} at {limit.at} {limit.limit:g}",
        passed=passed,
        line=f"mean {name} {mean:.3f}, at {limit.at} {limit.limit:g}",
        reasons={str(i): f"{name} {write(value, sign, limit.limit)}" for i, value in worst.items()},
        figures=asdict(limit) | {"value": mean, "passed": passed, "beyond": worst},
    )


def _drop(figure: str, allowed: float, were: pd.DataFrame, rows: pd.DataFrame) -> Check:
    """Whether a mean dropped by no more than is `allowed` since the baseline, whose `answers` these `were`, and no
    query lost `SEVERE` (of 1) or more. All queries that lost something are named."""
    now = rows.set_index("id")[figure].astype(float).round(DIGITS)
    before = were.loc[now.index, figure]
    changes = now - before
    lost = changes[changes < -EPSILON].sort_values(kind="stable").to_dict()
    severe = {i: change for i, change in lost.items() if change <= -SEVERE + EPSILON}
    was, mean, chance = fmean(before), fmean(now), permutation_p(changes.to_numpy())
    passed = not severe and (was - mean <= allowed + EPSILON or chance >= SIGNIFICANT)
    several = f"; {counted(len(severe), 'question')} lost 0.5 or more" if severe else ""
    return Check(
        name=f"{NAMES[figure]} against the baseline",
        passed=passed,
        line=f"mean {NAMES[figure]} {mean:.3f}, baseline {was:.3f}: {signed(mean - was)}, "
        f"may drop {allowed:g} ({p_value(chance)}){several}",
        reasons={str(i): f"{NAMES[figure]} {signed(each)}" for i, each in lost.items()},
        figures={
            "figure": figure,
            "allowed": allowed,
            "before": was,
            "value": mean,
            "p_value": chance,
            "passed": passed,
            "severe": severe,
            "lost": lost,
        },
    )


def _gone(missing: Sequence[str], fewer: Mapping[str, int]) -> Check:
    """Whether all queries of the baseline were measured, and none has fewer relevant chunks."""
    counts = ((len(missing), "labelled question"), (sum(fewer.values()), "relevant label"))
    gone = ", ".join(counted(n, what) for n, what in counts if n)
    return Check(
        name="questions and relevant chunks of the baseline",
        passed=not gone,
        line=f"gone since the baseline: {gone}; if that is intended, renew it"
        if gone
        else "all questions and relevant chunks of the baseline are there",
        reasons={**dict.fromkeys(missing, "not measured"), **{i: f"{n} fewer relevant" for i, n in fewer.items()}},
        figures={"queries": missing, "relevant": fewer},
    )
