"""An answer's text as Markdown: citations in bold, and nothing that a browser would fetch. Pure.

A chunk may hold a picture's address, or talk a model into writing one. A browser that drew it would
tell the address's owner what was read; so no answer has pictures, nor links that hide where they
lead. A bare address stays what it is.
"""

from __future__ import annotations

import re

_CITED = re.compile(r"((?:\[\d+(?:\s*[,;–-]\s*\d+)*\]\s*)+)(?<!\s)")
# What begins Markdown within a line, and Streamlit's ``:name[…]`` and ``:name:``.
_MARKUP = re.compile(r"[\\`*_\[\]<>#!|~$&]|:(?=[A-Za-z_])")
# What makes code, a list or a heading of a line that begins with it.
_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)
_BEGINS = re.compile(r"^(\d*)([-+=.)])", re.MULTILINE)
# The middle of a picture or link, and of the definition of one.
_FETCHED = re.compile(r"!(?=\[)|\](?=[(:])")


def written(text: str) -> str:
    """What a model wrote: formatted as it likes, but without pictures and named links; a dollar
    sign begins no formula."""
    text = _FETCHED.sub(lambda found: f"{found[0]}\\", text).replace("$", r"\$")
    return _CITED.sub(r"**\1**", text)


def quoted(text: str) -> str:
    """Sentences of chunks, to the letter."""
    pieces = _CITED.split(text)
    # Every other piece is a citation.
    return "".join(f"**{p}**" if i % 2 else literal(p) for i, p in enumerate(pieces))


def literal(text: str) -> str:
    """`text` with everything escaped that Markdown or Streamlit would read."""
    text = _MARKUP.sub(lambda found: f"\\{found[0]}", text)
    return _BEGINS.sub(r"\1\\\2", _INDENT.sub("", text))
