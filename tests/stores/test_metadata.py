"""Chunk to flat metadata and back. An unreadable value hides the chunk."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragfilter.model import Chunk, readable_level
from ragfilter.stores.metadata import references, to_chunk, to_entry, to_metadata

TEXT = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=20)
NAME = TEXT.map(str.strip).filter(bool)


def test_only_whole_numbers_from_zero_are_a_clearance() -> None:
    for stored, level in [
        (0, 0),
        (3, 3),
        (-1, None),
        (True, None),
        ("abc", None),
        ("2", None),
        ([1], None),
        (2**63, None),
    ]:
        assert readable_level(stored) == level


def test_access_of_stored_rows() -> None:
    for metadata, clearance, department in [
        (None, 0, None),
        ({"clearance": 2, "department": ""}, 2, None),
        ({"department": 7}, 0, "7"),
        ({"clearance": "secret"}, None, None),
        ({"clearance": 0, "department": ["ops", "hr"]}, None, None),
    ]:
        whole, entry = to_chunk("a", metadata, "text"), to_entry("a", metadata)
        assert (whole.clearance, whole.department) == (clearance, department)
        assert (entry.clearance, entry.department) == (clearance, department)


def test_references_of_stored_rows() -> None:
    for stored, refs in [
        ('["a", "b", "a"]', ("a", "b")),
        (["a", "b"], ("a", "b")),
        ("a", ("a",)),
        ('{"a": 1}', ('{"a": 1}',)),
        ("", ()),
        (None, ()),
    ]:
        assert references(stored) == refs


def test_page_of_stored_rows() -> None:
    for stored, page in [(3, 3), (3.0, 3), ("12", 12), (" 12 ", 12), ("xii", None), (3.5, None), (True, None)]:
        assert to_chunk("a", {"page": stored}, "").page == page


def test_whole_characters_come_out_of_a_foreign_collection() -> None:
    half = "x\ud83d"
    row = {
        "title": half,
        "type": half,
        "source": half,
        "refs": '["x\\ud83d", "\\ud83d\\ude00"]',
        "department": half,
        "query_must": half,
    }
    read = "x\ufffd"
    assert to_chunk("a", row, half) == Chunk("a", read, read, read, read, None, (read, "😀"), 0, read, read)
    assert to_chunk("a", {"refs": "[" * 100_000}, None).refs == ("[" * 100_000,)


@given(
    st.builds(
        Chunk,
        id=NAME,
        text=st.text(st.characters(exclude_categories=("Cs",))),
        title=TEXT,
        type=TEXT,
        source=TEXT,
        page=st.none() | st.integers(0, 2**40),
        refs=st.lists(NAME, unique=True, max_size=3).map(tuple),
        clearance=st.none() | st.integers(0, 100),
        department=st.none() | NAME,
        rule=st.none() | TEXT,
    )
)
def test_a_chunk_comes_back_as_it_was(chunk: Chunk) -> None:
    assert to_chunk(chunk.id, to_metadata(chunk), chunk.text) == chunk
