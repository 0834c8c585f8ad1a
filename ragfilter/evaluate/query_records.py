"""Measures variants of settings over queries. Only `sweep` and `effect` count without it.

`measure` has side effects: one search per query, and the model calls that the variants need. It
yields the records query by query, so an early stop loses nothing. `records_of` is pure: it replays
a pool with every variant and counts. All figures follow from records; see `evaluate.frame`.

Source: Intelligent Chunk Filtering, "Before/After Comparison Framework"; Adaptive Filtering
Algorithm, "Evaluation Metrics". Conventions:

- Relevant means a label of 1 or more. A kept chunk without a label counts as irrelevant.
- Only chunks of the unfiltered first k that fit the context budget count, as in a prompt. The
  unfiltered ranking obeys clearance if the settings switch it on.
- A cached answer of the judge counts with the tokens and milliseconds of the original call.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from itertools import compress
from time import perf_counter
from typing import Any

from pydantic import TypeAdapter

from ragfilter.answer.context_packing import fits
from ragfilter.engine.gather import Backends, gather
from ragfilter.engine.pipeline import replay_completed, search_and_filter
from ragfilter.engine.pool import nearness, unfiltered
from ragfilter.engine.replay import ReplayMemo, Replays, replay
from ragfilter.errors import InputError, SettingsError
from ragfilter.evaluate.labelled_queries import Labels, Queries, relevant_of
from ragfilter.evaluate.metrics import UNLABELLED, Curve, curve_of, ndcg
from ragfilter.evaluate.variants import UNFILTERED, Variant
from ragfilter.layers.quality import reranker_key
from ragfilter.layers.visibility import effective_user, visible_pool
from ragfilter.model import Chunk, Hit, Pool, PoolResult, Status, User
from ragfilter.protocols import ChatModel, Progress
from ragfilter.results.verdicts import judge_stats
from ragfilter.settings.schema import Settings

PATIENT = {"quality.reranker_timeout_ms": 600_000}
"""Nobody waits for an answer here, so a late score is not a failure."""
NO_LLM = "Set OPENAI_API_KEY, or OPENAI_BASE_URL for a local server, and OPENAI_MODEL."


@dataclass(frozen=True, slots=True)
class QueryRecord:
    """The chunks that one variant keeps for one query and that fit the prompt.

    `relevant` is the number of all relevant chunks, `found` the number of kept ones. `noise` is how many of the
    variant's own unfiltered first k are irrelevant. `lost` is how many relevant chunks in the pool, at any rank, the
    user can see and the variant drops. `ms` is the time of its layers without the search (0 for a plain search, which
    has none), and `query_ms` the time of the whole query, with store and models (0 if it was not run by itself).
    `llm_tokens` and `llm_ms` are the judge's; `fallback`: the judge failed, and `error` says how. `waiting`: a layer
    fell back. `nearness` is the best distance as a share of the background, None without one. A plain search has a
    `curve`. `ids` and `lost_ids` are chunk ids and are never saved; `relevant_keys` are hashes of the relevant ones.
    """

    id: str
    query: str
    variant: str
    labelled: bool
    relevant: int
    kept: int
    found: int
    unlabelled: int
    tokens: int
    noise: int = 0
    lost: int = 0
    ndcg: float = 0.0
    ms: float = 0.0
    query_ms: float = 0.0
    llm_tokens: int = 0
    llm_ms: float = 0.0
    fallback: bool = False
    error: str = ""
    status: Status = "ok"
    waiting: bool = False
    nearness: float | None = None
    relevant_keys: str = ""
    curve: Curve | None = None
    ids: tuple[str, ...] = ()
    lost_ids: tuple[str, ...] = ()


def measure(
    labels: Labels,
    variants: Sequence[Variant],
    backends: Backends,
    user: User | None = None,
    *,
    done: Collection[str] = (),
    timed: bool = False,
    progress: Progress | None = None,
) -> Iterator[tuple[QueryRecord, ...]]:
    """Yield the records of every labelled query except those in `done`, or of all queries if none
    has a label. There is one for each variant that applies.

    The variants share one search and the models' outputs. `timed` runs every variant by itself to measure its
    `query_ms`. `progress` gets (queries done, all). Raises InputError if a variant needs an LLM and none is configured,
    SettingsError if the first variant does not apply, and what `search_and_filter` raises."""
    check_llm(variants, backends.chat)
    user = viewer_of(variants, user)
    queries = labels.labelled or labels.queries
    for number, (query_id, text) in enumerate(queries.items(), start=1):
        if query_id in done:
            continue
        if timed and number == 1:
            # Load everything once beforehand, so the first variant's time does not include it.
            gather(text, variants[0].settings, backends, user)
        pools, times = {}, dict.fromkeys((v.name for v in variants), 0.0)
        for variant in variants if timed else ():
            started = perf_counter()
            pools[variant.name] = completed_pool(text, variant.settings, backends, user)
            times[variant.name] = (perf_counter() - started) * 1000
        pools = pools or shared_pools(text, variants, backends, user)
        records = records_of(query_id, pools, labels.qrels.get(query_id), variants, user, times=times)
        if progress is not None:
            progress(number, len(queries))
        yield records


def check_llm(variants: Sequence[Variant], chat: ChatModel | None) -> None:
    """Raise InputError if a variant needs an LLM and none is configured."""
    if chat is None and any(v.settings.judge.enabled for v in variants):
        raise InputError("The judge is on and needs an LLM, and none is configured.", remedy=NO_LLM)


def viewer_of(variants: Sequence[Variant], user: User | None) -> User:
    """One user for all variants: `user`, or the public if there is none and a variant needs it."""
    settings = [variant.settings for variant in variants]
    return effective_user(user, next((s for s in settings if s.clearance.enabled), settings[0]))


def completed_pool(text: str, settings: Settings, backends: Backends, user: User | None) -> Pool:
    """The pool of a query as `user` sees it, with everything that `settings` need."""
    result = search_and_filter(text, settings.with_values(PATIENT), backends, user, wide=True)
    return visible_pool(result.pool, result.user)


def completed_pools(
    queries: Queries,
    settings: Settings,
    backends: Backends,
    user: User | None = None,
    *,
    progress: Progress | None = None,
) -> dict[str, Pool]:
    """The pool of every query. Chunks in several pools are stored once. `progress` gets (queries done, all)."""
    chunks: dict[str, Chunk] = {}
    pools: dict[str, Pool] = {}
    for query_id, text in queries.items():
        pool = completed_pool(text, settings, backends, user)
        hits = tuple(replace(h, chunk=chunks.setdefault(h.id, h.chunk)) for h in pool.hits)
        pools[query_id] = replace(pool, hits=hits)
        if progress is not None:
            progress(len(pools), len(queries))
    return pools


def shared_pools(text: str, variants: Sequence[Variant], backends: Backends, user: User) -> dict[str, Pool]:
    """The pool of each variant by name. Variants that search the same files share a search and the models' outputs."""
    searched: dict[tuple[str, bool], Pool] = {}
    settled: dict[tuple[str, bool, str], Pool] = {}
    replayer = Replays().of
    for variant in variants:
        key = _asks(variant, variants[0])
        if key[:2] not in searched:
            searched[key[:2]] = visible_pool(gather(text, variant.settings, backends, user), user)
        pool = settled.setdefault(key, searched[key[:2]])
        if variant.plain:
            continue
        patient = variant.settings.with_values(PATIENT)
        try:
            settled[key] = replay_completed(pool, patient, backends, user, replayer=replayer).pool
        except SettingsError:
            if variant is variants[0]:
                raise
    return {variant.name: settled[_asks(variant, variants[0])] for variant in variants}


def records_of(
    query_id: str,
    pools: Pool | Mapping[str, Pool],
    labels: Mapping[str, int] | None,
    variants: Sequence[Variant],
    user: User | None = None,
    *,
    times: Mapping[str, float] | None = None,
) -> tuple[QueryRecord, ...]:
    """Replay the pool (one for all variants, or one for each by name) with every variant, and count. Pure. Without
    `labels`, only chunks, tokens and times mean anything. A variant that does not apply to the pool is left out. Raises
    SettingsError if the first one does not apply."""
    user, grades = viewer_of(variants, user), labels or {}
    memos: dict[tuple[int, bool], ReplayMemo] = {}
    records = []
    for variant in variants:
        pool = pools if isinstance(pools, Pool) else pools[variant.name]
        try:
            record = _plain(query_id, pool, grades, variant, user)
            if not variant.plain:
                # Only the judge's figures come from decisions.
                explain = variant.settings.judge.enabled
                memo = memos.setdefault((id(pool), explain), {})
                result = replay(pool, variant.settings, user, memo=memo, explain=explain)
                record = _filtered(record, result, grades)
        except SettingsError:
            if variant is variants[0]:
                raise
            continue
        took = (times or {}).get(variant.name, 0.0)
        records.append(replace(record, labelled=labels is not None, query_ms=took + record.query_ms))
    gains = ndcg([record.ids for record in records], grades)
    keys = " ".join(sorted(blake2b(repr(i).encode(), digest_size=4).hexdigest() for i in relevant_of(grades)))
    return tuple(replace(each, ndcg=gain, relevant_keys=keys) for each, gain in zip(records, gains, strict=True))


def to_document(records: Sequence[QueryRecord]) -> dict[str, Any]:
    """The records of one query as plain values, without chunk ids."""
    first = records[0]
    curve = next(record.curve for record in records if record.curve is not None)
    shared = {name: getattr(first, name) for name in _SHARED}
    by_variant = {r.variant: {name: getattr(r, name) for name in _OWN} for r in records}
    return {**shared, "curve": asdict(curve), "variants": by_variant}


def from_document(document: Mapping[str, Any]) -> tuple[QueryRecord, ...]:
    """The records from their stored values. The curve belongs to the plain search."""
    curve = _CURVE.validate_python(document["curve"])
    shared = {name: document[name] for name in _SHARED}
    return tuple(
        QueryRecord(variant=name, curve=curve if name == UNFILTERED else None, **shared, **values_of_variant)
        for name, values_of_variant in document["variants"].items()
    )


_CURVE = TypeAdapter(Curve)
_SHARED = ("id", "query", "labelled", "relevant", "relevant_keys", "nearness")
_OWN = ("kept", "found", "unlabelled", "noise", "lost", "tokens", "ndcg", "ms", "status", "waiting")


def _asks(variant: Variant, first: Variant) -> tuple[str, bool, str]:
    """Key of the pool that a variant needs: what it searches, and whose scores, since one pool
    cannot hold two rerankers' scores. Without scores, it shares the pool of the `first`."""
    quality = variant.settings.quality
    scored = quality.enabled and quality.reranker != "none" and not variant.plain
    retrieval = variant.settings.retrieval
    key = reranker_key(quality if scored else first.settings.quality)
    return retrieval.source_pattern, retrieval.lexical, key


def _plain(query_id: str, pool: Pool, grades: Mapping[str, int], variant: Variant, user: User) -> QueryRecord:
    """The record of the unfiltered first k, with the curve if the variant is a plain search."""
    hits, settings = unfiltered(pool, variant.settings, user), variant.settings
    record = QueryRecord(
        id=query_id,
        query=pool.query,
        variant=variant.name,
        labelled=True,
        relevant=len(relevant_of(grades)),
        nearness=nearness(pool),
        curve=curve_of(pool, grades, settings, user, ranked=True) if variant.plain else None,
        **count(hits, grades, settings),
    )
    return replace(record, noise=record.kept - record.found)


def _filtered(plain: QueryRecord, result: PoolResult, grades: Mapping[str, int]) -> QueryRecord:
    """The record of the chunks that the layers keep."""
    dropped = relevant_of(grades) - {hit.id for hit in result.kept}
    lost = tuple(hit.id for hit in result.hits if hit.id in dropped and result.user.sees(hit.chunk))
    fields = count(result.kept, grades, result.settings)
    if stats := judge_stats(result):
        fields |= {
            "llm_tokens": stats.prompt_tokens + stats.completion_tokens,
            "llm_ms": stats.ms,
            "query_ms": stats.ms if stats.cached else 0.0,
            "error": stats.error if stats.fallback else "",
            "fallback": stats.fallback,
        }
    return replace(
        plain,
        lost=len(lost),
        lost_ids=lost,
        ms=sum(trace.ms for trace in result.traces),
        status=result.status,
        waiting=bool(result.fallbacks),
        **fields,
    )


def count(hits: Sequence[Hit], grades: Mapping[str, int], settings: Settings) -> dict[str, Any]:
    """The ids of the hits that fit the context budget, and the fields of `Counts`."""
    fitting, tokens = fits(hits, settings.context.max_context_tokens)
    ids = tuple(hit.id for hit in compress(hits, fitting))
    labels = [grades.get(i, UNLABELLED) for i in ids]
    return {
        "ids": ids,
        "kept": len(ids),
        "found": sum(label > 0 for label in labels),
        "unlabelled": labels.count(UNLABELLED),
        "tokens": tokens,
    }
