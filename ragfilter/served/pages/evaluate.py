"""Evaluate: settings measured over labelled questions, beside every honest alternative."""

from __future__ import annotations

from ragfilter.ui.evaluate import page
from ragfilter.ui.kit import controls, problems
from ragfilter.ui.look import frame, html
from ragfilter.ui.session import link, state, visit


def draw() -> None:
    frame.dress()
    html.heading("Evaluate", level=1)
    here = visit.begin()
    link.share()
    link.show_address()
    controls.choose(here)
    problems.notices(state.notices())
    controls.draw(here, None)
    page.draw(here)


if __name__ == "__main__":
    draw()
