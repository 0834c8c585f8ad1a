"""Collections: your own data in, looked after, and out again."""

from __future__ import annotations

from ragfilter.served.pages import begin
from ragfilter.ui.collections import page


def draw() -> None:
    page.draw(begin("Collections", anew=True))


if __name__ == "__main__":
    draw()
