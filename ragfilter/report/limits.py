"""Which limit decided how many chunks are kept, and which ones had no effect. Pure.

Several limits shorten a list one after the other. Raising a limit changes nothing if another one
acts first. So every limit says whether it decided anything and, if not, which one was first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ragfilter.layers.cutoff import cut_of
from ragfilter.layers.registry import layer
from ragfilter.model import LayerTrace, PoolResult
from ragfilter.settings.schema import field
from ragfilter.text import numbers

EPSILON = 1e-9


@dataclass(frozen=True, slots=True)
class SettingLimit:
    """A limit: the setting at `path` and its value, a number or a choice. `dropped` is how many
    hits it left out, `held` how many it kept that others left out. If it did neither, `why` says
    why it was not reached."""

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
        info = field(self.path)
        form = {float: ".3f", int: ",.0f"}.get(info.type, "")
        shown = f"{self.value:{form}}"
        where = f" ({info.section})" if info.section != "retrieval" else ""
        return f"{info.label} = {shown}{where}"

    @property
    def words(self) -> str:
        """``Candidates checked first = 15 (quality) drops 102``."""
        if self.held:
            return f"{self.label} keeps {numbers.count(self.held)} more"
        if self.dropped:
            return f"{self.label} drops {numbers.count(self.dropped)}"
        return f"{self.label} is not reached: {self.why}"


def limits(result: PoolResult) -> tuple[SettingLimit, ...]:
    """Every limit that dropped or kept hits, or was not reached, in the order in which they act."""
    found: list[SettingLimit] = []
    for trace in result.traces:
        if trace.enabled and trace.n_in:
            found += _of(trace, result, found)
    return tuple(found)


def _of(
    trace: LayerTrace, result: PoolResult, before: list[SettingLimit]
) -> Iterator[SettingLimit]:
    spec = layer(trace.layer)
    by = [(d.setting, d.outcome) for d in trace.decisions if d.setting]
    dropped = Counter(path for path, outcome in by if outcome == "dropped")
    held = sum((spec.holds, "kept") == each for each in by)
    value = result.settings.get
    for path, why in spec.unreached(trace, result).items():
        if path not in dropped:
            yield SettingLimit(
                path, value(path), why=_came(why, before) if isinstance(why, int) else why
            )
    # What acts last decides nearest to the top.
    for path in reversed(dropped):
        yield SettingLimit(path, value(path), dropped[path])
    if held:
        yield SettingLimit(spec.holds, value(spec.holds), held=held)


def _came(n: int, before: list[SettingLimit]) -> str:
    """How many came in, and the latest limit before that dropped any."""
    last = next((f", limited by {limit.label}" for limit in reversed(before) if limit.dropped), "")
    return f"{numbers.chunks(n)} came in{last}"


def first_step(result: PoolResult) -> float | None:
    """The size of the first step, if it is the tallest and would be the cliff if it were not
    skipped."""
    detail = cut_of(result)
    cutoff = result.settings.cutoff
    if detail is None or not cutoff.skip_first or detail.cut.strategy != "gap":
        return None
    first, *others = detail.cut.gaps or (None,)
    if first is None or not first.skipped or first.size < cutoff.gap_threshold - EPSILON:
        return None
    tallest = all(first.size > gap.size + EPSILON for gap in others if gap is not None)
    return first.size if tallest else None
