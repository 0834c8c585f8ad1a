"""The layers, in the order in which they act: clearance first, the rules before anything that counts results, and the
LLM after everything that is cheap. Source: docs/design.md#layers."""

from __future__ import annotations

from importlib import import_module

from ragfilter.layers.layer import LayerSpec

ORDER = (
    "clearance",
    "query_must",
    "entities",
    "words",
    "quality",
    "cutoff",
    "diversity",
    "judge",
    "top_k",
    "prune",
    "context",
)
"""Files of this folder, each with a `SPEC`."""

LAYERS: tuple[LayerSpec, ...] = tuple(import_module(f"ragfilter.layers.{name}").SPEC for name in ORDER)
SWITCHES: tuple[str, ...] = tuple(spec.name for spec in LAYERS if spec.switched)
_BY_NAME = {spec.name: spec for spec in LAYERS}


def layer(name: str) -> LayerSpec:
    """The layer called `name`. Raises KeyError."""
    return _BY_NAME[name]
