"""Labelled queries under settings: one against the unfiltered search, or several side by side.

Source: Adaptive Filtering Algorithm, "Evaluation Metrics"; Intelligent Chunk Filtering,
"Before/After Comparison Framework", "Experimental Tuning Process" and "Metrics to Track";
docs/design.md#judge-prompts.

Conventions:

- Relevant means a label of 1 or more. Means are over queries. Nothing kept counts as precision 0,
  recall 0, F1 0.
- Noise reduction is 1 − irrelevant kept / irrelevant in the unfiltered first k, each side by its
  own k; over several queries the chunks are counted together. It is None where the first k hold
  nothing irrelevant, and negative where the filter keeps more noise than they have.
- The unfiltered ranking obeys clearance where the settings switch it on, as everything does.

`evaluate` gathers each query once and replays it: `gather_all` has the effects, `score` is pure, so
a tuner gathers once and scores many settings. `measure` asks every query afresh under every side,
since it measures time too:

- A measurement is one query under one side. They come query by query, so that whoever stops early
  has every side of the finished queries; means are over the queries that every side has.
- Milliseconds are those of the whole query (store, models, LLM). An answer of the judge that was
  remembered counts with the tokens and milliseconds of the call that gave it.
- Without labels there is no precision, recall and noise; tokens and times are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import fmean
from time import perf_counter

from ragfilter.engine.backends import Backends
from ragfilter.engine.replay import replay, unfiltered
from ragfilter.engine.retrieve import gather, run
from ragfilter.errors import InputError
from ragfilter.evaluate.beir import Labels, Qrels, Queries
from ragfilter.evaluate.metrics import (
    Scores,
    mean_of,
    noise_reduction,
    precision_recall_f1,
    relevant_of,
)
from ragfilter.judge import call
from ragfilter.layers.registry import SWITCHES
from ragfilter.model import PUBLIC, Pool, Status, User
from ragfilter.protocols import ChatModel, Progress
from ragfilter.report import judge_stats, tokens
from ragfilter.settings.schema import Settings

DEEPEST = 50
"""How far down the unfiltered ranking the best fixed k is looked for."""
NO_LLM = "Set OPENAI_API_KEY, or OPENAI_BASE_URL for a local server, and OPENAI_MODEL."


@dataclass(frozen=True, slots=True)
class Kept:
    """One query's kept ids, in order, and how good they are."""

    ids: tuple[str, ...]
    relevant_kept: int
    scores: Scores

    @property
    def kept(self) -> int:
        return len(self.ids)

    @property
    def irrelevant(self) -> int:
        return len(self.ids) - self.relevant_kept


@dataclass(frozen=True, slots=True)
class QueryRow:
    """One query. `lost`: relevant chunks that the pool holds, the user may see, and the filter
    dropped, however far down they stand.

    `ranking` is the unfiltered order, at most `DEEPEST` ids. `waiting`: a layer lacked something
    (`Result.needs`) and fell back.
    """

    id: str
    query: str
    relevant: frozenset[str]
    unfiltered: Kept
    filtered: Kept
    lost: tuple[str, ...]
    ranking: tuple[str, ...]
    status: Status
    waiting: bool = False

    @property
    def noise_reduction(self) -> float | None:
        return noise_reduction([(self.unfiltered.irrelevant, self.filtered.irrelevant)])


@dataclass(frozen=True, slots=True)
class Means:
    """Means over queries: scores 0..1, and chunks kept."""

    precision: float
    recall: float
    f1: float
    mean_kept: float


@dataclass(frozen=True, slots=True)
class FixedK:
    """The k with the best mean F1 of the unfiltered first k, the smallest among equals."""

    k: int
    means: Means


@dataclass(frozen=True, slots=True)
class Evaluation:
    """`k` is the unfiltered k (`retrieval.k`). `unlabelled` are the queries that were left out."""

    k: int
    rows: tuple[QueryRow, ...]
    unfiltered: Means
    filtered: Means
    best_fixed_k: FixedK
    noise_reduction: float | None
    unlabelled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Side:
    """Settings with a name. `plain`: the first k of a plain search, whatever fits a prompt."""

    name: str
    settings: Settings
    plain: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """One query under one side.

    `ids` are the kept chunks in order; `scores`, `irrelevant` and `irrelevant_before` (of the
    unfiltered first k) are None without labels. `context_tokens` estimates the chunks in an
    answer's prompt; `llm_tokens` and `llm_ms` are the judge's (0 where it was not asked).
    `fallback`: the judge failed, `error` says how.
    """

    side: str
    id: str
    query: str
    ids: tuple[str, ...]
    scores: Scores | None
    irrelevant: int | None
    irrelevant_before: int | None
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
    """Means of one side over `queries`. `fallbacks` are counted."""

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


def evaluate(
    queries: Queries,
    qrels: Qrels,
    settings: Settings,
    backends: Backends,
    user: User = PUBLIC,
    *,
    progress: Progress | None = None,
) -> Evaluation:
    """Gather every labelled query and score it. `progress` is called with (queries done, all).

    Raises ValueError where no query has a label, and what `retrieve.run` raises.
    """
    labelled = Labels(queries, qrels).labelled
    pools = gather_all(labelled, settings, backends, user, progress=progress)
    unlabelled = tuple(i for i in queries if i not in qrels)
    return score(pools, qrels, settings, user, unlabelled=unlabelled)


def gather_all(
    queries: Queries,
    settings: Settings,
    backends: Backends,
    user: User = PUBLIC,
    *,
    progress: Progress | None = None,
) -> dict[str, Pool]:
    """The pool of every query, with all that `settings` need."""
    pools: dict[str, Pool] = {}
    for query_id, text in queries.items():
        pools[query_id] = run(text, settings, backends, user, wide=True).pool
        if progress is not None:
            progress(len(pools), len(queries))
    return pools


def score(
    pools: Mapping[str, Pool],
    qrels: Qrels,
    settings: Settings,
    user: User = PUBLIC,
    *,
    unlabelled: Sequence[str] = (),
) -> Evaluation:
    """Replay every pool under `settings` and score it. Pure. Raises ValueError without labels."""
    deep = settings.with_values({"retrieval.k": DEEPEST})
    rows = tuple(
        _row(i, pool, qrels[i], settings, deep, user) for i, pool in pools.items() if i in qrels
    )
    if not rows:
        raise ValueError("no query has a label")
    return Evaluation(
        k=settings.retrieval.k,
        rows=rows,
        unfiltered=_means([row.unfiltered for row in rows]),
        filtered=_means([row.filtered for row in rows]),
        best_fixed_k=best_fixed_k(rows),
        noise_reduction=noise_reduction(
            (row.unfiltered.irrelevant, row.filtered.irrelevant) for row in rows
        ),
        unlabelled=tuple(unlabelled),
    )


def best_fixed_k(rows: Sequence[QueryRow]) -> FixedK:
    """Sweep k from 1 to `DEEPEST` over the unfiltered rankings of the same queries."""
    sweep = [
        FixedK(k, _means([_kept(row.ranking[:k], row.relevant) for row in rows]))
        for k in range(1, DEEPEST + 1)
    ]
    best = max(entry.means.f1 for entry in sweep)
    return next(entry for entry in sweep if entry.means.f1 >= best - 1e-12)


def before_and_after(sides: Sequence[Side]) -> tuple[Side, ...]:
    """`sides`, and before them an unfiltered search for every k among them."""
    off = {f"{layer}.enabled": False for layer in SWITCHES if layer != "clearance"}
    by_k = {side.settings.retrieval.k: side.settings for side in reversed(sides)}
    plain = (Side(f"unfiltered, k {k}", by_k[k].with_values(off), plain=True) for k in sorted(by_k))
    return (*plain, *sides)


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

    Raises InputError where a side needs an LLM and none is configured, and what `retrieve.run`
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
    return tuple(
        _side_means(name, [one for one in measured if one.side == name and one.id in whole])
        for name in names
    )


def _row(
    query_id: str,
    pool: Pool,
    labels: Mapping[str, int],
    settings: Settings,
    deep: Settings,
    user: User,
) -> QueryRow:
    relevant = relevant_of(labels)
    result = replay(pool, settings, user)
    first = tuple(hit.id for hit in unfiltered(pool, settings, user))
    kept = tuple(hit.id for hit in result.kept)
    seen = result.user.sees
    return QueryRow(
        id=query_id,
        query=pool.query,
        relevant=relevant,
        unfiltered=_kept(first, relevant),
        filtered=_kept(kept, relevant),
        lost=tuple(h.id for h in result.hits if h.id in relevant - {*kept} and seen(h.chunk)),
        ranking=tuple(hit.id for hit in islice(unfiltered(pool, deep, user), DEEPEST)),
        status=result.status,
        waiting=bool(result.needs),
    )


def _kept(ids: tuple[str, ...], relevant: frozenset[str]) -> Kept:
    return Kept(ids, len(relevant.intersection(ids)), precision_recall_f1(ids, relevant))


def _means(sides: Sequence[Kept]) -> Means:
    scores = mean_of([side.scores for side in sides])
    assert scores is not None
    return Means(
        scores.precision, scores.recall, scores.f1, mean_kept=fmean(side.kept for side in sides)
    )


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
    first = unfiltered(result.pool, side.settings, result.user)
    hits = first if side.plain else result.kept
    stats = judge_stats(result)
    if stats is not None and stats.cached:
        ms += stats.ms
    relevant = relevant_of(labels or {})
    before = _kept(tuple(hit.id for hit in first), relevant)
    kept = _kept(tuple(hit.id for hit in hits), relevant)
    return Measured(
        side=side.name,
        id=query_id,
        query=text,
        ids=kept.ids,
        scores=None if labels is None else kept.scores,
        irrelevant=None if labels is None else kept.irrelevant,
        irrelevant_before=None if labels is None else before.irrelevant,
        context_tokens=tokens(hits),
        ms=ms,
        llm_tokens=stats.prompt_tokens + stats.completion_tokens if stats else 0,
        llm_ms=stats.ms if stats else 0.0,
        fallback=stats.fallback if stats else False,
        error=stats.error if stats else "",
    )


def _side_means(name: str, rows: Sequence[Measured]) -> SideMeans:
    scores = mean_of([row.scores for row in rows if row.scores is not None])
    return SideMeans(
        side=name,
        queries=len(rows),
        kept=fmean(row.kept for row in rows),
        precision=scores.precision if scores else None,
        recall=scores.recall if scores else None,
        f1=scores.f1 if scores else None,
        noise_reduction=noise_reduction(
            (row.irrelevant_before, row.irrelevant)
            for row in rows
            if row.irrelevant_before is not None and row.irrelevant is not None
        ),
        context_tokens=fmean(row.context_tokens for row in rows),
        llm_tokens=fmean(row.llm_tokens for row in rows),
        ms=fmean(row.ms for row in rows),
        llm_ms=fmean(row.llm_ms for row in rows),
        fallbacks=sum(row.fallback for row in rows),
    )
