"""Splits long text into passages that the embedding model can read completely."""

from __future__ import annotations

import re

# The bundled model reads 256 tokens; English takes a little over four characters each.
LONGEST = 1000


def passages(text: str, longest: int = LONGEST, overlap: int = 0) -> list[str]:
    """Paragraphs packed into passages of at most `longest` characters, in order.

    A paragraph that is longer is split after a sentence, else between words, else anywhere. Only
    white space is lost. With `overlap`, each passage begins with the words that ended the one
    before it, up to so many characters.
    """
    if overlap:
        packed = passages(text, longest - overlap - 1)
        tails = ("", *(_tail(passage, overlap) for passage in packed))
        return [f"{tail} {own}".lstrip() for tail, own in zip(tails, packed, strict=False)]
    packed = []
    for paragraph in re.split(r"\n\s*\n", text):
        for piece in _pieces(paragraph.strip(), longest):
            if packed and len(packed[-1]) + 2 + len(piece) <= longest:
                packed[-1] = f"{packed[-1]}\n\n{piece}"
            else:
                packed.append(piece)
    return packed


def _tail(passage: str, overlap: int) -> str:
    """The last whole words of at most `overlap` characters; all of a shorter passage."""
    if len(passage) <= overlap:
        return passage
    begin = re.search(r"\s\S", passage[-overlap - 1 :])
    return passage[-overlap - 1 :][begin.start() :].strip() if begin else ""


def _pieces(paragraph: str, longest: int) -> list[str]:
    pieces: list[str] = []
    start = 0
    while len(paragraph) - start > longest:
        head = paragraph[start : start + longest + 1]
        ends = [m.end() for m in re.finditer(r"[.!?](?=\s)|\n", head[:longest])]
        space = max(head.rfind(" "), head.rfind("\t"))
        # A sentence end in the first half would leave a stub; rather split between words.
        cut = ends[-1] if ends and ends[-1] > longest // 2 else space if space > 0 else longest
        pieces.append(head[:cut].strip())
        start += cut
        while paragraph[start : start + 1].isspace():
            start += 1
    return [piece for piece in (*pieces, paragraph[start:]) if piece]
