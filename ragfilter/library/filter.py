"""Filters hits from any store with given settings."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from time import time_ns
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ragfilter.engine.gather import Backends
from ragfilter.engine.pipeline import replay_completed
from ragfilter.errors import InputError, SettingsError, check_installed
from ragfilter.judge.call import JudgementCache
from ragfilter.layers.cutoff import check_distances_suffice
from ragfilter.layers.cutoff import cut as cut_values
from ragfilter.layers.layer import BACKGROUND_FROM
from ragfilter.layers.quality import always_reranks
from ragfilter.layers.strategies.strategy import strategy
from ragfilter.layers.tuned_on import SCALED
from ragfilter.layers.visibility import effective_user
from ragfilter.library import documents
from ragfilter.library.batch import Workers
from ragfilter.library.documents import Scores, check_metric, check_metrics, space_of, to_hits
from ragfilter.library.result import Result, to_result
from ragfilter.model import MODEL_OF, Cut, Entity, Pool, PoolResult, Space, User
from ragfilter.models.embedders import BundledEmbedder
from ragfilter.models.pruners import SentencePruner
from ragfilter.models.rerankers import CrossEncoderReranker, HttpReranker, LateInteraction, RerankEndpoint
from ragfilter.protocols import ChatModel, Pruner, Reranker
from ragfilter.settings.config import Given, load, merge, of_profile
from ragfilter.settings.field import MAX_CHUNKS
from ragfilter.settings.profiles import DEFAULT
from ragfilter.settings.schema import Quality, Settings
from ragfilter.text.comparison import detect
from ragfilter.text.normalise import mend_characters

if TYPE_CHECKING:
    from langchain_core.vectorstores import VectorStore

    from ragfilter.library.haystack import FilterComponent
    from ragfilter.library.langchain import FilterCompressor, FilterRetriever
    from ragfilter.library.llamaindex import FilterPostprocessor

log = logging.getLogger(__name__)

HTTP = "http:"


class Filter:
    """Filters hits with the settings of a profile, a TOML file, or `Settings`.

    `reranker` is an object that implements `protocols.Reranker`, or a name: ``late_interaction`` (bundled),
    ``http:MODEL`` at ``RAGFILTER_RERANK_URL``, or a cross-encoder's. `judge` implements `protocols.ChatModel`, or names
    a model at ``OPENAI_BASE_URL``. `pruner` implements `protocols.Pruner`, or is ``sentences`` (bundled). Layers
    without their model fall back, and `Result.needs` lists what they need. Scores are valid only for the reranker that
    made them, so the filter's `settings` name the reranker that you pass. A filter is thread-safe. Raises
    SettingsError, InputError for an object without the required methods, and DependencyError for a name whose package
    is not installed."""

    def __init__(
        self,
        settings: str | Path | Settings = "full",
        *,
        reranker: Reranker | str | None = None,
        judge: ChatModel | str | None = None,
        pruner: Pruner | str | None = None,
    ) -> None:
        self.settings = read_settings(settings)
        self._models = (reranker, judge, pruner)
        self._open_models()
        for what, model, protocol, layer in (
            ("reranker", self.reranker, Reranker, "quality"),
            ("judge", self.judge, ChatModel, "judge"),
            ("pruner", self.pruner, Pruner, "prune"),
        ):
            has_name = isinstance(getattr(model, "name", None), str)
            if model is not None and not (has_name and isinstance(model, protocol)):
                raise InputError(
                    f"The {what} {model!r} lacks a name or a method of protocols.{protocol.__name__}.",
                    remedy=f"Pass an object that has them, or the name of a {what}.",
                )
            if model is not None and not self.settings.get(f"{layer}.enabled"):
                unused = "A %s was passed, but it is never used: the layer %s is off. Choose settings with %s.enabled"
                log.warning(unused, what, layer, layer)
        self.settings = _with_reranker(self.settings, self.reranker)

    def _open_models(self) -> None:
        reranker, judge, pruner = self._models
        if isinstance(reranker, str):
            reranker = _named_reranker(reranker, self.settings.quality)
        self.reranker = reranker
        self.judge = _named_judge(judge) if isinstance(judge, str) else judge
        self.pruner = _named_pruner(pruner) if isinstance(pruner, str) else pruner
        self._judgements = JudgementCache()

    def __getstate__(self) -> dict[str, Any]:
        """The state for pickling. The new process opens named models again, with its own key."""
        opened = ("reranker", "judge", "pruner", "_judgements", "_workers")
        return {name: value for name, value in vars(self).items() if name not in opened}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self._open_models()

    def __repr__(self) -> str:
        on = [name for name, section in self.settings if getattr(section, "enabled", False)]
        return f"<Filter: {', '.join(on) or 'no layer on'}>"

    def __call__(
        self,
        query: str,
        docs: Iterable[Any],
        scores: Scores = None,
        *,
        metric: str | Mapping[str, str] | None = None,
        user: User | None = None,
    ) -> Result:
        """Decide which of `docs` to keep.

        `docs` are texts, mappings (``id``, ``text``, ``title``, ``query_must``, ``clearance`` …), hits as stores return
        them, or documents of LangChain, LlamaIndex or Haystack. `scores` are their scores, unless the documents have
        their own; `metric` (`model.Metric`) says what the scores are. Without scores, the order is the rank. `scores`
        and `metric` can be mappings with several named scores: ``dense`` is the distance, ``fused`` a score that
        another library fused, and ``cutoff.score`` names the one to cut by. Chunks hidden from `user` are left out,
        whatever the settings say. Without a user, only public chunks are visible if the clearance layer is on,
        otherwise all are. Raises InputError, SettingsError."""
        started_ns = time_ns()
        query = check_asked(query, user)
        user = effective_user(user, self.settings)
        hits, space, warnings = to_hits(docs, scores, metric, user)
        reranks = self.reranker is not None and always_reranks(self.settings.quality)
        score = self.settings.cutoff.score
        metrics = {s.metric for hit in hits for name, s in hit.scores.items() if name == score}
        scale = space_of(metrics.pop()) if metrics else space
        check_thresholds(self.settings, scale, reranks=reranks and not score)
        check_similarities(self.settings, space, [hit.distance for hit in hits])
        for warning in warnings:
            log.warning("%s", warning)
        ids = tuple(hit.id for hit in hits)
        sides = tuple(Entity(name, ids, retrieved=False) for name in detect(query))
        pool = Pool(query, "", space, hits, entities=sides, exhaustive=True, warnings=warnings)
        return to_result(self._complete(pool, user), started_ns)

    async def arun(
        self,
        query: str,
        docs: Iterable[Any],
        scores: Scores = None,
        *,
        metric: str | Mapping[str, str] | None = None,
        user: User | None = None,
    ) -> Result:
        """Filter in a thread, for use from an event loop."""
        return await asyncio.to_thread(self, query, docs, scores, metric=metric, user=user)

    def batch(
        self,
        queries: Iterable[str],
        hits: Iterable[Iterable[Any]],
        *,
        metric: str | Mapping[str, str] | None = None,
        user: User | None = None,
    ) -> list[Result]:
        """Filter many questions on all cores. `hits` has the documents of each question, with their own scores. The
        results hold copies of the documents.

        The first call starts one process per core, which takes seconds; later calls reuse them. The processes import
        the program's main module, so call this under ``if __name__ == "__main__":`` in a script. A result is decoded
        when it is first read. Raises the same errors as a call of the filter, and ValueError if `hits` and `queries`
        differ in length."""
        return self._workers.filter(queries, hits, metric=metric, user=user)

    @cached_property
    def _workers(self) -> Workers:
        return Workers(self)

    def as_langchain(
        self, *, metric: str | Mapping[str, str] | None = None, score_key: str = "score", user: User | None = None
    ) -> FilterCompressor:
        """A LangChain document compressor. Kept documents are the objects that were passed in.

        Scores are in ``metadata[score_key]``, and `metric` says what they are. If a document has none, the order
        counts. With a mapping, for example after an EnsembleRetriever, each named score is in ``metadata[name]``. In a
        comparison (X vs Y), the documents are searched in order for each side's best chunk. Raises DependencyError,
        InputError."""
        from ragfilter.library.langchain import FilterCompressor

        return FilterCompressor(filter=self, metric=check_metrics(metric), score_key=score_key, user=user)

    def as_langchain_retriever(
        self,
        store: VectorStore,
        *,
        metric: str,
        k: int | None = None,
        fetch_k: int | None = None,
        user: User | None = None,
    ) -> FilterRetriever:
        """A LangChain retriever over the ``similarity_search_with_score`` of `store`.

        `metric` says what the store's scores are. `k` limits the number of returned documents (default: no limit).
        `fetch_k` is the number of hits to filter (default: ``retrieval.pool_size``). Raises DependencyError,
        InputError."""
        from ragfilter.library.langchain import FilterRetriever

        wide = self.settings.retrieval.pool_size if fetch_k is None else fetch_k
        return FilterRetriever(filter=self, store=store, metric=check_metric(metric), k=k, fetch_k=wide, user=user)

    def as_llamaindex(
        self,
        *,
        metric: str | Mapping[str, str] | None = None,
        exponential: bool | None = None,
        user: User | None = None,
    ) -> FilterPostprocessor:
        """A LlamaIndex node postprocessor. Kept nodes are the objects that were passed in.

        `metric` says what the nodes' scores are. LlamaIndex's Chroma store reports exp(−distance). Pass
        ``exponential=True`` and the collection's metric (by default "l2") to restore the distance, or ``False`` if the
        scores are similarities. Without either, such scores cause a warning. If nodes have no scores, their order
        counts. With a mapping, for example after a QueryFusionRetriever, ``fused`` is the nodes' score, and other
        scores are in their metadata. Raises DependencyError, InputError."""
        from ragfilter.library.llamaindex import FilterPostprocessor

        return FilterPostprocessor(filter=self, metric=check_metrics(metric), exponential=exponential, user=user)

    def as_haystack(
        self, *, metric: str | Mapping[str, str] | None = None, user: User | None = None
    ) -> FilterComponent:
        """A Haystack component with ``run(query, documents)``. Kept documents are the objects that were passed in.

        `metric` says what their scores are. Without scores, the order counts. With a mapping, for example after a
        DocumentJoiner, ``fused`` is the documents' score, and other scores are in their ``meta``. Raises
        DependencyError, InputError."""
        from ragfilter.library.haystack import FilterComponent

        return FilterComponent(self, metric=check_metrics(metric), user=user)

    def backends(self, collection: Any, embedder: Any) -> Backends:
        """The store and models for one query: the given collection, and this filter's models."""
        reranker = self.reranker
        make = None if reranker is None else lambda _: reranker
        return Backends(collection, embedder, make, self.judge, self._judgements, self.pruner)

    def _complete(self, pool: Pool, user: User) -> PoolResult:
        # All chunks of a caller are in the pool, so there is nothing to fetch or search for.
        passed = {hit.id: hit.chunk for hit in pool.hits}
        collection = SimpleNamespace(catalogue=lambda: passed, chunks=lambda ids: {})
        backends = self.backends(collection, None)
        kinds = [kind for kind, name in MODEL_OF.items() if getattr(self, name) is not None]
        return replay_completed(pool, self.settings, backends, user, kinds=kinds, push_down=True)


def cut(distances: Iterable[float], **settings: Any) -> Cut:
    """Apply the cutoff alone: ``cut([0.12, 0.18, 0.22, 0.35, 0.50]).kept == 4``.

    `distances` are sorted, best first; lower is nearer. `settings` are the cutoff's, such as ``strategy="fixed"`` or
    ``gap_threshold=0.2``. They default to `Settings()`, except that `max_results` has no limit. Raises
    SettingsError, and InputError for values that are not finite numbers or not ascending."""
    values = {"cutoff.max_results": MAX_CHUNKS, **{f"cutoff.{n}": v for n, v in settings.items()}}
    cutoff = merge([Given("cut()", values)])[0].cutoff
    check_distances_suffice(cutoff)
    try:
        numbers = [float(value) for value in distances]
        result = cut_values(numbers, cutoff)
    except (TypeError, ValueError) as error:
        raise InputError(f"The distances cannot be cut: {error}.", remedy="Pass numbers.") from None
    for left, right in pairwise(numbers):
        if right < left:
            raise InputError(
                f"The distances fall from {left:g} to {right:g}.",
                remedy="Sort them, lowest first. For a similarity s, pass 1 − s.",
            )
    return result


def _with_reranker(settings: Settings, reranker: Reranker | None) -> Settings:
    """Put the name of the passed reranker into the settings."""
    if reranker is None or not settings.quality.enabled:
        return settings
    if reranker.name == "late_interaction":
        return settings.with_values({"quality.reranker": "late_interaction"})
    kind = "http" if reranker.name.startswith(HTTP) else "cross_encoder"
    model = reranker.name.removeprefix(f"{kind}:")
    return settings.with_values({"quality.reranker": kind, "quality.reranker_model": model})


def check_thresholds(settings: Settings, space: Space, *, reranks: bool) -> None:
    """Raise SettingsError for a threshold out of reach for distances in `space` or, with `reranks`, rerank scores."""
    cutoff = settings.cutoff
    if not cutoff.enabled or (space not in ("l2", "cosine") and not reranks):
        return
    span = 1.0 if reranks else documents.RANGE[space][1]
    values = "values made of rerank scores" if reranks else f"{space} distances of unit vectors"
    for name in strategy(cutoff.strategy).reads:
        if name in SCALED and getattr(cutoff, name) > span:
            raise SettingsError(
                f"cutoff.{name} = {getattr(cutoff, name):g} can never be reached: {values} are at most {span:g} apart.",
                remedy="Lower it." if reranks else "Lower it, or correct the metric.",
            )


def check_similarities(settings: Settings, space: Space, distances: Sequence[float]) -> None:
    """Raise SettingsError if quality compares similarities, but `distances` do not belong to unit vectors."""
    quality = settings.quality
    known = quality.good_by == "background" and len(distances) >= BACKGROUND_FROM
    if not quality.enabled or known or space != "ip":
        return
    outside = [d for d in distances if not -documents.EDGE <= d <= documents.RANGE[space][1] + documents.EDGE]
    if outside:
        raise SettingsError(
            f"quality.score_threshold = {quality.score_threshold:g} means nothing here: an ip "
            f"distance of {outside[0]:g} cannot be between unit vectors, so it has no similarity.",
            remedy=f"If these are negative inner products: {documents.NEGATED}"
            if documents.is_negated(distances)
            else "Normalise the vectors, or set quality.enabled to false.",
        )


def check_asked(query: object, user: object) -> str:
    """The query as text. Raises InputError if it is not text, or `user` is neither a user nor None."""
    if not isinstance(query, str):
        raise InputError(f"The query is {query!r}.", remedy="Pass a question as text.")
    if not query.strip():
        raise InputError("The query is empty.", remedy="Pass a question.")
    if not isinstance(user, User | None):
        raise InputError(f"The user is {user!r}.", remedy="Pass a User.")
    return mend_characters(query)


def read_settings(given: str | Path | Settings) -> Settings:
    """Read settings from a profile's name or a TOML file, but not from the environment. Raises SettingsError."""
    if isinstance(given, Settings):
        return given
    if not isinstance(given, str | Path):
        what = f"The settings are of the type {type(given).__name__}."
        raise SettingsError(what, remedy="Pass a profile's name, a TOML file or Settings.")
    if isinstance(given, str) and not given.endswith(".toml"):
        return of_profile(given or DEFAULT)
    return load(file=Path(given), environ={}).settings


def _named_reranker(name: str, quality: Quality) -> Reranker:
    if name.startswith(HTTP):
        url, key = (os.environ.get(f"RAGFILTER_RERANK_{each}", "") for each in ("URL", "KEY"))
        endpoint = RerankEndpoint(url, key)
        timeout_s = quality.reranker_timeout_ms / 1000
        return HttpReranker(name.removeprefix(HTTP), endpoint, timeout_s=timeout_s, batch=quality.reranker_batch)
    bundled = name == "late_interaction"
    check_installed("onnxruntime" if bundled else "sentence_transformers", extra="models")
    return LateInteraction() if bundled else CrossEncoderReranker(name)


def _named_pruner(name: str) -> Pruner:
    if name != "sentences":
        raise InputError(f"There is no pruner {name!r}.", remedy="Pass 'sentences', or a pruner of your own.")
    check_installed("onnxruntime", extra="models")
    return SentencePruner(BundledEmbedder())


def _named_judge(model: str) -> ChatModel:
    from ragfilter.models.openai import OpenAIChat

    key, url = (os.environ.get(f"OPENAI_{name}", "") for name in ("API_KEY", "BASE_URL"))
    return OpenAIChat(model=model, api_key=key, base_url=url)
