"""prune: leave sentences out of the context that add nothing to the answer. It drops no chunk.

Source: docs/design.md#prune. A piece is a sentence, a heading, or a block that only makes sense as a whole: a table, a
list or code, with the line that introduces it ("Parameters:"). Rows written as sentences ("Level 3: 5. Level 4: 6.")
are a table too. The pieces cover the text, so that spans can be cut out of it. A heading stays if anything below it
does. Chunks stay whole until a pruner has scored their pieces, or if it fails.

The bundled pruner scores by sentence vectors. The value of a piece is that of its best sentence or row: the cosine with
the question, increased by the share of the question's words and numbers that it contains. The neighbours of a piece get
a share of its value, since "It lasts an hour." needs its neighbour.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby, pairwise
from operator import attrgetter, itemgetter
from typing import Literal, NamedTuple

import numpy as np

from ragfilter.answer.context import cost, cost_in_prompt
from ragfilter.answer.extractive import passages_of, sentences, units
from ragfilter.layers.base import EPSILON, LayerInput, LayerOutput, LayerSpec, Mark, no_more
from ragfilter.model import Decision, Hit, LayerTrace, Need, PoolResult, PrunedPiece, Pruning
from ragfilter.protocols import Embedder, PrunePassage
from ragfilter.text import numbers
from ragfilter.text.words import FUNCTION_WORDS, words_of

Kind = Literal["sentence", "heading", "block"]

_BLANK = r"(?:^[^\S\n]*\n)*"
_HEADING = r"\#{1,6}(?=\s)"
_FENCE = r"[^\S\n]*(?:```|~~~)"
_ROW = r"[^\S\n]*\|.*\|"
_ITEM = r"[^\S\n]*(?:[-*+•]|\d+[.)])\s"
_INDENTED = r"(?:[ ]{4}|\t)(?=.*\S)"
_PLAIN = rf"^(?!{_HEADING}|{_FENCE}|{_ROW}|{_ITEM})(?=.*\S).+\n?"
_PARTS = re.compile(
    rf"""
    (?:
        (?P<heading>^{_HEADING}.*\n?)
        | ^[^\S\n]*(?P<fence>```|~~~)(?s:.*?)(?:^[^\S\n]*(?P=fence).*\n?|\Z)
        | (?:^{_ROW}.*\n?)+
        | ^{_ITEM}.*\n? (?:{_BLANK}^(?!{_HEADING})(?:{_ITEM}|[^\S\n]+(?=\S)).*\n? | {_PLAIN})*
        | ^{_INDENTED}.*\n? (?:{_BLANK}^{_INDENTED}.*\n?)*
        | (?P<prose>(?:{_PLAIN})+)
    )
    (?:^[^\S\n]*\n|^[^\S\n]+\Z)*
    """,
    re.VERBOSE | re.MULTILINE,
)


class TextPiece(NamedTuple):
    """A piece ``text[start:end]``, including the white space after it."""

    start: int
    end: int
    kind: Kind


@lru_cache(maxsize=4096)
def pieces(text: str) -> tuple[TextPiece, ...]:
    """The pieces of a text, in order; the first begins at 0 and the last ends with the text."""
    joined: list[TextPiece] = []
    for start, end, kind in _parts(text):
        last = joined[-1] if joined else None
        # A sentence may introduce the table, list or code after it.
        if last and kind == "block" and last.kind == "sentence" and text[last.start : last.end].rstrip().endswith(":"):
            joined[-1] = TextPiece(last.start, end, "block")
        else:
            joined.append(TextPiece(start if joined else 0, end, kind))
    return tuple(joined) or ((TextPiece(0, len(text), "sentence"),) if text else ())


def _parts(text: str) -> Iterator[TextPiece]:
    """The pieces before sentences are joined to the blocks that they introduce."""
    for match in _PARTS.finditer(text):
        if match["prose"]:
            yield from _sentences(text, *match.span())
        else:
            yield TextPiece(*match.span(), "heading" if match["heading"] else "block")


def _sentences(text: str, start: int, end: int) -> Iterator[TextPiece]:
    """The sentences of a paragraph; consecutive rows are one block."""
    begins: list[int] = []
    rows: list[bool] = []
    place = start
    for sentence in sentences(text[start:end]):
        place = text.index(sentence, place)
        begins.append(place)
        rows.append(any(unit.is_row for unit in units(sentence)))
        place += len(sentence)
    if not begins:
        yield TextPiece(start, end, "sentence")
        return
    spans = zip([start, *begins[1:]], [*begins[1:], end], rows, strict=True)
    for is_row, group in groupby(spans, key=itemgetter(2)):
        if is_row:
            block = list(group)
            yield TextPiece(block[0][0], block[-1][1], "block")
        else:
            yield from (TextPiece(a, b, "sentence") for a, b, _ in group)


def apply(hits: tuple[Hit, ...], inputs: LayerInput) -> LayerOutput:
    """Strike the pieces of every hit that contribute too little."""
    error = next((f.error for f in inputs.pool.failures if f.kind == "prune"), "")
    if error:
        note = f"the pruner failed ({error}); every chunk is whole"
        whole = tuple(Decision(hit.id, "prune", "fallback", "whole") for hit in hits)
        return LayerOutput(hits, whole, note=note, failed=True)
    missing = tuple(hit.id for hit in hits if hit.contributions is None)
    if missing:
        why = f"no pruner has read {numbers.chunks(len(missing))} yet"
        need = Need("prune", "prune", missing, why)
        whole = tuple(Decision(hit.id, "prune", "kept", "whole") for hit in hits)
        return LayerOutput(hits, whole, (need,), note=f"{why}; for now, they are whole")
    limit = inputs.settings.prune.share * max((v for hit in hits for v in hit.contributions or ()), default=0.0)
    pruned = {hit.id: _mark_pieces(hit, limit) for hit in hits}
    kept = tuple(replace(hit, struck=_spans(pruned[hit.id])) for hit in hits)
    detail = Pruning(limit, pruned, sum(cost(hit.chunk) for hit in hits), sum(map(cost_in_prompt, kept)))
    if not inputs.explain:
        return LayerOutput(kept, detail=detail)
    decisions = tuple(_decision(hit, pruned[hit.id], limit) for hit in kept)
    return LayerOutput(kept, decisions, detail=detail)


def _mark_pieces(hit: Hit, limit: float) -> tuple[PrunedPiece, ...]:
    parts, values = pieces(hit.chunk.text), hit.contributions or ()
    if not parts:
        return ()
    best = max(values)
    stays = [v >= min(limit, best) - EPSILON for v in values]
    headings = [place for place, part in enumerate(parts) if part.kind == "heading"]
    for place, end in pairwise([*headings, len(parts)]):
        # The first heading stays, and others if any piece up to the next heading does.
        stays[place] = place == headings[0] or any(stays[place:end])
    every = zip(parts, values, stays, strict=True)
    return tuple(PrunedPiece(part.start, part.end, value, not stay) for part, value, stay in every)


def _spans(parts: tuple[PrunedPiece, ...]) -> tuple[tuple[int, int], ...]:
    """The spans to strike, with adjacent ones merged."""
    runs = ([*group] for struck, group in groupby(parts, key=attrgetter("struck")) if struck)
    return tuple((run[0].start, run[-1].end) for run in runs)


def _decision(hit: Hit, parts: tuple[PrunedPiece, ...], limit: float) -> Decision:
    struck = [part.value for part in parts if part.struck]
    if not struck:
        return Decision(hit.id, "prune", "kept", "whole", limit=limit)
    reason = (
        f"{len(struck)} of {len(parts)} parts left out, with at most {max(struck):.3f} where "
        f"{limit:.3f} is needed; {cost_in_prompt(hit)} of {numbers.tokens(cost(hit.chunk))} stay"
    )
    return Decision(hit.id, "prune", "kept", reason, max(struck), limit, "prune.share")


def _line(trace: LayerTrace, result: PoolResult) -> str:
    detail = trace.detail
    if not isinstance(detail, Pruning):
        return trace.note
    parts = [part for each in detail.pieces.values() for part in each]
    struck = sum(part.struck for part in parts)
    if not struck:
        return "every chunk is whole"
    saved = numbers.tokens(detail.before - detail.after)
    return f"leaves out {struck} of {len(parts)} parts, {saved} of {detail.before:,}"


SPEC: LayerSpec = LayerSpec(
    name="prune",
    title="Prune",
    mark=Mark("✂", "line-ne", "#482500", "#acffea"),
    apply=apply,
    candidates=no_more,
    line=_line,
    off=lambda settings: "off; every chunk is whole",
    cost=lambda settings: "local model",
    first=("share",),
    explains=0,
)

SHARED = 0.5
"""The increase for a piece that contains all words and numbers of the question."""
NEAR = 0.85
"""The share of its value that a piece gives to its neighbours."""


class SentencePruner:
    """Rates pieces by the sentence vectors of `embedder`. Thread-safe if the embedder is."""

    name = "sentences"

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def contributions(self, query: str, passages: Sequence[PrunePassage]) -> list[tuple[float, ...]]:
        """One value (0..1) for each piece of each passage. Raises ModelError."""
        read = [[passages_of(p.title, piece) for piece in p.pieces] for p in passages]
        texts = list(dict.fromkeys(t for one in read for units in one for t in units))
        if not texts:
            return [(0.0,) * len(p.pieces) for p in passages]
        vectors = self._embedder.embed([query, *texts])
        near = dict(zip(texts, (vectors[1:] @ vectors[0]).tolist(), strict=True))
        question_words = frozenset(words_of(query)) - FUNCTION_WORDS
        values = []
        for passage, units_of in zip(passages, read, strict=True):
            contributions = [
                max((near[t] for t in units), default=0.0) + SHARED * _share(question_words, piece)
                for piece, units in zip(passage.pieces, units_of, strict=True)
            ]
            values.append(tuple(float(np.clip(v, 0.0, 1.0)) for v in _with_neighbours(contributions)))
        return values


def _share(question_words: frozenset[str], piece: str) -> float:
    shared = len(question_words.intersection(words_of(piece)))
    return shared / len(question_words) if shared else 0.0


def _with_neighbours(values: Sequence[float]) -> list[float]:
    around = [0.0, *values, 0.0]
    return [max(v, NEAR * max(around[i], around[i + 2])) for i, v in enumerate(values)]
