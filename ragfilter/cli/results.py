"""What `ragfilter eval` and `ragfilter runs` print of a measurement: rows, pairs and queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ragfilter.cli.output import percent, table
from ragfilter.evaluate import caveats, frame
from ragfilter.evaluate.crossval import Interval
from ragfilter.evaluate.evaluation import Evaluation, Means, QueryRow
from ragfilter.evaluate.frame import Paired, Row, cells, interval_of
from ragfilter.evaluate.maps import pareto
from ragfilter.evaluate.measure import QueryRecord
from ragfilter.evaluate.variants import Variant
from ragfilter.text.numbers import counted, money, p_value, signed
from ragfilter.text.titles import query_name, short_title

if TYPE_CHECKING:
    from ragfilter.answer.stream import Prices

QUERY_WIDTH, ERROR_WIDTH, CHANGES = 34, 100, 10
SHARES = ("precision", "recall", "f1", "f2", "ndcg")
FORMS = dict.fromkeys(SHARES, ".3f") | {"kept": ".1f", "tokens": ",.0f", "ms": ".1f"}
LAYER_GAINS = ("f1", "recall", "tokens")
COSTS = ("query_ms", "llm_tokens", "llm_ms")


def named(figure: str) -> str:
    """A figure's name in documents and tables."""
    return "chunks" if figure == "kept" else figure


def interval_document(found: Interval | None) -> dict[str, Any] | None:
    """A mean with its 95% interval; null if it was not measured."""
    return None if found is None else {"mean": found.mean, "ci": found.ends}


def rows_document(rows: pd.DataFrame, prices: Prices | None) -> list[dict[str, Any]]:
    """The rows of `frame.rows` as plain values. `cost` is that of the prompts of 1,000 questions,
    null without prices."""
    return [
        {"name": row["variant"], "group": row["group"], "about": row["about"]}
        | {named(each): interval_document(interval_of(row, each)) for each in frame.FIGURES}
        | {"cost": interval_document(frame.cost(row, prices) if prices else None)}
        for row in cells(rows)
    ]


def rows_text(rows: pd.DataFrame, prices: Prices | None, *, intervals: bool) -> str:
    """The rows as text: means first, then their intervals (only F1's unless `intervals`)."""
    priced = ("cost of 1,000",) if prices else ()
    means, ends = [], []
    measures = FORMS if intervals else {"f1": FORMS["f1"]}
    for row in cells(rows):
        cost = frame.cost(row, prices) if prices else None
        price = (money(cost.mean, prices.currency),) if prices and cost else ()
        shown = {each: _mean(row[each], form) for each, form in FORMS.items()}
        means.append((row["variant"], *(shown[each] for each in FORMS if each != "ms"), *price,
                      shown["ms"]))  # fmt: skip
        own = (_ends(interval_of(row, each), form) for each, form in measures.items())
        ends.append((row["variant"], *own, f"{row['f1_most']:.3f}"))
    head = ("", *SHARES, "chunks", "tokens", *priced, "ms")
    text = table(head, means)
    text += "".join(f"{row['variant']}: {row['about']}\n" for row in cells(rows) if row["about"])
    text += "\n95% intervals, and F1 if all unlabelled chunks were relevant\n"
    return text + table(("", *map(named, measures), "F1 upper bound"), ends)


def layers_document(gains: pd.DataFrame) -> list[dict[str, Any]]:
    """What each layer contributes, as plain values."""
    return [
        {"layer": row["layer"], "group": row["group"]}
        | {name: interval_document(interval_of(row, name)) for name in LAYER_GAINS}
        for row in cells(gains)
    ]


def layers_text(gains: pd.DataFrame) -> str:
    """The same as text."""
    lines = [
        (row["layer"], row["group"], *(_gain(row, name) for name in LAYER_GAINS))
        for row in cells(gains)
    ]
    return table(("layer", "", "F1", "recall", "tokens"), lines)


def questions_document(queries: pd.DataFrame) -> list[dict[str, Any]]:
    """The figures of each query with the run's own settings, as plain values; see
    `frame.questions`."""
    return [
        {"id": row["id"], "query": row["query"], "relevant": row["relevant"], "lost": row["lost"],
         "gain": row["gain"]}
        | {named(each): float(row[each]) for each in frame.FIGURES}
        for row in cells(queries)
    ]  # fmt: skip


def paired_document(pairs: Paired, sides: pd.DataFrame) -> dict[str, Any]:
    """Two sides as plain values."""
    return {
        "queries": pairs.queries,
        "wins": pairs.wins,
        "losses": pairs.losses,
        "ties": pairs.ties,
        "gain": {"f1": pairs.gain.mean, "ci": pairs.gain.ends},
        "p_value": pairs.p_value,
        "changes": [
            {"id": row["id"], "f1": row["gain"]} for row in cells(frame.most_changed(sides))
        ],
    }


def paired_text(pairs: Paired, sides: pd.DataFrame, a: str, b: str) -> str:
    """Two sides as text, with the queries that changed most."""
    if not pairs.queries:
        return "The two sides have no queries in common.\n"
    lines = [
        f"{b} against {a}, F1 over {counted(pairs.queries, 'query')}: {pairs.wins} better, "
        f"{pairs.losses} worse, {pairs.ties} the same",
        f"mean {caveats.gain(pairs.gain)}, {p_value(pairs.p_value)} (paired permutation test)",
    ]
    changes = [(row["gain"], query_name(row["id"], row["query"], QUERY_WIDTH))
               for row in cells(frame.most_changed(sides))]  # fmt: skip
    loss, query = min(changes)
    lines += [f"largest loss: {query}, {signed(loss)}"] if loss < 0 else []
    lines += [f"  {signed(gain)}  {query}" for gain, query in changes[:CHANGES] if gain]
    return "\n".join(lines) + "\n"


def several_document(
    records: Sequence[QueryRecord],
    variants: Sequence[Variant],
    reference: str,
    prices: Prices | None,
) -> dict[str, Any]:
    """Variants side by side as plain values: a row for each, compared with the `reference`, and
    every query with each of them."""
    rows = _several(records, variants, reference)
    extra = ("noise_reduction", *COSTS, "fallbacks", "wins", "losses", "ties", "p_value", "front")
    documents = [
        document
        | {name: _json(row.get(name)) for name in extra}
        | {"gain": interval_document(interval_of(row, "gain")) if "gain" in row else None}
        for document, row in zip(
            rows_document(rows, prices), cells(rows), strict=True
        )
    ]  # fmt: skip
    return {"against": reference, "rows": documents, "per_query": _queries(records)}


def several_text(
    records: Sequence[QueryRecord],
    variants: Sequence[Variant],
    reference: str,
    *,
    each_query: bool,
) -> str:
    """The same as text. `each_query` lists what changed most, and every query with each variant."""
    rows = _several(records, variants, reference)
    compared = [row for row in cells(rows) if row["variant"] != reference]
    head = ("", "chunks", "P", "R", "F1", "F1 upper bound", "noise cut, own k", "tokens",
            "LLM tokens", "ms", "whole query ms", "LLM ms", "fallbacks", "gain in F1", "",
            "front")  # fmt: skip
    text = table(head, map(_several_line, cells(rows)))
    text += (
        f"gain: over {reference}. front: no other settings have more recall for as few tokens.\n"
    )
    if not each_query:
        return text
    each = frame.frame(records, by="query")
    sides = frame.by_variant(each)
    for row in compared:
        if row["variant"] in sides and row["group"] == "settings":
            both = frame.side_by_side(sides[reference], sides[row["variant"]])
            pairs = frame.paired(both)
            if pairs.queries:
                text += "\n" + paired_text(pairs, both, reference, row["variant"])
    names = ("query", "", "chunks", "P", "R", "tokens", "LLM tokens", "ms", "")
    return f"{text}\n{table(names, map(_query_line, cells(each), records))}"


def _several(
    records: Sequence[QueryRecord], variants: Sequence[Variant], reference: str
) -> pd.DataFrame:
    """The rows of the variants and the bounds, with the Pareto front of recall against tokens among
    the settings."""
    rows = frame.rows(records, variants, against=reference)
    if rows.empty or rows["recall"].isna().all():
        return rows.assign(front=False)
    own = rows.index[(rows["group"] == "settings") & rows["recall"].notna()]
    front = pareto(*(rows.loc[own, each].to_numpy(np.float64) for each in ("recall", "tokens")))
    return rows.assign(front=rows.index.isin(own[front]))


def _several_line(row: Row) -> tuple[str, ...]:
    gain = interval_of(row, "gain") if "gain" in row else None
    shares = (_mean(row[each], ".3f") for each in ("precision", "recall", "f1", "f1_most"))
    noise = row["noise_reduction"]
    return (
        row["variant"], f"{row['kept']:.1f}", *shares,
        percent(None if pd.isna(noise) else noise), f"{row['tokens']:,.0f}",
        f"{row['llm_tokens']:,.0f}", _mean(row["ms"], ".1f"), f"{row['query_ms']:,.0f}",
        f"{row['llm_ms']:,.0f}", str(row["fallbacks"]),
        caveats.gain_short(gain) if gain and gain.mean else "–",
        p_value(row["p_value"]) if gain and gain.mean else "–", "*" if row["front"] else "",
    )  # fmt: skip


def _query_line(row: Row, record: QueryRecord) -> tuple[str, ...]:
    return (
        query_name(record.id, record.query, QUERY_WIDTH), record.variant, str(record.kept),
        _mean(row["precision"], ".3f"), _mean(row["recall"], ".3f"), f"{record.tokens:,}",
        f"{record.llm_tokens:,}", f"{record.query_ms:,.0f}",
        f"fallback: {short_title(record.error, ERROR_WIDTH)}" if record.fallback else "",
    )  # fmt: skip


def _queries(records: Sequence[QueryRecord]) -> list[dict[str, Any]]:
    figures = ("precision", "recall", "f1", "f1_most", "unlabelled")
    counts = ("kept", "lost", "tokens", "llm_tokens", "ms", "query_ms", "llm_ms", "fallback")
    each = cells(frame.frame(records, by="query"))
    return [
        {"name": record.variant, "id": record.id, "query": record.query, "ids": [*record.ids]}
        | {name: _json(row[name]) for name in figures}
        | {name: getattr(record, name) for name in (*counts, "error")}
        for row, record in zip(each, records, strict=True)
    ]


def evaluation_text(evaluation: Evaluation) -> str:
    """Means, the best fixed k and one line per query."""
    best = evaluation.best_fixed_k
    sides = [
        (f"unfiltered, k {evaluation.k}", evaluation.unfiltered),
        *([(f"best fixed k, {best.k}", best.means)] if best else []),
        ("filtered", evaluation.filtered),
    ]
    means = table(
        ("mean", "precision", "recall", "F1", "F1 upper bound", "kept"),
        [_means_line(name, of) for name, of in sides],
    )
    queries = table(
        ("query", "relevant", "kept", "P", "R", "F1", "F1 unfiltered", "noise cut", "lost",
         "status"), map(_evaluation_line, evaluation.rows),
    )  # fmt: skip
    mean, bare = evaluation.filtered, len(evaluation.unlabelled)
    parts = [
        counted(len(evaluation.rows), "labelled query"),
        means,
        "best fixed k: each query with the k that is best on the others" if best else "",
        caveats.unlabelled(mean.mean_kept, mean.unlabelled, mean.f1, mean.f1_most),
        f"noise reduction {percent(evaluation.noise_reduction)}",
        queries,
        f"left out: {counted(bare, 'query')} without a usable label" if bare else "",
        caveats.fell_back(sum(row.waiting for row in evaluation.rows)),
    ]
    return "\n\n".join(part.rstrip() for part in parts if part) + "\n"


def _evaluation_line(row: QueryRow) -> tuple[object, ...]:
    own = row.filtered.scores
    shares = (own.precision, own.recall, own.f1, row.unfiltered.scores.f1)
    return (
        query_name(row.id, row.query, QUERY_WIDTH),
        row.n_relevant,
        row.filtered.kept,
        *(f"{share:.3f}" for share in shares),
        percent(row.noise_reduction),
        len(row.lost),
        row.status,
    )


def _means_line(name: str, means: Means) -> tuple[str, ...]:
    shares = (means.precision, means.recall, means.f1, means.f1_most)
    return (name, *(f"{share:.3f}" for share in shares), f"{means.mean_kept:.1f}")


def _gain(row: Row, name: str) -> str:
    gain = interval_of(row, name)
    return caveats.gain_short(gain, 0 if name == "tokens" else 3) if gain else "–"


def _mean(value: float, form: str) -> str:
    return "–" if pd.isna(value) else f"{value:{form}}"


def _ends(found: Interval | None, form: str) -> str:
    return caveats.between_ends(found, f"{{:{form}}}".format, " – ") if found else "–"


def _json(value: Any) -> Any:
    """A cell as JSON knows it."""
    if value is None or pd.isna(value):
        return None
    return value.item() if isinstance(value, np.generic) else value
