"""Decides what each chunk sends to the judge, so that as many as possible fit into its prompt.
Pure.

Source: docs/design.md#judge. The decisions:

- If not everything fits, all chunks get the same maximum number of tokens, the highest with which
  they fit. Short chunks stay whole.
- A shortened chunk keeps the sentences and rows with the query's rarest words, in their order. If
  these words do not tell its sentences apart, it keeps its beginning. It loses lines of its head
  before too little of its text is left to judge. Its id is never cut: the judge has to repeat it.
- Only if not even that fits, chunks are left out, from the end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import log
from typing import NamedTuple

from ragfilter.answer.context import SHORTENED, defuse, estimate, head, one_line
from ragfilter.answer.extractive import units
from ragfilter.model import Chunk
from ragfilter.text.normalise import normalise

SHOWN_REFS = 20
LINE_CHARS = 200
SHORT_LINE_CHARS = 40
MIN_TEXT = 8
"""Minimum number of tokens of its text that a chunk sends."""
MAX_READ = 8000
"""Characters of a text in which its distinctive parts are looked for."""

_WORD = re.compile(r"\w+")
_GAP = "…"
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
    words = _rare_words(query, [one.chunk for one in sent])
    return tuple(
        one.within(min(whole, max(least, share)), words)
        for one, (least, whole) in zip(sent, needs, strict=True)
    )


def _share(needs: Sequence[tuple[int, int]], room: int) -> int:
    """The largest number of tokens that every chunk can take, given each chunk's minimum and
    size."""
    low, high = 0, max((whole for _, whole in needs), default=0)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(whole, max(least, middle)) for least, whole in needs) <= room:
            low = middle
        else:
            high = middle - 1
    return low


class _Sent:
    """A chunk and the forms in which its block can be sent."""

    def __init__(self, chunk: Chunk, score: str, fields: Collection[str]) -> None:
        self.chunk = chunk
        self._score = score
        self._fields = fields
        self.all = _block(_lines(chunk, _every(chunk, score), fields), chunk.text, shortened=False)
        self.whole = estimate(self.all.text)

    @cached_property
    def _heads(self) -> tuple[tuple[list[str], int], ...]:
        """The lines before its text, with their tokens: all of them, then fewer and shorter
        ones."""
        forms = _every(self.chunk, self._score), *_fewer(self.chunk)
        heads = [_lines(self.chunk, shown, self._fields) for shown in forms]
        return tuple((lines, estimate("\n".join([*lines, _END])) + 1) for lines in heads)

    @cached_property
    def _text(self) -> int:
        return estimate(self.chunk.text)

    @cached_property
    def least(self) -> int:
        """The fewest tokens in which it can be sent."""
        return min(self.whole, self._heads[-1][1] + min(self._text, MIN_TEXT + _MARK))

    def within(self, tokens: int, words: Mapping[str, float]) -> Block:
        """The block in at most `tokens` tokens."""
        if self.whole <= tokens:
            return self.all
        for lines, cost in self._heads:
            room = tokens - cost
            if room >= self._text:
                return _block(lines, self.chunk.text, shortened=False)
            if room >= tokens // 2:
                break
        text = excerpt(self.chunk.text, room - _MARK, words)
        return _block(lines, f"{text} {SHORTENED}", shortened=True)


def _block(lines: Sequence[str], text: str, *, shortened: bool) -> Block:
    return Block("\n".join([*lines, defuse(text), _END]), shortened)


def _lines(chunk: Chunk, shown: Mapping[str, str], fields: Collection[str]) -> list[str]:
    named = (f"{name}: {value}" for name, value in shown.items() if name in fields)
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


def _fewer(chunk: Chunk) -> tuple[dict[str, str], dict[str, str]]:
    title, refs = one_line(chunk.title, LINE_CHARS), {}
    if chunk.refs:
        refs = {"references": str(len(chunk.refs))}
    return {"title": title} | refs, {"title": _end_of(title)} | refs


def _end_of(title: str) -> str:
    """The distinctive part of a title is at its end: the armor class, not the book."""
    if len(title) <= SHORT_LINE_CHARS:
        return title
    end = title[-SHORT_LINE_CHARS:]
    return f"{_GAP} {end.partition(' ')[2] or end}"


def excerpt(text: str, tokens: int, words: Mapping[str, float]) -> str:
    """At most `tokens` of `text`: whole sentences and rows, chosen by the value of their `words`,
    with gaps marked. If not even the best one fits, its beginning."""
    parts = _parts(text)
    best = sorted(
        range(len(parts)),
        key=lambda place: -sum(words.get(word, 0.0) for word in parts[place].words),
    )
    if not best or parts[best[0]].tokens > tokens:
        return head(parts[best[0]].text if best else text, max(0, tokens))
    taken: list[int] = []
    for place in best:
        if parts[place].tokens <= tokens:
            taken.append(place)
            tokens -= parts[place].tokens
    pieces: list[str] = []
    expected = 0
    for place in sorted(taken):
        pieces += [parts[place].text] if place == expected else [_GAP, parts[place].text]
        expected = place + 1
    return " ".join(pieces)


class _Part(NamedTuple):
    """A sentence or row, its words, and its tokens including a gap mark before it."""

    text: str
    words: frozenset[str]
    tokens: int


@lru_cache(maxsize=1024)
def _parts(text: str) -> tuple[_Part, ...]:
    texts = (unit.text for unit in units(text[:MAX_READ]))
    return tuple(_Part(part, _words(part), estimate(part) + 2) for part in texts)


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(normalise(text)))


def _rare_words(query: str, chunks: Sequence[Chunk]) -> dict[str, float]:
    """The query's words that occur in any of the chunks; rarer words have a higher value."""
    asked = _words(query)
    held: Counter[str] = Counter()
    for chunk in chunks:
        held.update(asked.intersection(word for part in _parts(chunk.text) for word in part.words))
    return {word: log(1 + len(chunks) / n) for word, n in held.items()}
