"""The filter's settings: one frozen, validated tree.

Every field declares its default, range, unit and help once. The fields of a layer are in the
layer's own file, the others here. Widgets, TOML, environment, command-line flags and the settings
reference in the docs are derived from these fields (`fields()`). `ragfilter.settings.config` says
where values come from and which of them win.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pydantic import create_model

from ragfilter.layers.registry import LAYERS
from ragfilter.settings.field import MOST_CHUNKS, FieldInfo, Section, setting, walk

S = TypeVar("S", bound=Section)


class Retrieval(Section):
    k: int = setting(
        15,
        "Number of chunks that an unfiltered search puts into the prompt, for comparison with "
        "the filtered result. Also the number of chunks that query_must looks for, and the "
        "maximum number of results if cutoff and judge are both off, unless quality checks more "
        "at first.",
        unit="chunks", ge=1, le=MOST_CHUNKS, ceiling=50, label="Unfiltered k",
    )  # fmt: skip
    pool_size: int = setting(
        200,
        "Number of hits gathered at first. The pool is doubled until enough chunks pass "
        "clearance and rules.",
        unit="chunks", ge=10, le=5000, ceiling=1000, step=10, label="Pool size",
    )  # fmt: skip
    source_pattern: str = setting(
        "",
        "Search only files whose name contains this text, or matches it as a pattern if it has a "
        "* ? or [. Empty searches all files. References may still lead to other files.",
        label="Limit to files",
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


class SettingsTree(Section):
    """What can be done with all sections together."""

    def __repr__(self) -> str:
        changed = (f"{p}={v!r:.40}" for p, v in self.changed_from(type(self)()).items())
        return f"<Settings: {', '.join(changed) or 'the defaults'}>"

    __str__ = __repr__

    def section(self, kind: type[S]) -> S:
        """The section of this class: how a layer reads its own. Raises KeyError."""
        for section in self.__dict__.values():
            if isinstance(section, kind):
                return section
        raise KeyError(kind.__name__)

    def with_values(self, values: dict[str, Any]) -> Self:
        """A copy with dotted paths replaced, validated: ``{"cutoff.gap_threshold": 0.12}``.

        Raises pydantic.ValidationError; `settings.config` turns that into a `SettingsError`.
        """
        tree = self.model_dump()
        for path, value in values.items():
            section, _, name = path.partition(".")
            tree.setdefault(section, {})[name] = value
        return type(self).model_validate(tree)

    def get(self, path: str) -> Any:
        """The value at a dotted path. Raises AttributeError if there is none."""
        section, _, name = path.partition(".")
        return getattr(getattr(self, section), name)

    def changed_from(self, base: Self) -> dict[str, Any]:
        """Dotted paths whose value differs from `base`, with this tree's values."""
        return {f.path: self.get(f.path) for f in fields() if self.get(f.path) != base.get(f.path)}


if TYPE_CHECKING:
    from ragfilter.layers.clearance import Clearance
    from ragfilter.layers.context import ContextSettings
    from ragfilter.layers.cutoff import Cutoff
    from ragfilter.layers.diversity import Diversity
    from ragfilter.layers.entities import Entities
    from ragfilter.layers.judge import Judge
    from ragfilter.layers.quality import Quality
    from ragfilter.layers.query_must import QueryMust
    from ragfilter.layers.words import Words

    class Settings(SettingsTree):
        """All settings of the filter. `Settings()` holds the seeds' defaults."""

        def __init__(self, **sections: Section | Mapping[str, Any]) -> None: ...

        # Spares `settings.section(...)` where a section's name is known to the type checker.
        retrieval: Retrieval = Retrieval()
        clearance: Clearance = Clearance()
        query_must: QueryMust = QueryMust()
        entities: Entities = Entities()
        words: Words = Words()
        quality: Quality = Quality()
        cutoff: Cutoff = Cutoff()
        diversity: Diversity = Diversity()
        judge: Judge = Judge()
        context: ContextSettings = ContextSettings()
        confidence: Confidence = Confidence()

else:
    _SECTIONS = {
        "retrieval": Retrieval,
        **{layer.name: layer.section for layer in LAYERS if layer.section},
        "confidence": Confidence,
    }
    Settings = create_model(
        "Settings",
        __base__=SettingsTree,
        __module__=__name__,
        __doc__="All settings of the filter. `Settings()` holds the seeds' defaults.",
        **{name: (section, section()) for name, section in _SECTIONS.items()},
    )


def fields() -> tuple[FieldInfo, ...]:
    """Every setting, in the order in which the layers act."""
    return _FIELDS


def field(path: str) -> FieldInfo:
    """The setting at a dotted path. Raises KeyError if there is none."""
    return _BY_PATH[path]


_FIELDS = tuple(walk(Settings))
_BY_PATH = {f.path: f for f in _FIELDS}
