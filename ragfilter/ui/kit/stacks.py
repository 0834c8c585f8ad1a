"""Before and after as two stacks of titled chunks, row by row: what stays, and what falls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress

import streamlit as st

from ragfilter.answer.context import fits
from ragfilter.engine.replay import unfiltered
from ragfilter.model import Hit, LayerName, Outcome, PoolResult
from ragfilter.report.summary import Story
from ragfilter.text import numbers
from ragfilter.text.titles import telling_titles
from ragfilter.ui.look import html

MAX_ROWS = 15
"""Rows that are drawn. Those of chunks that stay go first, if there are more."""
TITLE_WIDTH = 42


@dataclass(frozen=True, slots=True)
class StackRow:
    """A chunk of a stack, what became of it at which layer by which setting, and why in words;
    `alone` if the other stack lacks it. `number` is that of its citations, 0 for none."""

    chunk_id: str
    title: str
    outcome: Outcome = "kept"
    layer: LayerName = "top_k"
    why: str = ""
    setting: str = ""
    alone: bool = False
    number: int = 0


@dataclass(frozen=True, slots=True)
class Stack:
    """One side. An entry is None where only the other stack has a chunk."""

    label: str
    entries: tuple[StackRow | None, ...]

    @property
    def count(self) -> int:
        """How many chunks it has."""
        return sum(entry is not None for entry in self.entries)


def before_and_after(result: PoolResult, story: Story) -> tuple[Stack, Stack]:
    """What a plain search would send, and what passes the filter."""
    kept = {hit.id: hit for hit in result.kept}
    plain = unfiltered(result.pool, result.settings, result.user)
    fell = {i: fall for fall in story.drops_from_unfiltered for i in fall.ids}
    deciding = result.outcomes()

    def entry(hit: Hit, numbers: Mapping[str, int]) -> StackRow:
        n, fall = numbers.get(hit.id, 0), fell.get(hit.id)
        if fall is not None:
            why = fall.words
            return StackRow(
                hit.id, hit.chunk.name, "dropped", fall.layer, why, fall.setting, number=n
            )
        outcome = deciding[hit.id].outcome if hit.id in deciding else "kept"
        return StackRow(hit.id, hit.chunk.name, outcome, why="passes the filter", number=n)

    first = {hit.id for hit in plain}
    beyond = [hit for hit in result.kept if hit.id not in first]
    cited, most = numbered(result.kept), result.settings.context.max_context_tokens
    fitting = numbered(compress(plain, fits(plain, most)[0]))
    before = (*(entry(hit, fitting) for hit in plain), *(None for _ in beyond))
    after = (*(entry(hit, cited) if hit.id in kept else None for hit in plain),
             *(entry(hit, cited) for hit in beyond))  # fmt: skip
    return Stack("Before: plain search, nearest first", before), Stack("After: filtered", after)


def numbered(hits: Iterable[Hit]) -> dict[str, int]:
    """The number by which an answer cites each hit of a context."""
    return {hit.id: n for n, hit in enumerate(hits, start=1)}


def draw(
    stacks: Sequence[Stack], among: PoolResult, *, key: str = "stacks",
    on_open: Callable[[str], None] | None = None,
) -> None:  # fmt: skip
    """Draw the stacks side by side. A title keeps what tells it from all hits it is `among`.
    `on_open` gets the id of a chunk that was chosen."""
    shown = _shown(stacks)
    rows = [[stack.entries[row] for row in shown] for stack in stacks]
    stacked = (each.title for entries in rows for each in entries if each)
    titles = list(dict.fromkeys([*stacked, *(hit.chunk.name for hit in among.hits)]))
    short = dict(zip(titles, telling_titles(titles, TITLE_WIDTH), strict=True))
    drawn = "".join(
        _drawn(stack, entries, short, opens=on_open is not None)
        for stack, entries in zip(stacks, rows, strict=True)
    )
    html.draw(f'<div class="rf-stacks">{drawn}</div>')
    if on_open is not None:
        opened = partial(_opened, key, on_open)
        html.mount("kit/stacks.js", key=key, on_opened_change=opened, height=0)


def _opened(key: str, on_open: Callable[[str], None]) -> None:
    chosen = st.session_state[key].opened
    if chosen:
        on_open(chosen)


def _shown(stacks: Sequence[Stack]) -> list[int]:
    """The rows that are drawn: all, or those that stay and the first others."""
    count = len(stacks[0].entries)
    if count <= MAX_ROWS + 1:
        return list(range(count))
    # The last stack has what stays.
    ranked = sorted(range(count), key=lambda row: stacks[-1].entries[row] is None)
    return sorted(ranked[:MAX_ROWS])


def _drawn(
    stack: Stack, entries: Sequence[StackRow | None], short: Mapping[str, str], *, opens: bool
) -> str:
    rows = "".join(_row(entry, short, opens=opens) for entry in entries)
    more = stack.count - sum(entry is not None for entry in entries)
    count, label = numbers.count(stack.count), html.text(stack.label)
    name = f'aria-label="{label}: {numbers.chunks(stack.count)}"'
    role = f'role="listbox" tabindex="0" {name}' if opens else name
    rest = f'<p class="rf-rest">{numbers.count(more)} more</p>' if more else ""
    return (
        f'<section class="rf-stack"><p class="rf-stack-head">{label}<b>{count}</b></p>'
        f"<ul {role}>{rows}</ul>{rest}</section>"
    )


def _row(entry: StackRow | None, short: Mapping[str, str], *, opens: bool) -> str:
    if entry is None:
        return '<li class="rf-slot" aria-hidden="true"></li>'
    title = html.text(entry.title)
    role = f'role="option" aria-selected="false" data-id="{html.text(entry.chunk_id)}"'
    style = "rf-fallen" if entry.outcome == "dropped" else "rf-alone" if entry.alone else ""
    tip = f'title="{title}: {html.text(entry.why)}"'
    number = f"<i>[{entry.number}]</i>" if entry.number else ""
    return (
        f'<li data-passage class="{style}" {tip} {role if opens else ""}>{number}'
        f"{html.outcome_sign(entry.outcome, entry.layer, entry.setting)}"
        f"{html.text(short[entry.title])}</li>"
    )
