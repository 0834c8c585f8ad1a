"""Reads Markdown tables as sentences: every cell follows its heading. Pure."""

from __future__ import annotations


def unfold(text: str) -> str:
    """`text` with the rows of its tables spelled out: ``| 6 | 3 |`` below ``| AC | HD |`` becomes
    ``AC: 6; HD: 3``. What is no table with headings stays as it is."""
    if "|" not in text:
        return text
    made: list[str] = []
    heads: list[str] = []
    for line in text.splitlines():
        is_rule = "-" in line and not line.strip(" \t|:-")
        if is_rule and made and "|" in made[-1]:
            heads = _cells(made.pop())
        elif heads and "|" in line:
            pairs = zip(heads, _cells(line), strict=False)
            made.append("; ".join(f"{head}: {cell}" if head else cell for head, cell in pairs))
        else:
            heads = []
            made.append(line)
    return "\n".join(made)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]
