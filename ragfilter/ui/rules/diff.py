"""A rule before and after, with additions and removals marked by sign and colour."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import ndiff

from ragfilter.ui.kit.rule_editor import saving
from ragfilter.ui.look import html
from ragfilter.ui.rules import pages

PAGE = 20


def draw_all(changes: Sequence[tuple[str, str | None, str | None]], key: str) -> None:
    """Draw each change as title, rule before and rule after, one page at a time."""
    for change in changes[pages.choose(key, len(changes), PAGE)]:
        draw(*change)


def draw(title: str, before: str | None, after: str | None) -> None:
    """Draw both rules line by line under the chunk's title."""
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
