"""Find the chunks that hold the quotes of labels after a change of chunking.

A quote is searched for in the chunks of its source: first literally, then as words without case and punctuation, then
by the runs of words that it shares with a chunk. A chunk holds a quote if it has half of the quote, or if half of the
chunk is in the quote. So one label can become several."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cache
from itertools import groupby

from ragfilter.errors import InputError
from ragfilter.model import Chunk, User
from ragfilter.stores.label_book import UNCOUNTED, Found, Label, LabelBook, Quotation, quotation_of, starts_of
from ragfilter.text.normalise import normalise
from ragfilter.text.titles import query_id

RUN = 4
"""Minimum number of shared consecutive words; fewer occur by chance."""
HALF = 0.5
ENOUGH = 0.8
"""The share of a quote that must be found in all chunks together."""
UNFOUND = ("ambiguous", "gone")
WORD = re.compile(r"\w+")
Words = tuple[str, ...]
Runs = list[tuple[int, int]]
"""The runs of words that a quote shares with a chunk: place in the quote, and length."""


@dataclass(frozen=True, slots=True)
class Located:
    """The chunks that hold a quote, and how they were found. `score` is the share of the quote's words in them, from 0
    to 1. If `found` is ambiguous, each of them has the quote, but it is unknown which one was meant."""

    chunk_ids: tuple[str, ...]
    found: Found
    score: float = 1.0


@dataclass(frozen=True, slots=True)
class Relabelled:
    """How many labels were mapped to other chunks, which were not, as (question, chunk id, ambiguous or gone), and how
    many were right already."""

    mapped: int
    lost: tuple[tuple[str, str, Found], ...]
    right: int = 0

    @property
    def words(self) -> str:
        """``labels mapped: 98% (49 of 50; 1 gone)``; empty if no label needed mapping. Labels that are right count."""
        if not self.mapped and not self.lost:
            return ""
        mapped, every = self.mapped + self.right, self.mapped + self.right + len(self.lost)
        counts = ((kind, sum(outcome == kind for *_, outcome in self.lost)) for kind in UNFOUND)
        rest = "".join(f"; {count} {kind}" for kind, count in counts if count)
        return f"labels mapped: {mapped / every:.0%} ({mapped} of {every}{rest})"


class QuoteFinder:
    """Finds quotes among these chunks."""

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self._chunks = {chunk.id: chunk for chunk in chunks}
        self._at = {i: n for n, i in enumerate(self._chunks)}
        self._starts = starts_of(self._chunks.values())
        self._words = {i: _words(chunk.text) for i, chunk in self._chunks.items()}
        self._sources: dict[str, list[str]] = defaultdict(list)
        self._runs: dict[Words, set[str]] = defaultdict(set)
        for i, chunk in self._chunks.items():
            self._sources[chunk.source].append(i)
            for run in _runs(self._words[i]):
                self._runs[run].add(i)

    def holds(self, chunk_id: str, quotation: Quotation) -> bool:
        """Whether the chunk's text is exactly the quote."""
        chunk = self._chunks.get(chunk_id)
        return chunk is not None and chunk.text == quotation.quote

    def find(self, quotation: Quotation) -> Located:
        """Find the chunks that hold the quote."""
        words = _words(quotation.quote)
        among = self._among(quotation, words)
        if not words or not among:
            return Located((), "gone", 0.0)
        shared = {i: _shared(words, self._words[i]) for i in among}
        whole = [i for i, runs in shared.items() if any(size == len(words) for _, size in runs)]
        exact = [i for i in whole if quotation.quote in self._chunks[i].text]
        if ids := exact or whole:
            sure = len(ids) == 1 or self._overlap(ids, words)
            if not sure and quotation.start >= 0:
                # A text that occurs several times is the one at about this place.
                ids, sure = [min(ids, key=lambda i: abs(self._place(i, words) - quotation.start))], True
            how: Found = "exact" if exact else "normalised"
            return Located(tuple(ids), how if sure else "ambiguous")
        ids = self._cover(shared, len(words))
        covered = {at + n for runs in shared.values() for at, size in runs for n in range(size)}
        score = len(covered) / len(words)
        if score < ENOUGH:
            return Located(tuple(ids), "gone", score)
        quoted = all(self._chunks[i].text in quotation.quote for i in ids)
        how = "exact" if quoted else "normalised" if score == 1 else "fuzzy"
        return Located(tuple(ids), how, score)

    def _place(self, chunk_id: str, words: Words) -> float:
        """About where the source has these words of the chunk."""
        chunk_words = self._words[chunk_id]
        before = next(n for n in range(len(chunk_words)) if chunk_words[n : n + len(words)] == words)
        return self._starts[chunk_id] + len(self._chunks[chunk_id].text) * before / len(chunk_words)

    def _cover(self, shared: Mapping[str, Runs], size: int) -> list[str]:
        """The chunks that hold a quote of `size` words. Chunks are tried by their longest shared
        run, ties by nearness to earlier ones, and words that one covers do not count for later
        ones. This leaves out texts that only resemble the quote. The first chunk always counts."""
        ids: list[str] = []
        covered: set[int] = set()
        longest = {i: max((n for _, n in runs), default=0) for i, runs in shared.items()}
        ordered = sorted(shared, key=lambda i: (-longest[i], self._at[i]))
        for _, alike in groupby(ordered, key=lambda i: longest[i]):
            near = [self._at[i] for i in ids] or [0]
            for i in sorted(alike, key=lambda i: min(abs(self._at[i] - n) for n in near)):
                own = {at + n for at, length in shared[i] for n in range(length)} - covered
                if not ids or len(own) >= HALF * min(size, len(self._words[i])):
                    ids.append(i)
                    covered |= own
        return sorted(ids, key=lambda i: self._at[i])

    def _among(self, quotation: Quotation, words: Words) -> list[str]:
        """The chunks that share a run of words with the quotation (all of fewer words), of its source or, if there are
        none, of all."""
        if len(words) < RUN:
            short = f" {' '.join(words)} "
            sharing = {i for i, own in self._words.items() if short in f" {' '.join(own)} "}
        else:
            sharing = set().union(*(self._runs.get(run, ()) for run in _runs(words)))
        own = [i for i in self._sources.get(quotation.source, ()) if i in sharing]
        return own or [i for i in self._chunks if i in sharing]

    def _overlap(self, ids: Sequence[str], words: Words) -> bool:
        """Whether these chunks, which all have the quote, are neighbours with shared text, from
        cutting with an overlap rather than from a text that occurs twice."""
        order = self._sources[self._chunks[ids[0]].source]
        if any(i not in order for i in ids):
            return False
        at = sorted(order.index(i) for i in ids)
        return at == list(range(at[0], at[0] + len(at))) and all(len(self._words[i]) > len(words) for i in ids)


def remap(
    book: LabelBook, collection: str, chunks: Iterable[Chunk], *, same: Container[str] = (), dry: bool = False
) -> Relabelled:
    """Map labels whose chunk's text has changed to the chunks with their quote; with `dry`, only report. Labels of the
    `same` chunks stay. An ambiguous or gone label does not count until its quote is found. Raises StoreError."""
    finder, quotations = QuoteFinder(chunks), book.quotations(collection)
    find = cache(finder.find)
    groups: dict[tuple[object, ...], list[Label]] = defaultdict(list)
    latest: dict[tuple[object, ...], int] = {}
    for label in book.history(collection):
        if label.id in quotations:
            plain = replace(quotations[label.id], found="", score=100)
            judged = label.query, label.who, label.made_by, plain
            groups[*judged, label.grade].append(label)
            latest[judged] = label.grade
    moved: dict[int, tuple[Quotation, Sequence[str]]] = {}
    mapped, right, lost = 0, 0, []
    for (*judged_by, quotation, grade), labels in groups.items():
        assert isinstance(quotation, Quotation)
        # Replaced grades move too, but are not reported.
        counts = latest[*judged_by, quotation] == grade
        *others, last = labels
        stays = all(label.chunk_id in same for label in labels)
        if stays or (not others and finder.holds(last.chunk_id, quotation)):
            right += counts
            continue
        finding = find(quotation)
        ids: Sequence[str] = finding.chunk_ids
        if finding.found in UNFOUND:
            bare = last.chunk_id.removeprefix(UNCOUNTED)
            lost += [(last.query, bare, finding.found)] * counts
            ids = [f"{UNCOUNTED}{bare}"]
        elif {*ids} == {label.chunk_id for label in labels}:
            right += counts
            continue
        else:
            mapped += counts
        new = replace(quotation, found=finding.found, score=round(100 * finding.score))
        moved |= {last.id: (new, ids)} | {label.id: (new, ()) for label in others}
    if not dry:
        book.move(moved)
    return Relabelled(mapped, tuple(lost), right)


def choices(
    quotations: Mapping[int, Quotation], labels: Iterable[Label], chunks: Iterable[Chunk], user: User
) -> list[tuple[Label, Quotation, str]]:
    """The labels that do not count because their chunk is unknown, each with its quotation and every chunk that may be
    meant, or "". A user who does not see everything gets only labels whose whole quote is in a chunk that they see."""
    visible = [chunk for chunk in chunks if user.sees(chunk)]
    texts = {chunk.id: " ".join(_words(chunk.text)) for chunk in visible}
    finder = QuoteFinder(visible)
    return [
        (label, quotations[label.id], i)
        for label in labels
        if label.chunk_id.startswith(UNCOUNTED) and label.id in quotations
        for i in finder.find(quotations[label.id]).chunk_ids or ("",)
        if user.unrestricted or (i and " ".join(_words(quotations[label.id].quote)) in texts[i])
    ]


def settle(book: LabelBook, label: Label, chunk: Chunk) -> None:
    """Assign a label to this chunk. Raises StoreError."""
    book.move({label.id: (replace(quotation_of(chunk), found="exact"), [chunk.id])})


def drop_gone(book: LabelBook, collection: str) -> int:
    """Remove the labels that `remap` found to be gone. Returns how many. Raises StoreError."""
    gone = [i for i, each in book.quotations(collection).items() if each.found == "gone"]
    book.take_back(gone)
    return len(gone)


def add_spans(
    book: LabelBook, collection: str, chunks: Iterable[Chunk], spans: Sequence[tuple[str, int, Quotation]], *, who: str
) -> Relabelled:
    """Label the chunks that hold each quote, given as (question, grade, quotation). Labels of ambiguous and gone quotes
    do not count until their quote is found or imported again. Raises InputError if all are gone, and StoreError."""
    finder, lost = QuoteFinder(chunks), []
    quotes = {(question, quotation.quote) for question, _, quotation in spans}
    with book.transaction():
        places, earlier = book.quotations(collection), book.history(collection)
        mine = [each for each in earlier if each.who == who and each.chunk_id.startswith(UNCOUNTED)]
        book.take_back([i.id for i in mine if i.id in places and (i.query, places[i.id].quote) in quotes])
        for question, grade, quotation in spans:
            finding = finder.find(quotation)
            ids = finding.chunk_ids
            if finding.found in UNFOUND:
                lost.append((question, quotation.quote, finding.found))
                ids = (f"{UNCOUNTED}{quotation.source}#{query_id(quotation.quote)}",)
            book.label(collection, question, ids, grade, who=who, quotation=quotation)
        if lost and sum(found == "gone" for *_, found in lost) == len(spans):
            what = f"None of the quotes, such as {spans[0][2].quote[:60]!r}, is in the collection {collection!r}."
            raise InputError(what, remedy="Check that the labels belong to this collection.")
    return Relabelled(len(spans) - len(lost), tuple(lost))


def mapped_share(quotations: Mapping[int, Quotation]) -> float | None:
    """The share of successfully mapped labels among those that needed mapping; None without any."""
    outcomes = [quotation.found for quotation in quotations.values() if quotation.found]
    lost = sum(each in UNFOUND for each in outcomes)
    return 1 - lost / len(outcomes) if outcomes else None


def _words(text: str) -> Words:
    return tuple(WORD.findall(normalise(text)))


def _runs(words: Words) -> set[Words]:
    size = min(RUN, len(words))
    return {words[i : i + size] for i in range(len(words) - size + 1)} if words else set()


def _shared(quote: Words, chunk: Words) -> Runs:
    least = min(2, len(quote), len(chunk))
    blocks = SequenceMatcher(None, quote, chunk, autojunk=False).get_matching_blocks()
    return [(block.a, block.size) for block in blocks if block.size >= max(least, 1)]
