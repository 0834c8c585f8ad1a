"""Rules: every chunk's `query_must` rule of a collection, written, tried and trusted."""

from __future__ import annotations

from ragfilter.served.pages import surround
from ragfilter.ui.kit import empty, sidebar
from ragfilter.ui.look import frame, html
from ragfilter.ui.session import visit


def draw() -> None:
    frame.dress()
    html.heading("Rules", level=1)
    here = visit.begin()
    # Undo and Redo on this page are about rules.
    surround(here, steps=False)
    sidebar.draw(here, None)
    if here.ready:
        # Loaded with the first visit.
        from ragfilter.ui.rules import page

        page.draw(here)
    else:
        empty.draw(here, None)


if __name__ == "__main__":
    draw()
