"""`ragfilter query`: what is kept for a question, what is dropped, and why."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragfilter import report
from ragfilter.answer.context import Context
from ragfilter.answer.stream import DOUBT, Answer
from ragfilter.cli import access, output
from ragfilter.cli.app import command
from ragfilter.cli.options import (
    Filtering,
    GapThreshold,
    Json,
    Place,
    refuse_beside,
    refuse_without,
    setting,
)
from ragfilter.cli.output import percent
from ragfilter.engine.whatif import changes, wording
from ragfilter.judge import call
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
from ragfilter.report.trace import explain
from ragfilter.settings.schema import Settings
from ragfilter.text import numbers
from ragfilter.text.titles import short_title


@command()
def query(
    text: Annotated[str, typer.Argument(help="The question.")],
    place: Place,
    filtering: Filtering,
    k: Annotated[
        str | None,
        typer.Option(
            "-k",
            metavar="N",
            help="Maximum number of results. Sets retrieval.k, cutoff.max_results, "
            "judge.max_chunks and quality.min_top_k (and quality.max_top_k if it is smaller).",
        ),
    ] = None,
    gap_threshold: GapThreshold = None,
    distance_threshold: Annotated[
        str | None,
        setting("cutoff.distance_offset", "--distance-threshold", metavar="NUMBER"),
    ] = None,
    files: Annotated[str | None, setting("retrieval.source_pattern", "--files")] = None,
    rerank: Annotated[
        bool | None,
        typer.Option(
            "--rerank/--no-rerank",
            help="Whether the LLM judges the chunks of this query. Without it, the first "
            "judge.max_chunks are kept, unless the cutoff is on.",
            show_default=False,
        ),
    ] = None,
    references: Annotated[
        bool,
        typer.Option(
            "--references/--no-references",
            help="With --json: add each hit's references as refs.",
        ),
    ] = False,
    answer: Annotated[bool, typer.Option("--answer", help="Answer from the kept chunks.")] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Print the trace (with --json: on standard error).")
    ] = False,
    why: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Explain one chunk instead: what each layer decided about it, and the smallest "
            "changes that would bring it back or drop it.",
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="List every dropped chunk.")] = False,
    as_json: Json = False,
) -> int:
    """Query a collection and see what is kept, what is dropped, and why."""
    flags: dict[str, dict[str, object]] = {
        "-k": {"retrieval.k": k, "cutoff.max_results": k, "judge.max_chunks": k},
        "--gap-threshold": {"cutoff.gap_threshold": gap_threshold},
        "--distance-threshold": {"cutoff.distance_offset": distance_threshold},
        "--files": {"retrieval.source_pattern": files},
        "--rerank": {"judge.enabled": rerank or None},
    }
    if why is not None:
        refuse_beside("--why", answer=answer, debug=debug, all=every, references=references)
    elif not as_json:
        refuse_without("--json", references=references)
    loaded, user = filtering.load(flags)
    if k is not None:
        loaded = replace(loaded, settings=looking_first_at_k(loaded.settings))
    if rerank is False:
        loaded = replace(loaded, settings=call.without(loaded.settings))

    with place.open("query") as bench:
        result = access.ask(text, loaded.settings, access.backends(bench, place.collection), user)
        answered = access.answer_of(result, bench) if answer else None
    if why is not None:
        output.emit(why_document(result, why) if as_json else why_text(result, why))
        return 0
    if as_json:
        document = report.document(result, references=references) | {
            "profile": loaded.profile,
            "settings": result.settings.model_dump(),
            "origins": dict(loaded.origins),
        }
        if answered is not None:
            document["answer"] = answer_document(*answered)
        if debug:
            typer.echo(report.trace_text(result), err=True, nl=False)
        output.emit(document)
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        body = (
            report.trace_text(result)
            if debug
            else query_text(result, profile=loaded.profile, width=width, every=every)
        )
        output.emit(body + ("\n" + answer_text(*answered) if answered else ""))
    if answered is not None and answered[0].error:
        return output.fail(f"The answer failed: {answered[0].error}")
    return 0


if TYPE_CHECKING:
    pass

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


def why_text(result: PoolResult, chunk_id: str) -> str:
    """Every layer's decision and the smallest changes, as lines of text. Raises InputError."""
    kept = any(hit.id == chunk_id for hit in result.kept)
    verb = "drop it" if kept else "bring it back"
    lines = [explain(result, chunk_id), f"What would {verb}:"]
    found = [(each.words, each.came, each.went) for each in changes(result, chunk_id)]
    asked = wording(result, chunk_id)
    if asked is not None:
        found.append((f"Add to the question: {', '.join(asked.terms)}", asked.came, asked.went))
    for words, came, went in found:
        others = [f"+ {', '.join(came)}"] if came else []
        others += [f"− {', '.join(went)}"] if went else []
        lines.append(f"  {words}" + (f"  ({'; '.join(others)})" if others else ""))
    return "\n".join(lines if found else [*lines, "  no single change"]) + "\n"


def why_document(result: PoolResult, chunk_id: str) -> dict[str, Any]:
    """The same as plain values. Raises InputError."""
    asked = wording(result, chunk_id)
    return {
        "id": chunk_id,
        "incomplete": result.pool.incomplete,
        "kept": any(hit.id == chunk_id for hit in result.kept),
        "explanation": explain(result, chunk_id),
        "changes": [asdict(each) | {"words": each.words} for each in changes(result, chunk_id)],
        "question": None if asked is None else asdict(asked),
    }


def looking_first_at_k(settings: Settings) -> Settings:
    """`settings` whose quality layer looks at the first k hits to begin with, and at no fewer
    overall.

    Source: Adaptive Retrieval System, "Core Method" (its top_k overrides MIN_TOP_K).
    """
    k = settings.retrieval.k
    last = max(k, settings.quality.max_top_k)
    return settings.with_values({"quality.min_top_k": k, "quality.max_top_k": last})
