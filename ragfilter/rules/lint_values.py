"""Lint checks for numbers in rules, for words that every question has, and for a rule shared by
chunks whose titles differ in a value. `ragfilter.rules.lint` describes the kinds."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from ragfilter.errors import RuleError
from ragfilter.rules.contexts import find_held, held_forms
from ragfilter.rules.match import prepared
from ragfilter.rules.named import find_named
from ragfilter.rules.plurals import forms
from ragfilter.rules.rule import Rule, canonical, demands, parse, shorten, terms, without
from ragfilter.rules.values import (
    COMMON,
    NUMBERS,
    ORDINALS,
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
from ragfilter.text.normalise import normalise

ENOUGH, NEARLY_ALL = 20, 0.95
"""So many questions show which words are usual, and the share of them that has such a word."""
_GROUP = re.compile(r"contain_one_of\[(\d+)\]")


class Fault(NamedTuple):
    """A finding that is not yet assigned to a rule."""

    kind: str
    place: str
    problem: str
    proposal: str | None = None
    sure: bool = True


def of_rule(rule: Rule, title: str, text: str, usual: Collection[str] = COMMON) -> Iterator[Fault]:
    """The faults of one rule on a chunk with this title and text. `usual` words are in nearly every
    question."""
    yield from _bare(rule, title)
    yield from _everywhere(rule, usual)
    yield from _missing_spellings(rule, title, text)


def find_shared(
    rules: Mapping[str, str], titles: Mapping[str, str], texts: Iterable[str] = ()
) -> dict[str, Fault]:
    """Find rules shared by several chunks whose titles differ in a number, a name or both, by chunk
    id. `texts` and titles show which names have a plural. The rule may be meant for all of them
    ("price" for every price list); the only certain mistake is asking for a sibling's number."""
    of_text: dict[str, list[str]] = defaultdict(list)
    for chunk_id, text in rules.items():
        of_text[text].append(chunk_id)
    of_text = {text: ids for text, ids in of_text.items() if len(ids) > 1}
    found: dict[str, Fault] = {}
    by_number = dict(_differ_in_numbers(of_text, titles))
    for chunk_id, ids in by_number.items():
        others = [v for i in ids if i != chunk_id for v in values(titles[i])]
        known = {v.number for v in others}
        own = [v for v in values(titles[chunk_id]) if v.number not in known]
        better, sure = _with_value(rules[chunk_id], own, others)
        problem = _shared(len(ids), "in a number", "the number")
        found[chunk_id] = Fault("shared", "", problem, better, sure)
    for chunk_id, ids, name, asked in _differ_in_names(of_text, titles, texts):
        number, text, n = found.get(chunk_id), rules[chunk_id], len(ids)
        # A sibling's number is replaced first; rules still shared by name alone are found again
        # later.
        if number is not None and number.sure:
            continue
        named = f"in a name, such as “{name}”"
        problem = _shared(n, named, "the name")
        if number is not None and number.proposal is not None:
            text = number.proposal
            n = len({*ids, *by_number[chunk_id]})
            problem = _shared(n, f"in a number or {named}", "both")
        better = _with_name(text, asked)
        if better is not None:
            found[chunk_id] = Fault("shared", "", problem, better, sure=False)
    return found


def _shared(n: int, differ: str, asked: str) -> str:
    return (
        f"The same rule is on {n} chunks whose titles differ {differ}, so it cannot tell them "
        f"apart. Ask for {asked}{'' if asked == 'both' else ' too'}."
    )


def _differ_in_numbers(
    of_text: Mapping[str, Sequence[str]], titles: Mapping[str, str]
) -> Iterator[tuple[str, Collection[str]]]:
    """The chunks whose siblings' titles have other numbers, each with the whole group."""
    for ids in of_text.values():
        families: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for chunk_id in ids:
            families[mask(titles.get(chunk_id, ""))].append(chunk_id)
        for masked, alike in families.items():
            if len(alike) < 2 or "#" not in masked:
                continue
            rows = {tuple(p for p in parts(titles[i]) if isinstance(p, Number)) for i in alike}
            if len(rows) > 1:
                yield from ((chunk_id, alike) for chunk_id in alike)


def _differ_in_names(
    of_text: Mapping[str, Sequence[str]], titles: Mapping[str, str], texts: Iterable[str]
) -> Iterator[tuple[str, Collection[str], str, tuple[str, ...]]]:
    """The chunks whose siblings' titles have another name in the same place, each with the whole
    group, its name, and how questions write the name."""
    alike = [
        [(ids[at], name.named) for at, name in siblings]
        for ids in of_text.values()
        for _, siblings in find_named([titles.get(i, "") for i in ids], 2)
    ]
    named = {form for siblings in alike for _, name in siblings for form in forms(name)}
    held = find_held(named, chain(texts, titles.values())) if named else set()
    for siblings in alike:
        ids = [chunk_id for chunk_id, _ in siblings]
        yield from ((chunk_id, ids, name, held_forms(name, held)) for chunk_id, name in siblings)


def _with_name(text: str, asked: tuple[str, ...]) -> str | None:
    """The rule with one more group; None if it already asks for the name."""
    try:
        rule = parse(text)
    except RuleError:
        return None
    known = {prepared(term, rule.match) for term in asked}
    if any(known & {prepared(t, rule.match) for t in group} for group in rule.contain_one_of):
        return None
    return canonical(replace(rule, contain_one_of=(*rule.contain_one_of, asked)))


def _with_value(
    text: str, own: Sequence[Value], others: Sequence[Value]
) -> tuple[str | None, bool]:
    """The rule with a group for the value, replacing whatever asks for the same with another
    number; None if it already asks for the value. Also returns whether that is sure: the replaced
    parts must ask for nothing else."""
    try:
        rule = parse(text)
    except RuleError:
        return None, False
    if len(own) != 1:
        return None, False
    value, match = own[0], rule.match
    known = {prepared(term, match) for term in _usual(value)}
    every = [*chain(*rule.contain_one_of), *rule.required]
    if any(prepared(term, match) in known for term in every):
        return None, False
    siblings = {prepared(term, match) for other in others for term in _usual(other)}
    wrong = {t for t in every if prepared(t, match) in siblings or _asks_for_another(t, value)}
    left = tuple(group for group in rule.contain_one_of if wrong.isdisjoint(group))
    better = replace(
        rule,
        contain_one_of=(*left, spellings(value, _contexts(value))),
        contain=None if rule.contain in wrong else rule.contain,
        contain_all_of=tuple(term for term in rule.contain_all_of if term not in wrong),
    )
    gone = {*chain(*rule.contain_one_of)} - {*chain(*left)} | wrong.intersection(rule.required)
    # A number that needs no words may count something else, unless a sibling has it.
    lone = stands_alone(str(value.number))
    sure = {term for term in wrong if not lone or prepared(term, match) in siblings}
    return canonical(better), bool(gone) and gone <= sure


def _asks_for_another(term: str, value: Value) -> bool:
    """Whether a term spells the same with another number: "ac 3" for armor class 6."""
    words = re.findall(r"[^\W\d_]+", normalise(term))
    sizes = [row.index(word) for word in words for row in (NUMBERS, ORDINALS) if word in row]
    sizes += [int(digits) for digits in re.findall(r"\d{1,15}", term)]
    found = {replace(value, number=n, last=None, written="") for s in sizes for n in (s, -s)}
    for part in parts(term):
        if isinstance(part, Number):
            last = part.last if isinstance(part.last, int) and part.last != part.first else None
            found.add(replace(value, number=part.first, last=last, written=part.written))
    return any(
        normalise(term) in map(normalise, _usual(other))
        for other in found
        if (other.number, other.last) != (value.number, value.last)
        and stands_alone(str(other.number)) == stands_alone(str(value.number))
    )


def _usual(value: Value) -> Iterator[str]:
    """How rules write a value, including words next to a number that needs none."""
    contexts = tuple(dict.fromkeys(f for context in _contexts(value) for f in forms(context)))
    yield from spellings(value, contexts, ordered=True)
    yield from (f"{c}{of} {value.number}" for c in contexts for of in ("", " of"))


def _contexts(value: Value) -> tuple[str, ...]:
    """What a value counts and, if the number is not distinctive by itself, the acronym: nobody says
    pl 2022 for the price list of 2022."""
    full = " ".join(value.words)
    short = "" if stands_alone(str(value.number)) else acronym(value.words)
    return tuple(filter(None, (full, short)))


def _bare(rule: Rule, title: str) -> Iterator[Fault]:
    """A number alone, if no other part says what it counts."""
    if rule.match != "word":
        return
    counted = set(_counted(title))
    for place, term in terms(rule):
        if place.startswith("contain_none_of") or not _is_bare(term):
            continue
        group = _GROUP.match(place)
        own = group.group(0) if group else place
        others = {w for at, t in terms(rule) if not at.startswith(own) for w in tokens(t)}
        # Several required numbers narrow each other down, if there is at least one word as well.
        together = place.startswith("contain_all_of") and any(w[0].isalpha() for w in others)
        if counted & others or together:
            continue
        yield Fault(
            "bare",
            place,
            f"“{shorten(term)}” is a bare number, so any question with that number matches. "
            "Add what it counts.",
            None if group is None else _counting(rule, int(group.group(1)), term, title),
        )


def _counting(rule: Rule, index: int, term: str, title: str) -> str | None:
    """The rule with what the number counts added, taken from the title or from the other terms of
    its group; None if neither says it."""
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
    """The words before the numbers in a title, including ranges and lists."""
    found = tokens(title)
    for at, token in enumerate(found):
        if is_number(token):
            before = (word for word in reversed(found[:at]) if not is_number(word) and word != "-")
            word = next(before, "")
            if word[:1].isalpha():
                yield word


def usual_words(questions: Collection[str]) -> frozenset[str]:
    """The common words, and those of nearly all `questions` if these are many."""
    if len(questions) < ENOUGH:
        return COMMON
    held = Counter(chain.from_iterable(set(tokens(question)) for question in questions))
    fewest = NEARLY_ALL * len(questions)
    return COMMON.union(word for word, n in held.items() if n >= fewest and word[0].isalnum())


def _everywhere(rule: Rule, usual: Collection[str]) -> Iterator[Fault]:
    """Terms made of words that every question has."""
    for place, term in terms(rule):
        # "?" ends most questions, but "???" does not.
        sign = len(term.strip()) == 1 and not term.strip().isalnum()
        if not sign and not all(token in usual for token in tokens(term)):
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
        # A rule that asks for nothing is not a fix, since only the author knows what was meant. Nor
        # is it certain what a word of the questions is for: its synonyms may follow it.
        known = sign or all(token in COMMON for token in tokens(term))
        yield Fault("everywhere", place, problem, left if any(terms(parse(left))) else None, known)


def _missing_spellings(rule: Rule, title: str, text: str) -> Iterator[Fault]:
    """A value that the rule names only in some of its usual spellings: either one of the chunk, or
    one that the chunk does not count and for which the rule itself has both words and acronym."""
    own = (*values(title), *values(text))
    counted = {value.words for value in own}
    named_in_rule = (v for _, group in demands(rule) for term in group for v in values(term))
    others = (value for value in named_in_rule if value.words not in counted)
    for value in dict.fromkeys((*own, *others)):
        short = acronym(value.words)
        if not short or value.last is not None or stands_alone(str(value.number)):
            continue
        full, number = " ".join(value.words), value.number
        usual = (f"{full} {number}", f"{full} of {number}", f"{short} {number}")
        for place, named in demands(rule):
            known = {prepared(term, rule.match) for term in named}
            missing = [term for term in usual if prepared(term, rule.match) not in known]
            told = value.words in counted or prepared(usual[-1], rule.match) in known
            if missing and len(missing) < len(usual) and told:
                shown = ", ".join(f"“{shorten(term)}”" for term in missing)
                better = _with_group(rule, place, (*named, *missing))
                yield Fault("spelling", place, f"Usual spellings are missing: {shown}.", better)


def _with_group(rule: Rule, place: str, group: tuple[str, ...]) -> str:
    """The rule with `group` at `place`; if that is a required term, the group replaces it."""
    index = _GROUP.match(place)
    if index is None:
        left = parse(without(rule, place))
        return canonical(replace(left, contain_one_of=(*left.contain_one_of, group)))
    groups = list(rule.contain_one_of)
    groups[int(index.group(1))] = group
    return canonical(replace(rule, contain_one_of=tuple(groups)))
