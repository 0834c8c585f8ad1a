"""The filter's settings: one frozen, validated tree.

Every field declares its default, range, unit and help once, here. Widgets, TOML, environment,
command-line flags and the settings reference in the docs are derived from these fields
(`fields()`). Where values come from, and who wins, is in `ragfilter.settings.config`.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import field_validator, model_validator

from ragfilter.judge import prompts as judge_prompts
from ragfilter.settings.field import FieldInfo, Section, setting, walk

Strategy = Literal["gap", "fixed", "autocut", "adaptive_k"]


class Retrieval(Section):
    k: int = setting(
        15,
        "How many chunks an unfiltered search puts into the prompt. The filtered result is "
        "compared with these, query_must looks for this many clean chunks, and it is the limit "
        "where neither cutoff nor judge is on.",
        unit="chunks", ge=1, le=200, ceiling=50, label="k, unfiltered",
    )  # fmt: skip
    pool_size: int = setting(
        200,
        "How many hits are gathered at first. The pool is doubled while clean chunks run short.",
        unit="chunks", ge=10, le=5000, ceiling=1000, step=10, label="Pool size",
    )  # fmt: skip
    source_pattern: str = setting(
        "",
        "Search only files whose name holds this text, or matches it where it has a * ? or [; "
        "empty searches all. References may still lead to other files.",
        label="Only files",
    )  # fmt: skip


class Clearance(Section):
    """Who the user is, is no setting: it is the argument `user` beside the settings."""

    enabled: bool = setting(False, "Hide what the user may not see, before anything else.")


class QueryMust(Section):
    enabled: bool = setting(False, "Drop chunks whose query_must rule the query does not meet.")
    max_rounds: int = setting(
        3,
        "How many rounds the replayed re-query loop may take. The wide pool finds the clean chunks "
        "anyway; the rounds show what asking again would have done.",
        unit="rounds", ge=1, le=20, ceiling=10, label="Re-query rounds shown",
    )  # fmt: skip


class Entities(Section):
    enabled: bool = setting(
        False, "In a comparison (X vs Y), retrieve each side on its own and pin its best chunk."
    )
    per_entity: int = setting(
        10,
        "How many chunks each side's own retrieval brings.",
        unit="chunks", ge=1, le=100, ceiling=50, label="Chunks per entity",
    )  # fmt: skip


class Quality(Section):
    enabled: bool = setting(False, "Keep only good matches; widen or rerank where there are none.")
    mode: Literal["when_poor", "always"] = setting(
        "when_poor",
        "Rerank only when the first results are poor, or always.",
        label="Rerank",
    )
    min_top_k: int = setting(
        3, "How many results are looked at first.",
        unit="chunks", ge=1, le=200, ceiling=20, label="First look",
    )  # fmt: skip
    max_top_k: int = setting(
        10, "How many results are looked at in the end, or reranked.",
        unit="chunks", ge=1, le=500, ceiling=50, label="Last look",
    )  # fmt: skip
    score_threshold: float = setting(
        0.5, "A result is good when its similarity reaches this.",
        unit="similarity", ge=0, le=1, step=0.01, label="Similarity threshold",
    )  # fmt: skip
    reranker: Literal["late_interaction", "cross_encoder", "none"] = setting(
        "late_interaction",
        "Which reranker looks again: late interaction (bundled), a cross-encoder model, or none.",
        label="Reranker",
    )
    reranker_model: str = setting(
        "cross-encoder/ms-marco-MiniLM-L-6-v2",
        "Name or path of the cross-encoder; only used with the cross_encoder reranker.",
        label="Cross-encoder",
    )
    reranker_timeout_ms: int = setting(
        10_000, "How long to wait for the reranker's scores before falling back.",
        unit="ms", ge=100, le=600_000, step=100, ceiling=60_000, label="Rerank timeout",
    )  # fmt: skip
    reranker_top_k: int = setting(
        3, "How many results are kept after reranking.",
        unit="chunks", ge=1, le=200, ceiling=30, label="Kept after reranking",
    )  # fmt: skip
    reranker_threshold: float = setting(
        0.3, "A reranked result is good when its score reaches this.",
        unit="rerank score", ge=0, le=1, step=0.01, label="Rerank threshold",
    )  # fmt: skip

    @model_validator(mode="after")
    def _order(self) -> Quality:
        if self.max_top_k < self.min_top_k:
            raise ValueError(
                f"max_top_k ({self.max_top_k}) must be at least min_top_k ({self.min_top_k})"
            )
        return self


class Cutoff(Section):
    enabled: bool = setting(True, "Cut the ranked list where relevance falls off.")
    strategy: Strategy = setting(
        "gap",
        "gap: the largest step of distance; fixed: first k; autocut: jumps in the curve; "
        "adaptive_k: the largest drop of similarity.",
        label="Strategy",
    )
    max_results: int = setting(
        5, "The most results that may stay (k).",
        unit="chunks", ge=1, le=200, ceiling=50, label="k, most results",
    )  # fmt: skip
    min_results: int = setting(
        2, "The fewest results that stay, where there are so many. A smaller k wins.",
        unit="chunks", ge=0, le=200, ceiling=20, label="Fewest results",
    )  # fmt: skip
    gap_threshold: float = setting(
        0.1, "The smallest step of distance that counts as a cliff. Lower cuts more.",
        unit="distance", ge=0, le=4, step=0.005, ceiling=0.5, label="Gap threshold",
    )  # fmt: skip
    distance_offset: float = setting(
        0.4, "Where there is no cliff: keep what lies within this of the best distance.",
        unit="distance", ge=0, le=4, step=0.01, ceiling=1.5, label="Distance offset",
    )  # fmt: skip
    jumps: int = setting(
        1, "autocut: cut before the jump with this number.",
        unit="jumps", ge=1, le=50, ceiling=10, label="Jumps",
    )  # fmt: skip
    b_extra: int = setting(
        0, "adaptive_k: keep this many more after the drop.",
        unit="chunks", ge=0, le=100, ceiling=20, label="Extra after the drop",
    )  # fmt: skip


class Judge(Section):
    enabled: bool = setting(
        False, "Let an LLM decide chunk by chunk: keep, discard, or expand along references."
    )
    prompt: str = setting(
        judge_prompts.DEFAULT,
        f"How the LLM is asked. {judge_prompts.described()}",
        label="Prompt",
        choices=judge_prompts.names(),
    )
    max_chunks: int = setting(
        25, "How many chunks stay where the LLM does not decide.",
        unit="chunks", ge=1, le=200, ceiling=50, label="Chunks wanted",
    )  # fmt: skip
    oversample: float = setting(
        1.6, "How many times that many chunks the LLM is shown.",
        unit="times", ge=1, le=10, step=0.1, ceiling=4, label="Oversample",
    )  # fmt: skip
    min_relevance: float = setting(
        0.3, "Chunks below this similarity are not shown to the LLM and are dropped.",
        unit="similarity", ge=0, le=1, step=0.01, label="Least similarity",
    )  # fmt: skip
    timeout_ms: int = setting(
        5000, "How long to wait for the LLM before falling back.",
        unit="ms", ge=100, le=600_000, step=100, ceiling=30_000, label="Timeout",
    )  # fmt: skip
    max_prompt_tokens: int = setting(
        2000, "The most tokens of the judge's prompt; chunks beyond are left out from the end.",
        unit="tokens", ge=200, le=200_000, step=100, ceiling=16_000, label="Prompt budget",
    )  # fmt: skip
    max_expansion: int = setting(
        50, "The most chunks that one expansion may bring.",
        unit="chunks", ge=1, le=500, ceiling=100, label="Expansion limit",
    )  # fmt: skip

    @field_validator("prompt")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in judge_prompts.names():
            raise ValueError(f"must be one of {', '.join(judge_prompts.names())}")
        return name


class ContextSettings(Section):
    max_context_tokens: int = setting(
        4000, "The most tokens of chunk text in the answer's prompt.",
        unit="tokens", ge=50, le=1_000_000, step=100, ceiling=32_000, label="Context budget",
    )  # fmt: skip


class Confidence(Section):
    high_below: float = setting(
        0.2, "High confidence: distance below this and no large gap before.",
        unit="distance", ge=0, le=4, step=0.01, ceiling=2, label="High below",
    )  # fmt: skip
    medium_below: float = setting(
        0.4, "Medium confidence: distance up to this and no large gap before; low beyond.",
        unit="distance", ge=0, le=4, step=0.01, ceiling=2, label="Medium up to",
    )  # fmt: skip
    large_gap: float = setting(
        0.1, "A step of distance this large before a hit makes its confidence low.",
        unit="distance", ge=0, le=4, step=0.01, ceiling=1, label="Large gap",
    )  # fmt: skip


class Settings(Section):
    """All settings of the filter. `Settings()` holds the seeds' default figures."""

    retrieval: Retrieval = Retrieval()
    clearance: Clearance = Clearance()
    query_must: QueryMust = QueryMust()
    entities: Entities = Entities()
    quality: Quality = Quality()
    cutoff: Cutoff = Cutoff()
    judge: Judge = Judge()
    context: ContextSettings = ContextSettings()
    confidence: Confidence = Confidence()

    def with_values(self, values: dict[str, Any]) -> Settings:
        """A copy with dotted paths replaced, validated: ``{"cutoff.gap_threshold": 0.12}``.

        Raises pydantic.ValidationError; `settings.config` turns that into a `SettingsError`.
        """
        tree = self.model_dump()
        for path, value in values.items():
            section, _, name = path.partition(".")
            tree.setdefault(section, {})[name] = value
        return Settings.model_validate(tree)

    def get(self, path: str) -> Any:
        """The value at a dotted path. Raises AttributeError where there is none."""
        section, _, name = path.partition(".")
        return getattr(getattr(self, section), name)

    def changed_from(self, base: Settings) -> dict[str, Any]:
        """Dotted paths whose value differs from `base`, with this tree's values."""
        return {f.path: self.get(f.path) for f in fields() if self.get(f.path) != base.get(f.path)}


def fields() -> tuple[FieldInfo, ...]:
    """Every setting, in the order in which the layers act."""
    return _FIELDS


def field(path: str) -> FieldInfo:
    """The setting at a dotted path. Raises KeyError where there is none."""
    return _BY_PATH[path]


_FIELDS = tuple(walk(Settings))
_BY_PATH = {f.path: f for f in _FIELDS}
