"""Decides what each chunk sends to the judge, so that as many as possible fit into its prompt.
Pure.

Source: docs/design.md#judge. If not everything fits, all chunks get the same maximum number of
tokens, the highest with which they fit. Before too little of a text is left to judge, its head
becomes a short title. Its id is never cut: the judge has to repeat it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ragfilter.answer.context import GAP, SHORTENED, defuse, estimate, head, one_line
from ragfilter.answer.extractive import units
from ragfilter.model import Chunk
from ragfilter.text.titles import short_title
from ragfilter.text.words import overlaps

SHOWN_REFS = 20
LINE_CHARS = 200
SHORT_LINE_CHARS = 40
MIN_TEXT = 8
"""Minimum number of tokens of its text that a chunk sends."""
MAX_READ = 8000
"""Characters of a text in which its distinctive parts are looked for."""

_END = "</chunk>\n"
_MARK = estimate(f" {SHORTENED}") + 1


@dataclass(frozen=True, slots=True)
class Block:
    """A chunk as the judge sees it. `shortened`: its text is not complete."""

    text: str
    shortened: bool


def blocks(
    query: str,
    chunks: Sequence[tuple[Chunk, str]],
    *,
    room: int,
    most: int,
    fields: Collection[str],
) -> tuple[Block, ...]:
    """The first of `chunks`, as many as fit into `room` tokens, each with its score in words. No
    block takes more than `most` tokens."""
    sent = [_Sent(chunk, score, fields) for chunk, score in chunks]
    if all(one.whole <= most for one in sent) and sum(one.whole for one in sent) <= room:
        return tuple(one.all for one in sent)
    while sent and sum(one.least for one in sent) > room:
        sent.pop()
    needs = [(one.least, min(one.whole, max(one.least, most))) for one in sent]
    share = _share(needs, room)
    return tuple(
        one.within(min(whole, max(least, share)), query)
        for one, (least, whole) in zip(sent, needs, strict=True)
    )


def _share(needs: Sequence[tuple[int, int]], room: int) -> int:
    """The largest number of tokens that every chunk can take, given each chunk's minimum and
    size."""

    def used(share: int) -> int:
        return sum(min(whole, max(least, share)) for least, whole in needs)

    most = max((whole for _, whole in needs), default=0)
    return max(bisect_right(range(most + 1), room, key=used) - 1, 0)


class _Sent:
    """A chunk and the forms in which its block can be sent."""

    def __init__(self, chunk: Chunk, score: str, fields: Collection[str]) -> None:
        self.chunk = chunk
        self._full = _lines(chunk, _every(chunk, score), fields)
        self._short = _lines(chunk, {"title": short_title(chunk.title, SHORT_LINE_CHARS)}, fields)
        self.all = _block(self._full, chunk.text, shortened=False)
        self.whole = estimate(self.all.text)

    @cached_property
    def least(self) -> int:
        """The fewest tokens in which it can be sent."""
        return min(self.whole, _cost(self._short) + min(self._text, MIN_TEXT + _MARK))

    @cached_property
    def _text(self) -> int:
        return estimate(self.chunk.text)

    def within(self, tokens: int, query: str) -> Block:
        """The block in at most `tokens` tokens."""
        if self.whole <= tokens:
            return self.all
        lines = self._full
        if tokens - _cost(lines) < tokens // 2:
            lines = self._short
        room = tokens - _cost(lines)
        if room >= self._text:
            return _block(lines, self.chunk.text, shortened=False)
        text = excerpt(query, self.chunk.text, room - _MARK)
        return _block(lines, f"{text} {SHORTENED}", shortened=True)


def _cost(lines: Sequence[str]) -> int:
    return estimate("\n".join([*lines, _END])) + 1


def _block(lines: Sequence[str], text: str, *, shortened: bool) -> Block:
    return Block("\n".join([*lines, defuse(text), _END]), shortened)


def _lines(chunk: Chunk, shown: Mapping[str, str], fields: Collection[str]) -> list[str]:
    named = (f"{name}: {defuse(value)}" for name, value in shown.items() if name in fields)
    return ["<chunk>", f"id: {defuse(' '.join(chunk.id.split()))}", *named, "content:"]


def _every(chunk: Chunk, score: str) -> dict[str, str]:
    refs = ", ".join(chunk.refs[:SHOWN_REFS]) or "none"
    more = f" and {len(chunk.refs) - SHOWN_REFS} more" if len(chunk.refs) > SHOWN_REFS else ""
    return {
        "title": one_line(chunk.title, LINE_CHARS),
        "type": one_line(chunk.type, LINE_CHARS),
        "file": one_line(chunk.source, LINE_CHARS),
        "references": f"{one_line(refs, 4 * LINE_CHARS)}{more}",
        "score": score,
    }


def excerpt(query: str, text: str, tokens: int) -> str:
    """At most `tokens` of `text`: whole sentences and rows, those first that share most words with
    the query, with gaps marked. If not even the best one fits, its beginning."""
    parts = [unit.text for unit in units(text[:MAX_READ])]
    shares = [overlap.share for overlap in overlaps(query, parts)]
    best = sorted(range(len(parts)), key=lambda place: -shares[place])
    costs = [estimate(part) + 2 for part in parts]
    if not best or costs[best[0]] > tokens:
        return head(parts[best[0]] if best else text, max(0, tokens))
    taken: list[int] = []
    for place in best:
        if costs[place] <= tokens:
            taken.append(place)
            tokens -= costs[place]
    pieces: list[str] = []
    expected = 0
    for place in sorted(taken):
        pieces += [parts[place]] if place == expected else [GAP, parts[place]]
        expected = place + 1
    return " ".join(pieces)
