"""The layers, in the order in which they act.

The order is the meaning: clearance comes before everything, the rules before anything that counts
results, the LLM after everything that is cheap. Source: docs/design.md#layers.
"""

from __future__ import annotations

from ragfilter.layers import (
    clearance,
    context,
    cutoff,
    entities,
    judge,
    quality,
    query_must,
    top_k,
)
from ragfilter.layers.spec import LayerSpec
from ragfilter.model import LayerName

LAYERS: tuple[LayerSpec, ...] = (
    clearance.SPEC,
    query_must.SPEC,
    entities.SPEC,
    quality.SPEC,
    cutoff.SPEC,
    judge.SPEC,
    top_k.SPEC,
    context.SPEC,
)

SWITCHES: tuple[LayerName, ...] = tuple(spec.name for spec in LAYERS if spec.switched)
_BY_NAME = {spec.name: spec for spec in LAYERS}


def layer(name: LayerName) -> LayerSpec:
    """The layer called `name`. Raises KeyError."""
    return _BY_NAME[name]
