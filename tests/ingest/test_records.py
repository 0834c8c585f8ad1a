"""A mapping to a validated record: what is kept, repaired, warned about or refused."""

from __future__ import annotations

import base64
import math
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from written import read, written

from ragfilter.errors import InputError
from ragfilter.ingest import records
from ragfilter.ingest.records import Record, to_record
from ragfilter.model import Chunk


def record(**fields: Any) -> Record:
    return to_record({"id": "a", "text": "t", **fields}, place="f.jsonl, line 1")


def test_a_record_with_every_field() -> None:
    found = record(
        title="T",
        type="special",
        source="book.md",
        page=7,
        refs=["b", "c", "b"],
        clearance=2,
        department="ops",
        query_must={"contain": "x", "match": "word"},
    )
    assert found.warnings == ()
    assert found.chunk == Chunk("a", "t", "T", "special", "book.md", 7, ("b", "c"), 2, "ops", '{"contain":"x"}')


@pytest.mark.parametrize(
    ("given", "level", "as_given"),
    [
        (3, 3, None),
        (" 0 ", 0, None),
        ("", 0, None),
        ("abc", None, "abc"),
        (1.5, None, "1.5"),
        (-1, None, "-1"),
        (True, None, "true"),
        ([1], None, "[1]"),
        ("٣", None, "٣"),
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
    [
        ("ops", "ops", False),
        (" ops ", "ops", False),
        (5, "5", False),
        ("", None, False),
        (["ops"], None, True),
        (True, None, True),
        ({"a": 1}, None, True),
    ],
)
def test_department_that_cannot_be_read_hides_the_chunk(given: object, department: str | None, hidden: bool) -> None:
    chunk = record(department=given, clearance=0).chunk
    assert chunk.department == department
    assert (chunk.clearance is None) == hidden


@pytest.mark.parametrize(
    ("given", "stored", "warned"),
    [
        ({"contain": "x"}, '{"contain":"x"}', False),
        ({}, None, False),
        ("", None, False),
        ("{broken", "{broken", True),
        ({"contian": "x"}, '{"contian": "x"}', True),
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
        {"id": True},
        {"id": 1.5},
        {"text": None},
        {"text": 5},
        {"page": "vii"},
        {"page": 1.5},
        {"refs": {"b": 1}},
        {"refs": "[broken"},
    ],
    ids=str,
)
def test_an_unusable_field_is_told_with_its_place(fields: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"^f\.jsonl, line 1: ") as error:
        record(**fields)
    assert error.value.remedy


@pytest.mark.parametrize("no_id", [{}, {"id": None}, {"id": ""}])
def test_where_id_is_empty_the_other_name_counts(no_id: dict[str, Any]) -> None:
    assert to_record({**no_id, "_id": "a", "text": "t"}, place="p").chunk == Chunk("a", "t")


def test_whole_numbers_of_numpy_are_taken_as_ids_pages_and_references() -> None:
    chunk = record(id=np.int64(4), page=np.float64(3), refs=[np.int32(5), 6]).chunk
    assert (chunk.id, chunk.page, chunk.refs) == ("4", 3, ("5", "6"))
    assert type(chunk.page) is int
    for whole in (3.0, np.float64(3.0), np.float32(3.0), Decimal(3), "3.0"):
        assert record(page=whole).chunk.page == 3
    assert record(id=7.0, refs=[5.0]).chunk == Chunk("7", "t", refs=("5",))
    for wrong in (np.float64(3.5), math.inf, np.bool_(True), np.int64(-1)):
        with pytest.raises(InputError, match="is not a whole number"):
            record(page=wrong)
    levels = (np.int64(2), 2.0, np.bool_(True))
    assert [record(clearance=level).chunk.clearance for level in levels] == [2, 2, None]


@pytest.mark.parametrize("nothing", [math.nan, np.float32("nan"), pd.NaT, pd.NA, np.datetime64("NaT"), Decimal("NaN")])
def test_what_a_table_has_no_value_for_is_missing(nothing: object) -> None:
    fields = dict.fromkeys(records.FIELDS, nothing)
    assert to_record({**fields, "own": nothing, "text": "t", "_id": "a"}, place="p") == Record(
        Chunk("a", "t", metadata={"own": None}), "p"
    )


UUID = uuid.UUID(int=7)


@pytest.mark.parametrize("given", [UUID, str(UUID)])
def test_an_id_is_taken_as_the_text_of_what_databases_have_for_ids(given: object) -> None:
    assert record(id=given, refs=[given]).chunk == Chunk(str(UUID), "t", refs=(str(UUID),))
    for wrong in (b"a", math.inf, object(), {"$oid": "a"}, {"a"}):
        with pytest.raises(InputError, match="the id must be a string"):
            record(id=wrong)


VECTOR = [0.125 * i for i in range(384)]


class Vector:
    """Like pgvector's own type, which is not a sequence."""

    def to_list(self) -> list[float]:
        raise AssertionError("a vector was read")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x", VECTOR),
        ("x", [np.float32(v) for v in VECTOR]),
        ("x", np.array(VECTOR, dtype=np.float16)),
        ("x", pd.Series(VECTOR)),
        ("x", np.array(VECTOR).tobytes()),
        ("x", "[" + ",".join(map(str, VECTOR)) + "]"),
        ("x", Vector()),
        ("embedding", [0.5, 0.25]),
        ("text_embedding", "[0.5, -1.5e-05]"),
        ("features", list(range(32))),
        ("v", "{" + ",".join(["0.5"] * 384) + "}"),
        ("sparse_values", {"indices": [1, 9], "values": [0.5, 1.5]}),
        ("embedding", base64.b64encode(np.array(VECTOR)).decode()),
    ],
)
def test_a_vector_is_no_metadata(name: str, value: object) -> None:
    own = {"colour": "blue", name: value}
    for fields in (own, {"metadata": own}, {"metadata": {"deep": own}}):
        metadata = record(**fields).chunk.metadata
        assert metadata in ({"colour": "blue"}, {"deep": {"colour": "blue"}})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pages", list(range(31))),
        ("embedding", "3"),
        ("embedding", {"model": "MiniLM", "dim": 384}),
        ("note", "[1] " + "Smith, 2.5, and others. " * 40),
        ("years", ["2019"] * 40),
        ("hash", "0" * 64),
        ("points", [[0.5, 1.5]] * 40),
        ("box", [0.5, 0.25, 0.125, 0.75]),
        ("vector", "the carrier of a disease"),
        ("embedding", []),
    ],
)
def test_what_is_no_vector_is_metadata(name: str, value: object) -> None:
    assert record(**{name: value}).chunk.metadata == {name: value}


def test_a_title_alone_is_the_text() -> None:
    assert to_record({"_id": "a", "title": "T", "text": ""}, place="p").chunk == Chunk("a", "T", "T")


def test_a_file_whose_name_is_no_text_is_read(tmp_path: Path) -> None:
    folder = written(tmp_path, "folder/x\udcff.txt", "Trolls fear fire.").parent
    (chunk,) = read(folder)
    assert (chunk.id, chunk.title, chunk.source) == ("x\ufffd.txt#1", "x\ufffd", "x\ufffd.txt")


def test_the_fingerprint_knows_every_field() -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"id": "b"},
        {"text": "u"},
        {"title": "T"},
        {"type": "x"},
        {"source": "s"},
        {"page": 1},
        {"refs": ["b"]},
        {"clearance": 1},
        {"clearance": "x"},
        {"clearance": "y"},
        {"department": "ops"},
        {"query_must": {"contain": "x"}},
    ]
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
        "id": "m-6",
        "title": "Attack matrix",
        "content": "Armor class 6 ...",
        "special_handler": "CombatTablesHandler",
        "year": float("nan"),
        "query_must": {"contain_one_of": [["cleric"], ["ac 6"]]},
    }
    chunk = to_record(raw, place="p").chunk
    assert chunk.text == "Armor class 6 ..."
    assert chunk.rule == '{"contain_one_of":[["cleric"],["ac 6"]]}'
    assert chunk.metadata == {"special_handler": "CombatTablesHandler", "year": None}
