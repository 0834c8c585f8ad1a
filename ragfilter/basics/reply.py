"""Reads a chat model's reply as whole characters and with a size limit.

A model behind the protocol may send anything, so every caller reads through this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ragfilter.errors import ChatError
from ragfilter.protocols import Delta
from ragfilter.text.characters import ends_in_half, whole

MOST_BYTES = 128 * 1024
"""An answer is a few thousand bytes; one of a model that thinks aloud, a hundred thousand."""


def bounded(deltas: Iterable[Delta], *, most_bytes: int = MOST_BYTES) -> Iterator[Delta]:
    """`deltas` in whole characters: one that was split between two of them is joined.

    Raises ChatError, after as much text as there is room for, where more comes than `most_bytes`.
    """
    held, room = "", most_bytes
    for delta in deltas:
        text = held + delta.text
        held = text[-1] if ends_in_half(text) else ""
        text = whole(text[: len(text) - len(held)])
        raw = text.encode("utf-8")
        if len(raw) > room:
            yield Delta(raw[:room].decode("utf-8", "ignore"))
            raise ChatError(
                f"The answer is longer than {most_bytes:,} bytes; the rest was not read.",
                kind="interrupted",
                remedy="Ask for less, or choose a model that does not repeat itself.",
            )
        room -= len(raw)
        if text or delta.usage is not None:
            yield Delta(text, delta.usage)
    if held:
        yield Delta(whole(held))
