"""Files to records: JSON lines, CSV and other sources; errors name file and line."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from written import read, written

from ragfilter.errors import InputError
from ragfilter.ingest.load import load
from ragfilter.ingest.records import ReadOptions
from ragfilter.model import Chunk

# --- JSON lines


def test_jsonl_with_beir_ids_empty_lines_and_a_byte_order_mark(tmp_path: Path) -> None:
    lines = '\ufeff{"_id": "1", "text": "a\u2028b", "metadata": {}}\r\n\n{"id": 2, "text": "c"}'
    path = written(tmp_path, "x.jsonl", lines)
    assert read(path) == [Chunk("1", "a\u2028b", source="x.jsonl"), Chunk("2", "c", source="x.jsonl")]
    assert [r.place for r in load(path)] == ["x.jsonl, line 1", "x.jsonl, line 3"]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{broken", r"not valid JSON \(Expecting property name .* at column 2\)\."),
        ('"text"', "not a JSON object"),
        ("[" * 100_000, "maximum recursion"),
        ('{"id": ' + "1" * 5000 + ', "text": "t"}', "Exceeds the limit"),
        ('{"text": "t"}', "the id is missing"),
        ('{"id": "b"}', "the text is missing"),
        ('{"id": "b", "text": " "}', "the text is missing"),
        ('{"id": "b", "text": 5}', "the text must be a string, not a number"),
        ('{"id": "b", "text": null}', "the text is missing"),
        ('{"id": ["b"], "text": "t"}', "the id must be a string, not a list"),
    ],
)
def test_a_bad_line_is_told_with_file_and_line(tmp_path: Path, line: str, what: str) -> None:
    path = written(tmp_path, "x.jsonl", '{"id": "a", "text": "t"}\n\n' + line)
    with pytest.raises(InputError, match=rf"^x\.jsonl, line 3: .*{what}"):
        read(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.jsonl")
    with pytest.raises(InputError, match="not a file or folder"):
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
        Chunk("a", "one\ntwo", "T", source="x.csv", refs=("b", "c"), clearance=2, rule='{"contain":"x"}'),
        Chunk("b", "plain\u2028text, with; all", source="x.csv"),
    ]


@pytest.mark.parametrize(
    ("field", "cell", "expected"),
    [
        ("page", "NaN", None),
        ("page", "NA", None),
        ("page", "3.0", 3),
        ("clearance", "NaN", 0),
        ("clearance", "2.0", 2),
        ("clearance", "NA", None),
        ("clearance", "nan?", None),
        ("clearance", "null", None),
        ("department", "NaN", None),
        ("department", "nan", "nan"),
        ("title", "NaN", "NaN"),
    ],
)
@pytest.mark.parametrize("named", [True, False])
def test_cells_for_what_a_table_has_no_value_for(
    tmp_path: Path, field: str, cell: str, expected: object, named: bool
) -> None:
    path = written(tmp_path, "x.csv", f"id,text,{'own' if named else field}\na,t,{cell}\n")
    columns = {"id": "id", "text": "text", field: "own"} if named else {}
    (record,) = load(path, reading=ReadOptions(columns=columns))
    assert getattr(record.chunk, field) == expected


@pytest.mark.parametrize("cell", ["N/A", "none", "NAN", "iv", "null"])
def test_a_cell_that_is_no_page_is_refused(tmp_path: Path, cell: str) -> None:
    with pytest.raises(InputError, match="is not a whole number"):
        read(written(tmp_path, "x.csv", f"id,text,page\na,t,{cell}\n"))


@pytest.mark.parametrize(
    "content",
    [
        'id;"text";"a, b, c";"d, e"\na;one, two;x;y\n',
        '"first,\nsecond,\nthird";id;text\nx;a;one, two\n',
        'id|text\na|"one, two"\n',
        'sep=;\r\n"a,b,c";id;text\r\nx;a;one, two\r\n',
        '\ufeff"id";"text"\r\n"a";"one, two"\r\n',
        'id,text,5" wide\na,"one, two",x\n',
        'id,text,"a;b;c;d"\na,"one, two",x\n',
    ],
)
def test_the_header_outside_quotes_says_what_separates(tmp_path: Path, content: str) -> None:
    (chunk,) = read(written(tmp_path, "x.csv", content))
    assert (chunk.id, chunk.text) == ("a", "one, two")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("Body\nOne, two; three\n\nFour\tfive\n", ["One, two; three", "Four\tfive"]),
        ('"Body"\n"One, ""two"""\n"three\n\nfour"\n', ['One, "two"', "three\n\nfour"]),
    ],
)
def test_a_csv_of_one_column(tmp_path: Path, content: str, expected: list[str]) -> None:
    path = written(tmp_path, "x.csv", content)
    found = load(path, reading=ReadOptions(columns={"text": "Body"}))
    assert [(r.chunk.id, r.chunk.text) for r in found] == [
        (f"x.csv#{n}", text) for n, text in enumerate(expected, start=1)
    ]


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ("title,text\nT,t", "line 1: the header"),
        ("id,text,text\na,t,t", "line 1: the header names the field 'text' twice"),
        ("id,text\na,t\nb,t,more", "line 3: 3 cells"),
        ("id,text\na,t\n,t", "line 3: the id"),
        ('id,text\na,"t" x', "line 2: "),
    ],
)
def test_a_bad_csv_is_told_with_file_and_line(tmp_path: Path, content: str, where: str) -> None:
    with pytest.raises(InputError, match=rf"^x\.csv, {where}"):
        read(written(tmp_path, "x.csv", content))


# --- sources


def test_a_folder_is_read_in_order_and_below(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    written(tmp_path, "b.txt", "text b")
    written(tmp_path, "a/x.md", "text x")
    written(tmp_path, "c.JSONL", '{"id": "c", "text": "text c"}')
    written(tmp_path, "image.png", b"\x89PNG")
    written(tmp_path, ".hidden.txt", "no")
    written(tmp_path, ".git/config.txt", "no")
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    with caplog.at_level(logging.WARNING):
        chunks = read(tmp_path)
    assert [(c.id, c.source) for c in chunks] == [("b.txt#1", "b.txt"), ("c", "c.JSONL"), ("a/x.md#x", "a/x.md")]
    assert "1 file of another kind skipped: image.png" in caplog.text


def test_the_corpus_of_a_beir_folder_is_indexed_without_its_questions(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for folder in (tmp_path, tmp_path / "nested"):
        written(folder, "corpus.jsonl", f'{{"_id": "{folder.name}", "text": "Owls."}}')
        written(folder, "queries.jsonl", '{"_id": "1", "text": "Owls?"}')
        written(folder / "qrels", "test.txt", "1 0 1 1")
    assert len(read(tmp_path)) == 2
    assert (
        "questions and labels are skipped: queries.jsonl, nested/queries.jsonl, "
        "nested/qrels/test.txt, qrels/test.txt. Import them as a query set: `labels import`"
    ) in caplog.text


@pytest.mark.parametrize("name", ["nothing.jsonl", "demo2", "file.docx", "empty"])
def test_a_source_that_cannot_be_read_is_told_with_what_can(tmp_path: Path, name: str) -> None:
    written(tmp_path, "file.docx", "PK")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError) as error:
        read(tmp_path / name)
    assert name in error.value.message
    assert ".jsonl" in error.value.remedy
    assert "demo" in error.value.remedy
