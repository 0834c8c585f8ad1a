"""Values and names in titles, and the ways in which texts and questions write them. Pure.

A value is a number with the words that say what it counts. Titles such as "Attack matrix for clerics - Opponent Armor
Class 6" differ only in a value, here in the 6, which counts "armor class". A value may be a range ("Levels 4-6"), an
ordinal ("7th level") or a Roman numeral ("Part IV"), and the words may follow the number ("3 days"). Questions write
values in many ways, and `spellings` lists them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice, takewhile
from typing import TypeGuard

from ragfilter.text.normalise import normalise
from ragfilter.text.shared_words import plural_of, singular_of


def forms(name: str) -> tuple[str, ...]:
    """A name in singular and plural, with and without a hyphen: clerics, cleric. Names with
    non-English letters or only two letters are left unchanged: "uses" is not US."""
    if not name.isascii() or len(name) < 3:
        return without_hyphens(name)
    single = singular_of(name)
    return without_hyphens(single, name if name != single else plural_of(name))


def without_hyphens(*names: str) -> tuple[str, ...]:
    """The names, each also without its hyphens."""
    return tuple(dict.fromkeys((*names, *(name.replace("-", " ") for name in names))))


NUMBERS = tuple(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty".split()
)
ORDINALS = tuple(
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth".split()
)
MAX_WORDS = 2  # before a number, that say what it counts; after it, only one
TELLING = 1000
LONGEST_UNIT = 3  # words up to this length are also written directly after their number: 15kg
WIDEST = 30  # rules ask for each number of a range up to this size, and for larger ranges as written
COMMON = frozenset(
    """
    a an and are as at be by can do does for from has have how i if in is it my of on or so that the their them
    there they this to was what when where which who why will with you your
    """.split()
)
"""Words that occur in any question, so they distinguish none."""

_TOKEN = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)+(?!\w)|(?<![\w.])-?\d+(?!\w)|[^\W_]+(?:['-][^\W_]+)*|\S")
# Longer runs of digits are not counts, and Python limits the digits that it parses.
_NUMBER = re.compile(r"-?\d{1,15}$")
_POINTED = re.compile(r"-?\d+(?:\.\d+)+$")
_CODE = re.compile(r"[a-z]{1,3}\d{1,4}$")
_ORDINAL = re.compile(r"(\d{1,15})(?:st|nd|rd|th)$")
_ONES = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")
_NAMED = {"x" * tens + one: 10 * tens + n for tens in range(4) for n, one in enumerate(_ONES)}
_NAMED |= {word: number for number, word in enumerate(ORDINALS)}
"""Roman numerals up to 39 (from 40, they look like abbreviations), and ordinals."""
_JOINS = ("-", "/")
_SETS = (":", "=", "|", "*")  # may be between a number and what it counts: Armor Class: 6, **AC** 6
_LINE = re.compile(r"\n\s*(?=[^a-z\s])")  # a real line end; wrapped lines usually continue in lower case
LINE_END = "⏎"
_UNTIL = ("-", "to", "through")


@dataclass(frozen=True, slots=True)
class Number:
    """A number from `first` to `last` (equal if it is not a range), as written in a text: 6, 4-6,
    7th, iv. Numbers with a point (2.10) and codes (q1, x200) are kept as text."""

    first: int | str
    last: int | str
    written: str


@dataclass(frozen=True, slots=True)
class Value:
    """A number and what it counts, such as ``("armor", "class")`` and ``-6``. `words` is empty if
    the number is distinctive by itself. `last` ends a range; `written` is the form in the title, if
    not in digits; `after`: "7th level", "3 days"."""

    words: tuple[str, ...]
    number: int | str
    last: int | None = None
    written: str = ""
    after: bool = False

    @property
    def is_ordinal(self) -> bool:
        return _is_ordinal(self.written)

    @property
    def each(self) -> Sequence[int | str]:
        """The numbers in the value; empty for a very wide range."""
        if self.last is None or isinstance(self.number, str):
            return (self.number,)
        return range(self.number, self.last + 1) if self.last - self.number < WIDEST else ()

    @property
    def named(self) -> str:
        number = self.written or str(self.number)
        return " ".join((number, *self.words) if self.after else (*self.words, number))


@dataclass(frozen=True, slots=True)
class Name:
    """One or more distinctive words of a title, consecutive or in a list of alternatives."""

    words: tuple[str, ...]

    @property
    def named(self) -> str:
        return " ".join(self.words)


def words_of(text: str) -> tuple[str, ...]:
    """The words, numbers and signs of normalised `text`."""
    return tuple(_TOKEN.findall(normalise(text)))


def is_number(token: str) -> bool:
    return _is_whole(token) or _POINTED.match(token) is not None


def parts(text: str) -> tuple[str | Number, ...]:
    """The words, signs and numbers of normalised `text`; a range is one number. A line end is a
    sign, and the cells of a table follow their headings."""
    words = words_of(_LINE.sub(f" {LINE_END} ", unfold(text.strip())))
    parts_read: list[str | Number] = []
    at = 0
    while at < len(words):
        if _begins_range(words, at):
            first, last = int(words[at]), int(words[at + 2])
            parts_read.append(Number(first, last, f"{first}-{last}"))
            at += 3
        else:
            parts_read.append(_read(words[at]))
            at += 1
    return tuple(parts_read)


def unfold(text: str) -> str:
    """`text` with the rows of its tables spelled out: ``| 6 | 3 |`` below ``| AC | HD |`` becomes
    ``AC: 6; HD: 3``. Everything except tables with headings stays as it is."""
    if "|" not in text:
        return text
    rows: list[str] = []
    heads: list[str] = []
    for line in text.splitlines():
        is_rule = "-" in line and not line.strip(" \t|:-")
        if is_rule and rows and "|" in rows[-1]:
            heads = _cells(rows.pop())
        elif heads and "|" in line:
            pairs = zip(heads, _cells(line), strict=False)
            rows.append("; ".join(f"{head}: {cell}" if head else cell for head, cell in pairs))
        else:
            heads = []
            rows.append(line)
    return "\n".join(rows)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def mask(text: str) -> tuple[str, ...]:
    """`text` with ``#`` for every number, so that all titles of one pattern are equal."""
    return tuple("#" if isinstance(part, Number) else part for part in parts(text))


def telling(words: Collection[str]) -> list[str]:
    """The distinctive words, without signs, numbers and common words."""
    # Two letters are enough in a script without an alphabet.
    long = (word for word in words if len(word) > 2 or (len(word) == 2 and not word.isascii()))
    return [word for word in long if word[0].isalpha() and word not in COMMON]


def is_short(word: str) -> bool:
    """Whether `word` has two letters and may be a name, such as EU or US, and is not a numeral."""
    is_pair = len(word) == 2 and word.isascii() and word.isalpha()
    return is_pair and word not in COMMON and mask(word) == (word,)


def values(text: str) -> tuple[Value, ...]:
    """The numbers in `text` with words that say what they count, in order. Dates are skipped."""
    every = parts(text)
    candidates = (value_at(every, at) for at in range(len(every)))
    return tuple(value for value in candidates if value is not None)


def value_at(every: tuple[str | Number, ...], at: int) -> Value | None:
    """The number at a place of `parts` with the words before it or, if there are none, the word
    after it; None without either, unless the number is distinctive by itself."""
    number = every[at]
    if not isinstance(number, Number) or _is_joined(every, at):
        return None
    start = at
    while start and every[start - 1] in _SETS:
        start -= 1
    nearest = takewhile(_tells, reversed(every[max(0, start - MAX_WORDS) : start]))
    before = [*filter(_is_word, nearest)][::-1]
    after = [word for word in every[at + 1 : at + 2] if _tells(word)]
    is_placed = at and not _is_ordinal(number.written) and _is_word(every[at - 1])
    # The next one or two words may name the next value: in "Armor Class: 6 Hit Dice: 3", the 6 does not count hits.
    is_field = any(part in _SETS for part in every[at + 2 : at + 4]) and all(map(_is_word, every[at + 1 : at + 2]))
    if is_placed or is_field:
        after = []
    if not before and not after and not stands_alone(number.written):
        return None
    return Value(
        tuple(after or before),
        number.first,
        number.last if isinstance(number.last, int) and number.last != number.first else None,
        number.written if number.written != str(number.first) else "",
        bool(after),
    )


def numbers(number: int | str) -> tuple[str, ...]:
    """The ways to write a number: digits, and words up to twenty."""
    if isinstance(number, str):
        return (number,)
    size = abs(number)
    word = (NUMBERS[size],) if size < len(NUMBERS) else ()
    if number >= 0:
        return (str(number), *word)
    return (str(number), *(f"{sign} {n}" for sign in ("minus", "negative") for n in (str(size), *word)))


def ordinals(number: int | str) -> tuple[str, ...]:
    """The ways to write an ordinal: 7th, seventh; none below the first."""
    if isinstance(number, str) or number < 1:
        return ()
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number % 100 not in (11, 12, 13) else 0)
    word = (ORDINALS[number],) if number < len(ORDINALS) else ()
    return (f"{number}{ending or 'th'}", *word)


def acronym(words: Iterable[str]) -> str:
    """``ac`` for armor class; empty for a single word."""
    letters = [word[0] for word in words]
    return "".join(letters) if len(letters) > 1 else ""


def spellings(value: Value, contexts: Iterable[str], *, ordered: bool = False) -> tuple[str, ...]:
    """The ways in which questions write a value. `contexts` are the names for what it counts ("armor class", "ac"); an
    acronym is also written with dots and without a space. `ordered`: the number is also used as an ordinal ("7th
    level"). Every number of a range matches. Years and other numbers from a thousand, versions with three parts, and
    codes need no words next to them. Decimals do: 4.0 may be a version, a price or a grade."""
    forms: list[str] = []
    for context in contexts:
        forms += _spelled(value, context, ordered=ordered or value.is_ordinal)
        if context == acronym(value.words) and value.last is None:
            dotted = "".join(f"{letter}." for letter in context)
            forms += [f"{dotted} {value.number}", f"{dotted} of {value.number}"]
            forms.append(f"{context}{value.number}")
    number = str(value.number)
    if value.last is None and stands_alone(number):
        # Longer spellings with this number are redundant: the number alone matches them.
        forms = [*(each for each in forms if number not in words_of(each)), number]
    return tuple(dict.fromkeys(forms))


def stands_alone(number: str) -> bool:
    """Whether a number is distinctive without the words for what it counts: 2018, 2.1.3, q1."""
    if number.isdecimal():
        return int(number) >= TELLING
    is_version = number.count(".") > 1 and _POINTED.match(number) is not None
    return is_version or _CODE.match(number) is not None


def _spelled(value: Value, context: str, *, ordered: bool) -> Iterator[str]:
    counted = forms(context) if value.last is not None or value.after else (context,)
    for name in counted:
        for number in value.each:
            for written in numbers(number):
                if value.after and not value.is_ordinal:
                    yield from (f"{written} {name}", f"{written}-{name}")
                    if len(name) <= LONGEST_UNIT and written[-1].isdigit():
                        yield f"{written}{name}"
                else:
                    yield from (f"{name} {written}", f"{name} of {written}")
            for place in ordinals(number) if ordered else ():
                yield from (f"{place} {name}", f"{place}-{name}")
        if value.last is not None:
            for until in ("-", " - ", " to "):
                span = f"{value.number}{until}{value.last}"
                yield f"{span} {name}" if value.after else f"{name} {span}"
        elif value.written and not value.after:
            yield f"{name} {value.written}"


def _read(token: str) -> str | Number:
    if _POINTED.match(token) or _CODE.match(token):
        return Number(token, token, token)
    if _is_whole(token):
        return Number(int(token), int(token), token)
    number = int(ordinal.group(1)) if (ordinal := _ORDINAL.match(token)) else _NAMED.get(token)
    return token if number is None else Number(number, number, token)


def _is_whole(token: str) -> bool:
    return _NUMBER.match(token) is not None


def _is_ordinal(written: str) -> bool:
    return written in ORDINALS or _ORDINAL.match(written) is not None


def _begins_range(words: tuple[str, ...], at: int) -> bool:
    """Whether a range such as 4-6 begins at `at`. 2024-01-15 is not a range."""
    if at + 2 >= len(words) or not _is_whole(words[at]) or words[at + 1] not in _UNTIL:
        return False
    first, last = words[at], words[at + 2]
    chained = {*words[max(at - 1, 0) : at], *words[at + 3 : at + 4]} & {*_JOINS}
    return _is_whole(last) and int(first) < int(last) and not chained


def _is_joined(every: tuple[str | Number, ...], at: int) -> bool:
    """Whether a sign joins this number to another (4/6, 2024-01-15), or they are adjacent and neither stands alone."""

    def number(place: int) -> str:
        part = every[place] if 0 <= place < len(every) else ""
        return part.written if isinstance(part, Number) else ""

    if any(number(at + 2 * step) and every[at + step] in _JOINS for step in (-1, 1)):
        return True
    beside = [other for step in (-1, 1) if (other := number(at + step))]
    return not stands_alone(number(at)) and not all(map(stands_alone, beside))


def _tells(part: str | Number) -> TypeGuard[str]:
    return _is_word(part) and part not in COMMON


def _is_word(part: str | Number) -> TypeGuard[str]:
    return isinstance(part, str) and part[0].isalpha()


Words = tuple[str, ...]
NEAR = 0.8  # minimum similarity (difflib's ratio) of another spelling of the same context
NEAR_WORD = 0.9  # the same for contexts of one word, which must also begin alike: "colour", but not "flavor"
MAX_TEXTS = 20_000  # searched for contexts

_BEFORE_NUMBER = re.compile(r"([^\W\d_]+(?: [^\W\d_]+)?)(?: of| ?[:=|*]+)? -?\d")
_PLACED = re.compile(rf"\b(?:\d+(?:st|nd|rd|th)|{'|'.join(ORDINALS[1:])})[ -]([^\W\d_]+)")


def find_contexts(counted: Iterable[Words], texts: Iterable[str]) -> tuple[dict[Words, tuple[str, ...]], set[Words]]:
    """The names in the texts for each counted thing: the words of the titles, an acronym, or
    another spelling. Also returns which are used with an ordinal: ``("level",)`` in 7th level."""
    counted = tuple(counted)
    seen: Counter[str] = Counter()
    places: set[str] = set()
    for text in islice(texts, MAX_TEXTS):
        text = normalise(text)
        for phrase in _BEFORE_NUMBER.findall(text):
            seen[phrase] += 1
            seen[phrase.split()[-1]] += " " in phrase
        places.update(_PLACED.findall(text))
    placed: set[Words] = {words for words in counted if len(words) == 1 and places.intersection(forms(words[0]))}
    return {words: _called(words, seen) for words in counted}, placed


def _called(words: Words, seen: Counter[str]) -> tuple[str, ...]:
    if not words:
        return ()
    full, short = " ".join(words), acronym(words)
    others = [o for o in seen if o != full and _begins_alike(words, o.split())]
    least = NEAR if len(words) > 1 else NEAR_WORD
    near = get_close_matches(full, others, n=max(1, len(others)), cutoff=least)
    return (full, *sorted(near), *((short,) if short and seen[short] else ()))


def _begins_alike(words: Words, others: Sequence[str]) -> bool:
    """Whether both have the same number of words, and share a word or, if single, the initial."""
    if len(words) != len(others):
        return False
    pairs = zip(words, others, strict=True)
    return any(a == b if len(words) > 1 else a[0] == b[0] for a, b in pairs)
