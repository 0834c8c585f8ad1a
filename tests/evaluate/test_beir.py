"""BEIR files: what is read, and file and line of what cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

import ragfilter as rf
from ragfilter.errors import InputError
from ragfilter.evaluate import beir, query_files
from ragfilter.evaluate.labels import load
from ragfilter.text.query_id import query_id

QUERIES = '{"_id": "q1", "text": "one"}\n{"_id": "q2", "text": "two"}\n'
QRELS = "query-id\tcorpus-id\tscore\nq1\ta\t2\nq1\tb\t0\nq2\tc\t1\n"


def files(folder: Path, queries: str, qrels: str) -> tuple[Path, Path]:
    paths = folder / "queries.jsonl", folder / "qrels.tsv"
    for path, text in zip(paths, (queries, qrels), strict=True):
        path.write_text(text, encoding="utf-8", newline="")
    return paths


def test_reads_both_files(tmp_path: Path) -> None:
    labels = query_files.read(*files(tmp_path, QUERIES, QRELS))
    assert labels.queries == {"q1": "one", "q2": "two"}
    assert labels.qrels == {"q1": {"a": 2, "b": 0}, "q2": {"c": 1}}


def test_reads_questions_of_every_form(tmp_path: Path) -> None:
    qrels = tmp_path / "qrels.tsv"
    for name, text, i in (
        ("q.csv", "id,question\nq1,one\n", "q1"),
        ("q.csv", "nr;question\n1;one\n", query_id("one")),
        ("q.txt", "one\n\n", query_id("one")),
        ("q.jsonl", '{"text": "one"}\n', query_id("one")),
        ("q.jsonl", '{"query": "one", "query_id": "q1"}\n', "q1"),
    ):
        (tmp_path / name).write_text(text, "utf-8")
        qrels.write_text(f"query-id\tcorpus-id\tscore\n{i}\ta\t2\n", "utf-8")
        assert rf.read_labels(tmp_path / name, qrels).queries == {i: "one"}
        assert load(str(tmp_path / name), str(qrels)).qrels == {i: {"a": 2}}


def test_a_question_in_a_csv_file_stays_whole(tmp_path: Path) -> None:
    path, long = tmp_path / "q.csv", "x" * 200_000
    path.write_text(f'id,text\n1,"How,\nthen?"\n2,{long}\n', "utf-8")
    assert query_files.read_questions(path) == {"1": "How,\nthen?", "2": long}
    for text, message in (
        ("id,text\n1,How, then?\n", r"q\.csv, line 2: 3 cells, but the header names 2"),
        ('id,text\n1,"How\n2,one\n3,two\n', r"q\.csv, line \d: unexpected end of data"),
    ):
        path.write_text(text, "utf-8")
        with pytest.raises(InputError, match=message):
            query_files.read_questions(path)


def test_reads_what_other_tools_write(tmp_path: Path) -> None:
    queries = '\ufeff{"id": 7, "text": "seven", "metadata": {}}\r\n\r\n'
    labels = query_files.read(*files(tmp_path, queries, "7\tx\t1\r\n7\tx\t1\r\n"))
    assert (labels.queries, labels.qrels) == ({"7": "seven"}, {"7": {"x": 1}})


def test_trec_qrels_are_read_beside_beirs(tmp_path: Path) -> None:
    lines = "q1 0 a 2\nq1\t0\tb\t-1\nq1 0 d -2\n q2  0  c  1\n"
    (tmp_path / "qrels.trec").write_text(lines, "utf-8")
    assert beir.read_qrels(tmp_path / "qrels.trec") == {
        "q1": {"a": 2, "b": 0, "d": 0},
        "q2": {"c": 1},
    }
    # Three columns separated by tabs are BEIR's format, whatever they contain.
    (tmp_path / "qrels.tsv").write_text("q 1\t7 a\t1\n", "utf-8")
    assert beir.read_qrels(tmp_path / "qrels.tsv") == {"q 1": {"7 a": 1}}


def test_labels_of_unknown_queries_are_left_out_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    labels = query_files.read(*files(tmp_path, QUERIES, QRELS + "q9\tz\t1\n"))
    assert set(labels.qrels) == {"q1", "q2"}
    assert "q9" in caplog.text


def test_a_label_that_is_repeated_counts_once_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    labels = query_files.read(*files(tmp_path, QUERIES, QRELS + "q1\ta\t2\n"))
    assert labels.qrels == {"q1": {"a": 2, "b": 0}, "q2": {"c": 1}}
    assert "qrels.tsv repeats 1 label, the first in line 5; each counts once" in caplog.text


def test_queries_without_labels_stay_among_the_queries(tmp_path: Path) -> None:
    labels = query_files.read(*files(tmp_path, QUERIES, "q1\ta\t1\n"))
    assert (set(labels.queries), set(labels.qrels)) == ({"q1", "q2"}, {"q1"})


@pytest.mark.parametrize(
    ("queries", "qrels", "message"),
    [
        ('{"_id": "q1", "text": "one"}\n{oops', QRELS, "queries.jsonl, line 2 is not valid JSON"),
        ("[1]\n", QRELS, "queries.jsonl, line 1 is not a JSON object"),
        ('{"_id": [], "text": "one"}\n', QRELS, "queries.jsonl, line 1: the _id is not a string"),
        ('\n{"_id": "q1", "text": " "}\n', QRELS, "queries.jsonl, line 2 has no text"),
        (QUERIES + '{"_id": "q1", "text": "x"}', QRELS, "line 3: the id 'q1' appears twice"),
        ("\n", QRELS, "queries.jsonl contains no queries"),
        ("9" * 5000, QRELS, "queries.jsonl, line 1 is not valid JSON"),
        (QUERIES, "query-id\tcorpus-id\tscore\nq1\ta\n", "qrels.tsv, line 2 has 2 columns"),
        (QUERIES, "q1 a 1\n", "qrels.tsv, line 1 has 1 column."),
        (QUERIES, QRELS + "q1\tz\thigh\n", "qrels.tsv, line 5: the score 'high'"),
        (QUERIES, "q1\ta\t1.0\n", "qrels.tsv, line 1: the score '1.0' is not a whole number"),
        (QUERIES, "q1 0 a 1.0\n", "qrels.tsv, line 1: the score '1.0' is not a whole number"),
        (QUERIES, f"q1\ta\t{2**63}\n", "qrels.tsv, line 1: the score '9223372036854775808' is too"),
        (QUERIES, QRELS + "q1\t\t1\n", "qrels.tsv, line 5 has no id"),
        (QUERIES, QRELS + "q1\ta\t1\n", "line 5: 'a' already has the label 2"),
        (QUERIES, "q8\ta\t1\n", "None of the queries in"),
        (QUERIES, "", "None of the queries in"),
    ],
)
def test_bad_files_are_named_with_their_line(
    tmp_path: Path, queries: str, qrels: str, message: str
) -> None:
    with pytest.raises(InputError) as raised:
        query_files.read(*files(tmp_path, queries, qrels))
    assert message in raised.value.message
    assert raised.value.remedy


def test_queries_are_in_whole_characters(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text('{"_id": "\\udcff", "text": "\\ud83d\\ude00 \\ud83d"}')
    assert beir.read_queries(path) == {"\ufffd": "😀 \ufffd"}


def test_a_missing_file_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    queries, qrels = files(tmp_path, QUERIES, QRELS)
    with pytest.raises(InputError, match=r"nowhere\.tsv cannot be read"):
        query_files.read(queries, tmp_path / "nowhere.tsv")
    qrels.write_bytes(b"q1\ta\t1\nq1\t\xff\t1\n")
    with pytest.raises(InputError, match="line 2: not UTF-8"):
        query_files.read(queries, qrels)
