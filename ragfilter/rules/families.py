"""Finds families of similar chunks with distinct titles, and proposes rules for them. Pure.

docs/design.md#families describes the two kinds. Either the titles count the same thing ("Opponent
Armor Class 6", "Opponent Armor Class 7") and the texts are alike. Or the texts state the same two
kinds of values ("Armor Class 17", "Hit Points 135") under short titles ("Aboleth", "Red Dragon").

Chunks with the same title belong together. A proposed rule asks for each mark of the title: a value or a name, in the
spellings that the collection's texts and the questions use."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ragfilter.model import Chunk
from ragfilter.rules.lint import Finding
from ragfilter.rules.match import prepared
from ragfilter.rules.rule import Rule
from ragfilter.rules.values import (
    COMMON,
    LONGEST_UNIT,
    Name,
    Number,
    Value,
    find_contexts,
    forms,
    is_short,
    parts,
    spellings,
    telling,
    value_at,
    values,
    words_of,
)

MIN_TITLES = 3  # in a family
ALIKE = 0.5  # the share of a text's words that its family must share, if the titles differ in numbers
SHARED = 0.9  # words that this share of a family's titles have in common are not distinctive
MAX_MARKS = 4  # a title with more distinctive words is a sentence, and questions do not repeat it
KINDS = 2  # of values that the texts of a family share
CONJUNCTIONS = frozenset(("and", "or", "&", "/"))
JOINED = CONJUNCTIONS | {","}  # tokens between the names of a list: clerics, druids and monks


Mark = Value | Name
"""A number and what it counts, or distinctive words: several if the title lists them (clerics, druids and monks)."""


Groups = dict[tuple[tuple[str, ...], ...], list[str]]
"""Titles by the kinds of values that they, or their texts, state."""


@dataclass(frozen=True, slots=True)
class Member:
    """A chunk of a family, with the marks that distinguish its title."""

    chunk: Chunk
    marks: tuple[Mark, ...]

    @property
    def named(self) -> str:
        return " ".join(mark.named for mark in self.marks)


@dataclass(frozen=True, slots=True)
class Family:
    """The members of a family. Its unique `pattern` says what their titles or texts count: ``armor class #``, or
    ``number #`` if no word says what."""

    pattern: str
    members: tuple[Member, ...]
    is_counted: bool
    """Whether the members' titles differ in numbers."""


def find_families(chunks: Iterable[Chunk]) -> tuple[Family, ...]:
    """Find families among `chunks` (with texts): first those with numbers in their titles, larger before smaller."""
    entries: dict[str, list[Chunk]] = defaultdict(list)
    for chunk in chunks:
        entries[chunk.title].append(chunk)
    entries.pop("", None)
    counted = [*_families(_by_title(entries), entries, is_counted=True)]
    titles = {member.chunk.title for family in counted for member in family.members}
    others = {title: some for title, some in entries.items() if title not in titles}
    families = [*counted, *_families(_by_text(others), others, is_counted=False)]
    return tuple(sorted(families, key=lambda f: (not f.is_counted, -len(f.members), f.pattern)))


def _families(groups: Groups, entries: Mapping[str, Sequence[Chunk]], *, is_counted: bool) -> Iterator[Family]:
    """Yield the groups that have enough titles with marks and, if counted, similar texts."""
    for kinds, titles in groups.items():
        marks = _marks(titles)
        if is_counted:
            marked = [title for title in titles if any(isinstance(mark, Value) for mark in marks[title])]
        else:
            marked = [title for title in titles if 0 < len(marks[title]) <= MAX_MARKS]
        if len(marked) >= MIN_TITLES and (not is_counted or _resemble([entries[title][0].text for title in marked])):
            members = tuple(Member(chunk, marks[title]) for title in marked for chunk in entries[title])
            yield Family(", ".join(" ".join((*(words or ("number",)), "#")) for words in kinds), members, is_counted)


def _by_title(titles: Iterable[str]) -> Groups:
    groups: Groups = defaultdict(list)
    for title in titles:
        if kinds := tuple(value.words for value in values(title)):
            groups[kinds].append(title)
    return groups


def _by_text(entries: Mapping[str, Sequence[Chunk]]) -> Groups:
    """Group titles by the two kinds of values in their texts that most others state too."""
    stated = {
        title: {v.words for chunk in some for v in values(chunk.text) if v.words} for title, some in entries.items()
    }
    kind_counts = Counter(kind for kinds in stated.values() for kind in kinds)
    groups: Groups = defaultdict(list)
    for title, own in stated.items():
        usual = sorted((k for k in own if kind_counts[k] >= MIN_TITLES), key=lambda k: (-kind_counts[k], k))
        if len(usual) >= KINDS:
            groups[tuple(usual[:KINDS])].append(title)
    return groups


def _marks(titles: Sequence[str]) -> dict[str, tuple[Mark, ...]]:
    """The marks of each title that nearly all other titles lack."""
    every = {title: tuple(dict.fromkeys(_read(title))) for title in titles}
    counts = Counter(mark for marks in every.values() for mark in marks)
    most = SHARED * len(titles)
    return {title: tuple(mark for mark in marks if counts[mark] < most) for title, marks in every.items()}


def _read(title: str) -> Iterator[Mark]:
    """Yield the values and names of a title, in order."""
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


def _resemble(texts: Iterable[str]) -> bool:
    """Whether, on average, half of a text's words (without numbers) occur in at least half of the
    texts. If all texts were required, one odd text would break up a large family."""
    bags = [{t for t in words_of(text) if t[0].isalpha()} for text in texts]
    counts = Counter(word for bag in bags for word in bag)
    common = {word for word, n in counts.items() if n >= len(bags) / 2}
    return sum(len(bag & common) for bag in bags) >= ALIKE * sum(map(len, bags))


NAME_ALONE = "a question that does not name it would drop it"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A rule for one chunk, with the names and values that it asks for. `doubt`, if any, is to be settled first."""

    chunk: Chunk
    family: str
    rule: Rule
    names: tuple[str, ...]
    value: str
    doubt: str = ""


def propose(families: Sequence[Family], texts: Collection[str]) -> tuple[Proposal, ...]:
    """Propose a rule for every member, unless a question that repeats its title would not meet it.
    `texts` are the collection's texts and users' questions, which show what values are called."""
    marks = {m for family in families for member in family.members for m in member.marks}
    counted = {mark.words for mark in marks if isinstance(mark, Value)}
    contexts, ordered = find_contexts(counted, texts)

    def group(mark: Mark) -> tuple[str, ...]:
        if isinstance(mark, Value):
            return spellings(mark, contexts[mark.words], ordered=mark.words in ordered)
        return tuple(dict.fromkeys(f for word in mark.words for f in forms(word)))

    proposals = []
    for family in families:
        for member in family.members:
            doubt = _other_order(member) if family.is_counted else NAME_ALONE
            groups, title = tuple(map(group, member.marks)), prepared(member.chunk.title, "word")
            if all(any(prepared(term, "word") in title for term in terms) for terms in groups):
                rule = Rule(contain_one_of=groups)
                name_words = tuple(w for m in member.marks if isinstance(m, Name) for w in m.words)
                proposals.append(Proposal(member.chunk, family.pattern, rule, name_words, member.named, doubt))
    return tuple(proposals)


def _other_order(member: Member) -> str:
    """The doubt about a number that is named before and has a unit: ``Hose 40 mm`` is also called a 40 mm hose."""
    named_before = any(isinstance(mark, Value) and not mark.after for mark in member.marks)
    for number, unit in pairwise(parts(member.chunk.title)) if named_before else ():
        is_unit = isinstance(unit, str) and unit.isalpha() and len(unit) <= LONGEST_UNIT and unit not in COMMON
        if isinstance(number, Number) and is_unit:
            return f"a question may say “{number.written} {unit}” first"
    return ""


def as_finding(kind: str, chunk: Chunk, rule: Rule, words: str, doubts: Sequence[str] = ()) -> Finding:
    """The finding that proposes `rule` for a chunk. It is sure if there are no doubts and the chunk has no rule yet."""
    more = (*doubts, *(("replaces the rule that it has",) if chunk.rule else ()))
    message = f"{'; '.join((words, *more))}."
    return Finding(kind=kind, chunk_ids=(chunk.id,), message=message, fix=rule, sure=not more)
