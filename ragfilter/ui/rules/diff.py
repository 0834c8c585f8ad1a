"""A rule before and after, with what is new and what is gone told apart by sign and colour."""

from __future__ import annotations

from difflib import ndiff

from ragfilter.ui.look import html
from ragfilter.ui.rules import saving


def draw(title: str, before: str | None, after: str | None) -> None:
    """The lines of both, under the chunk's title."""
    html.draw(
        f'<div class="rf-diff"><b>{html.text(title)}</b><pre>{lines(before, after)}</pre></div>'
    )


def lines(before: str | None, after: str | None) -> str:
    """The lines as HTML."""
    old, new = saving.shown(before).splitlines(), saving.shown(after).splitlines()
    made = []
    for line in ndiff(old or ["no rule"], new or ["no rule"]):
        sign, text = line[0], line[2:]
        if sign == "?":
            continue
        look = {"+": "rf-in", "-": "rf-out"}.get(sign, "")
        made.append(f'<span class="{look}">{sign} {html.text(text)}</span>')
    return "\n".join(made)
