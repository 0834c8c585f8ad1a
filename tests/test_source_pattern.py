"""Which files a pattern admits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragfilter.engine.search import source_matcher

FILES = ("apis/sponsored-display.yaml", "apis/dsp.json", "DSP-notes.md", "common.yaml", "")


def test_what_is_admitted() -> None:
    for pattern, expected in [
        ("", FILES),
        ("*", FILES),
        ("sponsored-display", FILES[:1]),
        ("dsp", FILES[1:3]),
        ("*.yaml", (FILES[0], FILES[3])),
        ("apis/*", FILES[:2]),
        ("apis\\*", FILES[:2]),
        ("[cd]*", FILES[1:4]),
        ("?", ()),
        ("?*", FILES[:4]),
        ("[", ()),
    ]:
        fits = source_matcher(pattern)
        assert tuple(name for name in FILES if fits(name)) == expected


@given(st.text(max_size=20), st.text(max_size=30))
def test_any_text_is_a_pattern(pattern: str, source: str) -> None:
    admitted = source_matcher(pattern)(source)
    assert admitted == source_matcher(pattern.swapcase())(source) or not pattern.isascii()
    if not set(pattern) & set("*?["):
        assert source_matcher(pattern)(source + pattern.strip()) or not pattern.isascii()
