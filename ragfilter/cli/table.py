"""Columns and shares in plain text. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], body: Iterable[Sequence[object]]) -> str:
    """Left-aligned columns below a header."""
    cells = [[str(cell) for cell in line] for line in (head, *body)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(head))]
    made = ("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in cells)
    return "\n".join(line.rstrip() for line in made) + "\n"


def percent(share: float | None) -> str:
    """``87.5%``; ``-`` for None."""
    return "-" if share is None else f"{100 * share:.1f}%"
