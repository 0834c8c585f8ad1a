"""What separates the cells of a CSV text."""

from __future__ import annotations

import re

NONE = "\x1f"
"""A separator that no text has."""
_TOLD = re.compile(r"sep=(.)(?:\r?\n|\r)", re.IGNORECASE)
_QUOTED = re.compile(r'"[^"]*"')
_HEADER = re.compile(r'\s*(?:[^"\r\n]+|"[^"]*"|")*')


def separated(text: str) -> tuple[str, str]:
    """The separator of a CSV text, and the text. Excel's own first line (``sep=;``) becomes empty.

    It is the comma, semicolon, tab or bar that the header has most of outside quotes. If it has
    none, there is one column, and a row is one cell.
    """
    if told := _TOLD.match(text):
        return told[1], "\n" + text[told.end() :]
    found = _HEADER.match(text)
    header = _QUOTED.sub("", found[0]) if found else ""
    separator = max(",;\t|", key=header.count)
    return (separator if separator in header else NONE), text
