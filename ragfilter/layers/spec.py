"""The description of a layer that the rest of the program reads. Each layer's file declares one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ragfilter.layers.base import Layer
from ragfilter.model import Decision, Hit, LayerName, LayerTrace, PoolResult
from ragfilter.settings.field import Section

if TYPE_CHECKING:
    from ragfilter.settings.schema import Settings

WEIGHED = 2
"""How a layer that weighs hits against the question explains that one is kept."""

Relax = Callable[[LayerTrace, PoolResult], tuple[str, dict[str, Any]] | None]
Cost = Literal["free", "store query", "local model", "LLM call"]


@dataclass(frozen=True, slots=True)
class Mark:
    """How a layer or an outcome looks. `sign` is text, `symbol` a plotly marker."""

    sign: str
    symbol: str
    light: str
    dark: str

    def colour(self, *, dark: bool) -> str:
        return self.dark if dark else self.light


def kept_of(trace: LayerTrace, result: PoolResult) -> str:
    """The layer's own note, else how many it kept."""
    return trace.note or f"keeps {trace.n_out} of {trace.n_in}"


def no_more(settings: Settings) -> int:
    """For `candidates`: the layer needs no more chunks than the others do."""
    return 0


@dataclass(frozen=True, slots=True)
class LayerSpec:
    """One layer. Settings, switch, funnel, trace, explanations, docs and link are derived from it.

    Only the first four are needed. Those that take `settings` or a `result` are pure.
    """

    name: LayerName
    title: str
    mark: Mark
    apply: Layer
    section: type[Section] | None = None
    """Its settings, under `name`; a field `enabled` is its switch and says what the layer does."""
    reads: tuple[type[Section], ...] = ()
    """Other layers' settings that it reads, where those layers may be off."""
    acts: Callable[[Settings], bool] = lambda settings: True
    """Whether a layer without a switch takes part."""
    line: Callable[[LayerTrace, PoolResult], str] = kept_of
    """What it did to this query, for funnel, sidebar and trace."""
    off: Callable[[Settings], str] = lambda settings: "off"
    """What its being off means."""
    cost: Callable[[Settings], Cost] = lambda settings: "free"
    first: tuple[str, ...] = ()
    """Settings that the sidebar shows at once, in this order; the others are one click away."""
    unused: Callable[[Settings], frozenset[str]] = lambda settings: frozenset()
    """Settings of the section that do not act with its present choices."""
    relax: Relax = lambda trace, _: None
    """A button's label and the settings it changes, where the layer let nothing through; without
    settings, why nothing is offered. None offers to switch it off."""
    limits: bool = False
    """Whether it decides how many stay: the headline is the line of the last that changed that."""
    candidates: Callable[[Settings], int] | None = None
    """How many chunks that pass clearance and rules it may look at, whose texts are then fetched.
    None, where that is not known: all that the page would gather, each with its text."""
    compares: int = 0
    """How many chunks it compares by their texts: a search finds so many more, with their texts."""
    reads_pool: Callable[[Settings], bool] = lambda settings: False
    """Whether it compares with the pool's far end, so that a pool of full size is gathered."""
    plain: Callable[[Decision, Hit, PoolResult], str] | None = None
    """Why it dropped a hit, in words without jargon that follow "83 of them": ``did not match well
    enough``. None names the layer."""
    unreached: Callable[[LayerTrace, PoolResult], dict[str, int | str]] = lambda trace, result: {}
    """Settings that would drop hits and were not reached, by path, each with how many chunks came
    in or with other words: ``the largest gap is 0.050``."""
    holds: str = ""
    """The path of a setting that keeps hits which others would drop."""
    line_height: int = 1
    """How many rows of the sidebar its line may take."""
    explains: int = WEIGHED
    """How well its decision explains a kept hit: 2 it weighed it, 1 counted it, 0 let it pass."""

    @property
    def switched(self) -> bool:
        """Whether its settings switch it on and off."""
        return self.section is not None and "enabled" in self.section.model_fields

    def enabled(self, settings: Settings) -> bool:
        """Whether it takes part."""
        return bool(settings.get(f"{self.name}.enabled")) if self.switched else self.acts(settings)

    def used(self, settings: Settings) -> tuple[str, ...]:
        """Its settings that act with the present choices, but the switch; `first` ones first."""
        names = () if self.section is None else tuple(self.section.model_fields)
        unused = self.unused(settings) | {"enabled"}
        return tuple(n for n in dict.fromkeys((*self.first, *names)) if n not in unused)
