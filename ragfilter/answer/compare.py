"""Compares two answers to one query: what only one context has, and what it costs. Pure, apart from
the embedder that chooses quotes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from ragfilter.answer.context import Context
from ragfilter.answer.extractive import Quote, extract
from ragfilter.answer.stream import Answer, cited
from ragfilter.protocols import Embedder

MAX_ADDED = 2
"""Maximum number of quotes of what only one context has."""
_QUOTED = re.compile(r"\[(\d+)\]$")
_BLOCKS = re.compile(r"\n\s*\n")
_FORMATTED = re.compile(r"^\s*(?:[-*+#>|]|\d+[.)]\s|`{3}|~{3})", re.MULTILINE)
# The end of a sentence, with the citations after it.
_END = re.compile(r"[.!?][\"”’)]*(?:\s*\[[\d,;\s–-]+\])*(?=\s+[^\s\[a-z])")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an answer. `apart`: it rests on a chunk that the other context lacks."""

    text: str
    apart: bool


def pieces(answer: Answer, context: Context, other: Context) -> tuple[Piece, ...]:
    """The answer's text in order: paragraphs, with plain ones split into runs of sentences."""
    theirs = {hit.id for hit in other.chunks}
    lacking = {n for n, hit in enumerate(context.chunks, start=1) if hit.id not in theirs}

    def apart(text: str) -> bool:
        if not answer.extractive:
            return not lacking.isdisjoint(cited(text, len(context.chunks))[0])
        # A quote may itself contain numbers in brackets.
        quoted = _QUOTED.search(text)
        return quoted is not None and int(quoted[1]) in lacking

    return tuple(
        Piece(" ".join(run), is_apart)
        for block in _split(answer.text)
        for is_apart, run in groupby([block] if answer.extractive else _sentences(block), key=apart)
    )


def added(query: str, context: Context, other: Context, embedder: Embedder) -> tuple[Quote, ...]:
    """Quotes nearest to the query from the chunks that `other` lacks, numbered as in `context`.

    Raises ModelError.
    """
    theirs = {hit.id for hit in other.chunks}
    own = [(n, hit) for n, hit in enumerate(context.chunks, start=1) if hit.id not in theirs]
    quotes = extract(query, [hit for _, hit in own], embedder)[:MAX_ADDED]
    return tuple(Quote(own[q.number - 1][0], q.text, q.score, q.is_row) for q in quotes)


def saved(filtered: Answer, unfiltered: Answer) -> str:
    """What the filter saved on an LLM's answer: ``77% cheaper, 1.2 s faster``. Empty if the two
    cannot be compared."""
    if any(a.extractive or a.error or not a.text for a in (filtered, unfiltered)):
        return ""
    savings = []
    if filtered.cost is not None and unfiltered.cost:
        savings.append(_share(filtered.cost, unfiltered.cost, "cheaper", "dearer"))
    else:
        before, after = (a.usage.prompt_tokens + a.usage.completion_tokens
                         for a in (unfiltered, filtered))  # fmt: skip
        if before:
            savings.append(_share(after, before, "fewer tokens", "more tokens"))
    seconds = (unfiltered.ms - filtered.ms) / 1000
    if abs(seconds) >= 0.05:
        savings.append(f"{abs(seconds):.1f} s {'faster' if seconds > 0 else 'slower'}")
    return ", ".join(filter(None, savings))


def _share(after: float, before: float, less: str, more: str) -> str:
    percent = round(100 * (before - after) / before)
    return f"{abs(percent)}% {less if percent > 0 else more}" if percent else ""


def _split(text: str) -> list[str]:
    """The paragraphs. Code may contain empty lines, so a text with a code fence stays whole."""
    whole = "```" in text or "~~~" in text
    return [text] if whole else [block for block in _BLOCKS.split(text) if block.strip()]


def _sentences(block: str) -> Iterator[str]:
    """The sentences of a plain paragraph; a list, table or heading stays whole."""
    start = 0
    if not _FORMATTED.search(block):
        for match in _END.finditer(block):
            yield block[start : match.end()].strip()
            start = match.end()
    if rest := block[start:].strip():
        yield rest
