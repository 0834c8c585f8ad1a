"""What the command line prints: plain text for people, and the smaller JSON documents. Pure.

The JSON of `query` is made in `ragfilter.report`, that of `eval` in `ragfilter.evaluate.run`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from ragfilter.answer.context import Context
from ragfilter.answer.stream import Answer
from ragfilter.evaluate.run import Evaluation, Means, QueryRow
from ragfilter.model import Result
from ragfilter.report import (
    Row,
    Summary,
    judge_stats,
    kept_first,
    rows,
    seen,
    short_title,
    summary,
)
from ragfilter.text import numbers

WIDTH = 140
SHOWN = 15
"""How many dropped hits are listed unless all are asked for."""


def query_text(
    result: Result, *, profile: str, width: int | None = None, every: bool = False
) -> str:
    """The result: one line of figures, the layers, the kept hits, then those that fell.

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
    lines = [f"answer ({label})", answer.text]
    for number in answer.citations:
        hit = context.chunks[number - 1]
        lines.append(f"  [{number}] {hit.chunk.name} ({hit.id})")
    if not answer.extractive and not answer.error:
        usage = answer.usage
        about = "about " if usage.estimated else ""
        cost = "" if answer.cost is None else f", cost {numbers.money(answer.cost)}"
        lines.append(
            f"{about}{usage.prompt_tokens:,} prompt and {usage.completion_tokens:,} answer tokens, "
            f"{numbers.ms(answer.ms)}{cost}"
        )
    return "\n".join(lines) + "\n"


def answer_document(answer: Answer, context: Context) -> dict[str, Any]:
    """What `query --json --answer` adds under ``answer``."""
    return {
        "text": answer.text,
        "citations": [context.chunks[number - 1].id for number in answer.citations],
        "unknown_citations": list(answer.unknown_citations),
        "model": answer.model,
        "extractive": answer.extractive,
        "prompt": [asdict(message) for message in answer.prompt],
        "prompt_tokens": answer.usage.prompt_tokens,
        "completion_tokens": answer.usage.completion_tokens,
        "estimated": answer.usage.estimated,
        "cost": answer.cost,
        "error": answer.error,
        "ms": round(answer.ms, 3),
    }


def evaluation_text(evaluation: Evaluation) -> str:
    """Means, best fixed k and one line a query."""
    k = evaluation.k
    best = evaluation.best_fixed_k
    sides = [
        (f"unfiltered, k {k}", evaluation.unfiltered),
        (f"best fixed k, {best.k}", best.means),
        ("filtered", evaluation.filtered),
    ]
    n = len(evaluation.rows)
    count = "1 labelled query" if n == 1 else f"{n} labelled queries"
    lines = [count, "", _MEANS_HEAD]
    lines += [_means_line(name, means) for name, means in sides]
    lines += ["", f"noise reduction {percent(evaluation.noise_reduction)}", "", _QUERY_HEAD]
    lines += [_query_line(row) for row in evaluation.rows]
    if evaluation.unlabelled:
        lines += ["", f"{len(evaluation.unlabelled)} queries without labels are left out"]
    waiting = sum(row.waiting for row in evaluation.rows)
    if waiting:
        lines += ["", f"in {waiting} queries a layer was missing something and fell back"]
    return "\n".join(lines) + "\n"


def table(head: Sequence[str], body: Iterable[Sequence[object]]) -> str:
    """Left-aligned columns under a head."""
    cells = [[str(cell) for cell in line] for line in (head, *body)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
    made = ("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in cells)
    return "\n".join(line.rstrip() for line in made) + "\n"


def percent(share: float | None) -> str:
    """``87.5%``; ``-`` for None."""
    return "-" if share is None else f"{100 * share:.1f}%"


def _figures(result: Result, view: Summary, profile: str) -> str:
    return (
        f"{view.kept} kept of {view.retrieved} | {view.headline} | "
        f"about {numbers.tokens(view.tokens)}, "
        f"{numbers.count(view.tokens_unfiltered)} unfiltered | {result.pool.collection}, "
        f"{result.pool.space}, profile {profile}"
    )


def _layers(view: Summary) -> list[str]:
    return [
        f"  {layer.name:10s} {layer.n_in:5d} -> {layer.n_out:<5d} "
        f"{numbers.ms(layer.ms):>9s}  {layer.line}"
        for layer in view.layers
        if layer.enabled
    ]


def _judged(result: Result) -> list[str]:
    """The judge's figures in one line; nothing where it did nothing."""
    stats = judge_stats(result)
    if stats is None:
        return []
    told = f"{stats.kept} of {stats.original} candidates stay, {percent(stats.reduction)} cut"
    if stats.expanded:
        told += f", {stats.expanded} brought by references"
    if stats.shortened:
        room = numbers.tokens(result.settings.judge.max_prompt_tokens)
        told += f", {stats.shortened} shortened to fit {room}"
    if stats.fallback:
        return ["", f"judge fell back: {told}; {stats.error}"]
    tokens = f"{stats.prompt_tokens:,} + {stats.completion_tokens:,} tokens"
    time = "cached" if stats.cached else numbers.ms(stats.ms)
    return ["", f"judge: {told} | {tokens}, {time} | {stats.model}, {stats.prompt_version}"]


def _clip(line: str, width: int | None) -> str:
    return line if width is None or len(line) <= width else f"{line[: max(width - 1, 0)]}…"


def _title_width(listed: Sequence[Row], width: int | None) -> int:
    longest = max((len(row.title) for row in listed), default=0)
    return min(longest, max(24, ((width or WIDTH) - 34) // 2))


def _hit(row: Row, title_width: int) -> str:
    place = f"{row.place:3d}." if row.place is not None else "    "
    title = short_title(row.title, title_width).ljust(title_width)
    outcome = "" if row.outcome in ("kept", "dropped") else f"{row.outcome}, "
    score = "" if row.rerank_score is None else f"  rerank {numbers.distance(row.rerank_score)}"
    return (
        f"{place} rank {row.rank:3d}  {numbers.distance(row.distance)}{score}  {title}  "
        f"{row.layer}: {outcome}{row.reason}"
    )


_MEANS_HEAD = f"{'mean':20s} {'precision':>9s} {'recall':>7s} {'F1':>7s} {'kept':>6s}"
_QUERY_HEAD = (
    f"{'query':34s} {'relevant':>8s} {'kept':>5s} {'P':>6s} {'R':>6s} {'F1':>6s} "
    f"{'F1 unfiltered':>13s} {'noise cut':>9s} {'lost':>4s}  status"
)


def _means_line(name: str, means: Means) -> str:
    return (
        f"{name:20s} {means.precision:9.3f} {means.recall:7.3f} {means.f1:7.3f} "
        f"{means.mean_kept:6.1f}"
    )


def _query_line(row: QueryRow) -> str:
    scores = row.filtered.scores
    return (
        f"{short_title(row.id, 34):34s} {len(row.relevant):8d} {row.filtered.kept:5d} "
        f"{scores.precision:6.3f} {scores.recall:6.3f} {scores.f1:6.3f} "
        f"{row.unfiltered.scores.f1:13.3f} {percent(row.noise_reduction):>9s} "
        f"{len(row.lost):4d}  {row.status}"
    )
