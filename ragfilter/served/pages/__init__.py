"""The pages, and what those about labelled questions begin with."""

from __future__ import annotations

from ragfilter.ui.kit import controls, problems
from ragfilter.ui.look import frame, html
from ragfilter.ui.session import link, state, visit
from ragfilter.ui.session.visit import Visit


def begin(title: str) -> Visit:
    """Draw the heading, the address and the sidebar of a page without a question."""
    frame.dress()
    html.heading(title, level=1)
    here = visit.begin()
    link.share()
    link.show_address()
    controls.choose(here)
    problems.notices(state.notices())
    controls.draw(here, None)
    return here
