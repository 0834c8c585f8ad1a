"""Tune: the settings that labelled questions justify."""

from __future__ import annotations

from ragfilter.served.pages import begin
from ragfilter.ui.tune import page


def draw() -> None:
    page.draw(begin("Tune"))


if __name__ == "__main__":
    draw()
