"""The gate: whether a filter meets its limits and still reaches its baseline. Pure, except `read` and `read_log`.

A broad drop is a drop of the mean that is larger than allowed and significant in a paired permutation test. A severe
loss is a large loss of a single query, which a mean would hide. The gate also fails if queries or labelled chunks are
gone: without them, the remaining figures can look fine. The checks read rows of `evaluate.frame` by query.

Drift needs no labels: two-sample tests compare how questions are answered with the baseline. The best distance as a
share of the background shows what the search finds before the filter acts. If it moved, the corpus, the model or the
questions changed. If only other figures moved, the filter decides differently.

Source: docs/design.md#evaluate.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal
from xml.etree.ElementTree import Element, SubElement, tostring

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, FiniteFloat, ValidationError

from ragfilter.basics.files import read_lines
from ragfilter.errors import InputError, extra
from ragfilter.evaluate.frame import frame, permutation_p
from ragfilter.evaluate.measure import QueryRecord
from ragfilter.evaluate.variants import CURRENT
from ragfilter.text import numbers
from ragfilter.text.normalise import whole
from ragfilter.text.numbers import counted, p_value, signed
from ragfilter.text.titles import query_name

GATED = ("precision", "recall", "f1", "kept", "lost")
"""The figures that can be limited: means of per-query values over the labelled queries."""
SHARES = ("precision", "recall", "f1")
"""Figures that must not drop."""
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
RECHUNKED = "The chunking has changed: recalibrate, then renew the baseline."
NAMES = {
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "kept": "kept chunks",
    "lost": "lost relevant chunks",
}
WIDTH = 60
SHOWN = 20
"""Maximum number of listed questions if space is limited."""
LEVEL = 0.05
"""The probability of a false alarm over all drift figures together."""
MIN_QUERIES = 8
"""With fewer questions on a side, drift is not tested."""
SEARCHED = "best distance ÷ background"
# Characters that XML does not allow, even escaped.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Limit(_Value):
    """A figure and the value that its mean must reach (`at` least) or not exceed (`at` most)."""

    figure: str
    at: Literal["least", "most"]
    limit: float

    def breaks(self, value: float) -> bool:
        """Whether a value is beyond the limit."""
        if self.at == "least":
            return value < self.limit - EPSILON
        return value > self.limit + EPSILON


class Check(Limit):
    """A limit with the actual mean. `beyond` has the figures of single queries that break the
    limit, by id, worst first."""

    value: float
    passed: bool
    beyond: Mapping[str, float]

    def __str__(self) -> str:
        return f"{NAMES[self.figure]} at {self.at} {self.limit:g}"

    @property
    def line(self) -> str:
        """The check and its result in one line, without whether it passed."""
        return f"mean {NAMES[self.figure]} {self.value:.3f}, at {self.at} {self.limit:g}"

    @property
    def reasons(self) -> dict[str, str]:
        """The reason of each query that breaks the check, worst first."""
        sign = "<" if self.at == "least" else ">"
        write = numbers.apart if self.figure in SHARES else "{:g} {} {:g}".format
        return {i: f"{NAMES[self.figure]} {write(value, sign, self.limit)}" for i, value in self.beyond.items()}


class Drop(_Value):
    """A figure compared with the baseline, over the queries that both have. The mean went from
    `before` to `value` and may drop by `allowed`. `lost` has the changes of all queries that lost
    something, by id, worst first; `severe` of those that lost `SEVERE` (of 1) or more."""

    figure: str
    allowed: float
    before: float
    value: float
    p_value: float
    passed: bool
    severe: Mapping[str, float]
    lost: Mapping[str, float]

    def __str__(self) -> str:
        return f"{NAMES[self.figure]} against the baseline"

    @property
    def line(self) -> str:
        """As `Check` has it."""
        severe = f"; {counted(len(self.severe), 'question')} lost 0.5 or more"
        return (
            f"mean {NAMES[self.figure]} {self.value:.3f}, baseline {self.before:.3f}: "
            f"{signed(self.value - self.before)}, may drop {self.allowed:g} "
            f"({p_value(self.p_value)}){severe if self.severe else ''}"
        )

    @property
    def reasons(self) -> dict[str, str]:
        """As `Check` has it."""
        return {i: f"{NAMES[self.figure]} {signed(change)}" for i, change in self.lost.items()}


class Gone(_Value):
    """The baseline's queries that were not measured and, for its other queries, how many relevant
    chunks they have lost."""

    queries: tuple[str, ...]
    relevant: Mapping[str, int]

    def __str__(self) -> str:
        return "questions and relevant chunks of the baseline"

    @property
    def passed(self) -> bool:
        return not self.queries and not self.relevant

    @property
    def line(self) -> str:
        """As `Check` has it."""
        if self.passed:
            return "all questions and relevant chunks of the baseline are there"
        fewer = sum(self.relevant.values())
        missing = [counted(len(self.queries), "question")] if self.queries else []
        missing += [counted(fewer, "relevant chunk")] if fewer else []
        return f"missing since the baseline: {', '.join(missing)}; if that is intended, renew it"

    @property
    def reasons(self) -> dict[str, str]:
        """As `Check` has it."""
        fewer = {i: f"{n} fewer relevant" for i, n in self.relevant.items()}
        return {**dict.fromkeys(self.queries, "not measured"), **fewer}


class Shift(_Value):
    """A figure before and now: means or, for a share, from 0 to 1. `moved`: significantly."""

    figure: str
    before: float
    now: float
    p_value: float
    moved: bool

    def __str__(self) -> str:
        return f"{self.figure} {self.before:.3f} → {self.now:.3f} ({p_value(self.p_value)})"


class Gate(_Value):
    """Every check with its outcome. `gone` is None without a baseline, or if only some of the
    queries were measured. `notes` say how the baseline differs from what was measured, `drift` how
    answers to the questions have changed, and `verdict` what moved."""

    passed: bool
    gone: Gone | None
    drops: tuple[Drop, ...]
    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()
    drift: tuple[Shift, ...] = ()
    verdict: str = ""

    @property
    def every(self) -> tuple[Check | Drop | Gone, ...]:
        return (*self.checks, *self.drops, *([] if self.gone is None else [self.gone]))


class ReachedFigures(_Value):
    """The figures of one query, its number of relevant chunks, and what drift tests need: the best distance as a share
    of the background (None without distances), the number of kept chunks, and whether a layer fell back."""

    precision: FiniteFloat
    recall: FiniteFloat
    f1: FiniteFloat
    relevant: int
    nearness: FiniteFloat | None
    kept: int
    fell_back: bool


class BaselineOrigin(_Value):
    """What a baseline was measured on."""

    collection: str
    collection_version: str
    labels_version: str
    model: str
    space: str


class Baseline(BaselineOrigin):
    """The figures that every query reached, by query id."""

    queries: Mapping[str, ReachedFigures]

    def dumps(self) -> str:
        """The file's content; the same figures always give the same bytes."""
        tree = self.model_dump()
        return json.dumps(tree, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


Checked = Check | Drop | Gone


def reached(records: Iterable[QueryRecord]) -> pd.DataFrame:
    """What the current settings reached: the rows of `frame` by query."""
    return frame((each for each in records if each.variant == CURRENT), by="query")


def to_baseline(rows: pd.DataFrame, origin: BaselineOrigin) -> Baseline:
    """The baseline of these rows."""
    queries = {
        row["id"]: ReachedFigures(
            relevant=row["relevant"],
            nearness=None if pd.isna(row["nearness"]) else round(row["nearness"], DIGITS),
            kept=row["kept"],
            fell_back=row["waiting"],
            **{name: round(row[name], DIGITS) for name in SHARES},
        )
        for row in rows.to_dict("records")
    }
    return Baseline(**origin.model_dump(), queries=queries)


def read(path: Path) -> Baseline:
    """Read a baseline from its file. Raises InputError."""
    try:
        return Baseline.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        why = f"{path} cannot be read: {error.strerror}."
    except (ValidationError, ValueError, RecursionError):
        why = f"{path} is not a baseline file."
    raise InputError(why, remedy="Create a new one.", action="baseline")


def read_limit(text: str, at: Literal["least", "most"], *, option: str, among: Sequence[str] = GATED) -> Limit:
    """Parse ``f1=0.6``, given with `option`, as a limit on one of `among`. Raises InputError."""
    figure, _, number = (part.strip() for part in text.partition("="))
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if figure not in among or not 0 <= value <= (1.0 if figure in SHARES else sys.float_info.max):
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
    checks = tuple(_check(rows, limit) for limit in limits)
    passed = all(check.passed for check in checks)
    if baseline is None or now is None:
        return Gate(passed=passed, gone=None, drops=(), checks=checks)
    notes = [
        f"The baseline is of {words}. Renew it if that is intended."
        for name, words in ORIGINS.items()
        if getattr(baseline, name) != getattr(now, name)
    ]
    both = rows[rows["id"].isin(baseline.queries)]
    new = rows[~rows["id"].isin(baseline.queries)]
    if both.empty:
        raise InputError(
            "None of the baseline's queries is among the labelled queries.",
            remedy="Create a new one.",
            action="baseline",
        )
    relevant = {i: int(n) for i, n in zip(rows["id"], rows["relevant"], strict=True)}
    lost = {
        i: each.relevant - relevant[i]
        for i, each in sorted(baseline.queries.items())
        if i in relevant and each.relevant != relevant[i]
    }
    # Chunks of another size change how many are relevant to each question.
    other_version = baseline.collection_version != now.collection_version
    rechunked = mapped is not None and other_version and bool(lost)
    if rechunked:
        notes.insert(0, f"Chunking changed, labels mapped: {mapped:.0%}.")
    fewer = {} if rechunked else {i: n for i, n in lost.items() if n > 0}
    missing = tuple(sorted(baseline.queries.keys() - relevant.keys()))
    if partly and missing:
        notes.append(
            f"{len(missing)} of {len(baseline.queries)} questions in the baseline were not "
            f"measured, such as {missing[0]!r}."
        )
    if len(new):
        notes.append(
            f"Not compared, because the baseline lacks them: {len(new)} of {len(rows)} "
            f"questions, such as {new['id'].iloc[0]!r}."
        )
    drops = tuple(_drop(name, most, baseline, both) for name, most in allowed.items())
    worse = not all(drop.passed for drop in drops)
    gone = None if partly else Gone(queries=missing, relevant=fewer)
    drift = shifts(answers(baseline), both.rename(columns={"waiting": "fell_back"}))
    return Gate(
        passed=passed and not worse and (gone is None or gone.passed),
        gone=gone,
        drops=drops,
        checks=checks,
        notes=tuple(notes),
        drift=drift,
        verdict=RECHUNKED if worse and rechunked else what_moved(drift, worse=worse),
    )


def answers(baseline: Baseline) -> pd.DataFrame:
    """How the baseline's questions were answered, for `shifts`."""
    answered = [each.model_dump() for each in baseline.queries.values()]
    return pd.DataFrame(answered, columns=[*ReachedFigures.model_fields])


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


def what_moved(compared: Sequence[Shift], *, worse: bool = False) -> str:
    """What moved, in a sentence; empty if nothing moved and the filter is not `worse` either."""
    moved = [shift for shift in compared if shift.moved]
    figures = ", ".join(map(str, moved))
    if any(shift.figure == SEARCHED for shift in moved):
        return f"The corpus or the model moved: {figures}."
    if worse and compared:
        return "The filter got worse: the search finds chunks as near as before."
    return f"The filter decides differently on similar distances: {figures}." if moved else ""


def read_log(path: Path) -> pd.DataFrame:
    """Read the questions from a log that ragfilter wrote as JSON lines, for `shifts`. Other lines
    are skipped. Raises InputError if there are none."""
    questions = []
    for line in read_lines(path):
        try:
            row = json.loads(line)
            near = np.nan if row["nearness"] is None else float(row["nearness"])
            questions.append((near, int(row["kept"]), bool(row["fallback"])))
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
    if not questions:
        raise InputError(
            f"{path} has no questions.",
            remedy="Write the log with --log json, or write the records of the logger ragfilter, "
            "with their fields, as JSON lines.",
        )
    return pd.DataFrame(questions, columns=["nearness", "kept", "fell_back"])


def broken(checks: Iterable[Checked], texts: Mapping[str, str]) -> list[str]:
    """The questions that break these checks, each in one line with all its reasons; at most
    `SHOWN`, and how many more there are. `texts` has the questions by id. Questions come in the
    order of the checks. Limits on a mean should come last: they also name unchanged questions."""
    reasons: dict[str, list[str]] = {}
    for one in checks:
        for query_id, reason in ({} if one.passed else one.reasons).items():
            reasons.setdefault(query_id, []).append(reason)
    lines = [f"{query_name(i, texts.get(i, ''), WIDTH)}: {', '.join(why)}" for i, why in islice(reasons.items(), SHOWN)]
    more = len(reasons) - SHOWN
    return [*lines, f"… and {more} more"] if more > 0 else lines


def failing(gate: Gate) -> int:
    """How many questions break the gate."""
    return len({i for one in gate.every if not one.passed for i in one.reasons})


def junit(gate: Gate, collection: str, texts: Mapping[str, str]) -> str:
    """The checks as JUnit XML, with the questions that break each of them."""
    root = Element(
        "testsuite",
        name=_xml(f"ragfilter gate {collection}"),
        tests=str(len(gate.every)),
        failures=str(sum(not one.passed for one in gate.every)),
    )
    for one in gate.every:
        case = SubElement(root, "testcase", classname="ragfilter.gate", name=_xml(str(one)))
        if not one.passed:
            failure = SubElement(case, "failure", message=_xml(one.line))
            failure.text = _xml("\n".join([one.line, *broken([one], texts)]))
    body: str = tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{body}\n'


def _check(rows: pd.DataFrame, limit: Limit) -> Check:
    values = dict(zip(rows["id"], rows[limit.figure].astype(float), strict=True))
    mean = sum(values.values()) / len(values)
    beyond = {i: value for i, value in values.items() if limit.breaks(value)}
    worst = dict(sorted(beyond.items(), key=itemgetter(1), reverse=limit.at == "most"))
    return Check(**limit.model_dump(), value=mean, passed=not limit.breaks(mean), beyond=worst)


def _drop(name: str, allowed: float, baseline: Baseline, rows: pd.DataFrame) -> Drop:
    before = np.array([getattr(baseline.queries[i], name) for i in rows["id"]])
    now = np.array([round(value, DIGITS) for value in rows[name]])
    changes = now - before
    by_id = zip(rows["id"], map(float, changes), strict=True)
    lost = dict(sorted((each for each in by_id if each[1] < -EPSILON), key=itemgetter(1)))
    severe = {i: change for i, change in lost.items() if change <= -SEVERE + EPSILON}
    chance = permutation_p(changes)
    drop = float(before.mean()) - float(now.mean())
    broad = drop > allowed + EPSILON and chance < SIGNIFICANT
    return Drop(
        figure=name,
        allowed=allowed,
        before=float(before.mean()),
        value=float(now.mean()),
        p_value=chance,
        passed=not broad and not severe,
        severe=severe,
        lost=lost,
    )


def _xml(words: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", whole(words))
