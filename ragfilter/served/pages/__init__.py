"""The pages, and what they begin with."""

from __future__ import annotations

from ragfilter.ui.kit import help, problems, sidebar, view_as, workflow
from ragfilter.ui.look import frame, html
from ragfilter.ui.session import link, state, visit
from ragfilter.ui.session.visit import Visit


def surround(here: Visit, page: str = "", *, steps: bool = True) -> None:
    """Draw what stands around a page: the path and help, whose view it is, the choices in the
    sidebar, and messages."""
    place = workflow.reserve()
    sidebar.choose(here, steps=steps)
    workflow.draw(here, place, page)
    with place:
        help.draw(here.resources)
    view_as.draw_chip()
    problems.notices(state.notices())


def begin(title: str, *, anew: bool = False) -> Visit:
    """Draw the heading, the address and the sidebar of a page without a question; with `anew`, list
    the collections again."""
    frame.dress()
    html.heading(title, level=1)
    here = visit.begin(anew=anew)
    link.share()
    link.show_address()
    surround(here, title.lower())
    sidebar.draw(here, None)
    return here
