"""Says whether tuned settings are unchanged, which labels chose them and whether elsewhere, and refuses distances tuned
on another scale. docs/design.md#tune."""

from __future__ import annotations

from ragfilter.errors import SettingsError
from ragfilter.layers.quality import always_reranks, reranker_key
from ragfilter.layers.strategies.strategy import strategy
from ragfilter.model import Pool
from ragfilter.settings.profiles import Fit
from ragfilter.settings.schema import Calibration, Cutoff, Origin, Quality, Settings, TunedOn, field_info

SCALED = frozenset(name for name in Cutoff.model_fields if field_info(f"cutoff.{name}").unit == "distance")
"""The settings that are valid for one model and space only."""


def origin(settings: Settings) -> Origin | None:
    """The record of the labels that chose the current settings, if labels chose them."""
    cutoff = settings.cutoff
    tuned = cutoff.tuned_on
    if tuned is not None:
        name = cutoff.strategy if cutoff.enabled else ""
        if tuned.strategy == name and unchanged(tuned, settings) == tuned.values:
            return tuned
    return cutoff.calibration if cutoff.enabled and cutoff.strategy == "calibrated" else None


def learned_elsewhere(settings: Settings, here: Fit) -> str:
    """A sentence if the settings were learned or tuned on another collection, model or space; empty otherwise."""
    source = origin(settings)
    if source is None:
        return ""
    learned = isinstance(source, Calibration)
    what = "The cutoff was learned" if learned else "The settings were tuned"
    if source.collection != here.collection:
        return f"{what} on {source.collection_name}, not on this collection."
    # The model of a collection that was made elsewhere may be unknown.
    both_known = source.embedder and here.embedder
    elsewhere = Fit(source.collection, source.embedder if both_known else here.embedder, source.space)
    if elsewhere != here:
        return f"{what} on {elsewhere.words}, not with {here.embedder}, {here.space}."
    return ""


def profile_name(profile: str, settings: Settings) -> str:
    """The name for settings that started from a profile: ``tuned on demo (2026-11-28)`` if labels
    chose them."""
    record = origin(settings)
    if record is None:
        return profile
    when = f" ({record.date})" if record.date else ""
    return f"tuned on {record.collection_name}{when}"


def seen_labels(settings: Settings) -> Origin | None:
    """The record of labels that may have chosen the current strategy or any current value. Labels
    still count as seen if only the strategy's values were moved, or all values but one."""
    cutoff, record = settings.cutoff, origin(settings)
    tuned = cutoff.tuned_on
    if record is not None or tuned is None or chose_strategy(tuned, settings):
        return record or tuned
    idle = {f"cutoff.{name}" for name in Cutoff.model_fields}
    if cutoff.enabled:
        idle -= {f"cutoff.{name}" for name in strategy(cutoff.strategy).reads}
    return tuned if unchanged(tuned, settings).keys() - idle else None


def chose_strategy(tuned: TunedOn, settings: Settings) -> bool:
    """Whether labels chose the current strategy and any reranker that always runs, even if values were moved since."""
    if not tuned.strategy or tuned.values_only:
        return False
    cutoff, quality = settings.cutoff, settings.quality
    reranker = reranker_key(quality) if always_reranks(quality) else ""
    current = cutoff.strategy if cutoff.enabled else ""
    return (current, reranker) == (tuned.strategy, tuned.reranker)


def unchanged(tuned: TunedOn, settings: Settings) -> dict[str, int | float]:
    """The chosen values that are still set. A path written by hand may name no setting."""
    current = {}
    for path in tuned.values:
        section, _, name = path.partition(".")
        current[path] = getattr(getattr(settings, section, None), name, None)
    return {path: value for path, value in tuned.values.items() if current[path] == value}


def differences(record: Origin, pool: Pool, quality: Quality) -> str:
    """How the pool differs from those used for the record: ``distances l2, not cosine``; empty if it does not. A pool
    that does not name its embedding model is assumed to have the same one."""
    # Tuned values apply to what is cut now: distances, or one reranker's scores for every query.
    by_distance = isinstance(record, TunedOn)
    reranks = always_reranks(quality) if by_distance else bool(record.reranker)
    reranker = reranker_key(quality) if reranks else ""
    pairs = (
        ("distances", record.space, pool.space),
        ("the embedding model", record.embedder, pool.embedder or record.embedder),
        ("the reranker", record.reranker or "none", reranker or "none"),
    )
    return ", ".join(f"{what} {ours or '(not named)'}, not {theirs}" for what, ours, theirs in pairs if ours != theirs)


def check_tuned(settings: Settings, pool: Pool) -> None:
    """Raise SettingsError for distances tuned, not set by hand, with another space, model, reranker or score."""
    cutoff, tuned = settings.cutoff, settings.cutoff.tuned_on
    if tuned is None:
        return
    scaled = (name for name in strategy(cutoff.strategy).reads if name in SCALED)
    names = [name for name in scaled if tuned.values.get(f"cutoff.{name}") == getattr(cutoff, name)]
    other = names and differences(tuned, pool, settings.quality)
    if names and tuned.score != cutoff.score:
        other = f"the score {tuned.score or 'distance'}, not {cutoff.score or 'distance'}"
    if other:
        were = "was" if len(names) == 1 else "were"
        raise SettingsError(
            f"{' and '.join(f'cutoff.{name}' for name in names)} {were} tuned on {tuned.collection_name} with {other}.",
            remedy="Recalibrate on labels of this collection, go back to what they were tuned "
            "with, or set your own values.",
            action="recalibrate",
        )
