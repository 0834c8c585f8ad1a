"""One change to the rules of many chunks. It is planned first, so that it can be previewed. Pure.

change        does
set           gives every chunk this rule
add group     adds a group of alternatives; a chunk without a rule gets one
add spellings adds terms to every group that holds a given term
replace term  replaces a given term with another one everywhere
remove        takes the rule away

Terms are compared as in the matcher, so "ac 6" finds "AC 6". Only *set* and *remove* change unreadable rules. The other
changes leave such rules as they are and report them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ragfilter.errors import InputError, RuleError
from ragfilter.model import Chunk
from ragfilter.rules.match import prepared
from ragfilter.rules.rule import InvalidRule, Rule, ValidChanges, parse, read_rule


@dataclass(frozen=True, slots=True)
class RuleChange:
    """A change to apply to every rule: `edit` returns the new rule, None to remove it. It applies to invalid rules only
    if `any_rule` is set. With `onto_none`, `edit` is applied to an empty rule for chunks without a rule."""

    label: str
    edit: Callable[[Rule], Rule | None]
    onto_none: bool = False
    any_rule: bool = False


@dataclass(frozen=True, slots=True)
class BulkPlan:
    """By chunk id, the new rules, the stored texts, and the reasons why other rules are left out."""

    after: ValidChanges
    before: Mapping[str, str | None]
    unchanged: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)


def set_rule(text: str) -> RuleChange:
    """Give every chunk this rule. Raises RuleError."""
    rule = parse(text)
    return RuleChange("set the rule", lambda _: rule, onto_none=True, any_rule=True)


def remove() -> RuleChange:
    """Remove the rule of every chunk."""
    return RuleChange("remove the rule", lambda _: None, any_rule=True)


def add_group(terms: Sequence[str]) -> RuleChange:
    """Add a group of alternatives. Raises InputError, RuleError."""
    group = _terms(terms)

    def edit(rule: Rule) -> Rule:
        if any(_compared(rule, known) == _compared(rule, group) for known in rule.contain_one_of):
            return rule
        return rule.with_parts(contain_one_of=(*rule.contain_one_of, group))

    return RuleChange(f"add the group {', '.join(group)}", edit, onto_none=True)


def add_spellings(term: str, terms: Sequence[str]) -> RuleChange:
    """Add alternatives to every group that has `term`. Raises InputError, RuleError."""
    (anchor,), more = _terms([term]), _terms(terms)

    def edit(rule: Rule) -> Rule:
        groups = []
        for group in rule.contain_one_of:
            known = _compared(rule, group)
            new = [each for each in more if prepared(each, rule.match) not in known]
            groups.append((*group, *new) if prepared(anchor, rule.match) in known else group)
        return rule.with_parts(contain_one_of=tuple(groups))

    return RuleChange(f"add {', '.join(more)} where {anchor} stands", edit)


def replace_term(old: str, new: str) -> RuleChange:
    """Replace `old` with another term in every part. Raises InputError, RuleError."""
    (was,), (now,) = _terms([old]), _terms([new])

    def edit(rule: Rule) -> Rule:
        # Backwards, since terms that become duplicates are removed.
        for place, term in reversed(rule.terms.items()):
            if prepared(term, rule.match) == prepared(was, rule.match):
                rule = rule.replaced(place, [now])
        return rule

    return RuleChange(f"write {now} for {was}", edit)


def plan(change: RuleChange, chunks: Iterable[Chunk]) -> BulkPlan:
    """Plan the effect of `change` on the rules of `chunks`."""
    after: dict[str, Rule | None] = {}
    before: dict[str, str | None] = {}
    unchanged: list[str] = []
    refused: dict[str, str] = {}
    for chunk in chunks:
        stored, rule = read_rule(chunk.rule), None
        try:
            if isinstance(stored, InvalidRule) and not change.any_rule:
                raise stored.error
            if stored is not None or change.onto_none:
                edited = change.edit(stored if isinstance(stored, Rule) else Rule())
                rule = edited and parse(edited.text)
        except RuleError as error:
            refused[chunk.id] = str(error)
            continue
        if rule == stored:
            unchanged.append(chunk.id)
        else:
            after[chunk.id] = rule
            before[chunk.id] = chunk.rule or None
    return BulkPlan(after, before, tuple(unchanged), refused)


def _terms(terms: Sequence[str]) -> tuple[str, ...]:
    group = tuple(dict.fromkeys(term.strip() for term in terms if term.strip()))
    if not group:
        raise InputError("There is no term.", remedy="Write at least one.")
    parse(Rule().with_parts(contain_one_of=(group,)).text)
    return group


def _compared(rule: Rule, terms: Sequence[str]) -> frozenset[str]:
    return frozenset(prepared(term, rule.match) for term in terms)
