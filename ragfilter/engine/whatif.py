"""Find the smallest change to one setting that keeps a dropped chunk or drops a kept one, or to two
settings if a dropped chunk needs both.

`replay` finds and verifies every answer. Clearance is never changed: nobody can grant themselves access."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any

from pydantic import ValidationError

from ragfilter.engine.replay import ReplayMemo, replay
from ragfilter.errors import SettingsError
from ragfilter.layers.cutoff import cut_or_gap, cutoff_detail
from ragfilter.layers.registry import LAYERS, layer
from ragfilter.layers.strategies.strategy import strategy
from ragfilter.model import CutoffDetail, Pool, PoolResult, User
from ragfilter.rules.explain import explain
from ragfilter.rules.rule import parse
from ragfilter.settings.field import FieldInfo
from ragfilter.settings.schema import Cutoff, Settings, field_info
from ragfilter.text import numbers

GRID = 0.001
"""The step of the search: numbers have the decimals that are shown."""
IDLE = frozenset({"ms", "tokens", "s"})
"""Units of settings that matter only if a model is called again, except the context budget."""


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A change of one setting from `old` to `new`, and perhaps of another (`also`). `came` and
    `went` are the other chunks that it adds and removes, in order."""

    path: str
    old: Any
    new: Any
    came: tuple[str, ...] = ()
    went: tuple[str, ...] = ()
    also: SettingChange | None = None

    @property
    def values(self) -> dict[str, Any]:
        """The new values by path."""
        return {self.path: self.new} | (self.also.values if self.also else {})

    @property
    def words(self) -> str:
        """``Gap threshold 0.126 → 0.130``."""
        if isinstance(self.new, bool):
            name = layer(self.path.partition(".")[0]).title
            label = name if self.path.endswith(".enabled") else field_info(self.path).label
            words = f"Switch {label} {'on' if self.new else 'off'}"
        else:
            words = f"{field_info(self.path).label} {_shown(self.old)} → {_shown(self.new)}"
        return f"{words} and {self.also.words}" if self.also else words


def find_changes(result: PoolResult, chunk_id: str, *, most: int = 3) -> tuple[SettingChange, ...]:
    """The changes of one setting that keep a dropped chunk or drop a kept one, smallest first. If
    none keeps it, switch off the layer that dropped it and add the smallest change that is needed.

    Empty if there is no such change, if the chunk is not among the hits, or if its user cannot see it. The layer that
    dropped the chunk is tried first. Switching it off comes last."""
    hit = next((hit for hit in result.hits if hit.id == chunk_id), None)
    if hit is None or not result.user.sees(hit.chunk):
        return ()
    wanted = chunk_id not in {kept.id for kept in result.kept}
    search = _Search(result.pool, result.settings, result.user, chunk_id, wanted)
    infos = [*_candidates(result, chunk_id, wanted)]
    turning = sorted((each for info in infos if (each := search.along(info))), key=lambda e: e[0])
    proposals = [{path: value} for _, path, value in turning[:most]]
    proposals = proposals or [{path: value} for path, value in search.switches(result)]
    return tuple(map(search.change, proposals or search.pairs(result, infos)))


def why_no_change(result: PoolResult, chunk_id: str) -> str:
    """Why no change keeps or drops a chunk, in words: it is pinned, several limits keep it out, or
    no limit goes that far."""
    kept = any(hit.id == chunk_id for hit in result.kept)
    for trace in result.traces:
        for decision in trace.decisions:
            if decision.chunk_id != chunk_id:
                continue
            decision_text = f"{layer(trace.layer).title}: {decision.reason}"
            if decision.outcome == "pinned":
                return f"It is pinned by {decision_text}."
            if decision.outcome == "dropped" and not kept:
                if trace.layer == "clearance":
                    return f"{decision_text}."
                return f"More than one limit keeps it out. First {decision_text}."
    return "No limit of an active layer drops it, even at its lowest or highest value."


@dataclass(frozen=True, slots=True)
class Wording:
    """The question plus the terms that a chunk's rule misses. `came` and `went` are the other
    chunks that this would add and remove, judged by the original question's distances."""

    question: str
    terms: tuple[str, ...]
    came: tuple[str, ...]
    went: tuple[str, ...]


def reword(result: PoolResult, chunk_id: str) -> Wording | None:
    """Find terms that, added to the question, keep a chunk that its rule drops.

    None if its rule does not drop it, if another layer then would, or if the question contains terms that the rule
    forbids."""
    hit = next((hit for hit in result.hits if hit.id == chunk_id), None)
    decisions = result.trace("query_must").decisions
    dropped = any(d.chunk_id == chunk_id and d.outcome == "dropped" for d in decisions)
    if hit is None or not dropped or not hit.chunk.rule or not result.user.sees(hit.chunk):
        return None
    rule = parse(hit.chunk.rule)
    unmet = [part for part in explain(rule, result.query).parts if not part.met]
    terms = tuple(dict.fromkeys(p.near.term if p.near else p.terms[0] for p in unmet if p.terms))
    question = " ".join((result.query, *terms))
    reworded = replay(replace(result.pool, query=question), result.settings, result.user)
    after, before = ([h.id for h in each.kept] for each in (reworded, result))
    if chunk_id not in after:
        return None
    came, went = _moved(before, after, chunk_id)
    return Wording(question, terms, came, went)


def change_by_one_hit(result: PoolResult, by: int, replayed: Callable[[Settings], PoolResult]) -> SettingChange | None:
    """The smallest change of a cutoff limit that keeps one hit more (`by` 1) or less (-1), or as near to that as
    possible. `came` and `went` are all chunks that it adds and drops. None if no limit has this effect. Candidates are
    evaluated by the cutoff alone, and `replayed` to include the layers after it."""
    detail = cutoff_detail(result)
    if detail is None:
        return None
    cut, now = detail.cut, result.settings.cutoff
    shared = ("max_results", "min_results")
    candidates = []
    for name in strategy(cut.strategy).reads:
        info, value = field_info(f"cutoff.{name}"), getattr(now, name)
        if info.value_type not in (int, float) or name == "recall":
            continue
        grid = 1 if info.value_type is int else GRID
        low, high = info.low or 0, max(info.ceiling or value, value)
        values = tuple(info.value_type(round(low + grid * i, 3)) for i in range(round((high - low) / grid) + 1))
        steps = kept_by_value(result, name, values)
        for (start, kept), (end, _) in zip(steps, (*steps[1:], (high + grid, 0)), strict=True):
            if by * (kept - cut.kept) > 0:
                nearest = start if start > value else round(end - grid, 3)
                miss = abs(kept - cut.kept - by)
                far = abs(nearest - value) / ((high - low) or 1)
                candidates.append((miss > 0, name in shared, miss, far, name, info.value_type(nearest)))
    before = [hit.id for hit in result.kept]
    for *_, name, value in sorted(candidates):
        path = f"cutoff.{name}"
        settings = result.settings.with_values({path: value})
        after = [hit.id for hit in replayed(settings).kept]
        if by * (len(after) - len(before)) > 0:
            came = tuple(i for i in after if i not in before)
            went = tuple(i for i in before if i not in after)
            return SettingChange(path, getattr(now, name), value, came, went)
    return None


Steps = tuple[tuple[float, int], ...]
"""The lowest value of each step, with the number of hits that it keeps."""


def kept_by_value(result: PoolResult, name: str, values: tuple[float, ...]) -> Steps:
    """How many hits the cutoff would keep with each of the ascending `values` of its setting `name`."""
    trace = result.trace("cutoff")
    assert isinstance(trace.detail, CutoffDetail)
    detail = trace.detail
    # The current value is removed, so that moving the threshold finds the same cached steps.
    changed = {"strategy": detail.cut.strategy, name: values[0]}
    settings = result.settings.cutoff.model_copy(update=changed)
    pinned = trace.count("pinned")
    return _steps(detail.values, settings, pinned, detail.background, name, values)


@lru_cache(maxsize=256)
def _steps(
    distances: tuple[float, ...],
    settings: Cutoff,
    pinned: int,
    background: float | None,
    name: str,
    values: tuple[float, ...],
) -> Steps:
    @cache
    def kept(i: int) -> int:
        tried = settings.model_copy(update={name: values[i]})
        return cut_or_gap(distances, tried, pinned=pinned, background=background).kept

    last = len(values) - 1
    # A larger k may bring a new cliff and keep fewer hits. A threshold changes in one direction only.
    places = range(1, last + 1) if name == "max_results" else _changes(kept, 0, last)
    changes = [i for i in places if kept(i) != kept(i - 1)]
    return tuple((values[i], kept(i)) for i in [0, *changes])


def _changes(kept: Callable[[int], int], low: int, high: int) -> list[int]:
    """The places after `low` where `kept`, which is monotonic, changes."""
    if kept(low) == kept(high):
        return []
    if high - low == 1:
        return [high]
    middle = (low + high) // 2
    return _changes(kept, low, middle) + _changes(kept, middle, high)


def _moved(before: Sequence[str], after: Sequence[str], chunk_id: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The chunks that come and those that go, except the chunk itself."""
    came = tuple(i for i in after if i not in before and i != chunk_id)
    return came, tuple(i for i in before if i not in after and i != chunk_id)


def _candidates(result: PoolResult, chunk_id: str, wanted: bool) -> Iterator[FieldInfo]:
    """The numeric settings that may change a chunk's fate: of the layer that dropped it and of later
    layers, which may drop it next; of every layer for a kept chunk."""
    settings = result.settings
    names = [spec.name for spec in LAYERS]
    first = 0
    if wanted:
        decisions = (d for trace in result.traces for d in trace.decisions if d.chunk_id == chunk_id)
        dropped = [d.layer for d in decisions if d.outcome == "dropped"]
        first = names.index(dropped[-1]) if dropped else len(names)
    for spec in LAYERS[first:]:
        if spec.name == "clearance" or not spec.enabled(settings):
            continue
        paths = [f"{spec.name}.{name}" for name in spec.used(settings)]
        for path in [*paths, "retrieval.k"] if spec.name == "top_k" else paths:
            info = field_info(path)
            heeded = spec.name == "context" or info.unit not in IDLE
            if info.value_type in (int, float) and heeded:
                yield info


@dataclass(frozen=True, slots=True)
class _Search:
    """A search over values of one setting; `wanted` says whether the chunk should be kept."""

    pool: Pool
    settings: Settings
    user: User
    chunk_id: str
    wanted: bool
    memo: ReplayMemo = field(default_factory=dict, compare=False)

    def replayed(self, path: str, value: Any) -> PoolResult | None:
        """The result with this value; None if the value is not allowed."""
        try:
            settings = self.settings.with_values({path: value})
            return replay(self.pool, settings, self.user, memo=self.memo, explain=False)
        except (ValidationError, SettingsError):
            # For example, thresholds that were tuned with the reranker now switched off.
            return None

    def turns(self, result: PoolResult | None) -> bool:
        return result is not None and self.wanted == any(h.id == self.chunk_id for h in result.kept)

    def along(self, info: FieldInfo) -> tuple[float, str, Any] | None:
        """The value of a numeric setting, nearest to the current one, that changes the chunk's
        fate: its distance as a share of the setting's range, the path and the value."""
        now = self.settings.get(info.path)
        step = 1 if info.value_type is int else GRID
        low, high = info.low or 0, max(info.ceiling or now, now)
        here = now / step
        nearest = []
        for end, way in ((round(low / step), -1), (round(high / step), 1)):
            # The first whole step next to the value.
            first = math.floor(here + 1e-6) + 1 if way > 0 else math.ceil(here - 1e-6) - 1
            places = range(first, end + way, way)
            # A whole number of steps, so that a decimal is written without rounding errors.
            values = [now, *(n if info.value_type is int else round(n * GRID, 3) for n in places)]
            if (value := self._first(info.path, values)) is not None:
                nearest.append((abs(value - now) / ((high - low) or 1), info.path, value))
        return min(nearest, default=None)

    def _first(self, path: str, values: Sequence[Any]) -> Any | None:
        """The first of `values` that changes the chunk's fate. The current value comes first."""
        if path == "cutoff.max_results":
            # A larger k can bring in a new cliff, and a still larger k can hide it again.
            return next((v for v in values[1:] if self.turns(self.replayed(path, v))), None)

        @cache
        def at(i: int) -> tuple[bool, object]:
            """Whether value i changes the fate; and what is kept, with each layer's count."""
            result = self.replayed(path, values[i])
            if result is None:
                return False, None
            kept = tuple(hit.id for hit in result.kept)
            return self.turns(result), (kept, *(trace.n_out for trace in result.traces))

        i = _first_turn(at, 0, len(values) - 1)
        return None if i is None else values[i]

    def switches(self, result: PoolResult) -> Iterator[tuple[str, bool]]:
        """The switches that keep the chunk if their layer is off, one at a time."""
        for trace in result.traces:
            path = f"{trace.layer}.enabled"
            switched = trace.enabled and layer(trace.layer).switched and trace.layer != "clearance"
            if self.wanted and switched and self.turns(self.replayed(path, False)):
                yield path, False

    def pairs(self, result: PoolResult, infos: Sequence[FieldInfo]) -> list[dict[str, Any]]:
        """Switch off the layer that dropped the chunk, and find what change then keeps it."""
        for trace in result.traces if self.wanted else ():
            dropped = any(d.chunk_id == self.chunk_id and d.outcome == "dropped" for d in trace.decisions)
            if not dropped or not layer(trace.layer).switched or trace.layer == "clearance":
                continue
            path = f"{trace.layer}.enabled"
            if (off := self.replayed(path, False)) is not None:
                search = replace(self, settings=off.settings)
                others = (info for info in infos if info.section != trace.layer)
                seconds = [each for info in others if (each := search.along(info))]
                seconds += [(1.0, *each) for each in search.switches(off)]
                return [{path: False, other: value} for _, other, value in sorted(seconds)[:1]]
        return []

    def change(self, values: dict[str, Any]) -> SettingChange:
        """The change of one or two settings, with the other chunks it adds and removes."""
        before = [hit.id for hit in replay(self.pool, self.settings, self.user).kept]
        changed = replay(self.pool, self.settings.with_values(values), self.user, memo=self.memo, explain=False)
        moved = _moved(before, [hit.id for hit in changed.kept], self.chunk_id)
        one, *two = (SettingChange(p, self.settings.get(p), new) for p, new in values.items())
        return replace(one, came=moved[0], went=moved[1], also=two[0] if two else None)


def _first_turn(at: Callable[[int], tuple[bool, object]], low: int, high: int) -> int | None:
    """The first index after `low` at which `at` is true; it is false at `low`. Assumes that nothing
    changes between two indices with equal results."""
    if low == high or at(low) == at(high):
        return None
    if high - low == 1:
        return high if at(high)[0] else None
    middle = (low + high) // 2
    first = _first_turn(at, low, middle)
    return _first_turn(at, middle, high) if first is None else first


def _shown(value: Any) -> str:
    return numbers.distance(value) if isinstance(value, float) else str(value)
