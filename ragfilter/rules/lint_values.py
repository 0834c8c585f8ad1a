"""What lint says of numbers in rules, of words that every question holds, and of one rule on chunks
whose titles differ in a value. The kinds are described in `ragfilter.rules.lint`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from ragfilter.errors import RuleError
from ragfilter.rules.match import prepared
from ragfilter.rules.rule import Rule, canonical, parse, shorten, terms, without
from ragfilter.rules.values import (
    COMMON,
    NUMBERS,
    Value,
    acronym,
    is_number,
    mask,
    spellings,
    tokens,
    values,
)

_GROUP = re.compile(r"contain_one_of\[(\d+)\]")


class Fault(NamedTuple):
    """A finding before it is told whose it is."""

    kind: str
    place: str
    problem: str
    proposal: str | None = None


def of_rule(rule: Rule, title: str) -> Iterator[Fault]:
    """The faults of one rule on a chunk with this title."""
    yield from _bare(rule, title)
    yield from _everywhere(rule)
    yield from _missing_spellings(rule, title)


def find_shared(rules: Mapping[str, str], titles: Mapping[str, str]) -> dict[str, Fault]:
    """By chunk id, rules that stand on several chunks whose titles differ in a number only."""
    families: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    of_text: dict[str, list[str]] = defaultdict(list)
    for chunk_id, text in rules.items():
        of_text[text].append(chunk_id)
    for text, ids in of_text.items():
        if len(ids) > 1:
            for chunk_id in ids:
                families[text, mask(titles.get(chunk_id, ""))].append(chunk_id)
    found: dict[str, Fault] = {}
    for (text, masked), ids in families.items():
        if len(ids) < 2 or "#" not in masked:
            continue
        named = {i: [t for t in tokens(titles[i]) if is_number(t)] for i in ids}
        if len({tuple(numbers) for numbers in named.values()}) < 2:
            continue
        problem = (
            f"The same rule stands on {len(ids)} chunks whose titles differ in a number, so it "
            "cannot tell them apart. Ask for the number too."
        )
        for chunk_id in ids:
            others = {t for i in ids if i != chunk_id for t in named[i]}
            own = [v for v in values(titles[chunk_id]) if str(v.number) not in others]
            found[chunk_id] = Fault("shared", "", problem, _with_value(text, own))
    return found


def _with_value(text: str, own: Sequence[Value]) -> str | None:
    try:
        rule = parse(text)
    except RuleError:
        return None
    if len(own) != 1:
        return None
    group = spellings(own[0], _contexts(own[0]))
    return canonical(replace(rule, contain_one_of=(*rule.contain_one_of, group)))


def _contexts(value: Value) -> tuple[str, ...]:
    return tuple(filter(None, (" ".join(value.words), acronym(value.words))))


def _bare(rule: Rule, title: str) -> Iterator[Fault]:
    """A number alone, where no other part says what it counts."""
    if rule.match != "word":
        return
    counted = set(_counted(title))
    for place, term in terms(rule):
        if place.startswith("contain_none_of") or not _is_bare(term):
            continue
        group = _GROUP.match(place)
        own = group.group(0) if group else place
        others = {w for at, t in terms(rule) if not at.startswith(own) for w in tokens(t)}
        # Several required numbers narrow each other, beside a word at least.
        together = place.startswith("contain_all_of") and any(w[0].isalpha() for w in others)
        if counted & others or together:
            continue
        fitting = [v for v in values(title) if str(v.number) == term.strip()]
        proposal = None
        if group and len(fitting) == 1:
            more = spellings(fitting[0], _contexts(fitting[0]))
            proposal = _in_place_of(rule, int(group.group(1)), term, more)
        problem = (
            f"“{shorten(term)}” is a number alone: any question with that number has it. Write "
            "what it counts too."
        )
        yield Fault("bare", place, problem, proposal)


def _is_bare(term: str) -> bool:
    parts = tokens(term)
    return len(parts) == 1 and (is_number(parts[0]) or parts[0] in NUMBERS)


def _counted(title: str) -> Iterator[str]:
    """The words before the numbers of a title, of ranges and lists too."""
    parts = tokens(title)
    for at, token in enumerate(parts):
        if is_number(token):
            before = (word for word in reversed(parts[:at]) if not is_number(word) and word != "-")
            word = next(before, "")
            if word[:1].isalpha():
                yield word


def _in_place_of(rule: Rule, index: int, term: str, more: Iterable[str]) -> str:
    groups = list(rule.contain_one_of)
    made = [t for old in groups[index] for t in (more if old == term else (old,))]
    groups[index] = tuple(dict.fromkeys(made))
    return canonical(replace(rule, contain_one_of=tuple(groups)))


def _everywhere(rule: Rule) -> Iterator[Fault]:
    """Terms of words that every question holds."""
    for place, term in terms(rule):
        if not all(token in COMMON and len(token) > 1 for token in tokens(term)):
            continue
        index = _GROUP.match(place)
        if place.startswith("contain_none_of"):
            problem = f"“{shorten(term)}” is in nearly every question, so hardly any passes."
        elif index:
            problem = f"“{shorten(term)}” is in nearly every question, so the group asks nothing."
        else:
            problem = f"“{shorten(term)}” is in nearly every question, so it asks nothing."
        alone = index is not None and len(rule.contain_one_of[int(index.group(1))]) == 1
        gone = index.group(0) if alone and index is not None else place
        yield Fault("everywhere", place, problem, without(rule, gone))


def _missing_spellings(rule: Rule, title: str) -> Iterator[Fault]:
    """The title's value, where a group names it in some of the usual ways only."""
    for value in values(title):
        short = acronym(value.words)
        if not short:
            continue
        full, number = " ".join(value.words), value.number
        usual = (f"{full} {number}", f"{full} of {number}", f"{short} {number}")
        for i, group in enumerate(rule.contain_one_of):
            known = {prepared(term, rule.match) for term in group}
            missing = [term for term in usual if prepared(term, rule.match) not in known]
            if not missing or len(missing) == len(usual):
                continue
            groups = list(rule.contain_one_of)
            groups[i] = (*group, *missing)
            shown = ", ".join(f"“{shorten(term)}”" for term in missing)
            yield Fault(
                "spelling",
                f"contain_one_of[{i}]",
                f"Usual spellings are missing: {shown}.",
                canonical(replace(rule, contain_one_of=tuple(groups))),
            )
