"""Chunks that refer to each other: with a cycle, a secret, a rule, and a missing chunk."""

from __future__ import annotations

from ragfilter.model import Chunk

RULE = '{"contain": "cleric"}'
# root → a, b; a → c; b → root, secret; secret → deep; c → ruled, d; d → e → f → g
CHUNKS = (
    Chunk("root", "the root", "Root", refs=("a", "b", "gone")),
    Chunk("a", "about a", "A", refs=("c",)),
    Chunk("b", "about b", "B", refs=("root", "secret")),
    Chunk("secret", "hush", "Secret plan", refs=("deep",), clearance=2),
    Chunk("deep", "deep", "Deep"),
    Chunk("c", "about c", "C", refs=("ruled", "d")),
    Chunk("ruled", "for clerics", "Ruled", rule=RULE),
    Chunk("d", "about d", "D", refs=("e",)),
    Chunk("e", "about e", "E", refs=("f",)),
    Chunk("f", "about f", "F", refs=("g",)),
    Chunk("g", "about g", "G"),
)
