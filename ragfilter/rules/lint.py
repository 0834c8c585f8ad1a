"""Finds errors and doubts in rules, and better rules. Pure. Source: docs/design.md#contradictions and #rules."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Literal

from pydantic import BaseModel, ConfigDict, computed_field

from ragfilter.model import Chunk
from ragfilter.rules.match import prepared
from ragfilter.rules.rule import AnyRule, InvalidRule, Rule, read_rule, shorten, terms_at
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
    values,
    words_of,
)
from ragfilter.text.normalise import UNSPACED, normalise, script
from ragfilter.text.shared_words import singular_of

MAX_ROUNDS = 50
SHORT = 3
_GROUP = re.compile(r"contain_one_of\[\d+\]")

Rules = Mapping[str, AnyRule]
"""Rules by the id of their chunk."""

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
KINDS: Mapping[str, Severity] = {
    "unreadable": "error",  # the rule is invalid, so its chunk always passes
    "impossible": "error",  # no query can meet the rule: a required term contains a forbidden one
    "spread": "warning",  # alternatives are in separate groups
    "loose": "warning",  # as a substring, a term is also found within longer words or numbers
    "no_edges": "warning",  # a term in a script without spaces is hardly ever found in word mode
    "empty": "warning",  # the rule requires nothing
    "bare": "warning",  # a number is alone, and nothing says what it counts
    "everywhere": "warning",  # a term is in nearly every question
    "shared": "warning",  # several chunks whose titles differ in a number have the rule
    "spelling": "note",  # a group lacks a usual spelling of a value ("ac 6", "armor class of 6")
    "dead": "note",  # an alternative never helps, because it contains a forbidden term
    "duplicate": "note",  # a term occurs twice
    "covered": "note",  # a term changes nothing, because another one decides
    "family": "note",  # a rule would tell the chunk apart from others that differ in a few values
    "draft": "note",  # an LLM has drafted a rule
}
"""Every kind of finding with its severity."""


class Finding(BaseModel):
    """A problem with the rule of some chunks, or a proposal for one. `place` is a path within the rule, empty for the
    whole rule. `fix` is a rule without the problem. If it has no terms, the rule should be removed; None means that
    only a person knows what was meant. Unless `sure`, the rule may be intended as it is."""

    model_config = ConfigDict(frozen=True)

    kind: str
    chunk_ids: tuple[str, ...] = ()
    place: str = ""
    message: str
    fix: Rule | None = None
    sure: bool = True

    @computed_field  # type: ignore[prop-decorator]
    @property
    def severity(self) -> Severity:
        """``error``: the rule does not work; ``warning``: probably not what was meant; ``note``: could be better."""
        return KINDS[self.kind]

    @property
    def fixed(self) -> Rule | None:
        """The fix, None to remove the rule."""
        return self.fix if self.fix is not None and self.fix.terms else None

    def on(self, *chunk_ids: str) -> Finding:
        """The same finding about these chunks."""
        return self.model_copy(update={"chunk_ids": chunk_ids})


def by_severity(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings: errors, then warnings, then notes, otherwise stable."""
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def analyse(catalogue: Mapping[str, Chunk], rules: Rules | None = None) -> list[Finding]:
    """Findings about `rules`, by default the catalogue's, in their order. The `catalogue` has titles, texts if they are
    loaded, and the rules of other chunks, which are used only for comparison."""
    rules = rules_of(catalogue.values()) if rules is None else rules
    by_text = {rule.text: rule for rule in rules.values()}
    others = {c.id: by_text[c.rule] for c in catalogue.values() if c.rule in by_text}
    shared = find_shared({**others, **rules}, catalogue)
    ids_of: dict[tuple[AnyRule, Finding], list[str]] = defaultdict(list)
    for chunk_id, rule in rules.items():
        chunk = catalogue.get(chunk_id, Chunk(chunk_id))
        for finding in check_rule(rule, chunk.title, chunk.text):
            ids_of[rule, finding].append(chunk_id)
        if chunk_id in shared:
            ids_of[rule, shared[chunk_id]].append(chunk_id)
    return [finding.on(*ids) for (_, finding), ids in ids_of.items()]


def rules_of(chunks: Iterable[Chunk]) -> dict[str, AnyRule]:
    """The rules of the chunks that have one, by chunk id."""
    return {chunk.id: rule for chunk in chunks if (rule := read_rule(chunk.rule)) is not None}


def fix_rules(catalogue: Mapping[str, Chunk], rules: Rules, kinds: Collection[str] = ()) -> dict[str, Rule | None]:
    """Fix the `rules` that can be fixed. Returns the changed rules, None for a rule to remove. Only findings of `kinds`
    are fixed; by default, only sure ones. The other arguments are as for `analyse`. A rule is fixed one finding at a
    time, most severe first, since one fix may resolve another finding."""
    fixed: dict[str, Rule | None] = {}
    waiting, current = dict(rules), dict(catalogue)
    for _ in range(MAX_ROUNDS):
        for chunk_id, rule in waiting.items():
            current[chunk_id] = replace(current.get(chunk_id, Chunk(chunk_id)), rule=rule.text)
        fixes: dict[str, Rule | None] = {}
        for finding in by_severity(analyse(current, waiting)):
            wanted = finding.kind in kinds if kinds else finding.sure
            if wanted and finding.fix is not None:
                fixes = {**dict.fromkeys(finding.chunk_ids, finding.fixed), **fixes}
        changed = {i: rule for i, rule in fixes.items() if rule != waiting[i]}
        if not changed:
            break
        fixed |= changed
        waiting = {i: rule for i, rule in changed.items() if rule is not None}
    return {i: rule for i, rule in fixed.items() if rule != rules[i]}


def check_rule(rule: AnyRule, title: str = "", text: str = "") -> tuple[Finding, ...]:
    """Findings about a rule by itself, on a chunk with this title and text. They name no chunk."""
    if isinstance(rule, InvalidRule):
        place = rule.error.place
        # The finding already names the place.
        return (_finding("unreadable", place, str(rule.error).removeprefix(f"{place}: ")),)
    if not rule.terms:
        return (_finding("empty", "", "The rule asks for nothing, so the chunk always passes; remove it.", Rule()),)
    findings = (
        *_spread(rule, title),
        *_forbidden(rule),
        *_redundant_terms(rule),
        *_redundant_groups(rule),
        *_mode(rule),
        *_bare_numbers(rule, title),
        *_everywhere(rule),
        *_missing_spellings(rule, title, text),
    )
    if any(finding.kind == "impossible" for finding in findings):
        # Only the author knows how to fix this, and fixing another finding would not help.
        return tuple(finding.model_copy(update={"fix": None}) for finding in findings)
    return findings


def find_shared(rules: Rules, catalogue: Mapping[str, Chunk]) -> dict[str, Finding]:
    """Findings about rules shared by several chunks whose titles differ only in numbers, by chunk
    id. The rule may be meant for all of them ("price" for every price list)."""
    uses = Counter(rule for chunk_id, rule in rules.items() if chunk_id in catalogue)
    groups: dict[tuple[Rule, tuple[str, ...]], list[str]] = defaultdict(list)
    for chunk_id, rule in rules.items():
        if isinstance(rule, Rule) and uses[rule] > 1 and chunk_id in catalogue:
            groups[rule, mask(catalogue[chunk_id].title)].append(chunk_id)
    shared: dict[str, Finding] = {}
    for (rule, _), ids in groups.items():
        titles = {i: catalogue[i].title for i in ids}
        if len({tuple(p for p in parts(title) if isinstance(p, Number)) for title in titles.values()}) < 2:
            continue
        message = (
            f"The same rule is on {len(ids)} chunks whose titles differ in a number, so it "
            "cannot tell them apart. Ask for the number too."
        )
        of_title = {i: values(title) for i, title in titles.items()}
        for chunk_id in ids:
            others = {v.number for i in ids if i != chunk_id for v in of_title[i]}
            distinct = [v for v in of_title[chunk_id] if v.number not in others]
            fix = _with_value(rule, distinct[0]) if len(distinct) == 1 else None
            shared[chunk_id] = _finding("shared", "", message, fix, sure=False).on(chunk_id)
    return shared


def _with_value(rule: Rule, value: Value) -> Rule | None:
    """The rule with a group for the value instead of other numbers of the same thing; None if it asks for the value."""
    meaning, terms = _meaning(value.named), [*chain(*rule.contain_one_of), *rule.required]
    if any(_same(_meaning(term), meaning) for term in terms):
        return None
    wrong = {t for t in terms if (m := _meaning(t))[1] and _same((m[0], meaning[1]), meaning)}
    return rule.with_parts(
        contain_one_of=(
            *(group for group in rule.contain_one_of if wrong.isdisjoint(group)),
            spellings(value, _contexts(value)),
        ),
        contain=None if rule.contain in wrong else rule.contain,
        contain_all_of=tuple(term for term in rule.contain_all_of if term not in wrong),
    )


def _contexts(value: Value) -> tuple[str, ...]:
    """What a value counts and, unless its number stands alone, the acronym: nobody says pl 2022 for a price list."""
    full = " ".join(value.words)
    short = "" if stands_alone(str(value.number)) else acronym(value.words)
    return tuple(filter(None, (full, short)))


def _finding(kind: str, place: str, message: str, fix: Rule | None = None, *, sure: bool = True) -> Finding:
    return Finding(kind=kind, place=place, message=message, fix=fix, sure=sure)


def _spread(rule: Rule, title: str) -> Iterator[Finding]:
    """Find groups that look like alternatives, although a query must name one of each."""
    groups = rule.contain_one_of
    places, sure = _places(groups, title)
    if not places:
        return
    together = tuple(dict.fromkeys(term for i in places for term in groups[i]))
    others = {i: group for i, group in enumerate(groups) if i not in places} | {places[0]: together}
    merged = rule.with_parts(contain_one_of=tuple(others[i] for i in sorted(others)))
    *most, last = (f"“{shorten(groups[i][0])}”" for i in places)
    message = (
        f"As written, a question must mention {', '.join(most)} and {last}. "
        "If any one of them is enough, put them in one group."
    )
    yield _finding("spread", f"contain_one_of[{places[0]}]", message, merged, sure=sure)


def _forbidden(rule: Rule) -> Iterator[Finding]:
    """Find required terms and alternatives that contain a forbidden term."""
    forbidden = {term: prepared(term, rule.match) for term in rule.contain_none_of}
    for place, group in rule.demands.items():
        texts = {term: prepared(term, rule.match) for term in group}
        within = {term: next((t for t, f in forbidden.items() if f in text), "") for term, text in texts.items()}
        if not all(within.values()):
            for at, term in terms_at(place, group).items():
                if within[term]:
                    message = f"“{shorten(term)}” never helps: “{shorten(within[term])}” is forbidden. Remove it."
                    yield _finding("dead", at, message, rule.without(at))
        else:
            term, other = next(iter(within.items()))
            why, remedy = f"“{shorten(term)}” is required, but “{shorten(other)}” is forbidden.", "one of the two"
            if _GROUP.match(place):
                why, remedy = "Every term of the group contains a forbidden one.", "what is forbidden, or the group"
            yield _finding("impossible", place, f"{why} No query can meet the rule. Remove {remedy}.")


def _redundant_terms(rule: Rule) -> Iterator[Finding]:
    """Find terms that occur twice, or that another term makes redundant: among alternatives and
    forbidden terms the longer one, among required terms the shorter one."""
    demands = rule.demands
    groups = [terms_at(p, g) for p, g in demands.items() if p.startswith("contain_one_of")]
    required = {p: g[0] for p, g in demands.items() if not p.startswith("contain_one_of")}
    for part in (*groups, required, terms_at("contain_none_of", rule.contain_none_of)):
        terms = list(part.values())
        compared = [prepared(term, rule.match) for term in terms]
        for i, (place, text) in enumerate(zip(part, compared, strict=True)):
            decisive = (
                term
                for term, other in zip(terms, compared, strict=True)
                if text != other and (text in other if part is required else other in text)
            )
            if text in compared[:i]:
                message = f"“{shorten(terms[i])}” appears twice. Remove one."
                yield _finding("duplicate", place, message, rule.without(place))
            elif decider := next(decisive, ""):
                message = f"“{shorten(terms[i])}” changes nothing: “{shorten(decider)}” decides. Remove it."
                yield _finding("covered", place, message, rule.without(place))


def _redundant_groups(rule: Rule) -> Iterator[Finding]:
    """Find groups that every query meets if it meets another part, since each of that part's terms
    contains a term of the group. If two parts imply each other, only the later one is found."""
    compared = {p: [prepared(t, rule.match) for t in g] for p, g in rule.demands.items()}

    def decides(other: str, place: str) -> bool:
        return all(any(t in text for t in compared[place]) for text in compared[other])

    places = list(compared)
    for i, place in enumerate(places[: len(rule.contain_one_of)]):
        for j, other in enumerate(places):
            if i != j and decides(other, place) and not (i < j and decides(place, other)):
                term, decider = (shorten(rule.demands[p][0]) for p in (place, other))
                message = f"The group of “{term}” changes nothing: “{decider}” decides. Remove the group."
                yield _finding("covered", place, message, rule.without(place))
                break


def _mode(rule: Rule) -> Iterator[Finding]:
    """Find terms that need the other match mode. The fix is offered only if it suits all terms, or
    the modes would alternate. It is never sure, since word stems need substrings."""
    terms = rule.terms
    loose = [place for place, term in terms.items() if _is_loose(term)]
    unspaced = [place for place, term in terms.items() if _is_unspaced(term)]
    if rule.match == "word":
        kind, mode, places, others = "no_edges", "substring", unspaced, loose
        why = "Written without spaces, so word mode finds it only where it stands alone"
    else:
        kind, mode, places, others = "loose", "word", loose, unspaced
        why = "Also found inside longer words or numbers, since the rule matches substrings"
    if places:
        listed = ", ".join(f"“{shorten(terms[place])}”" for place in places[:4])
        fix = None if others else rule.with_parts(match=mode)
        yield _finding(kind, places[0], f"{why}: {listed}.", fix, sure=False)


def _is_loose(term: str) -> bool:
    short_word = len(term) <= SHORT and term.isalpha() and not _is_unspaced(term)
    return short_word or term[0].isdigit() or term[-1].isdigit()


def _is_unspaced(term: str) -> bool:
    return any(script(char) in UNSPACED for char in term)


def _bare_numbers(rule: Rule, title: str) -> Iterator[Finding]:
    """Find bare numbers, if no other part says what they count."""
    if rule.match != "word":
        return
    counted = {*_counted(title)} - {""}
    for place, term in rule.terms.items():
        if place.startswith("contain_none_of") or not _is_bare(term):
            continue
        group = _GROUP.match(place)
        part = group[0] if group else place
        others = {w for at, t in rule.terms.items() if not at.startswith(part) for w in words_of(t)}
        # Several required numbers narrow each other down, if there is at least one word as well.
        together = place.startswith("contain_all_of") and any(w[0].isalpha() for w in others)
        if counted & others or together:
            continue
        message = f"“{shorten(term)}” is a bare number, so any question with that number matches. Add what it counts."
        terms = _counting(rule.demands[part], term, title) if group else None
        # A large number, as in "Bosch PowerTube 625", may be asked for by itself.
        sure = len(term.strip("+-")) < 3
        yield _finding("bare", place, message, rule.replaced(part, terms) if terms else None, sure=sure)


def _counting(group: Sequence[str], term: str, title: str) -> tuple[str, ...]:
    """The group with the number preceded by what it counts in the title; empty if unknown."""
    fitting = [v for v in values(title) if term.strip() in (*numbers(v.number), v.written)]
    if len(fitting) != 1:
        return ()
    same = (*numbers(fitting[0].number), fitting[0].written)
    more = spellings(fitting[0], _contexts(fitting[0]))
    counting = (t for old in group for t in (more if old.strip() in same else (old,)))
    return tuple(dict.fromkeys(counting))


def _is_bare(term: str) -> bool:
    part, *others = parts(term) or ("",)
    if isinstance(part, str):
        return not others and part in NUMBERS
    return not others and not stands_alone(part.written) and any(map(str.isdigit, part.written))


def _counted(title: str) -> Iterator[str]:
    """The words before the numbers in a title, including ranges and lists."""
    before = ""
    for token in words_of(title):
        if is_number(token):
            yield before
        elif token != "-":
            before = token if token[0].isalpha() else ""


def _everywhere(rule: Rule) -> Iterator[Finding]:
    """Find terms that are in nearly every question: common words or a single sign."""
    for place, term in rule.terms.items():
        # "?" ends most questions, but "???" does not.
        sign = len(term.strip()) == 1 and not term.strip().isalnum()
        if not sign and not all(token in COMMON for token in words_of(term)):
            continue
        so = "the group asks nothing" if _GROUP.match(place) else "it asks nothing"
        if place.startswith("contain_none_of"):
            so = "hardly any passes"
        message = f"“{shorten(term)}” is in nearly every question, so {so}. Remove it."
        # A rule that asks for nothing is not a fix, since only the author knows what was meant.
        rest = rule.without(place)
        yield _finding("everywhere", place, message, rest if rest.terms else None)


def _missing_spellings(rule: Rule, title: str, text: str) -> Iterator[Finding]:
    """Find values in only some of their usual spellings: the chunk's values, and others that also have the acronym."""
    chunk_values = (*values(title), *values(text))
    counted = {value.words for value in chunk_values}
    of_rule = (v for group in rule.demands.values() for term in group for v in values(term))
    others = (value for value in of_rule if value.words not in counted)
    for value in dict.fromkeys((*chunk_values, *others)):
        short = acronym(value.words)
        if not short or value.last is not None or stands_alone(str(value.number)):
            continue
        full, number = " ".join(value.words), value.number
        usual = (f"{full} {number}", f"{full} of {number}", f"{short} {number}")
        for place, group in rule.demands.items():
            known = {prepared(term, rule.match) for term in group}
            missing = [term for term in usual if prepared(term, rule.match) not in known]
            is_meant = value.words in counted or prepared(usual[-1], rule.match) in known
            if missing and len(missing) < len(usual) and is_meant:
                listed = ", ".join(f"“{shorten(term)}”" for term in missing)
                rest = rule.without(place)
                more = rest.with_parts(contain_one_of=(*rest.contain_one_of, (*group, *missing)))
                fix = rule.replaced(place, (*group, *missing)) if _GROUP.match(place) else more
                yield _finding("spelling", place, f"Usual spellings are missing: {listed}.", fix)


# Alternatives that were spread over several groups, so that all of them must be met. Three signs:
#
# spelled  two or more groups contain spellings of one term: "armor class 6" and "ac 6", "cleric" and "clerics"
# listed   the chunk's title lists things ("clerics, druids and monks", "magic-users/illusionists"), and two or more
#          groups name different things in this list. A comma between only two things may not be a list ("goblins, in
#          winter"), and a thing that ends in a number is not part of a list ("goblins and armor class 3").
# single   three or more groups each name one thing by a single word and its plural, without digits, and the title does
#          not have all of them in one phrase ("Adult Black Dragon"). Two such groups are usually meant together, like
#          climate and terrain. Three may be, so not sure.


Words = tuple[str, ...]
_CLAUSES = re.compile(r" - |[:;()\[\]]|\. ")
_COMMAS = re.compile(r"\s*,\s*and\s+|\s*,\s*or\s+|\s*[,/&+]\s*|\s+and\s+|\s+or\s+")
_JOINED = re.compile(r"[/&+]|\b(?:and|or)\b")
_OF = re.compile(r" of (?=-?\d)")
_NUMBER = re.compile(r"\d\W*$")
_WORDS = re.compile(r"[^\W_]+(?:[-'][^\W_]+)*")


def _places(groups: Sequence[tuple[str, ...]], title: str) -> tuple[tuple[int, ...], bool]:
    """Which groups are alternatives, and whether that is sure."""
    for first, group in enumerate(groups):
        alike = [i for i, other in enumerate(groups) if i > first and _spelled(group, other)]
        if alike:
            every = {_meaning(term) for i in (first, *alike) for term in groups[i]}
            return (first, *alike), all(_same(a, b) for a in every for b in every)
    listed = _listed(groups, title)
    return (listed, True) if listed else (_single(groups, title), False)


def _spelled(group: Sequence[str], other: Sequence[str]) -> bool:
    """Whether a term of one group is another spelling of a term of the other."""
    return {*map(normalise, group)}.isdisjoint(map(normalise, other)) and any(
        _same(_meaning(a), _meaning(b)) for a in group for b in other
    )


@lru_cache(maxsize=16_384)
def _meaning(term: str) -> tuple[Words, str]:
    """The words of a term in the singular, and its number, if it is a value like "ac 6"."""
    written = _OF.sub(" ", normalise(term))
    value = next(iter(values(written)), None)
    if value is None or len(parts(written)) != len(value.words) + 1 or value.last is not None:
        return _stems(term), ""
    return tuple(map(singular_of, value.words)), str(value.number)


def _same(one: tuple[Words, str], other: tuple[Words, str]) -> bool:
    (words, number), (others, another) = one, other
    if number != another:
        return False
    return words == others or (bool(number) and (words == (acronym(others),) or others == (acronym(words),)))


def _listed(groups: Sequence[tuple[str, ...]], title: str) -> tuple[int, ...]:
    for clause in _CLAUSES.split(normalise(title)):
        listed = (_stems(thing) for thing in _COMMAS.split(clause) if not _NUMBER.search(thing))
        things = [*filter(None, listed)]
        if len(things) < (2 if _JOINED.search(clause) else 3):
            continue
        named = {
            i: {
                place
                for place, thing in enumerate(things)
                if any(_names(_stems(term), thing, place, len(things)) for term in group)
            }
            for i, group in enumerate(groups)
        }
        touched = tuple(i for i, places in named.items() if places)
        if any(named[i].isdisjoint(named[j]) for i in touched for j in touched):
            return touched
    return ()


def _single(groups: Sequence[tuple[str, ...]], title: str) -> tuple[int, ...]:
    plain = tuple(i for i, group in enumerate(groups) if _one_word(group))
    phrases = [_stems(thing) for clause in _CLAUSES.split(normalise(title)) for thing in _COMMAS.split(clause)]
    words = {word for i in plain for word in _stems(groups[i][0])}
    return plain if len(words) >= 3 and not any(map(words.issubset, phrases)) else ()


def _one_word(group: Sequence[str]) -> bool:
    first, *others = {_stems(term) for term in group}
    return not others and len(first) == 1 and not any(map(str.isdigit, first[0]))


def _names(term: Words, thing: Words, place: int, count: int) -> bool:
    """Whether `term` is the listed thing. The first thing may follow words that are not part of the
    list ("attack matrix for clerics, …"), and the last thing may precede such words."""
    at_start = thing[: len(term)] == term
    at_end = thing[-len(term) :] == term
    return bool(term) and ((at_end and place < count - 1) or (at_start and place > 0))


@lru_cache(maxsize=16_384)
def _stems(text: str) -> Words:
    return tuple(singular_of(word) for word in _WORDS.findall(normalise(text)))
