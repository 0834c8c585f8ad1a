"""The pages, and what they begin with."""

from __future__ import annotations

from ragfilter.ui.kit import controls, problems, view_as
from ragfilter.ui.look import frame, html
from ragfilter.ui.session import link, state, visit
from ragfilter.ui.session.visit import Visit


def surround(here: Visit, *, steps: bool = True) -> None:
    """Draw what stands around a page: the top line, the choices in the sidebar, and messages."""
    view_as.draw_chip()
    controls.choose(here, steps=steps)
    problems.notices(state.notices())


def begin(title: str) -> Visit:
    """Draw the heading, the address and the sidebar of a page without a question."""
    frame.dress()
    html.heading(title, level=1)
    here = visit.begin()
    link.share()
    link.show_address()
    surround(here)
    controls.draw(here, None)
    return here
