"""One change to the rules of many chunks. It is planned first, so that it can be previewed. Pure.

change        does
set           gives every chunk this rule
add group     adds a group of alternatives; a chunk without a rule gets one
add spellings adds terms to every group that holds a given term
replace term  replaces a given term with another one everywhere
remove        takes the rule away

Terms are compared as the matcher compares them, so "ac 6" finds "AC 6". Only *set* and *remove*
change a rule that cannot be read. The other changes leave it as it is and report it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ragfilter.errors import InputError, RuleError
from ragfilter.model import Chunk
from ragfilter.rules.match import prepared
from ragfilter.rules.mend import mend
from ragfilter.rules.rule import Rule, canonical, parse
from ragfilter.rules.values import COMMON

Edit = Callable[[Rule], Rule]


@dataclass(frozen=True, slots=True)
class RuleChange:
    """A change to apply to every rule; `say` describes it."""

    say: str
    rule: str | None = None
    edit: Edit | None = None
    onto_none: bool = False

    def of(self, text: str | None) -> str | None:
        """The rule that `text` becomes, None to remove the rule. Raises RuleError."""
        if self.edit is None:
            return self.rule
        if not text:
            return canonical(self.edit(Rule())) if self.onto_none else None
        return canonical(parse(canonical(self.edit(parse(text)))))


@dataclass(frozen=True, slots=True)
class BulkPlan:
    """Rules by chunk id: what would be stored, what is stored, and why others are left out."""

    after: Mapping[str, str | None]
    before: Mapping[str, str | None]
    unchanged: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)


def set_rule(text: str) -> RuleChange:
    """Give every chunk this rule. Raises RuleError."""
    return RuleChange("set the rule", rule=canonical(parse(text)))


def remove() -> RuleChange:
    """Remove the rule of every chunk."""
    return RuleChange("remove the rule")


def add_group(terms: Sequence[str]) -> RuleChange:
    """Add a group of alternatives. Raises InputError, RuleError."""
    group = _terms(terms)

    def edit(rule: Rule) -> Rule:
        if any(_key(rule, given) == _key(rule, group) for given in rule.contain_one_of):
            return rule
        return replace(rule, contain_one_of=(*rule.contain_one_of, group))

    return RuleChange(f"add the group {', '.join(group)}", edit=edit, onto_none=True)


def add_spellings(term: str, terms: Sequence[str]) -> RuleChange:
    """Add alternatives to every group that has `term`. Raises InputError, RuleError."""
    (anchor,), more = _terms([term]), _terms(terms)

    def edit(rule: Rule) -> Rule:
        groups = []
        for group in rule.contain_one_of:
            known = _key(rule, group)
            fresh = [each for each in more if prepared(each, rule.match) not in known]
            held = prepared(anchor, rule.match) in known
            groups.append((*group, *fresh) if held else group)
        return replace(rule, contain_one_of=tuple(groups))

    return RuleChange(f"add {', '.join(more)} where {anchor} stands", edit=edit)


def replace_term(old: str, new: str) -> RuleChange:
    """Replace `old` with another term in every part. Raises InputError, RuleError."""
    (was,), (now,) = _terms([old]), _terms([new])

    def edit(rule: Rule) -> Rule:
        sought = prepared(was, rule.match)

        def written(terms: Sequence[str]) -> tuple[str, ...]:
            made = tuple(now if prepared(t, rule.match) == sought else t for t in terms)
            return tuple(terms) if made == terms else tuple(dict.fromkeys(made))

        return replace(
            rule,
            contain_one_of=tuple(written(group) for group in rule.contain_one_of),
            contain=written((rule.contain,))[0] if rule.contain is not None else None,
            contain_all_of=written(rule.contain_all_of),
            contain_none_of=written(rule.contain_none_of),
        )

    return RuleChange(f"write {now} for {was}", edit=edit)


def plan(change: RuleChange, chunks: Iterable[Chunk]) -> BulkPlan:
    """Plan what `change` does to the rules of `chunks`."""
    after: dict[str, str | None] = {}
    before: dict[str, str | None] = {}
    unchanged: list[str] = []
    refused: dict[str, str] = {}
    for chunk in chunks:
        stored = chunk.rule or None
        try:
            made = change.of(stored)
            same = made == stored or (stored and made == canonical(parse(stored)))
        except RuleError as error:
            if change.edit is not None:
                refused[chunk.id] = str(error)
                continue
            same = False
        if same:
            unchanged.append(chunk.id)
        else:
            after[chunk.id], before[chunk.id] = made, stored
    return BulkPlan(after, before, tuple(unchanged), refused)


def plan_mends(
    chunks: Iterable[Chunk],
    kinds: Collection[str] = (),
    usual: Collection[str] = COMMON,
    among: Iterable[Chunk] = (),
) -> BulkPlan:
    """Plan the fixes that lint proposes for the rules of `chunks`, given their titles and any
    texts: for findings of `kinds`, or by default for all that are sure. `usual` as for `lint`.
    `among` are all chunks, since a rule may be shared with one that is not fixed."""
    ruled = {chunk.id: chunk for chunk in chunks if chunk.rule}
    texts = {i: chunk.rule or "" for i, chunk in ruled.items()}
    others = {c.id: c for c in among if c.rule and c.id not in ruled}
    titles = {i: chunk.title for i, chunk in (others | ruled).items()}
    bodies = {i: chunk.text for i, chunk in ruled.items()}
    compared = {i: chunk.rule or "" for i, chunk in others.items()}
    after = mend(texts, titles, kinds, bodies, usual, compared)
    left = tuple(i for i in ruled if i not in after)
    return BulkPlan(after, {i: texts[i] for i in after}, left)


def _terms(given: Sequence[str]) -> tuple[str, ...]:
    terms = tuple(dict.fromkeys(term.strip() for term in given if term.strip()))
    if not terms:
        raise InputError("There is no term.", remedy="Write at least one.")
    parse(canonical(Rule(contain_one_of=(terms,))))
    return terms


def _key(rule: Rule, terms: Sequence[str]) -> frozenset[str]:
    return frozenset(prepared(term, rule.match) for term in terms)
