"""What `ragfilter compare` and `experiment` share: the same queries under several settings.

If they are stopped early (Ctrl+C, a failure), both print the finished measurements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragfilter.cli import parts
from ragfilter.cli.options import Labelled, Place
from ragfilter.cli.table import percent, table
from ragfilter.errors import InputError

if TYPE_CHECKING:
    from ragfilter.evaluate.beir import Labels
    from ragfilter.evaluate.sides import Measured, Side, SideMeans
    from ragfilter.model import User

HEAD = (
    "side", "kept", "P", "R", "F1", "F1 at most", "noise cut", "context tokens", "LLM tokens",
    "ms", "LLM ms", "fallbacks",
)  # fmt: skip
QUERY_HEAD = ("query", "side", "kept", "P", "R", "context tokens", "LLM tokens", "ms", "")
ID_WIDTH, ERROR_WIDTH = 30, 100


def read_files(labelled: Labelled) -> Labels | None:
    """The chosen queries of files or of a demo, with labels or without; None for a query set of the
    workspace. Raises InputError."""
    from ragfilter.evaluate import beir, labels

    queries = labelled.queries
    bare = labelled.qrels is None and not labelled.llm
    if bare and queries not in labels.DEMOS and labels.are_files(queries, None):
        return labels.pick(
            beir.Labels(beir.read_queries(Path(queries)), {}),
            only=labelled.only or (),
            leave_out=labelled.leave_out or (),
        )
    return labelled.read_files()


def _first(labels: Labels, limit: int | None) -> Labels:
    """The first queries; where there are labels, of those that have some."""
    queries = labels.labelled or labels.queries
    return replace(labels, queries=dict(islice(queries.items(), limit)))


def measure_sides(
    what: str,
    sides: Sequence[Side],
    labelled: Labelled,
    place: Place,
    user: User,
    *,
    limit: int | None,
    as_json: bool,
    needs_labels: bool = False,
) -> None:
    """Measure every query under every side, and print what came out. Raises InputError."""
    from ragfilter.evaluate import sides as measuring

    measured: list[measuring.Measured] = []
    unknown: list[str] = []

    def report() -> None:
        complete = len(measured) == total
        if not measured and not complete:
            return
        if as_json:
            head = place.head(incomplete) | {
                "queries": len(labels.queries),
                "complete": complete,
                "unknown_labels": unknown,
            }
            parts.emit(parts.dumps(head | document(measured, sides)))
        else:
            parts.emit(text(measured, sides, place.collection, total=total))

    known = read_files(labelled)
    if needs_labels and known is not None and not known.qrels:
        raise InputError("--qrels is missing.", remedy=f"`{what}` needs labelled queries.")
    show = parts.progress("measurements")
    with place.open(what) as bench:
        # Checked before anything is read, so that the answer comes at once.
        measuring.check(sides, bench.chat)
        backends = parts.backends(bench, place.collection)
        incomplete = backends.incomplete
        # If clearance is on for one side, nothing that it hides is mentioned.
        strictest = max((s.settings for s in sides), key=lambda each: each.clearance.enabled)
        found = known or labelled.read_set(bench, place.collection, user, strictest)
        found, missing = parts.visible_labels(found, backends, user, strictest)
        unknown += missing
        if found.qrels:
            parts.warn_few(found)
            for side in sides:
                parts.warn_in_sample(side.settings, found, place.collection, side.name)
        labels = _first(found, limit)
        total = len(labels.queries) * len(sides)
        with parts.at_the_end(report):
            for one in measuring.measure(labels.queries, labels.qrels, sides, backends, user):
                measured.append(one)
                show(len(measured), total)


def document(measured: Sequence[Measured], sides: Sequence[Side]) -> dict[str, Any]:
    """Plain values: means by side, then every measurement."""
    from ragfilter.evaluate.sides import means

    return {
        "sides": [asdict(side) for side in means(measured, sides)],
        "per_query": [_document(one) for one in measured],
    }


def text(
    measured: Sequence[Measured], sides: Sequence[Side], collection: str, *, total: int
) -> str:
    """The means of every side, then every measurement; it is said where some of `total` miss."""
    from ragfilter.evaluate.sides import means

    every = means(measured, sides)
    n = every[0].queries if every else 0
    head = f"{collection}: means over {n} {'query' if n == 1 else 'queries'}"
    if len(measured) < total:
        head += f"; stopped after {len(measured)} of {total} measurements"
    lines = [head, "", table(HEAD, [_means(one) for one in every])]
    lines.append(table(QUERY_HEAD, [_row(one) for one in measured]))
    return "\n".join(lines)


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


def _row(one: Measured) -> tuple[str, ...]:
    from ragfilter.report import short_title

    return (
        parts.query_name(one.id, one.query, ID_WIDTH),
        one.side,
        str(one.kept),
        _score(one.scores.precision if one.scores else None),
        _score(one.scores.recall if one.scores else None),
        f"{one.context_tokens:,}",
        f"{one.llm_tokens:,}",
        f"{one.ms:,.0f}",
        f"fallback: {short_title(one.error, ERROR_WIDTH)}" if one.fallback else "",
    )


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _document(one: Measured) -> dict[str, Any]:
    scores = asdict(one.scores) if one.scores else dict.fromkeys(("precision", "recall", "f1"))
    return {
        "side": one.side,
        "id": one.id,
        "query": one.query,
        "kept": one.kept,
        "ids": list(one.ids),
        **scores,
        "f1_most": one.f1_most,
        "unlabelled": one.unlabelled,
        "irrelevant": one.irrelevant,
        "context_tokens": one.context_tokens,
        "llm_tokens": one.llm_tokens,
        "ms": round(one.ms, 3),
        "llm_ms": round(one.llm_ms, 3),
        "fallback": one.fallback,
        "error": one.error,
    }
