"""Small changes that would keep or drop a chunk, each as a button."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from ragfilter.engine.whatif import changes, stays, wording
from ragfilter.model import Hit
from ragfilter.text import numbers
from ragfilter.text.titles import short_title
from ragfilter.ui.look import html
from ragfilter.ui.look.prose import literal
from ragfilter.ui.session import state
from ragfilter.ui.session.visit import View

NAMED = 3
"""How many of the chunks that also change are named."""
TITLE_WIDTH = 44


def draw(view: View, hit: Hit) -> None:
    """Draw the changes that would reverse the chunk's outcome, with their side effects."""
    result = view.result
    kept = any(each.id == hit.id for each in result.kept)
    words = "would drop it" if kept else "would bring it back"
    found = changes(result, hit.id)
    asked = None if kept else wording(result, hit.id)
    if not found and asked is None:
        html.draw(
            f'<p class="rf-empty"><b>No single change {words}.</b> '
            f"{html.text(stays(result, hit.id))}</p>"
        )
        return
    html.draw(f'<p class="rf-say">The smallest changes that {words}:</p>')
    titles = {each.id: each.chunk.name for each in result.hits}
    for n, change in enumerate(found):
        st.button(
            literal(change.words),
            key=f"whatif-{n}",
            icon=":material/tune:",
            on_click=state.change,
            args=({change.path: change.new},),
            help="Changes this setting. Undo reverts it.",
        )
        _along(change.came, change.went, titles)
    if asked is not None:
        st.button(
            literal(f"Ask with: {', '.join(asked.terms)}"),
            key="whatif-ask",
            icon=":material/search:",
            on_click=state.ask,
            args=(asked.question,),
            help="Its rule requires these words. Asks again with the words added to the question.",
        )
        _along(asked.came, asked.went, titles)


def _along(came: Sequence[str], went: Sequence[str], titles: dict[str, str]) -> None:
    """Which other chunks the change would add or remove."""
    parts = [
        f"{numbers.chunks(len(ids))} {verb}: {_named(ids, titles)}"
        for ids, verb in ((came, "would come along"), (went, "would go"))
        if ids
    ]
    said = ". ".join(parts) or "Nothing else would change"
    html.draw(f'<p class="rf-aside">{html.text(said)}.</p>')


def _named(ids: Sequence[str], titles: dict[str, str]) -> str:
    named = ", ".join(short_title(titles.get(i, i), TITLE_WIDTH) for i in ids[:NAMED])
    return f"{named} and {len(ids) - NAMED} more" if len(ids) > NAMED else named
