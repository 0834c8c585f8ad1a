"""What `ragfilter compare` and `ragfilter experiment` print for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ragfilter.cli.text import percent, table
from ragfilter.evaluate.experiment import Measured, Side, SideMeans, means
from ragfilter.report import short_title

HEAD = (
    "side", "kept", "P", "R", "F1", "noise cut", "context tokens", "LLM tokens", "ms", "LLM ms",
    "fallbacks",
)  # fmt: skip
QUERY_HEAD = ("query", "side", "kept", "P", "R", "context tokens", "LLM tokens", "ms", "")
ID_WIDTH, ERROR_WIDTH = 30, 100


def text(
    measured: Sequence[Measured], sides: Sequence[Side], collection: str, *, total: int
) -> str:
    """The means of every side, then every measurement; it is said where some of `total` miss."""
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
        percent(one.noise_reduction),
        f"{one.context_tokens:,.0f}",
        f"{one.llm_tokens:,.0f}",
        f"{one.ms:,.0f}",
        f"{one.llm_ms:,.0f}",
        str(one.fallbacks),
    )


def _row(one: Measured) -> tuple[str, ...]:
    return (
        short_title(one.id, ID_WIDTH),
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
