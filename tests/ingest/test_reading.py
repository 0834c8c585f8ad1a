"""How files are split, what columns mean, what is left out, and what a zip may do."""

from __future__ import annotations

import io
import stat
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pdfs import pdf

from ragfilter.errors import InputError
from ragfilter.ingest.load import load, safe_name, stage, unpack
from ragfilter.ingest.passages import passages
from ragfilter.ingest.records import ReadOptions
from ragfilter.model import Chunk


def read(path: Path, reading: ReadOptions | None = None) -> list[Chunk]:
    return [record.chunk for record in load(path, reading=reading or ReadOptions())]


def lenient(path: Path, **given: object) -> tuple[list[str], list[str]]:
    """The ids that are read, and what is left out."""
    told: list[InputError] = []
    reading = ReadOptions(skip=told.append, **given)  # type: ignore[arg-type]
    return [chunk.id for chunk in read(path, reading)], [error.message for error in told]


# --- passages


@pytest.mark.parametrize(("longest", "overlap", "cut"), [(19, 5, ["one two three", "three four five six"])])
def test_passages_begin_with_the_last_words_before_them(longest: int, overlap: int, cut: list[str]) -> None:
    assert passages("one two three\n\nfour five six", longest, overlap) == cut


@given(st.text(alphabet="abc. \n", max_size=400), st.integers(20, 80), st.data())
def test_overlapping_passages_lose_nothing_and_stay_short(text: str, longest: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, longest // 2))
    plain = passages(text, longest - overlap - 1) if overlap else passages(text, longest)
    cut = passages(text, longest, overlap)
    assert len(cut) == len(plain)
    assert all(c.endswith(p) and len(c) <= longest for c, p in zip(cut, plain, strict=True))


@pytest.mark.parametrize(
    "given",
    [
        {"size": 99},
        {"size": 8001},
        {"overlap": -1},
        {"size": 200, "overlap": 101},
        {"columns": {"text": "a", "nonsense": "b"}},
        {"columns": {"title": "a"}},
        {"columns": {"text": "a", "title": "a"}},
    ],
)
def test_a_reading_that_cannot_be_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(InputError) as error:
        ReadOptions(**given)  # type: ignore[arg-type]
    assert error.value.remedy


def test_markdown_without_headings_is_cut_like_text(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("# One\n\nFirst.\n\n# Two\n\nSecond.\n")
    assert [chunk.id for chunk in read(path)] == ["a.md#one", "a.md#two"]
    assert [c.text for c in read(path, ReadOptions(headings=False))] == ["# One\n\nFirst.\n\n# Two\n\nSecond."]


# --- columns of a table


def test_columns_of_a_table_are_named_for_fields(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("Nr,Body,text,Heading\n7,Trolls fear fire.,x,Trolls\n8,Owls hoot.,,Owls\n")
    columns = {"text": "Body", "title": "Heading"}
    assert read(path, ReadOptions(columns=columns)) == [
        Chunk("a.csv#1", "Trolls fear fire.", "Trolls", source="a.csv", metadata={"Nr": "7", "column text": "x"}),
        Chunk("a.csv#2", "Owls hoot.", "Owls", source="a.csv", metadata={"Nr": "8"}),
    ]
    assert [c.id for c in read(path, ReadOptions(columns={**columns, "id": "Nr"}))] == ["7", "8"]
    with pytest.raises(InputError, match=r"line 1: the header has no column 'Title'"):
        read(path, ReadOptions(columns={"text": "Title"}))


def test_a_file_may_lack_a_column_of_the_others_unless_it_is_needed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("nr,body,head\n7,Trolls fear fire.,Trolls\n")
    (tmp_path / "b.csv").write_text("nr,body\n8,Owls hoot.\n")
    columns = {"text": "body", "id": "nr", "title": "head"}
    assert [chunk.id for chunk in read(tmp_path, ReadOptions(columns=columns))] == ["7", "8"]
    for field in ("id", "clearance", "department"):
        with pytest.raises(InputError, match=r"b.csv, line 1: the header has no column") as error:
            read(tmp_path, ReadOptions(columns={"text": "body", field: "head"}))
        assert error.value.remedy.startswith("Name a column that the file has, or index")


def test_a_column_that_is_not_wanted_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("_id,text,clearance\n7,Trolls fear fire.,secret\n")
    # What cannot be read as a level hides the chunk.
    assert [c.clearance for c in read(path, ReadOptions(columns={"text": "text"}))] == [None]
    none = {"text": "text", "id": "", "clearance": ""}
    assert read(path, ReadOptions(columns=none)) == [
        Chunk(
            "a.csv#1", "Trolls fear fire.", source="a.csv", metadata={"column _id": "7", "column clearance": "secret"}
        )
    ]


# --- bad records


def test_bad_records_are_listed_while_the_rest_goes_in(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"id": "a", "text": "t"}\nnonsense\n[1]\n{"id": "b"}\n{"id": "a", "text": "u"}\n{"id": "c", "text": "t"}\n'
    )
    (tmp_path / "b.csv").write_text("id,text\nd,t\ne\nf,t,u\ng,t\n")
    (tmp_path / "c.txt").write_bytes(b"\xff")
    (tmp_path / "d.json").write_text('{"openapi": "3.0.0", broken')
    ids, told = lenient(tmp_path)
    assert ids == ["a", "c", "d", "g"]
    assert [message.split(": ")[0] for message in told] == [
        "d.json, line 1, column 22",
        "a.jsonl, line 2",
        "a.jsonl, line 3",
        "a.jsonl, line 4",
        "a.jsonl, line 5",
        "b.csv, line 3",
        "b.csv, line 4",
        "c.txt, line 1",
    ]


# --- PDF


def test_the_pages_of_a_pdf_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "guide.pdf"
    path.write_bytes(pdf("Trolls fear fire.", "", "Owls hoot."))
    assert read(path) == [
        Chunk("guide.pdf#page-1", "Trolls fear fire.", "guide, page 1", "page", "guide.pdf", 1),
        Chunk("guide.pdf#page-3", "Owls hoot.", "guide, page 3", "page", "guide.pdf", 3),
    ]


@pytest.mark.parametrize(
    ("pages", "told"),
    [
        (("a", "", ""), "pages 2-3."),
        (("", "a"), "page 1."),
        (("", "a", "", "", "b", "", ""), "pages 1, 3-4, 6-7."),
        (("a", " ", "b" * 2000, ""), "pages 1-2, 4."),
        (("a", "b"), ""),
        (("Page 1 of 2", "Page 2 of 2"), ""),
        (("b" * 2000, "c" * 20), ""),
    ],
)
def test_pages_of_a_pdf_without_text_are_named(tmp_path: Path, pages: tuple[str, ...], told: str) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf(*pages))
    warnings = [warning for record in load(path) for warning in record.warnings]
    assert len(warnings) == (1 if told else 0)
    assert all(f"a.pdf: little or no text on {told}" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("pages", "told"),
    [
        (("2", "b" * 300), "page 1."),
        (("b" * 300, "Page 2 of 3", "Page 3 of 3"), "pages 2-3."),
        (("b" * 300, "RECEIVED  12  MAR  2019", "c" * 19, "", "iv"), "pages 2-5."),
    ],
)
def test_pages_with_next_to_no_text_beside_others_are_named_and_kept(
    tmp_path: Path, pages: tuple[str, ...], told: str
) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf(*pages))
    found = list(load(path))
    assert {r.chunk.page for r in found} == {n for n, text in enumerate(pages, 1) if text}
    (warning,) = (warning for record in found for warning in record.warnings)
    assert warning.startswith(f"a.pdf: little or no text on {told} If they were scanned")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "cannot be read"),
        (b"%PDF-1.4\n", "cannot be read"),
        (pdf("a")[:200], "cannot be read"),
        (pdf("", ""), "no text"),
    ],
)
def test_a_pdf_that_cannot_be_read_says_why(tmp_path: Path, data: bytes, said: str) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(data)
    with pytest.raises(InputError, match=rf"^a\.pdf: .*{said}") as error:
        read(path)
    assert error.value.remedy
    assert lenient(path)[0] == []


# --- zip


def packed(path: Path, members: dict[str, bytes], link: str = "") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            if name == link:
                info.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, data)
    return path


def test_a_zip_is_read_like_its_folder(tmp_path: Path) -> None:
    members = {"a.txt": b"one", "deep/b.md": b"# B\n\ntwo", "deep/c.bin": b"", ".d.txt": b"no"}
    path = packed(tmp_path / "x.zip", members)
    assert [(c.id, c.source) for c in read(path)] == [("a.txt#1", "a.txt"), ("deep/b.md#b", "deep/b.md")]


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("a.md", "a.md"),
        ("a/./b.md", "a/b.md"),
        ("..a/b..md", "..a/b..md"),
        ("é.md", "é.md"),
        ("../a.md", None),
        ("a/../../b.md", None),
        ("/etc/passwd", None),
        ("a\\b.md", None),
        ("", None),
        (".", None),
        ("a\n.md", None),
        ("x" * 201, None),
    ],
)
def test_a_name_that_leads_out_is_refused(name: str, safe: str | None) -> None:
    assert safe_name(name) == safe


def test_no_name_in_a_zip_leads_out_of_its_folder(tmp_path: Path) -> None:
    members = {"../out.txt": b"x", "/abs.txt": b"y", "link.txt": b"/etc/passwd", "in.txt": b"ok"}
    path = packed(tmp_path / "x.zip", members, link="link.txt")
    assert [(c.id, c.text) for c in read(path)] == [
        ("abs.txt#1", "y"),
        ("in.txt#1", "ok"),
        ("link.txt#1", "/etc/passwd"),
    ]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.zip"]


def test_a_zip_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    path = packed(tmp_path / "bomb.zip", {"a.txt": bytes(3_000_000)})
    assert path.stat().st_size < 10_000
    with pytest.raises(InputError, match="more than 2 MB"):
        unpack(path, tmp_path / "out", source="bomb.zip", limit=2_000_000)


def test_a_zip_that_is_none_is_refused(tmp_path: Path) -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("a.txt", "one two three " * 50)
    for data in (b"", b"PK", whole.getvalue()[:-30], whole.getvalue().replace(b"two", b"TWO")):
        path = tmp_path / "x.zip"
        path.write_bytes(data)
        with pytest.raises(InputError, match=r"^x\.zip: this zip cannot be read"):
            read(path)


# --- uploads


def test_files_that_hold_nothing_are_passed_over(tmp_path: Path) -> None:
    files = {
        "a.json": b'{"hello": 1}',
        "b.txt": b" \n",
        "c.csv": b"id,text\n",
        "d.txt": b"Hush.",
        "e.md": b"ok\n\xff",
        "f.json": b'{"openapi": "3.0.0", "paths": {}}',
        "g.json": b'{"a": [1}',
        "h.yaml": b"a: 1\nb: [1\nc: 2",
        "i.yml": b"",
        "j.pdf": b"",
        "k.yaml": b"a: 1\n---\nb: 2\n",
        "l.json": b'{"a": [1}' + bytes(5_000_000),
    }
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    ids, told = lenient(folder)
    assert ids == ["d.txt#1"]
    assert [each.partition(" (")[0] for each in told] == [
        "g.json, line 1, column 9: this is not JSON",
        "1 file with syntax errors skipped: h.yaml.",
        "2 files without content skipped: b.txt, i.yml.",
        "3 files without an OpenAPI description skipped: a.json, k.yaml, l.json.",
        "e.md, line 2: not UTF-8 at byte 1.",
        "j.pdf: this PDF cannot be read",
    ]
    for name, why in (("g.json", "not JSON"), ("k.yaml", "not an OpenAPI"), ("l.json", "not an OpenAPI")):
        with pytest.raises(InputError, match=why):
            read(folder / name)


def test_a_zip_that_is_refused_leaves_nothing_behind(tmp_path: Path) -> None:
    bomb = packed(tmp_path / "x.zip", {"a.txt": b"one", "b.txt": bytes(3_000)}).read_bytes()
    none = packed(tmp_path / "y.zip", {"a.exe": b"MZ"}).read_bytes()
    same = packed(tmp_path / "z.zip", {"shop/b.md": b"kept"}).read_bytes()
    files = [("bomb.zip", bomb), ("none.zip", none), ("a.md", b"kept"), ("shop.zip", same)]
    refused = stage(files, tmp_path / "up", limit=2_000)
    assert [error.message for error in refused] == [
        "bomb.zip: it unpacks to more than 0 MB, or 20,000 files.",
        "none.zip: 1 file of another kind skipped: a.exe.",
    ]
    # A folder in the zip with its name is not named twice.
    staged = [f.relative_to(tmp_path / "up").as_posix() for f in (tmp_path / "up").rglob("*")]
    assert sorted(staged) == ["a.md", "shop", "shop/b.md"]


def test_uploads_are_checked_one_by_one(tmp_path: Path) -> None:
    inner = packed(tmp_path / "x.zip", {"a.md": b"in", "b.exe": b"MZ"}).read_bytes()
    files = [
        ("a.md", b"first"),
        ("a.md", b"second"),
        ("x.exe", b"MZ"),
        ("/abs.md", b"x"),
        ("deep/b.md", b"b"),
        ("x.zip", inner),
        ("big.txt", bytes(600)),
        ("no.zip", b"PK"),
    ]
    refused = stage(files, tmp_path / "up", limit=600)
    assert [error.message.split(":")[0] for error in refused] == [
        "'a.md' is left out",
        "'x.exe' is left out",
        "'/abs.md' is left out",
        "x.zip",
        "'big.txt' is left out",
        "no.zip",
    ]
    made = {f.relative_to(tmp_path / "up").as_posix() for f in (tmp_path / "up").rglob("*.*")}
    assert made == {"a.md", "deep/b.md", "x/a.md"}
    assert (tmp_path / "up/a.md").read_bytes() == b"first"
