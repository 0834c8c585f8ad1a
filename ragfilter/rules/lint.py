"""Finds errors and doubts in stored rules, and offers a better rule where it can.

Source: docs/design.md#contradictions (the three-group mistake) and docs/design.md#rules.

kind        severity  means
unreadable  error     the rule is invalid, so its chunk always passes
impossible  error     no query can meet the rule: a required term contains a forbidden one
spread      warning   alternatives are in separate groups, see `ragfilter.rules.alternatives`
loose       warning   as a substring, a term is also found within longer words or numbers
no_edges    warning   a term in a script without spaces is hardly ever found in word mode
empty       warning   the rule requires nothing
list        warning   a term is a list of three or more, or ends in a comma or a full stop
bare        warning   a number is alone, and nothing says what it counts
everywhere  warning   a term is in nearly every question
shared      warning   several chunks whose titles differ in a number or name have the rule
spelling    note      a group lacks a usual spelling of a value ("ac 6", "armor class of 6")
dead        note      an alternative never helps, because it contains a forbidden term
duplicate   note      a term or group occurs twice
covered     note      a term or group changes nothing, because another one decides
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from ragfilter.errors import RuleError
from ragfilter.rules import lint_values
from ragfilter.rules.alternatives import spread
from ragfilter.rules.lint_values import Fault
from ragfilter.rules.match import prepared
from ragfilter.rules.rule import (
    Rule,
    canonical,
    demands,
    parse,
    placed,
    replaced,
    shorten,
    terms,
    without,
)
from ragfilter.rules.values import COMMON
from ragfilter.text.normalise import UNSPACED, script

Severity = Literal["error", "warning", "note"]
SEVERITY: Mapping[str, Severity] = {
    "unreadable": "error",
    "impossible": "error",
    "spread": "warning",
    "loose": "warning",
    "no_edges": "warning",
    "empty": "warning",
    "list": "warning",
    "bare": "warning",
    "everywhere": "warning",
    "shared": "warning",
    "spelling": "note",
    "dead": "note",
    "duplicate": "note",
    "covered": "note",
}
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
SHORT = 3
_BETWEEN = re.compile(r"[,;](?:\s+|$)|[\u3001\uff0c\u060c\u061b\uff1b]\s*|(?<=\d)\.$")
"""Separates the terms of a list, or ends a sentence after a number. "10,000" is one number."""
LIST = 3
"""Pieces that make a list. Two may be one name, such as "New York, NY"."""
MOST_PIECES = 50


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem in a rule. `place` is a path within the rule, empty for the rule as a whole.
    `proposal` is the canonical text of a rule without this problem, empty for no rule, None if only
    a person can tell what was meant. If it is not `sure`, the rule may be intended as it is."""

    chunk_id: str
    kind: str
    place: str
    problem: str
    proposal: str | None = None
    sure: bool = True

    @property
    def severity(self) -> Severity:
        """``error``: the rule does not work; ``warning``: probably not what was meant; ``note``:
        could be shorter."""
        return SEVERITY[self.kind]


def by_severity(findings: Iterable[Finding]) -> list[Finding]:
    """Sort errors first, then warnings, then notes; stable otherwise."""
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def lint(
    rules: Mapping[str, str],
    titles: Mapping[str, str] | None = None,
    texts: Mapping[str, str] | None = None,
    usual: Collection[str] = COMMON,
    others: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Finding, ...]:
    """Findings about `rules` (chunk id to rule text), in their order. With `titles` (by chunk id),
    alternatives listed in a title are recognised too. `texts` say what a number counts if the title
    does not, and which names have a plural. `usual` are the words of nearly every question, as
    `usual_words` finds them. `others` are the rules of other chunks, which are only compared."""
    titles, texts = titles or {}, texts or {}
    known: dict[tuple[str, str, str], tuple[Fault, ...]] = {}
    found: list[Finding] = []
    wanted = set(rules.values())
    alike = {i: text for i, text in others.items() if text in wanted}
    same = find_shared({**alike, **rules}, titles, texts)
    for chunk_id, text in rules.items():
        key = (text, titles.get(chunk_id, ""), texts.get(chunk_id, ""))
        if key not in known:
            known[key] = tuple(_of_text(*key, usual))
        found += (Finding(chunk_id, *fault) for fault in known[key])
        if chunk_id in same:
            found.append(same[chunk_id])
    return tuple(found)


def find_shared(
    rules: Mapping[str, str], titles: Mapping[str, str], texts: Mapping[str, str] | None = None
) -> dict[str, Finding]:
    """The findings of kind ``shared`` by chunk id; they depend on all rules together."""
    faults = lint_values.find_shared(rules, titles, (texts or {}).values())
    return {chunk_id: Finding(chunk_id, *fault) for chunk_id, fault in faults.items()}


def _of_text(text: str, title: str, body: str, usual: Collection[str]) -> Iterator[Fault]:
    try:
        rule = parse(text)
    except RuleError as error:
        # The finding already names the place.
        problem = str(error).removeprefix(f"{error.place}: ")
        yield Fault("unreadable", error.place, problem)
        return
    if not any(terms(rule)):
        problem = "The rule asks for nothing, so the chunk always passes; remove it."
        yield Fault("empty", "", problem, "")
    against = tuple(_against_each_other(rule))
    others = (
        *_spread(rule, title),
        *against,
        *_lists(rule),
        *_redundant(rule),
        *_met_groups(rule),
        *_loose(rule),
        *_no_edges(rule),
        *lint_values.of_rule(rule, title, body, usual),
    )
    if any(fault.kind == "impossible" for fault in against):
        # Only the author knows how to fix this. Fixing another finding would not help, because no
        # query could meet the rule anyway.
        others = tuple(fault._replace(proposal=None) for fault in others)
    yield from others


def _spread(rule: Rule, title: str) -> Iterator[Fault]:
    found = spread(rule, title)
    if found is not None:
        *most, last = (f"“{shorten(name)}”" for name in found.names)
        problem = (
            f"As written, a question must mention {', '.join(most)} and {last}. "
            "If any one of them is enough, put them in one group."
        )
        yield Fault("spread", found.place, problem, canonical(found.merged), found.sure)


def _against_each_other(rule: Rule) -> Iterator[Fault]:
    for place, term in _required(rule):
        forbidden = _forbidden_in(term, rule)
        if forbidden:
            problem = f"“{shorten(term)}” is required, but “{shorten(forbidden)}” is forbidden."
            problem += " No query can meet the rule. Remove one of the two."
            yield Fault("impossible", place, problem)
    for i, group in enumerate(rule.contain_one_of):
        dead = [(j, _forbidden_in(term, rule)) for j, term in enumerate(group)]
        if all(forbidden for _, forbidden in dead):
            problem = (
                "Every term of the group contains a forbidden one. No query can meet the rule. "
                "Remove what is forbidden, or the group."
            )
            yield Fault("impossible", f"contain_one_of[{i}]", problem)
            continue
        for j, forbidden in dead:
            if forbidden:
                place = f"contain_one_of[{i}][{j}]"
                problem = f"“{shorten(group[j])}” never helps: “{shorten(forbidden)}” is "
                problem += "forbidden. Remove it."
                yield Fault("dead", place, problem, without(rule, place))


def _lists(rule: Rule) -> Iterator[Fault]:
    """Terms that were pasted as a list."""
    for place, term in terms(rule):
        pieces = tuple(dict.fromkeys(p.strip() for p in _BETWEEN.split(term) if p.strip()))
        trails = len(pieces) == 1 and pieces[0] != term.strip()
        if not trails and len(pieces) < LIST:
            continue
        listed = ", ".join(f"“{shorten(piece)}”" for piece in pieces[:LIST])
        more = f" and {len(pieces) - LIST} more" if len(pieces) > LIST else ""
        problem = f"“{shorten(term)}” is only found with its punctuation. Write {listed}{more}."
        # Of required terms only the author knows whether all of them must occur.
        clear = trails or place.startswith(("contain_one_of", "contain_none_of"))
        fits = len(pieces) <= MOST_PIECES
        proposal = replaced(rule, place, pieces) if clear and fits else None
        yield Fault("list", place, problem, proposal, sure=False)


def _redundant(rule: Rule) -> Iterator[Fault]:
    """Terms that occur twice, or that another term makes redundant: among alternatives and
    forbidden terms the longer one, among required terms the shorter one."""
    parts = [placed(f"contain_one_of[{i}]", group) for i, group in enumerate(rule.contain_one_of)]
    required = _required(rule)
    for part in (*parts, required, placed("contain_none_of", rule.contain_none_of)):
        compared = [prepared(term, rule.match) for _, term in part]
        for i, (place, term) in enumerate(part):
            if compared[i] in compared[:i]:
                problem = f"“{shorten(term)}” appears twice. Remove one."
                yield Fault("duplicate", place, problem, without(rule, place))
                continue
            decider = _decider(compared[i], compared, required=part is required)
            if decider is not None:
                other = shorten(part[decider][1])
                problem = f"“{shorten(term)}” changes nothing: “{other}” decides. Remove it."
                yield Fault("covered", place, problem, without(rule, place))


def _decider(term: str, others: Sequence[str], *, required: bool) -> int | None:
    for i, other in enumerate(others):
        if other != term and (term in other if required else other in term):
            return i
    return None


def _met_groups(rule: Rule) -> Iterator[Fault]:
    """Groups that are met whenever a required term or another group is."""
    every = [
        (place, frozenset(prepared(term, rule.match) for term in group))
        for place, group in demands(rule)
    ]
    n = len(rule.contain_one_of)
    for at, (place, group) in enumerate(every[:n]):
        for by, (other, terms_) in (*enumerate(every[n:], n), *enumerate(every[:n])):
            if by == at or not _meets(terms_, group):
                continue
            # Of two groups that meet each other, the first stays.
            if at < by < n and _meets(group, terms_):
                continue
            kind = "duplicate" if group == terms_ else "covered"
            problem = f"The group asks for nothing that {other} does not ask for."
            yield Fault(kind, place, problem, without(rule, place))
            break


def _meets(one: Iterable[str], group: Iterable[str]) -> bool:
    """Whether every query with a term of `one` also has a term of `group`."""
    return all(any(term in longer for term in group) for longer in one)


def _loose(rule: Rule) -> Iterator[Fault]:
    if rule.match == "substring":
        loose = _where(rule, _is_loose)
        if loose:
            named = ", ".join(f"“{shorten(term)}”" for _, term in loose[:4])
            more = f" and {len(loose) - 4} more" if len(loose) > 4 else ""
            problem = (
                f"Also found inside longer words or numbers, since the rule matches substrings: "
                f"{named}{more}."
            )
            unspaced = _where(rule, _unspaced)
            if unspaced:
                problem += (
                    f" Word mode would hardly find “{shorten(unspaced[0][1])}”, so write longer "
                    "terms instead."
                )
            # If word mode does not suit either, the two modes would take turns.
            proposal = None if unspaced else canonical(replace(rule, match="word"))
            # Word stems need substrings, so only the author knows.
            yield Fault("loose", loose[0][0], problem, proposal, sure=False)


def _where(rule: Rule, holds: Callable[[str], bool]) -> list[tuple[str, str]]:
    """The places and terms of a rule for which `holds`."""
    return [(place, term) for place, term in terms(rule) if holds(term)]


def _is_loose(term: str) -> bool:
    short_word = len(term) <= SHORT and term.isalpha() and not _unspaced(term)
    return short_word or term[0].isdigit() or term[-1].isdigit()


def _no_edges(rule: Rule) -> Iterator[Fault]:
    unspaced = _where(rule, _unspaced) if rule.match == "word" else ()
    if unspaced:
        place, term = unspaced[0]
        problem = (
            f"“{shorten(term)}” is written without spaces, so word mode finds it only where it "
            "stands alone."
        )
        loose = _where(rule, _is_loose)
        if loose:
            problem += (
                f" Substring mode would find it, but also “{shorten(loose[0][1])}” within longer "
                "words or numbers. Choose the mode by hand."
            )
        proposal = None if loose else canonical(replace(rule, match="substring"))
        yield Fault("no_edges", place, problem, proposal, sure=False)


def _unspaced(term: str) -> bool:
    return any(script(char) in UNSPACED for char in term)


def _required(rule: Rule) -> list[tuple[str, str]]:
    return [(place, group[0]) for place, group in demands(rule)][len(rule.contain_one_of) :]


def _forbidden_in(term: str, rule: Rule) -> str:
    """The first forbidden term that occurs wherever `term` occurs; empty if there is none."""
    within = prepared(term, rule.match)
    return next((t for t in rule.contain_none_of if prepared(t, rule.match) in within), "")
