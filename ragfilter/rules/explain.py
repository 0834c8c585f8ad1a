"""Explains a rule's verdict on a question, part by part: where terms occur, the nearest match if
none does, and the value in which the question differs from the rule. Pure.

The verdict comes from the matcher (`ragfilter.rules.match`). This module only finds the places in the original
question. Places are offsets into `whole(question)`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from functools import lru_cache

from ragfilter.rules.match import check, lowered, prepared
from ragfilter.rules.rule import Match, Rule, place_name, read_rule, terms_at
from ragfilter.text.normalise import by_script, in_word, mend_characters, normalise

NEAR = 0.7  # minimum similarity (difflib's ratio) of a near match
MAX_WORDS = 200  # of a question that are searched for near matches
MAX_COMPARED = 20_000  # words × terms; beyond it, only the first terms of a group are compared
_WORD = re.compile(r"-?[^\W_](?:\S*[^\W_])?")
"""A word without the signs around it, so that a question mark does not count as a difference."""
_LIKE = r"-?\d+(?:st|nd|rd|th)?"
_NUMBER = re.compile(rf"(?<![\w-]){_LIKE}(?!\w)")
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class TermMatch:
    """A term and its place in the question."""

    place: str
    term: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class NearMatch:
    """The closest match for a missing term: the words, their position, and the number of differing letters."""

    place: str
    term: str
    words: str
    span: Span
    letters: int


@dataclass(frozen=True, slots=True)
class RulePart:
    """A group or a required or forbidden term, and whether the question meets it."""

    place: str
    terms: tuple[str, ...]
    met: bool
    found: tuple[TermMatch, ...]
    near: NearMatch | None = None

    @property
    def named(self) -> str:
        """The part's name in the form, such as ``Group 1``."""
        return place_name(self.place)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Whether the question meets the rule, the reason in words, and the parts."""

    passes: bool
    reason: str
    parts: tuple[RulePart, ...]


def explain(rule: Rule, question: str) -> Explanation:
    """Explain `rule` for `question`."""
    verdict = check(rule, question)
    text = _Text.of(mend_characters(question), rule.match)
    return Explanation(verdict.passes, verdict.reason, tuple(_parts(rule, text)))


def _parts(rule: Rule, text: _Text) -> Iterator[RulePart]:
    for place, group in rule.demands.items():
        terms = [*terms_at(place, group).items()]
        matches = tuple(filter(None, (text.found(*each) for each in terms)))
        yield RulePart(place, group, bool(matches), matches, None if matches else text.nearest(terms))
    for place, term in terms_at("contain_none_of", rule.contain_none_of).items():
        present = text.found(place, term)
        yield RulePart(place, (term,), present is None, () if present is None else (present,))


@dataclass(frozen=True, slots=True)
class _Text:
    """A question as the mode compares it, with the original position of each character."""

    written: str
    compared: str
    origins: tuple[Span, ...]
    mode: Match

    @staticmethod
    def of(written: str, mode: Match) -> _Text:
        characters = list(_words(written) if mode == "word" else _lowered(written))
        compared = "".join(char for char, _ in characters)
        return _Text(written, compared, tuple(span for _, span in characters), mode)

    def found(self, place: str, term: str) -> TermMatch | None:
        """Where `term` is in the original question; None if it is not."""
        sought = self._prepare(term)
        starts = (m.start() for m in re.finditer(f"(?={re.escape(sought)})", self.compared))
        spans = tuple(
            self._span(start, start + len(sought))
            for start in starts
            if self.mode == "substring" or self._has_edges(start, start + len(sought))
        )
        return TermMatch(place, term, spans) if spans else None

    def nearest(self, terms: Sequence[tuple[str, str]]) -> NearMatch | None:
        """The words most similar to one of `terms`; their number may differ by one."""
        words = [m.span() for m in _WORD.finditer(self.compared)][:MAX_WORDS]
        best: NearMatch | None = None
        ratio = NEAR
        for place, term in terms[: MAX_COMPARED // max(1, len(words))]:
            sought = self._prepare(term)
            length = len(sought.split())
            spans = {
                self.compared[start:end]: (start, end)
                for n in (length - 1, length + 1, length)
                for (start, _), (_, end) in zip(words, words[n - 1 :], strict=False)
                if n
            }
            for near in get_close_matches(sought, spans, n=1, cutoff=ratio):
                matcher = SequenceMatcher(None, near, sought, autojunk=False)
                if matcher.ratio() > ratio:
                    ratio, span = matcher.ratio(), self._span(*spans[near])
                    words_there = self.written[slice(*span)]
                    best = NearMatch(place, term, words_there, span, _letters(matcher))
        return best

    def _prepare(self, term: str) -> str:
        return normalise(term) if self.mode == "word" else lowered(term)

    def _has_edges(self, start: int, end: int) -> bool:
        text = self.compared
        return not any(0 < at < len(text) and in_word(text[at - 1]) and in_word(text[at]) for at in (start, end))

    def _span(self, start: int, end: int) -> Span:
        return self.origins[start][0], self.origins[end - 1][1]


@lru_cache(maxsize=4096)
def differing_quantity(text: str | None, question: str) -> str:
    """The value whose number differs between the stored rule and the question ("armor class 6" if
    the rule wants 7), in the rule's own words; derived only from the terms of the rule.

    It is a part of the rule that the question does not meet. Most of the part's terms contain a number, and one of them
    has the question's words. Empty if there is none."""
    rule = read_rule(text)
    if not isinstance(rule, Rule):
        return ""
    normalised, sought = normalise(question), prepared(question, rule.match)
    for terms in rule.demands.values():
        if any(prepared(term, rule.match) in sought for term in terms):
            continue
        numbered = [each for term in terms if (each := _numbered(normalise(term)))]
        if 2 * len(numbered) > len(terms) and any(re.search(like, normalised) for _, like in numbered):
            return numbered[0][0]
    return ""


def _numbered(term: str) -> tuple[str, str] | None:
    """The words of a term with one number, and a pattern that matches the term with any number."""
    before, *rest = _NUMBER.split(term)
    words = " ".join(f"{before} {rest[0]}".split()).strip(" -") if len(rest) == 1 else ""
    if not any(map(str.isalpha, words)):
        return None
    return words, rf"(?<!\w){re.escape(before)}{_LIKE}{re.escape(rest[0])}(?!\w)"


def _words(text: str) -> Iterator[tuple[str, Span]]:
    """Yield the characters of the words of `text`, normalised and separated by a space, each with its place. If
    normalising changes the length of a word, all its characters map to the whole word."""
    before = -1
    for match in re.finditer(r"\S+", text):
        end = match.start()
        for word in by_script(match.group()):
            start, end = end, end + len(word)
            normalised = normalise(word)
            if normalised and before >= 0:
                yield " ", (before, start)
            if len(normalised) == len(word):
                yield from ((char, (start + i, start + i + 1)) for i, char in enumerate(normalised))
            else:
                yield from ((char, (start, end)) for char in normalised)
            before = end if normalised else before


def _lowered(text: str) -> Iterator[tuple[str, Span]]:
    # A few characters become two in lower case, and a sigma depends on its neighbours.
    spans = ((i, i + 1) for i, char in enumerate(text) for _ in char.lower())
    return zip(lowered(text), spans, strict=True)


def _letters(matcher: SequenceMatcher[str]) -> int:
    codes = (code for code in matcher.get_opcodes() if code[0] != "equal")
    return sum(max(i2 - i1, j2 - j1) for _, i1, i2, j1, j2 in codes)
