"""The same queries under several settings: filtered beside unfiltered, one prompt beside another.

Source: Intelligent Chunk Filtering, "Before/After Comparison Framework", "Experimental Tuning
Process" and "Metrics to Track"; docs/design.md#judge-prompts.

Conventions, beside those of `ragfilter.evaluate.run`:

- A measurement is one query under one side. They come query by query, so that whoever stops early
  has every side of the finished queries; means are over the queries that every side has.
- Milliseconds are those of the whole query (store, models, LLM). An answer of the judge that was
  remembered counts with the tokens and milliseconds of the call that gave it.
- Without labels there is no precision, recall and noise; tokens and times are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from time import perf_counter
from typing import Any

from ragfilter.engine.backends import Backends
from ragfilter.engine.replay import unfiltered
from ragfilter.engine.retrieve import gather, run
from ragfilter.errors import InputError
from ragfilter.evaluate.beir import Qrels, Queries
from ragfilter.evaluate.metrics import Scores, precision_recall_f1
from ragfilter.judge import call
from ragfilter.layers.registry import SWITCHES
from ragfilter.model import PUBLIC, Hit, Result, User
from ragfilter.protocols import ChatModel
from ragfilter.report import judge_stats, tokens
from ragfilter.settings.schema import Settings

NO_LLM = "Set OPENAI_API_KEY, or OPENAI_BASE_URL for a local server, and OPENAI_MODEL."


@dataclass(frozen=True, slots=True)
class Side:
    """Settings with a name. `plain`: the first k of a plain search, whatever fits a prompt."""

    name: str
    settings: Settings
    plain: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """One query under one side.

    `ids` are the kept chunks in order, `scores` and `irrelevant` None without labels.
    `context_tokens` estimates them in an answer's prompt; `llm_tokens` and `llm_ms` are the judge's
    (0 where it was not asked). `fallback`: the judge failed, `error` says how.
    """

    side: str
    id: str
    query: str
    ids: tuple[str, ...]
    scores: Scores | None
    irrelevant: int | None
    context_tokens: int
    ms: float
    llm_tokens: int = 0
    llm_ms: float = 0.0
    fallback: bool = False
    error: str = ""

    @property
    def kept(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class SideMeans:
    """Means of one side over `queries`. `fallbacks` are counted. `noise_reduction` is
    1 − irrelevant kept / irrelevant kept by the first side, all queries together."""

    side: str
    queries: int
    kept: float
    precision: float | None
    recall: float | None
    f1: float | None
    noise_reduction: float | None
    context_tokens: float
    llm_tokens: float
    ms: float
    llm_ms: float
    fallbacks: int


def before_and_after(sides: Sequence[Side]) -> tuple[Side, ...]:
    """`sides` with the unfiltered search of the first one's k in front."""
    first = sides[0].settings
    off = {f"{layer}.enabled": False for layer in SWITCHES if layer != "clearance"}
    name = f"unfiltered, k {first.retrieval.k}"
    return (Side(name, first.with_values(off), plain=True), *sides)


def prompt_sides(settings: Settings, variants: Sequence[str]) -> tuple[Side, ...]:
    """The result without the judge, then judged with each prompt. Raises ValueError: an unknown
    variant."""
    on = settings.with_values({"judge.enabled": True})
    judged = (Side(name, on.with_values({"judge.prompt": name})) for name in variants)
    return (Side("no judge", call.without(on)), *judged)


def measure(
    queries: Queries,
    qrels: Qrels,
    sides: Sequence[Side],
    backends: Backends,
    user: User = PUBLIC,
) -> Iterator[Measured]:
    """Every query under every side, one after the other, as they are finished.

    Raises InputError where a side needs an LLM and none is configured, and what `gather.run`
    raises.
    """
    check(sides, backends.chat)
    for number, (query_id, text) in enumerate(queries.items()):
        if number == 0:
            # What is loaded and read once is not the first side's cost.
            gather(text, sides[0].settings, backends, user)
        for side in sides:
            yield _measure(query_id, text, qrels.get(query_id), side, backends, user)


def check(sides: Iterable[Side], chat: ChatModel | None) -> None:
    """Raises InputError where a side needs an LLM and none is configured."""
    if chat is None and any(side.settings.judge.enabled for side in sides):
        raise InputError("The judge needs an LLM, and none is configured.", remedy=NO_LLM)


def means(measured: Sequence[Measured], sides: Sequence[Side]) -> tuple[SideMeans, ...]:
    """The means of every side, over the queries that all sides have. Empty where there is none."""
    names = [side.name for side in sides]
    found: dict[str, set[str]] = {}
    for one in measured:
        found.setdefault(one.id, set()).add(one.side)
    whole = {query_id for query_id, have in found.items() if have.issuperset(names)}
    if not whole:
        return ()
    by_side = {name: [m for m in measured if m.side == name and m.id in whole] for name in names}
    base = _irrelevant(by_side[names[0]])
    return tuple(_means(name, by_side[name], base) for name in names)


def document(measured: Sequence[Measured], sides: Sequence[Side]) -> dict[str, Any]:
    """Plain values: means by side, then every measurement."""
    return {
        "sides": [asdict(side) for side in means(measured, sides)],
        "per_query": [_document(one) for one in measured],
    }


def _measure(
    query_id: str,
    text: str,
    labels: Mapping[str, int] | None,
    side: Side,
    backends: Backends,
    user: User,
) -> Measured:
    started = perf_counter()
    result = run(text, side.settings, backends, user, wide=True)
    ms = (perf_counter() - started) * 1000
    kept = _kept(result, side)
    ids = tuple(hit.id for hit in kept)
    stats = judge_stats(result)
    if stats is not None and stats.cached:
        ms += stats.ms
    relevant = None if labels is None else {i for i, label in labels.items() if label > 0}
    return Measured(
        side=side.name,
        id=query_id,
        query=text,
        ids=ids,
        scores=None if relevant is None else precision_recall_f1(ids, relevant),
        irrelevant=None if relevant is None else len(set(ids) - relevant),
        context_tokens=tokens(kept),
        ms=ms,
        llm_tokens=stats.prompt_tokens + stats.completion_tokens if stats else 0,
        llm_ms=stats.ms if stats else 0.0,
        fallback=stats.fallback if stats else False,
        error=stats.error if stats else "",
    )


def _kept(result: Result, side: Side) -> tuple[Hit, ...]:
    return unfiltered(result.pool, side.settings, result.user) if side.plain else result.kept


def _means(name: str, rows: Sequence[Measured], base: int | None) -> SideMeans:
    scores = [row.scores for row in rows if row.scores is not None]
    irrelevant = _irrelevant(rows)
    return SideMeans(
        side=name,
        queries=len(rows),
        kept=fmean(row.kept for row in rows),
        precision=fmean(s.precision for s in scores) if scores else None,
        recall=fmean(s.recall for s in scores) if scores else None,
        f1=fmean(s.f1 for s in scores) if scores else None,
        noise_reduction=1 - irrelevant / base if base and irrelevant is not None else None,
        context_tokens=fmean(row.context_tokens for row in rows),
        llm_tokens=fmean(row.llm_tokens for row in rows),
        ms=fmean(row.ms for row in rows),
        llm_ms=fmean(row.llm_ms for row in rows),
        fallbacks=sum(row.fallback for row in rows),
    )


def _irrelevant(rows: Sequence[Measured]) -> int | None:
    counts = [row.irrelevant for row in rows if row.irrelevant is not None]
    return sum(counts) if counts else None


def _document(one: Measured) -> dict[str, Any]:
    scores = asdict(one.scores) if one.scores else dict.fromkeys(("precision", "recall", "f1"))
    return {
        "side": one.side,
        "id": one.id,
        "query": one.query,
        "kept": one.kept,
        "ids": list(one.ids),
        **scores,
        "irrelevant": one.irrelevant,
        "context_tokens": one.context_tokens,
        "llm_tokens": one.llm_tokens,
        "ms": round(one.ms, 3),
        "llm_ms": round(one.llm_ms, 3),
        "fallback": one.fallback,
        "error": one.error,
    }
