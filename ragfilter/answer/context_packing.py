"""Packs the kept chunks into the prompt: numbered, delimited, within a token budget.

Source: docs/design.md#context. Design:

- If a chunk does not fit, it is left out and the next one is tried, so that one long chunk does not exclude everything
  after it. Order and numbers follow the ranking.
- The first chunk is always included. If it alone exceeds the budget, it is shortened and marked, and nothing else fits.
  So the best hit is never lost to its length, and a prompt is never empty.
- Each chunk stands between ``<chunk n>`` and ``</chunk n>``, and its text cannot break out: the ``<`` of a delimiter in
  it becomes ``(``.
- Spans that the prune layer struck are left out of the block, with a mark in their place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import compress, pairwise

from ragfilter.model import Chunk, Hit
from ragfilter.settings.schema import Settings
from ragfilter.text.shared_words import estimate_tokens, first_tokens

Span = tuple[int, int]
"""The start and end of a struck part of a text."""
GAP = "…"  # marks omissions in the context


def kept_runs(text: str, struck: tuple[Span, ...]) -> tuple[str, ...]:
    """The parts of a text between its struck spans, which are in order."""
    edges = [0, *(edge for span in struck for edge in span), len(text)]
    runs = (text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True))
    return tuple(run for run in runs if run.strip()) if struck else (text,)


def without(text: str, struck: tuple[Span, ...]) -> str:
    """Replace each struck span of a text with a mark."""
    if not struck:
        return text
    runs = [run if run[-1].isspace() else f"{run} " for run in kept_runs(text, struck)]
    begins = f"{GAP} " if struck[0][0] == 0 else ""
    ends = GAP if struck[-1][1] == len(text) else ""
    return f"{begins}{f'{GAP} '.join(runs)}{ends}".rstrip()


FRAME_TOKENS = 24  # at most, for the numbers, delimiters and field names of one block
TITLE_CHARS = 300
SOURCE_CHARS = 200
SHORTENED = "[shortened]"

# A model reads a delimiter even with white space or invisible characters between its parts.
_GAP = r"[\s\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff]*+"
_DELIMITER = re.compile(rf"<(?={_GAP}/?{_GAP}chunk)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Context:
    """The packed context. Block ``[n]`` of `text` is ``chunks[n - 1]``. `tokens` is the estimate for all blocks, at
    most the budget. `shortened`: the first chunk's text was cut."""

    chunks: tuple[Hit, ...] = field(repr=False)
    left_out: tuple[Hit, ...] = field(repr=False)
    text: str = field(repr=False)
    tokens: int
    shortened: bool = False


def pack(hits: Sequence[Hit], settings: Settings, *, reorder: bool = False) -> Context:
    """Pack the hits that fit into `max_context_tokens`, in order; with `reorder`, as 1, 3, 5 … 6, 4, 2 in the text."""
    budget = settings.context.max_context_tokens
    fitting, tokens = fits(hits, budget)
    kept = tuple(compress(hits, fitting))
    left_out = tuple(hit for hit, fit in zip(hits, fitting, strict=True) if not fit)
    shortened = bool(kept) and block_tokens_in_prompt(kept[0]) > budget
    limit = budget if shortened else None
    blocks = [_block(number, hit.chunk, prompt_text(hit), limit) for number, hit in enumerate(kept, start=1)]
    if reorder:
        blocks = blocks[::2] + blocks[1::2][::-1]
    return Context(kept, left_out, "\n".join(blocks), tokens, shortened)


def fits(hits: Sequence[Hit], max_tokens: int) -> tuple[list[bool], int]:
    """Whether each hit fits, and the estimated tokens of all that do. Builds no text."""
    used = fill(map(block_tokens_in_prompt, hits), max_tokens)
    return [now > before for before, now in pairwise((0, *used))], used[-1] if used else 0


def fill(sizes: Iterable[int], max_tokens: int) -> list[int]:
    """The tokens used after each chunk in turn. A chunk that no longer fits adds none; the first is shortened."""
    used, filled = 0, []
    for place, takes in enumerate(sizes):
        takes = takes if place else min(takes, max_tokens)
        used += takes if used + takes <= max_tokens else 0
        filled.append(used)
    return filled


def defuse(text: str) -> str:
    """Change `text` so that nothing in it can open or close a block. Keeps its length in bytes."""
    return _DELIMITER.sub("(", text) if "<" in text else text


def one_line(text: str, limit: int) -> str:
    """Put `text` on one line of at most `limit` characters, and defuse it."""
    line = defuse(" ".join(text[: 4 * limit].split()))
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def block_tokens(chunk: Chunk) -> int:
    """The estimated tokens of a chunk's whole block."""
    return _estimated(chunk.title, chunk.source, chunk.text)


def block_tokens_in_prompt(hit: Hit) -> int:
    """The estimated tokens of a hit's block, without the struck spans."""
    return _estimated(hit.chunk.title, hit.chunk.source, prompt_text(hit))


def prompt_text(hit: Hit) -> str:
    """The text of a hit that goes into the prompt."""
    return without(hit.chunk.text, hit.struck)


@lru_cache(maxsize=4096)
def _estimated(title: str, source: str, text: str) -> int:
    heading_tokens = estimate_tokens(title[: 4 * TITLE_CHARS]) + estimate_tokens(source[: 4 * SOURCE_CHARS])
    return FRAME_TOKENS + heading_tokens + estimate_tokens(text)


def _block(number: int, chunk: Chunk, text: str, budget: int | None) -> str:
    """One numbered block, shortened to the `budget` if there is one."""
    page = "" if chunk.page is None else f", page {chunk.page}"
    lines = [f"Title: {one_line(chunk.title, TITLE_CHARS)}"] if chunk.title else []
    lines += [f"Source: {one_line(chunk.source, SOURCE_CHARS)}{page}"] if chunk.source else []
    if budget is not None:
        room = budget - FRAME_TOKENS - sum(estimate_tokens(line) for line in lines)
        if room < budget // 3:
            # A title as long as the budget would leave no room for the text with the answer.
            lines, room = [], budget - FRAME_TOKENS
        text = f"{first_tokens(text, room - estimate_tokens(SHORTENED))} {SHORTENED}"
    return "\n".join((f"<chunk {number}>", *lines, defuse(text), f"</chunk {number}>"))
