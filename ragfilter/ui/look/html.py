"""Small pieces of HTML for which Streamlit has no element. All text from outside is escaped."""

from __future__ import annotations

import re
from html import escape
from typing import Literal

import streamlit as st

from ragfilter.layers.base import Mark
from ragfilter.model import LayerName, Outcome, PoolResult, Pruning
from ragfilter.ui.look import theme


def draw(body: str, *, width: Literal["stretch", "content"] = "stretch") -> None:
    """Add HTML to the page."""
    st.html(body, width=width)


def heading(words: str, *, level: int = 2, name: str = "") -> None:
    """Draw a heading for screen readers only; sighted users can tell from the layout. It is read as
    `name`, if there is one."""
    named = f' aria-label="{text(name)}"' if name else ""
    draw(f'<h{level} class="rf-unseen"{named}>{text(words)}</h{level}>')


def text(value: object) -> str:
    """`value` escaped for use in HTML."""
    return escape(str(value), quote=True)


def prose(words: str) -> str:
    """Our own text, in which `code` is between backticks."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", text(words))


def sign(mark: Mark, name: str) -> str:
    """The sign of an outcome or layer in its colour; `name` is its CSS variable."""
    return f'<span class="rf-sign" style="color:var(--rf-{name})">{mark.sign}</span>'


def outcome_sign(outcome: Outcome, layer: LayerName, setting: str = "") -> str:
    """The sign of a hit's outcome, and of the `setting` that decided."""
    name = f"layer-{layer}" if outcome == "dropped" else outcome
    return sign(theme.mark(outcome, layer, setting), name)


def struck_text(result: PoolResult, chunk_id: str, whole: str) -> str:
    """The text of a chunk with what the prune layer struck, each with what it contributes; empty if
    nothing of it was struck."""
    detail = result.trace("prune").detail
    parts = detail.pieces.get(chunk_id, ()) if isinstance(detail, Pruning) else ()
    if not isinstance(detail, Pruning) or not any(part.struck for part in parts):
        return ""
    shown = []
    for part in parts:
        said = text(whole[part.start : part.end])
        why = f"{part.value:.3f} &lt; {detail.limit:.3f}"
        shown.append(f"<s>{said}</s><small> {why} </small>" if part.struck else said)
    return f'<div class="rf-pruned" data-passage>{"".join(shown)}</div>'
