"""Words: move up what shares telling words with the query, and pin what states a value it gives.

An embedding blurs names and numbers: to it, "strength 17" is about a character, not about the
strength table. docs/design.md#words.
"""

from __future__ import annotations

from collections.abc import Sequence

from ragfilter.layers.base import LayerInput, LayerOutput
from ragfilter.layers.spec import LayerSpec, Mark
from ragfilter.model import Decision, Hit, LayerTrace, Outcome, Result
from ragfilter.settings.field import Section, setting
from ragfilter.text import numbers, words

SHOWN_WORDS = 4
SHOWN_CHARS = 40
PER_VALUE = 3
"""A value that many state says little: at most so many are pinned for one."""


class Words(Section):
    enabled: bool = setting(
        False,
        "Move chunks up that share telling words with the query, and pin those that state a value "
        "it gives.",
    )
    weight: float = setting(
        1.5,
        "How much shared words count: a chunk with all of them moves up by this many times the "
        "way from the best distance to the background.",
        unit="times", ge=0, le=10, step=0.1, ceiling=4, label="Weight of words",
    )  # fmt: skip
    depth: int = setting(
        50, "Number of candidates whose words are compared.",
        unit="chunks", ge=1, le=500, ceiling=100, label="Candidates compared",
    )  # fmt: skip
    pin_values: bool = setting(
        True,
        "If the query gives a value for something (strength 17), pin the chunks whose title names "
        "it and whose text states that value.",
        label="Pin stated values",
    )


def apply(hits: tuple[Hit, ...], look: LayerInput) -> LayerOutput:
    """Order the hits by distance less shared words, pins first.

    The lowered distance is d − weight × (background − best) × overlap: in the scale of the
    collection's distances, whatever that is. Where no background is known, the order stays.
    """
    settings = look.settings.words
    near, far = hits[: settings.depth], hits[settings.depth :]
    pinned = _stating(look.pool.query, near, look) if settings.pin_values else {}
    pins = {**pinned, **{hit.id: look.pinned[hit.id] for hit in hits if hit.id in look.pinned}}
    background = look.background
    way = 0.0
    if near and background is not None:
        way = max(0.0, background - min(hit.distance for hit in near))
    passages = [hit.chunk.passage if hit.chunk.loaded else "" for hit in near]
    shared = words.overlaps(look.pool.query, passages)
    lowered = {hit.id: hit.distance for hit in hits}
    decisions: list[Decision] = []
    for hit, overlap in zip(near, shared, strict=True):
        lowered[hit.id] -= settings.weight * way * overlap.share
        outcome: Outcome = "pinned" if hit.id in pins else "kept"
        reason = pins.get(hit.id) or _shares(overlap)
        decisions.append(Decision(hit.id, "words", outcome, reason, lowered[hit.id]))
    for hit in far:
        outcome = "pinned" if hit.id in pins else "kept"
        reason = pins.get(hit.id) or f"beyond the first {settings.depth} whose words are compared"
        decisions.append(Decision(hit.id, "words", outcome, reason, hit.distance))
    note = "" if background is not None else "too few hits to weigh words against distances"
    return LayerOutput(
        tuple(sorted(hits, key=lambda hit: (hit.id not in pins, lowered[hit.id]))),
        tuple(decisions),
        note=note,
        pinned=pinned,
        lowered=lowered if way and settings.weight else {},
    )


def _stating(query: str, hits: Sequence[Hit], look: LayerInput) -> dict[str, str]:
    """Why a hit is pinned, by id: its title names what the query gives a value for, and its text
    has that value. A value that a pin states already needs no other."""
    asked = words.values(query)
    if not asked:
        return {}
    there = {hit.id: asked & words.values(hit.chunk.passage) for hit in hits if hit.chunk.loaded}
    met = frozenset[words.Value]().union(*(there[i] for i in there if i in look.pinned))
    found: dict[str, str] = {}
    for name, number in sorted(asked - met):
        stating = (
            hit.id
            for hit in hits
            if (name, number) in there.get(hit.id, ()) and name in words.tokens(hit.chunk.title)
        )
        for hit_id in [*stating][:PER_VALUE]:
            found.setdefault(hit_id, f"states “{name[:SHOWN_CHARS]} {number}”, as the query does")
    return found


def _shares(overlap: words.Overlap) -> str:
    if not overlap.words:
        return "shares no telling word"
    shown = ", ".join(word[:SHOWN_CHARS] for word in overlap.words[:SHOWN_WORDS])
    more = ", …" if len(overlap.words) > SHOWN_WORDS else ""
    return f"shares {shown}{more} ({overlap.share:.0%} of the most there could be)"


def _line(trace: LayerTrace, result: Result) -> str:
    stated = [d for d in trace.decisions if d.reason.startswith("states ")]
    line = trace.note or "ordered by distance less shared words"
    return f"{line}; pins {numbers.chunks(len(stated))} for a stated value" if stated else line


SPEC: LayerSpec = LayerSpec(
    name="words",
    title="Shared words",
    # As for entities: it drops nothing, and what it keeps itself is pinned.
    mark=Mark("★", "star", "#5727b4", "#aabeed"),
    apply=apply,
    section=Words,
    line=_line,
    off=lambda settings: "off; words do not count",
    reads_pool=lambda settings: True,
    explains=0,
)
