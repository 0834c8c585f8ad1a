"""Text as Markdown: text from outside, made inactive; text from a model, formatted; and our own messages, which may
contain names from outside. Pure.

Streamlit reads labels, tooltips and messages as Markdown. A chunk may contain a picture's address, or make a model
write one. Loading the picture would tell the owner of that address what was read. So text from outside never becomes a
picture, or a link that hides its target."""

from __future__ import annotations

import re

_CITED = re.compile(r"((?:\[\d+(?:\s*[,;–-]\s*\d+)*\]\s*)+)(?<!\s)")
# Characters that start Markdown within a line, and Streamlit's ``:name[…]``.
_MARKUP = re.compile(r"[\\`*_\[\]<>#!|~$&]|:(?=[A-Za-z_])")
# Characters that turn a line starting with them into a list or a heading.
_BEGINS = re.compile(r"^(\s*\d*)([-+=.)])")
# The start of an icon, emoji or address, or a sign between spaces that Streamlit draws as an arrow or dash (``->``).
# Streamlit looks for them in the rendered text, which has lost escapes but keeps an invisible word joiner.
_FOUND = re.compile(
    r":(?=[\w+/-]+:|//)|@|www(?=\.)|(?<![^\s\ufeff])[-<>~](?=(?:->|[->=])(?:[\s\ufeff]|$))", re.IGNORECASE
)
_JOINER = "\u2060"
# The middle of a picture or link, or of its definition.
_FETCHED = re.compile(r"!(?=\[)|\](?=[(:])")
# A dollar sign, escaped or not. This pattern and the next match a run of one sign once, from its
# beginning, because an answer may consist of nothing else.
_DOLLAR = re.compile(r"(?<!\\)\\*+\$")
# The opening fence of a code block that may be a Mermaid diagram, which can contain pictures.
_DRAWN = re.compile(r"(?:(?<!`)`{3,}+|(?<!~)~{3,}+)[ \t]*+(?=[m&])", re.IGNORECASE)
# Within a line, because a blank line ends code and the rest would be Markdown again.
_CODE = re.compile(r"`([^`\r\n]+)`")


def literal(text: str) -> str:
    """`text` from outside, shown literally in one line wherever Streamlit reads Markdown."""
    text = _FOUND.sub(lambda match: f"{match[0]}{_JOINER}", re.sub(r"\s+", " ", text))
    text = _MARKUP.sub(lambda match: f"\\{match[0]}", text)
    return _BEGINS.sub(r"\1\\\2", text)


def on_button(text: str) -> str:
    """`text` from outside on a button in a table, which renders no Markdown but an icon's name at the beginning."""
    return f":{_JOINER}{text[1:]}" if text.startswith(":") else text


def quiet(markdown: str) -> str:
    """`markdown`, small and grey."""
    return f":small[:gray[{markdown}]]"


def model_label(model: str) -> str:
    """The model's name, with a warning if it is the one that `make local-llm` serves."""
    tiny = "smollm2-135m" in model.casefold()
    return f"{model}, a tiny demonstration model, often wrong" if tiny else model


def message(text: str) -> str:
    """Our own message: shown literally, except for `code` between backticks."""
    # Every second piece is code.
    return "".join(f"`{piece}`" if i % 2 else literal(piece) for i, piece in enumerate(_CODE.split(text)))


def written(text: str) -> str:
    """A model's text with its formatting, without pictures, named links, diagrams, formulas."""
    text = _FETCHED.sub(lambda match: f"{match[0]}\\", text)
    text = _DRAWN.sub(lambda match: f"{match[0]}{_JOINER}", text)
    return _CITED.sub(r"**\1**", _DOLLAR.sub(r"\\$", text))
