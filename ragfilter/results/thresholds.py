"""Which limit decided how many chunks are kept, which ones had no effect because another one acts first, and which
thresholds were fitted to another collection. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import median_low

from ragfilter.layers import top_k
from ragfilter.layers.cutoff import (
    MAX_RESULTS_PATH,
    MIN_RESULTS_PATH,
    STRATEGY_PATH,
    cutoff_detail,
    distances_by_score,
    settings_that_cut,
)
from ragfilter.layers.registry import LAYERS, layer
from ragfilter.layers.strategies.strategy import EPSILON, strategy
from ragfilter.layers.tuned_on import learned_elsewhere
from ragfilter.model import VALUE_NAMES, Cut, CutoffDetail, LayerTrace, PoolResult
from ragfilter.settings.profiles import Fit, profile
from ragfilter.settings.schema import Cutoff, Settings, field_info
from ragfilter.text import numbers


@dataclass(frozen=True, slots=True)
class SettingLimit:
    """A limit: the setting at `path` and its value, a number or a choice. `dropped` is the number of hits it dropped,
    `held` the number it kept although others would drop them. If both are 0, `why` says why it was not reached."""

    path: str
    value: float | str
    dropped: int = 0
    held: int = 0
    why: str = ""

    @property
    def bound(self) -> bool:
        """Whether more or fewer hits would stay without it."""
        return self.dropped > 0 or self.held > 0

    @property
    def label(self) -> str:
        """``Candidates checked first = 15 (quality)``: the setting under its name on the page."""
        info = field_info(self.path)
        form = {float: ".3f", int: ",.0f"}.get(info.value_type, "")
        value = f"{self.value:{form}}"
        where = f" ({info.section})" if info.section != "retrieval" else ""
        return f"{info.label} = {value}{where}"

    @property
    def words(self) -> str:
        """``Candidates checked first = 15 (quality) drops 102``."""
        if self.held:
            return f"{self.label} keeps {numbers.count(self.held)} more"
        if self.dropped:
            return f"{self.label} drops {numbers.count(self.dropped)}"
        return f"{self.label} is not reached: {self.why}"


def limits(result: PoolResult) -> tuple[SettingLimit, ...]:
    """All limits that dropped or held hits, or were not reached, in the order in which they act."""
    limits: list[SettingLimit] = []
    for trace in result.traces:
        if trace.enabled and trace.n_in:
            limits += _of(trace, result, limits)
    return tuple(limits)


def _of(trace: LayerTrace, result: PoolResult, before: list[SettingLimit]) -> Iterator[SettingLimit]:
    spec = layer(trace.layer)
    by = [(d.setting, d.outcome) for d in trace.decisions if d.setting]
    dropped = Counter(path for path, outcome in by if outcome == "dropped")
    n_kept = sum((spec.holds, "kept") == each for each in by)
    value = result.settings.get
    for path, why in spec.unreached(trace, result).items():
        if path not in dropped:
            if isinstance(why, int):
                last = next((f", limited by {e.label}" for e in reversed(before) if e.dropped), "")
                why = f"{numbers.chunk_count(why)} came in{last}"
            yield SettingLimit(path, value(path), why=why)
    # The layer that acts last decides about the highest ranks, so it comes first.
    for path in reversed(dropped):
        yield SettingLimit(path, value(path), dropped[path])
    if n_kept:
        yield SettingLimit(spec.holds, value(spec.holds), held=n_kept)


def compared(result: PoolResult, detail: CutoffDetail | None) -> tuple[str, dict[str, float]]:
    """The name of the value that the cutoff compared, and each hit's value, by id; also for hits that have one but did
    not reach the cutoff. Hits dropped before the words layer have no lowered distance. Without a cut, the distances."""
    values = {hit.id: hit.distance for hit in result.hits}
    if detail is None:
        return VALUE_NAMES["distance"], values
    if detail.value_kind == "rerank":
        values = {h.id: 1.0 - h.rerank_score for h in result.hits if h.rerank_score is not None}
    elif detail.value_kind == "lowered":
        values = {d.chunk_id: d.value for d in result.trace("words").decisions if d.value is not None}
    elif detail.value_kind == "probability":
        values = {}
    elif score := result.settings.cutoff.score:
        has_name = detail.value_kind == "named"
        values = distances_by_score(result.hits, score, result.pool, result.settings) if has_name else {}
    return detail.value_name, values | dict(zip(detail.ids, detail.values, strict=True))


@dataclass(frozen=True, slots=True)
class CutLine:
    """The line that separates kept from dropped hits.

    It is either at a value, `limit`, with all kept hits except pins below it, or after a number of hits, at `place`. If
    both are None, nothing was cut. `label` has its name and number, and `kept` counts kept hits. `below` and `above`
    are the values around the limit, `cliff` says how far apart, and `larger` why a larger gap nearby is not the cliff.
    """

    label: str
    kept: int
    limit: float | None = None
    place: float | None = None
    below: float | None = None
    above: float | None = None
    cliff: str = ""
    larger: str = ""


CLIFF = 2.0
"""A step at which no strategy cut is called a cliff if it is at least this many times the median step."""


def cut_line(result: PoolResult) -> CutLine | None:
    """The line of the layer that cut; None if neither the cutoff nor a fixed number did."""
    detail = cutoff_detail(result)
    if detail is None:
        trace = result.trace("top_k")
        if not trace.enabled or not trace.n_in:
            return None
        return _at_place("retrieval.k", top_k.limit(result.settings), trace.n_in)
    cut, values, trace = detail.cut, detail.values, result.trace("cutoff")
    first_dropped = detail.ids[cut.kept] if cut.kept < len(detail.ids) else None
    for decision in trace.decisions:
        if decision.chunk_id == first_dropped and decision.setting == MAX_RESULTS_PATH:
            most, pins = result.settings.cutoff.max_results, trace.count("pinned")
            return _at_place(MAX_RESULTS_PATH, most, len(values), pins)
    if cut.limit is None and first_dropped is None:
        return CutLine("the cutoff drops none", cut.kept)
    pinned = trace.count("pinned")
    limit = values[cut.kept - 1] if cut.limit is None else cut.limit
    # Hits that min_results keeps count as well.
    raised = cut.strategy_kept is not None and cut.kept > pinned
    limit = max(limit, *values[pinned : cut.kept]) if raised else limit
    fewest = f"{field_info(MIN_RESULTS_PATH).label} = {numbers.count(cut.kept)}"
    label = fewest if raised else f"limit {numbers.distance(limit)}"
    near = sorted(values[pinned if cut.kept > pinned else 0 : 2 * result.settings.cutoff.max_results])
    below = max((value for value in near if value <= limit + EPSILON), default=None)
    above = min((value for value in near if value > limit + EPSILON), default=None)
    if below is None or above is None:
        return CutLine(label, cut.kept, limit, cliff="the cutoff drops none")
    wide, steps = above - below, sorted(b - a for a, b in pairwise(near))
    weighed = max((gap.size for gap in cut.gaps if not gap.skipped), default=0.0)
    clear = wide >= max(weighed, CLIFF * median_low(steps)) - EPSILON or len(steps) == 1
    # A strategy with a threshold names its own cliffs.
    own = cut.cliff_after_rank is not None or "gap_threshold" in strategy(cut.strategy).reads
    at_cliff = cut.cliff_after_rank == cut.kept if own else clear
    word = "cliff: " if at_cliff else "" if cut.cliff_after_rank is None else "past the cliff: "
    cliff = f"{word}the next is {numbers.distance(wide)} farther"
    larger = "" if wide >= steps[-1] - EPSILON else _larger(result, detail, raised=raised)
    return CutLine(label, cut.kept, limit, None, below, above, cliff, larger)


def _larger(result: PoolResult, detail: CutoffDetail, *, raised: bool) -> str:
    """Why the largest gap is not the cut: ``largest gap 0.200 after 1 chunk: skipped``."""
    cut, k = detail.cut, result.settings.cutoff.max_results
    size, after = max((b - a, n) for n, (a, b) in enumerate(pairwise(detail.values[: 2 * k]), 1))
    more = cut.cliff_after_rank not in (None, cut.kept)
    by = f"cutoff.{'b_extra' if more else strategy(cut.strategy).decides(cut)}"
    by = MIN_RESULTS_PATH if raised else by
    why = f"{cut.strategy if by == STRATEGY_PATH else field_info(by).label} decides"
    if after >= k:
        why = f"beyond {field_info(MAX_RESULTS_PATH).label}"
    elif cut.gaps[after - 1].skipped:
        why = "skipped"
    return f"largest gap {numbers.distance(size)} after {numbers.chunk_count(after)}: {why}"


def _at_place(path: str, k: int, n: int, pinned: int = 0) -> CutLine:
    label = f"{field_info(path).label} = {numbers.count(k)}"
    if k >= n:
        return CutLine(f"{label} is not reached", n)
    kept = max(k, pinned)
    return CutLine(f"{label}, but {numbers.count(pinned)} are pinned" if kept > k else label, kept, place=kept + 0.5)


def cut_name(cut: Cut, cutoff: Cutoff) -> str:
    """What the place of the cut is called: ``Cliff``, or ``No gap ≥ 0.100`` if a limit replaces it."""
    spec = strategy(cut.strategy)
    if cut.limit is None or "distance_offset" not in spec.reads:
        return spec.cliff(cutoff)
    return cut.reason.partition(";")[0].capitalize()


SCALES = ("distance", "similarity")
"""Units of thresholds that depend on the collection. Rerank scores do not: both rerankers return
probabilities (docs/tuning.md)."""


def applied_settings(result: PoolResult) -> Settings:
    """The settings as applied: with too few hits for a background, absolute thresholds replace shares of it."""
    settings = settings_that_cut(result)
    compared = {decision.setting for trace in result.traces for decision in trace.decisions}
    return settings.with_values({"quality.good_by": "similarity"} if "quality.score_threshold" in compared else {})


def foreign_thresholds(settings: Settings, name: str, here: Fit) -> str:
    """A sentence about thresholds of profile `name` that were not fitted to this collection; empty if all were."""
    caveat = learned_elsewhere(settings, here)
    if caveat:
        return caveat
    chosen = profile(name)
    if chosen.fitted == here:
        return ""
    profile_settings = Settings().with_values(dict(chosen.values))
    labels = [
        info.label
        for layer in LAYERS
        if layer.settings_names and layer.enabled(settings)
        for info in (field_info(f"{layer.name}.{each}") for each in layer.used(settings))
        if info.unit in SCALES and settings.get(info.path) == profile_settings.get(info.path)
    ]
    if not labels:
        return ""
    listed = " and ".join(filter(None, (", ".join(labels[:-1]), labels[-1])))
    was = "was" if len(labels) == 1 else "were"
    return f"{listed} {was} fitted to {chosen.fitted.words}, not to this collection."
