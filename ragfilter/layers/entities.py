"""Entities: in a comparison, pin the best chunk of each side, so that no cutoff can drop it.

Gathering searched for each side separately. Source: Adaptive Result Filtering, "Comparison Detection Integration";
docs/design.md#entities."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ragfilter.layers.layer import LayerInput, LayerOutput, LayerSpec, Mark, no_more
from ragfilter.model import Decision, Hit, LayerTrace, Pool, PoolResult
from ragfilter.text.comparison import beginnings, mentions, readings, shared_name, title_is, title_names
from ragfilter.text.numbers import chunk_count


def apply(hits: tuple[Hit, ...], inputs: LayerInput) -> LayerOutput:
    """Move each side's best surviving chunk to the front, the nearest first.

    Sorting by distance avoids false cliffs between the last pin and the first free chunk. The best chunk is the first,
    in the order of the side's own search, whose title is the side. If there is none, it is the first whose title names
    the side, preferably not as part of a longer name ("bear", not "cave bear"). If no title does, it is the first whose
    text names the side, since many texts mention things that they are not about. A side that may end in an aspect
    ("MySQL performance") is tried with and without it. Last, a title can be the beginning of the side. A chunk that is
    best for two sides is pinned once, for both."""
    if not inputs.pool.entities:
        name = shared_name(inputs.pool.query)
        alike = f"all sides are “{name}”, so none is searched for separately"
        return LayerOutput(hits, note=alike if name else "not a comparison")
    by_id = {hit.id: hit for hit in hits}
    pinned: dict[str, list[str]] = {}
    missing: list[str] = []
    for entity in inputs.pool.entities:
        ids = entity.ids[: inputs.settings.entities.per_entity if entity.retrieved else None]
        best = _best(entity.name, [by_id[i] for i in ids if i in by_id], inputs.pool)
        if best is None:
            missing.append(f"no chunk left that names “{entity.name}”")
        else:
            pinned.setdefault(best.id, []).append(f"“{entity.name}”")
    front = sorted((by_id[i] for i in pinned), key=lambda hit: hit.distance)
    rest = [hit for hit in hits if hit.id not in pinned]
    pins = {hit.id: f"best chunk for {' and '.join(pinned[hit.id])}" for hit in front}
    decisions = [Decision(i, "entities", "pinned", reason) for i, reason in pins.items()]
    decisions += [Decision(hit.id, "entities", "kept", "not pinned") for hit in rest]
    reasons = dict.fromkeys(pinned, "named in the comparison")
    return LayerOutput((*front, *rest), tuple(decisions), note="; ".join(missing), pinned=reasons)


def _best(name: str, hits: Sequence[Hit], pool: Pool) -> Hit | None:
    longer = [e.name for e in pool.entities if e.name != name and mentions(name, e.name)]

    def alone(test: Callable[[str, str], bool]) -> Callable[[str, str], bool]:
        return lambda side, title: test(side, title) and not any(test(each, title) for each in longer)

    sides = readings(pool.query, name)
    title_tests = (alone(title_is), alone(title_names), title_names)
    tests = [(test, side, "title") for side in sides for test in title_tests]
    tests += [(mentions, side, "text") for side in sides]
    tests += [(title_is, side, "title") for side in beginnings(name)]
    best = (hit for test, side, part in tests for hit in hits if test(side, getattr(hit.chunk, part)))
    return next(best, None)


def _line(trace: LayerTrace, result: PoolResult) -> str:
    if not result.pool.entities:
        return trace.note or "not a comparison"
    sides = ", ".join(entity.name for entity in result.pool.entities)
    note = f"; {trace.note}" if trace.note else ""
    return f"pins {chunk_count(trace.count('pinned'))} for {sides}{note}"


SPEC: LayerSpec = LayerSpec(
    name="entities",
    title="Entities",
    # The mark of a pinned hit, since this layer pins.
    mark=Mark("★", "star", "#5727b4", "#aabeed"),
    apply=apply,
    candidates=no_more,
    line=_line,
    off=lambda settings: "off; comparisons are not split",
    cost=lambda settings: "store query",
    explains=0,
)
