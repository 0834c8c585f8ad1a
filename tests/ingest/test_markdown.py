"""Markdown and plain text to records, one per passage."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import ends_soon
from written import read, written

from ragfilter.ingest.load import load
from ragfilter.ingest.markdown import load_markdown, sections
from ragfilter.ingest.passages import passages
from ragfilter.ingest.records import ReadOptions

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
        "Deploying: a guide",
        "Install",
        "Install > Notes",
        "Install > The set {a}",
        "Install > { #x }",
    ]


@pytest.mark.parametrize(
    ("front", "title"),
    [
        ("---\ntitle: What's new in 2.0\n---\n", "What's new in 2.0"),
        ("---\ntitle: Foo: Bar\nauthor: me\n---\n", "Foo: Bar"),
        ("---\ntitle: Foo: Bar # draft\n---\n", "Foo: Bar"),
        ('---\ntitle: "A \\"b\\": c"\n---\n', 'A "b": c'),
        ("---\ntitle: >-\n  A folded\n  title\n---\n", "A folded title"),
        ("---\n# set by hand\ndate created: 2020-01-01\n\ntitle: T\n--- \n", "T"),
        ("+++\ntitle = 'T: x'\n[extra]\na = 1\n+++\n", "T: x"),
        ("---\ntitle: !!str true\n---\n", "true"),
        ("---\ntitle: true\n---\n", "true"),
        ("---\ntitle: [Draft]\n---\n", "[Draft]"),
        ("---\ntitle: 'null'\n---\n", "null"),
        ("---\ntitle: null\n---\n", "a"),
        ("---\ntitle: # none\n---\n", "a"),
        ("+++\ntitle = true\n+++\n", "true"),
        ("---\ntitle:\n  en: T\n---\n", "a"),
        ('---\n"layout": page\nnav_order: 3\nseo.title-2: x\nÜbersicht: y\n---\n', "a"),
    ],
)
def test_front_matter_gives_the_title_and_no_text(tmp_path: Path, front: str, title: str) -> None:
    (chunk,) = read(written(tmp_path, "a.md", f"{front}Thirty days.\n"))
    assert (chunk.title, chunk.text) == (title, "Thirty days.")


def test_a_rule_alone_is_no_chunk(tmp_path: Path) -> None:
    text = "---\n\n# Handbook\n\nLeave.\n\n## Pay\n\n* * *\n\n# End\n\n___\n"
    chunks = read(written(tmp_path, "a.md", text))
    assert [chunk.text for chunk in chunks] == ["Leave.", "Pay", "End"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("---\n\n# Handbook\n\nThirty days of leave.\n\n---\n\nMore.", "Thirty days of leave."),
        ("---\nThirty days of leave.\n---\nMore.", "Thirty days of leave."),
        ("---\n# Handbook\n---\nMore.", "Handbook"),
        ("---\ntitle: T\nOne plain line.\n---\nMore.", "One plain line."),
        ("---\ntitle: T\n\nNever closed.", "Never closed."),
        ("+++\nNo TOML\n+++\nMore.", "No TOML"),
        ("---\n---\nMore.", "More."),
        ("+++\n\n# Handbook\n\n+++\nMore.", "Handbook"),
        ("---\nPlease note the following: hours vary in summer.\n---\nMore.", "hours vary"),
        ("---\nOpening hours:\n- nine to five\n---\nMore.", "nine to five"),
        ("---\n" + "[" * 100_000 + "\n---\nMore.", "[[[["),
    ],
)
def test_text_between_rules_is_kept(tmp_path: Path, text: str, words: str) -> None:
    chunks = read(written(tmp_path, "a.md", text))
    assert any(words in f"{chunk.title}\n{chunk.text}" for chunk in chunks)
    assert any("More." in chunk.text for chunk in chunks) or "More." not in text


@pytest.mark.parametrize(
    "code",
    [
        "```yaml\na:\n\n  b: 1\n\n\n  c:  2 \n```",
        "~~~python\ndef f():\n    x = 1\n\n    return x\n~~~",
        "    if a:\n\n        b()",
        "- one\n\n  ```\n  a\n\n      b\n  ```",
        "<pre>\na\n\n    b\n</pre>",
        "```\nnever closed\n\n    a",
    ],
)
@pytest.mark.parametrize("headings", [True, False])
def test_code_is_kept_as_it_is(tmp_path: Path, code: str, headings: bool) -> None:
    path = written(tmp_path, "a.md", f"Run it:\n\n{code}\n")
    (chunk,) = [r.chunk for r in load(path, reading=ReadOptions(headings=headings))]
    assert chunk.text == f"Run it:\n\n{code}"


@pytest.mark.parametrize("overlap", [0, 40])
@pytest.mark.parametrize("mark", ["```", "~~~~", ""])
def test_code_longer_than_a_chunk_is_cut_at_line_ends(mark: str, overlap: int) -> None:
    body = [f"{'    ' * (1 + n % 3)}step({n})  # One. Two! {n}" for n in range(40)]
    body.insert(20, "")
    lines = [mark, *body, mark] if mark else body
    text = "\n".join(["Run it.", "", *lines, "", "Done."])
    (section,) = sections(text)
    cut = passages(text, 300, overlap, section.code)
    assert len(cut) > 4
    assert all(len(passage) <= 300 for passage in cut)
    kept = {line: None for passage in cut for line in passage.split("\n")}
    assert [line for line in kept if line and line in body] == list(filter(None, body))


@pytest.mark.parametrize(
    ("headings", "ids"),
    [
        (("Example", "Example", "Example 2"), ("example", "example-3", "example-2")),
        (("🎉", "🚀", "Section", "Section 2"), ("section", "section-3", "section-4", "section-2")),
        (("C", "C++", "C#"), ("c", "c-2", "c-3")),
    ],
)
def test_every_heading_has_an_id_of_its_own(tmp_path: Path, headings: tuple[str, ...], ids: tuple[str, ...]) -> None:
    for name in ("a.md", "b/a.md"):
        written(tmp_path, name, "".join(f"# {heading}\n\ntext\n\n" for heading in headings))
    assert [chunk.id for chunk in read(tmp_path)] == [f"{name}#{slug}" for name in ("a.md", "b/a.md") for slug in ids]


def test_a_heading_without_a_text_is_kept(tmp_path: Path) -> None:
    text = "# Guide\n\n## Empty\n\n## Full\n\ntext\n\n#\n\n# Last *one*\n"
    chunks = read(written(tmp_path, "a.md", text))
    assert [(chunk.title, chunk.text) for chunk in chunks] == [
        ("Guide > Empty", "Empty"),
        ("Guide > Full", "text"),
        ("Last *one*", "Last *one*"),
    ]


WORD = st.text(alphabet="abcxyzäß漢字09", min_size=1, max_size=6)
WORDS = st.lists(WORD, min_size=1, max_size=30).map(" ".join)
BLOCKS = st.one_of(
    WORDS,
    st.builds("{} {}".format, st.sampled_from(["#", "##", "###", "-", "1.", ">", "   "]), WORDS),
    st.builds("{}\n{}".format, WORDS, st.sampled_from(["===", "---"])),
    st.builds("```\n{}\n\n    {}\n```".format, WORDS, WORDS),
    st.builds("- {}\n\n  ~~~\n  {}\n\n      {}\n  ~~~".format, WORDS, WORDS, WORDS),
    st.builds("{}: {}".format, WORD, WORDS),
    st.builds("| {} | {} |\n| --- | --- |\n| {} | {} |".format, WORD, WORD, WORD, WORD),
    st.sampled_from(["---", "***", "...", "+++", "```", "<div>", "<!-- x -->", "\r", "#", ""]),
)


@pytest.mark.slow
@given(st.lists(BLOCKS, max_size=12), st.sampled_from(["\n", "\n\n", "\r\n"]), st.booleans())
def test_no_word_of_the_body_is_lost(
    tmp_path_factory: pytest.TempPathFactory, blocks: list[str], between: str, headings: bool
) -> None:
    front = "---\ntitle: T\n---\n"
    path = tmp_path_factory.mktemp("md") / "a.md"
    path.write_bytes((front + between.join(blocks)).encode())
    found = [r.chunk for r in load(path, reading=ReadOptions(size=100, headings=headings))]
    kept = " ".join(f"{chunk.title} {chunk.text}" for chunk in found)
    assert set(re.findall(r"\w+", " ".join(blocks))) <= set(re.findall(r"\w+", kept))
    assert len({chunk.id for chunk in found}) == len(found)


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
        ("aa\n\nbb", 10, ["aa\n\nbb"]),
        ("aa\n\nbb", 5, ["aa", "bb"]),
        ("One two. Three four.", 12, ["One two.", "Three four."]),
        ("A. bbbb cccc dd", 10, ["A. bbbb", "cccc dd"]),
    ],
)
def test_passages_are_packed_and_split_at_the_best_place(text: str, longest: int, expected: list[str]) -> None:
    assert passages(text, longest) == expected


@given(st.text(st.sampled_from("ab.! \n\t")), st.integers(1, 20))
def test_passages_lose_only_white_space(text: str, longest: int) -> None:
    found = passages(text, longest)
    assert "".join("".join(found).split()) == "".join(text.split())
    assert all(0 < len(passage) <= longest for passage in found)
