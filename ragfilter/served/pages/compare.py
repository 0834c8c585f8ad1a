"""Compare: two settings side by side, over one question or a query set."""

from __future__ import annotations

from ragfilter.served.pages import surround
from ragfilter.ui.compare import page
from ragfilter.ui.look import frame
from ragfilter.ui.session import visit


def draw() -> None:
    frame.dress()
    here = visit.begin()
    surround(here)
    page.draw(here)


if __name__ == "__main__":
    draw()
