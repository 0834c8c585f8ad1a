"""Families of chunks that their titles tell apart, and rules for their members. Pure.

docs/design.md#families describes the two kinds. Titles may count the same thing ("Opponent Armor
Class 6", "Opponent Armor Class 7") above texts that are alike. Or texts may state the same two
kinds of values ("Armor Class 17", "Hit Points 135") below short titles ("Aboleth", "Red Dragon").

Chunks with the same title belong together.

A proposed rule asks for each mark of the chunk's title: a value or a name, in the spellings that
the collection's texts and the questions use. A first draft may also come from the rule of a
sibling, a chunk whose title differs in a number or a name, with this title's in place of the
sibling's.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from ragfilter.model import Chunk
from ragfilter.rules.findings import Finding
from ragfilter.rules.match import prepared
from ragfilter.rules.rule import Rule, parse, read_rule
from ragfilter.rules.values import (
    Name,
    Value,
    find_contexts,
    find_held,
    forms,
    held_forms,
    is_number,
    is_short,
    numbers,
    ordinals,
    parts,
    spellings,
    telling,
    tokens,
    value_at,
    values,
)
from ragfilter.text.normalise import normalise

MIN_TITLES = 3
"""Minimum number of titles in a family."""
ALIKE = 0.5
"""The fraction of a text's words that its family shares, if titles are told apart by numbers."""
SHARED = 0.9
"""What this fraction of a family's titles has in common tells none of them apart."""
MAX_MARKS = 4
"""A title with more distinctive words is a sentence, and questions do not repeat it."""
LONGEST_TITLE = 24
"""A title with more tokens is a sentence, which differs from others in more than a name."""
KINDS = 2
"""Number of kinds of values that the texts of a family share."""
CONJUNCTIONS = frozenset(("and", "or", "&", "/"))
JOINED = CONJUNCTIONS | {","}
"""Tokens between the names of a list: clerics, druids and monks."""


Mark = Value | Name
"""A number with what it counts, or a distinctive word. A name has several words if the title lists
them: clerics, druids and monks."""


@dataclass(frozen=True, slots=True)
class Member:
    """A chunk of a family, with the marks that tell its title from the others."""

    chunk: Chunk
    marks: tuple[Mark, ...]

    @property
    def named(self) -> str:
        return " ".join(mark.named for mark in self.marks)


@dataclass(frozen=True, slots=True)
class Family:
    """The members of a family. `pattern` says what their titles or texts count: ``armor class #``.
    It is unique."""

    pattern: str
    members: tuple[Member, ...]
    is_counted: bool
    """Whether numbers in the titles tell the members apart."""


def find_families(chunks: Iterable[Chunk]) -> tuple[Family, ...]:
    """Find families among `chunks` (whole), those with numbers in their titles first and larger
    ones before smaller."""
    entries: dict[str, list[Chunk]] = defaultdict(list)
    for chunk in chunks:
        entries[chunk.title].append(chunk)
    entries.pop("", None)
    counted = [*_by_title(entries)]
    taken = {member.chunk.title for family in counted for member in family.members}
    others = {title: some for title, some in entries.items() if title not in taken}
    families = [*counted, *_by_text(others)]
    return tuple(sorted(families, key=lambda f: (not f.is_counted, -len(f.members), f.pattern)))


def find_named(
    labels: Sequence[str], fewest: int
) -> Iterator[tuple[tuple[str, ...], list[tuple[int, Name]]]]:
    """Patterns with ``*`` for the name, and for each the places in `labels` with their names,
    largest first. A label belongs to one pattern only."""
    titles = [tokens(label) for label in labels]
    # Grouped by the pattern's hash first, because most patterns have one chunk and there may be
    # many titles.
    counts = Counter(hash(pattern) for title in titles for pattern, _ in _patterns(title))
    groups: dict[tuple[str, ...], dict[Name, list[int]]] = defaultdict(lambda: defaultdict(list))
    for at, title in enumerate(titles):
        for pattern, name in _patterns(title):
            if counts[hash(pattern)] >= fewest:
                groups[pattern][name].append(at)
    taken: set[int] = set()
    # Of two patterns for the same chunks, the one with the shorter name is more specific.
    most = sorted(groups.items(), key=lambda group: (-len(group[1]), -len(group[0]), group[0]))
    for pattern, by_name in most:
        alone = {name: ids[0] for name, ids in by_name.items() if len(ids) == 1}
        free = {name: at for name, at in alone.items() if at not in taken}
        if len(free) >= fewest:
            taken.update(free.values())
            yield pattern, [(at, name) for name, at in free.items()]


def _by_title(entries: Mapping[str, Sequence[Chunk]]) -> Iterator[Family]:
    groups: dict[tuple[tuple[str, ...], ...], list[str]] = defaultdict(list)
    for title in entries:
        if kinds := tuple(value.words for value in values(title)):
            groups[kinds].append(title)
    for kinds, titles in groups.items():
        marks = _marks(titles)
        counted = [t for t in titles if any(isinstance(mark, Value) for mark in marks[t])]
        if len(counted) >= MIN_TITLES and _resemble([entries[title][0].text for title in counted]):
            pattern = ", ".join(" ".join((*words, "#")) for words in kinds)
            yield Family(pattern, tuple(_members(counted, marks, entries)), is_counted=True)


def _by_text(entries: Mapping[str, Sequence[Chunk]]) -> Iterator[Family]:
    """Group titles by the two kinds of values in their texts that most others state too."""
    stated = {
        title: {v.words for chunk in some for v in values(chunk.text) if v.words}
        for title, some in entries.items()
    }
    held = Counter(kind for kinds in stated.values() for kind in kinds)
    groups: dict[tuple[tuple[str, ...], ...], list[str]] = defaultdict(list)
    for title, own in stated.items():
        usual = sorted((k for k in own if held[k] >= MIN_TITLES), key=lambda k: (-held[k], k))
        if len(usual) >= KINDS:
            groups[tuple(usual[:KINDS])].append(title)
    for kinds, titles in groups.items():
        marks = {t: some for t, some in _marks(titles).items() if len(some) <= MAX_MARKS}
        named = [title for title in titles if marks.get(title)]
        if len(named) >= MIN_TITLES:
            pattern = ", ".join(" ".join((*words, "#")) for words in kinds)
            yield Family(pattern, tuple(_members(named, marks, entries)), is_counted=False)


def _members(
    titles: Iterable[str],
    marks: Mapping[str, tuple[Mark, ...]],
    entries: Mapping[str, Sequence[Chunk]],
) -> Iterator[Member]:
    for title in titles:
        yield from (Member(chunk, marks[title]) for chunk in entries[title])


def _marks(titles: Sequence[str]) -> dict[str, tuple[Mark, ...]]:
    """What each title has that nearly all others have not."""
    every = {title: tuple(_read(title)) for title in titles}
    counts = Counter(mark for marks in every.values() for mark in set(marks))
    most = SHARED * len(titles)
    return {
        title: tuple(dict.fromkeys(mark for mark in marks if counts[mark] < most))
        for title, marks in every.items()
    }


def _read(title: str) -> Iterator[Mark]:
    """The values and names of a title, in order."""
    every = parts(title)
    names: list[str] = []
    joined = False
    for at, part in enumerate(every):
        if isinstance(part, str) and part in JOINED:
            joined = part in CONJUNCTIONS or not CONJUNCTIONS.isdisjoint(every[at:])
            continue
        name = part if isinstance(part, str) and (telling([part]) or is_short(part)) else ""
        if names and not (name and joined):
            yield Name(tuple(names))
            names = []
        if name:
            names.append(name)
        elif (value := value_at(every, at)) is not None:
            yield value
        joined = False
    if names:
        yield Name(tuple(names))


def _patterns(title: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Name]]:
    if len(title) > LONGEST_TITLE:
        return
    for start in range(len(title)):
        for end in (start + 1, start + 2):
            name, rest = title[start:end], (*title[:start], *title[end:])
            if end <= len(title) and _is_name(name) and telling(rest):
                yield (*title[:start], "*", *title[end:]), Name(name)


def _is_name(words: Sequence[str]) -> bool:
    return len(telling(words)) == len(words) or (len(words) == 1 and is_short(words[0]))


def _resemble(texts: Iterable[str]) -> bool:
    """Whether on average half of a text's words, without numbers, occur in at least half of the
    texts. Requiring all texts would let one odd text break up a large family."""
    bags = [{t for t in tokens(text) if t[0].isalpha()} for text in texts]
    counts = Counter(word for bag in bags for word in bag)
    common = {word for word, n in counts.items() if n >= len(bags) / 2}
    return sum(len(bag & common) for bag in bags) >= ALIKE * sum(map(len, bags))


NAME_ALONE = "a question that does not name it would drop it"

Group = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A rule for one chunk, with the names and value that it asks for. `doubt` is what a person
    should settle first, empty if nothing."""

    chunk: Chunk
    family: str
    rule: str
    names: tuple[str, ...]
    value: str
    doubt: str = ""


def propose(
    families: Sequence[Family],
    texts: Collection[str],
) -> tuple[Proposal, ...]:
    """Propose a rule for every member, unless a question that repeats its title would not meet it.
    `texts` are the collection's texts and the questions asked; they show what a value is called and
    which names have a plural."""
    marks = {m for family in families for member in family.members for m in member.marks}
    counted = {mark.words for mark in marks if isinstance(mark, Value)}
    names = {word for mark in marks if isinstance(mark, Name) for word in mark.words}
    contexts, ordered = find_contexts(counted, texts)
    held = find_held({form for name in names for form in forms(name)}, texts)

    def group(mark: Mark) -> Group:
        if isinstance(mark, Value):
            return spellings(mark, contexts[mark.words], ordered=mark.words in ordered)
        return tuple(dict.fromkeys(f for word in mark.words for f in held_forms(word, held)))

    proposals = []
    for family in families:
        doubt = "" if family.is_counted else NAME_ALONE
        for member in family.members:
            groups = tuple(map(group, member.marks))
            if _meets(member.chunk.title, groups):
                rule = Rule(contain_one_of=groups).text
                named = tuple(w for m in member.marks if isinstance(m, Name) for w in m.words)
                proposals.append(
                    Proposal(member.chunk, family.pattern, rule, named, member.named, doubt)
                )
    return tuple(proposals)


def find_proposals(chunks: Collection[Chunk], questions: Iterable[str] = ()) -> list[Finding]:
    """Rules that tell families among `chunks` (whole) apart, for those without a rule. `questions`
    are those asked."""
    families = {family.pattern: family for family in find_families(chunks)}
    texts = [*questions, *(chunk.text for chunk in chunks)]
    return [
        Finding(
            kind="family",
            chunk_ids=(each.chunk.id,),
            message=f"No rule tells it apart from {len(families[each.family].members) - 1} similar "
            f"chunks ({each.family}). Ask for {each.value}.",
            fix=parse(each.rule),
            sure=not each.doubt,
        )
        for each in propose([*families.values()], texts)
        if not each.chunk.rule
    ]


def as_finding(
    kind: str, chunk: Chunk, rule: str, words: str, doubts: Sequence[str] = ()
) -> Finding:
    """The finding that proposes `rule` for a chunk. It is sure if there is no doubt and the chunk
    has no rule to replace."""
    more = (*doubts, *(("replaces the rule that it has",) if chunk.rule else ()))
    message = "; ".join((words, *more))
    fix = parse(rule)
    return Finding(kind=kind, chunk_ids=(chunk.id,), message=f"{message}.", fix=fix, sure=not more)


def _meets(question: str, groups: Iterable[Group]) -> bool:
    """Whether the question has a term of every group, as the rule of these groups will ask."""
    text = prepared(question, "word")
    return all(any(prepared(term, "word") in text for term in group) for group in groups)


MAX_DIFFERENT = 3
"""Maximum number of words in which the titles of siblings differ."""
# Longer runs of digits do not count anything, and Python limits the digits it parses.
_WHOLE = re.compile(r"-?\d{1,6}")
_ORDINAL = re.compile(r"(\d{1,6})(?:st|nd|rd|th)")


def rule_of_sibling(title: str, chunks: Iterable[Chunk]) -> Rule | None:
    """The rule of the sibling whose title differs least, with this title's own number or name; None
    if there is no such sibling.

    A rule that does not name what distinguishes its chunk's title from this one is not used.
    """
    own = tokens(title)
    best, fewest = None, MAX_DIFFERENT + 1
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
    return places if shared and len(places) <= MAX_DIFFERENT else []


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
    """The forms of `old` in terms, mapped to the forms of `new`; empty if a number would become
    a word or change its sign."""
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
