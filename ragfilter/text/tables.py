"""Tables as text: Markdown tables as sentences, and cells that a spreadsheet does not take for
formulas. Pure."""

from __future__ import annotations


def unfold(text: str) -> str:
    """`text` with the rows of its tables spelled out: ``| 6 | 3 |`` below ``| AC | HD |`` becomes
    ``AC: 6; HD: 3``. What is no table with headings stays as it is."""
    if "|" not in text:
        return text
    rows: list[str] = []
    heads: list[str] = []
    for line in text.splitlines():
        is_rule = "-" in line and not line.strip(" \t|:-")
        if is_rule and rows and "|" in rows[-1]:
            heads = _cells(rows.pop())
        elif heads and "|" in line:
            pairs = zip(heads, _cells(line), strict=False)
            rows.append("; ".join(f"{head}: {cell}" if head else cell for head, cell in pairs))
        else:
            heads = []
            rows.append(line)
    return "\n".join(rows)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


RISKY = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""Beginnings of a cell that a spreadsheet takes for a formula (OWASP, "CSV Injection")."""


def harmless(cell: str) -> str:
    """`cell`, with a leading apostrophe if a spreadsheet could take it for a formula."""
    return f"'{cell}" if cell.startswith(RISKY) else cell
