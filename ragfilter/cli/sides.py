"""Code shared by `ragfilter compare` and `experiment`: the same queries with several settings.

If they are stopped early (Ctrl+C, a failure), both print the finished measurements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Any

from ragfilter.cli import parts
from ragfilter.cli.labelled import LabelledOptions, warn_in_sample, warn_of
from ragfilter.cli.options import Place
from ragfilter.cli.output import percent, table
from ragfilter.evaluate import paired, told
from ragfilter.evaluate.paired import Paired
from ragfilter.evaluate.sides import Measurement, Side, SideMeans, check, means, measure, pairs
from ragfilter.layers.clearance import viewer
from ragfilter.model import User
from ragfilter.text.numbers import counted, p_value, signed
from ragfilter.text.query_id import query_name
from ragfilter.text.titles import short_title

if TYPE_CHECKING:
    from ragfilter.workbench import Workbench

HEAD = (
    "side", "kept", "P", "R", "F1", "F1 upper bound", "noise cut, own k", "context tokens",
    "LLM tokens", "ms", "LLM ms", "fallbacks",
)  # fmt: skip
QUERY_HEAD = ("query", "side", "kept", "P", "R", "context tokens", "LLM tokens", "ms", "")
ID_WIDTH, ERROR_WIDTH, CHANGES = 30, 100, 10


def measure_sides(
    what: str,
    sides: Sequence[Side],
    labelled: LabelledOptions,
    place: Place,
    user: User | None,
    *,
    limit: int | None,
    as_json: bool,
    needs_labels: bool = False,
) -> None:
    """Measure every query with every side, and print the results. Raises InputError."""
    show = parts.progress("measurements")
    # One user for all sides. Without one, a side for the public makes it the public.
    user = viewer(user, max((s.settings for s in sides), key=lambda each: each.clearance.enabled))

    def refuse(bench: Workbench) -> None:
        check(sides, bench.chat)

    with labelled.open(what, place, user, bare=not needs_labels, check=refuse) as opened:
        notes: list[str] = []
        if opened.labels.qrels:
            warn_of(opened.labels)
            for side in sides:
                notes += warn_in_sample(side.settings, opened.labels, place.collection, side.name)
        # If there are labels, only queries with labels.
        every = opened.labels.labelled or opened.labels.queries
        queries = dict(islice(every.items(), limit))
        total = len(queries) * len(sides)
        measured: list[Measurement] = []

        def report() -> None:
            complete = len(measured) == total
            if not measured and not complete:
                return
            head = place.head(opened.backends.incomplete) | {
                "queries": len(queries),
                "complete": complete,
                "unknown_labels": opened.unknown,
                "with_llm": labelled.llm,
                "notes": notes,
            }
            if as_json:
                parts.emit(head | document(measured, sides))
            else:
                parts.emit(text(measured, sides, place.collection, total=total))

        with parts.at_the_end(report):
            for one in measure(queries, opened.labels.qrels, sides, opened.backends, user):
                measured.append(one)
                show(len(measured), total)


def document(measured: Sequence[Measurement], sides: Sequence[Side]) -> dict[str, Any]:
    """The result as plain values: means by side, sides in pairs, then every measurement."""
    return {
        "sides": [asdict(side) for side in means(measured, sides)],
        "pairs": [
            {"a": a, "b": b} | paired.document(made) for a, b, made in pairs(measured, sides)
        ],
        "per_query": [_document(one) for one in measured],
    }


def text(
    measured: Sequence[Measurement], sides: Sequence[Side], collection: str, *, total: int
) -> str:
    """The means of every side, each two sides in pairs, then every measurement, with a note if some
    of `total` are missing."""
    every = means(measured, sides)
    n = every[0].queries if every else 0
    head = f"{collection}: means over {counted(n, 'query')}"
    if len(measured) < total:
        head += f"; stopped after {len(measured)} of {total} measurements"
    lines = [head, "", table(HEAD, [_means(one) for one in every])]
    names = {one.id: query_name(one.id, one.query, ID_WIDTH) for one in measured}
    lines += [paired_text(made, a, b, names) for a, b, made in pairs(measured, sides)]
    lines.append(table(QUERY_HEAD, [_row(one) for one in measured]))
    return "\n".join(lines)


def paired_text(made: Paired, a: str, b: str, names: Mapping[str, str]) -> str:
    """A comparison as text, with the queries that changed most; `names` has the name of each query
    by id."""
    if not made.queries:
        return "The two sides have no queries in common.\n"
    gain = made.gain
    lines = [
        f"{b} against {a}, F1 over {counted(made.queries, 'query')}: {made.wins} better, "
        f"{made.losses} worse, {made.ties} the same",
        f"mean {told.gain(gain)}, {p_value(made.p_value)} (paired permutation test)",
    ]
    if made.worst is not None and made.worst[1] < 0:
        lines.append(f"largest loss: {names[made.worst[0]]}, {signed(made.worst[1])}")
    lines += [f"  {signed(change)}  {names[i]}" for i, change in made.changes[:CHANGES] if change]
    return "\n".join(lines) + "\n"


def _means(one: SideMeans) -> tuple[str, ...]:
    return (
        one.side,
        f"{one.kept:.1f}",
        _score(one.precision),
        _score(one.recall),
        _score(one.f1),
        _score(one.f1_most),
        percent(one.noise_reduction),
        f"{one.context_tokens:,.0f}",
        f"{one.llm_tokens:,.0f}",
        f"{one.ms:,.0f}",
        f"{one.llm_ms:,.0f}",
        str(one.fallbacks),
    )


def _row(one: Measurement) -> tuple[str, ...]:
    scores = one.kept.scores
    return (
        query_name(one.id, one.query, ID_WIDTH),
        one.side,
        str(one.kept.kept),
        *(_score(each if one.labelled else None) for each in (scores.precision, scores.recall)),
        f"{one.context_tokens:,}",
        f"{one.llm_tokens:,}",
        f"{one.ms:,.0f}",
        f"fallback: {short_title(one.error, ERROR_WIDTH)}" if one.fallback else "",
    )


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _document(one: Measurement) -> dict[str, Any]:
    kept = one.kept
    figures = asdict(kept.scores) | {
        "f1_most": kept.f1_most, "unlabelled": kept.unlabelled, "irrelevant": kept.irrelevant,
    }  # fmt: skip
    return {
        "side": one.side,
        "id": one.id,
        "query": one.query,
        "kept": kept.kept,
        "ids": list(kept.ids),
        **(figures if one.labelled else dict.fromkeys(figures)),
        "context_tokens": one.context_tokens,
        "llm_tokens": one.llm_tokens,
        "ms": round(one.ms, 3),
        "llm_ms": round(one.llm_ms, 3),
        "fallback": one.fallback,
        "error": one.error,
    }
