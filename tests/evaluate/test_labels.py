"""Labels whose ids are not in the collection."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from ragfilter.errors import InputError
from ragfilter.evaluate import labelled_queries, query_sets
from ragfilter.evaluate.labelled_queries import Labels, missing
from ragfilter.evaluate.query_sets import are_files
from ragfilter.stores.label_book import LONGEST_NAME

QUERIES = {"q1": "one", "q2": "two"}


def test_labelled_ids_that_are_not_there_are_named() -> None:
    for named, gone in [("ab", ()), ("axxy", ("x", "y")), ("", ())]:
        assert missing(named, {"a", "b"}, collection="c") == gone


def test_labels_of_another_collection_are_refused(snapshot: SnapshotAssertion) -> None:
    with pytest.raises(InputError) as caught:
        missing(["x", "y"], {"a"}, collection="demo")
    assert str(caught.value) == snapshot


@pytest.mark.parametrize("letter", ["x", "😀"])
@pytest.mark.parametrize("length", [1, 80, LONGEST_NAME, 5000])
def test_the_name_of_a_set_is_no_file_s_however_long(letter: str, length: int) -> None:
    # A file name may have 255 bytes, a set's name more.
    assert not are_files(letter * length, None)


def test_the_demo_has_its_own_labels() -> None:
    made = query_sets.load_files("demo", "demo")
    assert len(made.queries) >= 60
    assert set(made.qrels) <= set(made.queries)
    with pytest.raises(InputError, match="not in a file"):
        query_sets.load_files("demo", "qrels.tsv")


def test_choosing_among_queries() -> None:
    given = Labels({"a": "1", "b": "2", "c": "3"}, {"a": {"x": 1}, "b": {"x": 1}})
    assert set(labelled_queries.choose(given).queries) == {"a", "b", "c"}
    assert set(labelled_queries.choose(given, only=["a"]).queries) == {"a"}
    chosen = labelled_queries.choose(given, only=["b", "c"])
    assert (set(chosen.queries), set(chosen.qrels)) == ({"b", "c"}, {"b"})
    assert set(labelled_queries.choose(given, leave_out=["a"]).queries) == {"b", "c"}
    for name in ("only", "leave_out"):
        with pytest.raises(InputError, match="no query 'zz'"):
            labelled_queries.choose(given, **{name: ["zz"]})
    with pytest.raises(InputError, match="No query with a label"):
        labelled_queries.choose(given, only=["c"])
