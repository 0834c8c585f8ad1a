"""Markdown and plain text to records, a passage each."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import ends_soon
from written import read, written

from ragfilter.ingest.load import load
from ragfilter.ingest.markdown import load_markdown, sections
from ragfilter.ingest.passages import passages

GUIDE = """\
---
author: nobody
---
Before any heading.

# Guide

## Install

Run it.

```sh
# not a heading
pip install x
```

> # Neither is this

Setext
------

Second *way*.

## Install

Again.
"""


def test_markdown_sections_with_the_headings_above_them(tmp_path: Path) -> None:
    chunks = read(written(tmp_path, "guide.md", GUIDE))
    assert [(c.id, c.title) for c in chunks] == [
        ("guide.md#guide", "guide"),
        ("guide.md#install", "Guide > Install"),
        ("guide.md#setext", "Guide > Setext"),
        ("guide.md#install-2", "Guide > Install"),
    ]
    assert [c.text for c in chunks[::2]] == ["Before any heading.", "Second *way*."]
    assert "# not a heading" in chunks[1].text
    assert "# Neither is this" in chunks[1].text
    assert {(c.type, c.source) for c in chunks} == {("section", "guide.md")}


def test_titles_leave_out_what_a_site_generator_reads(tmp_path: Path) -> None:
    text = (
        "---\nlayout: page\ntitle: 'Deploying: a guide'\n---\nFirst.\n\n# Install { #install }\n\n"
        "One.\n\n## Notes {: .note #n }\n\nTwo.\n\n## The set {a}\n\nThree.\n\n## { #x }\n\nFour.\n"
    )
    assert [chunk.title for chunk in read(written(tmp_path, "a.md", text))] == [
        "Deploying: a guide", "Install", "Install > Notes", "Install > The set {a}",
        "Install > { #x }",
    ]  # fmt: skip


def test_markdown_places_name_the_line_of_the_heading(tmp_path: Path) -> None:
    places = [r.place for r in load(written(tmp_path, "guide.md", GUIDE))]
    assert places == [f"guide.md, line {n}" for n in (4, 8, 19, 24)]


def test_a_long_section_becomes_several_chunks(tmp_path: Path) -> None:
    body = "\n\n".join(f"Paragraph {i}. " + "word " * 60 for i in range(12))
    chunks = read(written(tmp_path, "x.md", f"# Long\n\n{body}"))
    assert [c.id for c in chunks[:3]] == ["x.md#long", "x.md#long-2", "x.md#long-3"]
    assert all(len(c.text) <= 1000 for c in chunks)


@pytest.mark.parametrize("depth", [1, 10, 40])
def test_a_heading_after_nested_lists_is_one(depth: int) -> None:
    lists = "".join(f"{'  ' * i}- item\n" for i in range(depth))
    assert [path for path, *_ in sections(f"{lists}\n# After\n\ntext")] == [(), ("After",)]


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"{'  ' * i}- item\n" for i in range(2000)),
        "".join(f"{'> ' * i}quote\n" for i in range(2000)),
        "[" * 1_000_000,
        "word " * 800_000,
    ],
    ids=["lists", "quotes", "brackets", "one paragraph"],
)
def test_megabytes_of_odd_markdown_take_little_work(tmp_path: Path, text: str) -> None:
    (tmp_path / "odd.md").write_text(text)
    with ends_soon():
        assert list(load_markdown(tmp_path / "odd.md", source="odd.md"))


def test_plain_text_passages(tmp_path: Path) -> None:
    path = written(tmp_path, "notes.txt", "One.\r\n\r\nTwo.\n\n" + "x" * 1500)
    chunks = read(path)
    assert [c.id for c in chunks] == ["notes.txt#1", "notes.txt#2", "notes.txt#3"]
    assert [c.text for c in chunks] == ["One.\n\nTwo.", "x" * 1000, "x" * 500]
    assert {c.title for c in chunks} == {"notes"}


@pytest.mark.parametrize(
    ("text", "longest", "expected"),
    [
        ("", 10, []),
        (" \n \n", 10, []),
        ("aa\n\nbb", 10, ["aa\n\nbb"]),
        ("aa\n\nbb", 5, ["aa", "bb"]),
        ("One two. Three four.", 12, ["One two.", "Three four."]),
        ("aaaa bbbb cccc", 10, ["aaaa bbbb", "cccc"]),
        ("aaaaaaaaaaaa", 5, ["aaaaa", "aaaaa", "aa"]),
        ("A. bbbb cccc dd", 10, ["A. bbbb", "cccc dd"]),
    ],
)
def test_passages_are_packed_and_split_at_the_best_place(
    text: str, longest: int, expected: list[str]
) -> None:
    assert passages(text, longest) == expected


@given(st.text(st.sampled_from("ab.! \n\t")), st.integers(1, 20))
def test_passages_lose_only_white_space(text: str, longest: int) -> None:
    found = passages(text, longest)
    assert "".join("".join(found).split()) == "".join(text.split())
    assert all(0 < len(passage) <= longest for passage in found)
