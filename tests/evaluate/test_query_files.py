"""BEIR files: what is read, and errors with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

import ragfilter as rf
from ragfilter.errors import InputError
from ragfilter.evaluate import query_files
from ragfilter.evaluate.query_sets import load_files as load
from ragfilter.text.titles import query_id

QUERIES = '{"_id": "q1", "text": "one"}\n{"_id": "q2", "text": "two"}\n'
QRELS = "query-id\tcorpus-id\tscore\nq1\ta\t2\nq1\tb\t0\nq2\tc\t1\n"


def files(folder: Path, queries: str, qrels: str) -> tuple[Path, Path]:
    paths = folder / "queries.jsonl", folder / "qrels.tsv"
    for path, text in zip(paths, (queries, qrels), strict=True):
        path.write_text(text, encoding="utf-8", newline="")
    return paths


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
        ('id,text\n1,"How\n2,one\n3,two\n', r"q\.csv, line \d: a quote is not closed"),
    ):
        path.write_text(text, "utf-8")
        with pytest.raises(InputError, match=message):
            query_files.read_questions(path)


def test_columns_that_are_not_read_are_named(tmp_path: Path) -> None:
    path, notes = tmp_path / "q.csv", list[str]()
    path.write_text("id,question,chunk\n1,one,a\n", "utf-8")
    assert query_files.read_import(path, None, tell=notes.append)[0] == {"1": "one"}
    assert notes == [f"{path}: columns left out: chunk"]
    path.write_text("", "utf-8")
    with pytest.raises(InputError, match="contains no questions"):
        query_files.read_import(path, None, tell=notes.append)
    assert len(notes) == 1


def test_reads_what_other_tools_write(tmp_path: Path) -> None:
    queries = '\ufeff{"id": 7, "text": "seven", "metadata": {}}\r\n\r\n'
    labels = query_files.read_labels(*files(tmp_path, queries, "7\tx\t1\r\n7\tx\t1\r\n"))
    assert (labels.queries, labels.qrels) == ({"7": "seven"}, {"7": {"x": 1}})


def test_public_forms_of_qrels(tmp_path: Path) -> None:
    for text, expected in [
        # trec_eval, and what trackers of other kinds put into the second column
        ("19335 Q0 1037798 2\n19335 Q0 1274615 0\n", {"19335": {"1037798": 2, "1274615": 0}}),
        ("q1 0 a 2\nq1\t0\tb\t-1\nq1 0 d -2\n", {"q1": {"a": 2, "b": 0, "d": 0}}),
        (" q2  0  c  1 \r\nq2\t0  d\t 1\r\n", {"q2": {"c": 1, "d": 1}}),
        ("q1\t0 a\t2\nq1 0\tb\t2\nq1\tQ7\tc 2", {"q1": {"a": 2, "b": 2, "c": 2}}),
        # NTCIR's three columns, and its grades
        ("0001 clueweb-0 L2\n0001 clueweb-1 L0", {"0001": {"clueweb-0": 2, "clueweb-1": 0}}),
        ("q1 a 1\nq1  b\t2\n", {"q1": {"a": 1, "b": 2}}),
        # grades as tables write them
        ("q1 0 a 1.0\nq1\t0\tb\t2.0\nq1\tc\t0.0\nq1 d +1\nq1 e -1.0", {"q1": {"a": 1, "b": 2, "c": 0, "d": 1, "e": 0}}),
        # headers
        ("query-id\tcorpus-id\tscore\nq1\ta\t1\n", {"q1": {"a": 1}}),
        ("# qid\n\nquery id\tcorpus id\tscore\nq1\ta\t1\n", {"q1": {"a": 1}}),
        # remarks after the columns, and ids with a #
        (
            "2 0 e 1 # remark\n2 0 f 0 #\n2 0 g 1 #5 of 7\n2 h 1 # 2\n2 i 1 #2",
            {"2": {"e": 1, "f": 0, "g": 1, "h": 1, "i": 1}},
        ),
        (
            "q1\tdoc a\t2\t# sure\nq1\tdoc b\t1 # so so\nq1\t0\tdoc c\t0\t#no\n",
            {"q1": {"doc a": 2, "doc b": 1, "doc c": 0}},
        ),
        (
            "q1 #a 1\nq1 0 #b 2 # by hand\nq1\tdoc 1 #c\t1\nq1 0 d#1 1\nq1 #e 0 # no # yes",
            {"q1": {"#a": 1, "#b": 2, "doc 1 #c": 1, "d#1": 1, "#e": 0}},
        ),
        # Tabs alone: an id may hold spaces.
        ("q 1\t7 a\t1\nq1\tdoc a\t2\nq1\t0\tdoc b\t1", {"q 1": {"7 a": 1}, "q1": {"doc a": 2, "doc b": 1}}),
        # TREC's diversity task judges a document once for each subtopic.
        ("201 1 a 0\n201 2 a 3\n201 3 a 1\n201 1 b 1", {"201": {"a": 3, "b": 1}}),
    ]:
        path = tmp_path / "qrels.txt"
        path.write_text(text, "utf-8", newline="")
        assert query_files.read_qrels(path) == expected


@pytest.mark.parametrize("text", ["q1\ta\tyes\n", "q1 0 a relevant\n", "q1\ta\tyes\nq1\tb\t1\n", "cat\tdoc\tyes\n"])
def test_a_first_line_is_a_header_only_if_it_names_columns(tmp_path: Path, text: str) -> None:
    path = tmp_path / "qrels.txt"
    path.write_text(text, "utf-8")
    with pytest.raises(InputError, match=r"line 1: the score '(yes|relevant)' is not a whole"):
        query_files.read_qrels(path)
    path.write_text("query-id\tcorpus-id\tscore\n", "utf-8")
    assert query_files.read_qrels(path) == {}


def test_comments_in_qrels_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "qrels.txt"
    path.write_text("  # judged by hand\nq1 0 a 1 # sure\n#q1 0 b 1\n\t#\n", "utf-8")
    assert query_files.read_qrels(path) == {"q1": {"a": 1}}


def test_labels_of_unknown_queries_are_left_out_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    labels = query_files.read_labels(*files(tmp_path, QUERIES, QRELS + "q9\tz\t1\n"))
    assert set(labels.qrels) == {"q1", "q2"}
    assert "q9" in caplog.text


def test_a_label_that_is_repeated_counts_once_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    labels = query_files.read_labels(*files(tmp_path, QUERIES, QRELS + "q1\ta\t2\n"))
    assert labels.qrels == {"q1": {"a": 2, "b": 0}, "q2": {"c": 1}}
    assert "qrels.tsv repeats 1 label, the first in line 5; each counts once" in caplog.text


@pytest.mark.parametrize(
    ("queries", "qrels", "message"),
    [
        ('{"_id": "q1", "text": "one"}\n{oops', QRELS, "queries.jsonl, line 2: this is not valid JSON"),
        ('{"_id": [], "text": "one"}\n', QRELS, "queries.jsonl, line 1: the _id is not a string"),
        (QUERIES + '{"_id": "q1", "text": "x"}', QRELS, "line 3: the id 'q1' appears twice"),
        ("\n", QRELS, "queries.jsonl contains no questions"),
        (QUERIES, "query-id\tcorpus-id\tscore\nq1\ta\n", "qrels.tsv, line 2 has 2 columns"),
        (QUERIES, "q1,a,1\n", "qrels.tsv, line 1 has 1 column."),
        (QUERIES, "q1\ta\t1.5\n", "qrels.tsv, line 1: the score '1.5' is not a whole number"),
        (QUERIES, "q1 0 a 1\nq1 0 a 2\n", "line 2: 'a' already has the label 1 for 'q1'"),
        (QUERIES, f"q1\ta\t{2**63}\n", "qrels.tsv, line 1: the score '9223372036854775808' is too"),
        (QUERIES, f"q1\ta\t{'9' * 400}\n", "qrels.tsv, line 1: the score '999"),
        (QUERIES, "Q0\t0\t\t1\n", "qrels.tsv, line 1 has no id"),
        (QUERIES, "q 1\t\t1\n", "qrels.tsv, line 1 has no id"),
        (QUERIES, "q1\t1\t \t1\n", "qrels.tsv, line 1 has no id"),
        (QUERIES, "", "None of the queries in"),
    ],
)
def test_bad_files_are_named_with_their_line(tmp_path: Path, queries: str, qrels: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        query_files.read_labels(*files(tmp_path, queries, qrels))
    assert message in raised.value.message
    assert raised.value.remedy


def test_queries_are_in_whole_characters(tmp_path: Path) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text('{"_id": "\\udcff", "text": "\\ud83d\\ude00 \\ud83d"}')
    assert query_files.read_questions(path) == {"\ufffd": "😀 \ufffd"}


def test_a_missing_file_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    queries, qrels = files(tmp_path, QUERIES, QRELS)
    with pytest.raises(InputError, match=r"nowhere\.tsv cannot be read"):
        query_files.read_labels(queries, tmp_path / "nowhere.tsv")
    qrels.write_bytes(b"q1\ta\t1\nq1\t\xff\t1\n")
    with pytest.raises(InputError, match="line 2: not UTF-8"):
        query_files.read_labels(queries, qrels)
