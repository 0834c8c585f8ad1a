"""The active parts of Markdown as Streamlit renders it: pictures, links, icons, colours, formulas,
and arrows and dashes in place of what was typed.

A real parser reads it, then the rendered text, without escapes, is searched as in Streamlit's front end.
"""

from __future__ import annotations

import re
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.common.utils import unescapeAll

READER = MarkdownIt("gfm-like", {"linkify": False, "html": False})
PLAIN = {"paragraph_open", "paragraph_close", "inline", "text", "text_special", "softbreak"}
FOUND = {
    "icon": re.compile(r":(?:material[/_]\w+|streamlit|[\w+-]+):"),
    "address": re.compile(r"https?://[-.\w]|www\.[-.\w]", re.IGNORECASE),
    "email": re.compile(r"[-.\w+]@[-\w]+\.[-\w]"),
    "sign": re.compile(r"(?:^|\s)(?:<->|->|<-|--|[<>~]=)(?:\s|$)"),
}
WRITTEN = {
    "directive": re.compile(r"(?<!\\)(?:\\\\)*:[A-Za-z][\w-]*[\[{]"),
    "formula": re.compile(r"(?<!\\)(?:\\\\)*\$"),
    "html": re.compile(r"(?<!\\)(?:\\\\)*<[A-Za-z/!]"),
}


def acts(markdown: str) -> set[str]:
    """The active parts of the text."""
    tokens = READER.parse(markdown)
    kinds = {t.type for t in tokens} | {c.type for t in tokens for c in t.children or ()}
    inert = re.sub(r"(?<!\\)`[^`]+`", "", markdown)
    found = {name for name, sign in FOUND.items() for run in runs(markdown) if sign.search(run)}
    return kinds - PLAIN | found | {n for n, sign in WRITTEN.items() if sign.search(inert)}


def runs(markdown: str) -> list[str]:
    """The pieces of the rendered text, each of which is searched by itself."""
    pieces = [""]
    for token in READER.parse(markdown):
        for child in token.children or ():
            if child.type in ("text", "text_special"):
                pieces[-1] += child.content
            else:
                pieces.append("")
        pieces.append("")
    return pieces


def fetches(markdown: str) -> set[str]:
    """The parts of a formatted text that a browser would fetch or draw, or that hide their target."""
    tokens = [c for t in READER.parse(markdown) for c in (t, *(t.children or ()))]
    hidden = any(
        token.type == "link_open" and after.content not in str(token.attrs["href"]) for token, after in pairwise(tokens)
    )
    drawn = any(
        token.type == "fence" and re.match(r"\s*mermaid", unescapeAll(token.info), re.IGNORECASE) for token in tokens
    )
    kinds = {"image"} & {t.type for t in tokens}
    return kinds | ({"named link"} if hidden else set()) | ({"diagram"} if drawn else set())
