"""The filter's settings: one frozen, validated tree of sections.

Every field declares its default, range, unit and help once. Widgets, TOML, environment, flags and
the settings reference in the docs are derived from these fields (`fields()`). Layers import their
section from here. `ragfilter.settings.config` says where values come from and which of them win.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, model_validator

from ragfilter.judge import prompts as judge_prompts
from ragfilter.settings.field import (
    MAX_CHUNKS,
    OR_NOTHING,
    FieldInfo,
    OneOf,
    Section,
    SettingTable,
    setting,
    walk,
)
from ragfilter.settings.learned import Calibration, TunedOn

STRATEGIES: Mapping[str, str] = {
    "gap": "the largest step in distance.",
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
"""The strategies of the cutoff, in the order in which they are shown, with what each of them finds.
`ragfilter.layers.strategies` has a file for each."""
TUNED_SHARE = 0.8
"""Source: docs/tuning.md. Most unrelated questions are above it, and hardly any labelled one."""


class Retrieval(Section):
    k: int = setting(
        15,
        "Number of chunks that an unfiltered search puts into the prompt, for comparison with "
        "the filtered result. Also the number of chunks that query_must looks for, and the "
        "maximum number of results if cutoff and judge are both off, unless quality checks more "
        "at first.",
        unit="chunks", ge=1, le=MAX_CHUNKS, ceiling=50, label="Unfiltered k",
    )  # fmt: skip
    pool_size: int = setting(
        200,
        "Number of hits gathered at first. The pool is doubled until enough chunks pass "
        "clearance and rules.",
        unit="chunks", ge=10, le=5000, ceiling=1000, step=10, label="Pool size",
    )  # fmt: skip
    lexical: bool = setting(
        False,
        "Also search by words (BM25, or the text search of PostgreSQL), and add what it finds. "
        "Hits then have the scores lexical and fused (by reciprocal ranks), by which "
        "cutoff.score can cut.",
        label="Search by words",
    )
    source_pattern: str = setting(
        "",
        "Search only files whose name contains this text, or matches it as a pattern if it has a "
        "* ? or [. Empty searches all files. References may still lead to other files.",
        label="Limit to files",
    )  # fmt: skip


class Clearance(Section):
    """Who the user is, is no setting: it is the argument `user` beside the settings. The layer is
    on for every user who is given, and the setting counts only without one."""

    enabled: bool = setting(
        False,
        "Hide chunks that the user may not see, before any other layer runs. Can be off only "
        "without a user, or by hand on the page.",
    )


class QueryMust(Section):
    enabled: bool = setting(False, "Drop chunks whose query_must rule the query does not meet.")
    pin: bool = setting(
        False,
        "Pin the nearest chunks whose rule the query meets, at most as many as the unfiltered k, "
        "so that no threshold of a later layer drops them. A met rule is stronger evidence than "
        "a distance.",
        label="Pin chunks whose rule is met",
    )
    references: int = setting(
        0,
        "If two or more chunks whose rule is met refer to the best other chunk, also pin up to "
        "this many chunks that it refers to, the nearest first. 0 pins none.",
        unit="chunks", ge=0, le=50, ceiling=10, label="References pinned",
    )  # fmt: skip
    max_rounds: int = setting(
        3,
        "Maximum number of rounds of the replayed re-query loop. For display only: it does not "
        "affect the result.",
        unit="rounds", ge=1, le=20, ceiling=10, label="Max re-query rounds",
    )  # fmt: skip


class Entities(Section):
    enabled: bool = setting(
        False, "In a comparison (X vs Y), search for each side separately and pin its best chunk."
    )
    per_entity: int = setting(
        10,
        "Number of chunks retrieved for each side.",
        unit="chunks", ge=1, le=100, ceiling=50, label="Chunks per side",
    )  # fmt: skip


class Words(Section):
    enabled: bool = setting(
        False,
        "Move up chunks that share distinctive words with the query, and pin those that state a "
        "value given in it.",
    )
    weight: float = setting(
        1.5,
        "Weight of shared words. A chunk with all of them moves up by this many times the "
        "difference between the background and the best distance.",
        unit="times", ge=0, le=10, step=0.1, ceiling=4, label="Weight of words",
    )  # fmt: skip
    depth: int = setting(
        50, "Number of candidates whose words are compared.",
        unit="chunks", ge=1, le=500, ceiling=100, label="Candidates compared",
    )  # fmt: skip
    pin_values: bool = setting(
        True,
        "If the query gives a value for something (strength 17), pin chunks whose title names "
        "the thing and whose text states the value.",
        label="Pin stated values",
    )


class Quality(Section):
    enabled: bool = setting(
        False, "Keep only good matches. If there are none, rerank or look further."
    )
    mode: Literal["when_poor", "always"] = setting(
        "when_poor",
        "Rerank only if the first candidates are poor, or always.",
        label="Rerank",
    )
    min_top_k: int = setting(
        3, "Number of candidates checked first.",
        unit="chunks", ge=1, le=MAX_CHUNKS, ceiling=20, label="Candidates checked first",
    )  # fmt: skip
    max_top_k: int = setting(
        10, "Maximum number of candidates checked or reranked.",
        unit="chunks", ge=1, le=MAX_CHUNKS, ceiling=50, label="Candidates checked at most",
    )  # fmt: skip
    good_by: Literal["similarity", "background"] = setting(
        "similarity",
        "What makes a candidate good: its similarity, or how much nearer it is than the "
        "background, which works on any distance scale. The background is the mean distance of "
        "the farther half of the pool. Inner products have no 0, so there it is a share of the "
        "way from the best hit. With fewer than 50 hits there is no background, and "
        "similarity decides.",
        label="Good by",
    )
    background_share: float = setting(
        TUNED_SHARE, "Maximum distance of a good candidate, as a share of the background distance.",
        unit="share", ge=0, le=1, step=0.01, label="Background share",
    )  # fmt: skip
    score_threshold: float = setting(
        0.5, "Minimum similarity of a good candidate.",
        unit="similarity", ge=0, le=1, step=0.01, label="Similarity threshold",
    )  # fmt: skip
    reranker: Literal["late_interaction", "cross_encoder", "http", "none"] = setting(
        "late_interaction",
        "Model that rescores the candidates: late interaction (bundled), a cross-encoder, one at "
        "the address of RAGFILTER_RERANK_URL (Cohere, Jina, vLLM, TEI), or none.",
        label="Reranker",
    )
    reranker_model: str = setting(
        "cross-encoder/ms-marco-MiniLM-L-6-v2",
        "Name or path of the cross-encoder, or the endpoint's name of the model.",
        label="Rerank model",
    )
    reranker_batch: int = setting(
        32, "http: number of chunks sent in one call.",
        unit="chunks", ge=1, le=1000, ceiling=100, label="Chunks per call",
    )  # fmt: skip
    reranker_slope: float = setting(
        0.0, "A rerank score s counts as 1 / (1 + exp(−(slope × s + offset))), from 0 to 1, as "
        "fitted to labels by `ragfilter fit-reranker`. At 0, nothing is fitted: scores outside 0 "
        "to 1 and an endpoint's scores only order the chunks, and no threshold applies to them.",
        unit="slope", ge=0, le=10_000, step=0.1, ceiling=100, label="Slope of the fit",
    )  # fmt: skip
    reranker_offset: float = setting(
        0.0, "The offset of that fit.",
        unit="offset", ge=-100_000, le=100_000, step=0.1, label="Offset of the fit",
    )  # fmt: skip
    reranker_timeout_ms: int = setting(
        10_000, "Time to wait for the reranker before falling back.",
        unit="ms", ge=100, le=600_000, step=100, ceiling=60_000, label="Rerank timeout",
    )  # fmt: skip
    reranker_top_k: int = setting(
        3, "Maximum number of candidates kept after reranking.",
        unit="chunks", ge=1, le=MAX_CHUNKS, ceiling=30, label="Max kept after reranking",
    )  # fmt: skip
    reranker_threshold: float = setting(
        0.3, "Minimum rerank score of a good candidate.",
        unit="rerank score", ge=0, le=1, step=0.01, label="Rerank threshold",
    )  # fmt: skip

    @model_validator(mode="after")
    def _order(self) -> Quality:
        if self.max_top_k < self.min_top_k:
            raise ValueError(
                f"max_top_k ({self.max_top_k}) must be at least min_top_k ({self.min_top_k})"
            )
        return self


def read_limits(text: str) -> dict[str, float]:
    """The limits that ``dense=0.5 lexical=10`` names, by score. Raises ValueError."""
    pairs = [each.partition("=") for each in text.replace(",", " ").split()]
    limits = {name: float(limit) for name, _, limit in pairs}
    if "" in limits or len(limits) < len(pairs) or not all(map(isfinite, limits.values())):
        raise ValueError(text)
    return limits


def _check_limits(text: str) -> str:
    try:
        read_limits(text)
    except ValueError:
        raise ValueError("it must name scores with numbers, such as dense=0.5") from None
    return text


class Cutoff(Section):
    enabled: bool = setting(True, "Cut the ranked list where relevance drops.")
    strategy: Annotated[str, OneOf(lambda: STRATEGIES)] = setting(
        "gap", "Where to cut.", label="Strategy"
    )
    score: str = setting(
        "",
        "Name of the score to order and cut by, where hits have several: dense (the distance), "
        "rerank, lexical, fused, or one of your own. Thresholds are on its scale. Empty: the "
        "rerank scores where there are any, otherwise the distance.",
        label="Cut by",
    )
    limits: Annotated[str, AfterValidator(_check_limits)] = setting(
        "",
        "Farthest distance by each of several scores, such as `dense=0.5 lexical=10`; of a score "
        "that only gives an order, the last place. Before the cut, hits are dropped that are "
        "beyond the limit of every search that found them.",
        label="Limits by score",
    )
    max_results: int = setting(
        5, "Maximum number of chunks kept (k).",
        unit="chunks", ge=1, le=MAX_CHUNKS, ceiling=50, label="Max results",
    )  # fmt: skip
    min_results: int = setting(
        2, "Minimum number of chunks kept, if there are that many. A smaller k takes precedence.",
        unit="chunks", ge=0, le=MAX_CHUNKS, ceiling=20, label="Min results",
    )  # fmt: skip
    gap_threshold: float = setting(
        0.1, "Smallest gap between distances that counts as a cliff. Lower values cut more.",
        unit="distance", ge=0, le=4, step=0.005, ceiling=0.5, label="Gap threshold",
    )  # fmt: skip
    distance_offset: float = setting(
        0.4, "If there is no cliff, keep chunks within this distance of the best one.",
        unit="distance", ge=0, le=4, step=0.01, ceiling=1.5, label="Distance offset",
    )  # fmt: skip
    skip_first: bool = setting(
        True, "gap: never treat the first step as a cliff. If off, the best chunk may be the "
        "only one kept.",
        label="Skip the first step",
    )  # fmt: skip
    jumps: int = setting(
        1, "autocut: number of the jump to cut at, counting from 1.",
        unit="jumps", ge=1, le=50, ceiling=10, label="Jumps",
    )  # fmt: skip
    b_extra: int = setting(
        0, "adaptive_k: number of chunks kept after the drop.",
        unit="chunks", ge=0, le=100, ceiling=20, label="Extra after the drop",
    )  # fmt: skip
    tail: float = setting(
        0.1, "adaptive_k, and spike without a bend: the share of chunks at the far end. A drop "
        "before one of them does not count. At least one of four or more chunks; 0 for none.",
        unit="share", ge=0, le=0.9, step=0.01, label="Tail",
    )  # fmt: skip
    relative_offset: float = setting(
        0.3, "relative: keep chunks up to this share of the way from the best distance to the "
        "background.",
        unit="share", ge=0, le=1, step=0.01, label="Relative offset",
    )  # fmt: skip
    target: Literal["f1", "f2", "recall", "budget"] = setting(
        "f1",
        "calibrated: what decides how many chunks are kept: the highest expected F1, or F2 "
        "(recall counts twice); a target recall; or the context budget.",
        label="Target",
    )
    recall: float = setting(
        0.9, "calibrated, target recall: share of the relevant hits to keep, of those that reach "
        "the cutoff. Rounded up to 50, 60, 70, 75, 80, 85, 90, 95 or 98%.",
        unit="share", ge=0.5, le=0.98, step=0.01, label="Recall",
    )  # fmt: skip
    prefix: bool = setting(
        False,
        "calibrated, target f1 or f2: keep the first hits in incoming order, instead of the most "
        "likely hits at any position.",
        label="Keep the order",
    )
    calibration: Annotated[Calibration | None, OR_NOTHING] = setting(
        None, "calibrated: what tuning learned from labels.", label="Calibration"
    )
    tuned_on: Annotated[TunedOn | None, OR_NOTHING] = setting(
        None, "What the strategy and its values were tuned on, recorded by tuning. Distances tuned "
        "with another model, space or reranker are refused.", label="Tuned",
    )  # fmt: skip


class Diversity(Section):
    enabled: bool = setting(
        False,
        "Drop near-duplicates, and chunks about parts of the question that other chunks "
        "already cover.",
    )
    max_similarity: float = setting(
        0.7,
        "Drop a chunk if its text is at least this similar to a better one's, measured as "
        "the share of three-word sequences they have in common.",
        unit="text similarity", ge=0.05, le=1, step=0.05, label="Near-duplicate from",
    )  # fmt: skip
    per_part: int = setting(
        3,
        "Chunks kept per distinctive word of the question.",
        unit="chunks", ge=1, le=100, ceiling=20, label="Chunks per part",
    )  # fmt: skip


class Judge(Section):
    enabled: bool = setting(
        False, "Let an LLM decide for each chunk: keep it, discard it, or follow its references."
    )
    prompt: Annotated[str, OneOf(judge_prompts.described)] = setting(
        judge_prompts.DEFAULT,
        "Prompt variant. Put your own in `prompts/` in the workspace.",
        label="Prompt",
    )
    max_chunks: int = setting(
        25, "Maximum number of chunks kept before the LLM has been asked, or if it fails.",
        unit="chunks", ge=1, le=MAX_CHUNKS, ceiling=50, label="Max chunks",
    )  # fmt: skip
    oversample: float = setting(
        1.6, "Candidates shown to the LLM, as a multiple of *Max chunks*.",
        unit="times", ge=1, le=10, step=0.1, ceiling=4, label="Oversample",
    )  # fmt: skip
    min_relevance: float = setting(
        0.3, "Chunks below this similarity are dropped without asking the LLM.",
        unit="similarity", ge=0, le=1, step=0.01, label="Min similarity",
    )  # fmt: skip
    timeout_ms: int = setting(
        5000, "Time to wait for the LLM before falling back.",
        unit="ms", ge=100, le=600_000, step=100, ceiling=30_000, label="Timeout",
    )  # fmt: skip
    max_prompt_tokens: int = setting(
        2000,
        "Token budget of the judge's prompt. Texts are shortened evenly, keeping the sentences "
        "closest to the question; chunks that still do not fit are dropped, last first.",
        unit="tokens", ge=200, le=200_000, step=100, ceiling=16_000, label="Prompt budget",
    )  # fmt: skip
    max_expansion: int = setting(
        50, "Maximum number of chunks that one expansion may bring in.",
        unit="chunks", ge=1, le=500, ceiling=100, label="Expansion limit",
    )  # fmt: skip


class Prune(Section):
    enabled: bool = setting(
        False,
        "Leave sentences of kept chunks that add nothing to the answer out of the prompt. Tables, "
        "lists and code stay whole or are left out whole.",
    )
    share: float = setting(
        0.55,
        "Leave out what contributes less than this share of what the best sentence contributes.",
        unit="share", ge=0, le=1, step=0.01, label="Least contribution",
    )  # fmt: skip


class ContextSettings(Section):
    max_context_tokens: int = setting(
        4000, "Maximum number of tokens of chunk text in the answer's prompt.",
        unit="tokens", ge=50, le=1_000_000, step=100, ceiling=32_000, label="Context budget",
    )  # fmt: skip


class Confidence(Section):
    high_below: float = setting(
        0.2, "A hit with a distance below this has high confidence, unless it follows a large "
        "gap.",
        unit="distance", ge=0, le=4, step=0.01, ceiling=2, label="High below",
    )  # fmt: skip
    medium_below: float = setting(
        0.4, "A hit with a distance up to this has medium confidence, unless it follows a large "
        "gap. All others have low confidence.",
        unit="distance", ge=0, le=4, step=0.01, ceiling=2, label="Medium up to",
    )  # fmt: skip
    large_gap: float = setting(
        0.1, "A hit that follows a gap of at least this size has low confidence.",
        unit="distance", ge=0, le=4, step=0.01, ceiling=1, label="Large gap",
    )  # fmt: skip


class Settings(Section):
    """All settings of the filter. `Settings()` holds the seeds' defaults."""

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
        """A copy with dotted paths replaced, validated: ``{"cutoff.gap_threshold": 0.12}``.

        Raises pydantic.ValidationError; `settings.config` turns that into a `SettingsError`.
        """
        sections: dict[str, Any] = {}
        for path, value in values.items():
            section, _, name = path.partition(".")
            if section not in sections:
                sections[section] = dict(self.__dict__.get(section, ()))
            sections[section][name] = value
        # Sections that nothing changes are taken as they are.
        return type(self).model_validate({**dict(self), **sections})

    def get(self, path: str) -> Any:
        """The value at a dotted path. Raises AttributeError if there is none."""
        section, _, name = path.partition(".")
        return getattr(getattr(self, section), name)

    def changed_from(self, base: Self) -> dict[str, Any]:
        """Dotted paths whose value differs from `base`, with this tree's values, as flags and links
        have them: a table as its JSON."""
        values = ((f.path, self.get(f.path), base.get(f.path)) for f in fields())
        return {path: _flat(own) for path, own, other in values if own != other}


def _flat(value: Any) -> Any:
    return "" if value is None else str(value) if isinstance(value, SettingTable) else value


def fields() -> tuple[FieldInfo, ...]:
    """Every setting, in the order in which the layers act."""
    return _FIELDS


def field(path: str) -> FieldInfo:
    """The setting at a dotted path. Raises KeyError if there is none."""
    return _BY_PATH[path]


_FIELDS = tuple(walk(Settings))
_BY_PATH = {f.path: f for f in _FIELDS}
