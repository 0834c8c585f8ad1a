"""What the rest of the program knows of a layer, declared once: in the layer's own file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragfilter.layers.base import Layer
from ragfilter.model import LayerName
from ragfilter.settings.field import Section

if TYPE_CHECKING:
    from ragfilter.settings.schema import Settings


@dataclass(frozen=True, slots=True)
class LayerSpec:
    """One layer. Settings, switch, funnel, trace, docs and link are derived from it.

    `section` holds its settings, under `name`. A layer whose section has a field `enabled` is
    switched by it; `acts` decides for one without a switch, and without either it always acts.
    """

    name: LayerName
    apply: Layer
    section: type[Section] | None = None
    acts: Callable[[Settings], bool] | None = None

    @property
    def switched(self) -> bool:
        """Whether its settings switch it on and off."""
        return self.section is not None and "enabled" in self.section.model_fields

    def enabled(self, settings: Settings) -> bool:
        """Whether it takes part."""
        if self.switched:
            return bool(settings.get(f"{self.name}.enabled"))
        return self.acts is None or self.acts(settings)
