"""The output of `ragfilter eval` and `ragfilter runs`: rows, paired comparisons and queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pandas as pd

from ragfilter.answer.stream import Prices
from ragfilter.cli.output import percent, table, text_of
from ragfilter.evaluate import frame, wording
from ragfilter.evaluate.crossval import Interval
from ragfilter.evaluate.frame import Paired, Row, cells, interval_of
from ragfilter.evaluate.measure import QueryRecord
from ragfilter.evaluate.metrics import FIGURES
from ragfilter.text.numbers import money, p_value, signed
from ragfilter.text.titles import query_name

QUERY_WIDTH, CHANGES = 34, 10


def documents(table: pd.DataFrame) -> list[Row]:
    """The rows of a frame as plain values, None for figures that were not measured."""
    return cells(table.astype(object).where(table.notna(), None))


def rows_text(rows: pd.DataFrame, prices: Prices | None = None) -> str:
    """The rows as text: means, with an interval for F1."""
    columns: dict[str, Callable[[Row], str]] = {"": lambda row: row["variant"]}
    for figure, spec in FIGURES.items():
        if "eval" in spec.tables:
            columns[figure if spec.label.lower() == figure else spec.label] = partial(_mean, figure)
        if figure == "f1":
            columns["95% of f1"] = lambda row: _ends(interval_of(row, "f1"))
    columns["noise cut"] = lambda row: percent(row["noise_reduction"])
    if prices:
        columns["cost of 1,000"] = lambda row: money(prices.of_thousand(row["tokens"]), prices.currency)
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


def questions_text(questions: pd.DataFrame) -> str:
    """The figures of each query under the run's own settings; see `frame.questions`."""
    heads = ("query", "lost", "F1", "against unfiltered", "P", "R", "kept", "relevant", "unlabelled")
    return table(
        heads,
        [
            (
                query_name(row["id"], row["query"], QUERY_WIDTH),
                row["lost"],
                f"{row['f1']:.3f}",
                signed(row["gain"]),
                f"{row['precision']:.3f}",
                f"{row['recall']:.3f}",
                row["kept"],
                row["relevant"],
                f"{row['unlabelled']:.0f}",
            )
            for row in cells(questions)
        ],
    )


def paired_text(pairs: Paired, sides: pd.DataFrame, a: str, b: str) -> str:
    """Two sides as text, with the queries that changed most."""
    if not pairs.queries:
        return "The two sides have no queries in common.\n"
    return text_of(
        f"{b} against {a}, F1: {pairs.wins} better, {pairs.losses} worse, {pairs.ties} the same",
        f"mean {wording.gain(pairs.gain)}, {p_value(pairs.p_value)} (paired permutation test)",
        *(
            f"  {signed(row['gain'])}  {query_name(row['id'], row['query'], QUERY_WIDTH)}"
            for row in cells(frame.most_changed(sides))[:CHANGES]
            if row["gain"]
        ),
    )


def several_text(
    records: Sequence[QueryRecord], rows: pd.DataFrame, reference: str, prices: Prices | None, *, each_query: bool
) -> str:
    """The `rows` of variants as text, compared with `reference`. `each_query` adds the queries that changed most."""
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
    return text


def _gain(row: Row) -> str:
    gain = interval_of(row, "gain")
    return wording.gain(gain) if gain and gain.mean else "–"


def _mean(figure: str, row: Row) -> str:
    return "–" if pd.isna(row[figure]) else frame.written(figure, row[figure])


def _ends(interval: Interval | None) -> str:
    return wording.between_ends(interval, "{:.3f}".format, " – ") if interval else "–"
