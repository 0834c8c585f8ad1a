"""Small elements of the page: an aside, what fills an empty place, a row of facts, a question mark
with an explanation, a choice between a few words.

For our own text, in which `code` is between backticks. Text from outside is shown literally.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import streamlit as st

from ragfilter.ui.look import html
from ragfilter.ui.look.prose import message

Fact = tuple[str, str, str]
"""A label, its value, and a smaller note next to it."""


def aside(words: str, *, width: Literal["stretch", "content"] = "stretch") -> None:
    """Draw a side note."""
    # Streamlit's caption is too faint to be read by everybody.
    html.draw(f'<p class="rf-aside">{html.prose(words)}</p>', width=width)


def heading(words: str) -> None:
    """Draw a heading for a part of the page."""
    st.header(words, anchor=False)


def empty(head: str, remedy: str = "") -> None:
    """Draw what is missing, and what would provide it."""
    st.markdown(f"**{message(head)}** {message(remedy)}")


def facts(label: str, rows: Iterable[Fact]) -> None:
    """Draw a row of facts; `label` is its name for screen readers."""
    body = "".join(
        f'<div class="rf-fact"><span>{html.text(name)}</span><b>{html.text(value)} '
        f"<i>{html.text(more)}</i></b></div>"
        for name, value, more in rows
    )
    html.draw(f'<section class="rf-strip" aria-label="{html.text(label)}">{body}</section>')


def hint(text: str) -> None:
    """Explain the control before it. With a hidden label, Streamlit hides the label's help too."""
    st.markdown("", help=text, width="content")


def choice(
    label: str,
    options: Iterable[str],
    about: str = "",
    *,
    key: str,
    default: str,
) -> str:
    """Draw a choice that is kept as long as the session, and `about` at a question mark beside it.
    Returns what is chosen."""
    chosen = st.segmented_control(
        label, list(options), key=key, default=default, required=True, persist_state="session",
        label_visibility="collapsed",
    )  # fmt: skip
    if about:
        hint(about)
    return chosen
