"""The filter's settings: one frozen, validated tree.

Every field declares its default, range, unit and help once, here. Widgets, TOML, environment,
command-line flags and the settings reference in the docs are derived from these fields
(`fields()`). Where values come from, and who wins, is in `ragfilter.settings.config`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import model_validator

from ragfilter.judge import prompts as judge_prompts
from ragfilter.settings.field import FieldInfo, OneOf, Section, setting, walk

Strategy = Literal["gap", "fixed", "autocut", "adaptive_k"]


class Retrieval(Section):
    k: int = setting(
        15,
        "Chunks that an unfiltered search puts into the prompt. The filtered result is compared "
        "with them. Also how many chunks query_must looks for, and the limit of the result if "
        "cutoff and judge are both off.",
        unit="chunks", ge=1, le=200, ceiling=50, label="Unfiltered k",
    )  # fmt: skip
    pool_size: int = setting(
        200,
        "Hits gathered at first. The pool is doubled until enough chunks pass clearance and rules.",
        unit="chunks", ge=10, le=5000, ceiling=1000, step=10, label="Pool size",
    )  # fmt: skip
    source_pattern: str = setting(
        "",
        "Search only files whose name contains this text, or matches it as a pattern if it has a "
        "* ? or [. Empty searches all files. References may still lead to other files.",
        label="Limit to files",
    )  # fmt: skip


class Clearance(Section):
    """Who the user is, is no setting: it is the argument `user` beside the settings."""

    enabled: bool = setting(False, "Hide what the user may not see, before anything else.")


class QueryMust(Section):
    enabled: bool = setting(False, "Drop chunks whose query_must rule the query does not meet.")
    max_rounds: int = setting(
        3,
        "Maximum number of rounds of the replayed re-query loop. Only shown: the result does not "
        "depend on it.",
        unit="rounds", ge=1, le=20, ceiling=10, label="Max re-query rounds",
    )  # fmt: skip


class Entities(Section):
    enabled: bool = setting(
        False, "In a comparison (X vs Y), search for each side separately and pin its best chunk."
    )
    per_entity: int = setting(
        10,
        "Chunks retrieved for each side.",
        unit="chunks", ge=1, le=100, ceiling=50, label="Chunks per side",
    )  # fmt: skip


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
        3, "Number of candidates whose similarity is checked first.",
        unit="chunks", ge=1, le=200, ceiling=20, label="Candidates checked first",
    )  # fmt: skip
    max_top_k: int = setting(
        10, "Maximum number of candidates checked or reranked.",
        unit="chunks", ge=1, le=500, ceiling=50, label="Candidates checked at most",
    )  # fmt: skip
    score_threshold: float = setting(
        0.5, "Similarity from which a candidate counts as good.",
        unit="similarity", ge=0, le=1, step=0.01, label="Similarity threshold",
    )  # fmt: skip
    reranker: Literal["late_interaction", "cross_encoder", "none"] = setting(
        "late_interaction",
        "Model that rescores the candidates: late interaction (bundled), a cross-encoder, or none.",
        label="Reranker",
    )
    reranker_model: str = setting(
        "cross-encoder/ms-marco-MiniLM-L-6-v2",
        "Name or path of the cross-encoder. Used only if the reranker is cross_encoder.",
        label="Cross-encoder",
    )
    reranker_timeout_ms: int = setting(
        10_000, "Time to wait for the reranker before falling back.",
        unit="ms", ge=100, le=600_000, step=100, ceiling=60_000, label="Rerank timeout",
    )  # fmt: skip
    reranker_top_k: int = setting(
        3, "Maximum number of candidates kept after reranking.",
        unit="chunks", ge=1, le=200, ceiling=30, label="Max kept after reranking",
    )  # fmt: skip
    reranker_threshold: float = setting(
        0.3, "Rerank score from which a candidate counts as good.",
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
    enabled: bool = setting(True, "Cut the ranked list where relevance drops.")
    strategy: Strategy = setting(
        "gap",
        "Where to cut. gap: at the largest gap between distances; fixed: after the first k; "
        "autocut: at a jump in the curve; adaptive_k: at the largest drop in similarity.",
        label="Strategy",
    )
    max_results: int = setting(
        5, "Maximum number of chunks kept (k).",
        unit="chunks", ge=1, le=200, ceiling=50, label="Max results (k)",
    )  # fmt: skip
    min_results: int = setting(
        2, "Minimum number of chunks kept, if there are that many. A smaller k wins.",
        unit="chunks", ge=0, le=200, ceiling=20, label="Min results",
    )  # fmt: skip
    gap_threshold: float = setting(
        0.1, "Smallest gap between distances that counts as a cliff. Lower values cut more.",
        unit="distance", ge=0, le=4, step=0.005, ceiling=0.5, label="Gap threshold",
    )  # fmt: skip
    distance_offset: float = setting(
        0.4, "If there is no cliff, keep chunks within this distance of the best one.",
        unit="distance", ge=0, le=4, step=0.01, ceiling=1.5, label="Distance offset",
    )  # fmt: skip
    jumps: int = setting(
        1, "autocut: cut before this jump, counted from 1.",
        unit="jumps", ge=1, le=50, ceiling=10, label="Jumps",
    )  # fmt: skip
    b_extra: int = setting(
        0, "adaptive_k: chunks kept beyond the drop.",
        unit="chunks", ge=0, le=100, ceiling=20, label="Extra after the drop",
    )  # fmt: skip


class Judge(Section):
    enabled: bool = setting(
        False, "Let an LLM decide on each chunk: keep it, discard it, or expand its references."
    )
    prompt: Annotated[str, OneOf(judge_prompts.described)] = setting(
        judge_prompts.DEFAULT, "Prompt variant.", label="Prompt"
    )
    max_chunks: int = setting(
        25, "Maximum number of chunks kept until the LLM has been asked, or if it fails.",
        unit="chunks", ge=1, le=200, ceiling=50, label="Max chunks",
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
        "Maximum tokens in the judge's prompt. Chunks that do not fit are left out, from the end.",
        unit="tokens", ge=200, le=200_000, step=100, ceiling=16_000, label="Prompt budget",
    )  # fmt: skip
    max_expansion: int = setting(
        50, "Maximum number of chunks that one expansion may bring in.",
        unit="chunks", ge=1, le=500, ceiling=100, label="Expansion limit",
    )  # fmt: skip


class ContextSettings(Section):
    max_context_tokens: int = setting(
        4000, "Maximum tokens of chunk text in the answer's prompt.",
        unit="tokens", ge=50, le=1_000_000, step=100, ceiling=32_000, label="Context budget",
    )  # fmt: skip


class Confidence(Section):
    high_below: float = setting(
        0.2, "High confidence: a distance below this, without a large gap before it.",
        unit="distance", ge=0, le=4, step=0.01, ceiling=2, label="High below",
    )  # fmt: skip
    medium_below: float = setting(
        0.4, "Medium confidence: a distance up to this, without a large gap before it. Else low.",
        unit="distance", ge=0, le=4, step=0.01, ceiling=2, label="Medium up to",
    )  # fmt: skip
    large_gap: float = setting(
        0.1, "A gap of at least this before a hit makes its confidence low.",
        unit="distance", ge=0, le=4, step=0.01, ceiling=1, label="Large gap",
    )  # fmt: skip


class Settings(Section):
    """All settings of the filter. `Settings()` holds the seeds' default values."""

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
