"""What `ragfilter eval` and `ragfilter runs` print of a measurement: rows, pairs and queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragfilter.cli.output import percent, table
from ragfilter.evaluate import frame, wording
from ragfilter.evaluate.crossval import Interval
from ragfilter.evaluate.frame import Paired, Row, cells, interval_of
from ragfilter.evaluate.measure import QueryRecord
from ragfilter.evaluate.variants import Variant
from ragfilter.text.numbers import money, p_value, signed
from ragfilter.text.titles import query_name, short_title

if TYPE_CHECKING:
    from ragfilter.answer.stream import Prices

QUERY_WIDTH, ERROR_WIDTH, CHANGES = 34, 100, 10
FORMS = dict.fromkeys(("precision", "recall", "f1", "f2", "ndcg"), ".3f") | {
    "kept": ".1f", "tokens": ",.0f", "ms": ".1f",
}  # fmt: skip
COUNTED = (
    "noise_reduction", "query_ms", "llm_tokens", "llm_ms", "fallbacks", "wins", "losses", "ties",
    "p_value",
)  # fmt: skip
"""What a row of `frame.rows` has without an interval; the last four if it is compared."""


def named(figure: str) -> str:
    """A figure's name in documents and tables."""
    return "chunks" if figure == "kept" else figure


def interval_document(interval: Interval | None) -> dict[str, Any] | None:
    """A mean with its 95% interval; null if it was not measured."""
    return None if interval is None else {"mean": interval.mean, "ci": interval.ends}


def rows_document(rows: pd.DataFrame, prices: Prices | None) -> list[dict[str, Any]]:
    """The rows of `frame.rows` as plain values. `cost` is for the prompts of 1,000 questions,
    null without prices."""
    return [
        {"name": row["variant"], "group": row["group"], "about": row["about"]}
        | {named(each): interval_document(interval_of(row, each)) for each in frame.MEANS}
        | {"cost": interval_document(frame.cost(row, prices) if prices else None)}
        | {name: _json(row[name]) for name in COUNTED if name in row}
        | ({"gain": interval_document(interval_of(row, "gain"))} if "gain" in row else {})
        for row in cells(rows)
    ]


def rows_text(rows: pd.DataFrame, prices: Prices | None = None) -> str:
    """The rows as text: means, and F1 with its interval."""
    columns: dict[str, Callable[[Row], str]] = {"": lambda row: row["variant"]}
    for figure, form in FORMS.items():
        columns[named(figure)] = partial(_mean, figure, form)
        if figure == "f1":
            columns["95% of f1"] = lambda row: _ends(interval_of(row, "f1"))
    columns["F1 upper bound"] = partial(_mean, "f1_most", ".3f")
    columns["noise cut"] = lambda row: percent(_json(row["noise_reduction"]))
    if prices:
        columns["cost of 1,000"] = lambda row: money(
            prices.of_thousand(row["tokens"]), prices.currency
        )
    if rows["llm_tokens"].any():
        columns["LLM tokens"] = lambda row: f"{row['llm_tokens']:,.0f}"
        columns["LLM ms"] = lambda row: f"{row['llm_ms']:,.0f}"
        columns["fallbacks"] = lambda row: str(row["fallbacks"])
    if rows["query_ms"].any():
        columns["whole query ms"] = lambda row: f"{row['query_ms']:,.0f}"
    if "gain" in rows:
        columns["gain in F1"] = _gain
        columns["p"] = lambda row: p_value(row["p_value"]) if row["gain"] else "–"
    body = [[cell(row) for cell in columns.values()] for row in cells(rows)]
    about = "".join(f"{row['variant']}: {row['about']}\n" for row in cells(rows) if row["about"])
    return table([*columns], body) + about


def questions_document(questions: pd.DataFrame) -> list[dict[str, Any]]:
    """The figures of each query with the run's own settings, as plain values; see
    `frame.questions`."""
    names = ("id", "query", "relevant", "lost", "gain")
    return [
        {name: row[name] for name in names}
        | {named(each): float(row[each]) for each in frame.MEANS}
        for row in cells(questions)
    ]


def questions_text(questions: pd.DataFrame) -> str:
    """The same as text."""
    heads = ("query", "lost", "F1", "against unfiltered", "P", "R", "kept", "relevant",
             "unlabelled")  # fmt: skip
    return table(heads, [
        (query_name(row["id"], row["query"], QUERY_WIDTH), row["lost"], f"{row['f1']:.3f}",
         signed(row["gain"]), f"{row['precision']:.3f}", f"{row['recall']:.3f}", row["kept"],
         row["relevant"], f"{row['unlabelled']:.0f}") for row in cells(questions)])  # fmt: skip


def paired_document(pairs: Paired, sides: pd.DataFrame) -> dict[str, Any]:
    """Two sides as plain values."""
    changes = [{"id": row["id"], "f1": row["gain"]} for row in cells(frame.most_changed(sides))]
    counts = {name: getattr(pairs, name) for name in ("queries", "wins", "losses", "ties")}
    gain = {"f1": pairs.gain.mean, "ci": pairs.gain.ends}
    return counts | {"gain": gain, "p_value": pairs.p_value, "changes": changes}


def paired_text(pairs: Paired, sides: pd.DataFrame, a: str, b: str) -> str:
    """Two sides as text, with the queries that changed most."""
    if not pairs.queries:
        return "The two sides have no queries in common.\n"
    lines = [
        f"{b} against {a}, F1: {pairs.wins} better, {pairs.losses} worse, {pairs.ties} the same",
        f"mean {wording.gain(pairs.gain)}, {p_value(pairs.p_value)} (paired permutation test)",
    ]
    lines += [
        f"  {signed(row['gain'])}  {query_name(row['id'], row['query'], QUERY_WIDTH)}"
        for row in cells(frame.most_changed(sides))[:CHANGES]
        if row["gain"]
    ]
    return "\n".join(lines) + "\n"


def several_document(
    records: Sequence[QueryRecord],
    variants: Sequence[Variant],
    reference: str,
    prices: Prices | None,
) -> dict[str, Any]:
    """Variants side by side as plain values: a row for each, compared with the `reference`, and
    every query with each of them."""
    rows = frame.rows(records, variants, against=reference)
    figures = ("precision", "recall", "f1", "f1_most", "unlabelled")
    counts = ("kept", "lost", "tokens", "llm_tokens", "ms", "query_ms", "llm_ms", "fallback")
    queries = [
        {"name": record.variant, "id": record.id, "query": record.query, "ids": [*record.ids]}
        | {name: _json(row[name]) for name in figures}
        | {name: getattr(record, name) for name in (*counts, "error")}
        for row, record in zip(cells(frame.frame(records, by="query")), records, strict=True)
    ]
    return {"against": reference, "rows": rows_document(rows, prices), "per_query": queries}


def several_text(
    records: Sequence[QueryRecord],
    variants: Sequence[Variant],
    reference: str,
    prices: Prices | None,
    *,
    each_query: bool,
) -> str:
    """The same as text. `each_query` adds what changed most, and the queries whose LLM failed."""
    rows = frame.rows(records, variants, against=reference)
    if rows.empty:
        return ""
    text = rows_text(rows, prices)
    text += f"gain: over {reference}.\n"
    if not each_query:
        return text
    sides = frame.by_variant(frame.frame(records, by="query"))
    for row in cells(rows[rows["group"] == "settings"]):
        if row["variant"] != reference:
            both = frame.side_by_side(sides[reference], sides[row["variant"]])
            pairs = frame.paired(both)
            if pairs.queries:
                text += "\n" + paired_text(pairs, both, reference, row["variant"])
    failed = [
        f"{query_name(record.id, record.query, QUERY_WIDTH)}, {record.variant}: fallback: "
        f"{short_title(record.error, ERROR_WIDTH)}\n"
        for record in records
        if record.fallback
    ]
    return text + "".join(["\n", *failed] if failed else [])


def _gain(row: Row) -> str:
    gain = interval_of(row, "gain")
    return wording.gain_short(gain) if gain and gain.mean else "–"


def _mean(figure: str, form: str, row: Row) -> str:
    return "–" if pd.isna(row[figure]) else f"{row[figure]:{form}}"


def _ends(interval: Interval | None) -> str:
    return wording.between_ends(interval, "{:.3f}".format, " – ") if interval else "–"


def _json(value: Any) -> Any:
    """A cell as JSON knows it."""
    if value is None or pd.isna(value):
        return None
    return value.item() if isinstance(value, np.generic) else value
