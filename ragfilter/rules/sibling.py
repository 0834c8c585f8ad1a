"""A first draft of a rule from that of a sibling, a chunk whose title differs in a number or a
name.

The draft has the groups of the sibling's rule, with this title's number or name in place of the
sibling's. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from ragfilter.model import Chunk
from ragfilter.rules.rule import Rule, read_rule
from ragfilter.rules.values import is_number, numbers, ordinals, tokens
from ragfilter.text.normalise import normalise

MOST_DIFFERENT = 3
"""Maximum number of words in which the titles of siblings differ."""
# Longer runs of digits do not count anything, and Python limits the digits it parses.
_WHOLE = re.compile(r"-?\d{1,6}")
_ORDINAL = re.compile(r"(\d{1,6})(?:st|nd|rd|th)")


def propose(title: str, chunks: Iterable[Chunk]) -> Rule | None:
    """The rule of the sibling whose title differs least, with this title's own number or name; None
    if there is no such sibling.

    A rule that does not name what distinguishes its chunk's title from this one is not used.
    """
    own = tokens(title)
    best, fewest = None, MOST_DIFFERENT + 1
    for chunk in chunks:
        theirs = tokens(chunk.name) if chunk.rule else ()
        differ = _differences(own, theirs)
        if 0 < len(differ) < fewest and isinstance(rule := read_rule(chunk.rule), Rule):
            exchanged = _exchanged(rule, own, theirs, differ)
            if exchanged is not None:
                best, fewest = exchanged, len(differ)
    return best


def _differences(own: Sequence[str], theirs: Sequence[str]) -> list[int]:
    """The places where two titles of one pattern differ; empty if they are not siblings."""
    if len(own) != len(theirs):
        return []
    places = [at for at, pair in enumerate(zip(own, theirs, strict=True)) if pair[0] != pair[1]]
    shared = sum(word.isalpha() for at, word in enumerate(own) if at not in places)
    return places if shared and len(places) <= MOST_DIFFERENT else []


def _exchanged(
    rule: Rule, own: Sequence[str], theirs: Sequence[str], differ: Sequence[int]
) -> Rule | None:
    """The rule with the sibling's words replaced by this title's; None if it does not have them."""
    forms: dict[str, str] = {}
    runs = groupby(enumerate(differ), key=lambda pair: pair[1] - pair[0])
    for places in ([at for _, at in run] for _, run in runs):
        old, new = (" ".join(words[at] for at in places) for words in (theirs, own))
        pairs = _forms(old, new)
        if any(forms.get(a, b) != b for a, b in pairs.items()):
            return None
        forms |= pairs
    return _with_forms(rule, forms)


def _forms(old: str, new: str) -> dict[str, str]:
    """The forms of `old` in terms, mapped to those of `new`; empty if a number would become a word
    or change its sign."""
    if is_number(old) != is_number(new) or old.startswith("-") != new.startswith("-"):
        return {}
    ordinal = [_ORDINAL.fullmatch(word) for word in (old, new)]
    if all(ordinal):
        a, b = (int(match[1]) for match in ordinal if match is not None)
    elif _WHOLE.fullmatch(old) and _WHOLE.fullmatch(new):
        a, b = int(old), int(new)
    else:
        return {old: new, f"{old}s": new if new.endswith("s") else f"{new}s"}
    pairs = (*zip(numbers(a), numbers(b), strict=False),
             *zip(ordinals(a), ordinals(b), strict=False))  # fmt: skip
    return dict(pairs)


def _with_forms(rule: Rule, forms: Mapping[str, str]) -> Rule | None:
    """The rule with its terms replaced; None if no term it asks for contains one of the forms."""
    if not forms:
        return None
    every = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
    # A number may also follow letters, as in "ac6", or be part of a range.
    begin = r"(?<!\d)(?<!(?<!\d)-)(?:(?<=[^\W\d_])(?=\d)|\b|(?=-))"
    pattern = re.compile(rf"{begin}({every})\b")

    def exchanged(term: str) -> str:
        return pattern.sub(lambda match: forms[match[1]], normalise(term))

    def group_of(group: tuple[str, ...]) -> tuple[str, ...]:
        # Terms of the group without the sibling's name or number are synonyms for it, so drop them.
        terms = [exchanged(term) for term in group if pattern.search(normalise(term))]
        return tuple(dict.fromkeys(terms)) or group

    if not any(
        pattern.search(normalise(term)) for group in rule.demands.values() for term in group
    ):
        return None
    own = [normalise(form) for form in forms.values()]
    return rule.with_parts(
        contain_one_of=tuple(map(group_of, rule.contain_one_of)),
        contain=None if rule.contain is None else exchanged(rule.contain),
        contain_all_of=tuple(map(exchanged, rule.contain_all_of)),
        # A sibling excludes chunks that are not meant, such as this one.
        contain_none_of=tuple(
            term
            for term in rule.contain_none_of
            if not any(re.search(rf"\b{re.escape(form)}", normalise(term)) for form in own)
        ),
    )
