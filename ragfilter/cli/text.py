"""The text that `ragfilter query` prints, and the answer in its JSON. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ragfilter.answer.context import Context
from ragfilter.answer.stream import DOUBT, Answer
from ragfilter.cli.table import percent
from ragfilter.model import PoolResult
from ragfilter.report import (
    ChunkRow,
    Summary,
    first,
    judge_stats,
    kept_first,
    remarks,
    rows,
    seen,
    summary,
    verdict_rows,
)
from ragfilter.text import numbers
from ragfilter.text.titles import short_title

WIDTH = 140
SHOWN = 15
"""How many dropped hits are listed by default."""


def query_text(
    result: PoolResult, *, profile: str, width: int | None = None, every: bool = False
) -> str:
    """The result: one line of figures, the layers, the kept hits, then the dropped ones.

    Lines are cut at `width` characters; None cuts nothing.
    """
    result = seen(result)
    view = summary(result)
    listed = kept_first(rows(result))
    kept = [row for row in listed if row.kept]
    fell = [row for row in listed if not row.kept]
    shown = fell if every else fell[:SHOWN]
    lines = [result.query, _figures(result, view, profile), ""]
    lines += _layers(view)
    lines += _judged(result)
    if result.message:
        lines += ["", result.message]
    title_width = _title_width([*kept, *shown], width)
    if kept:
        lines += ["", "kept", *(_hit(row, title_width) for row in kept)]
    if shown:
        lines += ["", "dropped", *(_hit(row, title_width) for row in shown)]
    if len(fell) > len(shown):
        lines.append(f"  … and {len(fell) - len(shown)} more; --all lists them")
    for need in result.needs:
        lines.append(f"waits for {need.kind}: {need.why}")
    return "\n".join(_clip(line, width) for line in lines) + "\n"


def answer_text(answer: Answer, context: Context) -> str:
    """The answer, labelled, with its sources."""
    label = "extractive: quoted sentences, no model" if answer.extractive else answer.model
    doubt = [DOUBT.format(why=answer.doubt)] if answer.doubt else []
    lines = [f"answer ({label})", *doubt, answer.text]
    for number in answer.citations:
        hit = context.chunks[number - 1]
        lines.append(f"  [{number}] {hit.chunk.name} ({hit.id})")
    if not answer.extractive and not answer.error:
        usage = answer.usage
        about = "about " if usage.estimated else ""
        cost = ""
        if answer.cost is not None:
            cost = f", cost {numbers.money(answer.cost, answer.currency)}"
        lines.append(
            f"{about}{usage.prompt_tokens:,} prompt and {usage.completion_tokens:,} answer tokens, "
            f"{numbers.ms(answer.ms)}{cost}{', cached' if answer.cached else ''}"
        )
    return "\n".join(lines) + "\n"


def answer_document(answer: Answer, context: Context) -> dict[str, Any]:
    """The value that `query --json --answer` adds under ``answer``."""
    return {
        "text": answer.text,
        "citations": [context.chunks[number - 1].id for number in answer.citations],
        "unknown_citations": list(answer.unknown_citations),
        "model": answer.model,
        "extractive": answer.extractive,
        "doubt": answer.doubt,
        "prompt": [asdict(message) for message in answer.prompt],
        **asdict(answer.usage),
        "cost": answer.cost,
        "currency": answer.currency,
        "error": answer.error,
        "ms": round(answer.ms, 3),
        "cached": answer.cached,
    }


def _figures(result: PoolResult, view: Summary, profile: str) -> str:
    return (
        f"{view.kept} kept of {view.retrieved} | {view.headline} | "
        f"about {numbers.tokens(view.tokens)}, "
        f"{numbers.count(view.tokens_unfiltered)} unfiltered "
        f"({first(view.unfiltered, view.left_out)}) | "
        f"{result.pool.collection}, "
        f"{result.pool.space}, profile {profile}"
    )


def _layers(view: Summary) -> list[str]:
    return [
        f"  {layer.name:10s} {layer.n_in:5d} -> {layer.n_out:<5d} "
        f"{numbers.ms(layer.ms):>9s}  {layer.line}"
        for layer in view.layers
        if layer.enabled
    ]


def _judged(result: PoolResult) -> list[str]:
    """The judge's figures in one line, then what was not obeyed; empty if it did nothing."""
    stats = judge_stats(result)
    if stats is None:
        return []
    told = f"{stats.kept} of {stats.original} candidates kept, {percent(stats.reduction)} cut"
    if stats.expanded:
        told += f", {stats.expanded} brought in by references"
    if stats.shortened:
        room = numbers.tokens(result.settings.judge.max_prompt_tokens)
        told += f", {stats.shortened} shortened to fit {room}"
    ignored = [f"  ignored in its reply: {remark}" for remark in remarks(result)]
    if stats.fallback:
        return ["", f"judge fell back: {told}; {stats.error}", *ignored]
    decided = Counter(row.said for row in verdict_rows(result) if row.said)
    said = ", ".join(f"{n} {action}" for action, n in sorted(decided.items()))
    tokens = numbers.exchanged(stats.prompt_tokens, stats.completion_tokens)
    time = "cached" if stats.cached else numbers.ms(stats.ms)
    whole = f"judge: {told} | {tokens}, {time} | {stats.model}, {stats.prompt_version}"
    return ["", whole, f"  decisions: {said}", *ignored]


def _clip(line: str, width: int | None) -> str:
    return line if width is None or len(line) <= width else f"{line[: max(width - 1, 0)]}…"


def _title_width(listed: Sequence[ChunkRow], width: int | None) -> int:
    longest = max((len(row.title) for row in listed), default=0)
    return min(longest, max(24, ((width or WIDTH) - 42) // 2))


def _hit(row: ChunkRow, title_width: int) -> str:
    place = f"{row.place:3d}." if row.place is not None else "    "
    title = short_title(row.title, title_width).ljust(title_width)
    outcome = "" if row.outcome in ("kept", "dropped") else f"{row.outcome}, "
    score = "" if row.rerank_score is None else f"  rerank {numbers.distance(row.rerank_score)}"
    rank = f"rank {row.rank:3d}" if row.rank else "brought "
    sure = f"  {row.confidence:6s}" if row.confidence else ""
    return (
        f"{place} {rank}  {numbers.distance(row.distance)}{sure}{score}  {title}  "
        f"{row.layer}: {outcome}{row.reason}"
    )
