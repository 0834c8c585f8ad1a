"""An answer that marks what rests on chunks missing from the other context."""

from __future__ import annotations

import streamlit as st

from ragfilter.answer import compare
from ragfilter.answer.compare import Piece
from ragfilter.answer.extractive import Quote
from ragfilter.answer.stream import Answer
from ragfilter.ui.look import prose, say
from ragfilter.ui.session.answers import AnswerSide

MOST = 40
"""Maximum number of pieces drawn one by one; a longer answer is drawn as a whole."""


def draw(answer: Answer, side: AnswerSide, other: AnswerSide, name: str = "text") -> None:
    """Draw the answer's text; `name` keeps its key apart from other answers of the same side."""
    cut = compare.pieces(answer, side.context, other.context)
    if len(cut) > MOST:
        cut = (Piece(answer.text, False),)
    make = prose.quoted if answer.extractive else prose.written
    for number, piece in enumerate(cut):
        _piece(make(piece.text), f"{side.name}-{name}-{number}", apart=piece.apart)


def draw_added(quotes: tuple[Quote, ...], side: AnswerSide, answer: Answer) -> tuple[int, ...]:
    """Draw what this context adds to the other one and the answer does not quote yet. Returns the
    numbers of its chunks."""
    new = [q for q in quotes if q.text not in answer.text]
    if not new:
        return ()
    say.aside("Also in this context, and not in the other:")
    for number, quote in enumerate(new):
        said = prose.quoted(f"{quote.text} [{quote.number}]")
        _piece(said, f"{side.name}-added-{number}", apart=True)
    return tuple(quote.number for quote in new)


def _piece(markdown: str, key: str, *, apart: bool) -> None:
    with st.container(key=f"{'apart' if apart else 'piece'}-{key}"):
        st.markdown(markdown)
