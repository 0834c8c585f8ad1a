"""Figures of measured records as data frames: means, 95% intervals and paired tests. Pure.

Evaluate, Compare, `eval`, `runs`, `gate` and reports show what is computed here. Two rows are not settings. The best
fixed k is cross-validated: every query is measured with the k that is best on the other folds. The oracle keeps the
prefix of each query's unfiltered ranking with the best F1. It is not an upper bound: settings that drop chunks from
within the ranking, or reorder it, can exceed it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ragfilter.errors import extra
from ragfilter.evaluate import metrics
from ragfilter.evaluate.crossval import FOLDS, SEED, Interval, Target, folds_of, intervals, picked
from ragfilter.evaluate.metrics import FIGURES, Curve, best_prefix, by_k, counts_of, prefixes, without_nothing
from ragfilter.evaluate.query_records import QueryRecord
from ragfilter.evaluate.variants import ABOUT_ORACLE, CURRENT, FIXED, ORACLE, UNFILTERED, Variant

with extra("eval"):
    import pandas as pd

if TYPE_CHECKING:
    from ragfilter.protocols import Prices

SHARES = tuple(name for name, each in FIGURES.items() if each.kind == "share")
SCORED = (*SHARES, *(name for name, each in FIGURES.items() if each.kind == "labelled"))
"""Figures that need labels."""
COUNTED = tuple(name for name, each in FIGURES.items() if each.kind == "counted")
_COLUMNS = tuple(
    each.name
    for each in fields(QueryRecord)
    if each.name not in ("error", "status", "curve", "ids", "lost_ids", "relevant_keys")
)
ABOUT_LAYERS = (
    "Layers that are off are not listed. The judge, which calls an LLM, is listed if it is on: "
    "it is added last, and the other layers are measured without it."
)

Kind = Literal["failures", "changed", "highlights"]
KINDS: tuple[Kind, ...] = get_args(Kind)
GREAT = 0.2
"""A gain of F1 over the unfiltered first k that is worth highlighting."""
ABOUT_KINDS = (
    "Failures: a lower F1 than the unfiltered first k, or nothing relevant found. Changed: a "
    "different F1. Highlights: a gain of 0.2 or more without losing recall."
)
Row = Mapping[str, Any]
"""A row of a frame."""
SAME = 1e-9
RESAMPLES = 9999
EXACT = 12
"""Up to this many differing queries, the permutation test tries every swap of the two sides."""


@dataclass(frozen=True, slots=True)
class PairedTest:
    """Two sides over the same queries. `gain` is b's mean F1 minus a's; a win is a query with a
    higher F1 for b. `p_value` comes from a two-sided paired permutation test."""

    queries: int
    wins: int
    losses: int
    ties: int
    gain: Interval
    p_value: float


def frame(
    records: Iterable[QueryRecord], *, by: Literal["query", "variant"] = "variant", against: str = ""
) -> pd.DataFrame:
    """The figures of records.

    `by` query: a row for each record, with its counts and figures (NaN without labels). `by` variant: a row for each
    variant that all queries have, in order. It has the number of queries, the means of `SCORED` and `COUNTED` with the
    ends of their intervals (``f1``, ``f1_low``, ``f1_high``; NaN if there are too few queries), the mean costs, the
    noise reduction and the number of fallbacks. If `against` names a variant, each row is also compared with it in
    pairs: ``wins``, ``losses``, ``ties``, ``gain``, ``gain_low``, ``gain_high``, ``p_value``."""
    each = _table([{name: getattr(record, name) for name in _COLUMNS} for record in records])
    if each.empty:
        return each
    counts = metrics.Counts(each["kept"], each["found"], each["unlabelled"], each["tokens"])
    figures = metrics.figures(counts, each["relevant"])
    each = each.assign(**{name: figures[name] for name in FIGURES if name in figures})
    each = each.astype({"unlabelled": float, "labelled": bool})
    each.loc[~each["labelled"], [*SCORED]] = np.nan
    if by == "query":
        return each
    whole = each.groupby("variant")["id"].transform("size") == each["id"].nunique()
    groups = by_variant(each[whole])
    rows = [_of_variant(name, group) for name, group in groups.items()]
    if against in groups:
        for row in rows:
            pairs = paired(side_by_side(groups[against], groups[row["variant"]]))
            row |= {name: getattr(pairs, name) for name in ("wins", "losses", "ties", "p_value")}
            row |= flat({"gain": pairs.gain})
    return _table(rows)


def by_variant(each: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Split the rows of `frame` by query into one frame per variant, in order."""
    return {str(name): rows for name, rows in each.groupby("variant", sort=False)}


def with_bounds(records: Sequence[QueryRecord]) -> list[QueryRecord]:
    """Add the best fixed k and the oracle to the records. One query has no best fixed k: nothing can be held out."""
    plain = _plain(records)
    if not plain:
        return [*records]
    curves = curves_of(records)
    orders = prefixes(curves)
    counts = {name: np.asarray(table) for name, table in counts_of(curves)._asdict().items()}
    counts["ndcg"] = np.stack([by_k(each.ndcg, float(not each.relevant)) for each in curves])
    chosen = {ORACLE: best_prefix(orders)}
    if len(plain) > 1:
        folds = folds_of([record.query for record in plain], FOLDS)
        chosen[FIXED] = Target().held_out(without_nothing(orders), folds)
    bounds = [
        replace(record, variant=name, curve=None, ids=(), **kept)
        for name, columns in chosen.items()
        for record, kept in zip(plain, cells(pd.DataFrame(picked(counts, columns))), strict=True)
    ]
    return [*records, *bounds]


def curves_of(records: Iterable[QueryRecord]) -> list[Curve]:
    """The curve of every labelled query."""
    return [record.curve for record in _plain(records) if record.curve is not None]


def best_k(records: Iterable[QueryRecord]) -> int | None:
    """The k with the best mean F1 over all queries, the smallest one if tied; None with fewer than two queries."""
    curves = curves_of(records)
    if len(curves) < 2:
        return None
    return 1 + Target().choose(without_nothing(prefixes(curves)))


def rows(records: Sequence[QueryRecord], variants: Sequence[Variant], *, against: str = "") -> pd.DataFrame:
    """The table of a measurement: `frame` by variant with the bounds, in order. ``group`` is the row's group, and
    ``about`` describes it. The variants of `layer_gains` have no row. Empty without records."""
    fixed = "plain", f"{best_k(records)} over all queries; each is measured with the k that is best on the others"
    entries: dict[str, tuple[str, str]] = {}
    for each in variants:
        if each.group not in ("added", "left out"):
            entries[each.name] = each.group, each.about
        if each.plain:
            entries.setdefault(FIXED, fixed)
    entries |= {FIXED: fixed, ORACLE: ("oracle", ABOUT_ORACLE)}
    table = frame((r for r in with_bounds(records) if r.variant in entries), against=against)
    if table.empty:
        return table
    described = [entries[name] for name in table["variant"]]
    table = table.assign(group=[group for group, _ in described], about=[about for _, about in described])
    table.loc[table["group"].isin(("plain", "oracle")), ["ms", "ms_low", "ms_high"]] = np.nan
    return table.sort_values("variant", key=lambda names: names.map([*entries].index), ignore_index=True)


def ranked(table: pd.DataFrame, records: Sequence[QueryRecord], figure: str) -> list[Row]:
    """The rows of `rows`, best first by a figure, and the oracle last. Rows that keep the same
    chunks for every query are merged: ``names`` has all their names."""
    kept: dict[str, list[object]] = defaultdict(list)
    alike: dict[object, list[Row]] = defaultdict(list)
    for each in records:
        kept[each.variant].append((each.id, each.kept, each.found, each.unlabelled, each.tokens, each.ndcg))
    for row in cells(table):
        alike[tuple(kept[row["variant"]]) or row["variant"]].append(row)
    merged = [{**each[0], "names": [row["variant"] for row in each]} for each in alike.values()]
    sign = -1 if figure in SHARES else 1
    # Rows without the figure come last, before the oracle.
    return sorted(merged, key=lambda row: (row["group"] == "oracle", row[figure] is None, sign * (row[figure] or 0)))


def cells(table: pd.DataFrame) -> list[Row]:
    """The rows of a frame as plain mappings, in order; None for what was not measured."""
    plain = table.astype(object).where(table.notna(), None)
    return [{str(name): value for name, value in row.items()} for row in plain.to_dict("records")]


def interval_of(row: Row, figure: str) -> Interval | None:
    """A figure of a row of `frame` by variant, with its interval; None if it was not measured."""
    mean, low, high = (row[name] for name in (figure, f"{figure}_low", f"{figure}_high"))
    if pd.isna(mean):
        return None
    return Interval(float(mean), None if pd.isna(low) else (float(low), float(high)))


def means(values: Mapping[str, ArrayLike], *, limited: bool = True) -> dict[str, Interval]:
    """The mean of each figure with its interval, from one value per query. The ends stay in the figure's range or,
    unless `limited`, in the range of its differences."""
    table = np.stack([np.asarray(each, dtype=np.float64) for each in values.values()], axis=1)
    if not len(table):
        return dict.fromkeys(values, Interval(np.nan, None))
    most = np.array([1.0 if name in SHARES else np.inf for name in values])
    least = 0.0 if limited else -most
    return dict(zip(values, intervals(table, least, most), strict=True))


def flat(figures: Mapping[str, Interval]) -> dict[str, float]:
    """Figures as cells of a row: ``f1``, ``f1_low`` and ``f1_high``."""
    row: dict[str, float] = {}
    for name, each in figures.items():
        low, high = each.ends or (np.nan, np.nan)
        row |= {name: each.mean, f"{name}_low": low, f"{name}_high": high}
    return row


def written(figure: str, value: float) -> str:
    """A value of a figure with its decimals."""
    return f"{value:,.{FIGURES[figure].digits}f}"


def cost(row: Row, prices: Prices) -> Interval | None:
    """The cost of the prompts of 1,000 questions: the priced mean of the tokens, with its interval."""
    tokens = interval_of(row, "tokens")
    return tokens and tokens.mapped(prices.of_thousand)


def gain_over(records: Sequence[QueryRecord], baseline: str, variant: str) -> Interval | None:
    """The gain in F1 of a variant over `baseline`; None if that was not measured, like a best fixed k for one query."""
    sides = by_variant(frame(with_bounds(records), by="query"))
    return paired(side_by_side(sides[baseline], sides[variant])).gain if baseline in sides else None


def side_by_side(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """Join two sides over the queries that both have: rows of `frame` by query, one variant each. Columns appear twice,
    with the suffixes ``_a`` and ``_b``; ``gain`` is in F1. Different questions with the same id are left out."""
    both = a.merge(b, on=["id", "query"], suffixes=("_a", "_b"))
    return both.assign(gain=both["f1_b"] - both["f1_a"])


def most_changed(sides: pd.DataFrame) -> pd.DataFrame:
    """The rows of `side_by_side`, sorted by the largest change in F1 first."""
    return sides.sort_values("gain", key=lambda gain: -gain.abs(), kind="stable")


def paired(sides: pd.DataFrame) -> PairedTest:
    """Compare the two sides of `side_by_side`."""
    gains = sides["gain"].dropna().to_numpy(dtype=np.float64)
    if not len(gains):
        return PairedTest(0, 0, 0, 0, Interval(0.0, None), 1.0)
    return PairedTest(
        queries=len(gains),
        wins=int((gains > SAME).sum()),
        losses=int((gains < -SAME).sum()),
        ties=int((np.abs(gains) <= SAME).sum()),
        gain=means({"f1": gains}, limited=False)["f1"],
        p_value=permutation_p(gains),
    )


def permutation_p(gains: NDArray[np.float64]) -> float:
    """The probability of a mean difference at least this far from 0 if both sides are alike. Signs
    are flipped at random, or exhaustively if few queries differ. 1 for fewer than two queries."""
    differing = gains[np.abs(gains) > SAME]
    if len(differing) < 2:
        return 1.0
    with extra("eval"):
        from scipy.stats import permutation_test

    resamples = np.inf if len(differing) <= EXACT else RESAMPLES
    test = permutation_test(
        (differing,),
        np.mean,
        permutation_type="samples",
        n_resamples=resamples,
        rng=np.random.default_rng(SEED),
        vectorized=True,
    )
    return float(test.pvalue)


def layer_gains(records: Sequence[QueryRecord], variants: Sequence[Variant]) -> pd.DataFrame:
    """The gain of every layer over the layers before it (``group`` added), and its gain within the
    whole (left out): F1, recall and tokens with it minus without it, each with its interval. The
    judge, if it is on, is added last; leaving out another layer is measured without the judge."""
    each = frame(records, by="query")
    sides = {name: group.set_index("id") for name, group in by_variant(each).items()}
    complete = [v for v in variants if v.name in sides and len(sides[v.name]) == each["id"].nunique()]
    added = [v.name for v in complete if v.group == "added"]
    pairs = [(after, "added", after, before) for before, after in pairwise(added)]
    if any(v.name == CURRENT and v.settings.judge.enabled for v in complete):
        pairs.append(("judge", "added", CURRENT, added[-1]))
    pairs += [(v.name, v.group, added[-1], v.name) for v in complete if v.group == "left out"]
    gained = []
    for name, group, with_, without in pairs:
        gains = {each: sides[with_][each] - sides[without][each] for each in ("f1", "recall", "tokens")}
        gained.append({"layer": name.lstrip("+− "), "group": group, **flat(means(gains, limited=False))})
    return _table(gained)


def questions(records: Sequence[QueryRecord]) -> pd.DataFrame:
    """Compare the current settings with the unfiltered first k (``_a``), query by query: queries
    that lose relevant chunks first, then by F1. ``gain`` is the difference in F1."""
    each = frame(records, by="query")
    current, plain = (each[each["variant"] == name] for name in (CURRENT, UNFILTERED))
    both = side_by_side(plain, current).rename(columns=lambda name: name.removesuffix("_b"))
    return both.sort_values(["lost", "f1"], ascending=[False, True], kind="stable")


def of_kind(questions: pd.DataFrame, kind: Kind) -> pd.DataFrame:
    """The `questions` of one kind (see `ABOUT_KINDS`); highlights are sorted by the largest gain first."""
    gain, recall = questions["gain"], questions["recall"]
    chosen = {
        "failures": (gain < -SAME) | (questions["f1"] == 0),
        "changed": gain.abs() > SAME,
        "highlights": (gain >= GREAT) & (recall >= questions["recall_a"] - SAME),
    }
    rows = questions[chosen[kind]]
    return rows.sort_values("gain", ascending=False, kind="stable") if kind == "highlights" else rows


def _plain(records: Iterable[QueryRecord]) -> list[QueryRecord]:
    """The record of every labelled query's unfiltered first k; the first one if k varies."""
    first: dict[str, QueryRecord] = {}
    for record in records:
        if record.curve is not None and record.labelled:
            first.setdefault(record.id, record)
    return [*first.values()]


def _of_variant(name: str, group: pd.DataFrame) -> dict[str, Any]:
    """The row of a variant."""
    labelled = group[group["labelled"]]
    noise, left = labelled["noise"].sum(), (labelled["kept"] - labelled["found"]).sum()
    return {
        "variant": name,
        "queries": len(group),
        **flat(means({name: labelled[name] for name in SCORED})),
        **flat(means({name: group[name] for name in COUNTED})),
        **{cost: group[cost].mean() for cost in ("query_ms", "llm_tokens", "llm_ms")},
        "noise_reduction": float(1 - left / noise) if noise else None,
        "fallbacks": int(group["fallback"].sum()),
    }


def _table(rows: Sequence[Row]) -> pd.DataFrame:
    """Rows as a frame. Texts have the dtype object, because pandas' string dtype refuses lone surrogates."""
    columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else _COLUMNS)}
    return pd.DataFrame(
        {
            name: pd.Series(cells, dtype=object if any(isinstance(c, str) for c in cells) else None)
            for name, cells in columns.items()
        }
    )
