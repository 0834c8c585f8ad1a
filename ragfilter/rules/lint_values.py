"""What lint says of numbers in rules, of words that every question holds, and of one rule on chunks
whose titles differ in a value. The kinds are described in `ragfilter.rules.lint`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from ragfilter.errors import RuleError
from ragfilter.rules.contexts import find_held, held_forms
from ragfilter.rules.match import prepared
from ragfilter.rules.named import find_named
from ragfilter.rules.plurals import forms
from ragfilter.rules.rule import Rule, canonical, parse, shorten, terms, without
from ragfilter.rules.values import (
    COMMON,
    NUMBERS,
    Number,
    Value,
    acronym,
    is_number,
    mask,
    numbers,
    parts,
    spellings,
    stands_alone,
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
    sure: bool = True


def of_rule(rule: Rule, title: str, text: str) -> Iterator[Fault]:
    """The faults of one rule on a chunk with this title and text."""
    yield from _bare(rule, title)
    yield from _everywhere(rule)
    yield from _missing_spellings(rule, title, text)


def find_shared(
    rules: Mapping[str, str], titles: Mapping[str, str], texts: Iterable[str] = ()
) -> dict[str, Fault]:
    """By chunk id, rules that stand on several chunks whose titles differ in a number, or else in
    a name, only. `texts` and titles say which names have a plural."""
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
        named = {i: [p for p in parts(titles[i]) if isinstance(p, Number)] for i in ids}
        if len({tuple(numbers) for numbers in named.values()}) < 2:
            continue
        problem = (
            f"The same rule stands on {len(ids)} chunks whose titles differ in a number, so it "
            "cannot tell them apart. Ask for the number too."
        )
        for chunk_id in ids:
            others = [v for i in ids if i != chunk_id for v in values(titles[i])]
            known = {v.number for v in others}
            own = [v for v in values(titles[chunk_id]) if v.number not in known]
            found[chunk_id] = Fault("shared", "", problem, _with_value(text, own, others))
    return found | _shared_by_names(
        {t: [i for i in ids if i not in found] for t, ids in of_text.items()}, titles, texts
    )


def _shared_by_names(
    of_text: Mapping[str, Sequence[str]], titles: Mapping[str, str], texts: Iterable[str]
) -> dict[str, Fault]:
    """They may all be meant ("price" for every price list), so it is not sure."""
    alike = [
        (text, [(ids[at], name.named) for at, name in siblings])
        for text, ids in of_text.items()
        if len(ids) > 1
        for _, siblings in find_named([titles.get(i, "") for i in ids], 2)
    ]
    named = {form for _, siblings in alike for _, name in siblings for form in forms(name)}
    held = find_held(named, chain(texts, titles.values())) if named else set()
    found: dict[str, Fault] = {}
    for text, siblings in alike:
        for chunk_id, name in siblings:
            problem = (
                f"The same rule stands on {len(siblings)} chunks whose titles differ in a name, "
                f"such as “{name}”, so it cannot tell them apart. Ask for the name too."
            )
            better = _with_group_of(text, held_forms(name, held))
            if better is not None:
                found[chunk_id] = Fault("shared", "", problem, better, sure=False)
    return found


def _with_value(text: str, own: Sequence[Value], others: Sequence[Value]) -> str | None:
    """The rule with a group for the value, in the place of one for a sibling's."""
    if len(own) != 1:
        return None
    every = {term for value in others for term in spellings(value, _contexts(value))}
    return _with_group_of(text, spellings(own[0], _contexts(own[0])), every)


def _with_group_of(
    text: str, group: tuple[str, ...], instead_of: Collection[str] = ()
) -> str | None:
    """The rule with one more group, and without those that ask for `instead_of`; None where it
    asks for that already."""
    try:
        rule = parse(text)
    except RuleError:
        return None
    known, wrong = ({prepared(t, rule.match) for t in terms} for terms in (group, instead_of))
    asked = [{prepared(term, rule.match) for term in old} for old in rule.contain_one_of]
    if any(known & terms for terms in asked):
        return None
    kept = [old for old, terms in zip(rule.contain_one_of, asked, strict=True) if not terms & wrong]
    return canonical(replace(rule, contain_one_of=(*kept, group)))


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
        yield Fault(
            "bare",
            place,
            f"“{shorten(term)}” is a number alone: any question with that number has it. Write "
            "what it counts too.",
            None if group is None else _counting(rule, int(group.group(1)), term, title),
        )


def _counting(rule: Rule, index: int, term: str, title: str) -> str | None:
    """The rule with what the number counts, by the title, else by the other terms of its group;
    None where neither says it."""
    group = rule.contain_one_of[index]
    fitting = [v for v in values(title) if term.strip() in (*numbers(v.number), v.written)]
    if len(fitting) == 1:
        same = (*numbers(fitting[0].number), fitting[0].written)
        more = spellings(fitting[0], _contexts(fitting[0]))
        made = [t for old in group for t in (more if old.strip() in same else (old,))]
    else:
        made = [old for old in group if old != term]
        if not any(term.strip() in tokens(old) for old in made):
            return None
    return _with_group(rule, f"contain_one_of[{index}]", tuple(dict.fromkeys(made)))


def _is_bare(term: str) -> bool:
    found = parts(term)
    if len(found) != 1:
        return False
    (part,) = found
    if isinstance(part, Number) and stands_alone(part.written):
        return False
    return part in NUMBERS if isinstance(part, str) else any(map(str.isdigit, part.written))


def _counted(title: str) -> Iterator[str]:
    """The words before the numbers of a title, of ranges and lists too."""
    found = tokens(title)
    for at, token in enumerate(found):
        if is_number(token):
            before = (word for word in reversed(found[:at]) if not is_number(word) and word != "-")
            word = next(before, "")
            if word[:1].isalpha():
                yield word


def _everywhere(rule: Rule) -> Iterator[Fault]:
    """Terms of words that every question holds."""
    for place, term in terms(rule):
        # "?" ends most questions; "???" none.
        sign = len(term.strip()) == 1 and not term.strip().isalnum()
        if not sign and not all(token in COMMON for token in tokens(term)):
            continue
        index = _GROUP.match(place)
        if place.startswith("contain_none_of"):
            so = "hardly any passes"
        else:
            so = "it asks nothing" if index is None else "the group asks nothing"
        problem = f"“{shorten(term)}” is in nearly every question, so {so}. Remove it."
        alone = index is not None and len(rule.contain_one_of[int(index.group(1))]) == 1
        gone = index.group(0) if alone and index is not None else place
        left = without(rule, gone)
        # A rule that asks for nothing is no mend: what was meant only its author knows.
        yield Fault("everywhere", place, problem, left if any(terms(parse(left))) else None)


def _missing_spellings(rule: Rule, title: str, text: str) -> Iterator[Fault]:
    """A value of the chunk that the rule names in some of the usual ways only."""
    stand = {f"contain_one_of[{i}]": group for i, group in enumerate(rule.contain_one_of)}
    required = [] if rule.contain is None else [("contain", rule.contain)]
    required += [(f"contain_all_of[{i}]", term) for i, term in enumerate(rule.contain_all_of)]
    stand |= {place: (term,) for place, term in required}
    for value in dict.fromkeys((*values(title), *values(text))):
        short = acronym(value.words)
        if not short or value.last is not None:
            continue
        full, number = " ".join(value.words), value.number
        usual = (f"{full} {number}", f"{full} of {number}", f"{short} {number}")
        for place, named in stand.items():
            known = {prepared(term, rule.match) for term in named}
            missing = [term for term in usual if prepared(term, rule.match) not in known]
            if missing and len(missing) < len(usual):
                shown = ", ".join(f"“{shorten(term)}”" for term in missing)
                better = _with_group(rule, place, (*named, *missing))
                yield Fault("spelling", place, f"Usual spellings are missing: {shown}.", better)


def _with_group(rule: Rule, place: str, group: tuple[str, ...]) -> str:
    """The rule with `group` at `place`; a required term there becomes the group."""
    index = _GROUP.match(place)
    if index is None:
        left = parse(without(rule, place))
        return canonical(replace(left, contain_one_of=(*left.contain_one_of, group)))
    groups = list(rule.contain_one_of)
    groups[int(index.group(1))] = group
    return canonical(replace(rule, contain_one_of=tuple(groups)))
