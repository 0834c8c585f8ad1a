"""Finds current thresholds that were fitted to another collection, model or space. Pure.

A distance or similarity belongs to the collection for which it was chosen. A share carries over.
Values that users set themselves are not reported.
"""

from __future__ import annotations

from ragfilter.layers.cutoff import cut_of
from ragfilter.layers.origin import origin
from ragfilter.layers.registry import LAYERS
from ragfilter.model import PoolResult
from ragfilter.settings.learned import Calibration
from ragfilter.settings.profiles import Fit, profile
from ragfilter.settings.schema import Settings, field

SCALES = ("distance", "similarity")
"""Units of thresholds that belong to a collection. A rerank score does not: either reranker gives
it as a probability (docs/tuning.md)."""


def learned_elsewhere(settings: Settings, here: Fit) -> str:
    """A sentence if the cutoff was learned, or the settings were tuned, on another collection, or
    with another model or space; empty otherwise."""
    found = origin(settings)
    if found is None:
        return ""
    learned = isinstance(found, Calibration)
    what = "The cutoff was learned" if learned else "The settings were tuned"
    if found.collection != here.collection:
        return f"{what} on {found.place}, not on this collection."
    # The model of a collection that was made elsewhere may be unknown.
    known = found.embedder and here.embedder
    there = Fit(found.collection, found.embedder if known else here.embedder, found.space)
    if there != here:
        return f"{what} on {there.words}, not with {here.embedder}, {here.space}."
    return ""


def as_applied(result: PoolResult) -> Settings:
    """The settings as they acted on the result: few hits have no background, so absolute thresholds
    stand in for the shares of it."""
    settings, detail = result.settings, cut_of(result)
    values: dict[str, object] = {}
    if detail is not None and detail.cut.strategy != settings.cutoff.strategy:
        values["cutoff.strategy"] = detail.cut.strategy
    compared = {decision.setting for trace in result.traces for decision in trace.decisions}
    if "quality.score_threshold" in compared:
        values["quality.good_by"] = "similarity"
    return settings.with_values(values) if values else settings


def foreign_thresholds(settings: Settings, name: str, here: Fit) -> str:
    """A sentence about thresholds that still have the values of profile `name` and were not fitted
    to what is `here`; empty if there are none."""
    told = learned_elsewhere(settings, here)
    if told:
        return told
    chosen = profile(name)
    if chosen.fitted == here:
        return ""
    own = Settings().with_values(dict(chosen.values))
    labels = [
        info.label
        for layer in LAYERS
        if layer.settings_names and layer.enabled(settings)
        for info in (field(f"{layer.name}.{each}") for each in layer.used(settings))
        if info.unit in SCALES and settings.get(info.path) == own.get(info.path)
    ]
    if not labels:
        return ""
    listed = " and ".join(filter(None, (", ".join(labels[:-1]), labels[-1])))
    was = "was" if len(labels) == 1 else "were"
    return f"{listed} {was} fitted to {chosen.fitted.words}, not to this collection."
