"""Extractive answers: the sentences and table rows of the context nearest to the query. No LLM.

Source: docs/design.md#parts. Each quote names the number of its chunk. A row such as "Level 7-9: 10" stays whole and is
quoted with the title of its table. It moves up if the query names its number ("7th level"), and down if the query names
another. In a comparison, a side's numbers apply to the tables whose title names that side. `doubt` reports if the
nearest sentence is far away or if the context lacks an uncommon word of the query.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ragfilter.answer.context import kept_runs
from ragfilter.model import Chunk, Hit
from ragfilter.protocols import Embedder, Vocabulary
from ragfilter.text import comparison

MAX_QUOTES = 4
MAX_ROWS = 6  # in a comparison, which may need a row for each side from each table
MAX_UNITS = 300  # sentences and rows compared with the query; the rest is not read
WITHIN = 0.15  # further quotes must be this close to the best score
SAME = 0.92  # two quotes with vectors at least this similar say the same
REPEATED = 0.9999  # the same limit for two rows that a comparison needs
ROW_BONUS = 0.25
FAR = 0.4  # a quote below this score does not answer the query, with the bundled model (design.md#parts)
NOT_NEAR = 0.52  # nor does one below this score if no chunk mentions an uncommon word of the query

_ABBREVIATIONS = frozenset(("approx", "ca", "cf", "dr", "e.g", "eg", "esp", "i.e", "ie", "mr", "mrs", "ms", "st", "vs"))
_BEFORE_NUMBERS = frozenset(("ch", "fig", "figs", "no", "nos", "p", "pp", "sec", "vol"))
_END = re.compile(r"(?<![.!?])[.!?]+[\"'”’)\]]*(?=\s+[\"'“‘(\[]?[A-Z0-9À-ÖØ-Þ])|(?<=\s)[.!?](?=\s+[^\d\s])|[。！？]+")
_LABEL = re.compile(
    r"^\W*(?:[a-z][\w'/-]*\s+){0,3}?(?P<what>[a-z][\w'/-]*):?\s+"
    r"(?P<low>\d+)(?:\s*(?:-|–|to)\s*(?P<high>\d+)|(?P<open>\s*\+|\s+(?:and|or)\s+"
    r"(?:above|more|up|higher|over)))?\s*[:|,]",
    re.IGNORECASE,
)
_PAIR = re.compile(r"^[^:;]{1,60}:\s*\S")
_ITEM = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_NUMBER_WORD = re.compile(r"\b(\d+)(?:st|nd|rd|th)?[\s-]+([a-z]+)", re.IGNORECASE)
_WORD = re.compile(r"(?<![^\W\d_])[^\W\d_]{4,40}(?![^\W\d_])")
"""A longer run of letters is not a word, and quoting it would fill the page."""
_WORD_NUMBER = re.compile(r"\b([a-z]+)[\s:]+(?:of\s+|is\s+)?(-?\d+)\b", re.IGNORECASE)


Facts = dict[str, set[int]]


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence or row of chunk `number` (from 1). `score` orders quotes and is not a probability."""

    number: int
    text: str
    score: float
    is_row: bool = False


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence, or a whole row of a table."""

    text: str
    is_row: bool = False


def extract(query: str, hits: Sequence[Hit], embedder: Embedder) -> tuple[Quote, ...]:
    """One to four quotes, up to six in a comparison, best first; empty if the hits have no text. Raises ModelError."""
    candidates = [
        (number, hit.chunk, unit)
        for number, hit in enumerate(hits, start=1)
        for run in kept_runs(hit.chunk.text, hit.struck)
        for unit in units(run)
    ]
    candidates = ([each for each in candidates if _tells(each[2])] or candidates)[:MAX_UNITS]
    if not candidates:
        return ()
    vectors = embedder.embed([query, *(_passage(chunk.title, unit) for _, chunk, unit in candidates)])
    scores = vectors[1:] @ vectors[0]
    facts = _facts(query)
    sides = {name: _facts(part) for name, part in comparison.parts(query).items()}
    compares = comparison.compares(query)
    known = ((unit, _about(c, facts, sides) if compares else facts) for _, c, unit in candidates)
    agreeing = np.array([_agreement(unit, numbers_of_unit) for unit, numbers_of_unit in known])
    scores = scores + ROW_BONUS * agreeing

    needed = (agreeing == 1) & compares
    picked: list[int] = []
    for i in np.argsort(-scores, kind="stable").tolist():
        if picked and scores[i] < scores[picked[0]] - WITHIN:
            break
        # Rows for two sides or from two tables look alike but say different things.
        alike = [REPEATED if needed[i] and needed[j] else SAME for j in picked]
        most = MAX_ROWS if needed[i] else MAX_QUOTES
        if len(picked) < most and np.all(vectors[[1 + j for j in picked]] @ vectors[1 + i] < alike):
            picked.append(i)
    quotes = ((*candidates[i], float(scores[i])) for i in picked)
    return tuple(
        Quote(number, _passage(chunk.title, unit) if unit.is_row else unit.text, score, unit.is_row)
        for number, chunk, unit, score in quotes
    )


def passages_of(title: str, text: str) -> list[str]:
    """The texts that `extract` embeds: the sentences and rows that can answer a question, each with the title."""
    return [_passage(title, unit) for unit in units(text) if _tells(unit)]


def doubt(query: str, hits: Sequence[Hit], quotes: Sequence[Quote], embedder: Embedder) -> str:
    """Why the context may not contain the answer; empty if nothing suggests so."""
    if not quotes or quotes[0].score >= NOT_NEAR:
        return ""
    if word := unmentioned(query, hits, embedder):
        return f"the chunks do not mention “{word}”"
    return "no sentence is close to the question" if quotes[0].score < FAR else ""


def unmentioned(query: str, hits: Sequence[Hit], embedder: Embedder) -> str:
    """The first uncommon word of the query that no hit contains; empty if there is none. A word is uncommon if the
    embedding model's tokeniser splits it into pieces: it is a name or a coined word, which rarely has a synonym."""
    if not isinstance(embedder, Vocabulary):
        return ""
    words = dict.fromkeys(_WORD.findall(query.lower()))
    return next((w for w in words if not _mentions(hits, w) and not embedder.knows(w)), "")


def units(text: str) -> list[Unit]:
    """The sentences and table rows of `text`, in order. No word is lost."""
    return [unit for block in _blocks(text.splitlines()) for unit in block]


def sentences(text: str) -> list[str]:
    """The sentences of one paragraph. Abbreviations, initials and decimals do not end a sentence."""
    ends: list[str] = []
    start = 0
    for match in _END.finditer(text):
        before, after = text[start : match.start()], text[match.end() : match.end() + 2]
        if match.group()[0] == "." and _is_abbreviation(before, after):
            continue
        ends.append(text[start : match.end()].strip())
        start = match.end()
    rest = text[start:].strip()
    return [*ends, rest] if rest else ends


def _blocks(lines: list[str]) -> Iterator[list[Unit]]:
    """The blocks of a text: single Markdown table rows and list items, and joined paragraphs."""
    paragraph: list[str] = []
    header: list[str] = []
    for place, line in enumerate([*lines, ""]):
        stripped = line.strip()
        is_row = stripped.startswith("|") and stripped.count("|") > 1
        if paragraph and (is_row or not stripped or _ITEM.match(line)):
            yield [unit for each in sentences(" ".join(paragraph)) for unit in _rows(each)]
            paragraph = []
        if not is_row:
            header = []
            if stripped:
                paragraph.append(stripped)
        elif place + 1 < len(lines) and _is_rule(lines[place + 1]):
            header = _cells(line)
        elif not _is_rule(line):
            yield [Unit(_row(header, _cells(line)), is_row=True)]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _is_rule(line: str) -> bool:
    return "|" in line and all(re.fullmatch(r":?-+:?", cell) for cell in _cells(line))


def _row(header: list[str], cells: list[str]) -> str:
    """Write a row: "Level 7-9: Score 10" for the header "Level, Score" and the cells "7-9, 10"."""
    names = header + [""] * (len(cells) - len(header))
    first, *rest = (f"{n} {c}".strip() for n, c in zip(names, cells, strict=False))
    return f"{first}: {', '.join(rest)}" if rest else first


def _rows(sentence: str) -> list[Unit]:
    """The rows of a sentence if it is a table on one line, otherwise the sentence itself."""
    parts = [part.strip() for part in sentence.split(";") if part.strip()]
    labelled = sum(bool(_LABEL.match(part)) for part in parts)
    if labelled >= 2 or sum(bool(_PAIR.match(part)) for part in parts) >= 3:
        return [Unit(part.rstrip("."), is_row=True) for part in parts]
    return [Unit(sentence, is_row=bool(_LABEL.match(sentence)))]


def _is_abbreviation(before: str, after: str) -> bool:
    word = before.rsplit(None, 1)[-1] if before.strip() else ""
    bare = word.lstrip("(\"'“‘[").lower()
    if before.strip() == word and bare.isdigit():
        return True  # "1." that begins a list item
    if bare in _BEFORE_NUMBERS:
        return after.strip().isdigit()
    return bare in _ABBREVIATIONS or bool(re.fullmatch(r"[a-z](?:\.[a-z])*", bare))


def _facts(query: str) -> Facts:
    """The numbers in the query, by the word they belong to: {"level": {7}, "class": {6}}."""
    pairs = [(w, n) for n, w in _NUMBER_WORD.findall(query)] + _WORD_NUMBER.findall(query)
    facts: Facts = {}
    for word, number in pairs:
        facts.setdefault(_stem(word), set()).add(int(number[:9]))
    return facts


def _about(chunk: Chunk, facts: Facts, sides: Mapping[str, Facts]) -> Facts:
    """The numbers of a comparison that apply to the chunk: those of the sides that its title names, or else all. All
    numbers of a word apply if a side gives none for it. No number applies if the title gives a different one."""
    titled = _facts(chunk.title)
    if any(facts[word].isdisjoint(titled[word]) for word in facts.keys() & titled.keys()):
        return {}
    title_sides = [given for name, given in sides.items() if comparison.title_names(name, chunk.title)] or [{}]
    return {w: set().union(*(given.get(w, numbers) for given in title_sides)) for w, numbers in facts.items()}


def _agreement(unit: Unit, facts: Facts) -> int:
    """1 if the row has one of the numbers, -1 if it has a different one, otherwise 0."""
    label = _LABEL.match(unit.text) if unit.is_row else None
    if not label or not (numbers := facts.get(_stem(label["what"]))):
        return 0
    low = int(label["low"][:9])
    high = int(label["high"][:9]) if label["high"] else low
    return 1 if any(low <= n and (label["open"] or n <= high) for n in numbers) else -1


def _stem(word: str) -> str:
    return word.lower().removesuffix("s")


def _tells(unit: Unit) -> bool:
    """Whether the unit can answer a question. "One appears." is too short to."""
    return unit.is_row or unit.text.count(" ") > 1


def _mentions(hits: Sequence[Hit], word: str) -> bool:
    """Whether the title or text of a hit contains the word, with any ending."""
    stem = word[: max(4, len(word) - 2)]
    runs = (f"{hit.chunk.title} {run}" for hit in hits for run in kept_runs(hit.chunk.text, hit.struck))
    return any(stem in run.lower() for run in runs)


def _passage(title: str, unit: Unit) -> str:
    # A sentence alone ("It regenerates.") rarely says what it is about, but the title does.
    return f"{title.rstrip(' :')}: {unit.text}" if title else unit.text
