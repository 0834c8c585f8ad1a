"""`ragfilter query`: query a collection and see what is kept, what is dropped, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ragfilter.answer.answer import DOUBT, Answer, AnswerStream
from ragfilter.answer.context_packing import Context, pack
from ragfilter.cli import options, output
from ragfilter.cli.options import Filtering, GapThreshold, Place, refuse, setting
from ragfilter.cli.program import command
from ragfilter.engine.pipeline import search_and_filter
from ragfilter.engine.replay import replay_as_user
from ragfilter.judge.call import NO_LLM
from ragfilter.layers.cutoff import unknown_score_warning
from ragfilter.layers.judge import settings_without_judge
from ragfilter.model import PoolResult, User
from ragfilter.results.document import document, trace_text
from ragfilter.results.rows import ChunkRow, kept_first, rows
from ragfilter.results.summary import summary, unfiltered_label
from ragfilter.results.verdicts import judge_stats, remarks, verdict_rows, waits_for_judge
from ragfilter.settings.schema import Settings
from ragfilter.text import numbers
from ragfilter.text.titles import telling_titles

if TYPE_CHECKING:
    from ragfilter.engine.gather import Backends
    from ragfilter.workbench import Workbench

TITLE_WIDTH = 50
SHOWN = 15
"""How many dropped hits are listed by default."""


@command(json=True)
def query(
    text: Annotated[str, "The question."],
    place: Place,
    filtering: Filtering,
    k: Annotated[
        str | None,
        "-k",
        "Maximum number of results. Sets retrieval.k, cutoff.max_results, "
        "judge.max_chunks and quality.min_top_k (and quality.max_top_k if it is smaller).",
        {"metavar": "N"},
    ] = None,
    gap_threshold: GapThreshold = None,
    distance_threshold: Annotated[
        str | None, setting("cutoff.distance_offset", "--distance-threshold", metavar="NUMBER")
    ] = None,
    files: Annotated[str | None, setting("retrieval.source_pattern", "--files")] = None,
    judge: Annotated[
        bool | None,
        "--judge/--no-judge",
        "--rerank/--no-rerank",
        "Whether the LLM judges the chunks of this query. Without it, the first "
        "judge.max_chunks are kept, unless the cutoff is on.",
        {"show_default": False},
    ] = None,
    references: Annotated[bool, "With --json: add each hit's references as refs."] = False,
    answer: Annotated[bool, "Answer from the kept chunks."] = False,
    debug: Annotated[bool, "Print the trace (with --json: on standard error)."] = False,
    every: Annotated[bool, "--all", "List every dropped chunk."] = False,
) -> int:
    """Query a collection and see what is kept, what is dropped, and why."""
    flags: dict[str, dict[str, object]] = {
        "-k": {"retrieval.k": k, "cutoff.max_results": k, "judge.max_chunks": k},
        "--gap-threshold": {"cutoff.gap_threshold": gap_threshold},
        "--distance-threshold": {"cutoff.distance_offset": distance_threshold},
        "--files": {"retrieval.source_pattern": files},
        "--judge": {"judge.enabled": judge or None},
    }
    if not output.as_json:
        refuse("without --json", references=references)
    loaded, user = filtering.load(flags)
    settings = loaded.settings
    if k is not None:
        # The quality layer looks at k hits first. Source: Adaptive Retrieval System, "Core Method" (its top_k).
        first = settings.retrieval.k
        most = max(first, settings.quality.max_top_k)
        settings = settings.with_values({"quality.min_top_k": first, "quality.max_top_k": most})
    if judge is False:
        settings = settings_without_judge(settings)

    with place.open("query") as bench:
        result = ask(text, settings, place.backends(bench), user)
        answered = answer_of(result, bench) if answer else None
        endpoint, batch = bench.rerank_endpoint, settings.quality.reranker_batch
        scored = sum(hit.rerank_score is not None for hit in result.hits) if settings.quality.reranker == "http" else 0
    if output.as_json:
        printed = document(result, references=references) | {
            "profile": loaded.profile,
            "settings": result.settings.model_dump(),
            "origins": loaded.origins,
            "rerank_cost": endpoint.cost(scored, batch),
        }
        if answered is not None:
            reply, packed = answered
            citations = [packed.chunks[number - 1].id for number in reply.citations]
            printed["answer"] = output.plain(reply) | {"citations": citations, "ms": round(reply.ms, 3)}
        if debug:
            typer.echo(trace_text(result), err=True, nl=False)
        output.emit(printed)
    else:
        body = trace_text(result) if debug else query_text(result, profile=loaded.profile, every=every)
        body += f"\nreranker: {numbers.chunk_count(scored)}, {endpoint.bill(scored, batch)}\n" if scored else ""
        output.emit(body + ("\n" + answer_text(*answered) if answered else ""))
    if answered is not None and answered[0].error:
        return output.fail(f"The answer failed: {answered[0].error}")
    return 0


def ask(text: str, settings: Settings, backends: Backends, user: User) -> PoolResult:
    """Query the collection. Warns if the settings are from elsewhere or the judge has no LLM."""
    options.warn_learned_elsewhere(settings, backends)
    # Not filtered in the store, whose own filter is slow for large collections.
    result = search_and_filter(text, settings, backends, user, wide=True)
    output.warn(unknown_score_warning(result))
    if backends.chat is None and waits_for_judge(result):
        output.warn(f"The judge {NO_LLM}.")
    return result


def answer_of(result: PoolResult, bench: Workbench) -> tuple[Answer, Context]:
    """The answer from the kept chunks, with its context."""
    context = pack(result.kept, result.settings)
    limit = bench.deployment.answer_timeout_s
    stream = AnswerStream(result.query, context, bench.chat, bench.embedder, timeout_s=limit, prices=bench.prices)
    return stream.read_through(bench.answers), context


def query_text(result: PoolResult, *, profile: str, every: bool = False) -> str:
    """The result as text: a line of figures, the layers, the kept hits, then the dropped ones."""
    result = replay_as_user(result)
    view = summary(result)
    all_rows = kept_first(rows(result))
    dropped = sum(not row.kept for row in all_rows)
    listed = all_rows if every else all_rows[: len(result.kept) + SHOWN]
    hidden = len(all_rows) - len(listed)
    layers = [
        (each.layer, f"{each.n_in} -> {each.n_out}", numbers.ms(each.ms), line)
        for each, line in view.layers
        if each.enabled
    ]
    parts = [
        f"{result.query}\n{view.kept} kept of {view.retrieved} | {view.why} | "
        f"about {numbers.token_count(view.tokens)}, {numbers.count(view.tokens_unfiltered)} unfiltered "
        f"({unfiltered_label(view.unfiltered, view.left_out)}) | "
        f"{result.pool.collection}, {result.pool.space}, profile {profile}\n",
        output.table(("layer", "hits", "time", "what it did"), layers),
        _judge_lines(result),
        f"{result.message}\n" if result.message else "",
        _hit_table(listed) if listed else "",
    ]
    return output.text_of(
        "\n".join(filter(None, parts)),
        f"… and {hidden} of {dropped} dropped more; --all lists them" if hidden else "",
        *(f"waits for {need.kind}: {need.why}" for need in result.needs),
    )


def _hit_table(listed: Sequence[ChunkRow]) -> str:
    reranked = any(row.rerank_score is not None for row in listed)
    head = ("", "rank", "distance", "confidence", *(["rerank"] if reranked else []), "title", "why")
    titles = telling_titles([row.title for row in listed], TITLE_WIDTH)
    lines = [
        (
            "dropped" if row.place is None else f"{row.place}.",
            row.rank or "brought",
            numbers.distance(row.distance),
            row.confidence,
            *([numbers.distance(row.rerank_score)] if reranked else []),
            title,
            f"{row.layer}: {'' if row.outcome in ('kept', 'dropped') else f'{row.outcome}, '}{row.reason}",
        )
        for row, title in zip(listed, titles, strict=True)
    ]
    return output.table(head, lines)


def _judge_lines(result: PoolResult) -> str:
    """The judge's figures in one line, then ignored parts of its answer; empty without any."""
    stats = judge_stats(result)
    if stats is None:
        return ""
    figures = f"{stats.kept} of {stats.original} candidates kept, {output.percent(stats.reduction)} cut"
    if stats.expanded:
        figures += f", {stats.expanded} brought in by references"
    if stats.shortened:
        room = numbers.token_count(result.settings.judge.max_prompt_tokens)
        figures += f", {stats.shortened} shortened to fit {room}"
    if stats.fallback:
        lines = [f"judge fell back: {figures}; {stats.error}"]
    else:
        decided = Counter(row.said for row in verdict_rows(result) if row.said)
        verdicts = ", ".join(f"{n} {action}" for action, n in sorted(decided.items()))
        tokens = numbers.exchanged(stats.prompt_tokens, stats.completion_tokens)
        time = "cached" if stats.cached else numbers.ms(stats.ms)
        model = f"{stats.model}, {stats.prompt_version}"
        lines = [f"judge: {figures} | {tokens}, {time} | {model}", f"  decisions: {verdicts}"]
    return output.text_of(*lines, *(f"  ignored in its reply: {remark}" for remark in remarks(result)))


def answer_text(answer: Answer, context: Context) -> str:
    """The answer with a heading and its sources."""
    label = "extractive: quoted sentences, no model" if answer.extractive else answer.model
    doubt = [DOUBT.format(why=answer.doubt)] if answer.doubt else []
    lines = [f"answer ({label})", *doubt, answer.text]
    for number in answer.citations:
        hit = context.chunks[number - 1]
        lines.append(f"  [{number}] {hit.chunk.name} ({hit.id})")
    if not answer.extractive and not answer.error:
        usage = answer.usage
        about = "about " if usage.estimated else ""
        cost = "" if answer.cost is None else f", cost {numbers.money(answer.cost, answer.currency)}"
        lines.append(
            f"{about}{usage.prompt_tokens:,} prompt and {usage.completion_tokens:,} answer tokens, "
            f"{numbers.ms(answer.ms)}{cost}{', cached' if answer.cached else ''}"
        )
    return output.text_of(*lines)
