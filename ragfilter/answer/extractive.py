"""Extractive answers: the sentences and table rows of the context nearest to the query. No LLM.

Source: docs/design.md#parts. Each quote names the number of its chunk. A row such as "Level 7-9: 10" stays whole and is
quoted with the title of its table. It moves up if the query names its number ("7th level"), and down if the query names
another. In a comparison, a side's numbers apply to the tables whose title names that side. `doubt` reports if the
nearest sentence is far away or if the context lacks an uncommon word of the query."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ragfilter.answer.context_packing import kept_runs
from ragfilter.model import Chunk, Hit
from ragfilter.protocols import Embedder, Vocabulary
from ragfilter.text import comparison
from ragfilter.text.sentences import LABEL, Unit, tells, titled, units

MAX_QUOTES = 4
MAX_ROWS = 6  # in a comparison, which may need a row for each side from each table
MAX_UNITS = 300  # sentences and rows compared with the query; the rest is not read
WITHIN = 0.15  # further quotes must be this close to the best score
SAME = 0.92  # two quotes with vectors at least this similar say the same
REPEATED = 0.9999  # the same limit for two rows that a comparison needs
ROW_BONUS = 0.25
FAR = 0.4  # a quote below this score does not answer the query, with the bundled model (design.md#parts)
NOT_NEAR = 0.52  # nor does one below this score if no chunk mentions an uncommon word of the query

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


def extract(query: str, hits: Sequence[Hit], embedder: Embedder) -> tuple[Quote, ...]:
    """One to four quotes, up to six in a comparison, best first; empty if the hits have no text. Raises ModelError."""
    candidates = [
        (number, hit.chunk, unit)
        for number, hit in enumerate(hits, start=1)
        for run in kept_runs(hit.chunk.text, hit.struck)
        for unit in units(run)
    ]
    candidates = ([each for each in candidates if tells(each[2])] or candidates)[:MAX_UNITS]
    if not candidates:
        return ()
    vectors = embedder.embed([query, *(titled(chunk.title, unit) for _, chunk, unit in candidates)])
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
        Quote(number, titled(chunk.title, unit) if unit.is_row else unit.text, score, unit.is_row)
        for number, chunk, unit, score in quotes
    )


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


def _facts(query: str) -> Facts:
    """The numbers in the query, by the word they belong to: {"level": {7}, "class": {6}}."""
    pairs = [(w, n) for n, w in _NUMBER_WORD.findall(query)] + _WORD_NUMBER.findall(query)
    facts: Facts = {}
    for word, number in pairs:
        facts.setdefault(_stem(word), set()).add(int(number[:9]))
    return facts


def _about(chunk: Chunk, facts: Facts, sides: Mapping[str, Facts]) -> Facts:
    """The numbers of a comparison that apply to the chunk: of the sides that its title names, or else of all sides. All
    numbers of a word apply if a side gives none for it. No number applies if the title gives a different one."""
    titled = _facts(chunk.title)
    if any(facts[word].isdisjoint(titled[word]) for word in facts.keys() & titled.keys()):
        return {}
    title_sides = [given for name, given in sides.items() if comparison.title_names(name, chunk.title)] or [{}]
    return {w: set().union(*(given.get(w, numbers) for given in title_sides)) for w, numbers in facts.items()}


def _agreement(unit: Unit, facts: Facts) -> int:
    """1 if the row has one of the numbers, -1 if it has a different one, otherwise 0."""
    label = LABEL.match(unit.text) if unit.is_row else None
    if not label or not (numbers := facts.get(_stem(label["what"]))):
        return 0
    low = int(label["low"][:9])
    high = int(label["high"][:9]) if label["high"] else low
    return 1 if any(low <= n and (label["open"] or n <= high) for n in numbers) else -1


def _stem(word: str) -> str:
    return word.lower().removesuffix("s")


def _mentions(hits: Sequence[Hit], word: str) -> bool:
    """Whether the title or text of a hit contains the word, with any ending."""
    stem = word[: max(4, len(word) - 2)]
    runs = (f"{hit.chunk.title} {run}" for hit in hits for run in kept_runs(hit.chunk.text, hit.struck))
    return any(stem in run.lower() for run in runs)
