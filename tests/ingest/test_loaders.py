"""Every input format to validated records; errors name file and line."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import ends_soon

from ragfilter.errors import InputError
from ragfilter.ingest.load import load
from ragfilter.ingest.markdown import load_markdown, sections
from ragfilter.ingest.passages import passages
from ragfilter.ingest.records import Record, to_record
from ragfilter.model import Chunk


def read(path: Path) -> list[Chunk]:
    return [record.chunk for record in load(path)]


def written(tmp_path: Path, name: str, content: str | bytes) -> Path:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    path.write_bytes(data)
    return path


def record(**fields: Any) -> Record:
    return to_record({"id": "a", "text": "t", **fields}, place="f.jsonl, line 1")


# --- records


def test_a_record_with_every_field() -> None:
    found = record(
        title="T", type="special", source="book.md", page=7, refs=["b", "c", "b"], clearance=2,
        department="ops", query_must={"contain": "x", "match": "word"},
    )  # fmt: skip
    assert found.warnings == ()
    assert found.chunk == Chunk(
        "a", "t", "T", "special", "book.md", 7, ("b", "c"), 2, "ops", '{"contain":"x"}'
    )


def test_a_record_with_the_least() -> None:
    assert record().chunk == Chunk("a", "t")
    nothing = dict.fromkeys(("title", "page", "refs", "clearance", "department", "query_must"))
    assert record(**nothing).chunk == Chunk("a", "t")


@pytest.mark.parametrize(
    ("given", "level", "as_given"),
    [
        (3, 3, None),
        ("3", 3, None),
        (" 0 ", 0, None),
        ("", 0, None),
        ("abc", None, "abc"),
        (1.5, None, "1.5"),
        (-1, None, "-1"),
        ("-1", None, "-1"),
        (True, None, "true"),
        ([1], None, "[1]"),
        ("٣", None, "٣"),
        (2**63, None, str(2**63)),
    ],
)
def test_clearance_that_cannot_be_read_hides_the_chunk_and_is_told(
    given: object, level: int | None, as_given: str | None
) -> None:
    found = record(clearance=given)
    assert (found.chunk.clearance, found.clearance_as_given) == (level, as_given)
    assert bool(found.warnings) == (level is None)
    assert all("f.jsonl, line 1" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("given", "department", "hidden"),
    [("ops", "ops", False), (" ops ", "ops", False), (5, "5", False), ("", None, False),
     (["ops"], None, True), (True, None, True), ({"a": 1}, None, True)],
)  # fmt: skip
def test_department_that_cannot_be_read_hides_the_chunk(
    given: object, department: str | None, hidden: bool
) -> None:
    chunk = record(department=given, clearance=0).chunk
    assert chunk.department == department
    assert (chunk.clearance is None) == hidden


@pytest.mark.parametrize(
    ("given", "stored", "warned"),
    [
        ({"contain": "x"}, '{"contain":"x"}', False),
        ('{ "contain" : "x" }', '{"contain":"x"}', False),
        ({}, None, False),
        ("", None, False),
        ("{broken", "{broken", True),
        ({"contian": "x"}, '{"contian": "x"}', True),
        (["x"], '["x"]', True),
        (5, "5", True),
    ],
)
def test_an_invalid_rule_is_kept_and_told(given: object, stored: str | None, warned: bool) -> None:
    found = record(query_must=given)
    assert found.chunk.rule == stored
    assert bool(found.warnings) == warned


@pytest.mark.parametrize(
    ("given", "refs"),
    [
        (["b", 3], ("b", "3")),
        ("b;c", ("b", "c")),
        ("b, c,", ("b", "c")),
        ('["b;1", "c"]', ("b;1", "c")),
        ("a b", ("a b",)),
        ("", ()),
    ],
)
def test_references(given: object, refs: tuple[str, ...]) -> None:
    assert record(refs=given).chunk.refs == refs


@pytest.mark.parametrize(
    "fields",
    [
        {"id": None},
        {"id": ""},
        {"id": "  "},
        {"id": True},
        {"id": 1.5},
        {"id": ["a"]},
        {"text": None},
        {"text": ""},
        {"text": " \n"},
        {"text": 5},
        {"text": ["t"]},
        {"title": ["T"]},
        {"type": {"a": 1}},
        {"source": True},
        {"page": "vii"},
        {"page": -1},
        {"page": 1.5},
        {"refs": {"b": 1}},
        {"refs": [["b"]]},
        {"refs": "[broken"},
        {"refs": [True]},
    ],
    ids=str,
)
def test_an_unusable_field_is_told_with_its_place(fields: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"^f\.jsonl, line 1: ") as error:
        record(**fields)
    assert error.value.remedy


def test_numbers_are_taken_as_ids_and_titles() -> None:
    chunk = record(id=7, title=3).chunk
    assert (chunk.id, chunk.title) == ("7", "3")


@pytest.mark.parametrize("no_id", [{}, {"id": None}, {"id": ""}])
def test_where_id_is_empty_the_other_name_counts(no_id: dict[str, Any]) -> None:
    assert to_record({**no_id, "_id": "a", "text": "t"}, place="p").chunk == Chunk("a", "t")


def test_whole_numbers_of_numpy_are_taken_as_ids_pages_and_references() -> None:
    chunk = record(id=np.int64(4), page=np.int64(3), refs=[np.int32(5), 6]).chunk
    assert (chunk.id, chunk.page, chunk.refs) == ("4", 3, ("5", "6"))
    assert type(chunk.page) is int
    for wrong in (np.float64(3.0), np.bool_(True), np.int64(-1)):
        with pytest.raises(InputError, match="is not a whole number"):
            record(page=wrong)
    levels = (
        np.int64(2),
        2.0,
        np.float64(2.0),
        np.bool_(True),
        True,
        1.5,
        float("nan"),
        float("inf"),
    )
    read = [record(clearance=level).chunk.clearance for level in levels]
    assert read == [2, 2, 2, None, None, None, None, None]


def test_a_title_alone_is_the_text() -> None:
    assert to_record({"_id": "a", "title": "T", "text": ""}, place="p").chunk == Chunk(
        "a", "T", "T"
    )


def test_every_field_is_in_whole_characters() -> None:
    half, pair = "x\ud83d", "\ud83d\ude00"
    found = record(
        id=half, text=half, title=pair, type=half, source=pair, refs=[half, pair], clearance=half,
        department=half, query_must=half,
    )  # fmt: skip
    assert found.chunk == Chunk(
        "x\ufffd", "x\ufffd", "😀", "x\ufffd", "😀", None, ("x\ufffd", "😀"), None, "x\ufffd",
        "x\ufffd",
    )  # fmt: skip
    assert found.clearance_as_given == "x\ufffd"
    by_name = to_record({"id": "a", "text": "t", "refs": '["\\ud83d"]'}, place="p", source=half)
    assert (by_name.chunk.source, by_name.chunk.refs) == ("x\ufffd", ("\ufffd",))


def test_a_file_whose_name_is_no_text_is_read(tmp_path: Path) -> None:
    folder = written(tmp_path, "folder/x\udcff.txt", "Trolls fear fire.").parent
    (chunk,) = read(folder)
    assert (chunk.id, chunk.title, chunk.source) == ("x\ufffd.txt#1", "x\ufffd", "x\ufffd.txt")


def test_the_fingerprint_knows_every_field() -> None:
    changes: list[dict[str, Any]] = [
        {}, {"id": "b"}, {"text": "u"}, {"title": "T"}, {"type": "x"}, {"source": "s"}, {"page": 1},
        {"refs": ["b"]}, {"clearance": 1}, {"clearance": "x"}, {"clearance": "y"},
        {"department": "ops"}, {"query_must": {"contain": "x"}},
    ]  # fmt: skip
    assert len({record(**change).fingerprint for change in changes}) == len(changes)
    assert record().fingerprint == record(clearance=0, department="").fingerprint


FIELDS = ["id", "_id", "text", "title", "type", "source", "page", "refs", "clearance", "department"]
FIELD = st.sampled_from([*FIELDS, "query_must", "other"])
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=5,
)


@given(st.dictionaries(FIELD, VALUE))
def test_any_mapping_is_a_storable_record_or_one_clear_error(raw: dict[str, Any]) -> None:
    error: InputError | None = None
    try:
        chunk = to_record(raw, place="here").chunk
    except InputError as caught:
        error = caught
    if error is not None:
        assert error.message.startswith("here: ")
        assert error.remedy
        return
    assert chunk.id
    assert chunk.text.strip()
    stored = [chunk.id, chunk.text, chunk.title, chunk.type, chunk.source, *chunk.refs]
    for text in (*stored, chunk.rule or "", chunk.department or ""):
        text.encode("utf-8")


def test_the_seeds_record_form_is_read_as_it_is() -> None:
    """Filtering, layer 1: id, title, content, special_handler, metadata, query_must."""
    raw = {
        "id": "m-6", "title": "Attack matrix", "content": "Armor class 6 ...",
        "special_handler": "CombatTablesHandler", "year": float("nan"),
        "query_must": {"contain_one_of": [["cleric"], ["ac 6"]]},
    }  # fmt: skip
    chunk = to_record(raw, place="p").chunk
    assert chunk.text == "Armor class 6 ..."
    assert chunk.rule == '{"contain_one_of":[["cleric"],["ac 6"]]}'
    assert chunk.metadata == {"special_handler": "CombatTablesHandler", "year": None}


# --- JSON lines


def test_jsonl_with_beir_ids_empty_lines_and_a_byte_order_mark(tmp_path: Path) -> None:
    lines = '\ufeff{"_id": "1", "text": "a\u2028b", "metadata": {}}\r\n\n{"id": 2, "text": "c"}'
    path = written(tmp_path, "x.jsonl", lines)
    assert read(path) == [
        Chunk("1", "a\u2028b", source="x.jsonl"),
        Chunk("2", "c", source="x.jsonl"),
    ]
    assert [r.place for r in load(path)] == ["x.jsonl, line 1", "x.jsonl, line 3"]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{broken", r"not JSON \(Expecting property name .* at column 2\)\."),
        ('"text"', "not a JSON object"),
        ("[]", "not a JSON object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"id": ' + "1" * 5000 + ', "text": "t"}', "too many digits"),
        ('{"text": "t"}', "the id is missing"),
        ('{"id": "b"}', "the text is missing"),
        ('{"id": "b", "text": " "}', "the text is missing"),
        ('{"id": "b", "text": 5}', "the text must be a string, not a number"),
        ('{"id": "b", "text": 0.5}', "the text must be a string, not a number"),
        ('{"id": "b", "text": ["t"]}', r"the text must be a string, not a list"),
        ('{"id": "b", "text": {"t": 1}}', "the text must be a string, not an object"),
        ('{"id": "b", "text": true}', "the text must be a string, not true"),
        ('{"id": "b", "text": null}', "the text must be a string, not null"),
        ('{"id": ["b"], "text": "t"}', "the id must be a string, not a list"),
    ],
)
def test_a_bad_line_is_told_with_file_and_line(tmp_path: Path, line: str, what: str) -> None:
    path = written(tmp_path, "x.jsonl", '{"id": "a", "text": "t"}\n\n' + line)
    with pytest.raises(InputError, match=rf"^x\.jsonl, line 3: .*{what}"):
        read(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.jsonl")
    with pytest.raises(InputError, match="neither a file nor a folder"):
        read(tmp_path / "x.jsonl")


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.md", "x.txt"])
def test_bytes_that_are_not_utf8_are_told_with_their_line(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, name, b"\n" + "id,täxt".encode("latin-1"))
    with pytest.raises(InputError, match="line 2: not UTF-8 at byte 5"):
        read(path)


# --- CSV


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_csv_with_quotes_line_breaks_and_empty_cells(tmp_path: Path, separator: str) -> None:
    rows = [
        ["id", "text", "title", "clearance", "refs", "query_must"],
        ["a", '"one\ntwo"', "T", "2", '"b;c"', '"{""contain"": ""x""}"'],
        ["", "", "", "", "", ""],
        ["b", '"plain\u2028text, with; all"', "", "", "", ""],
    ]
    path = written(tmp_path, "x.csv", "\r\n".join(separator.join(row) for row in rows))
    assert read(path) == [
        Chunk("a", "one\ntwo", "T", source="x.csv", refs=("b", "c"), clearance=2,
              rule='{"contain":"x"}'),
        Chunk("b", "plain\u2028text, with; all", source="x.csv"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ("title,text\nT,t", "line 1: the header"),
        ("id,title\na,T", "line 1: the header"),
        ("id,text,text\na,t,t", "line 1: the header names the field 'text' twice"),
        ("id,text\na,t\nb,t,more", "line 3: 3 cells"),
        ("id,text\na,t\n,t", "line 3: the id"),
        ("id,text\na,t\nb", "line 3: the text"),
        ('id,text\na,"t" x', "line 2: "),
        ('id,text\na,"never closed', "line 2: "),
    ],
)
def test_a_bad_csv_is_told_with_file_and_line(tmp_path: Path, content: str, where: str) -> None:
    with pytest.raises(InputError, match=rf"^x\.csv, {where}"):
        read(written(tmp_path, "x.csv", content))


def test_csv_cells_of_a_megabyte(tmp_path: Path) -> None:
    (chunk,) = read(written(tmp_path, "x.csv", "id,text\na," + "x" * 10**6))
    assert len(chunk.text) == 10**6


@pytest.mark.parametrize("content", ["", "\n\n", "id,text", "id,text\n\n"])
def test_a_csv_without_rows_has_no_records(tmp_path: Path, content: str) -> None:
    assert read(written(tmp_path, "x.csv", content)) == []


# --- Markdown and plain text

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


# --- sources


def test_a_folder_is_read_in_order_and_below(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    written(tmp_path, "b.txt", "text b")
    written(tmp_path, "a/x.md", "text x")
    written(tmp_path, "c.JSONL", '{"id": "c", "text": "text c"}')
    written(tmp_path, "image.png", b"\x89PNG")
    written(tmp_path, ".hidden.txt", "no")
    written(tmp_path, ".git/config.txt", "no")
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    with caplog.at_level(logging.WARNING):
        chunks = read(tmp_path)
    assert [(c.id, c.source) for c in chunks] == [
        ("b.txt#1", "b.txt"),
        ("c", "c.JSONL"),
        ("a/x.md#x", "a/x.md"),
    ]
    assert f"{tmp_path}: 1 file of another kind is skipped: image.png" in caplog.text


@pytest.mark.parametrize("name", ["nothing.jsonl", "demo2", "file.docx", "empty"])
def test_a_source_that_cannot_be_read_is_told_with_what_can(tmp_path: Path, name: str) -> None:
    written(tmp_path, "file.docx", "PK")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError) as error:
        read(tmp_path / name)
    assert name in error.value.message
    assert ".jsonl" in error.value.remedy
    assert "demo" in error.value.remedy


def test_the_demo_by_name() -> None:
    records = list(load("demo"))
    assert len(records) >= 400
    assert len({r.chunk.id for r in records}) == len(records)
    assert [w for r in records for w in r.warnings] == []
    assert records[0].place == "demo, record 1"


def test_cranfield(cranfield: Path) -> None:
    chunks = read(cranfield / "corpus.jsonl")
    assert len(chunks) > 1390
    assert all(chunk.text for chunk in chunks)
