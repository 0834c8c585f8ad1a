"""Cells of a spreadsheet."""

from __future__ import annotations

RISKY = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""Beginnings of a cell that a spreadsheet takes for a formula (OWASP, "CSV Injection")."""


def harmless(cell: str) -> str:
    """`cell`, with a leading apostrophe if a spreadsheet could take it for a formula."""
    return f"'{cell}" if cell.startswith(RISKY) else cell
