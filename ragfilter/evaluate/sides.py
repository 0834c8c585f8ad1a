"""Labelled queries under several settings, side by side.

Source: Intelligent Chunk Filtering, "Before/After Comparison Framework", "Experimental Tuning
Process" and "Metrics to Track"; docs/design.md#judge-prompts.

Every query is run again for every side, since time is measured too:

- A measurement is one query for one side. They come query by query, so after an early stop the
  finished queries have every side. Means are over the queries that every side has.
- Milliseconds are those of the whole query (store, models, LLM). A cached answer of the judge
  counts with the tokens and milliseconds of the original call.
- Without labels there is no precision, recall or noise, only tokens and times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from time import perf_counter

from ragfilter.answer.context import fits
from ragfilter.engine.replay import unfiltered
from ragfilter.engine.retrieve import gather, run
from ragfilter.engine.search import Backends
from ragfilter.errors import InputError
from ragfilter.evaluate.beir import Qrels, Queries
from ragfilter.evaluate.metrics import noise_reduction
from ragfilter.evaluate.paired import Paired, compare
from ragfilter.evaluate.run import KeptChunks, kept_of, means_of
from ragfilter.judge import call
from ragfilter.layers.registry import SWITCHES
from ragfilter.model import User
from ragfilter.protocols import ChatModel
from ragfilter.report import judge_stats
from ragfilter.settings.schema import Settings

NO_LLM = "Set OPENAI_API_KEY, or OPENAI_BASE_URL for a local server, and OPENAI_MODEL."


@dataclass(frozen=True, slots=True)
class Side:
    """Settings with a name. `plain`: the first k of a plain search, whatever fits a prompt."""

    name: str
    settings: Settings
    plain: bool = False


@dataclass(frozen=True, slots=True)
class Measurement:
    """One query for one side.

    Its figures mean nothing unless it is `labelled`. `irrelevant_before` is how many of the
    unfiltered first k are irrelevant. `context_tokens` estimates the chunks in an answer's prompt;
    `llm_tokens` and `llm_ms` are the judge's (0 if it was not asked). `fallback`: the judge failed,
    `error` says how.
    """

    side: str
    id: str
    query: str
    kept: KeptChunks
    irrelevant_before: int
    labelled: bool
    context_tokens: int
    ms: float
    llm_tokens: int = 0
    llm_ms: float = 0.0
    fallback: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class SideMeans:
    """Means of one side over `queries`. Precision to `unlabelled`, and the noise reduction, are
    over those that have labels. `fallbacks` is a count."""

    side: str
    queries: int
    kept: float
    precision: float | None
    recall: float | None
    f1: float | None
    f1_most: float | None
    unlabelled: float | None
    noise_reduction: float | None
    context_tokens: float
    llm_tokens: float
    ms: float
    llm_ms: float
    fallbacks: int


def before_and_after(sides: Sequence[Side]) -> tuple[Side, ...]:
    """`sides`, preceded by an unfiltered search for every k among them. If several have one k, it
    searches all files if one of them does."""
    off = {f"{layer}.enabled": False for layer in SWITCHES}
    by_k = {each.retrieval.k: each for each in sorted((s.settings for s in sides), key=_sees)}
    plain = (Side(f"unfiltered, k {k}", by_k[k].with_values(off), plain=True) for k in sorted(by_k))
    return (*plain, *sides)


def _sees(settings: Settings) -> tuple[bool, str]:
    """The order in which an unfiltered search takes over which files it searches: the last one
    counts."""
    pattern = settings.retrieval.source_pattern
    return not pattern, pattern


def prompt_sides(settings: Settings, variants: Sequence[str]) -> tuple[Side, ...]:
    """The result without the judge, then judged with each prompt. Raises ValueError for an unknown
    variant."""
    on = settings.with_values({"judge.enabled": True})
    judged = (Side(name, on.with_values({"judge.prompt": name})) for name in variants)
    return (Side("no judge", call.without(on)), *judged)


def measure(
    queries: Queries,
    qrels: Qrels,
    sides: Sequence[Side],
    backends: Backends,
    user: User | None = None,
) -> Iterator[Measurement]:
    """Yield every query with every side as it is measured.

    Raises InputError if a side needs an LLM and none is configured, and what `retrieve.run`
    raises.
    """
    check(sides, backends.chat)
    for number, (query_id, text) in enumerate(queries.items()):
        if number == 0:
            # Load and read everything once first, so that it does not count for the first side.
            gather(text, sides[0].settings, backends, user)
        for side in sides:
            yield _measure(query_id, text, qrels.get(query_id), side, backends, user)


def check(sides: Iterable[Side], chat: ChatModel | None) -> None:
    """Raises InputError if a side needs an LLM and none is configured."""
    if chat is None and any(side.settings.judge.enabled for side in sides):
        raise InputError("The judge needs an LLM, and none is configured.", remedy=NO_LLM)


def means(measured: Sequence[Measurement], sides: Sequence[Side]) -> tuple[SideMeans, ...]:
    """The means of every side, over the queries that all sides have. Empty if there are none."""
    names = [side.name for side in sides]
    found: dict[str, set[str]] = {}
    for one in measured:
        found.setdefault(one.id, set()).add(one.side)
    whole = {query_id for query_id, have in found.items() if have.issuperset(names)}
    if not whole:
        return ()
    return tuple(
        _side_means(name, [one for one in measured if one.side == name and one.id in whole])
        for name in names
    )


def pairs(
    measured: Sequence[Measurement], sides: Sequence[Side]
) -> Iterator[tuple[str, str, Paired]]:
    """Every side beside each one before it: their names and how F1 differs, over the labelled
    queries that both have. Nothing without labels."""
    f1 = {
        side.name: {o.id: o.kept.scores.f1 for o in measured if o.side == side.name and o.labelled}
        for side in sides
    }
    for a, b in combinations(f1, 2):
        made = compare(f1[a], f1[b])
        if made.queries:
            yield a, b, made


def _measure(
    query_id: str,
    text: str,
    labels: Mapping[str, int] | None,
    side: Side,
    backends: Backends,
    user: User | None,
) -> Measurement:
    started = perf_counter()
    result = run(text, side.settings, backends, user, wide=True)
    ms = (perf_counter() - started) * 1000
    first = unfiltered(result.pool, side.settings, result.user)
    hits = first if side.plain else result.kept
    stats = judge_stats(result)
    if stats is not None and stats.cached:
        ms += stats.ms
    before = kept_of(tuple(hit.id for hit in first), labels or {})
    return Measurement(
        side=side.name,
        id=query_id,
        query=text,
        kept=kept_of(tuple(hit.id for hit in hits), labels or {}),
        irrelevant_before=before.irrelevant,
        labelled=labels is not None,
        context_tokens=fits(hits, side.settings.context.max_context_tokens)[1],
        ms=ms,
        llm_tokens=stats.prompt_tokens + stats.completion_tokens if stats else 0,
        llm_ms=stats.ms if stats else 0.0,
        fallback=stats.fallback if stats else False,
        error=stats.error if stats else "",
    )


def _side_means(name: str, rows: Sequence[Measurement]) -> SideMeans:
    labelled = [row for row in rows if row.labelled]
    scores = means_of([row.kept for row in labelled]) if labelled else None
    return SideMeans(
        side=name,
        queries=len(rows),
        kept=fmean(row.kept.kept for row in rows),
        precision=scores.precision if scores else None,
        recall=scores.recall if scores else None,
        f1=scores.f1 if scores else None,
        f1_most=scores.f1_most if scores else None,
        unlabelled=scores.unlabelled if scores else None,
        noise_reduction=noise_reduction(
            (row.irrelevant_before, row.kept.irrelevant) for row in labelled
        ),
        context_tokens=fmean(row.context_tokens for row in rows),
        llm_tokens=fmean(row.llm_tokens for row in rows),
        ms=fmean(row.ms for row in rows),
        llm_ms=fmean(row.llm_ms for row in rows),
        fallbacks=sum(row.fallback for row in rows),
    )
