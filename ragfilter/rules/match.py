"""Matches rules against a query. A collection's rules are compiled once, and a query is scanned once.

Source: Filtering, "Layer 2: Post-Retrieval Filtering"; docs/design.md#matching.

``word`` mode compares normalised text (`ragfilter.text.normalise`). A term must begin and end at a token edge: if its
first (last) character is a letter or digit, the character before (after) it must not be one. So "armor class 1" is not
in "armor class 10", "int" not in "point" and "7" not in "7th", but "10" and "13" are in "10-13", and "6" is in "-6";
write "armor class 6" to tell them apart. A change of script is also an edge: "aws" is in "AWSの料金". Scripts that are
written without spaces have no edges inside, so use ``substring`` for them.

``substring`` mode does what the source does: it looks for one text in the other, both in lower case. As in ``word``
mode, all apostrophes are alike, and so are all quotation marks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import ahocorasick_rs
import numpy as np
import numpy.typing as npt

from ragfilter.basics.threads import collecting_nothing
from ragfilter.errors import RuleError
from ragfilter.rules.rule import InvalidRule, Match, Rule, read_text
from ragfilter.text.normalise import QUOTES, mark_words, mend_characters, normalise

Ints = npt.NDArray[np.int64]

# The automaton has only the first HEAD characters of each needle, and reads text in windows. So at most HEAD matches
# end at one place, and at most WINDOW * HEAD are in memory, however long or similar text and needles are.
HEAD = 64
WINDOW = 4096
# If a window has more matches than this, remove the found needles, so that they are not found again.
MANY = 4 * WINDOW
# A reason names at most this many terms and characters.
SHOWN_TERMS = 4
SHOWN_CHARS = 120


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """Whether a chunk with this rule passes, and why. `readable` is False for an invalid rule, whose chunk passes,
    since relevance fails open. `holds`: the rule requires something, and the query meets it."""

    passes: bool
    reason: str
    readable: bool = True
    holds: bool = False


NO_RULE = RuleCheck(True, "no rule")


class _Compiled(NamedTuple):
    """A readable rule whose parts contain term numbers instead of terms."""

    rule: Rule
    groups: tuple[tuple[int, ...], ...]
    required: tuple[int, ...]
    forbidden: tuple[int, ...]


class CompiledRules:
    """The distinct rule texts of a collection, compiled. Immutable and thread-safe. A rule is a set of clauses (each
    group, each required term) that must all be met, and a set of terms that must not occur. Terms and clauses that
    rules share are stored once."""

    def __init__(self, rules: Iterable[str]) -> None:
        """Compile `rules`; invalid ones are stored with their error."""
        self.errors: dict[str, RuleError] = {}
        self._number: dict[str, int] = {}
        self._compiled: list[_Compiled] = []
        numbers: dict[Match, dict[str, int]] = {"word": {}, "substring": {}}

        # A collection's rules share most terms, so each distinct term is prepared once.
        written: dict[tuple[str, Match], int] = {}

        def number(term: str, mode: Match) -> int:
            known = written.get((term, mode))
            if known is None:
                fresh = len(numbers["word"]) + len(numbers["substring"])
                known = numbers[mode].setdefault(_prepared_term(term, mode), fresh)
                written[term, mode] = known
            return known

        with collecting_nothing():
            for text in dict.fromkeys(text for text in rules if text):
                rule = read_text(text)
                if isinstance(rule, InvalidRule):
                    self.errors[text] = rule.error
                    continue
                self._number[text] = len(self._compiled)
                parts = (*rule.contain_one_of, rule.required, rule.contain_none_of)
                *groups, required, forbidden = (tuple(number(t, rule.match) for t in part) for part in parts)
                self._compiled.append(_Compiled(rule, tuple(groups), required, forbidden))
            self._n_terms = len(numbers["word"]) + len(numbers["substring"])
            self._needles = {mode: Needles(needles) for mode, needles in numbers.items()}
            self._index()

    def scan(self, query: str, *more: CompiledRules) -> Scan:
        """Decide every rule for `query`, in linear time. Rules that are not among these are looked up in `more`."""
        term_numbers = self._find(query)
        further = more[0].scan(query, *more[1:]) if more else None
        return Scan(self, query, frozenset(term_numbers), self._evaluate(term_numbers).tolist(), further)

    def count_passes(self, queries: Iterable[str]) -> dict[str, int]:
        """Count how many of `queries` meet each rule, by rule text. Every query meets an unreadable rule."""
        queries, counts = list(queries), np.zeros(len(self._compiled), dtype=np.int64)
        for query in queries:
            counts += self._evaluate(self._find(query))
        passes = {text: int(counts[number]) for text, number in self._number.items()}
        return passes | dict.fromkeys(self.errors, len(queries))

    def _find(self, query: str) -> set[int]:
        term_numbers: set[int] = set()
        for mode, needles in self._needles.items():
            term_numbers |= needles.find(prepared(query, mode))
        return term_numbers

    def _index(self) -> None:
        clauses: dict[frozenset[int], int] = {}
        of_rule: list[tuple[int, int]] = []
        forbidden: list[tuple[int, int]] = []
        for number, compiled in enumerate(self._compiled):
            parts = [frozenset(group) for group in compiled.groups]
            parts += [frozenset((term,)) for term in compiled.required]
            of_rule += ((clauses.setdefault(p, len(clauses)), number) for p in dict.fromkeys(parts))
            forbidden += ((term, number) for term in compiled.forbidden)
        of_clause = [(term, number) for clause, number in clauses.items() for term in clause]
        self._n_clauses = len(clauses)
        self._clauses_of_term = _Rows.of(of_clause, self._n_terms)
        self._rules_of_clause = _Rows.of(of_rule, len(clauses))
        self._forbidden_by_term = _Rows.of(forbidden, self._n_terms)
        rules = np.array([rule for _, rule in of_rule], dtype=np.int64)
        self._wanted = np.bincount(rules, minlength=len(self._compiled))

    def _evaluate(self, found: set[int]) -> npt.NDArray[np.bool_]:
        terms = np.fromiter(found, dtype=np.int64, count=len(found))
        met = np.zeros(self._n_clauses, dtype=np.bool_)
        met[self._clauses_of_term.pick(terms)] = True
        rules = self._rules_of_clause.pick(np.flatnonzero(met))
        holds: npt.NDArray[np.bool_] = np.bincount(rules, minlength=len(self._compiled)) == self._wanted
        holds[self._forbidden_by_term.pick(terms)] = False
        return holds


@dataclass(slots=True, eq=False)
class Scan:
    """A query scanned with compiled rules. Reasons are worded on request, once per rule."""

    _rules: CompiledRules
    query: str
    _found: frozenset[int]
    _holds: Sequence[bool]
    _further: Scan | None
    _checks: dict[str, RuleCheck] = field(default_factory=dict)

    def passes(self, rule: str | None) -> bool:
        """Whether a chunk with this rule text stays: the rule holds, is absent or is unreadable."""
        if not rule:
            return True
        number = self._rules._number.get(rule)
        return self.check(rule).passes if number is None else self._holds[number]

    def check(self, rule: str | None) -> RuleCheck:
        """Whether a chunk with this rule text stays, and why. An unsaved edit is compiled here."""
        if not rule:
            return NO_RULE
        if rule not in self._checks:
            self._checks[rule] = self._check(rule)
        return self._checks[rule]

    def _check(self, rule: str) -> RuleCheck:
        number, error = self._rules._number.get(rule), self._rules.errors.get(rule)
        if number is not None:
            compiled, holds = self._rules._compiled[number], self._holds[number]
            why = (_why_holds if holds else _why_not)(compiled, self._found)
            return RuleCheck(holds, why, holds=holds and bool(compiled.groups or compiled.required))
        if error is not None:
            what = error.message.rstrip(".")
            return RuleCheck(True, f"rule cannot be read ({what}), so the chunk passes", readable=False)
        if self._further is not None:
            return self._further.check(rule)
        return CompiledRules((rule,)).scan(self.query).check(rule)


def check(rule: Rule, query: str) -> RuleCheck:
    """Decide one rule for one query."""
    return CompiledRules((rule.text,)).scan(query).check(rule.text)


def prepared(text: str, mode: Match) -> str:
    """Prepare a term or query for its mode, so that a plain substring is a match."""
    return mark_words(normalise(text)) if mode == "word" else lowered(text)


def lowered(text: str) -> str:
    """`text` as substring mode compares it."""
    return mend_characters(text).lower().translate(QUOTES)


# Every question compiles its own rules, but a collection's rules stay the same.
_prepared_term = lru_cache(maxsize=16384)(prepared)


@lru_cache(maxsize=4)
def compiled_rules(rules: tuple[str, ...]) -> CompiledRules:
    """These rule texts, compiled. The last few are cached, since every rerun needs the same ones."""
    return CompiledRules(rules)


def _why_holds(compiled: _Compiled, found: frozenset[int]) -> str:
    rule = compiled.rule
    groups = zip(rule.contain_one_of, compiled.groups, strict=True)
    met = [*rule.required, *(_among(found, terms, numbers)[0] for terms, numbers in groups)]
    if met:
        return f"rule holds: {_named(list(dict.fromkeys(met)))}"
    if rule.contain_none_of:
        return f"rule holds: none of {_named(rule.contain_none_of)}"
    return "rule holds: it asks for nothing"


def _why_not(compiled: _Compiled, found: frozenset[int]) -> str:
    rule = compiled.rule
    groups = zip(rule.contain_one_of, compiled.groups, strict=True)
    required = zip(rule.required, compiled.required, strict=True)
    # One term per group, and short, because tables cut reasons off.
    unmet = [terms for terms, numbers in groups if found.isdisjoint(numbers)]
    missing = [f"{terms[0]} or an alternative" if len(terms) > 1 else terms[0] for terms in unmet]
    missing += [term for term, number in required if number not in found]
    why = [f"missing {_named(missing)}"] if missing else []
    if present := _among(found, rule.contain_none_of, compiled.forbidden):
        why.append(f"must not contain: {_named(present)}")
    return "; ".join(why)


def _among(found: frozenset[int], terms: Sequence[str], numbers: Sequence[int]) -> list[str]:
    return [term for term, number in zip(terms, numbers, strict=True) if number in found]


def _named(terms: Sequence[str]) -> str:
    shown = ", ".join(terms[:SHOWN_TERMS])
    if len(shown) > SHOWN_CHARS:
        shown = f"{shown[: SHOWN_CHARS - 1]}…"
    return f"{shown}, …" if len(terms) > SHOWN_TERMS else shown


class Needles:
    """Finds which of many numbered search terms occur in a text, in one pass (Aho-Corasick). Immutable."""

    def __init__(self, needles: Mapping[str, int]) -> None:
        """`needles`: text → number. Texts must not be empty, and must be encodable as UTF-8."""
        by_head: dict[str, list[tuple[str, int]]] = {}
        for needle, number in needles.items():
            by_head.setdefault(needle[:HEAD], []).append((needle, number))
        self._heads = list(by_head)
        self._needles = list(by_head.values())
        self._automaton = ahocorasick_rs.AhoCorasick(self._heads)

    def find(self, text: str) -> set[int]:
        """The numbers of the needles that occur in `text`. Linear in the length of the text."""
        return {
            number
            for head in self._find_heads(text)
            for needle, number in self._needles[head]
            if len(needle) <= HEAD or needle in text
        }

    def _find_heads(self, text: str) -> set[int]:
        heads: set[int] = set()
        sought: Sequence[int] = range(len(self._heads))
        automaton = self._automaton
        for start in range(0, len(text), WINDOW):
            window = text[start : start + WINDOW + HEAD]
            matches = automaton.find_matches_as_indexes(window, overlapping=True)
            heads.update({sought[index] for index, _, _ in matches})
            if len(heads) == len(self._heads):
                break
            if len(matches) > MANY:
                sought = [head for head in sought if head not in heads]
                automaton = ahocorasick_rs.AhoCorasick([self._heads[head] for head in sought])
        return heads


class _Rows(NamedTuple):
    """Lists of numbers stored end to end: row i is ``values[starts[i] : starts[i + 1]]``."""

    starts: Ints
    values: Ints

    @staticmethod
    def of(pairs: Sequence[tuple[int, int]], n_rows: int) -> _Rows:
        """Rows from (row, value) pairs."""
        table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        order = np.argsort(table[:, 0], kind="stable")
        counts = np.bincount(table[:, 0], minlength=n_rows)
        starts = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        return _Rows(starts, table[order, 1])

    def pick(self, rows: Ints) -> Ints:
        """The values of these rows, end to end."""
        begins = self.starts[rows]
        counts = self.starts[rows + 1] - begins
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        picked: Ints = self.values[np.arange(total) + np.repeat(begins - (ends - counts), counts)]
        return picked
