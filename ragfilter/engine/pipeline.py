"""Filter the chunks for one question: gather a pool, decide over it, and complete it until no layer lacks anything.

A layer can need rerank scores, an LLM's verdicts with the chunks that its expansions reach, or the contributions of
sentences to the answer. Failures are also added to the pool, and `replay` turns them into visible fallbacks. Source:
docs/design.md#replay."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import exp, isfinite
from time import perf_counter

from ragfilter.basics.threads import check_stopped, within
from ragfilter.engine.gather import Backends, gather_with_scan
from ragfilter.engine.pool import join_judgements, nearness, with_attribute, without_failure_of
from ragfilter.engine.replay import replay, replay_as_user
from ragfilter.errors import DependencyError, ModelError, RagfilterError
from ragfilter.judge import call
from ragfilter.judge.prompt import JudgePrompt
from ragfilter.layers.judge import prompt_for_user
from ragfilter.layers.quality import reranker_key
from ragfilter.layers.references import clean_finder, finder, references_of, walk
from ragfilter.layers.visibility import visible_pool
from ragfilter.model import MODEL_OF, Failure, Hit, Judgement, Need, NeedKind, Pool, PoolResult, User
from ragfilter.protocols import PrunePassage, Pruner
from ragfilter.rules.match import compiled_rules
from ragfilter.settings.schema import Quality, Settings, field_info
from ragfilter.text.sentences import pieces

log = logging.getLogger(__name__)

Replay = Callable[[Pool, Settings, User | None], PoolResult]

ROUNDS = 3
"""Maximum number of rounds: a reranker's scores can change what the judge is asked."""
PRUNING_S = 30.0
"""Time limit for a pruner."""
MAX_ODDS = 700.0
EDGE = 1e-6
"""Tolerance for scores outside 0 to 1, since models compute in single precision."""


def search_and_filter(
    query: str, settings: Settings, backends: Backends, user: User | None = None, *, wide: bool = False
) -> PoolResult:
    """Gather and replay until no needs are left, for the command line, `OpenCollection.search` and measurements.

    Without a `user`, the settings decide who asks (`clearance.enabled`). Gathers only what the enabled layers can use
    or, with `wide`, everything that any settings could use and show. Raises InputError for an empty query or a file
    pattern without a match, StoreError, and ModelError (from the embedder). If the collection is incomplete or damaged,
    the message says so, and so does the status unless it is `insufficient_clearance`."""
    started = perf_counter()
    pool, scan = gather_with_scan(query, settings, backends, user, wide=wide)
    result = replay_completed(pool, settings, backends, user, replayer=partial(replay, scan=scan), push_down=not wide)
    _log(result, (perf_counter() - started) * 1000)
    return result


def _log(result: PoolResult, ms: float) -> None:
    """Log one line per query, with figures in the record's `fields`, from what the user sees."""
    if not log.isEnabledFor(logging.INFO):
        return
    n_retrieved, n_kept = replay_as_user(result).retrieved, len(result.kept)
    reduction = 1 - n_kept / n_retrieved if n_retrieved else 0.0
    near = nearness(visible_pool(result.pool, result.user))
    fields = {
        "query": result.query,
        "collection": result.pool.collection,
        "status": result.status,
        "retrieved": n_retrieved,
        "kept": n_kept,
        "reduction": round(reduction, 4),
        "ms": round(ms, 1),
        "fallback": result.fallbacks,
        "nearness": None if near is None else round(near, 4),
    }
    fallback = ", ".join(result.fallbacks) or "none"
    text = "query %r: retrieved=%d, kept=%d, reduction=%.1f%%, ms=%.0f, fallback=%s"
    log.info(text, result.query, n_retrieved, n_kept, 100 * reduction, ms, fallback, extra={"fields": fields})


def replay_completed(
    pool: Pool,
    settings: Settings,
    backends: Backends,
    user: User | None = None,
    *,
    kinds: Container[NeedKind] = ("rerank", "judge", "prune"),
    replayer: Replay = replay,
    push_down: bool = False,
) -> PoolResult:
    """Replay and complete the pool until no need of these `kinds` is left. `push_down` is as in `PoolCompleter`."""
    completer = PoolCompleter(settings, backends, user, push_down)
    result = replayer(pool, settings, user)
    for _ in range(ROUNDS):
        check_stopped()
        completed = completer.complete(pool, [need for need in result.needs if need.kind in kinds])
        if completed is pool:
            break
        pool = completed
        result = replayer(pool, settings, user)
    return result


@dataclass(frozen=True, slots=True)
class PoolCompleter:
    """Completes pools for replays with these settings, as `user`.

    With `push_down`, an expansion fetches only chunks that the user can see."""

    settings: Settings
    backends: Backends
    user: User | None = None
    push_down: bool = False

    def complete(self, pool: Pool, needs: Sequence[Need]) -> Pool:
        """Add what is needed to the pool: rerank scores, verdicts, sentence contributions. A failed
        model adds its failure. A missing LLM or pruner is not a failure: the need remains."""
        backends = self.backends
        for need in needs:
            if need.kind == "rerank":
                pool = _rerank(pool, need, self.settings, backends)
            elif need.kind == "prune" and backends.pruner is not None:
                pool = _add_contributions(pool, need, backends.pruner)
            elif need.kind == "judge" and backends.chat is not None:
                prompt, cache = self._prompt(pool, need), backends.judgements
                judgement = call.ask(prompt, backends.chat, self.settings.judge, cache=cache)
                pool = self._add_judgement(pool, judgement)
        return pool

    def look_up(self, pool: Pool, needs: Sequence[Need]) -> Pool:
        """Add the judge's cached answers to exactly these needs. Calls no model."""
        chat, cache = self.backends.chat, self.backends.judgements
        for need in needs:
            if need.kind == "judge" and chat is not None and cache is not None:
                judgement = call.look_up(self._prompt(pool, need), chat, cache)
                pool = pool if judgement is None else self._add_judgement(pool, judgement)
        return pool

    def _prompt(self, pool: Pool, need: Need) -> JudgePrompt:
        by_id = {hit.id: hit for hit in pool.hits}
        hits = [by_id[i] for i in need.chunk_ids]
        return prompt_for_user(hits, pool, self.settings, self.user)

    def _add_judgement(self, pool: Pool, judgement: Judgement) -> Pool:
        reachable = (*pool.reachable, *self._reachable(pool, judgement))
        judgements = join_judgements(pool.judgements, [judgement])
        references = references_of((hit.chunk for hit in (*pool.hits, *reachable)), self.backends.collection)
        return replace(pool, judgements=judgements, reachable=reachable, references=references)

    def _reachable(self, pool: Pool, judgement: Judgement) -> tuple[Hit, ...]:
        """The chunks that the verdicts' expansions can reach and whose text the pool lacks: under the settings and,
        unless `push_down` is set, under any other clearance and with rules on or off."""
        expanding = [v for v in judgement.verdicts if v.action == "EXPAND"]
        if not expanding:
            return ()
        settings, collection = self.settings, self.backends.collection
        find_any = finder(collection)
        hits = (*pool.hits, *pool.reachable)
        whole = {hit.id: hit.chunk for hit in hits if hit.chunk.loaded}
        discarded = {v.chunk_id for v in judgement.verdicts if v.action == "DISCARD"}
        permitted = clean_finder(find_any, settings, compiled_rules(()).scan(pool.query), self.user, discarded)
        finders = [permitted] if self.push_down else [permitted, find_any]
        most = max(settings.judge.max_expansion, int(field_info("judge.max_expansion").ceiling or 0))
        ids = dict.fromkeys(
            reached.chunk.id
            for verdict in expanding
            if verdict.chunk_id in whole
            for find in finders
            for reached in walk(whole[verdict.chunk_id], depth=verdict.depth, most=most, find=find)
            if reached.chunk.id not in whole
        )
        fetched = collection.chunks(list(ids))
        if not fetched:
            return ()
        vector = self.backends.embedder.embed([pool.query])[0]
        pairs = collection.nearest(vector, len(fetched), ids=list(fetched))
        return tuple(Hit(fetched[i], d, 0, "expansion") for i, d in pairs)


def _rerank(pool: Pool, need: Need, settings: Settings, backends: Backends) -> Pool:
    key = reranker_key(settings.quality)
    if pool.reranker != key:
        # Another reranker's scores are not comparable.
        pool = with_attribute(pool, "rerank_score", {hit.id: None for hit in pool.hits})
    pool = without_failure_of(pool, key)
    chunks = {hit.id: hit.chunk for hit in pool.hits}
    try:
        raw = _scores(pool.query, [chunks[i].passage for i in need.chunk_ids], settings, backends)
    except Exception as error:
        return replace(_with_failure(pool, "rerank", key, error), reranker=key)
    scores, ordered = _on_scale(raw, settings.quality)
    pool = with_attribute(pool, "rerank_score", dict(zip(need.chunk_ids, scores, strict=True)))
    return replace(pool, reranker=key, scores_are_ranks=ordered)


def _add_contributions(pool: Pool, need: Need, pruner: Pruner) -> Pool:
    chunks = {hit.id: hit.chunk for hit in (*pool.hits, *pool.reachable) if hit.id in need.chunk_ids}
    passages = [PrunePassage(c.title, tuple(c.text[p.start : p.end] for p in pieces(c.text))) for c in chunks.values()]
    try:
        answer = within(PRUNING_S, lambda: pruner.contributions(pool.query, passages))
        values = [tuple(map(float, each)) for each in answer]
        right = [len(each) for each in values] == [len(one.pieces) for one in passages]
        if not right or not all(0 <= value <= 1 for each in values for value in each):
            message = f"{pruner.name} did not give every sentence a value from 0 to 1."
            raise ModelError(message, remedy="Choose another pruner.")
    except Exception as error:
        return _with_failure(pool, "prune", pruner.name, error)
    return with_attribute(pool, "contributions", dict(zip(chunks, values, strict=True)))


def _with_failure(pool: Pool, kind: NeedKind, model: str, error: Exception) -> Pool:
    """Add a model's failure to the pool. A third-party model may raise anything, and its message
    may contain secrets."""
    what, ours = MODEL_OF[kind], isinstance(error, (RagfilterError, TimeoutError))
    why = str(error) if ours else f"the {what} failed ({type(error).__name__})"
    log.warning("the %s failed: %s", what, why)
    lasting = isinstance(error, (ModelError, DependencyError))
    return replace(pool, failures=(*pool.failures, Failure(kind, model, why, lasting)))


def _scores(query: str, texts: list[str], settings: Settings, backends: Backends) -> Sequence[float]:
    """One score per text, in any range. Raises ModelError, TimeoutError and whatever the reranker raises."""
    if backends.make_reranker is None:
        raise ModelError("No reranker is set up.", remedy="Pass one in Backends.")
    reranker = backends.make_reranker(settings.quality)
    seconds = settings.quality.reranker_timeout_ms / 1000
    # A reranker may return NumPy numbers, which JSON cannot encode.
    scores = [float(score) for score in within(seconds, lambda: reranker.score(query, texts))]
    if len(scores) != len(texts) or not all(map(isfinite, scores)):
        message = f"{reranker.name} did not give a finite score for each of {len(texts)} chunks."
        raise ModelError(message, remedy="Choose another reranker, or none.")
    return scores


def _on_scale(raw: Sequence[float], quality: Quality) -> tuple[list[float], bool]:
    """Scores from 0 to 1, and whether only their order counts, which is so for an endpoint's scores without a fit and
    for scores outside 0 to 1."""
    if quality.reranker_slope and quality.reranker != "late_interaction":
        slope, offset = quality.reranker_slope, quality.reranker_offset
        odds = (slope * score + offset for score in raw)
        return [1 / (1 + exp(-min(max(x, -MAX_ODDS), MAX_ODDS))) for x in odds], False
    if quality.reranker != "http" and all(-EDGE <= score <= 1 + EDGE for score in raw):
        return [min(max(score, 0.0), 1.0) for score in raw], False
    places = {score: place for place, score in enumerate(sorted(set(raw), reverse=True))}
    return [1 - places[score] / len(places) for score in raw], True
