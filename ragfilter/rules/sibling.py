"""A first draft of a rule, from that of a sibling: a chunk whose title differs in a number or a
name.

The draft has the groups of the sibling's rule, with what tells the two titles apart replaced. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from ragfilter.errors import RuleError
from ragfilter.rules.rule import Rule, parse, pretty
from ragfilter.rules.values import is_number, numbers, ordinals, tokens
from ragfilter.text.normalise import normalise

MOST_DIFFERENT = 3
"""Words in which the titles of siblings differ at most."""
# Longer runs of digits count nothing, and Python reads no more than some thousands.
_WHOLE = re.compile(r"-?\d{1,6}")
_ORDINAL = re.compile(r"(\d{1,6})(?:st|nd|rd|th)")


def propose(title: str, ruled: Iterable[tuple[str, str]]) -> str | None:
    """The rule of the sibling whose title differs least, as indented JSON text, with this title's
    own number or name in it; None if there is no such sibling.

    `ruled` are the titles and rules of other chunks. A rule that does not name what tells its
    chunk's title from this one's is nobody's model.
    """
    own = tokens(title)
    best, fewest = None, MOST_DIFFERENT + 1
    for other, text in ruled:
        theirs = tokens(other)
        differ = _differences(own, theirs)
        if 0 < len(differ) < fewest:
            made = _exchanged(text, own, theirs, differ)
            if made is not None:
                best, fewest = made, len(differ)
    return best


def _differences(own: Sequence[str], theirs: Sequence[str]) -> list[int]:
    """The places in which titles of one pattern differ; none where they are no siblings."""
    if len(own) != len(theirs):
        return []
    places = [at for at, pair in enumerate(zip(own, theirs, strict=True)) if pair[0] != pair[1]]
    shared = sum(word.isalpha() for at, word in enumerate(own) if at not in places)
    return places if shared and len(places) <= MOST_DIFFERENT else []


def _exchanged(
    text: str, own: Sequence[str], theirs: Sequence[str], differ: Sequence[int]
) -> str | None:
    """The rule with their words replaced by one's own; None if it does not hold them."""
    forms: dict[str, str] = {}
    runs = groupby(enumerate(differ), key=lambda pair: pair[1] - pair[0])
    for places in ([at for _, at in run] for _, run in runs):
        old, new = (" ".join(words[at] for at in places) for words in (theirs, own))
        pairs = _forms(old, new)
        if any(forms.get(a, b) != b for a, b in pairs.items()):
            return None
        forms |= pairs
    try:
        rule = parse(text)
    except RuleError:
        return None
    return pretty(made) if (made := _with_forms(rule, forms)) is not None else None


def _forms(old: str, new: str) -> dict[str, str]:
    """What stands for `old` in terms, and for `new` in its place; empty if a number would become
    a word, or change its sign."""
    if is_number(old) != is_number(new) or old.startswith("-") != new.startswith("-"):
        return {}
    ordinal = [_ORDINAL.fullmatch(word) for word in (old, new)]
    if all(ordinal):
        a, b = (int(found[1]) for found in ordinal if found is not None)
    elif _WHOLE.fullmatch(old) and _WHOLE.fullmatch(new):
        a, b = int(old), int(new)
    else:
        return {old: new, f"{old}s": new if new.endswith("s") else f"{new}s"}
    pairs = (*zip(numbers(a), numbers(b), strict=False),
             *zip(ordinals(a), ordinals(b), strict=False))  # fmt: skip
    return dict(pairs)


def _with_forms(rule: Rule, forms: Mapping[str, str]) -> Rule | None:
    """The rule with its terms exchanged; None if no term that it asks for holds a form."""
    if not forms:
        return None
    every = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
    # A number may also follow letters, as in "ac6", or be in a range.
    begin = r"(?<!\d)(?<!(?<!\d)-)(?:(?<=[^\W\d_])(?=\d)|\b|(?=-))"
    pattern = re.compile(rf"{begin}({every})\b")

    def exchanged(term: str) -> str:
        return pattern.sub(lambda found: forms[found[1]], normalise(term))

    def group_of(group: tuple[str, ...]) -> tuple[str, ...]:
        # The words beside the sibling's name or number are other words for it.
        made = [exchanged(term) for term in group if pattern.search(normalise(term))]
        return tuple(dict.fromkeys(made)) or group

    single = () if rule.contain is None else (rule.contain,)
    asked = [*(t for group in rule.contain_one_of for t in group), *single, *rule.contain_all_of]
    if not any(pattern.search(normalise(term)) for term in asked):
        return None
    own = [normalise(form) for form in forms.values()]
    return replace(
        rule,
        contain_one_of=tuple(map(group_of, rule.contain_one_of)),
        contain=None if rule.contain is None else exchanged(rule.contain),
        contain_all_of=tuple(map(exchanged, rule.contain_all_of)),
        # A sibling keeps out those that are not meant: this chunk, for one.
        contain_none_of=tuple(
            term
            for term in rule.contain_none_of
            if not any(re.search(rf"\b{re.escape(form)}", normalise(term)) for form in own)
        ),
    )
