"""The filter's settings: one frozen, validated tree of sections.

Every field declares its default, range, unit and help once. Widgets, TOML, environment, flags and the settings
reference in the docs are derived from these fields (`fields()`). Records of tuning are settings too:
docs/design.md#tune and #calibrated."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from math import isfinite
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from ragfilter.judge import prompts as judge_prompts
from ragfilter.settings.field import MAX_CHUNKS, OR_NOTHING, FieldInfo, OneOf, Section, SettingTable, setting, walk
from ragfilter.text.numbers import counted

STRATEGIES: Mapping[str, str] = {
    "gap": "the largest gap in distance.",
    "fixed": "the first k.",
    "autocut": "one of the jumps in the curve.",
    "adaptive_k": "the largest drop in similarity.",
    "moving_avg": "the largest drop in a moving average.",
    "spike": "the first bend of the curve.",
    "car": "the largest gap between clusters of distances; works on any scale.",
    "otsu": "the split into a near and a far class; works on any scale.",
    "relative": "a share of the way from the best distance to the background; works on any scale.",
    "calibrated": "what tuning learned from your labels.",
}
"""The strategies of the cutoff in display order, each with what it finds.
`ragfilter.layers.strategies` has a file for each."""
TUNED_SHARE = 0.8
"""The best hit is above this share for most unrelated questions and for hardly any labelled one. docs/tuning.md."""


# -- results of tuning, stored in the settings of the cutoff ---------------------------------------

Space = Literal["l2", "cosine", "ip", "rank"]
"""How distances are measured. ``rank``: the store gives only an order, and a hit's distance is its 1-based place."""

FEATURES: Mapping[str, str] = {
    "way": "distance, as a share of the way from the best hit to the background",
    "start": "the best hit's distance as a share of the background",
    "rank": "logarithm of the rank by distance",
    "place": "logarithm of the place in the order they come in",
    "gap_before": "step from the next nearer hit, as a share of that way",
    "gap_after": "step to the next farther hit, as a share of that way",
    "crowd": "mean share of the way of the ten nearest: low where the curve is flat",
    "rule": "1 where the chunk's own rule holds for the query",
    "words": "words shared with the query, as a share of the maximum overlap",
    "words_behind": "how far that lies below the most of any hit",
    "alike": "words shared with the four best hits: by rerank score, or in the order they come in",
    "linked": "how much nearer than the others the hits are that it refers to, or that refer to it",
    "kin": "share of the four best hits that are of its type",
    "score": "rerank score",
    "score_behind": "how far that lies below the best score of any hit",
}
"""The features of a calibration, with the meaning of each."""
MIN_LABELLED = 10
"""Minimum number of labelled queries to learn from."""


class Origin(SettingTable):
    """The labels behind a value, and what its scale depends on. `queries` counts labelled queries;
    `reranker` is empty without one. `date` is in ISO format. `guess`: the value was carried over to
    this model and space from others, without labels."""

    collection: str
    embedder: str
    space: Space
    reranker: str
    labels: str
    queries: int
    # TOML has its own date type.
    date: Annotated[str, BeforeValidator(str)]
    guess: bool = False

    @property
    def collection_name(self) -> str:
        """The collection's name, or a description if a caller passed the hits."""
        return self.collection or "hits without a collection name"


class TunedOn(Origin):
    """The choice that labels made: the strategy (empty without a cutoff) and values by dotted path.
    `score` is the named score to cut by, empty for the distance. `quantiles` has the share of hits
    below each threshold, by its path."""

    strategy: str
    score: str = ""
    values: Mapping[str, int | float] = {}
    quantiles: Mapping[str, float] = {}
    values_only: bool = False
    """Whether labels chose only the values, as by a click on the map, of a strategy that was set by hand."""

    @property
    def summary(self) -> str:
        """``gap, tuned on 149 queries of demo``."""
        chosen = self.strategy or "limits"
        how = "carried over, a guess" if self.guess else "tuned"
        return f"{chosen}, {how} on {counted(self.queries, 'query')} of {self.collection_name}"


class Split(Section):
    """A split of a tree: `low` if the feature is at most `at`, else `high`."""

    feature: str
    at: float
    low: Split | float
    high: Split | float


class Calibration(Origin):
    """The log-odds of relevance: linear in the features, or a sum of small trees.

    `relevant` counts the labels of relevant hits that were found. `depth` is the number of hits used per query;
    `beyond` is the mean number of relevant chunks per query outside these. `keeps` has the thresholds for the recall
    setting: the lowest probability kept, by the share of relevant hits to keep. `held_out` has the share actually kept
    on held-out queries in `folds` folds, by the same share."""

    relevant: int
    depth: int = Field(ge=1, le=200)
    beyond: float = 0.0
    folds: int = Field(default=5, ge=2)
    intercept: float
    weights: Mapping[str, float] = {}
    trees: tuple[Split | float, ...] = ()
    keeps: Mapping[str, float] = {}
    held_out: Mapping[str, float] = {}

    @model_validator(mode="after")
    def _known(self) -> Calibration:
        unknown = sorted(self.features - FEATURES.keys())
        if unknown:
            raise ValueError(f"unknown feature {unknown[0]}")
        return self

    @property
    def features(self) -> frozenset[str]:
        """The features that it uses."""
        return frozenset(self.weights).union(*map(_features_of, self.trees))

    @property
    def summary(self) -> str:
        """``11 weights learned from 149 queries of demo``."""
        kind = f"{len(self.trees)} trees" if self.trees else f"{len(self.weights)} weights"
        guess = ", carried over, a guess" if self.guess else ""
        return f"{kind} learned from {self.queries} queries of {self.collection_name}{guess}"


def _features_of(tree: Split | float) -> frozenset[str]:
    if not isinstance(tree, Split):
        return frozenset()
    return frozenset({tree.feature}) | _features_of(tree.low) | _features_of(tree.high)


# -- the sections ----------------------------------------------------------------------------------


class Retrieval(Section):
    k: int = setting(15, unit="chunks", ge=1, le=MAX_CHUNKS, ceiling=50, label="Unfiltered k")
    """Number of chunks that an unfiltered search puts into the prompt, for comparison with the
    filtered result. Also the number of chunks that query_must looks for, and the maximum number of
    results if cutoff and judge are both off, unless quality checks more at first."""
    pool_size: int = setting(200, unit="chunks", ge=10, le=5000, ceiling=1000, step=10)
    """Number of hits gathered at first. The pool is doubled until enough chunks pass clearance and rules."""
    lexical: bool = setting(False, label="Search by words")
    """Also search by words (BM25, or the text search of PostgreSQL), and add what it finds. Hits
    then have the scores lexical and fused (by reciprocal ranks), by which cutoff.score can cut."""
    source_pattern: str = setting("", label="Limit to files")
    """Search only files whose name contains this text, or matches it if it is a pattern with * ? or
    [. Empty searches all files. References may still lead to other files."""


class Clearance(Section):
    """The user is not a setting but the argument `user` next to the settings. The layer is on
    whenever a user is given; the setting counts only without one."""

    enabled: bool = setting(False)
    """Hide chunks that are not cleared for the user, before any other layer runs. Can be off only
    without a user, or by hand on the page."""


class QueryMust(Section):
    enabled: bool = setting(False)
    """Drop chunks whose rule (query_must) the question does not meet."""
    pin: bool = setting(False, label="Pin chunks whose rule is met")
    """Pin the nearest chunks whose rule the query meets, at most as many as the unfiltered k, so that no threshold of a
    later layer drops them. A met rule is stronger evidence than a distance. """
    references: int = setting(0, unit="chunks", ge=0, le=50, ceiling=10, label="References pinned")
    """If two or more chunks whose rule is met refer to the best other chunk, also pin up to this
    many chunks that it refers to, the nearest first. 0 pins none."""
    max_rounds: int = setting(3, unit="rounds", ge=1, le=20, ceiling=10, label="Max re-query rounds")
    """Maximum number of rounds of the replayed re-query loop. For display only: it does not affect the result."""


class Entities(Section):
    enabled: bool = setting(False)
    """In a comparison (X vs Y), search for each side separately and pin its best chunk."""
    per_entity: int = setting(10, unit="chunks", ge=1, le=100, ceiling=50, label="Chunks per side")
    """Number of chunks retrieved for each side."""


class Words(Section):
    enabled: bool = setting(False)
    """Move up chunks that share distinctive words with the query, and pin those that state a value given in it."""
    weight: float = setting(1.5, unit="times", ge=0, le=10, step=0.1, ceiling=4, label="Weight of words")
    """Weight of shared words. A chunk with all of them moves up by this many times the difference
    between the background and the best distance."""
    depth: int = setting(50, unit="chunks", ge=1, le=500, ceiling=100, label="Candidates compared")
    """Number of candidates whose words are compared."""
    pin_values: bool = setting(True, label="Pin stated values")
    """If the query gives a value for something (strength 17), pin chunks whose title names the
    thing and whose text states the value."""


class Quality(Section):
    enabled: bool = setting(False)
    """Keep only good matches. If there are none, rerank or look further."""
    mode: Literal["when_poor", "always"] = setting("when_poor", label="Rerank")
    """Rerank only if the first candidates are poor, or always."""
    min_top_k: int = setting(3, unit="chunks", ge=1, le=MAX_CHUNKS, ceiling=20, label="Candidates checked first")
    """Number of candidates checked first."""
    max_top_k: int = setting(10, unit="chunks", ge=1, le=MAX_CHUNKS, ceiling=50, label="Candidates checked at most")
    """Maximum number of candidates checked or reranked."""
    good_by: Literal["similarity", "background"] = setting("similarity")
    """What makes a candidate good: its similarity, or how much nearer it is than the background,
    which works on any distance scale. The background is the mean distance of the farther half of
    the pool. Inner products have no 0, so there it is a share of the way from the best hit. With
    fewer than 50 hits there is no background, and similarity decides."""
    background_share: float = setting(TUNED_SHARE, unit="share", ge=0, le=1, step=0.01)
    """Maximum distance of a good candidate, as a share of the background distance."""
    score_threshold: float = setting(0.5, unit="similarity", ge=0, le=1, step=0.01, label="Similarity threshold")
    """Minimum similarity of a good candidate."""
    reranker: Literal["late_interaction", "cross_encoder", "http", "none"] = setting("late_interaction")
    """Model that rescores the candidates: late interaction (bundled), a cross-encoder, one at the
    address of RAGFILTER_RERANK_URL (Cohere, Jina, vLLM, TEI), or none."""
    reranker_model: str = setting("cross-encoder/ms-marco-MiniLM-L-6-v2", label="Rerank model")
    """Name or path of the cross-encoder, or the endpoint's name for the model."""
    reranker_batch: int = setting(32, unit="chunks", ge=1, le=1000, ceiling=100, label="Chunks per call")
    """http: number of chunks sent in one call."""
    reranker_slope: float = setting(0.0, unit="slope", ge=0, le=10_000, step=0.1, ceiling=100, label="Slope of the fit")
    """A rerank score s counts as 1 / (1 + exp(−(slope × s + offset))), from 0 to 1, as fitted to
    labels by `ragfilter fit-reranker`. At 0, nothing is fitted: scores outside 0 to 1 and an
    endpoint's scores only order the chunks, and no threshold applies to them."""
    reranker_offset: float = setting(0.0, unit="offset", ge=-100_000, le=100_000, step=0.1, label="Offset of the fit")
    """The offset of that fit."""
    reranker_timeout_ms: int = setting(
        10_000, unit="ms", ge=100, le=600_000, step=100, ceiling=60_000, label="Rerank timeout"
    )
    """Time to wait for the reranker before falling back."""
    reranker_top_k: int = setting(3, unit="chunks", ge=1, le=MAX_CHUNKS, ceiling=30, label="Max kept after reranking")
    """Maximum number of candidates kept after reranking."""
    reranker_threshold: float = setting(0.3, unit="rerank score", ge=0, le=1, step=0.01, label="Rerank threshold")
    """Minimum rerank score of a good candidate."""

    @model_validator(mode="after")
    def _order(self) -> Quality:
        if self.max_top_k < self.min_top_k:
            raise ValueError(f"max_top_k ({self.max_top_k}) must be at least min_top_k ({self.min_top_k})")
        return self


def read_limits(text: str) -> dict[str, float]:
    """Parse limits such as ``dense=0.5 lexical=10``, by score. Raises ValueError."""
    pairs = [each.partition("=") for each in text.replace(",", " ").split()]
    with suppress(ValueError):
        limits = {name: float(limit) for name, _, limit in pairs}
        if "" not in limits and len(limits) == len(pairs) and all(map(isfinite, limits.values())):
            return limits
    raise ValueError("it must name scores with numbers, such as dense=0.5")


def _with_limits(text: str) -> str:
    read_limits(text)
    return text


class Cutoff(Section):
    enabled: bool = setting(True)
    """Cut the ranked list where relevance drops."""
    strategy: Annotated[str, OneOf(lambda: STRATEGIES)] = setting("gap")
    """Where to cut."""
    score: str = setting("", label="Cut by")
    """Name of the score to order and cut by, where hits have several: dense (the distance), rerank,
    lexical, fused, or one of your own. Thresholds are on its scale. Empty: the rerank scores where
    there are any, otherwise the distance."""
    limits: Annotated[str, AfterValidator(_with_limits)] = setting("", label="Limits by score")
    """Farthest distance by each of several scores, such as `dense=0.5 lexical=10`; for a score that only gives an
    order, the last position kept. Before the cut, hits are dropped that are beyond the limit of every search that found
    them."""
    max_results: int = setting(5, unit="chunks", ge=1, le=MAX_CHUNKS, ceiling=50)
    """Maximum number of chunks kept (k), unless more are pinned."""
    min_results: int = setting(2, unit="chunks", ge=0, le=MAX_CHUNKS, ceiling=20)
    """Minimum number of chunks kept, if there are that many. A smaller k takes precedence."""
    gap_threshold: float = setting(0.1, unit="distance", ge=0, le=4, step=0.005, ceiling=0.5)
    """Smallest gap between distances that counts as a cliff. Lower values cut more."""
    distance_offset: float = setting(0.4, unit="distance", ge=0, le=4, step=0.01, ceiling=1.5)
    """If there is no cliff, keep chunks within this distance of the best one."""
    skip_first: bool = setting(True, label="Skip the first step")
    """gap: never treat the first step as a cliff. If off, the best chunk may be the only one kept."""
    jumps: int = setting(1, unit="jumps", ge=1, le=50, ceiling=10)
    """autocut: number of the jump to cut at, counting from 1."""
    b_extra: int = setting(0, unit="chunks", ge=0, le=100, ceiling=20, label="Extra after the drop")
    """adaptive_k: number of chunks kept after the drop."""
    tail: float = setting(0.1, unit="share", ge=0, le=0.9, step=0.01)
    """adaptive_k, and spike without a bend: the share of chunks at the far end. A drop before one
    of them does not count. At least one of four or more chunks; 0 for none."""
    relative_offset: float = setting(0.3, unit="share", ge=0, le=1, step=0.01)
    """relative: keep chunks up to this share of the way from the best distance to the background; two thirds of it if
    many hits share a title."""
    target: Literal["f1", "f2", "recall", "budget"] = setting("f1")
    """calibrated: what decides how many chunks are kept: the highest expected F1, or F2 (recall
    counts twice); a target recall; or the context budget."""
    recall: float = setting(0.9, unit="share", ge=0.5, le=0.98, step=0.01)
    """calibrated, target recall: share of the relevant hits to keep, of those that reach the
    cutoff. Rounded up to 50, 60, 70, 75, 80, 85, 90, 95 or 98%."""
    prefix: bool = setting(False, label="Keep the order")
    """calibrated, target f1 or f2: keep the first hits in incoming order, instead of the most
    likely hits at any position."""
    calibration: Annotated[Calibration | None, OR_NOTHING] = setting(None)
    """calibrated: what tuning learned from labels."""
    tuned_on: Annotated[TunedOn | None, OR_NOTHING] = setting(None, label="Tuned")
    """What the strategy and its values were tuned on, recorded by tuning. Distances tuned with
    another model, space or reranker are refused."""


class Diversity(Section):
    enabled: bool = setting(False)
    """Drop near-duplicates, and chunks about parts of the question that other chunks already cover."""
    max_similarity: float = setting(0.7, unit="text similarity", ge=0.05, le=1, step=0.05, label="Near-duplicate from")
    """Drop a chunk if its text is at least this similar to a better one's, measured as the share of
    three-word sequences they have in common."""
    per_part: int = setting(3, unit="chunks", ge=1, le=100, ceiling=20, label="Chunks per part")
    """Chunks kept per distinctive word of the question."""


class Judge(Section):
    enabled: bool = setting(False)
    """Let an LLM decide for each chunk: keep it, discard it, or follow its references."""
    prompt: Annotated[str, OneOf(judge_prompts.described)] = setting(judge_prompts.DEFAULT)
    """Prompt variant. Put your own in `prompts/` in the workspace."""
    max_chunks: int = setting(25, unit="chunks", ge=1, le=MAX_CHUNKS, ceiling=50)
    """Maximum number of chunks kept before the LLM has been asked, or if it fails."""
    oversample: float = setting(1.6, unit="times", ge=1, le=10, step=0.1, ceiling=4)
    """Candidates shown to the LLM, as a multiple of *Max chunks*."""
    min_relevance: float = setting(0.3, unit="similarity", ge=0, le=1, step=0.01, label="Min similarity")
    """Chunks below this similarity are dropped without asking the LLM."""
    timeout_ms: int = setting(5000, unit="ms", ge=100, le=600_000, step=100, ceiling=30_000, label="Timeout")
    """Time to wait for the LLM before falling back."""
    max_prompt_tokens: int = setting(
        2000, unit="tokens", ge=200, le=200_000, step=100, ceiling=16_000, label="Prompt budget"
    )
    """Token budget of the judge's prompt. Texts are shortened evenly, keeping the sentences closest
    to the question; chunks that still do not fit are dropped, last first."""
    max_expansion: int = setting(50, unit="chunks", ge=1, le=500, ceiling=100, label="Expansion limit")
    """Maximum number of chunks that one expansion can add."""


class Prune(Section):
    enabled: bool = setting(False)
    """Leave sentences of kept chunks that add nothing to the answer out of the prompt. Tables,
    lists and code stay whole or are left out whole."""
    share: float = setting(0.4, unit="share", ge=0, le=1, step=0.01, label="Least contribution")
    """Leave out what contributes less than this share of what the best sentence contributes."""


class ContextSettings(Section):
    max_context_tokens: int = setting(
        4000, unit="tokens", ge=50, le=1_000_000, step=100, ceiling=32_000, label="Context budget"
    )
    """Maximum number of tokens of chunk text in the answer's prompt."""


class Confidence(Section):
    high_below: float = setting(0.2, unit="distance", ge=0, le=4, step=0.01, ceiling=2)
    """A hit with a distance below this has high confidence, unless it follows a large gap."""
    medium_below: float = setting(0.4, unit="distance", ge=0, le=4, step=0.01, ceiling=2, label="Medium up to")
    """A hit with a distance up to this has medium confidence, unless it follows a large gap. All
    others have low confidence."""
    large_gap: float = setting(0.1, unit="distance", ge=0, le=4, step=0.01, ceiling=1)
    """A hit that follows a gap of at least this size has low confidence."""


class Settings(Section):
    """All settings of the filter. `Settings()` holds the defaults of docs/design.md."""

    retrieval: Retrieval = Retrieval()
    clearance: Clearance = Clearance()
    query_must: QueryMust = QueryMust()
    entities: Entities = Entities()
    words: Words = Words()
    quality: Quality = Quality()
    cutoff: Cutoff = Cutoff()
    diversity: Diversity = Diversity()
    judge: Judge = Judge()
    prune: Prune = Prune()
    context: ContextSettings = ContextSettings()
    confidence: Confidence = Confidence()

    def __init__(self, **sections: Section | Mapping[str, Any]) -> None:
        super().__init__(**sections)

    def __repr__(self) -> str:
        changed = (f"{p}={v!r:.40}" for p, v in self.changed_from(Settings()).items())
        return f"<Settings: {', '.join(changed) or 'the defaults'}>"

    __str__ = __repr__

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """A validated copy with new values by dotted path: ``{"cutoff.gap_threshold": 0.12}``.

        Raises pydantic.ValidationError; `settings.config` turns that into a `SettingsError`."""
        sections: dict[str, Any] = {}
        for path, value in values.items():
            section, _, name = path.partition(".")
            if section not in sections:
                sections[section] = dict(self.__dict__.get(section, ()))
            sections[section][name] = value
        # Unchanged sections are reused.
        return type(self).model_validate({**dict(self), **sections})

    def get(self, path: str) -> Any:
        """The value at a dotted path. Raises AttributeError if there is none."""
        section, _, name = path.partition(".")
        return getattr(getattr(self, section), name)

    def changed_from(self, base: Self) -> dict[str, Any]:
        """The values that differ from `base`, by dotted path, in the form of flags and links: a table as its JSON."""
        values = ((f.path, self.get(f.path), base.get(f.path)) for f in fields())
        return {path: _flat(value) for path, value, other in values if value != other}


def _flat(value: Any) -> Any:
    return "" if value is None else str(value) if isinstance(value, SettingTable) else value


def fields() -> tuple[FieldInfo, ...]:
    """Every setting, in the order in which the layers act."""
    return tuple(_FIELDS.values())


def field_info(path: str) -> FieldInfo:
    """The setting at a dotted path. Raises KeyError if there is none."""
    return _FIELDS[path]


_FIELDS = {f.path: f for f in walk(Settings)}
