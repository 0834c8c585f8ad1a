"""Labels that survive another chunking: of the demo's texts and of Markdown, cut at 800 characters
and labelled, then cut at 400 and at 1,600."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import groupby
from pathlib import Path

import pytest

from ragfilter.basics.files import read_text
from ragfilter.errors import InputError
from ragfilter.evaluate.query_files import read_spans, span_lines
from ragfilter.ingest import bundled
from ragfilter.ingest.passages import passages
from ragfilter.model import UNRESTRICTED, Chunk, User
from ragfilter.stores.label_book import LabelBook, Quotation, qrels_of, quotation_of, selected_quotation, starts_of
from ragfilter.stores.relabel import QuoteFinder, Relabelled, add_spans, choices, mapped_share, remap, settle

DOCS = Path(__file__).resolve().parents[2] / "docs"


@cache
def sources() -> dict[str, str]:
    """Texts by name: the demo's chunks of each file one after the other, and the documents."""
    ordered = sorted(bundled.demo_rows(), key=lambda row: row["source"])
    found = {
        name: "\n\n".join(dict.fromkeys(row["text"] for row in rows))
        for name, rows in groupby(ordered, key=lambda row: row["source"])
    }
    return found | {path.name: read_text(path) for path in sorted(DOCS.glob("[a-m]*.md"))}


def cut(size: int) -> dict[str, tuple[Chunk, int, int]]:
    """Every chunk with where it begins and ends in its source."""
    found = {}
    for name, text in sources().items():
        at = 0
        for number, passage in enumerate(passages(text, size), start=1):
            begin = text.index(passage, at)
            at = begin + len(passage)
            chunk = Chunk(f"{name}#{number}", passage, source=name)
            found[chunk.id] = chunk, begin, at
    return found


@pytest.mark.slow
def test_labels_are_mapped_right_whatever_the_size_of_chunks() -> None:
    """The right chunks overlap the labelled one by at least half of the shorter one; if several
    have the same text, any is right."""
    for size in [400, 1600]:
        labelled, others = cut(800), cut(size)
        finder = QuoteFinder(chunk for chunk, *_ in others.values())
        right = 0
        tried = [*labelled.values()][::3]
        for chunk, begin, end in tried:
            wanted = {
                other.text
                for other, first, last in others.values()
                if other.source == chunk.source
                and min(end, last) - max(begin, first) >= 0.5 * min(end - begin, last - first)
            }
            finding = finder.find(quotation_of(chunk))
            right += finding.found not in ("ambiguous", "gone") and wanted == {
                others[i][0].text for i in finding.chunk_ids
            }
        assert len(tried) > 100, size
        assert right / len(tried) >= 0.95, f"{size}: {right} of {len(tried)}"


STEM = "Trolls regenerate three hit points in each round unless fire or acid burns them."
TAIL = "Giants throw rocks over the walls of any castle that refuses to pay tribute in time."


def test_a_quote_is_found_as_it_is_by_its_words_or_nearly() -> None:
    for texts, ids, found in [
        ([f"{STEM} {TAIL}"], ["c0"], "exact"),
        ([f"**TROLLS** {STEM[7:].upper()}"], ["c0"], "normalised"),
        ([STEM.replace("three", "3"), TAIL], ["c0"], "fuzzy"),
        ([STEM[:38], STEM[38:]], ["c0", "c1"], "exact"),
        ([f"{STEM} Here.", TAIL, f"{STEM} There."], ["c0", "c2"], "ambiguous"),
        ([f"Before. {STEM}", f"{STEM} After."], ["c0", "c1"], "exact"),
        ([TAIL], [], "gone"),
        ([], [], "gone"),
    ]:
        finder = QuoteFinder(Chunk(f"c{n}", text, source="a") for n, text in enumerate(texts))
        finding = finder.find(Quotation(STEM, "a"))
        assert (list(finding.chunk_ids), finding.found) == (ids, found), texts
        assert 0.8 <= finding.score <= 1 or found == "gone", texts


def test_a_quote_of_few_words_is_found_as_a_whole() -> None:
    for quote, ids, found in [
        ("acid", ["c1"], "exact"),
        ("Or Acid", ["c1"], "normalised"),
        ("a fire", ["c0", "c2"], "ambiguous"),
        ("acids", [], "gone"),
    ]:
        texts = ["Light a fire.", "Fire, or acid, stops it. Organs heal.", "It fears a fire."]
        finder = QuoteFinder(Chunk(f"c{n}", text, source="a") for n, text in enumerate(texts))
        finding = finder.find(Quotation(quote, "a"))
        assert (list(finding.chunk_ids), finding.found) == (ids, found)


@pytest.fixture
def book(tmp_path: Path) -> Iterator[LabelBook]:
    made = LabelBook(f"sqlite:///{tmp_path / 'labels.db'}")
    yield made
    made.close()


def test_labels_follow_their_text_and_come_back(book: LabelBook) -> None:
    """A number alone would name another passage: `a#1` is the first half of what it was."""
    whole = [Chunk("a#1", f"{STEM} {TAIL}", source="a"), Chunk("a#2", "Bread " * 20, source="a")]
    halves = [Chunk("a#1", STEM, source="a"), Chunk("a#2", TAIL, source="a")]
    book.label("c", "who heals?", ["a#1"], 2, who="ann")
    book.label("c", "who bakes?", ["a#2"], 1, who="bob")
    book.quote("c", {chunk.id: chunk for chunk in whole})
    assert remap(book, "c", whole).words == ""
    made = remap(book, "c", halves)
    assert made == Relabelled(1, (("who bakes?", "a#2", "gone"),))
    assert made.words == "labels mapped: 50% (1 of 2; 1 gone)"
    told = {(each.query, each.chunk_id, each.grade, each.who) for each in book.standing("c")}
    assert told == {
        ("who heals?", "a#1", 2, "ann"),
        ("who heals?", "a#2", 2, "ann"),
        ("who bakes?", "gone:a#2", 1, "bob"),
    }
    assert mapped_share(book.quotations("c")) == pytest.approx(2 / 3)
    # A second time changes nothing; back in the old chunks, everything is as it was.
    assert remap(book, "c", halves) == replace(made, mapped=0, right=1)
    assert remap(book, "c", halves).words == made.words
    assert len(book.standing("c")) == 3
    assert remap(book, "c", whole).mapped == 2
    assert {(each.query, each.chunk_id) for each in book.standing("c")} == {
        ("who heals?", "a#1"),
        ("who bakes?", "a#2"),
    }


def test_selected_text_is_evidence_where_the_chunk_has_it() -> None:
    for selected, quote in [
        ("fire or acid", "fire or acid"),
        ("  fire\nor acid ", "fire or acid"),
        ("ice", ""),
        (" ", ""),
    ]:
        place = selected_quotation(Chunk("a#1", STEM, source="a", page=3), selected)
        assert (None if place is None else (place.quote, place.source, place.page)) == (
            (quote, "a", 3) if quote else None
        )


def test_evidence_decides_which_of_the_new_chunks_a_label_judges(book: LabelBook) -> None:
    whole = Chunk("a#1", f"{STEM} {TAIL}", source="a")
    book.label("c", "who throws?", ["a#1"], 2, who="ann", quotation=selected_quotation(whole, TAIL))
    book.quote("c", {"a#1": whole})
    halves = [Chunk("a#1", STEM, source="a"), Chunk("a#2", TAIL, source="a")]
    assert remap(book, "c", halves).mapped == 1
    assert [each.chunk_id for each in book.standing("c")] == ["a#2"]


def test_every_quote_of_a_chunk_finds_its_own_chunk(book: LabelBook) -> None:
    whole = Chunk("a#1", f"{STEM} {TAIL}", source="a")
    halves = [Chunk("a#1", TAIL, source="a"), Chunk("a#2", STEM, source="a")]
    for question, grade in [("who lives there?", 2), ("who throws?", 0)]:
        book.label("c", question, ["a#1"], grade, who="ann", quotation=selected_quotation(whole, STEM))
        book.label("c", question, ["a#1"], 2, who="ann", quotation=selected_quotation(whole, TAIL))
    # A grade that its labeller replaced stays replaced.
    for grade in (2, 0, 1):
        book.label("c", "who heals?", ["a#1"], grade, who="ann", quotation=selected_quotation(whole, STEM))
    # Of these, only the last of three grades is counted, and a label stays that is on its quote's chunk.
    assert remap(book, "c", halves) == Relabelled(3, (), 2)
    assert sorted((each.query, each.chunk_id, each.grade) for each in book.standing("c")) == [
        ("who heals?", "a#2", 1),
        ("who lives there?", "a#1", 2),
        ("who lives there?", "a#2", 2),
        ("who throws?", "a#1", 2),
        ("who throws?", "a#2", 0),
    ]


def test_the_latest_label_counts_beside_an_earlier_one_that_moved(book: LabelBook) -> None:
    whole = Chunk("a#1", f"{STEM} {TAIL}", source="a")
    book.label("c", "who throws?", ["a#1"], 2, who="ann", quotation=quotation_of(whole))
    book.label("c", "who throws?", ["a#1"], 0, who="ann", quotation=selected_quotation(whole, TAIL))
    # Only the first label moves: the second one's chunk still holds its quote.
    remap(book, "c", [Chunk("a#1", TAIL, source="a"), Chunk("a#2", STEM, source="a")])
    standing = book.standing("c")
    assert {each.chunk_id: each.grade for each in standing} == {"a#1": 0, "a#2": 2}
    book.label("c", "who throws?", ["a#2"], 1, who="bob")
    assert qrels_of(book.history("c")) == {"who throws?": {"a#1": 0, "a#2": 1}}


def test_a_text_that_occurs_twice_is_the_one_at_the_place_of_the_quote() -> None:
    for start, ids, found in [(0, ["c0"], "exact"), (260, ["c2"], "exact"), (-1, ["c0", "c2"], "ambiguous")]:
        texts = [f"{STEM} Here.", TAIL, f"{STEM} There."]
        finder = QuoteFinder(Chunk(f"c{n}", text, source="a") for n, text in enumerate(texts))
        finding = finder.find(Quotation(STEM, "a", start=start))
        assert (list(finding.chunk_ids), finding.found) == (ids, found), start


def test_spans_with_the_same_text_are_exported_with_their_places(book: LabelBook) -> None:
    chunks = [Chunk(f"a#{n}", text, source="a") for n, text in enumerate([STEM, TAIL, STEM])]
    places = [Quotation(STEM, "a", start=at, end=at + len(STEM)) for at in (0, len(STEM + TAIL))]
    add_spans(book, "c", chunks, [("who heals?", 2, places[0]), ("who heals?", 0, places[1])], who="ann")
    assert mapped_share(book.quotations("c")) is None
    lines = [
        json.loads(line) for line in span_lines({each.id: each for each in book.history("c")}, book.quotations("c"))
    ]
    assert [(line["start"], line["grade"]) for line in lines] == [(0, 2), (len(STEM + TAIL), 0)]


def test_the_place_of_a_quote_is_inside_its_chunk() -> None:
    # The second chunk begins nearer to the first one's quote than the first chunk does.
    texts = ["Bread " * 250 + STEM, TAIL, f"{TAIL} {STEM}"]
    finder = QuoteFinder(Chunk(f"c{n}", text, source="a") for n, text in enumerate(texts))
    for quote in (STEM, STEM.upper()):
        assert finder.find(Quotation(quote, "a", start=1500)).chunk_ids == ("c0",)


def test_the_place_of_a_quote_is_found_however_chunks_overlap() -> None:
    for overlap in [0, 100, 200, 400]:
        text = "\n\n".join(STEM if n in (20, 50) else f"{n} goblins. " * 14 for n in range(80))
        old = [Chunk(f"a#{n}", each, source="a") for n, each in enumerate(passages(text, 400))]
        new = {f"b#{n}": Chunk(f"b#{n}", each, source="a") for n, each in enumerate(passages(text, 800, overlap))}
        starts, finder = starts_of(old), QuoteFinder(new.values())
        for chunk, n in zip([each for each in old if STEM in each.text], (20, 50), strict=True):
            (found,) = finder.find(Quotation(STEM, "a", start=starts[chunk.id])).chunk_ids
            assert any(f"{neighbour} goblins" in new[found].text for neighbour in (n - 1, n + 1)), (overlap, n)


def test_a_label_of_a_chunk_that_occurs_twice_keeps_its_place(book: LabelBook) -> None:
    texts = [STEM, TAIL, "Bread " * 20, STEM, TAIL]
    chunks = [Chunk(f"a#{n}", text, source="a") for n, text in enumerate(texts)]
    book.label("c", "who heals?", ["a#3"], 2, who="ann")
    book.quote("c", {chunk.id: chunk for chunk in chunks})
    texts = [f"{STEM} {TAIL}", "Bread " * 20, f"{STEM} {TAIL}"]
    pairs = [Chunk(f"b#{n}", text, source="a") for n, text in enumerate(texts)]
    assert remap(book, "c", pairs).mapped == 1
    assert [each.chunk_id for each in book.standing("c")] == ["b#2"]
    # This place is only about right, so it is not exported as characters of the source.
    (line,) = span_lines({each.id: each for each in book.standing("c")}, book.quotations("c"))
    assert "start" not in json.loads(line)


def test_an_ambiguous_label_is_settled_by_naming_its_chunk(book: LabelBook) -> None:
    twice = [
        Chunk("a#1", f"{STEM} Here.", source="a"),
        Chunk("a#2", "Bread " * 9, source="a"),
        Chunk("a#3", f"{STEM} There.", source="a"),
    ]
    book.label("c", "who heals?", ["a#1"], 2, who="ann", quotation=selected_quotation(twice[0], STEM))
    assert remap(book, "c", twice, same={"a#1"}) == Relabelled(0, (), 1)
    assert remap(book, "c", twice).lost == (("who heals?", "a#1", "ambiguous"),)
    rows = choices(book.quotations("c"), book.standing("c"), twice, UNRESTRICTED)
    assert [(label.query, place.quote, i) for label, place, i in rows] == [
        ("who heals?", STEM, "a#1"),
        ("who heals?", STEM, "a#3"),
    ]
    secret = replace(twice[0], clearance=1)
    seen = choices(book.quotations("c"), book.standing("c"), [secret, *twice[1:]], User())
    assert [i for *_, i in seen] == ["a#3"]
    assert choices(book.quotations("c"), book.standing("c"), [secret, twice[1]], User()) == []
    settle(book, rows[1][0], twice[2])
    assert [each.chunk_id for each in book.standing("c")] == ["a#3"]
    assert remap(book, "c", twice) == Relabelled(0, (), 1)
    assert mapped_share(book.quotations("c")) == 1


def test_spans_without_a_definite_chunk_wait_for_one(book: LabelBook) -> None:
    texts = [f"{STEM} Here.", TAIL, f"{STEM} There."]
    chunks = [Chunk(f"a#{n}", text, source="a") for n, text in enumerate(texts)]
    lost = Quotation("Nobody sings in this castle at all.", "a")
    spans = [("who heals?", 2, Quotation(STEM, "a")), ("who heals?", 1, Quotation(TAIL, "a")), ("who sings?", 2, lost)]
    with pytest.raises(InputError, match="None of the quotes, such as 'Nobody sings"):
        add_spans(book, "c", chunks, spans[2:], who="spans.jsonl")
    assert book.history("c") == []
    # Importing them again adds nothing.
    for _ in range(2):
        made = add_spans(book, "c", chunks, spans, who="spans.jsonl")
        assert (made.mapped, [found for *_, found in made.lost]) == (1, ["ambiguous", "gone"])
        rows = choices(book.quotations("c"), book.standing("c"), chunks, UNRESTRICTED)
        assert [(label.query, place.quote, i) for label, place, i in rows] == [
            ("who heals?", STEM, "a#0"),
            ("who heals?", STEM, "a#2"),
            ("who sings?", lost.quote, ""),
        ]
    counted = {i for i, chunk in qrels_of(book.standing("c"))["who heals?"].items() if not i.startswith("gone:")}
    assert counted == {"a#1"}
    assert mapped_share(book.quotations("c")) is None
    # With its place the quote is in one chunk, and a chunk that is added holds the other.
    add_spans(book, "c", chunks, [("who heals?", 2, Quotation(STEM, "a", start=0))], who="spans.jsonl")
    assert remap(book, "c", [*chunks, Chunk("a#3", lost.quote, source="a")]).mapped == 1
    assert qrels_of(book.standing("c")) == {"who heals?": {"a#0": 2, "a#1": 1}, "who sings?": {"a#3": 2}}


def test_spans_are_read_written_and_read_again(book: LabelBook, tmp_path: Path) -> None:
    (tmp_path / "a").write_text(f"{TAIL} {STEM}", "utf-8")
    begin = len(TAIL) + 1
    given = [
        {"question": "who heals?", "source": "a", "start": begin, "end": begin + len(STEM)},
        {"question": "who throws?", "source": "a", "quote": TAIL, "grade": 1},
        {"question": "who sings?", "source": "a", "quote": "Nobody sings in this castle at all."},
    ]
    file = tmp_path / "spans.jsonl"
    file.write_text("\n".join(map(json.dumps, given)), "utf-8")
    with pytest.raises(InputError, match="line 1: the quote or the question is missing"):
        read_spans(file)
    endless = tmp_path / "endless.jsonl"
    endless.write_text('{"question": "who?", "start": 1e400, "end": 2}', "utf-8")
    with pytest.raises(InputError, match="line 1: this is not a span's label"):
        read_spans(endless)
    outside = tmp_path / "outside.jsonl"
    outside.write_text('{"question": "who?", "source": "../spans.jsonl", "start": 0, "end": 2}', "utf-8")
    (tmp_path / "texts").mkdir()
    with pytest.raises(InputError, match="is outside"):
        read_spans(outside, tmp_path / "texts")
    chunks = [Chunk("a#1", f"{TAIL} {STEM}", source="a")]
    made = add_spans(book, "c", chunks, read_spans(file, tmp_path), who="spans.jsonl")
    assert (made.mapped, len(made.lost)) == (2, 1)
    standing = {each.id: each for each in book.standing("c")}
    file.write_text("".join(span_lines(standing, book.quotations("c"))), "utf-8")
    again = read_spans(file)
    assert [(question, grade, place.quote) for question, grade, place in again] == [
        ("who heals?", 2, STEM),
        ("who throws?", 1, TAIL),
        ("who sings?", 2, "Nobody sings in this castle at all."),
    ]
    assert (again[0][2].start, again[0][2].source) == (begin, "a")
