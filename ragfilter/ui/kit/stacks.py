"""Stacks of titled chunks side by side, row by row, such as before and after the filter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress

import streamlit as st

from ragfilter.answer.context_packing import fits
from ragfilter.engine.pool import unfiltered
from ragfilter.model import Hit, Outcome, PoolResult
from ragfilter.results.rows import rows
from ragfilter.results.summary import DropGroup
from ragfilter.text import numbers
from ragfilter.text.titles import telling_titles
from ragfilter.ui.kit.answer_making import citation_numbers
from ragfilter.ui.kit.guide import TERMS
from ragfilter.ui.look import elements

MAX_ROWS = 15
"""How many rows are drawn. If there are more, kept chunks take precedence."""
TITLE_WIDTH = 42


@dataclass(frozen=True, slots=True)
class StackRow:
    """A chunk of a stack: its outcome, the layer and setting that decided, and why in words. It is
    `alone` if the other stack lacks it. Both answers cite it by its `number`, 0 for none."""

    chunk_id: str
    title: str
    outcome: Outcome = "kept"
    layer: str = "top_k"
    why: str = ""
    setting: str = ""
    alone: bool = False
    number: int = 0


@dataclass(frozen=True, slots=True)
class Stack:
    """One side. An entry is None if only the other stack has a chunk there."""

    label: str
    entries: tuple[StackRow | None, ...]

    @property
    def count(self) -> int:
        """How many chunks it has."""
        return sum(entry is not None for entry in self.entries)


def before_and_after(result: PoolResult, drops: Sequence[DropGroup]) -> tuple[Stack, Stack]:
    """The chunks that a plain search would send, with `drops` marked, and the kept ones."""
    kept = {hit.id for hit in result.kept}
    plain = unfiltered(result.pool, result.settings, result.user)
    drop_by_id = {chunk_id: drop for drop in drops for chunk_id in drop.ids}
    outcomes = {row.id: row.outcome for row in rows(result)}

    def row(hit: Hit) -> StackRow:
        entry = StackRow(hit.id, hit.chunk.name, why="found by plain search", number=cited.get(hit.id, 0))
        if drop := drop_by_id.get(hit.id):
            return replace(entry, outcome="dropped", layer=drop.layer, why=drop.words, setting=drop.setting)
        if hit.id in kept:
            why = f"pinned. {TERMS['pin']}" if outcomes[hit.id] == "pinned" else "passes the filter"
            return replace(entry, outcome=outcomes[hit.id], why=why)
        return entry

    plain_ids = {hit.id for hit in plain}
    beyond = [hit for hit in result.kept if hit.id not in plain_ids]
    fitting = fits(plain, result.settings.context.max_context_tokens)[0]
    cited = citation_numbers(result.kept, [*compress(plain, fitting)])
    before = (*map(row, plain), *(None for _ in beyond))
    after = (*(row(hit) if hit.id in kept else None for hit in plain), *map(row, beyond))
    return Stack("Before: plain search", before), Stack("After: filtered", after)


def draw_stacks(
    stacks: Sequence[Stack], among: PoolResult, *, key: str = "stacks", on_open: Callable[[str], None] | None = None
) -> None:
    """Draw the stacks side by side. Shortened titles stay distinct from all hits in `among`.
    `on_open` gets the id of the chosen chunk."""
    # The last stack has the kept chunks.
    ranked = sorted(range(len(stacks[0].entries)), key=lambda n: stacks[-1].entries[n] is None)
    visible = sorted(ranked if len(ranked) <= MAX_ROWS + 1 else ranked[:MAX_ROWS])
    shown = [[stack.entries[n] for n in visible] for stack in stacks]
    stacked = (row.title for entries in shown for row in entries if row)
    titles = list(dict.fromkeys([*stacked, *(hit.chunk.name for hit in among.hits)]))
    short = dict(zip(titles, telling_titles(titles, TITLE_WIDTH), strict=True))
    opens = on_open is not None
    drawn = (_stack(stack, entries, short, opens=opens) for stack, entries in zip(stacks, shown, strict=True))
    elements.draw(f'<div class="rf-stacks">{"".join(drawn)}</div>')
    if on_open is not None:
        elements.mount("kit/stacks.js", key=key, on_opened_change=partial(_open, key, on_open), height=0)


def _open(key: str, on_open: Callable[[str], None]) -> None:
    if chunk_id := st.session_state[key].opened:
        on_open(chunk_id)


def _stack(stack: Stack, entries: Sequence[StackRow | None], short: Mapping[str, str], *, opens: bool) -> str:
    more = stack.count - sum(entry is not None for entry in entries)
    label = elements.text(stack.label)
    role = f'aria-label="{label}: {numbers.chunk_count(stack.count)}"'
    if opens:
        role = f'role="listbox" tabindex="0" {role}'
    rest = f'<p class="rf-rest">{numbers.count(more)} more</p>' if more else ""
    return (
        f'<section class="rf-stack"><p class="rf-stack-head">{label}<b>{numbers.count(stack.count)}</b></p>'
        f"<ul {role}>{''.join(_row(entry, short, opens=opens) for entry in entries)}</ul>{rest}</section>"
    )


def _row(entry: StackRow | None, short: Mapping[str, str], *, opens: bool) -> str:
    if entry is None:
        return '<li class="rf-slot" aria-hidden="true"></li>'
    role = f'role="option" aria-selected="false" data-id="{elements.text(entry.chunk_id)}"' if opens else ""
    style = "rf-fallen" if entry.outcome == "dropped" else "rf-alone" if entry.alone else ""
    number = f"<i>[{entry.number}]</i>" if entry.number else ""
    sign = elements.outcome_sign(entry.outcome, entry.layer, entry.setting)
    return (
        f'<li data-passage class="{style}" title="{elements.text(f"{entry.title}: {entry.why}")}" {role}>'
        f"{number}{sign}{elements.text(short[entry.title])}</li>"
    )
