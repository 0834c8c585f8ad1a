"""Compare: two settings side by side, over one question or a query set."""

from __future__ import annotations

from ragfilter.ui.compare import page
from ragfilter.ui.kit import controls, problems
from ragfilter.ui.look import frame
from ragfilter.ui.session import state, visit


def draw() -> None:
    frame.dress()
    here = visit.begin()
    controls.choose(here)
    problems.notices(state.notices())
    page.draw(here)


if __name__ == "__main__":
    draw()
