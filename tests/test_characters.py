"""Surrogates are joined or replaced, in texts and in JSON."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ragfilter.text.normalise import loads, mend_characters

TEXTS = st.text(st.characters(), max_size=20) | st.text("\ud83d\ude00a\ufffd", max_size=20)


def test_whole() -> None:
    for text, read in [
        ("naïve 😀 \ufeff", "naïve 😀 \ufeff"),
        ("a\ud83db", "a\ufffdb"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ud83d\ude00", "\ufffd😀"),
        (b"caf\xe9".decode("utf-8", "surrogateescape"), "caf\ufffd"),
    ]:
        assert mend_characters(text) == read


def test_loads() -> None:
    for text, value in [
        ('{"a": [1, 2.5, null, "x"]}', {"a": [1, 2.5, None, "x"]}),
        (r'{"\ud83d": ["\ud83d\ude00", {"b": "\ude00"}]}', {"\ufffd": ["😀", {"b": "\ufffd"}]}),
        ('["\ud83d"]', ["\ufffd"]),
    ]:
        assert loads(text) == value


@given(st.recursive(TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner)))
@settings(max_examples=40)
def test_every_text_of_a_value_is_whole(value: Any) -> None:
    json.dumps(loads(json.dumps(value)), ensure_ascii=False).encode("utf-8")
