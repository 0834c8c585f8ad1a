"""Words: move up chunks that share distinctive words with the query, and pin chunks that state a value from the query.

Embeddings blur names and numbers: "strength 17" is a character to them, not the strength table. docs/design.md#words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ragfilter.layers.layer import LayerInput, LayerOutput, LayerSpec, Mark
from ragfilter.model import Decision, Hit, LayerTrace, Outcome, PoolResult
from ragfilter.text import numbers, shared_words

PIN_VALUES_PATH = "words.pin_values"
SHOWN_WORDS = 4
SHOWN_CHARS = 40
PER_VALUE = 3
"""Maximum number of chunks pinned for one value, since a common value says little."""


def apply(hits: tuple[Hit, ...], inputs: LayerInput) -> LayerOutput:
    """Order the hits by lowered distance, d − weight × (background − best) × overlap, pins first. Without a background,
    the order does not change."""
    settings, query = inputs.settings.words, inputs.pool.query
    ids = [hit.chunk.id for hit in hits]
    lowered = [hit.distance for hit in hits]
    near = ids[: settings.depth]
    known: dict[str, _HitWords] = inputs.shared.setdefault("words", {})
    stated = shared_words.values(query)
    pairs = zip(near, hits, strict=False)
    reads = [known.get(i) or known.setdefault(i, _read(hit, query, stated)) for i, hit in pairs]
    pinned = _stating(query, near, reads, inputs) if settings.pin_values else {}
    pins = {**pinned, **inputs.pinned}
    background = inputs.background
    way = (background - min(lowered[: settings.depth])) if near and background is not None else 0.0
    scale = settings.weight * max(0.0, way)
    overlaps = shared_words.compare(query, [each.counts for each in reads])
    for place, overlap in enumerate(overlaps):
        lowered[place] -= scale * overlap.share
    order = sorted(range(len(hits)), key=lowered.__getitem__)
    if pins:
        order.sort(key=lambda place: ids[place] not in pins)
    beyond = f"beyond the first {settings.depth}; only their words are compared"
    decisions: list[Decision] = []
    if inputs.explain:
        reasons = [*map(_shares, overlaps), *[beyond] * (len(ids) - len(near))]
        for i, value, reason in zip(ids, lowered, reasons, strict=True):
            outcome: Outcome = "pinned" if i in pins else "kept"
            by = PIN_VALUES_PATH if i in pinned and i not in inputs.pinned else ""
            decisions.append(Decision(i, "words", outcome, pins.get(i) or reason, value, None, by))
    note = "" if background is not None else "too few hits to weigh words against distances"
    adjusted = dict(zip(ids, lowered, strict=True)) if scale else {}
    ordered = tuple([hits[place] for place in order])
    return LayerOutput(ordered, tuple(decisions), note=note, pinned=pinned, adjusted_distances=adjusted)


class _HitWords(NamedTuple):
    """What a hit shares with the query: words, stated values, and the values that its title names."""

    counts: shared_words.WordCounts
    values: frozenset[shared_words.Value]
    titled: frozenset[shared_words.Value]


def _read(hit: Hit, query: str, stated: frozenset[shared_words.Value]) -> _HitWords:
    passage = hit.chunk.passage if hit.chunk.loaded else ""
    values = shared_words.shared_values(stated, passage) if stated else stated
    title = shared_words.words_of(hit.chunk.title) if values else ()
    titled = frozenset([value for value in values if value[0] in title])
    return _HitWords(shared_words.word_counts(query, passage), values, titled)


def _stating(query: str, ids: Sequence[str], named: Sequence[_HitWords], inputs: LayerInput) -> dict[str, str]:
    """The reasons for pinning hits, by id: the query gives a value for something that the title
    names, and the hit's text has that value. A value that an earlier pin states needs no other."""
    with_values = [(i, each) for i, each in zip(ids, named, strict=True) if each.values]
    if not with_values:
        return {}
    met = frozenset[shared_words.Value]().union(*(s.values for i, s in with_values if i in inputs.pinned))
    reasons: dict[str, str] = {}
    for name, number in sorted(shared_words.values(query) - met):
        stating = [i for i, each in with_values if (name, number) in each.titled]
        for hit_id in stating[:PER_VALUE]:
            reasons.setdefault(hit_id, f"states “{name[:SHOWN_CHARS]} {number}”, as the query does")
    return reasons


def _shares(overlap: shared_words.Overlap) -> str:
    if not overlap.words:
        # Function words count as well, but too little to state a share.
        return "shares only common words" if overlap.share else "shares no word"
    shown = ", ".join(word[:SHOWN_CHARS] for word in overlap.words[:SHOWN_WORDS])
    more = ", …" if len(overlap.words) > SHOWN_WORDS else ""
    return f"shares {shown}{more} ({overlap.share:.0%} of the maximum overlap)"


def _line(trace: LayerTrace, result: PoolResult) -> str:
    stated = sum(d.setting == PIN_VALUES_PATH for d in trace.decisions)
    line = trace.note or "ordered by distance minus shared words"
    return f"{line}; pins {numbers.chunk_count(stated)} for a stated value" if stated else line


SPEC: LayerSpec = LayerSpec(
    name="words",
    title="Shared words",
    # As for entities: it drops nothing, and only pins hits.
    mark=Mark("★", "star", "#5727b4", "#aabeed"),
    apply=apply,
    candidates=lambda settings: settings.words.depth,
    line=_line,
    off=lambda settings: "off; shared words are ignored",
    reads_pool=lambda settings: True,
    explains=0,
)
