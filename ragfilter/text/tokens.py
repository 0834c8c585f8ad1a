"""An estimate of tokens that needs no tokenizer. Source: docs/design.md#context.

Four bytes of UTF-8 a token, and at least one token a word. On the demo collection, against the
WordPiece vocabulary of the bundled embedding model, the median of estimate / count is 1.0 and nine
of ten texts lie between 0.8 and 1.2; tables of figures are the low end. If an endpoint reports
its own count, that is used instead.
"""

from __future__ import annotations


def estimate(text: str) -> int:
    """Estimated tokens of `text`, 0 for the empty text. Pure; about a microsecond a kilobyte."""
    if not text:
        return 0
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return max(-(-size // 4), text.count(" ") + 1)


def head(text: str, tokens: int) -> str:
    """The longest beginning of `text` of at most `tokens` estimated tokens, cut between words.

    A text without spaces is cut between characters.
    """
    if estimate(text) <= tokens:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if estimate(text[:middle]) <= tokens:
            low = middle
        else:
            high = middle - 1
    cut = text[:low]
    space = cut.rfind(" ")
    return (cut[:space] if space > 0 and not text[low : low + 1].isspace() else cut).rstrip()
