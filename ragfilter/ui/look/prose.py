"""Text as Markdown: from outside, with nothing active in it; from a model, formatted; and our own
messages, which may contain names from outside. Pure.

Streamlit reads labels, tooltips and messages as Markdown. A chunk may contain the address of a
picture, or make a model write one. A browser that loads it would report what was read to the owner
of that address. So text from outside never becomes a picture, or a link that hides its target.
"""

from __future__ import annotations

import re

_CITED = re.compile(r"((?:\[\d+(?:\s*[,;–-]\s*\d+)*\]\s*)+)(?<!\s)")
# Characters that start Markdown within a line, and Streamlit's ``:name[…]``.
_MARKUP = re.compile(r"[\\`*_\[\]<>#!|~$&]|:(?=[A-Za-z_])")
# Characters that make a list or a heading of a line that starts with them.
_BEGINS = re.compile(r"^(\s*\d*)([-+=.)])")
# The start of an icon, emoji or address, or a sign between spaces that Streamlit draws as an arrow
# or dash (``->``). Streamlit looks for those in the rendered text, in which an escape is gone but
# an invisible word joiner is not.
_FOUND = re.compile(
    r":(?=[\w+/-]+:|//)|@|www(?=\.)|(?<![^\s\ufeff])[-<>~](?=(?:->|[->=])(?:[\s\ufeff]|$))",
    re.IGNORECASE,
)
_JOINER = "\u2060"
# The middle of a picture or link, and of the definition of one.
_FETCHED = re.compile(r"!(?=\[)|\](?=[(:])")
# A dollar sign, escaped or not. This pattern and the next one match a run of one sign once, from
# its beginning, because an answer may consist of nothing else.
_DOLLAR = re.compile(r"(?<!\\)\\*+\$")
# The opening fence of a code block that may be a Mermaid diagram: those can contain pictures.
_DRAWN = re.compile(r"(?:(?<!`)`{3,}+|(?<!~)~{3,}+)[ \t]*+(?=[m&])", re.IGNORECASE)
# Within a line: a blank line ends code, and what follows would be Markdown again.
_CODE = re.compile(r"`([^`\r\n]+)`")


def literal(text: str) -> str:
    """`text` from outside, shown literally in one line wherever Streamlit reads Markdown."""
    text = _FOUND.sub(lambda match: f"{match[0]}{_JOINER}", re.sub(r"\s+", " ", text))
    text = _MARKUP.sub(lambda match: f"\\{match[0]}", text)
    return _BEGINS.sub(r"\1\\\2", text)


def on_button(text: str) -> str:
    """`text` from outside on a button in a table, which does not render Markdown but treats an
    icon's name at the beginning as an icon."""
    return f":{_JOINER}{text[1:]}" if text.startswith(":") else text


def quiet(markdown: str) -> str:
    """`text` small and grey."""
    return f":small[:gray[{markdown}]]"


def message(text: str) -> str:
    """Our own message: shown literally, except for `code` between backticks."""
    # Every second piece is code.
    pieces = enumerate(_CODE.split(text))
    return "".join(f"`{piece}`" if i % 2 else literal(piece) for i, piece in pieces)


def written(text: str) -> str:
    """A model's text with its formatting, without pictures, named links, diagrams, formulas."""
    text = _FETCHED.sub(lambda match: f"{match[0]}\\", text)
    text = _DRAWN.sub(lambda match: f"{match[0]}{_JOINER}", text)
    return _CITED.sub(r"**\1**", _DOLLAR.sub(r"\\$", text))
