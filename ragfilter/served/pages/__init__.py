"""The pages, and what they begin with."""

from __future__ import annotations

from streamlit.delta_generator import DeltaGenerator

from ragfilter.ui.kit import controls, help, path, problems, view_as
from ragfilter.ui.look import frame, html
from ragfilter.ui.session import link, state, visit
from ragfilter.ui.session.visit import Visit


def surround(here: Visit, page: str = "", *, steps: bool = True) -> None:
    """Draw what stands around a page: the path and help, whose view it is, the choices in the
    sidebar, and messages."""
    place = path.reserve()
    controls.choose(here, steps=steps)
    lead(here, place, page)
    problems.notices(state.notices())


def lead(here: Visit, place: DeltaGenerator, page: str = "") -> None:
    """Draw the line at the top: the path and help in `place`, and whose view it is."""
    path.draw(here, place, page)
    with place:
        help.draw(here.resources)
    view_as.draw_chip()


def begin(title: str) -> Visit:
    """Draw the heading, the address and the sidebar of a page without a question."""
    frame.dress()
    html.heading(title, level=1)
    here = visit.begin()
    link.share()
    link.show_address()
    surround(here, title.lower())
    controls.draw(here, None)
    return here
