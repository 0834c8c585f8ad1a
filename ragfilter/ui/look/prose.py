"""Text as Markdown: from outside, with nothing active in it; from a model, formatted; and our own
messages, which may contain names from outside. Pure.

Streamlit reads labels, tooltips and messages as Markdown. A chunk may contain the address of a
picture, or make a model write one. A browser that loads it would report what was read to the owner
of the address. So nothing from outside becomes a picture, or a link that hides where it leads.
"""

from __future__ import annotations

import re

_CITED = re.compile(r"((?:\[\d+(?:\s*[,;–-]\s*\d+)*\]\s*)+)(?<!\s)")
# What begins Markdown within a line, and Streamlit's ``:name[…]``.
_MARKUP = re.compile(r"[\\`*_\[\]<>#!|~$&]|:(?=[A-Za-z_])")
# What makes a list or a heading of a line that begins with it.
_BEGINS = re.compile(r"^(\s*\d*)([-+=.)])")
# Where an icon, emoji or address begins, or a sign between blanks that Streamlit draws as an arrow
# or a dash (``->``). It looks for those in the finished text, in which an escape is gone; an
# invisible word joiner is not.
_FOUND = re.compile(
    r":(?=[\w+/-]+:|//)|@|www(?=\.)|(?<![^\s\ufeff])[-<>~](?=(?:->|[->=])(?:[\s\ufeff]|$))",
    re.IGNORECASE,
)
_JOINER = "\u2060"
# The middle of a picture or link, and of the definition of one.
_FETCHED = re.compile(r"!(?=\[)|\](?=[(:])")
# A dollar sign, escaped or not. This and the next look at a run of one sign once, from its
# beginning: an answer may be nothing else.
_DOLLAR = re.compile(r"(?<!\\)\\*+\$")
# The fence of a code block that may say it is a Mermaid diagram: those can hold pictures.
_DRAWN = re.compile(r"(?:(?<!`)`{3,}+|(?<!~)~{3,}+)[ \t]*+(?=[m&])", re.IGNORECASE)
# Within a line: a blank line ends code, and what follows would be Markdown again.
_CODE = re.compile(r"`([^`\r\n]+)`")


def literal(text: str) -> str:
    """`text` from outside, shown to the letter in one line wherever Streamlit reads Markdown."""
    text = _FOUND.sub(lambda found: f"{found[0]}{_JOINER}", re.sub(r"\s+", " ", text))
    text = _MARKUP.sub(lambda found: f"\\{found[0]}", text)
    return _BEGINS.sub(r"\1\\\2", text)


def on_button(text: str) -> str:
    """`text` from outside on a button of a table, which knows no Markdown but takes an icon's name
    at its beginning for the icon."""
    return f":{_JOINER}{text[1:]}" if text.startswith(":") else text


def quiet(markdown: str) -> str:
    """What is said beside the matter, small and grey."""
    return f":small[:gray[{markdown}]]"


def message(text: str) -> str:
    """A message of ours: to the letter, but for `code` between backticks."""
    pieces = _CODE.split(text)
    # Every other piece is code.
    return "".join(f"`{p}`" if i % 2 else literal(p) for i, p in enumerate(pieces))


def quoted(text: str) -> str:
    """Sentences of chunks, to the letter, with the citations in bold."""
    return "\n".join(_quoted(line) for line in text.split("\n"))


def _quoted(line: str) -> str:
    pieces = _CITED.split(line)
    # Every other piece is a citation.
    return "".join(f"**{p}**" if i % 2 else literal(p) for i, p in enumerate(pieces))


def written(text: str) -> str:
    """What a model wrote: formatted as it likes, but without pictures, named links and diagrams; a
    dollar sign begins no formula."""
    text = _FETCHED.sub(lambda found: f"{found[0]}\\", text)
    text = _DRAWN.sub(lambda found: f"{found[0]}{_JOINER}", text)
    return _CITED.sub(r"**\1**", _DOLLAR.sub(r"\\$", text))
