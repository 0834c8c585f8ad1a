"""Finds which of many search terms occur in a text, in one pass (Aho-Corasick).

Source: docs/design.md#matching.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ahocorasick_rs

# Only the first HEAD characters of a needle go into the automaton, and the text is read in windows.
# So at most HEAD matches end at one place, and WINDOW * HEAD are held at once, however long or
# similar the needles are and however long the text is.
HEAD = 64
WINDOW = 4096
# After a window with more matches than this, needles that were found are no longer searched for,
# because they would be found again and again.
MANY = 4 * WINDOW


class Needles:
    """Numbered needles, compiled. Immutable."""

    def __init__(self, needles: Mapping[str, int]) -> None:
        """`needles`: text to number. No text may be empty, and each must be encodable as UTF-8."""
        by_head: dict[str, list[tuple[str, int]]] = {}
        for needle, number in needles.items():
            by_head.setdefault(needle[:HEAD], []).append((needle, number))
        self._heads = list(by_head)
        self._needles = list(by_head.values())
        self._automaton = ahocorasick_rs.AhoCorasick(self._heads)

    def find(self, text: str) -> set[int]:
        """The numbers of the needles that occur in `text`. Linear in the length of the text."""
        return {
            number
            for head in self._find_heads(text)
            for needle, number in self._needles[head]
            if len(needle) <= HEAD or needle in text
        }

    def _find_heads(self, text: str) -> set[int]:
        found: set[int] = set()
        sought: Sequence[int] = range(len(self._heads))
        automaton = self._automaton
        for start in range(0, len(text), WINDOW):
            window = text[start : start + WINDOW + HEAD]
            matches = automaton.find_matches_as_indexes(window, overlapping=True)
            found.update({sought[index] for index, _, _ in matches})
            if len(found) == len(self._heads):
                break
            if len(matches) > MANY:
                sought = [head for head in sought if head not in found]
                automaton = ahocorasick_rs.AhoCorasick([self._heads[head] for head in sought])
        return found
