"""Sentences on the page: an aside, what fills an empty place, a row of facts.

Words of ours, in which `code` stands between backticks; what came from outside is shown to the
letter.
"""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from ragfilter.ui.look import html
from ragfilter.ui.look.prose import message

Fact = tuple[str, str, str]
"""A label, its value, and a smaller note beside it."""


def aside(words: str) -> None:
    """A side note."""
    st.caption(message(words))


def heading(words: str) -> None:
    """The heading of a part of the page."""
    st.header(words, anchor=False)


def empty(head: str, remedy: str = "") -> None:
    """What an empty place lacks, and what would fill it."""
    st.markdown(f"**{message(head)}** {message(remedy)}")


def facts(label: str, found: Iterable[Fact]) -> None:
    """A strip of facts, called `label` for those who have the page read to them."""
    body = "".join(
        f'<div class="rf-fact"><span>{html.text(name)}</span><b>{html.text(value)} '
        f"<i>{html.text(more)}</i></b></div>"
        for name, value, more in found
    )
    html.draw(f'<section class="rf-strip" aria-label="{html.text(label)}">{body}</section>')
