"""Words that a question and a passage share: their weight, the values that both state, singulars and plurals. Also an
estimate of a text's tokens.

Source of the overlap: BM25, Robertson and Zaragoza, "The probabilistic relevance framework", 2009,
with the usual constants, divided by the maximum that the question's words can reach.

The estimate has no tokenizer: four bytes of UTF-8 count as a token, and every word as at least one. On the demo
collection, compared with the WordPiece vocabulary of the bundled embedding model, the median of estimate / count is
1.0; nine of ten texts lie between 0.8 and 1.2, tables at the low end. An endpoint's own count is used instead, if any.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from ragfilter.text.normalise import normalise

K1, B = 1.2, 0.75
MAX_TEXT = 10_000  # characters read of a passage
_TOKEN = re.compile(r"(?:(?<!\S)-|(?<=\()-)?\d+(?:[.,]\d+)*(?![^\W_])|[^\W_]+")
_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)*")
_JOINS = ("of", "is", "=")
FUNCTION_WORDS = frozenset(
    """
    a an the this that these those some any no and or but nor if than then so not as at by for from in into of off
    on onto out over per to up upon with without within against between about under after before during is are was
    were be been being am do does doe did done has have had having can could may might must shall should will would
    i me my we us our you your he him his she her it its they them their who whom whose which what when where why
    how there here all also both each either neither every more most much many such only very too s t
    """.split()
)
"""Function words, as spelled by `words_of`. They do not show what a text is about."""

Value = tuple[str, str]
"""A name and the number that follows it: ("strength", "17") of "strength 17", "strength of 17"."""


class Overlap(NamedTuple):
    """A passage's overlap with the question, from 0 to 1, and the shared words except function words, rarest first."""

    share: float
    words: tuple[str, ...]


NO_OVERLAP = Overlap(0.0, ())


class WordCounts(NamedTuple):
    """How often a passage contains each word of the question, and how long the passage is."""

    counts: Mapping[str, int]
    length: int


def word_counts(query: str, passage: str) -> WordCounts:
    """Count the query's words in `passage`."""
    count, length = _counts(passage)
    return WordCounts({word: count[word] for word in _counts(query)[0] if word in count}, length)


def overlaps(query: str, passages: Sequence[str]) -> tuple[Overlap, ...]:
    """The overlap of each passage with the query, as in `compare`."""
    return compare(query, [word_counts(query, passage) for passage in passages])


def compare(query: str, passages: Sequence[WordCounts]) -> tuple[Overlap, ...]:
    """The overlap of each of `passages` with the query. The rarer a word is among the passages, the more it counts. A
    word in no passage does not count."""
    having = Counter(chain.from_iterable([passage.counts for passage in passages]))
    n = len(passages)
    if not having:
        return (NO_OVERLAP,) * n
    shared_by = {word: having[word] for word in _counts(query)[0] if word in having}
    weights = {word: math.log(1 + (n - m + 0.5) / (m + 0.5)) for word, m in shared_by.items()}
    most = (K1 + 1) * sum(weights.values())
    mean = sum([passage.length for passage in passages]) / n
    telling = [word for word in shared_by if word not in FUNCTION_WORDS]
    by_weight = sorted(telling, key=lambda word: -weights[word])
    results = []
    for passage in passages:
        if not passage.counts:
            results.append(NO_OVERLAP)
            continue
        base = K1 * (1 - B + B * passage.length / mean)
        counts = passage.counts
        share = sum([weights[w] * n * (K1 + 1) / (n + base) for w, n in counts.items()])
        results.append(Overlap(share / most, tuple([w for w in by_weight if w in counts])))
    return tuple(results)


def likeness(passages: Sequence[str], best: Sequence[int]) -> tuple[float, ...]:
    """The similarity of each passage to the others at the places `best`: the mean cosine of their words, where words in
    fewer passages weigh more. 0 if no other passage is in `best`."""
    counts = [_counts(passage)[0] for passage in passages]
    having = Counter(word for count in counts for word in count)
    rare = {word: math.log((len(counts) + 1) / (m + 0.5)) for word, m in having.items()}
    weights = [{w: (1 + math.log(n)) * rare[w] for w, n in c.items()} for c in counts]
    sizes = [math.sqrt(sum(x * x for x in each.values())) or 1.0 for each in weights]

    def cosine(a: int, b: int) -> float:
        weights_of_b = weights[b]
        return sum(x * weights_of_b.get(w, 0.0) for w, x in weights[a].items()) / sizes[a] / sizes[b]

    means = []
    for place in range(len(counts)):
        others = [cosine(other, place) for other in best if other != place]
        means.append(sum(others) / len(others) if others else 0.0)
    return tuple(means)


def shared_values(query_values: frozenset[Value], text: str) -> frozenset[Value]:
    """The values of the query that the text also states."""
    counts = _counts(text)[0]
    if any(name in counts and number in counts for name, number in query_values):
        return query_values & values(text)
    return frozenset()


def words_of(text: str) -> tuple[str, ...]:
    """The words and numbers of a text in normal form, with plurals as singulars."""
    return tuple(chain.from_iterable(map(_tokens, normalise(text[:MAX_TEXT]).split())))


@lru_cache(maxsize=8192)
def _tokens(part: str) -> tuple[str, ...]:
    """The tokens between two spaces. Cached, since texts repeat the same words."""
    return tuple(map(_singular, _TOKEN.findall(part)))


@lru_cache(maxsize=8192)
def _counts(text: str) -> tuple[Counter[str], int]:
    """How often each word occurs in the text, and its number of words."""
    words = words_of(text)
    return Counter(words), len(words)


@lru_cache(maxsize=2048)
def values(text: str) -> frozenset[Value]:
    """Every name with the number that follows it, directly or after "of" or "is"."""
    words = words_of(text)
    values_found = set()
    for i, word in enumerate(words):
        if not _NUMBER.fullmatch(word):
            continue
        name = i - 2 if i > 1 and words[i - 1] in _JOINS else i - 1
        if name >= 0 and not any(char.isdigit() for char in words[name]):
            values_found.add((words[name], word))
    return frozenset(values_found)


def _singular(word: str) -> str:
    plural = len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return word[:-1] if plural else word


_F = "calf dwarf elf half knife leaf loaf scarf self shelf thief wharf wife wolf".split()
_VES = {name.removesuffix("e").removesuffix("f") + "ves": name for name in _F}
_PLURALS = {**_VES, "taxes": "tax", "axes": "axe", "men": "man", "sses": "ss", "xes": "x", "ches": "ch", "shes": "sh"}
_REGULAR = ("human", "german", "roman", "shaman", "talisman")
_NO_PLURAL = ("ss", "us", "is", "specimen", "regimen", "abdomen")


def singular_of(name: str) -> str:
    """The regular singular of a name; the name itself if it is not a plural."""
    if name.endswith(_NO_PLURAL) or len(name) < 3:
        return name
    for plural, single in _PLURALS.items():
        if name.endswith(plural):
            return name.removesuffix(plural) + single
    if name.endswith("ies") and len(name) > 4:
        return name.removesuffix("ies") + "y"
    return name.removesuffix("s")


def plural_of(name: str) -> str:
    """The regular plural of a name."""
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return f"{name[:-1]}ies"
    for plural, single in _PLURALS.items():
        if name.endswith(single) and not name.endswith(_REGULAR):
            return name.removesuffix(single) + plural
    return f"{name}es" if name.endswith("s") else f"{name}s"


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of `text`, 0 for the empty text. Pure; about 1 µs per kilobyte."""
    if not text:
        return 0
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return max(-(-size // 4), text.count(" ") + 1)


def first_tokens(text: str, tokens: int) -> str:
    """The longest beginning of `text` of at most `tokens` estimated tokens, cut between words. A text without spaces is
    cut between characters."""
    if estimate_tokens(text) <= tokens:
        return text
    size = bisect_right(range(len(text)), tokens, key=lambda n: estimate_tokens(text[:n])) - 1
    cut = text[: max(size, 0)]
    space = cut.rfind(" ")
    return (cut[:space] if space > 0 and not text[size].isspace() else cut).rstrip()
