"""Limits a search to some files: a text or glob on `Chunk.source`. Pure.

Source: Intelligent Chunk Filtering (`file_filter`, such as "sponsored-display" or "dsp");
docs/design.md#file-filter. Case does not matter. A pattern without ``*``, ``?`` and ``[`` matches
anywhere in the name. A pattern with one of them must match the whole name, with or without the
folders before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import translate
from functools import lru_cache


@lru_cache(maxsize=64)
def matcher(pattern: str) -> Callable[[str], bool]:
    """A test for sources. The empty pattern lets every source pass, also the empty one."""
    wanted = pattern.strip().replace("\\", "/").casefold()
    if not wanted:
        return lambda source: True
    if not any(mark in wanted for mark in "*?["):
        return lambda source: wanted in _name(source)
    whole = re.compile(translate(wanted))

    def matches(source: str) -> bool:
        name = _name(source)
        return bool(whole.match(name) or whole.match(name.rpartition("/")[2]))

    return matches


def _name(source: str) -> str:
    return source.replace("\\", "/").casefold()
