"""The open chunk of the Rules page: its text, its rule, and buttons for the next one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from ragfilter.model import Chunk
from ragfilter.rules.overview import Listing
from ragfilter.ui.kit.rule_editor import desk, editor, effect
from ragfilter.ui.kit.rule_editor.desk import OPEN, Desk
from ragfilter.ui.look import elements, html

TEXT_HEIGHT = 150


def draw(work: Desk, rows: Listing, ids: Sequence[str]) -> None:
    """Draw the editor of the open chunk; `ids` are the chunks of the table in order."""
    chunk = work.chunk(st.session_state.get(OPEN))
    place = ids.index(chunk.id) if chunk is not None and chunk.id in ids else None
    with st.container(key="rules-panel", border=True, gap="small"):
        _steps(place, ids)
        if chunk is None:
            elements.empty(
                "No chunk is open.", "Click a row, or press Next to begin with the first."
            )
            return
        _head(chunk)
        shared = [rows.shared[chunk.id]] if chunk.id in rows.shared else []
        preview, guard = partial(effect.preview, work, chunk), partial(effect.guard, work)
        here = editor.Editing(
            chunk, work.collection, work.version, work.user, work.resources, preview, guard, shared
        )
        editor.draw(here, both=True)
        effect.wait(work)


def _steps(place: int | None, ids: Sequence[str]) -> None:
    here = -1 if place is None else place
    with st.container(key="rules-steps", horizontal=True, vertical_alignment="center", gap="small"):
        for label, key, to, shortcut in (
            ("Previous", "rules-back", here - 1, "Alt+Up"),
            ("Next", "rules-next", here + 1, "Alt+Down"),
        ):
            st.button(
                label,
                key=key,
                on_click=_go,
                args=(to, ids[to] if 0 <= to < len(ids) else ""),
                disabled=not 0 <= to < len(ids),
                shortcut=shortcut,
                help="Opens the next row of the table. A draft stays where it is."
                if to > here
                else "Opens the row before.",
            )
        if place is not None:
            elements.aside(f"{place + 1:,} of {len(ids):,}", width="content")


def _go(place: int, chunk_id: str) -> None:
    """Open a chunk, and show the page of the table with its row, counted from 0."""
    desk.open_(chunk_id)
    st.session_state[desk.PAGE_AT] = place // desk.PAGE + 1


def _head(chunk: Chunk) -> None:
    facts = (chunk.id, chunk.type, chunk.source, f"page {chunk.page}" if chunk.page else "")
    listed = "".join(f"<span>{html.text(fact)}</span>" for fact in facts if fact)
    html.draw(
        f'<div class="rf-chunk"><h3>{html.text(chunk.name)}</h3>'
        f'<p class="rf-facts">{listed}</p></div>'
    )
    with st.container(key="chunk-text", height=TEXT_HEIGHT):
        st.text(chunk.text or "This chunk has no text.")
