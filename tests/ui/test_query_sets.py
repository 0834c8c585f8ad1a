"""The questions of a set as text: one line each, whatever line breaks they contain."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest

from ragfilter.evaluate.labelled_queries import Labels
from ragfilter.evaluate.query_files import read_labels
from ragfilter.stores.label_book import query_id
from ragfilter.ui.evaluate.questions_and_labels import lines, one_line, packed, with_ids


@pytest.mark.parametrize(
    "asked",
    [
        "first line\nsecond line",
        "first line\r\n\r\nsecond line",
        "first\u2028second",
        "first\u0085second",
        "first\fsecond",
        " one line ",
    ],
)
def test_a_question_keeps_its_id_and_wording_whatever_is_edited_beside_it(asked: str) -> None:
    before = {"q1": asked, "q2": "x"}
    shown = "\n".join(map(one_line, before.values()))
    assert len(shown.split("\n")) == 2
    edited = lines(f"{shown}\nnew")
    assert with_ids(edited, before) == {"q1": asked.strip(), "q2": "x", query_id("new"): "new"}


def test_an_llms_labels_are_exported_in_files_of_their_own() -> None:
    people, by_llm = (Labels({"q1": "who bakes?"}, {"q1": {c: 1}}) for c in ("c1", "c2"))
    with ZipFile(BytesIO(packed(people, by_llm))) as archive:
        assert archive.read("qrels.txt") == b"q1 0 c1 1\n"
        assert archive.read("qrels-llm.txt") == b"q1 0 c2 1\n"
        assert "qrels-llm.tsv" in archive.namelist()


def test_an_id_that_trec_cannot_hold_is_exported_as_beir_alone() -> None:
    with ZipFile(BytesIO(packed(Labels({"q1": "who bakes?"}, {"q1": {"c 1": 2}})))) as archive:
        assert archive.namelist() == ["queries.jsonl", "qrels.tsv"]


def test_the_export_holds_the_labels_in_both_forms(tmp_path: Path) -> None:
    given = Labels({"q1": "who bakes?", "q2": "who rows?"}, {"q1": {"c1": 2, "c2": 0}})
    with ZipFile(BytesIO(packed(given))) as archive:
        assert archive.namelist() == ["queries.jsonl", "qrels.tsv", "qrels.txt"]
        archive.extractall(tmp_path)
    assert (tmp_path / "qrels.txt").read_text("utf-8") == "q1 0 c1 2\nq1 0 c2 0\n"
    for qrels in ("qrels.tsv", "qrels.txt"):
        assert read_labels(tmp_path / "queries.jsonl", tmp_path / qrels) == given
