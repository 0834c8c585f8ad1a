"""A rule before and after, with additions and removals marked by sign and colour."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import ndiff

import streamlit as st

from ragfilter.ui.look import html
from ragfilter.ui.rules import saving

PAGE = 20


def draw_all(changes: Sequence[tuple[str, str | None, str | None]], key: str) -> None:
    """Title, rule before and rule after of every change, one page of them at a time."""
    pages = max(1, -(-len(changes) // PAGE))
    at, of = f"{key}-page", f"{key}-of"
    if st.session_state.get(of) != (now := hash(tuple(changes))):
        st.session_state.update({at: 0, of: now})
    page = min(int(st.session_state.get(at, 0)), pages - 1)
    first, shown = page * PAGE, changes[page * PAGE : (page + 1) * PAGE]
    if pages > 1:
        with st.container(
            key=f"{key}-pager", horizontal=True, vertical_alignment="center", gap="small"
        ):
            html.draw(
                f'<p class="rf-aside">Changes {first + 1:,} to {first + len(shown):,} of '
                f"{len(changes):,}</p>",
                width="content",
            )
            for label, name, to in (
                ("Previous page", "back", page - 1),
                ("Next page", "on", page + 1),
            ):
                st.button(
                    label,
                    key=f"{key}-{name}",
                    type="tertiary",
                    on_click=st.session_state.update,
                    args=({at: to},),
                    disabled=not 0 <= to < pages,
                    help=f"Shows {PAGE} changes per page.",
                )
    for change in shown:
        draw(*change)


def draw(title: str, before: str | None, after: str | None) -> None:
    """The lines of both, under the chunk's title."""
    html.draw(
        f'<div class="rf-diff"><b>{html.text(title)}</b><pre>{lines(before, after)}</pre></div>'
    )


def lines(before: str | None, after: str | None) -> str:
    """The lines as HTML."""
    old, new = saving.shown(before).splitlines(), saving.shown(after).splitlines()
    made = []
    for line in ndiff(old or ["no rule"], new or ["no rule"]):
        sign, text = line[0], line[2:]
        if sign == "?":
            continue
        look = {"+": "rf-in", "-": "rf-out"}.get(sign, "")
        made.append(f'<span class="{look}">{sign} {html.text(text)}</span>')
    return "\n".join(made)
