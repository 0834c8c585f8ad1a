"""Collections: your own data in, looked after, and out again."""

from __future__ import annotations

from ragfilter.served.pages import lead
from ragfilter.ui.collections import page
from ragfilter.ui.kit import path, problems
from ragfilter.ui.look import frame, html
from ragfilter.ui.session import state, visit


def draw() -> None:
    frame.dress()
    html.heading("Collections", level=1)
    here = visit.begin(anew=True)
    lead(here, path.reserve())
    problems.notices(state.notices())
    page.draw(here)


if __name__ == "__main__":
    draw()
