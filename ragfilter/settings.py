"""The filter's settings: one frozen, validated tree.

Every field declares its default, range, unit and help once, here. Widgets, TOML, environment,
command-line flags and the settings reference in the docs are derived from these fields
(`fields()`). Where values come from, and who wins, is in `ragfilter.config`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ragfilter import judge_prompts

Strategy = Literal["gap", "fixed", "autocut", "adaptive_k"]


def _setting(
    default: Any,
    help: str,
    *,
    unit: str = "",
    ge: float | None = None,
    le: float | None = None,
    step: float | None = None,
    label: str = "",
    ceiling: float | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """Declare one setting: a widget offers values up to `ceiling`, validation allows up to `le`.

    `choices` are for those that are found at run time; where they are fixed, a Literal says them.
    """
    extra: dict[str, Any] = {
        "unit": unit, "step": step, "label": label, "ceiling": ceiling, "choices": choices,
    }  # fmt: skip
    return Field(default, ge=ge, le=le, description=help, json_schema_extra=extra)


class Section(BaseModel):
    """Base of the sections: frozen, unknown keys refused, no silent conversion of booleans."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Retrieval(Section):
    k: int = _setting(
        15,
        "How many chunks an unfiltered search puts into the prompt. The filtered result is "
        "compared with these, query_must looks for this many clean chunks, and it is the limit "
        "where neither cutoff nor judge is on.",
        unit="chunks", ge=1, le=200, ceiling=50, label="k, unfiltered",
    )  # fmt: skip
    pool_size: int = _setting(
        200,
        "How many hits are gathered at first. The pool is doubled while clean chunks run short.",
        unit="chunks", ge=10, le=5000, ceiling=1000, step=10, label="Pool size",
    )  # fmt: skip
    source_pattern: str = _setting(
        "",
        "Search only files whose name holds this text, or matches it where it has a * ? or [; "
        "empty searches all. References may still lead to other files.",
        label="Only files",
    )  # fmt: skip


class Clearance(Section):
    enabled: bool = _setting(False, "Hide what the user may not see, before anything else.")
    level: int = _setting(
        0,
        "The user's clearance. Chunks of a higher level are hidden.",
        unit="level", ge=0, le=100, ceiling=5, label="User's clearance",
    )  # fmt: skip
    department: str = _setting(
        "",
        "The user's department. Chunks of another department are hidden; empty means none.",
        label="User's department",
    )


class QueryMust(Section):
    enabled: bool = _setting(False, "Drop chunks whose query_must rule the query does not meet.")
    max_rounds: int = _setting(
        3,
        "How many rounds the replayed re-query loop may take. The wide pool finds the clean chunks "
        "anyway; the rounds show what asking again would have done.",
        unit="rounds", ge=1, le=20, ceiling=10, label="Re-query rounds shown",
    )  # fmt: skip


class Entities(Section):
    enabled: bool = _setting(
        False, "In a comparison (X vs Y), retrieve each side on its own and pin its best chunk."
    )
    per_entity: int = _setting(
        10,
        "How many chunks each side's own retrieval brings.",
        unit="chunks", ge=1, le=100, ceiling=50, label="Chunks per entity",
    )  # fmt: skip


class Quality(Section):
    enabled: bool = _setting(False, "Keep only good matches; widen or rerank where there are none.")
    mode: Literal["when_poor", "always"] = _setting(
        "when_poor",
        "Rerank only when the first results are poor, or always.",
        label="Rerank",
    )
    min_top_k: int = _setting(
        3, "How many results are looked at first.",
        unit="chunks", ge=1, le=200, ceiling=20, label="First look",
    )  # fmt: skip
    max_top_k: int = _setting(
        10, "How many results are looked at in the end, or reranked.",
        unit="chunks", ge=1, le=500, ceiling=50, label="Last look",
    )  # fmt: skip
    score_threshold: float = _setting(
        0.5, "A result is good when its similarity reaches this.",
        unit="similarity", ge=0, le=1, step=0.01, label="Similarity threshold",
    )  # fmt: skip
    reranker: Literal["late_interaction", "cross_encoder", "none"] = _setting(
        "late_interaction",
        "Which reranker looks again: late interaction (bundled), a cross-encoder model, or none.",
        label="Reranker",
    )
    reranker_model: str = _setting(
        "cross-encoder/ms-marco-MiniLM-L-6-v2",
        "Name or path of the cross-encoder; only used with the cross_encoder reranker.",
        label="Cross-encoder",
    )
    reranker_timeout_ms: int = _setting(
        10_000, "How long to wait for the reranker's scores before falling back.",
        unit="ms", ge=100, le=600_000, step=100, ceiling=60_000, label="Rerank timeout",
    )  # fmt: skip
    reranker_top_k: int = _setting(
        3, "How many results are kept after reranking.",
        unit="chunks", ge=1, le=200, ceiling=30, label="Kept after reranking",
    )  # fmt: skip
    reranker_threshold: float = _setting(
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
    enabled: bool = _setting(True, "Cut the ranked list where relevance falls off.")
    strategy: Strategy = _setting(
        "gap",
        "gap: the largest step of distance; fixed: first k; autocut: jumps in the curve; "
        "adaptive_k: the largest drop of similarity.",
        label="Strategy",
    )
    max_results: int = _setting(
        5, "The most results that may stay (k).",
        unit="chunks", ge=1, le=200, ceiling=50, label="k, most results",
    )  # fmt: skip
    min_results: int = _setting(
        2, "The fewest results that stay, where there are so many. A smaller k wins.",
        unit="chunks", ge=0, le=200, ceiling=20, label="Fewest results",
    )  # fmt: skip
    gap_threshold: float = _setting(
        0.1, "The smallest step of distance that counts as a cliff. Lower cuts more.",
        unit="distance", ge=0, le=4, step=0.005, ceiling=0.5, label="Gap threshold",
    )  # fmt: skip
    distance_offset: float = _setting(
        0.4, "Where there is no cliff: keep what lies within this of the best distance.",
        unit="distance", ge=0, le=4, step=0.01, ceiling=1.5, label="Distance offset",
    )  # fmt: skip
    jumps: int = _setting(
        1, "autocut: cut before the jump with this number.",
        unit="jumps", ge=1, le=50, ceiling=10, label="Jumps",
    )  # fmt: skip
    b_extra: int = _setting(
        0, "adaptive_k: keep this many more after the drop.",
        unit="chunks", ge=0, le=100, ceiling=20, label="Extra after the drop",
    )  # fmt: skip


class Judge(Section):
    enabled: bool = _setting(
        False, "Let an LLM decide chunk by chunk: keep, discard, or expand along references."
    )
    prompt: str = _setting(
        judge_prompts.DEFAULT,
        f"How the LLM is asked. {judge_prompts.described()}",
        label="Prompt",
        choices=judge_prompts.names(),
    )
    max_chunks: int = _setting(
        25, "How many chunks stay where the LLM does not decide.",
        unit="chunks", ge=1, le=200, ceiling=50, label="Chunks wanted",
    )  # fmt: skip
    oversample: float = _setting(
        1.6, "How many times that many chunks the LLM is shown.",
        unit="times", ge=1, le=10, step=0.1, ceiling=4, label="Oversample",
    )  # fmt: skip
    min_relevance: float = _setting(
        0.3, "Chunks below this similarity are not shown to the LLM and are dropped.",
        unit="similarity", ge=0, le=1, step=0.01, label="Least similarity",
    )  # fmt: skip
    timeout_ms: int = _setting(
        5000, "How long to wait for the LLM before falling back.",
        unit="ms", ge=100, le=600_000, step=100, ceiling=30_000, label="Timeout",
    )  # fmt: skip
    max_prompt_tokens: int = _setting(
        2000, "The most tokens of the judge's prompt; chunks beyond are left out from the end.",
        unit="tokens", ge=200, le=200_000, step=100, ceiling=16_000, label="Prompt budget",
    )  # fmt: skip
    max_expansion: int = _setting(
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
    max_context_tokens: int = _setting(
        4000, "The most tokens of chunk text in the answer's prompt.",
        unit="tokens", ge=50, le=1_000_000, step=100, ceiling=32_000, label="Context budget",
    )  # fmt: skip


class Confidence(Section):
    high_below: float = _setting(
        0.2, "High confidence: distance below this and no large gap before.",
        unit="distance", ge=0, le=4, step=0.01, ceiling=2, label="High below",
    )  # fmt: skip
    medium_below: float = _setting(
        0.4, "Medium confidence: distance up to this and no large gap before; low beyond.",
        unit="distance", ge=0, le=4, step=0.01, ceiling=2, label="Medium up to",
    )  # fmt: skip
    large_gap: float = _setting(
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

        Raises pydantic.ValidationError; `ragfilter.config` turns that into a `SettingsError`.
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


@dataclass(frozen=True, slots=True)
class FieldInfo:
    """One setting as widgets, flags and docs need it. `low`/`high` are None where unbounded;
    `ceiling` is the highest value a slider offers."""

    path: str
    type: type
    default: Any
    help: str
    label: str
    unit: str
    low: float | None
    high: float | None
    step: float | None
    ceiling: float | None
    choices: tuple[str, ...]

    @property
    def section(self) -> str:
        return self.path.partition(".")[0]

    @property
    def name(self) -> str:
        return self.path.partition(".")[2]

    def allowed(self) -> str:
        """The allowed values in words, for messages and docs."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.type is bool:
            return "true or false"
        if self.type is str:
            return "text"
        kind = "a whole number" if self.type is int else "a number"
        if self.low is not None and self.high is not None:
            return f"{kind} from {self.low:g} to {self.high:g}"
        return f"{kind} of at least {self.low:g}" if self.low is not None else kind


def fields() -> tuple[FieldInfo, ...]:
    """Every setting, in the order in which the layers act."""
    return _FIELDS


def field(path: str) -> FieldInfo:
    """The setting at a dotted path. Raises KeyError where there is none."""
    return _BY_PATH[path]


def _walk() -> Iterator[FieldInfo]:
    for section, info in Settings.model_fields.items():
        model = info.annotation
        assert isinstance(model, type)
        assert issubclass(model, Section)
        for name, leaf in model.model_fields.items():
            extra = leaf.json_schema_extra
            assert isinstance(extra, dict)
            bounds = {
                key: getattr(m, key)
                for m in leaf.metadata
                for key in ("ge", "le")
                if hasattr(m, key)
            }
            literal = get_origin(leaf.annotation) is Literal
            high = bounds.get("le")
            yield FieldInfo(
                path=f"{section}.{name}",
                type=str if literal else cast(type, leaf.annotation),
                default=leaf.default,
                help=leaf.description or "",
                label=str(extra["label"] or name.replace("_", " ").capitalize()),
                unit=str(extra["unit"]),
                low=bounds.get("ge"),
                high=high,
                step=extra["step"],  # type: ignore[arg-type]
                ceiling=extra["ceiling"] or high,  # type: ignore[arg-type]
                choices=get_args(leaf.annotation) if literal else extra["choices"],  # type: ignore[arg-type]
            )


_FIELDS = tuple(_walk())
_BY_PATH = {f.path: f for f in _FIELDS}
