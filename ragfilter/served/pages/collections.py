"""Collections: your own data in, looked after, and out again."""

from __future__ import annotations

from ragfilter.ui.collections import page
from ragfilter.ui.kit import problems, view_as
from ragfilter.ui.look import frame, html
from ragfilter.ui.session import state, visit


def draw() -> None:
    frame.dress()
    html.heading("Collections", level=1)
    here = visit.begin(anew=True)
    view_as.draw_chip()
    problems.notices(state.notices())
    page.draw(here)


if __name__ == "__main__":
    draw()
