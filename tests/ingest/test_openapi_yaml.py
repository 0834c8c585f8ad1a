"""The YAML of OpenAPI descriptions: values stay as written, and YAML bombs are rejected."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pets import described
from waiting import ends_soon

from ragfilter.basics.files import parse_yaml
from ragfilter.errors import InputError


def test_yaml_scalars_stay_what_was_written() -> None:
    text = """
on: no
version: 1.10
date: 2024-01-01
404: {yes: true, "no": "true", n: null, tilde: ~, e: , sex: 12:30, big: 0o17}
tagged: !!str true
custom: !thing {a: 1}
"""
    assert parse_yaml(text, place="x") == {
        "on": "no",
        "version": "1.10",
        "date": "2024-01-01",
        "404": {"yes": True, "no": "true", "n": None, "tilde": None, "e": None, "sex": "12:30", "big": "0o17"},
        "tagged": "true",
        "custom": {"a": "1"},
    }


def test_yaml_merge_keys_give_way_to_own_ones() -> None:
    text = "a: &a {x: 1, y: 1}\nb: {z: 3, <<: [*a, {y: 2, w: 2}], x: 3}"
    assert parse_yaml(text, place="x") == {"a": {"x": "1", "y": "1"}, "b": {"z": "3", "x": "3", "y": "1", "w": "2"}}


@pytest.mark.slow
def test_a_bomb_of_aliases_neither_explodes_nor_hangs() -> None:
    lines = ["openapi: 3.0.0", "components:", "  schemas:", "    S0: &a0 {type: string}"]
    for i in range(1, 20):
        members = ", ".join([f"*a{i - 1}"] * 9)
        inner = f"anyOf: [{members}], properties: {{p: *a{i - 1}, q: *a{i - 1}}}, <<: *a{i - 1}"
        lines.append(f"    S{i}: &a{i} {{{inner}}}")
    lines.append("    Loop: &loop {properties: {again: *loop}, items: *loop, default: *loop}")
    with ends_soon(15.0):  # 1.5 s on a fast machine, 4.5 s on a slow one; an explosion never ends
        found = described(parse_yaml("\n".join(lines), place="x"))
    assert len(found) == 21
    assert max(len(record.chunk.text) for record in found.values()) < 25_000


PLAIN = st.recursive(
    st.none() | st.booleans() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=20,
)


@given(PLAIN)
def test_what_yaml_writes_is_read_back(tree: object) -> None:
    assert parse_yaml(yaml.safe_dump(tree), place="x") == tree


@given(st.text(alphabet="ab:{}[]&*!<>-?|\"' \n\t#,%~", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    refused: InputError | None = None
    try:
        parse_yaml(text, place="x")
    except InputError as error:
        refused = error
    assert refused is None or (refused.message.startswith("x") and refused.remedy)
