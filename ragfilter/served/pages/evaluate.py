"""Evaluate: settings measured over labelled questions, beside every honest alternative."""

from __future__ import annotations

from ragfilter.served.pages import begin
from ragfilter.ui.evaluate import page


def draw() -> None:
    page.draw(begin("Evaluate"))


if __name__ == "__main__":
    draw()
