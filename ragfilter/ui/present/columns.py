"""The two answers for an audience: their sources, and what only one of them used."""

from __future__ import annotations

import streamlit as st

from ragfilter.answer.stream import Answer
from ragfilter.text import numbers
from ragfilter.text.titles import short_title
from ragfilter.ui.kit.answer import draw_words
from ragfilter.ui.look import elements, html
from ragfilter.ui.session.answers import AnswerSide
from ragfilter.ui.session.resources import Resources

TITLES = {"filtered": "With the filter", "unfiltered": "Without the filter"}
ABOUT = {
    "filtered": "The passages that the filter lets into the prompt.",
    "unfiltered": "The first passages of the plain search, which would be sent without the filter.",
}
TOKENS = (
    "Tokens are the word pieces that an LLM reads and bills by; this is an estimate of what these "
    "passages take in the prompt."
)
QUOTING = "The sentences closest to the question, quoted. No LLM was asked."
LONGEST = 90


def title(side: AnswerSide) -> None:
    """Draw which side it is, and how much it sends."""
    context = side.context
    n = len(context.chunks)
    # The mark comes after the text and wraps below it if there is no room.
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        html.draw(
            f'<h2 class="rf-side rf-{side.name}"><b>{TITLES[side.name]}</b> '
            f"<span>{numbers.counted(n, 'passage')}, {numbers.tokens(context.tokens)}</span></h2>",
            width="content",
        )
        elements.hint(f"{ABOUT[side.name]} {TOKENS}")


def show(
    query: str, side: AnswerSide, other: AnswerSide, answer: Answer, resources: Resources
) -> None:
    """Draw the answer, then the passages it was made from."""
    draw_words(query, side, other, answer, resources)
    theirs = {hit.id for hit in other.context.chunks}
    items = "".join(
        f"<li{'' if hit.id in theirs else ' class=rf-only'}>"
        f"{html.text(short_title(hit.chunk.name, LONGEST))}</li>"
        for hit in side.context.chunks
    )
    only = sum(hit.id not in theirs for hit in side.context.chunks)
    said = f"Marked: what only this side used, {numbers.counted(only, 'passage')}." if only else ""
    html.draw(
        f'<div class="rf-used rf-used-{side.name}"><p>The passages sent</p><ol>{items}</ol>'
        f"{f'<p>{said}</p>' if said else ''}</div>"
    )
